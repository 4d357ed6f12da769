"""`bench exact`: our engines beside outside solvers, on the same spaces, one after the other, one thread each."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.encodings.incremental import Differences
from swapproof.encodings.milp import Floats, Program
from swapproof.encodings.network import Network
from swapproof.encodings.query import Query
from swapproof.encodings.reading import Model, network_of, open_model
from swapproof.encodings.solver_answer import Outcome
from swapproof.encodings.solvers import GUROBI, HIGHS, MILP_SOLVERS, SCIP, Solver
from swapproof.encodings.textbook import Textbook
from swapproof.encodings.tight import BEST
from swapproof.encodings.tight_rows import Options

from .comparison import Table
from .doctor import version
from .engines import ENGINES
from .engines.exact import Exact
from .engines.milp import Effort, Milp
from .engines.proof_tree import leaves
from .engines.protocol import Budget, Engine, Findings
from .engines.smt import Smt
from .inputs import Text, read_inputs
from .interval import Interval
from .ladder import climb
from .progress import progress as shown_progress
from .replay import Replay
from .store import unwritable
from .task import read_task
from .trial import length_of, tried

DEFAULT = ("exact", "gurobi", "scip", "highs")
SECONDS = 60.0
WHOLE = 1e-4
"""Solvers state bounds on a whole number of swaps with errors up to about this."""

Status = Literal["exact", "unbreakable", "open", "ambiguous", "size", "unavailable", "error"]


@dataclass(frozen=True)
class Answer:
    """What one engine says of one text: low <= min_swaps <= high, and what that took.

    `high` counts the swaps of a sentence that broke the model in onnxruntime; a solver's `low` is its claim. `refused`
    says which answer did not check.
    """

    id: int
    engine: str
    status: Status
    low: int
    high: int | None
    seconds: float
    cpu_seconds: float
    build_seconds: float = 0.0
    nodes: int | None = None
    """Of a solver's tree; of our engines the leaves of the proof."""
    evaluations: int | None = None
    program: str = ""
    """The size of what the solver was given, and how it departs from what the others were."""
    detail: str = ""
    refused: str | None = None

    @property
    def solved(self) -> bool:
        return self.status in ("exact", "unbreakable")

    @property
    def timed(self) -> bool:
        """Whether it is about speed at all: it ran."""
        return self.status not in ("size", "unavailable", "error")


class Encoding(Protocol):
    """A query as programs, one for each rival class, and the sentence that a solution stands for."""

    @property
    def remark(self) -> str: ...
    def against(self, rival: int) -> Program: ...
    def sentence(self, solution: Floats) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Rival:
    """A solver and the model it is given."""

    name: str
    encode: Callable[[Query], Encoding]
    solver: Solver

    def answer(self, id: int, query: Query, replay: Replay, seconds: float) -> Answer:
        """The minimum over rival classes, each a program of its own, all within the one time limit."""
        started = time.perf_counter()
        encoding = self.encode(query)
        writing = time.perf_counter() - started
        ceiling = len(query.space.swappable) + 1
        total = Answer(id, self.name, "open", ceiling, None, 0.0, 0.0, writing, nodes=0)
        for rival in query.rivals:
            left = seconds - total.seconds
            if left <= 0:
                return replace(total, low=1, status="open", detail="out of time")
            program = encoding.against(rival)
            outcome = self.solver.solve(program, left)
            total = replace(
                total,
                seconds=total.seconds + outcome.seconds,
                cpu_seconds=total.cpu_seconds + outcome.cpu_seconds,
                build_seconds=total.build_seconds + outcome.build_seconds,
                nodes=(total.nodes or 0) + (outcome.nodes or 0),
                low=min(total.low, claimed_low(outcome, ceiling)),
                program=f"{program.size}; {encoding.remark}" if encoding.remark else str(program.size),
                detail="; ".join(part for part in (total.detail, outcome.detail) if part),
            )
            match outcome.status:
                case "size" | "unavailable" | "error":
                    return replace(total, low=1, status=outcome.status)
                case "memory":
                    return replace(total, low=1, status="error")
                case "optimal" | "infeasible" | "time" | "stopped":
                    total = with_witness(total, outcome, encoding, query, replay)
        if total.low == ceiling and total.high is None:
            return replace(total, status="unbreakable")
        return replace(total, status="exact" if total.low == total.high else "open")


def textbook_within_licence(query: Query) -> Textbook:
    """The textbook program, without its input variables where Gurobi's free licence is too small for them.

    Gurobi and HiGHS were as fast either way (12 IMDb and 22 SST-2 texts), SCIP half as fast without input variables.
    """
    full = Textbook.of(query)
    if GUROBI.fits(full.against(query.rivals[0])):
        return full
    small = Textbook.of(query, inputs=False)
    return small if GUROBI.fits(small.against(query.rivals[0])) else full


