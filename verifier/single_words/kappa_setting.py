"""What `measure --quantity kappa` measures: a task read, its model opened and tried, D+, and what brute force costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_of

from ..ladder.model_trial import tried
from ..ladder.replay import Replay
from ..ladder.token_length import length_of
from ..tasks.inputs import Inputs, read_inputs
from ..tasks.opened_model import opened
from ..tasks.task import Task
from .answered_texts import Answered, answered_deployed, answered_over_reals
from .brute_force import Cost, cost_of
from .replacements import Candidates

NETWORKS = 4
"""Lengths of texts whose network is kept."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What is measured, and how it may be asked."""

    task: Task
    model: Model
    inputs: Inputs
    candidates: Candidates
    replay: Replay
    network: Callable[[int], Network] | None
    """None for a model that we cannot read."""
    obstacle: str
    """Why we cannot."""
    level: str
    """Whose answers make D+: `real`, or `replay` as deployed."""
    answered: Answered

    @cached_property
    def cost(self) -> Cost:
        """Of brute force, measured when it is first asked for."""
        return cost_of(self.replay.answers, self.candidates.tokens, self.answered.subjects)


def set_up(task: Task, limit: int | None, *, deployed: bool) -> Setting:
    """Read everything; `deployed`: the model's answers decide, also where we can read it."""
    model = opened(task)
    if len(model.inputs) > 1:
        names = ", ".join(one.name for one in model.inputs)
        raise Unsupported(f"{model.named}: kappa is measured of models with one input, the tokens; it reads {names}")
    inputs = read_inputs(task, length_of(task, model), limit)
    candidates = Candidates.of(inputs.vocabulary)
    if not candidates.words:
        raise BadInput(f"{inputs.vocabulary.source}: no word consists of letters and is one token: nothing to try")
    replay = Replay.open(model)
    obstacle = why_unreadable(model, task, inputs)
    network = lru_cache(maxsize=NETWORKS)(lambda length: network_of(model, length)) if obstacle is None else None
    if network is not None and not deployed:
        level, answered = "real", answered_over_reals(network, replay, inputs.texts)
    else:
        level, answered = "replay", answered_deployed(replay, inputs.texts)
    if not answered.texts:
        unsure = len(answered.ambiguous)
        reason = f" whatever the rounding, which decides {unsure} of them" if unsure else ""
        raise BadInput(f"{task.data.file}: the model answers no text correctly{reason}, so kappa is not defined")
    return Setting(task, model, inputs, candidates, replay, network, obstacle or "", level, answered)


def why_unreadable(model: Model, task: Task, inputs: Inputs) -> str | None:
    """None for a network that can be read and answers as onnxruntime does."""
    try:
        network = tried(model, length_of(task, model), inputs).network
    except Unsupported as error:
        return str(error)
    return None if network.choices is None else "the model computes with tokens, so that every text has its own network"
