"""`bench exact`: the exact engine beside MILP solvers on the textbook model, same frozen spaces, one thread each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from swapproof.encodings.errors import BadInput
from swapproof.encodings.query import Query
from swapproof.encodings.reading import network_of, open_model
from swapproof.encodings.textbook import textbook_model
from swapproof.encodings.textbook_solvers import SOLVERS

from .engines.exact import Exact
from .engines.proof_tree import leaves
from .engines.protocol import Bound, Budget, Sentence, Stopped
from .engines.truth import exactly_beaten
from .inputs import read_inputs
from .interval import Interval, Proof, Witness
from .task import read_task
from .trial import length_of

OURS = "exact"
Progress = Callable[[int, int], None]
"""(texts done, texts in all)."""


@dataclass(frozen=True)
class Timing:
    """One engine on one text; `high` None: it knows no witness. `closed`: it says this is the whole answer."""

    id: int
    positions: int
    candidates: int
    engine: str
    seconds: float
    low: int
    high: int | None
    closed: bool
    note: str = ""

    @property
    def answer(self) -> tuple[int, int | None] | None:
        return (self.low, self.high) if self.closed else None


@dataclass(frozen=True)
class Comparison:
    """One engine against ours, over the texts that ours closed."""

    engine: str
    texts: int
    unfinished: int
    median_ratio: float
    total_ratio: float
    disagreements: tuple[int, ...]


def bench_exact(
    task_path: Path, engines: Sequence[str], limit: int | None, seconds: float, progress: Progress
) -> list[Timing]:
    """Every engine on every text that the network answers rightly. A text may cost `seconds` per engine.

    Texts are taken in order; the solvers' time is that of solving alone, without building the model. numpy's own
    threads are the caller's affair: OMP_NUM_THREADS=1.
    """
    unknown = [name for name in engines if name != OURS and name not in SOLVERS]
    if unknown:
        raise BadInput(f"no engine is named {unknown[0]!r}; there are {', '.join([OURS, *SOLVERS])}")
    rows: list[Timing] = []
    for done, total, id, query in queries(task_path, limit):
        if not exactly_beaten(query, query.space.original)[0]:
            rows += [timing(name, id, query, seconds) for name in engines]
        progress(done, total)
    return rows


def queries(task_path: Path, limit: int | None) -> Iterator[tuple[int, int, int, Query]]:
    """(texts so far, texts in all, id, query)."""
    task = read_task(task_path)
    model = open_model(task.model.onnx)
    inputs = read_inputs(task, length_of(task, model), limit)
    networks = {}
    for number, text in enumerate(inputs.texts, start=1):
        length = text.frozen.space.length
        if length not in networks:
            networks = {length: network_of(model, length)}
        yield number, len(inputs.texts), text.id, Query.of(networks[length], text.frozen.space, text.label)


def timing(engine: str, id: int, query: Query, seconds: float) -> Timing:
    spent, low, high, closed, note = ours(query, seconds) if engine == OURS else theirs(engine, query, seconds)
    space = query.space
    return Timing(id, len(space.swappable), space.candidates, engine, spent, low, high, closed, note)


def ours(query: Query, seconds: float) -> tuple[float, int, int | None, bool, str]:
    """Sentences are judged by exact arithmetic, bounds are taken as they come: checking is timed elsewhere."""
    interval = Interval(ceiling=len(query.space.swappable) + 1)
    started = time.perf_counter()
    steps = Exact().narrow(query, interval, Budget(deadline=time.monotonic() + seconds))
    finding, note = next(steps, None), ""
    while finding is not None:
        match finding:
            case Sentence(tokens):
                interval = interval.lowered(Witness(query.space.swaps_of(tokens), True, OURS))
            case Bound(low, tree, level):
                interval = interval.raised(low, Proof(tree, level, OURS))
                note = f"{leaves(tree)} leaves"
            case Stopped(reason):
                note = reason
            case _:
                pass
        try:
            finding = steps.send(interval)
        except StopIteration:
            finding = None
    return time.perf_counter() - started, interval.low, interval.high, interval.closed, note


def theirs(solver: str, query: Query, seconds: float) -> tuple[float, int, int | None, bool, str]:
    """One model per rival, the time added up; a claimed witness counts when exact arithmetic confirms it."""
    spent, low, high, closed = 0.0, query.space.length + 1, None, True
    notes = []
    for rival in query.rivals:
        milp = textbook_model(query, rival)
        claim = SOLVERS[solver](milp, max(0.01, seconds - spent))
        spent += claim.seconds
        closed = closed and claim.finished
        low = min(low, int(min(claim.low, len(query.space.swappable) + 1)))
        if claim.note:
            notes.append(claim.note)
        if claim.values is not None:
            tokens = milp.sentence(query, claim.values)
            swaps = len(query.space.swaps_of(tokens))
            if not exactly_beaten(query, tokens)[0]:
                notes.append(f"its witness of {swaps} swaps does not break the network")
            elif high is None or swaps < high:
                high = swaps
    return spent, low, high, closed, "; ".join(notes)


def compared(rows: Sequence[Timing], engine: str) -> Comparison:
    """Ratios of another engine's seconds to ours; one that did not finish counts with the seconds it was given."""
    mine = {row.id: row for row in rows if row.engine == OURS and row.closed}
    other = [row for row in rows if row.engine == engine and row.id in mine]
    ratios = [row.seconds / max(mine[row.id].seconds, 1e-9) for row in other]
    total = sum(mine[row.id].seconds for row in other)
    differ = [row.id for row in other if row.answer is not None and row.answer != mine[row.id].answer]
    return Comparison(
        engine,
        len(other),
        sum(not row.closed for row in other),
        median(ratios) if ratios else 0.0,
        sum(row.seconds for row in other) / total if total else 0.0,
        tuple(differ),
    )
