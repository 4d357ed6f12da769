"""What an audit finds: of each text whether its evidence is accepted, and where the run's own accounts differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """What was found of a text: its plain sentence, or why it is refused."""

    id: int
    has_certificate: bool
    sentence: str
    refusal: str | None
    screened: bool = False
    """Accepted in float64 with error bounds; else whatever was found was found by exact arithmetic."""
    sampled: bool = False
    """Its line counts a sample, which was drawn again."""


@dataclass(frozen=True)
class Fault:
    """Where a run says one thing in one place and another in another."""

    what: str


@dataclass(frozen=True)
class Audit:
    """The findings of a run, found while they are read, and what else is to be said of it when none is a refusal."""

    kind: Literal["certify", "measure", "replay", "attack", "radius", "vote", "kappa"]
    texts: int
    findings: Iterator[Finding | Fault]
    remarks: tuple[str, ...] = ()
    unclaimed: str | None = None
    """What to say when there is no certificate; None where a run without any is accepted."""
    closing: Callable[[], str] | None = None
    """What to say at the end of texts on which the model was run."""
    unsettled: int = 0
    """Texts of the run without a line: it was interrupted, and what is accepted is not the whole of it."""


def said_of_unsettled(missing: int, texts: int) -> tuple[str, ...]:
    """The remark about a run that was interrupted."""
    if not missing:
        return ()
    return (
        f"incomplete: {missing} of the run's {texts} texts have no line in results.jsonl: they are not settled; give "
        "the command of the run again",
    )


@dataclass
class AuditCounts:
    """Findings counted."""

    certificates: int = 0
    screened: int = 0
    samples: int = 0
    refused: int = 0
    faults: int = 0

    @property
    def accepted(self) -> bool:
        return not self.refused and not self.faults

    def add(self, found: Finding | Fault) -> None:
        match found:
            case Finding():
                self.certificates += found.has_certificate
                self.screened += found.screened
                self.samples += found.sampled
                self.refused += found.refusal is not None
            case Fault():
                self.faults += 1
