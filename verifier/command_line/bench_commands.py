"""Commands that measure engines beside outside solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..exit_codes import HOLDS
from .arguments import AsJson, RunFolder, TaskFile, TrustPickle

STANDARD_OUTPUT = Path("-")
"""Also what `--json` means without a file."""
Answers = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="A file for every answer, as JSON lines; without a file: print one JSON object in place of tables.",
        show_default=False,
    ),
]
Figures = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="A file for the figures, as JSON; without a file: print one JSON object in place of tables.",
        show_default=False,
    ),
]
Page = Annotated[Path | None, typer.Option("--html", help="A file for a page.", show_default=False)]


def bench_exact(
    task: TaskFile,
    engines: Annotated[
        str, typer.Option(help="Our engines and outside solvers, separated by commas.")
    ] = "exact,gurobi,scip,highs",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    seconds: Annotated[float, typer.Option(help="Time for each engine and text.")] = 60.0,
    json: Answers = None,
    html: Page = None,
) -> None:
    """Find minimum swaps with several engines, one thread each.

    The same texts and the same swaps, one after the other; a table of ratios; exit code 4 if two of them disagree.
    """
    from ..bench.comparison import print_comparison
    from ..bench.drawn.page_file import refuse_other_files, write_page
    from ..bench.drawn.timed_sheet import TITLE, timed_sheet
    from ..commands.benches.bench_exact import bench_exact
    from ..pages.printing.json_printing import print_json

    refuse_other_files(html, TITLE)
    table = bench_exact(task, names_in(engines), limit, seconds, progress=True, json_file=file_of(json))
    if json == STANDARD_OUTPUT:
        print_json(table.as_json())
    else:
        print_comparison(table)
    write_page(html, timed_sheet(table))
    raise typer.Exit(table.exit_code)


def bench_deep(
    task: TaskFile,
    engines: Annotated[
        str, typer.Option(help="Ways of deciding, separated by commas.")
    ] = "attention,boxes,sequence,enumerate,lirpa-ibp,lirpa-crown",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    seconds: Annotated[float, typer.Option(help="Time for each way and text.")] = 10.0,
    radius: Annotated[int, typer.Option(min=1, help="Sentences with up to so many swaps.")] = 4,
    each_radius: Annotated[
        bool, typer.Option("--each-radius", help="Ask for every radius alone, too: table 3 of the PDP paper.")
    ] = False,
    json: Answers = None,
    html: Page = None,
) -> None:
    """Decide a smooth network in several ways, one thread each.

    Our engines and their certificates, plain enumeration in onnxruntime, and what auto_LiRPA claims, on the same texts;
    exit code 4 if two of them disagree or a proof is refused.
    """
    from ..bench.deep_table import print_deep
    from ..bench.drawn.deep_sheet import TITLE, deep_sheet
    from ..bench.drawn.page_file import refuse_other_files, write_page
    from ..commands.benches.bench_deep import bench_deep
    from ..pages.printing.json_printing import print_json

    refuse_other_files(html, TITLE)
    table = bench_deep(
        task,
        names_in(engines),
        limit,
        seconds,
        radius,
        progress=True,
        json_file=file_of(json),
        each_radius=each_radius,
    )
    if json == STANDARD_OUTPUT:
        print_json(table.as_json())
    else:
        print_deep(table)
    write_page(html, deep_sheet(table))
    raise typer.Exit(table.exit_code)


def bench_check(
    run: RunFolder,
    seconds: Annotated[float, typer.Option(help="Time for each checker.")] = 600.0,
    json: Figures = None,
    html: Page = None,
) -> None:
    """Time every checker on a run.

    swapproof check, check.py and check.js (where there is node), one after the other; exit code 4 if one refuses, 3 if
    one was stopped.
    """
    from dataclasses import asdict

    from ..bench.drawn.checkers_sheet import TITLE, checkers_sheet
    from ..bench.drawn.page_file import refuse_other_files, write_page
    from ..commands.benches.bench_check import bench_check, print_timings
    from ..pages.printing.json_printing import print_json

    refuse_other_files(html, TITLE)
    timings = bench_check(run, seconds, file_of(json))
    if json == STANDARD_OUTPUT:
        print_json({"exit_code": timings.exit_code, **asdict(timings)})
    else:
        print_timings(timings)
    write_page(html, checkers_sheet(timings))
    raise typer.Exit(timings.exit_code)


def bench_run(
    task: TaskFile,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    radius: Annotated[int, typer.Option(min=1, help="Sentences with up to so many swaps.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Cores for a batch.")] = 1,
    json: Figures = None,
    html: Page = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Time a model that is run, beside a bare loop.

    Every sentence with a few swaps, as certify asks about it, and the same through onnxruntime alone with the best
    batches; and what certify says beforehand.
    """
    from ..bench.drawn.page_file import refuse_other_files, write_page
    from ..bench.drawn.run_sheet import TITLE, run_sheet
    from ..commands.benches.bench_run import bench_run, line_of, print_figures
    from ..pages.printing.json_printing import print_json
    from ..tasks.deployed_model import Trust

    refuse_other_files(html, TITLE)
    trust = Trust(pickle=trust_pickle)
    found = bench_run(task, limit, radius, trust=trust, threads=threads, shown=True, json_file=file_of(json))
    if json == STANDARD_OUTPUT:
        print_json({"exit_code": HOLDS, **line_of(found)})
    else:
        print_figures(found)
    write_page(html, run_sheet(found))


