"""How long each checker takes for one run, beside the time it took to make."""

from __future__ import annotations

from dataclasses import dataclass

from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED


@dataclass(frozen=True)
class Timing:
    """One checker on the run, in a process of its own with one thread: seconds from its start to its end.

    `accepted` is None when it was stopped for want of time; then `seconds` is what it had.
    """

    checker: str
    seconds: float
    cpu_seconds: float
    accepted: bool | None
    last: str
    """Its last line."""


@dataclass(frozen=True)
class Timings:
    """Of one run; `made_seconds` are those of all its texts together, as results.jsonl has them."""

    run: str
    texts: int
    certificates: int
    megabytes: float
    made_seconds: float
    checkers: tuple[Timing, ...]

    @property
    def exit_code(self) -> int:
        if any(timing.accepted is False for timing in self.checkers):
            return UNCHECKED
        return INCOMPLETE if any(timing.accepted is None for timing in self.checkers) else HOLDS
