"""Plain words as a deployed model reads them: one id for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from ...encoded import check_length, pattern_of
from ...errors import BadInput
from ...vocabulary import WordVocabulary
from ...vocabulary_files import separators_of
from ..swapped_text import Fields
from .token_rows import FEW, UNLIMITED, Ids, Limit, Padding, TokenRows


@dataclass(frozen=True, eq=False)
class WordRows:
    """`width` is what sentences are padded to; `table` the rows of the model's embedding table, where they are seen."""

    vocabulary: WordVocabulary
    width: int | None = None
    limit: Limit = UNLIMITED
    table: int | None = None
    chosen: bool = False
    """Whether the task says what unknown words are read as."""

    def __post_init__(self) -> None:
        check_length(self.width)
        beyond = self.beyond
        if beyond and not self.chosen:
            word = min(beyond, key=beyond.__getitem__)
            raise BadInput(
                f"{self.vocabulary.source}: {word!r} has the id {beyond[word]}, and the model's table {self.table} "
                f'rows ({len(beyond)} such words): say what they are read as, unknown = an id, or "" if left out'
            )

    @cached_property
    def beyond(self) -> dict[str, int]:
        """Words that the model has no row for."""
        if self.table is None:
            return {}
        return {word: identity for word, identity in self.vocabulary.ids.items() if identity >= self.table}

    @cached_property
    def known(self) -> dict[str, int]:
        return {word: identity for word, identity in self.vocabulary.ids.items() if word not in self.beyond}

    @property
    def leaves_out(self) -> bool:
        """Unknown words."""
        return self.vocabulary.unknown == ""

    @cached_property
    def unknown(self) -> int | None:
        token = self.vocabulary.unknown
        return token if isinstance(token, int) else self.known.get(token)

    @cached_property
    def padding(self) -> Padding:
        token = self.vocabulary.pad
        found = token if isinstance(token, int) else self.known.get(token)
        if found is None and self.width is not None:
            raise BadInput(
                f"{self.vocabulary.source}: has no padding token {token!r}, which shorter texts need: name one that "
                "it has, or an id, as pad = 0"
            )
        return Padding(found or 0, left=self.vocabulary.pad_side == "left", width=self.width)

    @property
    def separators(self) -> str:
        return separators_of(self.vocabulary.split)

    @property
    def first_position(self) -> int | None:
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.beyond:
            return ()
        read = "left out" if self.leaves_out else "read as unknown"
        return (f"{len(self.beyond)} words of the vocabulary have no row in the model's table of {self.table}: {read}",)

    @property
    def files(self) -> tuple[tuple[str, Path], ...]:
        path = Path(self.vocabulary.source)
        return ((f"vocabulary{path.suffix.lower()}", path),)

    @cached_property
    def words(self) -> tuple[str, ...]:
        split, lowercase = pattern_of(self.vocabulary.split), self.vocabulary.lowercase
        words = list(self.known)
        drawn = (words[int(index)] for index in np.random.default_rng(0).permutation(len(words)))
        alone = (word for word in drawn if split.findall(word) == [word] and not (lowercase and word != word.lower()))
        return tuple(islice(alone, FEW)) or ("a",)

    def rows(self, sentences: Sequence[Fields]) -> TokenRows:
        return self.cut(self.uncut(sentences))

    def plain(self, read: TokenRows) -> bool:
        return True

    def fitted(self, read: TokenRows, spell: Callable[[Ids], Sequence[Fields]]) -> TokenRows:
        return self.cut(read)

    def cut(self, read: TokenRows) -> TokenRows:
        self.limit.check(read.sizes)
        if self.limit.at is None or not len(read) or (longest := int(read.sizes.max())) <= self.limit.at:
            return read
        return read.cut(self.limit.at, "left" if self.vocabulary.kept(longest, self.limit.at).start else "right")

    def shown(self, identity: int) -> str:
        return next((word for word, other in self.known.items() if other == identity), "")

    def uncut(self, sentences: Sequence[Fields]) -> TokenRows:
        if sentences and len(sentences[0]) > 1:
            raise BadInput(
                f"{self.vocabulary.source}: words alone do not say how two texts are joined: give a tokenizer.json, or "
                'name the input of each text, as inputs = { "premise" = "tokens", "hypothesis" = "tokens" }'
            )
        return TokenRows.of([self.ids(text) for (text,) in sentences])

    def unknown_in(self, sentences: Sequence[Fields]) -> tuple[int, int]:
        words = [word for sentence in sentences for text in sentence for word in self.split(text)]
        return sum(word not in self.known for word in words), len(words)

    def split(self, text: str) -> list[str]:
        words: list[str] = pattern_of(self.vocabulary.split).findall(text)
        return [word.lower() for word in words] if self.vocabulary.lowercase else words

    def ids(self, text: str) -> list[int]:
        words = self.split(text)
        known = self.known
        found = [known.get(word) for word in words]
        if None not in found:
            return found  # type: ignore[return-value]
        if self.leaves_out:
            return [identity for identity in found if identity is not None]
        if self.unknown is None:
            raise BadInput(
                f"{self.vocabulary.source}: does not know {words[found.index(None)]!r}, and has no unknown token "
                f"{self.vocabulary.unknown!r} to read it as: name one that it has, or an id, as unknown = 1, or "
                'unknown = "" if such words are left out'
            )
        return [self.unknown if identity is None else identity for identity in found]
