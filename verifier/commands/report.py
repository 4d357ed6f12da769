"""`report`: what a run found, as tables on the terminal and as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swapproof.encodings.errors import BadInput

from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED
from ..pages.kappa_printing import print_kappa
from ..pages.page import HARDEST_FIRST
from ..pages.pr_printing import print_measured
from ..pages.report_file import hardest_first, read, write_report
from ..pages.run_tables import ROWS_SHOWN, print_summary, rows_table
from ..pages.terminal import terminal
from ..runs.measured_runs import holds_radii, question_of, summary_in
from ..runs.run_folder import Run, existing
from ..runs.run_summary import DEFINITIONS, summary_of
from ..runs.store import ILL_FORMED, Store, intact

if TYPE_CHECKING:
    from rich.console import Console


def command(folder: Path) -> int:
    """The report of whatever run this is, or of the runs of several radii."""
    if holds_radii(folder):
        return report_measured(folder, print_measured)
    question = question_of(folder)
    if question is None:
        return report(folder)
    return report_measured(folder, print_kappa if question["quantity"] == "kappa" else print_measured)


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


def report_measured(folder: Path, show: Callable[[Mapping[str, Any]], None]) -> int:
    """Show what a measurement found, as it did itself; the exit code is the worst verdict in its summary."""
    from rich.errors import ConsoleError

    summary = summary_in(folder)
    try:
        show(summary)
        code = max(one["verdict"]["exit_code"] for one in summary.get("runs", {"": summary}).values())
        if code not in (HOLDS, INCOMPLETE, UNCHECKED):
            raise ValueError(f"exit code {code}")
    except (ConsoleError, *ILL_FORMED) as error:
        met = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadInput(
            f"{Run(folder).summary}: not the summary of a measurement ({met}); run the same `swapproof measure` again"
        ) from None
    return int(code)
