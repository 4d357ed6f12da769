"""The command line: one function per command, each importing what it needs only when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
USAGE, UNCHECKED, INTERRUPTED = 2, 4, 130


class Commands(TyperGroup):
    """Our commands; an interrupt of any of them has its own exit code, whatever the version of typer."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("swapproof: interrupted; a run can be resumed by the same command", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    name="swapproof",
    help="How many words must an adversary swap for synonyms before a text classifier changes its answer? "
    "An interval with evidence at both ends.",
    epilog="Exit codes: 0 holds, 1 violated, 2 usage or bad input, 3 incomplete, 4 an answer did not check, 130 "
    "interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

bench = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure engines beside outside solvers.")
app.add_typer(bench, name="bench")

Out = Annotated[Path, typer.Option("--out", help="The run folder: a new one, or one to resume.", show_default=False)]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]


def version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        print(f"swapproof {importlib.metadata.version('swapproof')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="The run folder.")] = Path("runs/demo"),
) -> None:
    """Certify, check and show a small example."""
    from .demo import demo

    raise typer.Exit(demo(out))


@app.command()
def certify(
    task: Annotated[Path, typer.Argument(metavar="TASK.toml", help="Which model, which texts, which swaps.")],
    out: Out,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    radius: Annotated[
        int | None,
        typer.Option(
            min=0, help="Require every text to be robust to R swaps; decides the exit code.", show_default=False
        ),
    ] = None,
    engines: Annotated[
        str | None, typer.Option(help="Engines to use, in order, separated by commas.", show_default="all")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for each text.")] = 60.0,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    resume: Annotated[bool, typer.Option(help="Go on with a run in this folder, or start it anew.")] = True,
) -> None:
    """Find the minimum number of swaps of every text.

    Each is an interval whose ends carry evidence: a checked proof, and a sentence that fools the model.
    """
    from .certifying import certify
    from .report import print_summary

    outcome = certify(task, out, limit, radius, engines, seconds, jobs, resume=resume, progress=True)
    print_summary(outcome.folder, outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    raise typer.Exit(outcome.exit_code)


@app.command()
def check(
    run: RunFolder,
    exact: Annotated[
        bool, typer.Option("--exact", help="Exact integers throughout; at present every check is.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one for each core")] = None,
) -> None:
    """Check every certificate and witness of a run.

    Every certificate is checked, every witness replayed, and both are compared with what results.jsonl claims.
    """
    from .checking import check

    raise typer.Exit(check(run, exact=exact, jobs=jobs))


@app.command()
def report(run: RunFolder) -> None:
    """Show what a run found, also as report.html."""
    from .report import report

    raise typer.Exit(report(run))


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="Which network, which texts, how to learn.")],
    out: Annotated[Path, typer.Option("--out", help="The task folder: a new one.", show_default=False)],
) -> None:
    """Train a network; leave a model and a task file.

    The folder holds an ONNX model, its vocabulary, the held-out texts and the task file.
    """
    from swapproof.models.training import train

    train(recipe, out, lambda remark: print(remark, file=sys.stderr, flush=True))
    print(out / "task.toml")


@bench.command("exact")
def bench_exact(
    task: Annotated[Path, typer.Argument(metavar="TASK.toml", help="Which model, which texts, which swaps.")],
    engines: Annotated[
        str, typer.Option(help="Our engines and outside solvers, separated by commas.")
    ] = "exact,gurobi,scip,highs",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    seconds: Annotated[float, typer.Option(help="Time for each engine and text.")] = 60.0,
    json: Annotated[
        Path | None, typer.Option("--json", help="A file for every answer, as JSON lines.", show_default=False)
    ] = None,
) -> None:
    """Find minimum swaps with several engines, one thread each.

    The same texts and the same swaps, one after the other; a table of ratios; exit code 4 if two of them disagree.
    """
    from .bench import bench_exact
    from .comparison import print_comparison

    names = [name.strip() for name in engines.split(",") if name.strip()]
    table = bench_exact(task, names, limit, seconds, progress=True, json_file=json)
    print_comparison(table)
    raise typer.Exit(table.exit_code)


@app.command()
def doctor() -> None:
    """Show what is installed and what is missing."""
    from .doctor import doctor

    doctor()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Bad input is one line on stderr; anything else that fails is a bug."""
    for (
        variable
    ) in ONE_THREAD:  # before numpy loads: the same sums in the same order on every machine and with any --jobs
        os.environ.setdefault(variable, "1")
    try:
        app(args=None if arguments is None else list(arguments), prog_name="swapproof")
    except SystemExit as exit:
        return exit_code(exit)
    except (ArithmeticError, NotImplementedError, OSError, ValueError) as error:
        code = code_of(error)
        if code is None:
            raise
        print(f"swapproof: {one_line(error)}", file=sys.stderr)
        return code
    return 0


def code_of(error: BaseException) -> int | None:
    """The exit code of a refusal of one of the packages; None for a bug."""
    from swapproof.encodings import errors as encodings
    from swapproof.models import errors as models
    from swapproof.proofs import errors as proofs

    if isinstance(error, encodings.Disagreement):
        return UNCHECKED
    bad = encodings.BadInput | models.BadInput | proofs.BadInput | proofs.Unusable
    unsupported = encodings.Unsupported | models.Unsupported | proofs.Unsupported
    return USAGE if isinstance(error, bad | unsupported) else None


def one_line(error: BaseException) -> str:
    """The message, further problems after the first counted."""
    first, *more = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{first} (and {len(more)} more)" if more else first


def exit_code(exit: SystemExit) -> int:
    if exit.code is None:
        return 0
    return exit.code if isinstance(exit.code, int) else 1
