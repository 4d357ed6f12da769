"""Whether swaps of words are swaps of tokens: in the whole text, one at a time and together.

A tokenizer is *local* when what it makes of a text falls apart at white space: the tokens of each piece depend on that
piece alone. Of a local tokenizer it is enough to look at every swap in its text, and at all choices together of words
that no white space parts. Of another, no number of looks would do: it may join any two neighbours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from .encoded import Encoded, Span
from .subwords import TokenizerVocabulary

Options = Mapping[int, Sequence[tuple[str, int]]]
"""Word -> what may stand in its place, each with its token."""
SPACE = r" \t\n\r\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""What every normaliser below leaves white, and every pre-tokeniser below splits at."""
NORMALISERS = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Strip", "StripAccents"}
"""Those that look at no further than a character and the marks on it, or at the ends of the text."""
SPLITTING = {"BertPreTokenizer", "ByteLevel", "Whitespace", "WhitespaceSplit"}
INSIDE = SPLITTING | {"Digits", "Punctuation"}
"""Those that look at no more than their piece."""
MODELS = {"BPE", "Unigram", "WordLevel", "WordPiece"}
ADDING = {"BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"}
"""Post-processors: they put special tokens around."""
AT_ONCE = 4096
"""Choices of words that no white space parts which are looked at together; also sentences encoded together."""


def product_of(vocabulary: Any) -> str | None:
    """Why swaps of words need not be swaps of tokens with this vocabulary; None where they are, each looked at."""
    return next(reasons(vocabulary.stored), None) if isinstance(vocabulary, TokenizerVocabulary) else None


def reasons(stored: Mapping[str, Any]) -> Iterator[str]:
    """Parts of a tokenizer.json that may join what white space parts."""
    for token in stored.get("added_tokens") or ():
        if re.search(r"\s", token["content"]):
            yield f"the added token {token['content']!r} holds white space"
        if token["rstrip"] or (token["lstrip"] and not token["special"]):
            yield f"the added token {token['content']!r} takes white space beside it"
    for part in listed(stored.get("normalizer"), "normalizers"):
        kind, literal = part["type"], part.get("pattern", {}).get("String")
        if kind not in NORMALISERS and not (kind == "Replace" and literal and not re.search(r"\s", literal)):
            yield f"its normaliser {kind} may change white space"
    parts = listed(stored.get("pre_tokenizer"), "pretokenizers")
    if not parts:
        yield "it has no pre-tokeniser"
    for place, part in enumerate(parts):
        if not (is_local(part) if place == 0 else part["type"] in INSIDE):
            yield f"its pre-tokeniser {part['type']} may keep words together that white space parts"
    model = stored["model"]
    if model.get("type") not in MODELS:
        yield f"its model {model.get('type')} is none that is known"
    if model.get("dropout"):
        yield "its model leaves out merges by chance"
    for part in listed(stored.get("post_processor"), "processors"):
        if part["type"] not in ADDING:
            yield f"its post-processor {part['type']} is none that is known"


def listed(part: Mapping[str, Any] | None, within: str) -> list[Mapping[str, Any]]:
    """The parts of a sequence, or the one part."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [inner for one in part[within] for inner in listed(one, within)]
    return [part]


def is_local(part: Mapping[str, Any]) -> bool:
    """Whether a pre-tokeniser that comes first splits at white space."""
    match part["type"]:
        case "ByteLevel":
            return bool(part["use_regex"])
        case "Metaspace":
            return bool(part["split"])
        case kind:
            return kind in SPLITTING


def fitting(vocabulary: Any, text: Encoded, options: Options) -> dict[int, tuple[tuple[str, int], ...]]:
    """Of a local tokenizer: the options that are swaps of one token each, whatever else is swapped."""
    if not isinstance(vocabulary, TokenizerVocabulary):
        return {index: tuple(own) for index, own in options.items()}
    looking = Looking(vocabulary, text)
    alone = [((index, option),) for index, own in options.items() for option in own]
    held = {swaps[0] for swaps, fits in zip(alone, looking.fit(alone), strict=True) if fits}
    kept = {index: tuple(o for o in own if (index, o) in held) for index, own in options.items()}
    for piece in looking.pieces(index for index, own in kept.items() if own):
        if len(piece) > 1 and not looking.all_fit(piece, kept):
            kept |= dict.fromkeys(piece[1:], ())  # the first one was looked at alone
    return kept


class Looking:
    """A text and its swaps, encoded in place."""

    def __init__(self, vocabulary: TokenizerVocabulary, text: Encoded) -> None:
        self.vocabulary, self.text = vocabulary, text
        self.ids, self.places = vocabulary.in_place(text.text)

    def fit(self, swapped: Sequence[Sequence[tuple[int, tuple[str, int]]]]) -> Iterator[bool]:
        """Of each of these sets of swaps (word, (candidate, token)), whether it changes these tokens and no other."""
        for start in range(0, len(swapped), AT_ONCE):
            some = swapped[start : start + AT_ONCE]
            found = self.vocabulary.ids_of([self.sentence(swaps) for swaps in some])
            for swaps, ids in zip(some, found, strict=True):
                yield ids == self.expected(swaps)

    def sentence(self, swaps: Iterable[tuple[int, tuple[str, int]]]) -> str:
        text = self.text.text
        for index, (candidate, _) in sorted(swaps, reverse=True):
            start, end = self.text.spans[index]
            text = text[:start] + candidate + text[end:]
        return text

    def expected(self, swaps: Iterable[tuple[int, tuple[str, int]]]) -> list[int] | None:
        ids = list(self.ids)
        for index, (_, token) in swaps:
            places = self.places.get(self.text.spans[index], ())
            if len(places) != 1:
                return None
            ids[places[0]] = token
        return ids

    def pieces(self, words: Iterable[int]) -> list[list[int]]:
        """These words by the piece between white space in which they stand."""
        found: dict[Span, list[int]] = {}
        ends = [match.span() for match in re.finditer(self.vocabulary_piece, self.text.text)]
        for index in sorted(words):
            start = self.text.spans[index][0]
            piece = next(span for span in ends if span[0] <= start < span[1])
            found.setdefault(piece, []).append(index)
        return list(found.values())

    @property
    def vocabulary_piece(self) -> str:
        """What stands between white space that the tokenizer splits at."""
        parts = listed(self.vocabulary.stored.get("pre_tokenizer"), "pretokenizers")
        return "[^ ]+" if parts and parts[0]["type"] == "Metaspace" else f"[^{SPACE}]+"

    def all_fit(self, piece: Sequence[int], kept: Options) -> bool:
        """Whether every choice of these words together changes their tokens and no other."""
        if math.prod(1 + len(kept[index]) for index in piece) > AT_ONCE:
            return False
        every = product(*([None, *((index, option) for option in kept[index])] for index in piece))
        several = [swaps for choice in every if len(swaps := [one for one in choice if one is not None]) > 1]
        return all(self.fit(several))
