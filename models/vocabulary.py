"""Vocabularies: from a text to the ids a model reads, and back to what a replacement word would take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from .encoded import PATTERNS, Encoded, Pattern, Split, check_length, constants_of, empty, spans_of
from .errors import BadInput
from .plain_words import PlainWords
from .subwords import TokenizerVocabulary, tokenizer_of
from .vocabulary_files import TokenizerFile, WordFile, disagreeing, read_vocabulary_file

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
    pad_side: str = "right"
    cut_side: str | None = None
    """Where longer texts are cut; of those that are padded on the left, it must be said."""

    follows_case: ClassVar[bool] = False

    @cached_property
    def size(self) -> int:
        """The highest id + 1."""
        return max([*self.ids.values(), *self._reserved]) + 1

    def encode(self, text: str, length: int | None = None) -> Encoded:
        """The first `length` words (with cut_side "left" the last), padded to `length`; all of them when None."""
        check_length(length)
        everything = spans_of(text, self.split)
        if not everything:
            raise empty(text)
        spans = everything[self.kept(len(everything), length)]
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
        added = () if padding is None else (padding,) * missing
        first = len(added) if self.pad_side == "left" else 0
        return Encoded(
            text=text,
            words=words,
            spans=spans,
            tokens=(*added, *read) if first else (*read, *added),
            places=tuple((first + index, 1) for index in range(len(words))),
            cut=len(everything) - len(spans),
            unknown=unknown,
            whole=everything,
            constants=constants_of((0,) * first + (1,) * len(read) + (0,) * (missing - first)),
        )

    @property
    def self_contained(self) -> bytes | None:
        """A vocabulary.json that says the same; None where the file is one."""
        if Path(self.source).suffix.lower() != ".txt":
            return None
        return json.dumps(dict(self.ids), ensure_ascii=False).encode()

    def kept(self, number: int, length: int | None) -> slice:
        """Of so many words those that fit."""
        if length is None or number <= length:
            return slice(None)
        if self.cut_side is None and self.pad_side == "left":
            raise BadInput(
                f'a text of {number} words is cut to {length}, and pad_side = "left" does not say where: set '
                'cut_side = "left" (the last words are kept, as pad_sequences of Keras does by default) or "right"'
            )
        return slice(number - length, None) if self.cut_side == "left" else slice(length)

    def tokens_of(self, word: str) -> tuple[int, ...] | None:
        """The ids a replacement word takes; None when it is unknown, reserved, or would not be read as one word.

        This is what `encode` would read with the replacement written into the text, unless it takes the place of a mark
        that touches a word (split "words"): the two would merge.
        """
        token = self._id(word)
        if token is None or token in self._reserved or spans_of(word, self.split) != ((0, len(word)),):
            return None
        return (token,)

    def splits(self, word: str) -> bool:
        """Whether this is an entry that no text reaches, for `split` makes other words of it, or none."""
        return self._id(word) is not None and spans_of(word, self.split) != ((0, len(word)),)

    @cached_property
    def _reserved(self) -> frozenset[int]:
        found = (self._special(self.pad), self._special(self.unknown))
        return frozenset(token for token in found if token is not None)

    def _special(self, token: str | int) -> int | None:
        return token if isinstance(token, int) else self.ids.get(token)

    def _id(self, word: str) -> int | None:
        return self.ids.get(word.lower() if self.lowercase else word)


Vocabulary = WordVocabulary | TokenizerVocabulary | PlainWords


def read_vocabulary(
    path: str | Path,
    *,
    pad: str | int | None = None,
    unknown: str | int | None = None,
    lowercase: bool = False,
    split: Split | None = None,
    pad_side: str | None = None,
    cut_side: str | None = None,
    cut: int | None = None,
) -> Vocabulary:
    """A list of words (index = id), a map {"word": id}, one word a line, a tokenizer of Keras, BERT's vocab.txt, or a
    Hugging Face tokenizer.json with the tokenizer_config.json beside it; told apart by their content.

    `pad` and `unknown` left out are "<pad>" and "<unk>", or what the tokenizer says; of words they can be ids. `cut`:
    where a tokenizer cuts, whatever its files say.
    """
    return vocabulary_of(
        read_vocabulary_file(Path(path)),
        str(path),
        pad=pad,
        unknown=unknown,
        lowercase=lowercase,
        split=split,
        pad_side=pad_side,
        cut_side=cut_side,
        cut=cut,
    )


def vocabulary_of(
    file: WordFile | TokenizerFile,
    source: str,
    *,
    pad: str | int | None,
    unknown: str | int | None,
    lowercase: bool,
    split: Split | None,
    pad_side: str | None,
    cut_side: str | None,
    cut: int | None = None,
) -> WordVocabulary | TokenizerVocabulary:
    """What a task says of it added to what the file says."""
    if split is not None and not isinstance(split, Pattern) and split not in PATTERNS:
        raise BadInput(f"split is {split!r}: it can be {' or '.join(repr(known) for known in PATTERNS)}")
    if isinstance(file, TokenizerFile):
        if split not in (None, "whitespace"):
            raise BadInput(f"{source}: a tokenizer splits texts itself: leave out split = {split!r}")
        if isinstance(pad, int) or isinstance(unknown, int):
            raise BadInput(f"{source}: a tokenizer names its tokens: give pad and unknown by name")
        tokenizer_of(file.content, source)
        said = {} if cut is not None else file.said_lengths(Path(source).name)
        disputed = disagreeing(said) if len(set(said.values())) > 1 else None
        return TokenizerVocabulary(
            source, file.settled(pad), pad, unknown, lowercase, pad_side, cut_side, cut, disputed, file.skips_padding
        )
    for name, given in (("pad", pad), ("unknown", unknown)):
        if isinstance(given, int) and (isinstance(given, bool) or given < 0):
            raise BadInput(f"{name} is {json.dumps(given)}: it can be a token or an id, 0 or more")
    if file.split is not None and split not in (None, "whitespace"):
        raise BadInput(f"{source}: a tokenizer of Keras splits texts itself: leave out split = {split!r}")
    if unknown is None:
        unknown = UNKNOWN if file.unknown is None else file.unknown
    if pad is None:
        pad = PAD if file.split is None else 0  # Keras counts words from 1, and pads with 0
    return WordVocabulary(
        source,
        file.ids,
        pad,
        unknown,
        lowercase or bool(file.lowercase),
        file.split or split or "whitespace",
        pad_side or "right",
        cut_side,
    )
