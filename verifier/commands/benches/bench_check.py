"""`bench check`: one run checked by every checker there is, one after the other, beside the time it took to make."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.encodings.solvers.one_thread import ONE_THREAD
from swapproof.models.errors import unreadable
from swapproof.proofs import check

from ...bench.checker_timings import Timing, Timings
from ...pages.progress import progress
from ...pages.terminal import terminal
from ...runs.overwriting import json_with, refuse_to_replace
from ...runs.run_folder import Run, existing
from ...runs.store import unwritable

SECONDS = 600.0
OURS = "import sys; from swapproof.verifier.cli import main; sys.exit(main())"
"""The command swapproof, of this very installation."""
ONE_BY_ONE = """import subprocess, sys
checker, *files = sys.argv[1:]
codes = [subprocess.call([sys.executable, "-I", "-S", checker, one], stdout=subprocess.DEVNULL) for one in files]
accepted = codes.count(0)
print(f"accepted {accepted} of {len(files)}")
sys.exit(0 if accepted == len(files) else max(codes))
"""
"""A checker of single files on each file of a run."""


def bench_check(folder: Path, seconds: float = SECONDS, json_file: Path | None = None) -> Timings:
    """`swapproof check`, check.py or check_ball.py, and check.js where there is node, at most `seconds` each."""
    run = existing(folder)
    if json_file is not None:
        refuse_to_replace(json_file, json_with("run", "made_seconds", "checkers"), "--json")
    sizes = [path.stat().st_size for path in run.certificates.glob("*.json")]
    if not sizes:
        raise BadInput(f"{folder}: holds no certificates; run certify or measure --quantity pr again")
    texts, made = made_in(run)
    commands = checkers(folder)
    found = []
    with progress("bench", len(commands)) as advance:
        for name, command in commands.items():
            found.append(timed(name, command, seconds))
            advance(1)
    timings = Timings(str(folder), texts, len(sizes), sum(sizes) / 1e6, made, tuple(found))
    if json_file is not None:
        try:
            json_file.write_text(json.dumps(asdict(timings)) + "\n", encoding="utf-8")
        except OSError as error:
            raise unwritable(json_file, error) from error
    return timings


def checkers(folder: Path) -> dict[str, Sequence[str]]:
    """Their command lines."""
    ours = Path(str(check.__file__))
    commands: dict[str, Sequence[str]] = {
        "swapproof check": [sys.executable, "-c", OURS, "check", str(folder), "--jobs", "1"],
    }
    files = sorted(map(str, Run(folder).certificates.glob("*.json")))
    if is_of_balls(Path(files[0])):
        alone = ours.with_name("check_ball.py")
        commands["check_ball.py"] = [sys.executable, "-I", "-S", "-c", ONE_BY_ONE, str(alone), *files]
    else:
        commands["check.py"] = [sys.executable, "-I", "-S", str(ours), str(folder)]
    node = shutil.which("node")
    if node is not None:
        commands["check.js"] = [node, str(ours.with_suffix(".js")), str(folder)]
    return commands


def is_of_balls(certificate: Path) -> bool:
    try:
        top = json.loads(certificate.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(top, dict) and top.get("format") == "swapproof ball certificate"


def timed(name: str, command: Sequence[str], seconds: float) -> Timing:
    before, started = os.times(), time.perf_counter()
    environment = {**os.environ, **ONE_THREAD}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment, check=False)
    except subprocess.TimeoutExpired:
        accepted, last = None, f"stopped after {seconds:g} s"
    else:
        accepted = done.returncode == 0
        last = ([*done.stderr.splitlines()[-1:], *done.stdout.splitlines()] or [""])[-1]
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Timing(name, time.perf_counter() - started, cpu, accepted, last)


def made_in(run: Run) -> tuple[int, float]:
    """The number of texts, and their seconds together."""
    try:
        lines = run.results.read_bytes().splitlines()
    except OSError as error:
        raise unreadable(run.results, error) from error
    return len(lines), sum(seconds_in(line, f"{run.results} line {number}") for number, line in enumerate(lines, 1))


def seconds_in(line: bytes, where: str) -> float:
    try:
        return float(json.loads(line)["seconds"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{where}: does not say how long the text took ({error}); run certify again") from error


def print_timings(timings: Timings) -> None:
    from rich.table import Table

    from ...pages.tables import print_table

    table = Table(title=f"{timings.certificates} certificates, {timings.megabytes:.2f} MB", title_justify="left")
    table.add_column("checker")
    for name in ("seconds", "CPU seconds", "CPU ratio", "seconds by the run's"):
        table.add_column(name, justify="right")
    table.add_column("its last line")
    first = timings.checkers[0]
    for timing in timings.checkers:
        more = "" if timing.accepted is not None else "> "
        table.add_row(
            timing.checker,
            f"{more}{timing.seconds:.2f}",
            f"{timing.cpu_seconds:.2f}",
            f"{more}{timing.cpu_seconds / max(first.cpu_seconds, 1e-9):.1f}",
            f"{more}{timing.seconds / max(timings.made_seconds, 1e-9):.3f}",
            timing.last,
        )
    console = terminal()
    print_table(console, table)
    console.print(
        f"The run's own seconds: {timings.made_seconds:.2f} for {timings.texts} texts, engines and the check of their "
        "proofs, without starting up, reading the task and writing. CPU ratio: by those of swapproof check."
    )
