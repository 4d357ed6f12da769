"""`report`: what a run found, as tables on the terminal and as one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..pages.page import HARDEST_FIRST
from ..pages.report_file import hardest_first, read, write_report
from ..pages.run_tables import ROWS_SHOWN, print_summary, rows_table
from ..pages.terminal import terminal
from ..runs.run_folder import Run, existing
from ..runs.run_summary import DEFINITIONS, summary_of
from ..runs.store import Store, intact

if TYPE_CHECKING:
    from rich.console import Console


def report(folder: Path) -> int:
    """Print and write the report of a run; the exit code is the run's verdict."""
    from jinja2 import TemplateError
    from rich.errors import ConsoleError

    run, console = existing(folder), terminal()
    with intact(run.store):
        try:
            with console.capture() as drawn:
                summary = shown(run, console)
            write_report(run)
        except (ConsoleError, TemplateError) as error:
            raise ValueError(str(error)) from error
        code = int(summary["verdict"]["exit_code"])
    print(f"{drawn.get()}\n{run.report}")  # out here, where a failure to print is not taken for a damaged store
    return code


def shown(run: Run, console: Console) -> dict[str, Any]:
    """The summary of the run, which is drawn with its hardest texts."""
    with Store.open(run.store, readonly=True) as store:
        summary = summary_of(store)
        order = hardest_first(store)
        console.print(rows_table(read(store, order[:ROWS_SHOWN]), len(order), console.width))
        console.print(f"{HARDEST_FIRST} min_swaps: {DEFINITIONS['min_swaps']}.\n", style="dim")
    print_summary(run.folder, summary, console)
    return summary
