"""A[text, word] of a whole task, found part by part in one of three ways; each part is kept as soon as it is known."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.shallow_margin import is_shallow
from swapproof.encodings.network import Network

from ..pages.progress import progress as shown_progress
from .brute_force import Answers
from .euba.euba_flips import Euba
from .kept_parts import Kept, MatrixPart
from .part_search import PartWork, Piece, Searched, in_processes
from .subject import Subject

TOGETHER = 64
"""Texts in a part of the exact search,"""
SHALLOW_TOGETHER = 4096
"""where a part takes seconds; and with one hidden layer, where texts are bounded together."""


@dataclass(frozen=True, eq=False)
class FlipMatrix:
    """A over D+, the pairs of which nothing is known, and how it was found."""

    flipped: NDArray[np.bool_]
    unknown: NDArray[np.bool_] | None
    about: dict[str, Any]
    cpu_seconds: float
    seconds: float

    @property
    def complete(self) -> bool:
        return self.unknown is None or not self.unknown.any()


@dataclass(frozen=True)
class Crowd:
    """How many processes work, and the run whose model they open."""

    folder: Path
    jobs: int = 1


def exactly(
    network: Callable[[int], Network],
    words: NDArray[np.int64],
    subjects: Sequence[Subject],
    kept: Kept,
    *,
    shown: bool,
    seconds: float = math.inf,
    crowd: Crowd | None = None,
) -> FlipMatrix:
    """Over the reals; texts of one class and one length at a time, with so many seconds for each of them."""
    parts = parts_of_one_kind(network, subjects)
    searched = Searched(words, subjects, seconds)

    def search(numbers: Sequence[int], advance: Callable[[int], None]) -> MatrixPart:
        return searched.exactly(network, numbers, advance)

    flipped, unknown, about = found_by_parts(
        subjects,
        len(words),
        parts,
        search,
        kept,
        shown=shown,
        unit=lambda number: len(subjects[number].positions),
        crowd=crowd,
        searched=searched,
    )
    return FlipMatrix(
        flipped,
        unknown if unknown.any() else None,
        {
            "kind": "exact",
            "level": "real",
            "kept_as": kept.stage,
            "pairs_that_rounding_may_decide": about["unsure"],
            "work": {
                "sentences": about["sentences"],
                "boxes_of_words_bounded": about["bounded"],
                "sentences_evaluated": about["evaluated"],
                "sentences_decided_by_exact_arithmetic": about["exactly"],
            },
        },
        about["cpu_seconds"],
        about["seconds"],
    )


def parts_of_one_kind(network: Callable[[int], Network], subjects: Sequence[Subject]) -> list[list[int]]:
    """Texts of one class and one length, as many as are searched together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, subject in enumerate(subjects):
        groups.setdefault((len(subject.tokens), subject.label), []).append(number)
    parts = []
    for (length, _), numbers in groups.items():
        together = SHALLOW_TOGETHER if is_shallow(network(length)) else TOGETHER
        parts += [numbers[first : first + together] for first in range(0, len(numbers), together)]
    return parts


def parts_of_one_text(subjects: Sequence[Subject]) -> list[list[int]]:
    return [[number] for number in range(len(subjects))]


def by_force(
    answers: Answers,
    words: NDArray[np.int64],
    subjects: Sequence[Subject],
    seconds: float,
    batch: int,
    kept: Kept,
    *,
    shown: bool,
    crowd: Crowd | None = None,
) -> FlipMatrix:
    """As the deployed model answers, each text within so many seconds."""
    searched = Searched(words, subjects, seconds, batch)

    def search(numbers: Sequence[int], advance: Callable[[int], None]) -> MatrixPart:
        return searched.by_force(answers, numbers, batch, advance)

    flipped, unknown, about = found_by_parts(
        subjects, len(words), parts_of_one_text(subjects), search, kept, shown=shown, crowd=crowd, searched=searched
    )
    return FlipMatrix(
        flipped,
        unknown,
        {"kind": "brute force", "level": "replay", "kept_as": kept.stage},
        about["cpu_seconds"],
        about["seconds"],
    )


def by_euba(euba: Euba, subjects: Sequence[Subject], kept: Kept, *, shown: bool) -> FlipMatrix:
    """Flips only: of the other pairs nothing is known. Texts are visited in their order, as the method asks."""

    def search(numbers: Sequence[int], advance: Callable[[int], None]) -> MatrixPart:
        (number,) = numbers
        before = euba.queries
        flipped = euba.flips(subjects[number])
        advance(1)
        return MatrixPart(flipped[None], None, {"queries": euba.queries - before})

    def again(numbers: Sequence[int], part: MatrixPart) -> None:
        euba.remember(subjects[numbers[0]], part.flipped[0])

    flipped, _, about = found_by_parts(
        subjects, len(euba.words), parts_of_one_text(subjects), search, kept, shown=shown, name="EUBA", again=again
    )
    more = {"kind": "euba", "level": "replay", "kept_as": kept.stage, "queries": about.get("queries", 0)}
    return FlipMatrix(flipped, ~flipped, more, about["cpu_seconds"], about["seconds"])


def found_by_parts(
    subjects: Sequence[Subject],
    words: int,
    parts: Sequence[Sequence[int]],
    search: Callable[[Sequence[int], Callable[[int], None]], MatrixPart],
    kept: Kept,
    *,
    shown: bool,
    name: str = "kappa",
    unit: Callable[[int], int] = lambda number: 1,
    again: Callable[[Sequence[int], MatrixPart], None] = lambda numbers, part: None,
    crowd: Crowd | None = None,
    searched: Searched | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
    """A, what of it is not known, and the sums of what the parts say about themselves.

    `unit` is the work that a text is; `again` is told of parts that were found by an earlier process.
    """
    flipped = np.zeros((len(subjects), words), dtype=bool)
    unknown = np.zeros_like(flipped)
    sums: dict[str, float] = {"cpu_seconds": 0.0, "seconds": 0.0}
    known = kept.numbers()
    work = [sum(map(unit, numbers)) for numbers in parts]
    done = sum(amount for number, amount in enumerate(work) if number in known)
    left = [Piece(number, tuple(numbers)) for number, numbers in enumerate(parts) if number not in known]
    with shown_progress(name, sum(work), done, shown=shown) as advance:
        if crowd is not None and searched is not None and crowd.jobs > 1 and len(left) > 1:
            jobs = min(crowd.jobs, len(left))
            with closing(in_processes(PartWork(crowd.folder, searched), left, jobs)) as found:
                for number, part in found:
                    kept.put(number, part)
                    advance(work[number])
            known = kept.numbers()
        for number, numbers in enumerate(parts):
            if number in known:
                part = kept.get(number)
                again(numbers, part)
            else:
                started, cpu = time.perf_counter(), time.process_time()
                part = search(numbers, advance)
                spent = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}
                part = MatrixPart(part.flipped, part.unknown, {**part.about, **spent})
                kept.put(number, part)
            flipped[numbers] = part.flipped
            if part.unknown is not None:
                unknown[numbers] = part.unknown
            for key, value in part.about.items():
                sums[key] = sums.get(key, 0) + value
    return flipped, unknown, sums
