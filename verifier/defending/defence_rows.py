"""The table of defences: one row for each network and defence, means over its seeds with their spread."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..pages.formats.file_formats import LATEX
from .compared_cell import Cell, Figures

DIGITS = {"#Query": 1, "train": 1, "MMWS": 2, "open": 0, "unbreakable": 0, "claims": 0}
"""Of a column, by how its name begins or ends; shares have four."""
SAYS_LITTLE = " (says little)"
DEFINITIONS = {
    "Under attack": "Clean: texts answered rightly, of all. Aua: those still answered rightly under the attack, of "
    "all; Suc: broken, of those attacked; #Query: sentences asked about, before any cache, mean over attacked texts.",
    "Certified": "certified@r: proved or evaluated in full to withstand every sentence with r swaps, of all; "
    "unbroken@r: not known to be broken by r. MMWS: mean of the least number of swaps over texts that have one, low "
    "and high end. open: texts whose ends do not meet; unbreakable: that no number of swaps breaks.",
    "Measured": "PR@r: mean share of sentences with at most r swaps that keep their label. rho* of the texts, rho of "
    "training texts: 1 - mean kappa. vote@r: the vote over all random texts withstands r swaps, of all texts, each at "
    "its confidence. train s: seconds of the training.",
}
"""What columns mean, by the part of the table that they stand in."""
DEFINITION = f"{' '.join(DEFINITIONS.values())} A cell is the mean over seeds, in brackets the least and the greatest."


@dataclass(frozen=True)
class Row:
    source: str
    defended: str
    seeds: tuple[int, ...]
    figures: Mapping[str, tuple[float, float, float] | None]
    """Mean, least and greatest."""
    failed: tuple[str, ...]
    vacuous: tuple[str, ...] = ()
    """Why its figures say little, as its runs of `certify` say it."""

    @property
    def name(self) -> tuple[str, str]:
        return self.source, self.defended


@dataclass(frozen=True)
class Known:
    """Of one network: its figures, or why there are none."""

    cell: Cell
    figures: Figures
    failed: str | None
    vacuous: tuple[str, ...] = ()


def rows_of(cells: Sequence[Known]) -> list[Row]:
    """In the order of the cells."""
    groups: dict[tuple[str, str], list[Known]] = {}
    for one in cells:
        groups.setdefault((one.cell.source, one.cell.defended), []).append(one)
    rows = []
    for (source, defended), group in groups.items():
        good = [one.figures for one in group if one.failed is None]
        columns = dict.fromkeys(name for figures in good for name in figures)
        rows.append(
            Row(
                source,
                defended,
                tuple(one.cell.seed for one in group if one.cell.seed is not None and one.failed is None),
                {name: spread([figures.get(name) for figures in good]) for name in columns},
                tuple(f"seed {one.cell.seed}: {one.failed}" for one in group if one.failed is not None),
                tuple(f"seed {one.cell.seed}: {said}" for one in group for said in one.vacuous),
            )
        )
    return rows


def spread(numbers: Iterable[float | None]) -> tuple[float, float, float] | None:
    """None where one of them is not known."""
    known = list(numbers)
    sure = [number for number in known if number is not None]
    return None if not sure or len(sure) < len(known) else (sum(sure) / len(sure), min(sure), max(sure))


def columns_of(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.figures))


def part_of(column: str) -> str:
    """Which part of DEFINITIONS a column belongs to."""
    if column == "Clean" or column.endswith((" Aua", " Suc", " #Query")):
        return "Under attack"
    return "Certified" if column.startswith(("certified@", "unbroken@", "MMWS", "open", "unbreakable")) else "Measured"


def shown(name: str, found: tuple[float, float, float] | None) -> str:
    if found is None:
        return "-"
    digits = next((value for part, value in DIGITS.items() if name.startswith(part) or name.endswith(part)), 4)
    mean, least, greatest = (f"{number:.{digits}f}" for number in found)
    return mean if least == greatest else f"{mean} [{least}, {greatest}]"


def as_table(rows: Sequence[Row]) -> list[list[str]]:
    """Header first."""
    columns = columns_of(rows)
    body = [
        [
            row.source,
            row.defended + (SAYS_LITTLE if row.vacuous else ""),
            " ".join(map(str, row.seeds)),
            *(shown(name, row.figures.get(name)) for name in columns),
        ]
        for row in rows
    ]
    return [["network", "defence", "seeds", *columns], *body]


def as_csv(rows: Sequence[Row]) -> str:
    """Mean, least and greatest in columns of their own."""
    columns = columns_of(rows)
    out = io.StringIO()
    writer = csv.writer(out)
    parts = ("mean", "least", "greatest")
    writer.writerow(
        ["network", "defence", "seeds", *(f"{name} {part}" for name in columns for part in parts), "failed"]
    )
    for row in rows:
        numbers = [number for name in columns for number in (row.figures.get(name) or ("", "", ""))]
        writer.writerow([row.source, row.defended, " ".join(map(str, row.seeds)), *numbers, "; ".join(row.failed)])
    return out.getvalue()


def as_latex(rows: Sequence[Row]) -> str:
    header, *body = as_table(rows)
    lines = ["% needs \\usepackage{booktabs}", f"\\begin{{tabular}}{{lll{'r' * (len(header) - 3)}}}", "\\toprule"]
    lines += [" & ".join(cell.translate(LATEX) for cell in header) + " \\\\", "\\midrule"]
    lines += [" & ".join(cell.translate(LATEX) for cell in row) + " \\\\" for row in body]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", f"% {DEFINITION}", ""])


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "network": row.source,
            "defence": row.defended,
            "seeds": list(row.seeds),
            "figures": {
                name: None if found is None else dict(zip(("mean", "least", "greatest"), found, strict=True))
                for name, found in row.figures.items()
            },
            "failed": list(row.failed),
            "vacuous": list(row.vacuous),
        }
        for row in rows
    ]
