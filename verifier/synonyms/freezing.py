"""Frozen spaces: the choices of every word of every text, decided once, counted, and ready to be written and hashed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.space import SwapSpace
from swapproof.models.subwords import TokenizerVocabulary
from swapproof.models.tokens_in_place import fitting

from .filters import NOT_IN_VOCABULARY, NOT_ONE_WORD, SAME_TOKEN, SEVERAL_TOKENS, Filter, in_order, one_token
from .graph import Graph, neighbours

if TYPE_CHECKING:
    from swapproof.models.vocabulary import Encoded, Vocabulary

# Why a word cannot be swapped at all; its candidates are counted as removed for this reason.
WORD_OF_SEVERAL_TOKENS = "word of several tokens"
UNKNOWN_WORD = "unknown word"
TOUCHING_MARK = "punctuation touching a word"
OBSTACLES = (WORD_OF_SEVERAL_TOKENS, UNKNOWN_WORD, TOUCHING_MARK)

# What else of a text does not move: it has no place in the model's input, or is no word.
CUT = "word beyond the model's length"
PADDING = "padding or special token"

# Why a candidate cannot stand where the word stood in this text, though it is one token elsewhere.
NEIGHBOURS = "changes its neighbours' tokens"

# Why a candidate cannot stand where the word stood, whatever the filters say.
MISFITS = (NOT_IN_VOCABULARY, NOT_ONE_WORD, SEVERAL_TOKENS, SAME_TOKEN)


Moves = dict[int, tuple[tuple[str, int], ...]]
"""Word -> what may stand in its place, each with its token."""


@dataclass(frozen=True)
class FrozenText:
    """The space of one text. `words[i]` are the choices for word i, the original first; `words[i][j]` is the token
    `space.choices[places[i][0]][j]` of the encoded text."""

    id: int
    words: tuple[tuple[str, ...], ...]
    space: SwapSpace

    @property
    def line(self) -> str:
        """The text's line of spaces.jsonl, without the line break."""
        return json.dumps({"id": self.id, "choices": self.words}, ensure_ascii=False)

    @property
    def sha256(self) -> str:
        """Of its line of spaces.jsonl, with the line break."""
        return hashlib.sha256(f"{self.line}\n".encode()).hexdigest()


@dataclass(frozen=True)
class Freezing:
    """The spaces of a data set, and everything that was left out of them.

    `dropped`: (word, candidate, reason) -> at how many positions; `fixed`: what does not move -> how many of it;
    `considered`: candidates before any removal, over all positions; `reasons`: every reason there can be, in order of
    application; `digest`: SHA-256 of spaces.jsonl.
    """

    texts: tuple[FrozenText, ...]
    dropped: Mapping[tuple[str, str, str], int]
    fixed: Mapping[str, int]
    considered: int
    reasons: tuple[str, ...]
    digest: str

    @cached_property
    def removed(self) -> Mapping[str, int]:
        """Reason -> candidates removed, over all positions, in the order in which the filters were applied."""
        counts = dict.fromkeys(self.reasons, 0)
        for (_, _, reason), times in self.dropped.items():
            counts[reason] += times
        return counts

    @cached_property
    def candidates(self) -> int:
        """Single swaps left, over all texts."""
        return sum(text.space.candidates for text in self.texts)

    def summary(self, name: str) -> tuple[str, ...]:
        """What the freezing did with the candidates of a source, one line for each thing counted."""
        lines = [f"{name}: {self.considered:,} candidates in {len(self.texts):,} texts"]
        lines += [f"removed, {reason}: {times:,}" for reason, times in self.removed.items()]
        lines.append(f"kept: {self.candidates:,}")
        lines += [f"does not move, {reason}: {times:,}" for reason, times in self.fixed.items() if times]
        return tuple(lines)


def freeze(
    encoded: Sequence[tuple[int, Encoded]],
    vocabulary: Vocabulary,
    graph: Graph,
    filters: Sequence[Filter] = (),
    *,
    swap_unknown: bool = False,
) -> Freezing:
    """The spaces of these (id, text) pairs: a word that is one known token may become the candidates the filters keep.

    Candidates are those of the lower-cased word, in order of preference, spelt as in the graph. Filters are applied in
    the order of FILTERS, each to what the ones before it kept; those that ignore the sentence, once per distinct word.
    """
    if len({id for id, _ in encoded}) < len(encoded):
        raise BadInput("two texts share an id: frozen spaces are found by id")
    ordered = in_order(filters)
    contextual = next((place for place, one in enumerate(ordered) if one.in_context), len(ordered))
    by_word, by_sentence = ordered[:contextual], ordered[contextual:]
    options: dict[tuple[str, int], _Options] = {}
    times: Counter[tuple[str, int]] = Counter()
    dropped: Counter[tuple[str, str, str]] = Counter()
    fixed: Counter[str] = Counter()
    shared = Shared()
    texts = []
    considered = 0
    for id, text in encoded:
        words = spelling(text, vocabulary)
        moves: Moves = {}
        marks = touching_marks(text)
        for index, (word, obstacle) in enumerate(zip(words, obstacles(text, swap_unknown), strict=True)):
            reason = obstacle or (TOUCHING_MARK if index in marks else None)
            if reason:
                fixed[reason] += 1
                candidates = neighbours(graph, word.lower())
                considered += len(candidates)
                dropped.update((word.lower(), candidate, reason) for candidate in candidates)
                continue
            key = (word, text.tokens[text.places[index][0]])
            found = options.get(key)
            if found is None:
                found = options[key] = _options(*key, vocabulary, graph, by_word)
            times[key] += 1
            kept = found.kept
            for one in by_sentence if kept else ():
                kept, removed = _apply(one, words, index, kept)
                dropped.update((word.lower(), candidate, reason) for candidate, reason in removed)
            moves[index] = kept
        moves = in_place(vocabulary, text, words, moves, dropped)
        fixed.update(outside(text))
        texts.append(frozen_text(id, text, words, moves, shared))
    for key, visits in times.items():
        considered += visits * options[key].considered
        for candidate, reason in options[key].removed:
            dropped[key[0].lower(), candidate, reason] += visits
    reasons = (*OBSTACLES, *MISFITS, *dict.fromkeys(one.name for one in ordered), *of_neighbours(vocabulary))
    return Freezing(tuple(texts), dict(dropped), dict(fixed), considered, reasons, digest_of(texts))


