"""`defend`: every network trained, certified, attacked and measured, and one table of all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.models.defences.synonym_pairs import read_synonyms

from ..attacks.recipes import recipe_named
from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED
from ..pages.sheets.defended_sheet import defended_sheet
from ..pages.sheets.sheet import sheet_page
from ..replaying.estimate import duration
from ..runs.life import require, write_json
from ..runs.run_folder import write_atomically
from .cell_figures import figures_of, vacuous_in
from .cell_recipe import changed_since
from .cell_steps import ANSWERED, BY_KAPPA, Command, as_process, steps_of, take
from .compared_cell import Asked, Cell
from .defence_rows import DEFINITION, Known, Row, as_csv, as_json, as_latex, rows_of
from .defended_cells import cells_of, defended_named, method_keys
from .synonym_overlap import overlap, sentence

TABLE = "table.json"
AT_ONCE = 1.0
"""Seconds; a network that took less was there already."""


@dataclass(frozen=True)
class DefendOptions:
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    synonyms: Path | None = None
    """The defenders' table; else that of the recipe's [defence] or [swaps]."""
    keys: Path | None = None
    training_texts: int | None = None
    """None: as the recipe says."""
    asked: Asked = field(default_factory=Asked)


@dataclass(frozen=True)
class Defences:
    rows: list[Row]
    remarks: list[str]
    exit_code: int


def refuse_repeated(what: str, given: Sequence[object]) -> None:
    twice = next((one for one in given if given.count(one) > 1), None)
    require(twice is None, f"{what} stands there twice: {twice}")


def defend(
    sources: Sequence[Path],
    out: Path,
    options: DefendOptions,
    *,
    command: Command = as_process,
    said: Callable[[str], None] = lambda line: None,
) -> Defences:
    """The same call goes on where a killed one was; a network that cannot be trained is a row that says why."""
    require(bool(sources), "give recipes or tasks")
    require(len(set(sources)) == len(sources), "a recipe or task stands there twice")
    require(not options.methods or bool(options.seeds), "give --seeds, such as 0,1,2")
    refuse_repeated("--methods: a defence", options.methods)
    refuse_repeated("--seeds: a seed", options.seeds)
    refuse_repeated("--attacks: an attack", options.asked.attacks)
    refuse_repeated("--pr: a radius", options.asked.radii)
    require(all(seed >= 0 for seed in options.seeds), "--seeds: at least 0")
    seconds = options.asked.seconds
    require(seconds > 0 and math.isfinite(seconds), f"seconds = {seconds}: a time above 0, and finite")
    if options.synonyms is not None:
        read_synonyms(options.synonyms)
    for name in options.asked.attacks:
        recipe_named(name)
    require(
        options.asked.kappa or BY_KAPPA not in options.asked.attacks,
        f"--attacks {BY_KAPPA} takes the words of the greatest kappa: give --rho too",
    )
    require(options.asked.certified or bool(options.asked.attacks), "--no-certify leaves the attacks: give --attacks")
    require(
        options.asked.kappa or not options.asked.kappa_by,
        f"{' '.join(options.asked.kappa_by)} is how --rho is measured: give --rho too",
    )
    methods = defended_named(options.methods)
    cells = cells_of(
        sources,
        methods,
        options.seeds,
        out.absolute(),
        synonyms=options.synonyms,
        keys=method_keys(options.keys, methods),
        training_texts=options.training_texts,
    )
    refuse_strange(out)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / TABLE, {"unfinished": True})
    found: list[Known] = []
    code = HOLDS
    spent: list[float] = []
    for cell in cells:
        began = time.monotonic()
        wanted = sorted({one.examples for one in cells if one.base == cell.folder and one.examples is not None})
        failed, worst = all_steps(cell, options.asked, wanted, command, said)
        code = worst if code != UNCHECKED and worst != HOLDS else code
        figures = {} if failed else figures_of(cell, options.asked)
        found.append(Known(cell, figures, failed, () if failed else vacuous_in(cell, options.asked)))
        spent.append(time.monotonic() - began)
        said(progress(spent, len(cells)))
    rows, remarks = rows_of(found), remarks_of(cells)
    if options.asked.attacks:
        limits = " ".join(options.asked.limits)
        remarks.append(f"attacks: {limits}" if limits else "attacks: no limits but the swaps of each task")
    remarks += [f"{row.source}, {row.defended}: {said}" for row in rows for said in (*row.failed, *row.vacuous)]
    publish(out, rows, remarks, facts_of(cells, options))
    return Defences(rows, remarks, code)


def progress(spent: Sequence[float], number: int) -> str:
    """How many networks are done, and how long the others take if they take as long on average as those that were not
    there already."""
    taken = [seconds for seconds in spent if seconds >= AT_ONCE]
    left = sum(taken) / len(taken) * (number - len(spent)) if taken else 0.0
    return f"defend: {len(spent)} of {number} networks are done" + (f"; about {duration(left)} left" if left else "")


def all_steps(
    cell: Cell, asked: Asked, wanted: Sequence[str], command: Command, said: Callable[[str], None]
) -> tuple[str | None, int]:
    """Why a cell failed, if it did, and the exit code that follows."""
    worst = HOLDS
    if changed := changed_since(cell):
        return changed, INCOMPLETE
    for step in steps_of(cell, asked, wanted):
        ended = take(step, command, said)
        if ended.code not in ANSWERED:
            return ended.said or f"`swapproof {step.arguments[0]}` ended with exit code {ended.code}", INCOMPLETE
        if ended.code == UNCHECKED:
            worst = UNCHECKED
    return None, worst


def refuse_strange(out: Path) -> None:
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / TABLE).is_file())):
        raise BadInput(f"{out}: holds other things than a comparison of defences; give --out a new folder")


def remarks_of(cells: Sequence[Cell]) -> list[str]:
    """Whether defenders saw the synonyms that they are attacked with, once for each pair of tables."""
    found: dict[str, list[str]] = {}
    for cell in cells:
        if cell.recipe is None or "synonyms" not in cell.recipe["defence"]:
            continue
        swaps = cell.recipe.get("swaps")
        if not swaps:
            continue
        tables = Path(cell.recipe["defence"]["synonyms"]), Path(swaps["file"])
        if all(table.is_file() for table in tables):
            said = sentence(overlap(*tables))
            name = f"{cell.source}, {cell.defended}"
            if name not in found.setdefault(said, []):
                found[said].append(name)
    return [f"{'; '.join(names)}: {said}" for said, names in found.items()]


def facts_of(cells: Sequence[Cell], options: DefendOptions) -> list[tuple[str, str]]:
    """What the table is about: recipes or tasks, how many texts, how long each."""
    asked = options.asked
    sources = dict.fromkeys((cell.source, str(cell.origin or cell.task)) for cell in cells)
    return [
        *sources,
        ("texts", "all" if asked.limit is None else f"the first {asked.limit:,}"),
        ("seconds a text", f"{asked.seconds:g}"),
        ("attacks", " ".join([", ".join(asked.attacks) or "none", *asked.limits])),
    ]


def publish(out: Path, rows: Sequence[Row], remarks: Sequence[str], facts: Sequence[tuple[str, str]]) -> None:
    table: dict[str, Any] = {"rows": as_json(rows), "remarks": list(remarks), "definition": DEFINITION}
    for name, text in {"table.csv": as_csv(rows), "table.tex": as_latex(rows)}.items():
        write_atomically(out / name, text.encode())
    write_atomically(out / "table.html", sheet_page(defended_sheet(rows, remarks, facts)).written())
    write_json(out / TABLE, table)
