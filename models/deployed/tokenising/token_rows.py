"""Sentences as token ids, each of its own length, and as the padded matrix that a model reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import BadInput
from ..swapped_text import Fields

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Row i is ids[starts[i] : starts[i] + sizes[i]]; `types` say which text of a pair a token belongs to."""

    ids: Ids
    types: Ids
    starts: Ids
    sizes: Ids

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None) -> TokenRows:
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        starts = np.cumsum(sizes) - sizes
        ids = joined(rows, int(sizes.sum()))
        return cls(ids, np.zeros_like(ids) if types is None else joined(types, len(ids)), starts, sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def row(self, index: int) -> Ids:
        """[2, tokens]: ids and types."""
        part = slice(int(self.starts[index]), int(self.starts[index] + self.sizes[index]))
        return np.stack([self.ids[part], self.types[part]])

    def repeated(self, times: int) -> TokenRows:
        """The only row, so many times."""
        return TokenRows(self.ids, self.types, np.repeat(self.starts, times), np.repeat(self.sizes, times))

    def cut(self, length: int, side: str) -> TokenRows:
        """At most `length` tokens of each: the first, or with side "left" the last."""
        sizes = np.minimum(self.sizes, length)
        starts = self.starts + self.sizes - sizes if side == "left" else self.starts
        return TokenRows(self.ids, self.types, starts, sizes)

    def replaced(self, places: Ids, others: TokenRows) -> TokenRows:
        """With other rows at these places."""
        starts, sizes = self.starts.copy(), self.sizes.copy()
        starts[places], sizes[places] = others.starts + len(self.ids), others.sizes
        ids, types = np.concatenate([self.ids, others.ids]), np.concatenate([self.types, others.types])
        return TokenRows(ids, types, starts, sizes)

    def padded(self, rows: Ids, width: int, padding: Padding) -> tuple[Ids, Ids, NDArray[np.bool_]]:
        """[rows, width] each: ids, types, and where a token of the sentence stands."""
        sizes = self.sizes[rows, None]
        place = np.arange(width)
        if not padding.left and (sizes == width).all():
            index = self.starts[rows, None] + place
            return self.ids[index], self.types[index], np.ones(index.shape, dtype=np.bool_)
        place = place - (width - sizes) if padding.left else np.broadcast_to(place, (len(rows), width))
        real = (place >= 0) & (place < sizes)
        index = np.where(real, self.starts[rows, None] + place, 0)
        if not len(self.ids):  # empty sentences only
            return np.full_like(index, padding.id), np.full_like(index, padding.type), real
        ids, types = np.where(real, self.ids[index], padding.id), np.where(real, self.types[index], padding.type)
        return ids, types, real


@dataclass(frozen=True)
class Padding:
    """What stands beside the tokens of a sentence: on which side, and to which width (None: as wide as it is)."""

    id: int = 0
    type: int = 0
    left: bool = False
    width: int | None = None
    multiple: int = 1
    """Of which every width is a multiple."""

    def alone(self, sizes: Ids) -> Ids:
        """The widths of sentences that stand alone."""
        wide = sizes if self.width is None else np.maximum(sizes, self.width)
        return np.asarray(-(-wide // self.multiple) * self.multiple)


@dataclass(frozen=True)
class Limit:
    """Sentences are cut to `at` tokens; those of more than `most` are refused, for the reason `why`."""

    at: int | None = None
    most: int | None = None
    why: str = ""

    def check(self, sizes: Ids) -> None:
        if self.most is not None and len(sizes) and (longest := int(sizes.max())) > self.most:
            raise BadInput(f"a text of {longest} tokens: {self.why}")


UNLIMITED = Limit()


class Tokeniser(Protocol):
    """Whole sentences to token ids, as deployed."""

    @property
    def padding(self) -> Padding: ...

    @property
    def first_position(self) -> int | None:
        """Of the first token, where positions skip the padding; None where they count places from 0."""

    @property
    def separators(self) -> str:
        """White space at which a text falls apart into parts that are read one by one; "" where nothing is known."""

    @property
    def words(self) -> tuple[str, ...]:
        """A few that it knows."""

    @property
    def files(self) -> tuple[tuple[str, Path], ...]:
        """All that it was read from, under names by which copies in one folder are found."""

    @property
    def remarks(self) -> tuple[str, ...]: ...

    def rows(self, sentences: Sequence[Fields]) -> TokenRows:
        """Of one text each, or of two that are joined."""

    def uncut(self, sentences: Sequence[Fields]) -> TokenRows: ...

    def plain(self, read: TokenRows) -> bool:
        """Whether no token stands in these sentences, read uncut, that may look beyond itself."""

    def fitted(self, read: TokenRows, spell: Callable[[Ids], Sequence[Fields]]) -> TokenRows:
        """What `rows` would have been of sentences that were read uncut; `spell` spells some of them out."""

    def shown(self, identity: int) -> str:
        """The token of this id."""

    def unknown_in(self, sentences: Sequence[Fields]) -> tuple[int, int]:
        """How many words or tokens of these sentences it does not know, and how many there are."""


FEW = 13
"""Words to try a model with."""


def joined(rows: Sequence[Sequence[int]], total: int) -> Ids:
    return np.fromiter((item for row in rows for item in row), np.int64, total)
