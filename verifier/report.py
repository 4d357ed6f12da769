"""`report`: what a run found, as tables on the terminal and as one HTML file that needs nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .figures import accuracy_curve, histogram
from .results import pieces
from .run import Run, existing, write_atomically
from .store import Store
from .summary import DEFINITIONS, HOLDS, INCOMPLETE, STAGE, summary_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

ROWS_SHOWN = 30
"""Rows of the table on the terminal."""
COLUMNS_UNSEEN = 120
"""Width of the tables when nobody's terminal tells one."""
WIDE, ROOM_WIDE, ROOM_NARROW = 100, 74, 54
"""Columns from which level and engine are shown, and columns that all but the text takes."""
STYLES = {"exact": "", "unbreakable": "green", "open": "yellow", "ambiguous": "yellow", "already_wrong": "red"}
HARDEST_FIRST = "Hardest first: open and ambiguous texts, then by time."


def report(folder: Path) -> int:
    """Print and write the report of a run; the exit code is the run's verdict."""
    run = existing(folder)
    with Store.open(run.store, readonly=True) as store:
        summary = summary_of(store)
        order = hardest_first(store)
        console = terminal()
        console.print(rows_table(read(store, order[:ROWS_SHOWN]), len(order), console.width))
        console.print(f"{HARDEST_FIRST} min_swaps: {DEFINITIONS['min_swaps']}.\n", style="dim")
    print_summary(folder, summary)
    write_report(run)
    print(f"\n{run.report}")
    return int(summary["verdict"]["exit_code"])


def terminal() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else COLUMNS_UNSEEN)


def hardest_first(store: Store) -> list[int]:
    """Ids of the settled texts: open and ambiguous ones first, then the ones that took longest."""
    keys = []
    for line in store.lines(STAGE):
        one = json.loads(line)
        keys.append((one["status"] not in ("open", "ambiguous"), -one["seconds"], one["id"]))
    return [id for _, _, id in sorted(keys)]


def read(store: Store, order: Iterable[int]) -> Iterator[dict[str, Any]]:
    for id in order:
        yield json.loads(store.line(STAGE, id))


def interval(ends: Mapping[str, Any]) -> str:
    """`3` when both ends meet, `[2, 5]`, `[2, ?]` when no witness is known."""
    low, high = ends["low"], ends["high"]
    if low == high:
        return "none" if low is None else shown(low)
    return f"[{shown(low)}, {'?' if high is None else shown(high)}]"


def shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def ends(line: Mapping[str, Any]) -> str:
    """The interval of a text; of an unbreakable one, that no number of swaps is enough."""
    return "never" if line["status"] == "unbreakable" else interval(line["min_swaps"])


def rows_table(lines: Iterable[Mapping[str, Any]], total: int, width: int) -> Table:
    """One row a text, its words cut to what is left of the width; a narrow table leaves out level and engine."""
    from rich.table import Table
    from rich.text import Text

    wide = width >= WIDE
    table = Table(title="Texts", title_justify="left")
    table.add_column("id", justify="right", no_wrap=True)
    table.add_column("min_swaps", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    if wide:
        table.add_column("level", no_wrap=True)
        table.add_column("engine", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis")
    room = width - (ROOM_WIDE if wide else ROOM_NARROW)
    for line in lines:
        text = one_line(line["text"])
        table.add_row(
            str(line["id"]),
            ends(line),
            Text(line["status"].replace("_", " "), style=STYLES[line["status"]]),
            *([line["level"], line["engine"] or ""] if wide else []),
            f"{line['seconds']:.3f}",
            text if len(text) <= room else text[: room - 1] + "…",
        )
    if total > ROWS_SHOWN:
        table.caption = f"and {total - ROWS_SHOWN:,} more in report.html"
    return table


def one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def print_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """The numbers of a run, the definition of each, and its verdict."""
    from rich.table import Table
    from rich.text import Text

    console = terminal()
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
    for remark in summary.get("remarks", ()):
        console.print(Text(f"note: {remark}", style="yellow"))
    verdict = summary["verdict"]
    style = {HOLDS: "bold green", INCOMPLETE: "bold yellow"}.get(verdict["exit_code"], "bold red")
    console.print(Text(verdict["sentence"], style=style))


def radius_table(summary: Mapping[str, Any]) -> Table:
    from rich.table import Table

    table = Table(title="Accuracy by number of swaps", title_justify="left")
    table.add_column("swaps", justify="right")
    table.add_column("certified", justify="right")
    table.add_column("under attack", justify="right")
    for radius, low, high in chosen_radii(summary):
        table.add_row(str(radius), percent(low), percent(low) if low == high else f"{percent(low)} to {percent(high)}")
    return table


def chosen_radii(summary: Mapping[str, Any]) -> list[tuple[int, float, float]]:
    """The radii at which something changes, and the one asked for."""
    found: list[tuple[int, float, float]] = []
    for name, share in summary["accuracy_under_attack"].items():
        row = (int(name), share["low"], share["high"])
        if not found or found[-1][1:] != row[1:] or row[0] == summary["radius"]:
            found.append(row)
    return found


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


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


def write_report(run: Run) -> None:
    """RUN/report.html, from the store, without holding its rows in memory."""
    from jinja2 import Environment

    # No loader and no file of the user's: the template is ours, and everything put into it is escaped.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("swapproof.verifier").joinpath("report.html").read_text(encoding="utf-8"))
    with Store.open(run.store, readonly=True) as store:
        summary = summary_of(store)
        facts = store.facts()
        order = hardest_first(store)
        parts = template.generate(
            folder=run.folder.absolute().name,
            summary=summary,
            facts=facts,
            rows=read(store, order),
            pieces=pieces,
            ends=ends,
            interval=interval,
            percent=percent,
            radii=chosen_radii(summary),
            histogram=partial(histogram, summary),
            curve=partial(accuracy_curve, summary),
            definitions=DEFINITIONS,
            hardest_first=HARDEST_FIRST,
        )
        write_atomically(run.report, (part.encode() for part in parts))