def of_neighbours(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The reason that only tokenizers give."""
    return (NEIGHBOURS,) if isinstance(vocabulary, TokenizerVocabulary) else ()


def in_place(
    vocabulary: Vocabulary, text: Encoded, words: Sequence[str], moves: Moves, dropped: Counter[tuple[str, str, str]]
) -> Moves:
    """The moves that change the one token of their word and no other, whatever else is swapped; others are counted."""
    kept = fitting(vocabulary, text, moves)
    if kept == moves:
        return moves
    for index, options in moves.items():
        others = (candidate for candidate, token in options if (candidate, token) not in kept[index])
        dropped.update((words[index].lower(), candidate, NEIGHBOURS) for candidate in others)
    return kept


def obstacles(text: Encoded, swap_unknown: bool) -> Iterator[str | None]:
    """For each word of the text, why it cannot be swapped, or None."""
    unknown = frozenset() if swap_unknown else frozenset(text.unknown)
    for index, (_, count) in enumerate(text.places):
        if count > 1:
            yield WORD_OF_SEVERAL_TOKENS
        else:
            yield UNKNOWN_WORD if index in unknown else None


def touching_marks(text: Encoded) -> frozenset[int]:
    """Words without letter or digit that have no space on one side: a word in their place would join its neighbour,
    and the changed text would no longer be read as the changed tokens."""
    marks = [index for index, word in enumerate(text.words) if not (word.isalnum() or any(map(str.isalnum, word)))]
    if not marks:
        return frozenset()
    spans = {*text.whole, *text.spans}  # the neighbour may lie beyond the model's length
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    return frozenset(index for index in marks if text.spans[index][0] in ends or text.spans[index][1] in starts)


def outside(text: Encoded) -> dict[str, int]:
    """How many words of the text the model does not see, and how many of its input tokens are no words."""
    return {CUT: text.cut, PADDING: len(text.tokens) - sum(count for _, count in text.places)}


def spelling(text: Encoded, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The text's words as a frozen space spells them: in lower case when the vocabulary lower-cases."""
    return tuple(word.lower() for word in text.words) if vocabulary.lowercase else text.words


class Shared(dict[tuple[Any, ...], tuple[Any, ...]]):
    """One object for equal tuples: a data set repeats the same few thousand lists of choices."""

    def __missing__(self, new: tuple[Any, ...]) -> tuple[Any, ...]:
        self[new] = new
        return new


def frozen_text(
    id: int, text: Encoded, words: Sequence[str], moves: Mapping[int, tuple[tuple[str, int], ...]], shared: Shared
) -> FrozenText:
    """The space in which word `index` may become the (candidate, token) pairs `moves[index]`."""
    lists = [*map(shared.__getitem__, zip(words, strict=True))]
    choices = [*map(shared.__getitem__, zip(text.tokens, strict=True))]
    for index, options in moves.items():
        if options:
            place = text.places[index][0]
            lists[index] = shared[(words[index], *(candidate for candidate, _ in options))]
            choices[place] = shared[(int(text.tokens[place]), *(token for _, token in options))]
    return FrozenText(id, tuple(lists), SwapSpace(tuple(choices)))


def digest_of(texts: Iterable[FrozenText]) -> str:
    """SHA-256 of spaces.jsonl."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{text.line}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Options:
    """What may replace a word, whatever the sentence around it."""

    kept: tuple[tuple[str, int], ...]
    removed: tuple[tuple[str, str], ...]
    considered: int


def _options(word: str, original: int, vocabulary: Vocabulary, graph: Graph, filters: Sequence[Filter]) -> _Options:
    candidates = neighbours(graph, word.lower())
    if vocabulary.follows_case:
        candidates = tuple(dict.fromkeys(cased_like(word, candidate) for candidate in candidates))
    fitting, removed = one_token(vocabulary, original, candidates)
    kept = tuple(fitting)
    for one in filters:
        kept, more = _apply(one, (word,), 0, kept)
        removed += more
    return _Options(kept, tuple(removed), len(candidates))


def cased_like(word: str, candidate: str) -> str:
    """The candidate with capitals where the word has them: at its beginning, or throughout."""
    if len(word) > 1 and word.isupper():
        return candidate.upper()
    return candidate[:1].upper() + candidate[1:] if word[:1].isupper() else candidate


def _apply(
    one: Filter, words: Sequence[str], index: int, options: tuple[tuple[str, int], ...]
) -> tuple[tuple[tuple[str, int], ...], list[tuple[str, str]]]:
    if not options:
        return options, []
    keeps = one.keeps(words, index, [candidate for candidate, _ in options])
    kept = tuple(option for option, keep in zip(options, keeps, strict=True) if keep)
    return kept, [(candidate, one.name) for (candidate, _), keep in zip(options, keeps, strict=True) if not keep]
