"""What the answers to a few texts say: how many classes there are, what the scores mean, which labels fit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from swapproof.models.deployed.decision import Decision
from swapproof.models.errors import BadInput
from swapproof.models.recognition.class_labels import Labels, folded, labels_of, stated
from swapproof.models.recognition.score_meanings import Meaning, Scores, meaning_of

from .beginning_state import Few
from .label_fit import Fit, fit_of
from .trying import Tried


@dataclass(frozen=True)
class Assessment:
    tried: Tried
    meaning: Scores
    labels: Labels
    decision: Decision
    answers: NDArray[np.int64]
    fit: Fit

    @property
    def classes(self) -> int:
        return len(self.labels.names)

    def relabelled(self, labels: Labels, few: Few) -> Assessment:
        return assessed(self.tried, self.meaning, labels, self.decision, few)


def assessed(tried: Tried, meaning: Scores, labels: Labels, decision: Decision, few: Few) -> Assessment:
    answers = decision.answers(tried.scores)
    fit = fit_of(answers, [labels.golds[value] for value in few.labels], len(labels.names))
    return Assessment(tried, meaning, labels, decision, answers, fit)


def assess(
    tried: Tried,
    few: Few,
    names: Sequence[str] | None,
    head: str | None,
    given: dict[str, object],
) -> list[Assessment]:
    """One for each way in which the scores may be meant: several where each column is a question of its own."""
    outputs = tried.scores.shape[1]
    meaning = meaning_of(tried.scores, head)
    own = tried.classifier.identity.answered
    if own is not None and outputs == 1:  # few of its numbers may all lie between 0 and 1
        meaning = Scores(own.meaning, False, "as its kind of model answers", True)
    if "scores" in given:
        meaning = stated_meaning(str(given["scores"]), meaning, outputs)
    threshold = given.get("threshold")
    share = threshold if isinstance(threshold, float) else None
    column = given.get("column")
    columns: list[int | None] = [None]
    if outputs > 1 and type(column) is int:
        columns = [column]
    elif outputs > 1 and meaning.several and not as_classes(few, names, outputs):
        columns = list(range(outputs))
    classes = outputs if columns == [None] and outputs > 1 else 2
    labels = (
        stated(given["labels"], few.found, few.where)
        if "labels" in given
        else labels_of(few.found, names if columns == [None] else None, classes, few.where)
    )
    if len(labels.names) != classes:
        raise BadInput(
            f"the model answers {outputs} {'score' if outputs == 1 else 'scores'}, which is {classes} classes, and "
            f"labels names {len(labels.names)}: {', '.join(labels.names)}"
        )
    return [assessed(tried, meaning, labels, Decision(classes, meaning.meaning, share, at), few) for at in columns]


def as_classes(few: Few, names: Sequence[str] | None, outputs: int) -> bool:
    """Whether the labels of the data are the columns themselves, so that the greatest score wins."""
    known = {folded(name) for name in names or ()}
    return {folded(value) for value in few.found} <= known or (len(few.found) == outputs and outputs > 2)


def stated_meaning(said: str, seen: Scores, outputs: int) -> Scores:
    """What the user says of the scores, where the scores themselves do not say otherwise."""
    if said == "probabilities" and seen.meaning == "logits":
        raise BadInput(f"--set scores=probabilities, and the scores are {seen.reason}: say logits")
    if said == "log_probabilities" and seen.meaning != "log_probabilities":
        raise BadInput(f"--set scores=log_probabilities, and the scores are {seen.reason}")
    if said == "sigmoid" and seen.meaning == "logits":
        raise BadInput(f"--set scores=sigmoid, and the scores are {seen.reason}: say logits")
    several = said == "sigmoid" and outputs > 1
    return Scores(cast(Meaning, said), several, "as you said", True)
