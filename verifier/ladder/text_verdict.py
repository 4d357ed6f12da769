"""What is known of one text after its climb, and what of that another climb can begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..engines.protocol import Bound, Claimed
from ..interval import Cover, Interval, Level, Proof

Status = Literal["exact", "unbreakable", "open", "already_wrong", "ambiguous"]


@dataclass(frozen=True)
class Step:
    """What an engine made of the interval, and how long it was at work."""

    engine: str
    low: int
    high: int | None
    seconds: float


@dataclass(frozen=True)
class Divided:
    """A sentence that changes the class in some evaluations, and not in all that a witness needs: rounding decides."""

    swaps: tuple[tuple[int, int], ...]
    """As those of a witness."""
    where: Mapping[str, bool]
    """Kinds of evaluation, and whether it changes the class there."""

    @property
    def said(self) -> str:
        yes = [place for place, changed in self.where.items() if changed]
        no = [place for place, changed in self.where.items() if not changed]
        count = "1 swap" if len(self.swaps) == 1 else f"{len(self.swaps) or 'no'} swaps"
        others = f"not {' or '.join(no)}" if no else "not to the same one"
        return f"a sentence with {count} changes the class {' and '.join(yes)}, {others}"


@dataclass(frozen=True)
class Verdict:
    """What is known of one text, and what it cost."""

    interval: Interval
    status: Status
    reason: str | None
    """Why the text is open or ambiguous."""
    predicted: int
    engine: str
    """The engine that narrowed last; "replay" when none was needed."""
    seconds: float
    evaluations: int
    requests: int
    contradiction: str | None = None
    """An answer that did not check: the run must not be trusted (exit code 4)."""
    claims: tuple[Claimed, ...] = ()
    """What solvers said and nobody proved; no part of the interval."""
    dispute: Mapping[str, Any] | None = None
    """Both sides of a contradiction with a solver, for inspection."""
    refused: tuple[Bound, ...] = ()
    """Proofs of engines that the checker refused, for inspection."""
    unproved: Level = "float32"
    """What is said of a low end of 0, which no proof is needed for: of a smooth network the weakest level."""
    history: tuple[Step, ...] = ()
    """The engines that were asked, in order."""
    divided: Divided | None = None
    """The one with the fewest swaps that was met below the high end."""

    @property
    def level(self) -> Level:
        """The strongest level of truth at which the low end is proved."""
        if self.interval.low > self.interval.low_float32:
            return "real"
        proof = self.interval.low_evidence
        return self.unproved if proof is None else proof.level


@dataclass(frozen=True)
class Known:
    """What was found of a text before: a proof that was accepted then, a witness, and how far a search came."""

    low: int
    proof: Proof | None
    witness: tuple[int, ...] | None
    cover: Cover | None
    engine: str
    history: tuple[Step, ...] = ()
    """The engines that were asked then."""