RIVALS: tuple[Rival, ...] = (
    Rival("gurobi", textbook_within_licence, GUROBI),
    Rival("scip", Textbook.of, SCIP),
    Rival("highs", Textbook.of, HIGHS),
)
"""Whom we are compared with. Another model, or another solver, is another row."""


@dataclass(frozen=True)
class Outside:
    """A solver on our own program: its engine on the ladder, alone, its claims not proved."""

    name: str
    engine: Milp | Smt

    @property
    def solver(self) -> Solver:
        return self.engine.solver

    def answer(self, id: int, query: Query, replay: Replay, seconds: float) -> Answer:
        """Of the wall clock all is counted but the start of the child and its reading of programs."""
        Differences.of.cache_clear()
        measured = Measured(self.name, self.engine, Effort())
        wall, cpu = time.perf_counter(), time.process_time()
        verdict = climb(query, replay, [measured], Budget(deadline=time.monotonic() + seconds), lambda bound: None)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        effort, interval = measured.effort, verdict.interval
        low = max([interval.low, 1, *(claim.low for claim in verdict.claims)])
        return Answer(
            id=id,
            engine=self.name,
            status=settled_as(low, interval, effort),
            low=low,
            high=interval.high,
            seconds=wall - effort.waiting_seconds + effort.seconds,
            cpu_seconds=cpu + effort.cpu_seconds,
            build_seconds=max(0.0, effort.waiting_seconds - effort.seconds),
            nodes=effort.nodes,
            evaluations=verdict.evaluations,
            program=f"{effort.largest}, {effort.programs} programs" if effort.programs else "no program",
            detail=verdict.reason or "",
            refused=verdict.contradiction,
        )


@dataclass(frozen=True)
class Measured:
    """An engine that writes down what it costs."""

    name: str
    engine: Milp | Smt
    effort: Effort

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        yield from self.engine.measured(query, interval, budget, self.effort)


def settled_as(low: int, interval: Interval, effort: Effort) -> Status:
    if low == interval.high:
        return "exact"
    if low == interval.ceiling and interval.high is None:
        return "unbreakable"
    match effort.failed:
        case "size" | "unavailable" | "error":
            return effort.failed
        case "memory":
            return "error"
        case _:
            return "open"


VARIANTS: dict[str, Options] = {
    "": BEST,
    "/swaps": replace(BEST, objective="swaps"),
    "/indicator": replace(BEST, relu="indicator"),
    "/exclusive": replace(BEST, relu="exclusive"),
    "/pairwise": replace(BEST, maximum="pairwise"),
    "/inputs": replace(BEST, inputs=True),
    "/two-sided": replace(BEST, one_sided=False),
    "/no-probing": replace(BEST, probing=False),
    "/no-domination": replace(BEST, domination=False),
    "/no-cuts": replace(BEST, cuts=False),
    "/no-start": replace(BEST, start=False),
    "/together": replace(BEST, together=True),
}
"""Our program with one thing changed, to measure what it is worth: highs-tight/no-cuts."""
TIGHT: tuple[Outside, ...] = tuple(
    Outside(f"{solver.name}-tight{suffix}", Milp(solver, options=options, prove=False))
    for solver in MILP_SOLVERS
    for suffix, options in VARIANTS.items()
)
SMT: tuple[Outside, ...] = (
    Outside("z3", Smt(prove=False)),
    Outside("z3/swaps", Smt(fewest=True, prove=False)),
)


def claimed_low(outcome: Outcome, ceiling: int) -> int:
    """At least 1, as the text itself was replayed and is right."""
    if outcome.status == "infeasible":
        return ceiling
    return 1 if outcome.bound is None else min(ceiling, max(1, math.ceil(outcome.bound - WHOLE)))


def with_witness(total: Answer, outcome: Outcome, encoding: Encoding, query: Query, replay: Replay) -> Answer:
    """The answer narrowed by a solver's sentence, if that breaks the deployed model."""
    if outcome.solution is None:
        return total
    tokens = encoding.sentence(outcome.solution)
    swaps = len(query.space.swaps_of(tokens))
    if not replay.breaks(np.array(tokens, dtype=np.int64), query.label):
        return replace(total, refused=f"its sentence of {swaps} swaps does not break the model")
    return replace(total, high=swaps if total.high is None else min(total.high, swaps))


