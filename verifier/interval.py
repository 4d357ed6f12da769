"""min_swaps of one text as an interval whose two ends carry evidence; narrowing never widens it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from swapproof.proofs.writing.certificate import Node as Tree

Level = Literal["real", "float32", "kernel"]


@dataclass(frozen=True)
class Witness:
    """A sentence that onnxruntime gave another class, alone and inside a batch."""

    swaps: tuple[tuple[int, int], ...]
    """(position in the model's input, token) where it differs from the original."""
    real: bool | None
    """Whether it also breaks the network over the reals; None when that was not decided."""
    engine: str


@dataclass(frozen=True)
class Proof:
    """A checked proof that no sentence with fewer swaps changes the class, at this level of truth."""

    tree: Tree
    level: Level
    engine: str


@dataclass(frozen=True)
class Cover:
    """A proof about sentences with at most `swaps` swaps that leaves some of them open, for a search to go on with.

    Found and not checked: no part of the interval. `tree` may have open leaves below splits of rivals, and then
    `together` is another that has not: a certificate can only count such a one.
    """

    swaps: int
    tree: Tree
    level: Level
    together: Tree | None = None


@dataclass(frozen=True)
class Interval:
    """low <= min_swaps <= high; `high` None: no witness is known. low == ceiling: nothing can break the text.

    `low` holds over the reals, `low_float32` (never greater) for every float32 evaluation too.
    """

    ceiling: int
    """One more than the number of swappable positions."""
    low: int = 0
    high: int | None = None
    low_float32: int = 0
    low_evidence: Proof | None = None
    high_evidence: Witness | None = None
    cover: Cover | None = None
    """How far a search came beyond `low`."""

    @property
    def closed(self) -> bool:
        return self.low == self.high or self.low == self.ceiling

    @property
    def contradictory(self) -> bool:
        """A replayed witness below an end proved over the reals: rounding decides this text."""
        return self.high is not None and self.high < self.low

    def raised(self, low: int, proof: Proof) -> Interval:
        """No sentence with fewer than `low` swaps breaks the text."""
        low = min(low, self.ceiling)
        sure = max(self.low_float32, low) if proof.level != "real" else self.low_float32
        if low < self.low or (low == self.low and sure == self.low_float32):
            return self
        return replace(self, low=low, low_float32=sure, low_evidence=proof).covered(self.cover)

    def lowered(self, witness: Witness) -> Interval:
        """This sentence breaks the text."""
        swaps = len(witness.swaps)
        if self.high is not None and swaps >= self.high:
            return self
        return replace(self, high=swaps, high_evidence=witness).covered(self.cover)

    def covered(self, cover: Cover | None) -> Interval:
        """A search came so far, if that is about a number of swaps in question."""
        top = self.ceiling if self.high is None else self.high
        useful = cover is not None and self.low <= cover.swaps < top
        return replace(self, cover=cover if useful else None)
