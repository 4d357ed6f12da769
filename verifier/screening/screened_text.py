"""One text as screening sees it: what swaps do to it, what can be claimed of it, what is known to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from swapproof.encodings.network import Network
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.certified_float32 import Sizes, claims_of

from .form.agreed_network import Agreed
from .numbers.float64_rounding import Floats
from .numbers.swap_moves import Moves


@dataclass(eq=False)
class Text:
    """One text's space seen by one network, kept for its several proofs."""

    query: Query
    agreed: Agreed
    started: tuple[Floats, Floats] | None = None
    """The cut of the text itself and its error, where they are known."""
    proved: set[tuple[int, str]] = field(default_factory=set)
    """Numbers of swaps, with levels, for which one linear leaf over the whole space surely holds."""
    shown: set[tuple[tuple[tuple[int, int], ...], str]] = field(default_factory=set)
    """Witnesses, with levels, that surely hold."""

    @property
    def network(self) -> Network:
        return self.query.network

    @cached_property
    def moves(self) -> Moves:
        return Moves.of(self.query, self.agreed.kernels, self.started)

    @cached_property
    def whole(self) -> Sizes | None:
        """What can be claimed at level float32 over the whole space; None: nothing."""
        claims = claims_of(self.network)
        return None if claims is None else claims.whole([self.query.space])

    @cached_property
    def claimable(self) -> Floats:
        """[classes]: an upper bound of E_whole, infinite where nothing is claimed."""
        claims = claims_of(self.network)
        if claims is None or self.whole is None:
            return np.full(self.network.classes, np.inf)
        return np.asarray(claims.margin_errors(self.whole, self.query.label)[0])

    def claimable_alone(self, values: Mapping[int, Floats], far: Mapping[int, Floats]) -> Floats:
        """[sentences, classes]: the same of single sentences, from `values` of nodes known up to `far`."""
        claims = claims_of(self.network)
        if claims is None or self.whole is None:
            return self.claimable[None]
        own = claims.margin_errors(claims.of_sentences(self.whole, values, far), self.query.label)
        return np.minimum(own, self.claimable)
