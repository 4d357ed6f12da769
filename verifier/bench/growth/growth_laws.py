"""How cost grows: points that were measured, and the power law that fits them best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..answers import Answer
from ..comparison import Comparison

ENOUGH = 3
"""Points that a law is fitted to, at least."""


@dataclass(frozen=True)
class Law:
    """cost = factor * size ** power, by least squares of the logarithms."""

    factor: float
    power: float
    fit: float
    """R^2 of the logarithms."""

    def __str__(self) -> str:
        return f"{self.factor:.3g} n^{self.power:.2f} (R² {self.fit:.2f})"


def fitted(points: Sequence[tuple[float, float]]) -> Law | None:
    """None where there are too few points above 0."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < ENOUGH:
        return None
    mean_x, mean_y = (sum(point[end] for point in logs) / len(logs) for end in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    power = sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
    left = sum((y - mean_y - power * (x - mean_x)) ** 2 for x, y in logs)
    total = sum((y - mean_y) ** 2 for _, y in logs)
    return Law(math.exp(mean_y - power * mean_x), power, 1.0 - left / total if total > 0 else 1.0)


@dataclass(frozen=True)
class Point:
    """One engine at one size; medians are over the texts that it settled."""

    of: str
    """What grows."""
    value: int
    engine: str
    asked: int
    solved: int
    seconds: float | None
    cpu_seconds: float | None
    regions: float | None
    """Of our proofs, or of a solver's tree."""
    tree_bytes: float | None
    minimum: float | None
    why: str = ""
    """What became of texts that it did not settle."""


def point_of(of: str, value: int, engine: str, answers: Sequence[Answer]) -> Point:
    solved = [one for one in answers if one.solved]

    def middle(numbers: Sequence[float | None]) -> float | None:
        known = [number for number in numbers if number is not None]
        return median(known) if known else None

    return Point(
        of=of,
        value=value,
        engine=engine,
        asked=len(answers),
        solved=len(solved),
        seconds=middle([one.seconds for one in solved]),
        cpu_seconds=middle([one.cpu_seconds for one in solved]),
        regions=middle([one.nodes for one in solved]),
        tree_bytes=middle([one.tree_bytes for one in solved]),
        minimum=middle([one.high for one in solved]),
        why="; ".join(sorted({said_of(one) for one in answers if not one.solved})),
    )


def said_of(answer: Answer) -> str:
    return {"size": "beyond the licence", "open": "out of time"}.get(answer.status, answer.status)


QUANTITIES = ("cpu_seconds", "regions", "tree_bytes")


@dataclass(frozen=True)
class Growth:
    """Everything measured in one run."""

    points: tuple[Point, ...]
    comparison: Comparison
    about: dict[str, Any]

    @property
    def grown(self) -> list[str]:
        return list(dict.fromkeys(point.of for point in self.points))

    def line(self, of: str, engine: str) -> list[Point]:
        return [point for point in self.points if (point.of, point.engine) == (of, engine)]

    def engines(self, of: str) -> list[str]:
        return list(dict.fromkeys(point.engine for point in self.points if point.of == of))

    def law(self, of: str, engine: str, quantity: str) -> Law | None:
        """Of the sizes at which the engine settled most of the texts."""
        known = [
            (point.value, getattr(point, quantity)) for point in self.line(of, engine) if 2 * point.solved > point.asked
        ]
        return fitted([(float(value), cost) for value, cost in known if cost is not None])

    def laws(self) -> Iterator[tuple[str, str, str, Law]]:
        for of in self.grown:
            for engine in self.engines(of):
                for quantity in QUANTITIES:
                    law = self.law(of, engine, quantity)
                    if law is not None:
                        yield of, engine, quantity, law

    def rows(self) -> Iterator[tuple[str, ...]]:
        for point in self.points:
            yield (
                point.of,
                f"{point.value:,}",
                point.engine,
                f"{point.solved} of {point.asked}",
                shown(point.seconds),
                shown(point.cpu_seconds),
                "" if point.regions is None else f"{point.regions:,.0f}",
                "" if point.tree_bytes is None else f"{point.tree_bytes:,.0f}",
                "" if point.minimum is None else f"{point.minimum:g}",
                point.why,
            )


COLUMNS = ("grows", "to", "engine", "settled", "seconds", "CPU s", "regions", "bytes", "minimum", "left open")
LAWS = ("grows", "engine", "of", "law")
DEFINITION = (
    "Random networks of the MMWS shape and random texts, the same for every engine, one thread each, one after the "
    "other. Medians over the texts that were settled. Regions: leaves of our proof, nodes of a solver's tree. Bytes: "
    "of the proof tree in the certificate. Minimum: swaps needed. n texts: `swapproof certify` as a command on so many "
    "texts of 20 words, from start to exit, bytes of all certificates. A law is fitted by least squares to the "
    "logarithms, over sizes at which most texts were settled."
)


def shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3g}"
