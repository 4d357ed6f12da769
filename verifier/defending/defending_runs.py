"""`defend`: every network trained, certified, attacked and measured, and one table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.models.defences.synonym_pairs import read_synonyms

from ..attacks.recipes import recipe_named
from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED
from ..runs.life import require, write_json
from ..runs.run_folder import write_atomically
from .cell_figures import figures_of, vacuous_in
from .cell_steps import ANSWERED, Command, as_process, steps_of, take
from .compared_cell import Asked, Cell
from .defence_rows import DEFINITION, Known, Row, as_csv, as_json, as_latex, as_page, rows_of
from .defended_cells import cells_of, defended_named, method_keys
from .synonym_overlap import overlap, sentence

TABLE = "table.json"


@dataclass(frozen=True)
class DefendOptions:
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    synonyms: Path | None = None
    """The defenders' table; else that of the recipe's [defence] or [swaps]."""
    keys: Path | None = None
    training_texts: int = 1000
    asked: Asked = field(default_factory=Asked)


@dataclass(frozen=True)
class Defences:
    rows: list[Row]
    remarks: list[str]
    exit_code: int


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
    require(not options.methods or bool(options.seeds), "give --seeds, such as 0,1,2")
    require(len(set(options.seeds)) == len(options.seeds), "--seeds: a seed stands there twice")
    require(all(seed >= 0 for seed in options.seeds), "--seeds: at least 0")
    if options.synonyms is not None:
        read_synonyms(options.synonyms)
    for name in options.asked.attacks:
        recipe_named(name)
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
    for cell in cells:
        wanted = sorted({one.examples for one in cells if one.base == cell.folder and one.examples is not None})
        failed, worst = all_steps(cell, options.asked, wanted, command, said)
        code = worst if code != UNCHECKED and worst != HOLDS else code
        figures = {} if failed else figures_of(cell, options.asked)
        found.append(Known(cell, figures, failed, () if failed else vacuous_in(cell)))
    rows, remarks = rows_of(found), remarks_of(cells)
    remarks += [f"{row.source}, {row.defended}: {said}" for row in rows for said in (*row.failed, *row.vacuous)]
    publish(out, rows, remarks)
    return Defences(rows, remarks, code)


def all_steps(
    cell: Cell, asked: Asked, wanted: Sequence[str], command: Command, said: Callable[[str], None]
) -> tuple[str | None, int]:
    """Why a cell failed, if it did, and the exit code that follows."""
    worst = HOLDS
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


def publish(out: Path, rows: Sequence[Row], remarks: Sequence[str]) -> None:
    table: dict[str, Any] = {"rows": as_json(rows), "remarks": list(remarks), "definition": DEFINITION}
    files = {"table.csv": as_csv(rows), "table.tex": as_latex(rows), "table.html": as_page(rows, remarks)}
    for name, text in files.items():
        write_atomically(out / name, text.encode())
    write_json(out / TABLE, table)
