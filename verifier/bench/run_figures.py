"""What the sentences of a model that is run take: as they are asked, in a bare loop, and as was said beforehand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Spent:
    """Seconds, and those of the processor."""

    wall: float = 0.0
    cpu: float = 0.0

    @contextmanager
    def more(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu


@dataclass(frozen=True)
class RunFigures:
    """`bare`: by the size of its batches, of an ONNX model; `estimated`: the seconds that `certify` says beforehand."""

    model: str
    texts: int
    radius: int
    sentences: int
    estimated: float
    run: Spent
    bare: dict[int, Spent]
    surroundings: dict[str, Any] = field(default_factory=dict)

    @property
    def best(self) -> int | None:
        return min(self.bare, key=lambda batch: self.bare[batch].cpu) if self.bare else None

    @property
    def overhead(self) -> float | None:
        """Of processor time, by that of the bare loop with the best batches."""
        return None if self.best is None else self.run.cpu / max(1e-9, self.bare[self.best].cpu) - 1
