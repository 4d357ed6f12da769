"""paper.html and paper.tex: the paper's tables in its own layout, published numbers beside ours, each with its run."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup

from ..exit_codes import HOLDS
from ..pages.formats.file_formats import LATEX
from ..pages.sheets.sheet import BANNERS, Card, Grid, Part, Sheet
from .paper_plan import Cell, Made, Paper, Setting, Table

LITTLE, LEFT_OUT = " says little: ", "is left out"
NOT_HERE = ("Nothing was measured for it here.",)


def sheet_of(paper: Paper, setting: Setting, made: Made, code: int) -> Sheet:
    accepted = sum(one == HOLDS for one in made.checked.values())
    known = sum(cell.ours not in ("", "-") for table in made.tables for row in table.rows for cell in row)
    return Sheet(
        title=paper.title,
        lead=f"The tables of the paper at size {setting.size}: ours, and in brackets what was published. Ours link to "
        "the runs that they are from.",
        banner=BANNERS[code],
        claim=f"{accepted} of {len(made.checked)} runs were checked and accepted.",
        said=f"{agreed(made.compared, made.disagreements)} The commands are in commands.sh; the same call again gives "
        "the same tables. Comparisons of engines have no certificates.",
        warnings=(
            *(f"Two runs contradict each other: {one}" for one in made.disagreements),
            *(one for one in made.remarks if one.startswith("`swapproof") or LEFT_OUT in one or LITTLE in one),
        ),
        cards=(
            Card(str(len(made.tables)), "tables and figures", "of the paper"),
            Card(str(known), "cells", "filled by runs"),
            Card(f"{accepted}", "runs accepted", "by `swapproof check`"),
            Card(f"{made.compared:,}", "texts compared", "between the runs of one network"),
            Card(
                f"{sum(made.costs.values()) / 60:.0f} min", "of one processor", "for all commands, without the checks"
            ),
        ),
        parts=tuple(part_of(table, setting) for table in made.tables),
        facts=(
            *(("left out" if LEFT_OUT in one else "from", one) for one in made.remarks if LITTLE not in one),
            *(("out of scope", one) for one in paper.out_of_scope),
        ),
        closing="Published numbers are of other models, splits and candidates: they show the layout and the order. "
        "A ? stands for a high end that nobody knows.",
    )


def agreed(texts: int, disagreements: Sequence[str]) -> str:
    if disagreements:
        return f"{len(disagreements)} contradictions stand between runs: believe neither side."
    return f"On {texts:,} texts that several runs of one network speak of, none contradicts another."


def part_of(table: Table, setting: Setting) -> Part:
    rows = tuple(tuple(shown(cell, setting) for cell in row) for row in table.rows)
    definition, *notes = (one.replace("`", "") for one in (table.definition, *table.notes))
    grid = Grid("", table.columns, rows, definition, notes=tuple(notes))
    return Part(f"{table.name}. {table.caption}", table.figures, (grid,) if rows else (), () if rows else NOT_HERE)


def shown(cell: Cell, setting: Setting) -> str:
    """Ours, as a link where there is a page, and what was published."""
    ours: str = Markup("{}").format(cell.ours)
    if cell.run is not None and cell.run.is_file():
        ours = Markup('<a href="{}">{}</a>').format(quote(cell.run.relative_to(setting.folder).as_posix()), cell.ours)
    return Markup("{} <small>({})</small>").format(ours, cell.published) if cell.published else ours


def latex_of(paper: Paper, tables: Sequence[Table]) -> str:
    lines = [f"% {paper.title}; needs \\usepackage{{booktabs}}; published numbers in brackets"]
    for table in tables:
        if not table.rows:
            continue
        lines += ["", f"% {table.name}: {table.caption}", f"\\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}"]
        lines += ["\\toprule", line_of(table.columns), "\\midrule"]
        lines += [line_of([text_of(cell) for cell in row]) for row in table.rows]
        lines += ["\\bottomrule", "\\end{tabular}", f"% {table.definition}"]
        lines += [f"% {note}" for note in table.notes]
    return "\n".join(lines) + "\n"


def text_of(cell: Cell) -> str:
    return f"{cell.ours} ({cell.published})" if cell.published else cell.ours


def line_of(cells: Sequence[str]) -> str:
    return " & ".join(cell.translate(LATEX).replace("→", "$\\to$") for cell in cells) + " \\\\"
