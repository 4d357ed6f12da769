"""Parts of A[text, word], each searched by itself, in this process or in others that open the run's own model."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import network_of

from ..ladder.replay import Replay
from ..runs.run_folder import Run
from ..runs.work import Lost, Settled
from ..runs.workers import Bounds, settle_in_processes
from ..tasks.opened_model import opened_in
from .brute_force import Answers, flips_by_force
from .exact_flips.flips import FlipSearch
from .kept_parts import MatrixPart, packed, unpacked
from .subject import Subject

COUNTS = ("sentences", "bounded", "evaluated", "exactly")
NETWORKS = 4
"""Lengths of texts whose network is kept."""
Advance = Callable[[int], None]


class TimeUp(Exception):
    """The texts of a part had their time."""


@dataclass(frozen=True)
class Piece:
    """A part of A by its number, and the numbers of its texts."""

    id: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Searched:
    """What is asked of every part. `batch`: by brute force, sentences at a time; None over the reals."""

    words: NDArray[np.int64]
    subjects: Sequence[Subject]
    seconds: float
    batch: int | None = None

    def exactly(self, network: Callable[[int], Network], numbers: Sequence[int], advance: Advance) -> MatrixPart:
        """Of texts of one class and one length. When their time is up, what does not flip yet is not known."""
        group = [self.subjects[number] for number in numbers]
        until = time.monotonic() + self.seconds * len(group)

        def advanced(number: int) -> None:
            advance(number)
            if time.monotonic() > until:
                raise TimeUp

        search = FlipSearch(network(len(group[0].tokens)), self.words, group, group[0].label, advanced)
        late = False
        try:
            search.run()
        except TimeUp:
            late = True
        found = search.result
        counts = {name: getattr(found, name) for name in COUNTS}
        unknown = ~found.flipped if late else None
        return MatrixPart(found.flipped, unknown, {**counts, "unsure": len(found.unsure)})

    def by_force(self, answers: Answers, numbers: Sequence[int], batch: int, advance: Advance) -> MatrixPart:
        """Of one text."""
        (number,) = numbers
        until = time.monotonic() + self.seconds
        flipped, unknown = flips_by_force(answers, self.words, self.subjects[number], until, batch)
        advance(1)
        return MatrixPart(flipped[None], unknown[None])


@dataclass(frozen=True)
class PartWork:
    """The same as the work of a process."""

    folder: Path
    searched: Searched
    seconds: float | None = None
    """Of one part there is no limit from outside."""

    def open(self) -> PartStation:
        return PartStation(self)


@dataclass(eq=False)
class PartStation:
    work: PartWork

    @cached_property
    def network(self) -> Callable[[int], Network]:
        model = opened_in(Run(self.work.folder))
        return lru_cache(maxsize=NETWORKS)(lambda length: network_of(model, length))

    @cached_property
    def answers(self) -> Answers:
        return Replay.open(opened_in(Run(self.work.folder))).answers

    def settle(self, piece: Piece) -> Settled:
        started, cpu = time.perf_counter(), time.process_time()
        searched = self.work.searched
        if searched.batch is None:
            part = searched.exactly(self.network, piece.numbers, lambda number: None)
        else:
            part = searched.by_force(self.answers, piece.numbers, searched.batch, lambda number: None)
        spent = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}
        line = {
            "shape": part.flipped.shape,
            "flipped": packed(part.flipped),
            "unknown": None if part.unknown is None else packed(part.unknown),
            "about": {**part.about, **spent},
        }
        return Settled(piece.id, line, None)


def in_processes(work: PartWork, pieces: Sequence[Piece], jobs: int) -> Generator[tuple[int, MatrixPart], None, None]:
    """As they are found. A part whose process dies again and again ends the command: the others are kept."""
    about: Any = work
    with closing(settle_in_processes(about, pieces, jobs, Bounds.of(about, jobs))) as lots:  # type: ignore[arg-type]
        for one in (one for lot in lots for one in lot):
            if isinstance(one, Lost):
                texts = ", ".join(str(number) for number in one.text.numbers[:3])  # type: ignore[attr-defined]
                raise BadInput(f"kappa, texts {texts}: {one.reason}; what is finished stays")
            line = one.line
            unknown = None if line["unknown"] is None else unpacked(line["unknown"], line["shape"])
            yield one.id, MatrixPart(unpacked(line["flipped"], line["shape"]), unknown, line["about"])
