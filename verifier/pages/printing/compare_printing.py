"""What `compare` prints: each run by itself, each beside the first, what got worse; every table is defined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...comparing.comparison_findings import COUNTED
from ...comparing.same_question import ComparedRun
from ..sheets.compared_sheet import groups, mean_grid, overview, shares_grid, shown, warnings
from ..sheets.sheet import Grid
from ..tables import print_table
from ..terminal import terminal

if TYPE_CHECKING:
    from rich.console import Console

WORST = 10
"""Texts named on the terminal."""


def print_comparison_of_runs(found: Mapping[str, Any], runs: Sequence[ComparedRun]) -> None:
    from rich.text import Text

    console = terminal()
    for warning in warnings(found):
        console.print(Text(warning, style="bold yellow"))
    for part in overview(found):
        for grid in part.grids:
            print_grid(console, grid)
    for one in found["against_the_first"]:
        if found["kind"] in COUNTED:
            print_grid(console, shares_grid(found, one))
        print_grid(console, mean_grid(found, one))
    for part in groups(found):
        for grid in part.grids:
            print_grid(console, grid, titled=part.heading)
    for one in found["against_the_first"]:
        worst(console, found, runs, one)
        console.print(Text(f"{one['sentence']}.", style="bold"))
    console.print(f"{found['definitions']['moved']}.", style="dim")


def print_grid(console: Console, grid: Grid, titled: str = "") -> None:
    from rich.table import Table

    table = Table(title=titled or grid.caption, title_justify="left")
    for number, name in enumerate(grid.columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in grid.rows:
        table.add_row(*row)
    print_table(console, table)
    console.print(f"{grid.definition}\n", style="dim")


def worst(console: Console, found: Mapping[str, Any], runs: Sequence[ComparedRun], one: Mapping[str, Any]) -> None:
    if not one["worse"]:
        return
    before, after = (next(run for run in runs if run.name == one[name]) for name in ("first", "other"))
    console.print(f"What got worse in {one['other']}:")
    for id in one["worse"][:WORST]:
        then, now = (say(shown(run.standing(id), found["kind"])) for run in (before, after))
        console.print(f"  text {id}: {then} -> {now}: {one_line(runs[0].texts[id]['text'])}", soft_wrap=True)
    more = len(one["worse"]) - WORST
    if more > 0:
        console.print(f"  and {more:,} more in compare.html")


def say(known: object) -> str:
    if isinstance(known, list):
        return f"[{known[0]}, {'?' if known[1] is None else known[1]}]"
    return f"{known:.4f}" if isinstance(known, float) else str(known)


def one_line(text: str) -> str:
    cut = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return cut if len(cut) <= 90 else cut[:89] + "…"