def own_answer(engine: Engine, id: int, query: Query, replay: Replay, seconds: float) -> Answer:
    """One of our engines on the ladder, alone: witnesses replayed, certificates not checked."""
    Differences.of.cache_clear()  # what the engine before it computed would be a present
    wall, cpu = time.perf_counter(), time.process_time()
    budget = Budget(deadline=time.monotonic() + seconds)
    verdict = climb(query, replay, [engine], budget, lambda bound: None)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    interval = verdict.interval
    return Answer(
        id=id,
        engine=engine.name,
        status="exact" if verdict.status == "already_wrong" else verdict.status,
        low=interval.low,
        high=interval.high,
        seconds=wall,
        cpu_seconds=cpu,
        nodes=None if interval.low_evidence is None else leaves(interval.low_evidence.tree),
        evaluations=verdict.evaluations,
        detail=verdict.reason or "",
        refused=verdict.contradiction,
    )


def contestants(names: Sequence[str]) -> list[Engine | Rival | Outside]:
    """Engines and rivals by name, in the order asked for."""
    known: dict[str, Engine | Rival | Outside] = {Exact().name: Exact()}
    known |= {engine.name: engine for engine in ENGINES} | {rival.name: rival for rival in RIVALS}
    known |= {one.name: one for one in (*TIGHT, *SMT)}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise BadInput(f"no engine is named {name!r}; {hint}")
    if not names:
        raise BadInput(f"no engine is named; there are {', '.join(known)}")
    if len(set(names)) != len(names):
        raise BadInput(f"an engine is named twice: {', '.join(names)}")
    return [known[name] for name in names]


def bench_exact(
    task_path: str | Path,
    engines: Sequence[str] = DEFAULT,
    limit: int | None = None,
    seconds: float = SECONDS,
    progress: bool = False,
    json_file: Path | None = None,
) -> Table:
    """Every engine on each of the first `limit` texts that the model answers rightly, `seconds` for an engine and text.

    `json_file` receives a line about the machine, one for every answer as soon as it is there, and one with the totals.
    """
    if not (seconds > 0 and math.isfinite(seconds)):
        raise BadInput(f"seconds = {seconds}: a time above 0")
    chosen = contestants(engines)
    own = next((one.name for one in chosen if not isinstance(one, Rival | Outside)), None)
    own = own or next((one.name for one in chosen if isinstance(one, Outside)), None)
    task = read_task(task_path)
    model = open_model(task.model.onnx)
    inputs = read_inputs(task, length_of(task, model), limit)
    tried(model, length_of(task, model), inputs)
    replay = Replay.open(model)
    about = surroundings(
        task_path, seconds, [one.solver.distribution for one in chosen if isinstance(one, Rival | Outside)]
    )
    answers: list[Answer] = []
    wrong = 0
    with (
        lines_to(json_file) as write,
        shown_progress("bench", len(inputs.texts) * len(chosen), shown=progress) as advance,
    ):
        write(about)
        for text, query in queries(model, inputs.texts):
            if replay.answer(np.array(query.space.original)) != query.label:
                wrong += 1
                advance(len(chosen))
                continue
            for one in chosen:
                if isinstance(one, Rival | Outside):
                    answer = one.answer(text.id, query, replay, seconds)
                else:
                    answer = own_answer(one, text.id, query, replay, seconds)
                answers.append(answer)
                write(asdict(answer))
                advance(1)
        table = Table(tuple(answers), tuple(engines), own, seconds, wrong, about)
        write(table.totals())
    return table


def queries(model: Model, texts: Iterable[Text]) -> Iterator[tuple[Text, Query]]:
    """Texts of one length in a row share their network."""
    network: Network | None = None
    for text in texts:
        space = text.frozen.space
        if network is None or network.length != space.length:
            network = network_of(model, space.length)
        yield text, Query.of(network, space, text.label)


def surroundings(task: str | Path, seconds: float, distributions: Sequence[str]) -> dict[str, Any]:
    """Where and how this was measured."""
    return {
        "command": shlex.join(sys.argv),
        "task": str(task),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {
            name: version(name) or "absent"
            for name in dict.fromkeys(("swapproof", "numpy", "onnxruntime", *distributions))
        },
        "seconds_per_text": seconds,
        "numpy_threads": os.environ.get("OMP_NUM_THREADS", "as many as numpy likes"),
    }


def processor() -> str:
    """Its name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


@contextmanager
def lines_to(file: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Writes JSON lines, each at once, so that an interrupted run leaves what it has measured."""
    if file is None:
        yield lambda line: None
        return
    try:
        stream = file.open("w", encoding="utf-8")
    except OSError as error:
        raise unwritable(file, error) from error

    def write(line: dict[str, Any]) -> None:
        try:
            stream.write(json.dumps(line) + "\n")
            stream.flush()
        except OSError as error:
            raise unwritable(file, error) from error

    with stream:
        yield write
