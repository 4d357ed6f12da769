"""`bench exact`: our engines beside outside solvers, on the same spaces, one after the other, one thread each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from swapproof.encodings.errors import BadInput

from ...bench.answers import Answer
from ...bench.asked_texts import lines_to, queries
from ...bench.comparison import Comparison
from ...bench.own_answers import own_answer
from ...bench.rivals import RIVALS, SMT, TIGHT, Outside, Rival
from ...bench.surroundings import surroundings
from ...engines.engine_table import ENGINES, SMALL_PROOFS
from ...engines.exact_engine import Exact
from ...engines.protocol import Engine
from ...ladder.model_trial import tried
from ...ladder.replay import Replay
from ...ladder.token_length import length_of
from ...pages.progress import progress as shown_progress
from ...runs.overwriting import json_with, refuse_to_replace
from ...tasks.inputs import read_inputs
from ...tasks.opened_model import opened
from ...tasks.task import read_task

DEFAULT = ("exact", "gurobi", "scip", "highs")
SECONDS = 60.0


def contestants(names: Sequence[str]) -> list[Engine | Rival | Outside]:
    """Engines and rivals by name, in the order asked for."""
    known: dict[str, Engine | Rival | Outside] = {engine.name: engine for engine in SMALL_PROOFS.values()}
    known |= {engine.name: engine for engine in (Exact(), *ENGINES)} | {rival.name: rival for rival in RIVALS}
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
) -> Comparison:
    """Every engine on each of the first `limit` texts that the model answers rightly, `seconds` for an engine and text.

    `json_file` receives a line about the machine, one for every answer as soon as it is there, and one with the totals.
    """
    if not (seconds > 0 and math.isfinite(seconds)):
        raise BadInput(f"seconds = {seconds}: a time above 0, and finite")
    chosen = contestants(engines)
    if json_file is not None:
        refuse_to_replace(json_file, json_with("command", "processor", "seconds_per_text"), "--json")
    own = next((one.name for one in chosen if not isinstance(one, Rival | Outside)), None)
    own = own or next((one.name for one in chosen if isinstance(one, Outside)), None)
    task = read_task(task_path)
    model = opened(task)
    inputs = read_inputs(task, length_of(task, model), limit, model.roles)
    tried(model, length_of(task, model), inputs)
    deployed = Replay.open(model)
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
            replay = deployed.of(query.space)
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
        table = Comparison(tuple(answers), tuple(engines), own, seconds, wrong, about)
        write(table.totals())
    return table
