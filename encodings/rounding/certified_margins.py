"""Which real margins of a query's sentences carry claims at level float32."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import values
from ..network import Floats
from ..query import Query
from .certified_float32 import Claims, Sizes, claims_of
from .float_errors import SLOP, margin_errors

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Certified:
    """What certificates allow to claim of the sentences of a query."""

    query: Query

    @staticmethod
    @lru_cache(maxsize=1)
    def of(query: Query) -> Certified:
        """Computed once for the several engines that look at one query."""
        return Certified(query)

    @cached_property
    def claims(self) -> Claims | None:
        return claims_of(self.query.network)

    @cached_property
    def whole(self) -> Sizes | None:
        """What can be claimed over the whole space."""
        return None if self.claims is None else self.claims.whole([self.query.space])

    @cached_property
    def claimable(self) -> Floats:
        """[rivals]: over the whole space, a real margin above this is certified at level float32; may be infinite."""
        if self.claims is None or self.whole is None:
            return np.full(len(self.query.rivals), np.inf)
        return self.for_rivals(self.claims.margin_errors(self.whole, self.query.label)[0])

    def own_errors(self, sentences: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """`Differences.doubt` and `claimable` [batch, rivals] for each of these sentences alone (tighter)."""
        network, label = self.query.network, self.query.label
        found = values(network, sentences)
        doubt = margin_errors(network, {index: np.abs(array) * SLOP for index, array in found.items()}, label)
        if self.claims is None or self.whole is None or np.isinf(self.claimable).any():
            return self.for_rivals(doubt), np.full((len(sentences), len(self.query.rivals)), np.inf)
        sizes = self.claims.of_sentences(self.whole, found)
        return self.for_rivals(doubt), self.for_rivals(self.claims.margin_errors(sizes, label))

    def for_rivals(self, classes: Array) -> Floats:
        return np.asarray(classes[..., list(self.query.rivals)], dtype=np.float64)
