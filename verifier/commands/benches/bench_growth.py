"""`bench growth`: time, regions and certificate size as texts, networks and their number grow."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.solvers.one_thread import ONE_THREAD

from ...bench.answers import Answer
from ...bench.comparison import Comparison
from ...bench.growth.grown_texts import Size, grown_text, write_many
from ...bench.growth.growth_laws import COLUMNS, DEFINITION, LAWS, Growth, Point, point_of
from ...bench.own_answers import own_answer
from ...bench.rivals import RIVALS
from ...bench.surroundings import surroundings
from ...engines.exact_engine import Exact
from ...pages.progress import progress as shown_progress
from ...pages.terminal import terminal
from ...runs.overwriting import json_with, refuse_to_replace
from ...runs.store import unwritable

OURS = "import sys; from swapproof.verifier.cli import main; sys.exit(main())"
"""The command swapproof, of this very installation."""
NUMBER = "texts"
"""What grows when it is the number of texts."""


@dataclass(frozen=True)
class Plan:
    """Sizes to go through, each while the others stay as they are in `Size`, and texts of each."""

    positions: tuple[int, ...]
    candidates: tuple[int, ...]
    hidden: tuple[int, ...]
    minimum: tuple[int, ...]
    texts: tuple[int, ...]
    each: int
    seconds: float
    middle: Size


SIZES = {
    "small": Plan((10, 20, 40), (2, 4), (8, 16), (1, 2), (5,), 1, 2.0, Size(20, 3, 16, 2)),
    "default": Plan(
        (25, 50, 100, 200, 400), (2, 4, 8, 16, 32), (16, 64, 256, 1024), (2, 4, 8, 16), (10, 100, 1000), 3, 10.0, Size()
    ),
    "full": Plan(
        (25, 50, 100, 200, 400),
        (2, 4, 8, 16, 32),
        (16, 32, 64, 128, 256, 512, 1024),
        (1, 2, 4, 6, 8, 10, 12, 16),
        (10, 100, 1000, 10_000),
        10,
        60.0,
        Size(),
    ),
}


def bench_growth(
    size: str = "default",
    engines: Sequence[str] = ("exact", "gurobi"),
    seconds: float | None = None,
    texts: int | None = None,
    seed: int = 1,
    progress: bool = False,
    json_file: Path | None = None,
) -> Growth:
    """Every engine at every size; `seconds` for an engine and text, `texts` of each size."""
    if size not in SIZES:
        raise BadInput(f"--size {size}: there are {', '.join(SIZES)}")
    plan = SIZES[size]
    plan = replace(
        plan, seconds=plan.seconds if seconds is None else seconds, each=plan.each if texts is None else texts
    )
    if not (plan.seconds > 0 and math.isfinite(plan.seconds)):
        raise BadInput(f"seconds = {plan.seconds}: a time above 0, and finite")
    known = {"exact": None, **{rival.name: rival for rival in RIVALS}}
    unknown = [name for name in engines if name not in known]
    if unknown or not engines or len(set(engines)) < len(engines):
        raise BadInput(f"--engines {','.join(engines)}: different ones of {', '.join(known)}")
    if json_file is not None:
        refuse_to_replace(json_file, json_with("command", "points", "laws"), "--json")
    rivals = [rival for rival in RIVALS if rival.name in engines]
    about = surroundings(f"random, seed {seed}", plan.seconds, [rival.solver.distribution for rival in rivals])
    points: list[Point] = []
    every: list[Answer] = []
    steps = [(of, value) for of in ("positions", "candidates", "hidden", "minimum") for value in getattr(plan, of)]
    with (
        tempfile.TemporaryDirectory() as folder,
        shown_progress("bench", len(steps) + len(plan.texts), shown=progress) as advance,
    ):
        for of, value in steps:
            found: dict[str, list[Answer]] = {name: [] for name in engines}
            for number in range(plan.each):
                query, deployed = grown_text(replace(plan.middle, **{of: value}), seed + number, Path(folder))
                replay, id = deployed.of(query.space), len(every)
                for name in engines:
                    rival = known[name]
                    if rival is None:
                        answer = own_answer(Exact(), id, query, replay, plan.seconds)
                    else:
                        answer = rival.answer(id, query, replay, plan.seconds)
                    found[name].append(answer)
                every += [answers[-1] for answers in found.values()]
            points += [point_of(of, value, name, answers) for name, answers in found.items()]
            advance(1)
        if "exact" in engines:
            for value in plan.texts:
                points.append(certified(value, seed, Path(folder)))
                advance(1)
    own = "exact" if "exact" in engines else None
    growth = Growth(tuple(points), Comparison(tuple(every), tuple(engines), own, plan.seconds, 0, about), about)
    if json_file is not None:
        try:
            json_file.write_text(json.dumps(as_json(growth)) + "\n", encoding="utf-8")
        except OSError as error:
            raise unwritable(json_file, error) from error
    return growth


def certified(texts: int, seed: int, folder: Path) -> Point:
    """`swapproof certify` on so many short texts, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        task, run = write_many(texts, seed, Path(inside)), Path(inside) / "run"
        before, started = os.times(), time.perf_counter()
        command = [sys.executable, "-c", OURS, "certify", str(task), "--out", str(run), "--jobs", "1"]
        done = subprocess.run(command, capture_output=True, env={**os.environ, **ONE_THREAD}, check=False)
        wall, after = time.perf_counter() - started, os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        if done.returncode:
            return Point(NUMBER, texts, "exact", texts, 0, None, None, None, None, None, f"exit code {done.returncode}")
        lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
        settled = sum(line["status"] in ("exact", "unbreakable", "already_wrong") for line in lines)
        size = sum(path.stat().st_size for path in (run / "certificates").glob("*.json"))
        return Point(
            NUMBER, texts, "exact", texts, settled, wall, cpu, None, size, None, "" if settled == texts else "open"
        )


def as_json(growth: Growth) -> dict[str, Any]:
    return {
        "exit_code": growth.comparison.exit_code,
        **growth.about,
        "points": [asdict(point) for point in growth.points],
        "laws": [
            {"grows": of, "engine": engine, "of": quantity, **asdict(law)}
            for of, engine, quantity, law in growth.laws()
        ],
        "disagreements": list(growth.comparison.disagreements),
        "definition": DEFINITION,
    }


def print_growth(growth: Growth) -> None:
    from rich.table import Table

    from ...bench.comparison import where
    from ...pages.tables import print_table

    console = terminal()
    for columns, rows in (
        (COLUMNS, growth.rows()),
        (LAWS, ((of, engine, quantity, str(law)) for of, engine, quantity, law in growth.laws())),
    ):
        table = Table()
        for column in columns:
            table.add_column(column, justify="right" if column in COLUMNS[3:9] else "left")
        for row in rows:
            table.add_row(*row)
        print_table(console, table)
    console.print(f"{DEFINITION}\n", style="dim")
    for disagreement in growth.comparison.disagreements:
        console.print(disagreement, style="bold red")
    console.print(f"Disagreements: {len(growth.comparison.disagreements)}")
    console.print(where(growth.about), style="dim")
