"""Attacks on several tasks, in the layout of the PDP paper's table: a row for each task and attack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .attack_printing import number, percent

PAIRS = ("data and model", "attack", "#Attacked", "#Succ", "Suc", "#Win", "%S", "requests a text", "seconds a text")
PAIRS_DEFINITION = (
    "As the published table of PDP has it: #Succ texts broken, of those attacked; #Win texts on which no attack here "
    "has fewer swaps (ties count for each); %S mean share of words swapped, over broken texts. Requests and seconds "
    "are means over attacked texts."
)


def print_pairs(found: Mapping[str, Mapping[str, Any]]) -> None:
    """`found`: of every task, by its name, the summary of a comparison."""
    from rich.table import Table

    from ..tables import print_table
    from ..terminal import terminal

    console = terminal()
    table = Table(title="Attacks by data and model", title_justify="left")
    for name in PAIRS:
        table.add_column(name, justify="left" if name in PAIRS[:2] else "right", no_wrap=True)
    for row in rows_of_pairs(found):
        table.add_row(*row)
    print_table(console, table)
    console.print(PAIRS_DEFINITION, style="dim")


def rows_of_pairs(found: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for task, summary in found.items():
        for method in summary["comparison"]["methods"]:
            one = summary["runs"][method["method"]]
            attacked = one["attacked"]
            yield (
                task,
                method["method"],
                f"{attacked:,}",
                f"{method['succ']:,}",
                percent(one["suc"]),
                f"{method['win']:,}",
                "-" if method["swapped_share"] is None else f"{method['swapped_share']:.2%}",
                number(one["requests"], 0),
                number(one["seconds"] / attacked if attacked else None, 3),
            )
