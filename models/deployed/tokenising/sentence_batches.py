"""Which sentences a model is given together: of like length, in batches that are fast and small in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .token_rows import Ids

TOKENS = 512
"""Of a batch, for each core: more were not faster (an encoder of 22 million parameters), and memory stays small."""
TOKENS_OF_SMALL = 2_048
"""Where starting a batch costs more than reading a token (an LSTM of 40 thousand parameters)."""
SMALL = 2_000_000
"""Parameters, without tables."""
TOGETHER = 2_048
"""Sentences that are padded together before they are given in batches."""


@dataclass(frozen=True)
class Batching:
    """How sentences may stand together so that none changes the answer of another.

    `alone`: not at all; otherwise those of equal width, so that none is padded more than it is alone: what a few
    sentences show of padding need not hold of others. `fixed`: the number of sentences that the model always reads.
    """

    alone: bool = False
    fixed: int | None = None
    small: bool = False
    cores: int = 1

    def most(self, width: int) -> int:
        """Sentences of a batch."""
        tokens = (TOKENS_OF_SMALL if self.small else TOKENS) * self.cores
        return 1 if self.alone else self.fixed or max(1, tokens // max(1, width))

    def slabs(self, widths: Ids) -> Iterator[Ids]:
        """[sentences, rows of tokens each becomes] -> sentences of equal widths, by number; short first."""
        order = np.lexsort(widths.T)
        ordered = widths[order]
        changes = np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1)) + 1
        for start, end in pairwise((0, *changes.tolist(), len(order))):
            for first in range(start, end, TOGETHER):
                yield order[first : min(first + TOGETHER, end)]
