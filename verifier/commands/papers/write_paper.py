"""`paper`: a paper's protocol as commands that anybody can repeat, and its tables with what is proved."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from swapproof.encodings.errors import BadInput

from ...pages.printing.json_printing import print_json
from ...papers.paper_page import text_of
from ...papers.paper_plan import Paper, Table
from ...papers.paper_runs import PaperOptions, work_through
from ...papers.paper_table import PAPERS


def command(name: str, out: Path, options: PaperOptions, *, as_json: bool = False) -> int:
    paper = named(name)
    made, code = work_through(paper, out, options, said=lambda line: print(line, file=sys.stderr, flush=True))
    if as_json:
        print_json({"folder": str(out), "exit_code": code, "page": str(out / "paper.html"), "checked": made.checked})
        return code
    for table in made.tables:
        print_rows(table)
    for remark in made.remarks:
        print(remark)
    print(f"\nThe tables: {out / 'paper.html'}, also as paper.tex and paper.json")
    return code


def named(name: str) -> Paper:
    if name in PAPERS:
        return PAPERS[name]
    near = difflib.get_close_matches(name, PAPERS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(PAPERS)}"
    raise BadInput(f"no paper is named {name!r}; {hint}")


def print_rows(found: Table) -> None:
    from rich.table import Table as Shown

    from ...pages.tables import print_table
    from ...pages.terminal import terminal

    console = terminal()
    table = Shown(title=f"{found.name}. {found.caption}", title_justify="left")
    for number, column in enumerate(found.columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in found.rows:
        table.add_row(*(text_of(cell) for cell in row))
    print_table(console, table)
    console.print(found.definition, style="dim")
