"""What a run of `certify` shows on the terminal: its weakest texts, its numbers with their definitions, its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exit_codes import HOLDS, INCOMPLETE
from ..runs.results import pieces
from ..runs.run_summary import DEFINITIONS
from .headline import headline
from .page import both_ends, chosen_radii, ends, evaluated, grounds, interval, percent, skipped_rows
from .terminal import terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

ROWS_SHOWN = 30
"""Rows of the table on the terminal."""
WIDE, LEAST = 100, 12
"""Columns from which level and engine are shown, and columns that a text gets however narrow the terminal is."""
ANSWERED = {"true": "green", "false": "red", "not settled": "yellow"}
STYLES = {"exact": "", "unbreakable": "green", "open": "yellow", "ambiguous": "yellow", "already_wrong": "red"}


def rows_table(lines: Iterable[Mapping[str, Any]], total: int, width: int) -> Table:
    """One row a text, its words cut to what is left of the width; a narrow table leaves out level and engine."""
    from rich.cells import cell_len, set_cell_size
    from rich.table import Table
    from rich.text import Text

    wide = width >= WIDE
    names = ("id", "min_swaps", "status", *(("level", "engine") if wide else ()), "seconds", "text")
    table = Table(title="Texts", title_justify="left")
    for name in names:
        table.add_column(name, justify="right" if name in ("id", "min_swaps", "seconds") else "left", no_wrap=True)
    rows = [
        (
            str(line["id"]),
            ends(line),
            line["status"],
            *((line["level"], line["engine"] or "") if wide else ()),
            f"{line['seconds']:.3f}",
            one_line(line["text"]),
        )
        for line in lines
    ]
    taken = sum(max(map(len, column)) for column in zip(names[:-1], *(row[:-1] for row in rows), strict=True))
    room = max(LEAST, width - taken - 3 * len(names) - 1)
    for id, swaps, status, *others, text in rows:
        cut = text if cell_len(text) <= room else set_cell_size(text, room - 1) + "…"
        table.add_row(id, swaps, Text(status.replace("_", " "), style=STYLES[status]), *others, cut)
    if total > ROWS_SHOWN:
        table.caption = f"and {total - ROWS_SHOWN:,} more in report.html"
    return table


def one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def print_summary(folder: Path, summary: Mapping[str, Any], console: Console | None = None) -> None:
    """The numbers of a run, the definition of each, and its verdict."""
    from rich.table import Table
    from rich.text import Text

    console = terminal() if console is None else console
    for finding in summary["vacuous"]:
        console.print(Text(f"This says little: {finding}.", style="bold yellow"))
    table = Table(title=f"Summary of {folder}", title_justify="left")
    table.add_column("quantity")
    table.add_column("value", justify="right")
    for name in ("texts", "already_wrong", "unbreakable", "exact", "open", "ambiguous"):
        table.add_row(name.replace("_", " "), f"{summary[name]:,}")
    if summary["contradictions"]:
        table.add_row("answers that did not check", Text(f"{summary['contradictions']:,}", style="bold red"))
    table.add_row("mean min_swaps (MMWS)", interval(summary["mmws"]))
    table.add_row("accuracy", percent(summary["accuracy"]))
    if summary["cut_texts"]:
        table.add_row("texts cut to the model's length", f"{summary['cut_texts']:,}")
    table.add_row("engine seconds", f"{summary['seconds']:.1f}")
    console.print(table)
    console.print(f"MMWS: {DEFINITIONS['mmws']}. Accuracy: {DEFINITIONS['accuracy']}.\n", style="dim")
    console.print(radius_table(summary))
    console.print(
        f"Certified: {DEFINITIONS['certified_accuracy']}. Under attack: {DEFINITIONS['accuracy_under_attack']}.\n",
        style="dim",
    )
    console.print(f"Swaps: {kept_and_left_out(summary)}.\n")
    if (skipped := skipped_rows(summary)) is not None:
        console.print(Text(f"note: {skipped}", style="yellow"))
    for remark in summary.get("remarks", ()):
        console.print(Text(f"note: {remark}", style="yellow"))
    if len(summary["requirements"]) > 1:
        for one in summary["requirements"]:
            console.print(Text(f"required, {one['answer']}: {one['sentence']}", style=ANSWERED[one["answer"]]))
    verdict, claim = summary["verdict"], headline(summary)
    if claim is not None:
        console.print(Text(f"{claim.sentence}.", style="bold"))
    if summary["vacuous"] and verdict["exit_code"] == HOLDS:
        console.print(Text(verdict["sentence"], style="bold yellow"))
        return
    style = {HOLDS: "bold green", INCOMPLETE: "bold yellow"}.get(verdict["exit_code"], "bold red")
    console.print(Text(verdict["sentence"], style=style))


def radius_table(summary: Mapping[str, Any]) -> Table:
    from rich.table import Table

    table = Table(title="Accuracy by number of swaps", title_justify="left")
    table.add_column("swaps", justify="right")
    parted = evaluated(summary)
    for name in ("certified", *(("of it proved", "evaluated in full") if parted else ()), "under attack"):
        table.add_column(name, justify="right")
    for radius, low, high in chosen_radii(summary):
        parts = map(percent, grounds(summary, radius, low) if parted else ())
        under_attack = both_ends(low, high)
        table.add_row(str(radius), percent(low), *parts, under_attack)
    return table


def highlighted(line: Mapping[str, Any]) -> Text:
    """The witness of a text on the terminal: `[good → fine]` where a word was swapped."""
    from rich.text import Text

    text = Text()
    for piece in pieces(line["text"], line["witness"]["swaps"]):
        if piece.swapped:
            text.append("[")
            text.append(piece.before, style="red")
            text.append(" → ", style="dim")
            text.append(piece.after, style="bold green")
            text.append("]")
        else:
            text.append(piece.before)
    return text


def kept_and_left_out(summary: Mapping[str, Any]) -> str:
    """How many candidates of the swaps were kept and left out, by reason."""
    swaps = summary["swaps"]
    removed = [f"{number:,} {reason}" for reason, number in swaps["removed"].items() if number]
    rest = f"; left out: {', '.join(removed)}" if removed else ""
    unread = [f"{number:,} {reason}" for reason, number in swaps["dropped_on_reading"].items() if number]
    rest += f"; dropped when the source was read: {', '.join(unread)}" if unread else ""
    return f"{swaps['kept']:,} of {swaps['considered']:,} candidates of {swaps['source']} kept{rest}"
