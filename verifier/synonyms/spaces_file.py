"""The file of frozen spaces, spaces.jsonl, read strictly."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swapproof.encodings.errors import BadInput

from .filters import one_token
from .freezing import (
    MISFITS,
    OBSTACLES,
    TOUCHING_MARK,
    Freezing,
    FrozenText,
    Moves,
    Shared,
    digest_of,
    frozen_text,
    in_place,
    obstacles,
    of_neighbours,
    outside,
    spelling,
    touching_marks,
)
from .rejected_pairs import Rejected
from .sources import writable

if TYPE_CHECKING:
    from swapproof.models.vocabulary import Encoded, Vocabulary


def read_spaces(
    path: Path,
    encoded: Sequence[tuple[int, Encoded]],
    vocabulary: Vocabulary,
    *,
    swap_unknown: bool = False,
    partial: bool = False,
    rejected: Rejected | None = None,
) -> Freezing:
    """The spaces of these (id, text) pairs, each from its line `{"id": 0, "choices": [["good", "fine"], ...]}`.

    A line must give one list per word of its text, the text's word first; a text without a line, a line without a text
    and two lines for one text are errors. `partial`: lines of other texts are skipped (a run on the first texts of a
    file). Candidates that are no single new token of the vocabulary are dropped and counted, as are those of words that
    cannot be swapped, as in `freeze`, and those that a reader `rejected`. `digest` is that of the file as it stands or,
    where something was rejected, of the spaces without it.
    """
    expected = dict(encoded)
    if len(expected) != len(encoded):
        raise BadInput("two texts share an id: frozen spaces are found by id")
    found: dict[int, FrozenText] = {}
    dropped: Counter[tuple[str, str, str]] = Counter()
    fixed: Counter[str] = Counter()
    considered = 0
    options: dict[tuple[int, tuple[str, ...]], tuple[list[tuple[str, int]], list[tuple[str, str]]]] = {}
    shared = Shared()
    digest = hashlib.sha256()
    for number, raw in enumerate(_lines(path), start=1):
        digest.update(raw)
        if not raw.strip():
            continue
        where = f"{path}, line {number}"
        id, lists = _parsed(raw, where)
        text = expected.get(id)
        if text is None:
            if partial:
                continue
            raise BadInput(f"{where}: id {id} is none of the {len(expected)} texts: the spaces belong to other data")
        if id in found:
            raise BadInput(f"{where}: a second line for the text with id {id}")
        words = spelling(text, vocabulary)
        _check(lists, words, text.cut, vocabulary.lowercase, where)
        moves: Moves = {}
        marks = touching_marks(text)
        for index, obstacle in enumerate(obstacles(text, swap_unknown)):
            reason = obstacle or (TOUCHING_MARK if index in marks else None)
            word, candidates = words[index], lists[index][1:]
            considered += len(candidates)
            if reason:
                fixed[reason] += 1
                dropped.update((word.lower(), candidate, reason) for candidate in candidates)
            elif candidates:
                if rejected is not None:
                    candidates, gone = parted(rejected, word, candidates)
                    dropped.update((word.lower(), candidate, rejected.name) for candidate in gone)
                key = text.tokens[text.places[index][0]], tuple(candidates)
                if key not in options:
                    options[key] = one_token(vocabulary, *key)
                kept, removed = options[key]
                if removed:
                    dropped.update((word.lower(), candidate, reason) for candidate, reason in removed)
                moves[index] = tuple(kept)
        moves = in_place(vocabulary, text, words, moves, dropped)
        fixed.update(outside(text))
        found[id] = frozen_text(id, text, words, moves, shared)
    for id in expected:
        if id not in found:
            raise BadInput(f"{path}: no line for the text with id {id}")
    texts = tuple(found[id] for id in expected)
    reasons = (*OBSTACLES, *(() if rejected is None else (rejected.name,)), *MISFITS, *of_neighbours(vocabulary))
    own = digest.hexdigest() if rejected is None else digest_of(texts)
    return Freezing(texts, dict(dropped), dict(fixed), considered, reasons, own)


def parted(rejected: Rejected, word: str, candidates: Sequence[str]) -> tuple[list[str], list[str]]:
    """What may stand for the word, and what a reader rejected."""
    gone = [candidate for candidate in candidates if rejected.has(word, candidate)]
    return [candidate for candidate in candidates if candidate not in gone], gone


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from error


def _parsed(raw: bytes, where: str) -> tuple[int, list[list[str]]]:
    try:
        line = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: not UTF-8 (byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not JSON: {getattr(error, 'msg', error)}") from error
    if not isinstance(line, dict) or line.keys() != {"id", "choices"}:
        raise BadInput(f'{where}: not an object with exactly "id" and "choices"')
    id, choices = line["id"], line["choices"]
    if not isinstance(id, int) or isinstance(id, bool):
        raise BadInput(f"{where}: the id {json.dumps(id)} is not an integer")
    if not isinstance(choices, list) or not all(_is_word_list(options) for options in choices):
        raise BadInput(f'{where}: "choices" is not a list of non-empty lists of words')
    return id, choices


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _is_word_list(options: Any) -> bool:
    return (
        isinstance(options, list)
        and bool(options)
        and all(isinstance(word, str) and writable(word) for word in options)
    )


def _check(lists: list[list[str]], words: Sequence[str], cut: int, lowercase: bool, where: str) -> None:
    """The lists begin with the text's words; those of words that did not fit the model may follow."""
    if len(lists) not in (len(words), len(words) + cut):
        more = f" and {cut} more that do not fit the model" if cut else ""
        raise BadInput(f"{where}: choices for {len(lists)} words, and the text has {len(words)}{more}")
    for index, (options, word) in enumerate(zip(lists, words, strict=False)):
        if (options[0].lower() if lowercase else options[0]) != word:
            raise BadInput(f'{where}: word {index} begins with "{options[0]}", and the text has "{word}" there')
