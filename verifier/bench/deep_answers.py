"""What one way of deciding says of one text, up to so many swaps, and what that took."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Checked:
    """A proof as a certificate: its bytes, and CPU seconds of those who check it."""

    size: int
    level: str
    reading_seconds: float
    """The network read by both sides and compared, once for texts that share it."""
    screening_seconds: float
    screened: bool
    exact_seconds: float | None
    """Of check.py; None: it was not asked, or not done in the time."""
    refusal: str | None = None

    @property
    def accepted(self) -> bool:
        return self.refusal is None and (self.screened or self.exact_seconds is not None)


@dataclass(frozen=True)
class DeepAnswer:
    """No sentence with at most `harmless` swaps breaks the text, and one with `broken` swaps does, if there is one."""

    id: int
    engine: str
    words: int
    """That can be swapped."""
    harmless: int
    broken: int | None
    sentences: int
    """Evaluated, in whatever way."""
    seconds: float
    cpu_seconds: float
    claimed: bool = False
    """Whether `harmless` is what a solver says, which nobody can check."""
    reason: str = ""
    """Why it came no further."""
    certificate: Checked | None = None

    def proves(self, swaps: int) -> bool:
        return min(swaps, self.words) <= self.harmless

    def decides(self, swaps: int) -> bool:
        return self.proves(swaps) or (self.broken is not None and self.broken <= swaps)
