"""Vocabularies: from a text to the ids a model reads, and back to what a replacement word would take."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .encoded import PATTERNS, Encoded, Split, check_length, empty, spans_of
from .errors import BadInput, one_line, unreadable
from .subwords import TokenizerVocabulary, tokenizer_of

__all__ = ["Encoded", "Split", "TokenizerVocabulary", "Vocabulary", "WordVocabulary", "read_vocabulary"]

PAD = "<pad>"
UNKNOWN = "<unk>"


@dataclass(frozen=True, eq=False)
class WordVocabulary:
    """One id per word. Words are lower-cased one by one for look-up, so spans always refer to the text as given.

    `pad` and `unknown` are names, or ids that need no name.
    """

    source: str
    ids: Mapping[str, int]
    pad: str | int = PAD
    unknown: str | int = UNKNOWN
    lowercase: bool = False
    split: Split = "whitespace"

    @cached_property
    def size(self) -> int:
        """The highest id + 1."""
        return max([*self.ids.values(), *self._reserved]) + 1

    def encode(self, text: str, length: int | None = None) -> Encoded:
        """The first `length` words, padded on the right to `length`; all of them, and no padding, when None."""
        check_length(length)
        everything = spans_of(text, self.split)
        if not everything:
            raise empty(text)
        spans = everything[:length]
        words = tuple(text[start:end] for start, end in spans)
        tokens = [self._id(word) for word in words]
        unknown = tuple(index for index, token in enumerate(tokens) if token is None or token in self._reserved)
        known, padding = self._special(self.unknown), self._special(self.pad)
        if None in tokens and known is None:
            raise BadInput(
                f"{self.source}: does not know {words[tokens.index(None)]!r}, and has no unknown token "
                f"{self.unknown!r} to read it as: name one that it has, or an id, as unknown = 1"
            )
        read = [token for token in (known if token is None else token for token in tokens) if token is not None]
        missing = 0 if length is None else length - len(read)
        if missing and padding is None:
            raise BadInput(
                f"{self.source}: has no padding token {self.pad!r}, which a text of {len(read)} words needs: name one "
                "that it has, or an id, as pad = 0"
            )
        return Encoded(
            text=text,
            words=words,
            spans=spans,
            tokens=(*read, *([] if padding is None else [padding] * missing)),
            places=tuple((index, 1) for index in range(len(words))),
            cut=len(everything) - len(spans),
            unknown=unknown,
            whole=everything,
        )

    def tokens_of(self, word: str) -> tuple[int, ...] | None:
        """The ids a replacement word takes; None when it is unknown, reserved, or would not be read as one word.

        This is what `encode` would read with the replacement written into the text, unless it takes the place of a mark
        that touches a word (split "words"): the two would merge.
        """
        token = self._id(word)
        if token is None or token in self._reserved or spans_of(word, self.split) != ((0, len(word)),):
            return None
        return (token,)

    @cached_property
    def _reserved(self) -> frozenset[int]:
        found = (self._special(self.pad), self._special(self.unknown))
        return frozenset(token for token in found if token is not None)

    def _special(self, token: str | int) -> int | None:
        return token if isinstance(token, int) else self.ids.get(token)

    def _id(self, word: str) -> int | None:
        return self.ids.get(word.lower() if self.lowercase else word)


Vocabulary = WordVocabulary | TokenizerVocabulary


def read_vocabulary(
    path: str | Path,
    *,
    pad: str | int | None = None,
    unknown: str | int | None = None,
    lowercase: bool = False,
    split: Split = "whitespace",
) -> Vocabulary:
    """A list of words (index = id), a map {"word": id}, or a Hugging Face tokenizer.json, told apart by their content.

    `pad` and `unknown` left out are "<pad>" and "<unk>", or what the tokenizer.json says; of words they can be ids.
    """
    source = str(path)
    if split not in PATTERNS:
        raise BadInput(f"split is {split!r}: it can be {' or '.join(repr(known) for known in PATTERNS)}")
    content, text = _json(Path(path))
    if isinstance(content, dict) and (
        isinstance(content.get("model"), dict) or isinstance(content.get("added_tokens"), list)
    ):
        if split != "whitespace":
            raise BadInput(f"{source}: a tokenizer splits texts itself: leave out split = {split!r}")
        if isinstance(pad, int) or isinstance(unknown, int):
            raise BadInput(f"{source}: a tokenizer names its tokens: give pad and unknown by name")
        tokenizer_of(text, source)
        return TokenizerVocabulary(source, text, pad, unknown, lowercase)
    if isinstance(content, list):
        ids = _ids_of_list(content, source)
    elif isinstance(content, dict):
        ids = _ids_of_map(content, source)
    else:
        raise BadInput(f'{source}: neither a list of words, nor a map {{"word": id}}, nor a tokenizer.json')
    if not ids:
        raise BadInput(f"{source}: holds no words")
    for name, given in (("pad", pad), ("unknown", unknown)):
        if isinstance(given, int) and (isinstance(given, bool) or given < 0):
            raise BadInput(f"{name} is {json.dumps(given)}: it can be a token or an id, 0 or more")
    return WordVocabulary(
        source, ids, PAD if pad is None else pad, UNKNOWN if unknown is None else unknown, lowercase, split
    )


def _json(path: Path) -> tuple[object, str]:
    """The JSON of a file and its text; a key given twice is an error, for JSON keeps the last one silently."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = dict(pairs)
        if len(keys) < len(pairs):
            [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
            raise BadInput(f"{path}: {twice!r} is there twice")
        return keys

    try:
        text = path.read_bytes().decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=unique), text
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}: not UTF-8 ({error.reason})") from error
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} line {error.lineno}: not JSON ({error.msg}, column {error.colno})") from error
    except RecursionError as error:
        raise BadInput(f"{path}: JSON nested too deep") from error
    except BadInput:
        raise
    except ValueError as error:
        raise BadInput(f"{path}: not JSON ({one_line(error)})") from error


def _ids_of_list(content: list[object], source: str) -> dict[str, int]:
    ids: dict[str, int] = {}
    for index, word in enumerate(content):
        checked = _word(word, source, f"entry {index}")
        if checked in ids:
            raise BadInput(f"{source}: entry {index} repeats {checked!r}, which is entry {ids[checked]}")
        ids[checked] = index
    return ids


def _ids_of_map(content: dict[str, object], source: str) -> dict[str, int]:
    ids: dict[str, int] = {}
    owners: dict[int, str] = {}
    for word, identity in content.items():
        _word(word, source, f"key {word!r}")
        if not isinstance(identity, int) or isinstance(identity, bool):
            raise BadInput(f"{source}: {word!r} has the id {json.dumps(identity)[:40]}, which is not an integer")
        if identity < 0:
            raise BadInput(f"{source}: {word!r} has the negative id {identity}")
        if identity in owners:
            raise BadInput(f"{source}: {owners[identity]!r} and {word!r} share the id {identity}")
        ids[word] = identity
        owners[identity] = word
    return ids


def _word(word: object, source: str, where: str) -> str:
    if not isinstance(word, str):
        raise BadInput(f"{source}: {where} is {json.dumps(word)[:40]}, which is not a word")
    if any("\ud800" <= character <= "\udfff" for character in word):
        raise BadInput(f"{source}: {where} holds half a surrogate pair, which is no character")
    return word
