"""`report`: what a run found, as tables on the terminal and as one HTML file that needs nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swapproof.encodings.errors import BadInput

from ..attacks.attack_comparison import COMPARISON
from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED, VIOLATED
from ..pages.beside.other_runs import take
from ..pages.formats.code_findings import as_sarif
from ..pages.formats.earlier_exports import refuse_to_write
from ..pages.formats.file_formats import FORMATS as PLAIN
from ..pages.formats.mlflow_run import log_to_mlflow
from ..pages.formats.parquet_rows import as_parquet
from ..pages.page import WEAKEST_FIRST
from ..pages.printing.attack_printing import print_attack
from ..pages.printing.json_printing import print_run
from ..pages.printing.kappa_printing import print_kappa
from ..pages.printing.pr_printing import print_measured
from ..pages.printing.radius_printing import print_radii
from ..pages.printing.vote_printing import print_vote
from ..pages.report_file import Stored, weakest_first, write_report
from ..pages.run_tables import ROWS_SHOWN, print_summary, rows_table
from ..pages.sheets.measured_page import page_of_attacks, page_of_radii, write_page
from ..pages.terminal import terminal
from ..runs.measured_runs import holds_radii, question_of, runs_of, summary_in
from ..runs.run_folder import Run, existing, write_atomically
from ..runs.run_summary import DEFINITIONS, STAGE, summary_of
from ..runs.store import ILL_FORMED, Store, intact

if TYPE_CHECKING:
    from rich.console import Console


FORMATS = {**PLAIN, "sarif": as_sarif}
NO_FILES: Mapping[str, Path] = {}
PRINTED = {"kappa": print_kappa, "attack": print_attack, "vote": print_vote}
"""By what a run measures; robust fractions else."""
MAPS = 32
"""Texts among which those are that are shown as maps of their words."""


def command(
    folder: Path,
    *,
    as_json: bool = False,
    files: Mapping[str, Path | None] = NO_FILES,
    beside: Sequence[Path] | None = None,
    mlflow: tuple[str, str] | None = None,
) -> int:
    """The report of whatever run this is, or of the runs of several radii or attacks; `files`: format -> file to write
    as well; `beside`: other runs that a run of `certify` shows from now on, none at all, or (None) those that it has;
    `mlflow`: the address of a store and the name of an experiment.
    """
    if mlflow is not None and (holds_radii(folder) or (folder / COMPARISON).is_file()):
        inside = min(path.parent for path in folder.glob("*/summary.json"))
        raise BadInput(f"{folder}: holds several runs; --mlflow logs one, such as {inside}")
    code = reported(folder, as_json=as_json, files=files, beside=beside)
    if mlflow is not None:
        made = log_to_mlflow(folder, summary_in(folder), *mlflow)
        print(f"MLflow: run {made} at {mlflow[0]}", file=sys.stderr)
    return code


def reported(folder: Path, *, as_json: bool, files: Mapping[str, Path | None], beside: Sequence[Path] | None) -> int:
    wanted = {name: path for name, path in files.items() if path is not None}
    if wanted and (holds_radii(folder) or question_of(folder) is not None):
        raise BadInput(f"{folder}: {', '.join(f'--{name}' for name in wanted)} can be had of runs of `certify` only")
    refuse_to_write(folder, wanted)
    if beside is not None:
        if holds_radii(folder) or (folder / COMPARISON).is_file() or question_of(folder) is not None:
            raise BadInput(f"{folder}: other runs are shown beside runs of `certify` only")
        take(existing(folder), beside)
    if holds_radii(folder):
        return report_measured(folder, print_measured, as_json=as_json)
    if (compared := folder / COMPARISON).is_file():
        return report_compared(compared, as_json=as_json)
    question = question_of(folder)
    if question is None:
        return report(folder, as_json=as_json, files=wanted)
    if question["quantity"] == "msr":
        return report_measured(folder, partial(print_radii, lines=first_lines(folder)), as_json=as_json)
    return report_measured(folder, PRINTED.get(question["quantity"], print_measured), as_json=as_json)


def first_lines(folder: Path) -> list[dict[str, Any]]:
    """Of a run of radii, those that may be shown as maps."""
    run = existing(folder)
    with intact(run.store), Store.open(run.store, readonly=True) as store:
        return list(islice(store.results("msr"), MAPS))


def report_compared(path: Path, *, as_json: bool) -> int:
    """Of several attacks, as they were compared."""
    try:
        summary = json.loads(path.read_bytes())
        code = max(int(one["verdict"]["exit_code"]) for one in summary["runs"].values())
        page = page_of_attacks(summary, {name: existing(path.parent / name) for name in summary["runs"]})
        write_atomically(Run(path.parent).report, page.written())
        if as_json:
            return print_run(path.parent, code, summary)
        print_attack(summary)
        print(f"\n{Run(path.parent).report}")
    except (OSError, *ILL_FORMED) as error:
        met = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadInput(f"{path}: not what `swapproof attack --compare` writes ({met})") from None
    return code


def report(folder: Path, *, as_json: bool = False, files: Mapping[str, Path] = NO_FILES) -> int:
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
        with Store.open(run.store, readonly=True) as store:
            written = {path: in_format(name, summary, store.results(STAGE)) for name, path in files.items()}
    for path, content in written.items():
        write_atomically(path, content)
    if as_json:
        return print_run(folder, code, summary)
    print(f"{drawn.get()}\n{run.report}")  # out here, where a failure to print is not taken for a damaged store
    return code


def in_format(name: str, summary: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> bytes:
    if name == "parquet":
        return as_parquet(summary, lines)
    return "".join(FORMATS[name](summary, lines)).encode()


def shown(run: Run, console: Console) -> dict[str, Any]:
    """The summary of the run, which is drawn with its weakest texts."""
    with Store.open(run.store, readonly=True) as store:
        summary = summary_of(store)
        order = weakest_first(store)
        console.print(rows_table(Stored(store, order[:ROWS_SHOWN]), len(order), console.width))
        console.print(f"{WEAKEST_FIRST} min_swaps: {DEFINITIONS['min_swaps']}.\n", style="dim")
    print_summary(run.folder, summary, console)
    return summary


def report_measured(folder: Path, show: Callable[[Mapping[str, Any]], None], *, as_json: bool = False) -> int:
    """Show what a measurement found, as it did itself; the exit code is the worst verdict in its summary."""
    from rich.errors import ConsoleError

    summary = summary_in(folder)
    try:
        if not as_json:
            show(summary)
        code = max(one["verdict"]["exit_code"] for one in summary.get("runs", {"": summary}).values())
        if "runs" in summary:
            write_atomically(Run(folder).report, page_of_radii(summary, runs_of(folder)).written())
        else:
            write_page(Run(folder), summary)
        if code not in (HOLDS, VIOLATED, INCOMPLETE, UNCHECKED):
            raise ValueError(f"exit code {code}")
    except BadInput:  # of another file, which it names
        raise
    except (ConsoleError, *ILL_FORMED) as error:
        met = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadInput(
            f"{Run(folder).summary}: not the summary of a measurement ({met}); run the same `swapproof measure` again"
        ) from None
    if as_json:
        return print_run(folder, int(code), summary)
    print(f"\n{Run(folder).report}")
    return int(code)
