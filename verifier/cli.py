"""The command line: the table of commands, and how each of them ends."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from swapproof.encodings.solvers.one_thread import ONE_THREAD

from .collecting import collect_seldom
from .command_line.attack_command import attack
from .command_line.bench_commands import (
    bench_check,
    bench_deep,
    bench_exact,
    bench_growth,
    bench_page,
    bench_papers,
    bench_run,
)
from .command_line.certify_commands import certify, check, demo, init, inspect, merge, shards
from .command_line.measure_command import measure
from .command_line.paper_command import paper
from .command_line.query_commands import doctor, export, verify
from .command_line.run_commands import bundle, compare, reject, report, vipr
from .command_line.training_commands import defend, train
from .exit_codes import BUG, CLOSED_PIPE, HOLDS, INTERRUPTED, UNCHECKED, USAGE

MET_ANYWHERE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
"""A full disk, a file that is not ours and a path that cannot be are nobody's bug."""


class Commands(TyperGroup):
    """Our commands; an interrupt of any of them, a pipe that is closed and an end of file that nobody foresaw have exit
    codes of their own, whatever the version of typer: it has 1 for the last two, which means violated."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        if len(args) > 1:
            args = (args[0], with_output(args[1]), *args[2:])
        try:
            return super().make_context(*args, **options)
        except BrokenPipeError:  # --help | head -1
            raise unread() from None

    def invoke(self, ctx: Any) -> Any:
        from .interrupting import stopped_like_ctrl_c

        anew = "--no-resume" in ctx.args  # the command takes them out
        try:
            with stopped_like_ctrl_c() as heard, told_as_interrupt(heard):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise interrupted(ctx.invoked_subcommand, anew=anew) from None
        except BrokenPipeError:
            raise unread() from None
        except EOFError as error:
            raise RuntimeError("an end of file that was not foreseen") from error


@contextmanager
def told_as_interrupt(heard: Sequence[int]) -> Iterator[None]:
    """Whatever error an interrupt became: an import that it meets says "initialization failed"."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception:
        if heard:
            raise KeyboardInterrupt from None
        raise


def interrupted(command: str | None, *, anew: bool) -> typer.Exit:
    with suppress(OSError):  # the terminal may be gone
        print(f"swapproof: interrupted; {left_by(command, anew=anew)}", file=sys.stderr)
    return typer.Exit(INTERRUPTED)


def with_output(arguments: Sequence[str]) -> list[str]:
    """`--json` of bench may name a file; without one it prints, as everywhere."""
    found = list(arguments)
    for place, one in enumerate(arguments):
        if (
            found[:1] == ["bench"]
            and found[1:2] not in (["page"], ["papers"])
            and one == "--json"
            and (found[place + 1 :] or ["--"])[0].startswith("--")
        ):
            found[place] = "--json=-"
    return found


def unread() -> typer.Exit:
    """The end of a command whose output nobody reads; what is still buffered goes nowhere."""
    discard_output()
    return typer.Exit(CLOSED_PIPE)


def discard_output() -> None:
    """Python writes its buffers once more when it ends, and would then fail a second time."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def open_closed_streams() -> None:
    """A stream that was closed before we began (`>&-`) leads nowhere: the next file opened would else take its place,
    and printing would fail."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            # Open as long as we run.
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def refuse_unwritable_names(arguments: Sequence[str]) -> None:
    """Runs name their files in UTF-8, and so do the libraries that read models."""
    from swapproof.encodings.errors import BadInput

    here = []
    with suppress(OSError):  # a folder that was removed has no name
        here.append(str(Path.cwd()))
    for name in (*here, *arguments):
        if any("\udc80" <= character <= "\udcff" for character in name):
            raise BadInput(f"{name}: a name that is not UTF-8; rename it, or work in another folder")


def left_by(command: str | None, *, anew: bool) -> str:
    """What there is of an interrupted command."""
    match command:
        case "certify" | "demo" | "measure" | "attack":
            return "a run can be resumed by the same command" + (" without --no-resume" if anew else "")
        case "train":
            return "no folder was written; the same command goes on from what was kept, if the training took long"
        case "defend" | "paper":
            return "the same command goes on where it was"
        case "bench":
            return "the same command measures everything again, and a --json file begins anew with it"
    return "the same command starts from the beginning"


