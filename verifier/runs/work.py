"""What is done to every text of a run, as its life and its processes see it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..tasks.inputs import Text
    from .run_folder import Run
    from .store import Store


@dataclass(frozen=True)
class Settled:
    """The line of a text, and its certificate unless nothing could be proved or shown."""

    id: int
    line: dict[str, Any]
    certificate: bytes | None
    kept: str | None = None
    """Of an open text: for a later try with more time."""
    refused: bytes | None = None
    """A proof that the checker did not accept, for inspection."""
    transcript: bytes | None = None
    """Where the model was run and not read, instead of a certificate: which sentences were evaluated."""


@dataclass(frozen=True)
class Lost:
    """The process that worked on a text died."""

    text: Text
    reason: str
    seconds: float


class Settler(Protocol):
    """A process's own model, loaded for one text after the other."""

    def settle(self, text: Text) -> Settled: ...


class Work(Protocol):
    """What all texts of a run share; processes are handed it."""

    @property
    def stage(self) -> str:
        """Of the store: its lines are results.jsonl."""

    @property
    def kept_stage(self) -> str:
        """Of the store: what is kept of texts for a later try with more time."""

    @property
    def seconds(self) -> float | None:
        """For each text; None where there is no limit."""

    def open(self) -> Settler: ...

    def moved(self, folder: Path) -> Work:
        """The same with the run's files in another folder, on another machine."""

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[Work, Set[int]]:
        """The same work, knowing what the store holds; and the finished texts that it would settle again."""

    def lost(self, lost: Lost) -> dict[str, Any]:
        """The line of a text of which nothing is known."""

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        """What to keep of a text; `again`: it was settled before."""