def bench_growth(
    size: Annotated[str, typer.Option(help="small, default (about ten minutes) or full (hours).")] = "default",
    engines: Annotated[str, typer.Option(help="exact, gurobi, scip, highs, separated by commas.")] = "exact,gurobi",
    seconds: Annotated[
        float | None, typer.Option(help="Time for each engine and text instead.", show_default=False)
    ] = None,
    texts: Annotated[int | None, typer.Option(min=1, help="Texts of each size instead.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of networks and texts.")] = 1,
    json: Figures = None,
    html: Page = None,
) -> None:
    """Measure how cost grows, beside outside solvers.

    Random networks and texts with more positions, candidates, hidden units, swaps needed, and more texts; time, regions
    and size of proofs with the power laws that fit them; exit code 4 if two engines disagree.
    """
    from ..bench.drawn.growth_sheet import TITLE, growth_sheet
    from ..bench.drawn.page_file import refuse_other_files, write_page
    from ..commands.benches.bench_growth import as_json, bench_growth, print_growth
    from ..pages.printing.json_printing import print_json

    refuse_other_files(html, TITLE)
    growth = bench_growth(size, names_in(engines), seconds, texts, seed, progress=True, json_file=file_of(json))
    if json == STANDARD_OUTPUT:
        print_json(as_json(growth))
    else:
        print_growth(growth)
    write_page(html, growth_sheet(growth))
    raise typer.Exit(growth.comparison.exit_code)


def bench_page(
    page: Annotated[Path, typer.Argument(metavar="PAGE.md", help="A page with the places of tables.", readable=False)],
    write: Annotated[bool, typer.Option("--write", help="Into the page, instead of printing it.")] = False,
    json: AsJson = False,
) -> None:
    """Write the tables of a page of measurements.

    A line `<!-- table NAME -->` is followed by the table of measurements/NAME.json, beside the page.
    """
    from ..commands.benches import bench_page as command
    from ..pages.printing.json_printing import print_json

    content = command.bench_page(page)
    if write:
        command.write_page(page)
    if json:
        tables = command.TABLE.findall(content)
        print_json({"exit_code": HOLDS, "page": str(page), "tables": tables, "written": write})
    elif not write:
        typer.echo(content, nl=False)


def bench_papers(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="What `paper` left.", readable=False)],
    out: Annotated[Path, typer.Option("--out", help="A new page, or an earlier one.", show_default=False)],
    seconds: Annotated[
        Path | None, typer.Option("--seconds", help="A file for the seconds of every command.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Write the tables of finished papers as one page of Markdown.

    What stands there between `<!-- words NAME -->` and `<!-- end -->` stays.
    """
    from ..commands.benches.bench_papers import write_papers
    from ..pages.printing.json_printing import print_json

    write_papers(folders, out, seconds)
    if json:
        print_json({"exit_code": HOLDS, "page": str(out), "papers": [str(folder) for folder in folders]})
    else:
        typer.echo(str(out))


def file_of(json: Path | None) -> Path | None:
    return None if json == STANDARD_OUTPUT else json


def names_in(engines: str) -> list[str]:
    return [name.strip() for name in engines.split(",") if name.strip()]
