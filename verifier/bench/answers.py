"""What one engine or solver says of one text, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["exact", "unbreakable", "open", "ambiguous", "size", "unavailable", "error"]


@dataclass(frozen=True)
class Answer:
    """What one engine says of one text: low <= min_swaps <= high, and what that took.

    `high` counts the swaps of a sentence that broke the model in onnxruntime; a solver's `low` is its claim. `refused`
    says which answer did not check.
    """

    id: int
    engine: str
    status: Status
    low: int
    high: int | None
    seconds: float
    cpu_seconds: float
    build_seconds: float = 0.0
    nodes: int | None = None
    """Of a solver's tree; of our engines the leaves of the proof."""
    tree_nodes: int | None = None
    """Of our engines, all nodes of the proof."""
    tree_bytes: int | None = None
    """Of our engines, the proof as a certificate holds it."""
    peak_megabytes: float | None = None
    """The most memory of the process in which our engine ran, all that is in it counted."""
    evaluations: int | None = None
    program: str = ""
    """The size of what the solver was given, and how it departs from what the others were."""
    detail: str = ""
    refused: str | None = None

    @property
    def solved(self) -> bool:
        return self.status in ("exact", "unbreakable")

    @property
    def timed(self) -> bool:
        """Whether it is about speed at all: it ran."""
        return self.status not in ("size", "unavailable", "error")
