"""All that the page of a run of `certify` shows besides its lines: a function of the files of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...runs.run_folder import Run
from ..sheets.sheet import Part
from .beside_parts import Curve, curves_of, details_beside, parts_beside
from .left_out_words import left_out_words
from .taken_figures import taken_beside

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Beside:
    """`curves`: accuracy under attacks; `about`: what the rows of the page need to know; `runs`: the names of the runs
    that figures were taken of, each with the SHA-256 of its results."""

    curves: tuple[Curve, ...] = ()
    parts: tuple[Part, ...] = ()
    runs: tuple[tuple[str, str], ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


def beside(run: Run, summary: Mapping[str, Any], lines: Iterable[Line]) -> Beside:
    """`lines` are gone through twice at most. Raises BadInput for files that are not what a run writes there."""
    taken = taken_beside(run)
    curves = curves_of(summary, lines, taken)
    left_out = left_out_words(run)
    about: dict[str, Any] = {} if left_out is None else {"left_out": left_out}
    if not taken:
        return Beside(curves, about=about)
    names = {line["id"]: class_name(summary["labels"], line["label"]) for line in lines}
    details = {str(id): [[head, said, list(marks)] for head, said, marks in details_beside(taken, id)] for id in names}
    about["beside"] = {id: own for id, own in details.items() if own}
    runs = tuple((str(one["name"]), str(one["results"])) for one in taken)
    return Beside(curves, parts_beside(taken, names), runs, about)


def class_name(labels: list[str], label: int) -> str:
    return labels[label] if 0 <= label < len(labels) else f"class {label}"
