"""Table 3 of the PDP paper: of every radius asked for alone, what is found and what is certified, and in what time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from .deep_answers import DeepAnswer

MEANING = (
    "Found: texts with a sentence of at most r swaps that breaks them; certified: texts of which it is known that none "
    "does; of the texts answered rightly, each radius asked for alone. T: mean CPU seconds of these texts, without the "
    "check of proofs. enumerate is the simple prover."
)
HEAD = ("way", "r", "found", "T", "certified", "T")


@dataclass(frozen=True)
class Asked:
    """One way at one radius: shares of the texts, and mean CPU seconds of those counted, if there are any."""

    engine: str
    radius: int
    found: float
    found_seconds: float | None
    certified: float
    certified_seconds: float | None
    claimed: bool

    def cells(self) -> tuple[str, ...]:
        claimed = " (claimed)" if self.claimed else ""
        return (
            self.engine,
            str(self.radius),
            f"{100 * self.found:.1f} %",
            shown(self.found_seconds),
            f"{100 * self.certified:.1f} %{claimed}",
            shown(self.certified_seconds),
        )


def asked_of(answers: Iterable[tuple[int, DeepAnswer]]) -> tuple[Asked, ...]:
    """`answers`: with the radius that was asked for."""
    cells: dict[tuple[str, int], list[DeepAnswer]] = {}
    for radius, answer in answers:
        cells.setdefault((answer.engine, radius), []).append(answer)
    order = {engine: place for place, engine in enumerate(dict.fromkeys(engine for engine, _ in cells))}
    found = []
    for (engine, radius), own in sorted(cells.items(), key=lambda cell: (order[cell[0][0]], cell[0][1])):
        broken = [one.cpu_seconds for one in own if one.broken is not None and one.broken <= radius]
        proved = [one.cpu_seconds for one in own if one.proves(radius)]
        found.append(
            Asked(
                engine,
                radius,
                len(broken) / len(own),
                fmean(broken) if broken else None,
                len(proved) / len(own),
                fmean(proved) if proved else None,
                any(one.claimed for one in own),
            )
        )
    return tuple(found)


def shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3f}"
