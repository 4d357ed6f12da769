"""A few texts through the model as a draft describes it: its scores, and what they show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from swapproof.models.deployed.cached import Cached
from swapproof.models.deployed.classifier import Classifier, NoAnswer, Scores
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.deployed.swapped_text import Fields
from swapproof.models.errors import BadInput

from ..tasks.sections import ModelSection, Section
from ..tasks.task import SECTIONS, Problems, problems_of
from .beginning_state import Beginning
from .decisions import as_setting
from .drafts import Draft

NAMED = 8
"""Texts that show whether answers name their classes."""
PLACEHOLDER = ["a", "b"]
"""Labels of a draft that has none yet; opening a model does not ask for them."""


@dataclass(frozen=True)
class Tried:
    """`scores`: a row for each sentence, NaN where there was no answer."""

    classifier: Classifier
    scores: Scores
    unanswered: tuple[str, ...]
    """Why, of the sentences without an answer."""


def section_of(draft: Draft, labels: Any = None) -> ModelSection:
    """The draft's [model] as a task file's."""
    values = {key: str(value) if isinstance(value, Path) else value for key, value in draft.values("model").items()}
    values = {"labels": PLACEHOLDER, **values, **({} if labels is None else {"labels": labels})}
    if isinstance(values["labels"], list | dict) and len(values["labels"]) != 2:
        values = {key: value for key, value in values.items() if key not in ("threshold", "column")}
    found = validated("model", values)
    if not isinstance(found, ModelSection):
        raise TypeError("another section")
    return found


def check_settings(draft: Draft, data: Path) -> None:
    """What the user says, before anything is made of it."""
    section_of(draft)
    validated("data", {**draft.values("data"), "file": str(data)})
    validated("require", draft.values("require"))


def validated(section: str, values: dict[str, Any]) -> Section:
    try:
        return SECTIONS[section].model_validate(values, context={"folder": Path.cwd()})
    except ValidationError as error:
        located = [{**problem, "loc": (section, *problem["loc"])} for problem in error.errors()]
        raise Problems([f"--set: {problem}" for problem in problems_of(located)]) from None


def opened(draft: Draft, fields: int, moving: int | None, labels: Any = None, **trust: bool) -> Classifier:
    """`labels`: for models whose answers name their classes."""
    deployment = section_of(draft, labels).deployment(fields=fields, moving=moving, **trust)
    try:
        return Cached(open_classifier(deployment))
    except BadInput as error:
        raise BadInput(as_setting(str(error))) from error


def scored(classifier: Classifier, sentences: Sequence[Fields]) -> Tried:
    """All at once; where that fails each alone, so that one bad text costs no other its answer."""
    try:
        return Tried(classifier, rows_of(classifier, sentences), ())
    except NoAnswer as error:
        rows: list[Scores | None] = []
        reasons = []
        for sentence in sentences:
            try:
                rows.append(rows_of(classifier, [sentence]))
            except NoAnswer as refused:
                rows.append(None)
                reasons.append(str(refused))
        known = next((row for row in rows if row is not None), None)
        if known is None:
            raise BadInput(str(error)) from None
        none = np.full_like(known, np.nan)
        return Tried(classifier, np.concatenate([none if row is None else row for row in rows]), tuple(reasons))


def rows_of(classifier: Classifier, sentences: Sequence[Fields]) -> Scores:
    scores = np.asarray(classifier.scores(sentences), dtype=np.float64)
    return scores[:, None] if scores.ndim == 1 else scores


def class_names(classifier: Classifier) -> list[str] | None:
    """What the model calls its classes, in the order of its scores."""
    inner = classifier.classifier if isinstance(classifier, Cached) else classifier
    facts = inner.identity.facts
    if "labels" in facts:
        return list(map(str, json.loads(str(facts["labels"]))))
    classes = getattr(inner, "classes", None)
    return list(map(str, classes)) if isinstance(classes, tuple) else None


def names_its_answers(begun: Beginning, tried: Tried, labels: Any) -> bool:
    """Whether scores follow the names of the classes: with these in another order they come in that order too."""
    if begun.pointed.kind not in ("callable", "endpoint") or not isinstance(labels, list):
        return False
    known = np.flatnonzero(~np.isnan(tried.scores).any(axis=1))[:NAMED]
    if tried.scores.shape[1] != len(labels) or not len(known):
        return False
    sentences = [begun.few.sentences[place] for place in known]
    turned = opened(begun.draft, len(sentences[0]), begun.moving, labels[::-1], **begun.trust)
    scores, before = rows_of(turned, sentences), tried.scores[known]
    return bool((scores == before[:, ::-1]).all() and not (scores == before).all())
