"""`bench deep`: a smooth network decided by our engines, by plain enumeration and by auto_LiRPA, on the same texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate, product
from pathlib import Path

import numpy as np

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.solvers.solver_table import LIRPA_SOLVERS

from ...bench.asked_texts import lines_to, queries
from ...bench.deep_answers import DeepAnswer
from ...bench.deep_asking import Asked, Claiming, Contestant, Enumerating, Ours
from ...bench.deep_table import DeepTable
from ...bench.each_radius import asked_of
from ...bench.surroundings import surroundings
from ...engines.attention_engine import ATTENTION
from ...engines.expansion_engine import BOXES
from ...engines.outside.margin_bounds import MarginBounds
from ...engines.smooth_engines import SEQUENCE
from ...ladder.model_trial import tried
from ...ladder.replay import Replay
from ...ladder.run_certificates import Checker
from ...ladder.token_length import length_of
from ...pages.progress import progress as shown_progress
from ...runs.binding import binding_of
from ...runs.overwriting import json_with, refuse_to_replace
from ...tasks.inputs import read_inputs
from ...tasks.opened_model import opened
from ...tasks.task import read_task

SECONDS, RADIUS = 10.0, 4
DEFAULT = ("attention", "boxes", "sequence", "enumerate", "lirpa-ibp", "lirpa-crown")


def bench_deep(
    task_path: str | Path,
    engines: Sequence[str] = DEFAULT,
    limit: int | None = None,
    seconds: float = SECONDS,
    radius: int = RADIUS,
    progress: bool = False,
    json_file: Path | None = None,
    each_radius: bool = False,
) -> DeepTable:
    """Every way on each of the first `limit` texts that the model answers rightly, `seconds` for each.

    `each_radius`: every radius below is asked for too, alone, as in table 3 of the PDP paper.
    `json_file` receives a line about the machine, one for every answer as soon as it is there, and one with the totals.
    """
    if not (seconds > 0 and math.isfinite(seconds)):
        raise BadInput(f"seconds = {seconds}: a time above 0, and finite")
    if radius < 1:
        raise BadInput(f"radius = {radius}: at least 1")
    task = read_task(task_path)
    model = opened(task)
    inputs = read_inputs(task, length_of(task, model), limit, model.roles)
    if json_file is not None:
        refuse_to_replace(json_file, json_with("command", "processor", "seconds_per_text"), "--json")
    trial = tried(model, length_of(task, model), inputs, smooth=True)
    if not trial.network.is_smooth:
        raise Unsupported(f"{task_path}: a network of straight pieces; bench exact is for these")
    checker, enumerating = Checker.open(binding_of(model.path, inputs), model), Enumerating()
    chosen = contestants(engines, checker, enumerating)
    ours = tuple(one.name for one in chosen if isinstance(one, Ours))
    deployed = Replay.open(model)
    solvers = [one.engine.solver.distribution for one in chosen if isinstance(one, Claiming)]
    about = surroundings(task_path, seconds, solvers)
    answers, totals, wrong = list[DeepAnswer](), dict[int, tuple[int, ...]](), 0
    radii, alone = range(1 if each_radius else radius, radius + 1), list[tuple[int, DeepAnswer]]()
    with (
        lines_to(json_file) as write,
        shown_progress("bench", len(inputs.texts) * len(chosen) * len(radii), shown=progress) as advance,
    ):
        write(about)
        for text, query in queries(model, inputs.texts, smooth=True):
            replay = deployed.of(query.space)
            if replay.answer(np.array(query.space.original)) != query.label:
                wrong += 1
                advance(len(chosen) * len(radii))
                continue
            totals[text.id] = sentences_up_to(query.space.counts(), radius)
            for one, most in product(chosen, radii):
                answer = one.answer(Asked(text, query, replay, most, seconds))
                if most == radius:
                    answers.append(answer)
                alone += [(most, answer)] if each_radius else []
                write({**({"radius": most} if each_radius else {}), **asdict(answer)})
                advance(1)
        table = DeepTable(
            tuple(answers),
            tuple(engines),
            ours,
            totals,
            radius,
            seconds,
            wrong,
            enumerating.batch,
            about,
            asked_of(alone),
        )
        write(table.totals_line())
    return table


def contestants(names: Sequence[str], checker: Checker, enumerating: Enumerating) -> list[Contestant]:
    """By name, in the order asked for."""
    ours = [Ours(engine, checker) for engine in (ATTENTION, BOXES, SEQUENCE)]
    claiming = [Claiming(MarginBounds(solver)) for solver in LIRPA_SOLVERS]
    every: tuple[Contestant, ...] = (*ours, enumerating, *claiming)
    known = {one.name: one for one in every}
    for name in names:
        if name not in known:
            raise BadInput(f"no way of deciding is named {name!r}; there are {', '.join(known)}")
    if not names or len(set(names)) != len(names):
        raise BadInput(f"engines = {', '.join(names)!r}: each once, of {', '.join(known)}")
    for one in claiming:
        if one.name in names and not one.engine.solver.installed:
            solver = one.engine.solver
            raise Unsupported(f"{one.name} needs {solver.distribution}, which is not installed: {solver.install}")
    return [known[name] for name in names]


def sentences_up_to(counts: Sequence[int], radius: int) -> tuple[int, ...]:
    """With 1 to k swaps, for k = 1..radius."""
    exactly = [*counts[1 : radius + 1], *[0] * (radius + 1 - len(counts))]
    return tuple(accumulate(exactly[:radius]))