app = typer.Typer(
    cls=Commands,
    name="swapproof",
    help="How many words must an adversary swap for synonyms before a text classifier changes its answer? "
    "An interval with evidence at both ends.",
    epilog="Exit codes: 0 holds, 1 violated, 2 usage or bad input, 3 incomplete, 4 an answer did not check, 70 an "
    "error of ours, 130 interrupted, 141 nobody reads the output.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

COMMANDS: tuple[Callable[..., None], ...] = (
    *(
        demo,
        init,
        inspect,
        certify,
        shards,
        merge,
        check,
        report,
        compare,
        bundle,
        attack,
        measure,
        train,
        defend,
        paper,
    ),
    *(export, vipr, verify, doctor),
)
"""In the order of `--help`."""
for command in COMMANDS:
    app.command()(command)

GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "synonyms": ("Say which swaps are none.", {"reject": reject}),
    "bench": (
        "Measure engines beside outside solvers.",
        {
            "exact": bench_exact,
            "deep": bench_deep,
            "check": bench_check,
            "run": bench_run,
            "growth": bench_growth,
            "page": bench_page,
            "papers": bench_papers,
        },
    ),
}
"""Group -> its help, and its commands."""
for group, (words, members) in GROUPS.items():
    inner = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=words)
    for name, command in members.items():
        inner.command(name)(command)
    app.add_typer(inner, name=group)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Bad input is one line on stderr; anything else that fails is a bug, shown
    with its traceback."""
    open_closed_streams()
    collect_seldom()
    for variable, number in ONE_THREAD.items():
        os.environ.setdefault(variable, number)  # before numpy loads; the answer is the same with any --jobs
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looks through all that is installed, for nothing
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a text never fails to be shown
    try:
        code = ended(None if arguments is None else list(arguments))
        sys.stdout.flush()  # a pipe that is closed, or a disk that is full, may only be noticed now
    except KeyboardInterrupt:  # before a command began
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return CLOSED_PIPE
    except (ArithmeticError, NotImplementedError, OSError, ValueError) as error:
        refused = code_of(error)
        if refused is None:
            return bug()
        for line in getattr(error, "lines", None) or [one_line(error)]:
            print(f"swapproof: {line}", file=sys.stderr)
        if isinstance(error, OSError):
            discard_output()
        return refused
    except MemoryError:
        return out_of_memory()
    except Exception as error:
        return out_of_memory() if "can't allocate memory" in str(error) else bug()  # which torch says as a RuntimeError
    return code


def ended(arguments: list[str] | None) -> int:
    """The exit code of a command."""
    refuse_unwritable_names(sys.argv[1:] if arguments is None else arguments)
    try:
        app(args=arguments, prog_name="swapproof")
    except SystemExit as exit:
        return exit_code(exit)
    return HOLDS


def out_of_memory() -> int:
    jobs = ", fewer --jobs" if any(word.startswith("--jobs") for word in sys.argv) else ""
    print(f"swapproof: out of memory; a smaller file{jobs} or more memory would do", file=sys.stderr)
    return USAGE


def bug() -> int:
    traceback.print_exc()
    return BUG


def code_of(error: BaseException) -> int | None:
    """The exit code of a refusal of one of the packages; None for a bug."""
    from swapproof.encodings import errors as encodings
    from swapproof.models import errors as models
    from swapproof.proofs.writing import errors as proofs

    if isinstance(error, encodings.Disagreement | models.Disagreement):
        return UNCHECKED
    if isinstance(error, OSError) and error.errno in MET_ANYWHERE:
        return USAGE
    bad = encodings.BadInput | models.BadInput | proofs.BadInput | proofs.Unusable
    unsupported = encodings.Unsupported | models.Unsupported | proofs.Unsupported
    return USAGE if isinstance(error, bad | unsupported) else None


def one_line(error: BaseException) -> str:
    """The message, every character of it to be seen; of several problems the first, the others counted."""
    from swapproof.models.errors import visible

    first, *more = getattr(error, "problems", None) or [str(error)]
    if isinstance(error, OSError):
        first = ": ".join(str(part) for part in (error.filename, error.strerror) if part) or first
    first = visible(first.strip()) or type(error).__name__
    return f"{first} (and {len(more)} more)" if more else first


def exit_code(exit: SystemExit) -> int:
    if exit.code is None:
        return HOLDS
    return exit.code if isinstance(exit.code, int) else BUG
