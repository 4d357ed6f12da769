"""The model of a task as it is deployed: a function from sentences to scores."""

from __future__ import annotations

from dataclasses import dataclass

from swapproof.models.deployed.cached import Cached
from swapproof.models.deployed.classifier import Classifier
from swapproof.models.deployed.kinds import open_classifier

from .task import Task

FOREIGN = ("callable", "sklearn", "hf")
"""Kinds whose models are code of others, which may end the process that they are in: it is not the command's."""


@dataclass(frozen=True)
class Trust:
    """What a user allows by an option of the command, because it runs code or sends texts away."""

    pickle: bool = False
    endpoint: bool = False


def open_deployed(task: Task, trust: Trust, threads: int = 1) -> Classifier:
    deployment = task.model.deployment(
        fields=task.data.fields,
        moving=task.data.moving,
        threads=threads,
        trust_pickle=trust.pickle,
        allow_endpoint=trust.endpoint,
    )
    classifier = open_classifier(deployment)
    if (own := classifier.identity.answered) is not None:
        task.model.decision.refuse_other_meaning(deployment.source, own)
    return Cached(classifier) if deployment.kind == "endpoint" else classifier  # a request costs more than memory
