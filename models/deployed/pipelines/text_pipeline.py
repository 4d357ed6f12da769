"""A scikit-learn model from texts to classes: the steps that make numbers of texts, and the classifier after them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BadInput, one_line
from ..classifier import NoAnswer, Scores
from ..decision import Answered, Meaning

METHODS: dict[str, Meaning] = {
    "decision_function": "logits",
    "predict_joint_log_proba": "logits",
    "predict_proba": "probabilities",
    "predict": "probabilities",
}
"""What each answers. In this order: the first two are what `predict` is computed from, and nothing in them is rounded
to 0 or 1."""
FALSE_MAJORITIES = frozenset({"FixedThresholdClassifier", "TunedThresholdClassifierCV"})
"""Their `predict` does not follow their scores."""
PROBES = ("one text", "another text, of a few more words")


@contextmanager
def quiet() -> Iterator[None]:
    """Warnings of every batch say nothing new: those of loading are remarks already."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True, eq=False)
class TextPipeline:
    """`method` of `head`, the classifier, is what answers; `chosen` by the task file, or because `predict` follows."""

    before: tuple[Any, ...]
    head: Any
    method: str
    chosen: bool = False

    @cached_property
    def classes(self) -> tuple[Any, ...]:
        return tuple(np.asarray(self.head.classes_).tolist())

    def features(self, texts: Sequence[str]) -> Any:
        """What the classifier reads."""
        return self.after(0, list(texts))

    def after(self, step: int, reads: Any) -> Any:
        """What the steps from this one on make of what they read."""
        for transformer in self.before[step:]:
            reads = transformer.transform(reads)
        return reads

    def scores(self, features: Any) -> Scores:
        """[texts, scores]; NoAnswer where `predict` says otherwise."""
        predicted = np.asarray(self.head.predict(features)) if not self.chosen or self.method == "predict" else None
        if self.method == "predict" and predicted is not None:
            return np.asarray(self.numbers(predicted)[:, None] == np.arange(len(self.classes)), dtype=np.float64)
        scores = self.raw(features)
        if predicted is not None:
            self.compare(scores, predicted)
        return scores

    def raw(self, features: Any) -> Scores:
        """What the method answers, whatever `predict` says."""
        scores = np.asarray(getattr(self.head, self.method)(features), dtype=np.float64)
        return scores[:, None] if scores.ndim == 1 else scores

    @cached_property
    def answered(self) -> Answered:
        outputs = len(self.classes) if self.method == "predict" else self.raw(self.features(PROBES)).shape[1]
        return Answered(METHODS[self.method], outputs)

    def compare(self, scores: Scores, predicted: NDArray[Any]) -> None:
        told = ~np.isnan(scores).any(axis=1)
        if predicted.ndim == 2:  # several questions, each with a score of its own
            differ = (scores > self.border) != (predicted > 0)
            if differ[told].any():
                raise NoAnswer(f"predict and {self.method} answer a text differently")
            return
        numbers = self.numbers(predicted)
        wins = scores[:, 0] > self.border if scores.shape[1] == 1 else scores.argmax(axis=1)
        if (differ := told & (wins != numbers)).any():
            place = int(np.argmax(differ))
            said, scored = self.classes[numbers[place]], self.classes[int(wins[place])]
            raise NoAnswer(f"predict answers {said!r} where {self.method} answers {scored!r}")

    @property
    def border(self) -> float:
        """What the score of one question must exceed."""
        return 0.5 if METHODS[self.method] == "probabilities" else 0.0

    def numbers(self, predicted: NDArray[Any]) -> NDArray[np.int64]:
        """By the order of the classes."""
        number = {name: place for place, name in enumerate(self.classes)}
        return np.array([number[name] for name in predicted.tolist()], dtype=np.int64)


def text_pipeline(model: Any, source: str, output: str | int | None) -> TextPipeline:
    """The pipeline of what a file holds, once it has answered two texts; `output`: a name of METHODS."""
    before, head = _flat(model)
    name = type(head).__name__
    if not hasattr(head, "predict"):
        raise BadInput(
            f"{source}: holds {_article(name)}, which has no predict: save the pipeline, classifier included"
        )
    if not hasattr(head, "classes_"):
        raise BadInput(f"{source}: {name} has no classes: it is not fitted, or a regression; a classifier is needed")
    if output is not None and (output not in METHODS or not hasattr(head, str(output))):
        known = ", ".join(method for method in METHODS if hasattr(head, method))
        raise BadInput(f"{source}: {name} has no output {output!r}; it has {known}")
    if isinstance(head.classes_, list):
        raise BadInput(f"{source}: {name} answers several questions, each with classes of its own: save one of them")
    if output is not None:
        pipeline = TextPipeline(before, head, str(output), chosen=True)
    else:
        pipeline = TextPipeline(before, head, next(method for method in METHODS if _follows(head, method)))
    if len(pipeline.classes) < 2:
        raise BadInput(f"{source}: {name} knows one class, {pipeline.classes[0]!r}: it always answers that")
    _probe(pipeline, source)
    return pipeline


def _follows(head: Any, method: str) -> bool:
    """Whether the classifier has these scores, and `predict` goes by them."""
    if method != "predict" and type(head).__name__ in FALSE_MAJORITIES:
        return False
    if method != "predict" and hasattr(head, "break_ties") and len(head.classes_) > 2:  # SVC: pairs of classes vote
        return bool(head.break_ties and method == "decision_function")
    return hasattr(head, method)


def _probe(pipeline: TextPipeline, source: str) -> None:
    names = ", ".join(type(part).__name__ for part in (*pipeline.before, pipeline.head))
    try:
        with quiet():
            scores = pipeline.scores(pipeline.features(PROBES))
    except NoAnswer:
        return  # of these two texts; others may be answered
    except Exception as error:  # transformers of all makers
        raise BadInput(
            f"{source}: {names} cannot answer a text ({type(error).__name__}: {one_line(error)[:160]}): save the "
            "pipeline that begins with its text vectoriser"
        ) from error
    if np.isnan(scores).any():
        raise BadInput(f"{source}: {names} answers NaN for {PROBES[0]!r}: some of its weights are no numbers")
    count = len(pipeline.classes)
    if scores.shape != (len(PROBES), count) and not (scores.shape == (len(PROBES), 1) and count == 2):
        raise BadInput(f"{source}: {pipeline.method} answers {scores.shape[1:]} scores for {count} classes")


def _flat(model: Any) -> tuple[tuple[Any, ...], Any]:
    """The steps of pipelines within pipelines, and the best model of a search."""
    if hasattr(model, "best_estimator_"):
        return _flat(model.best_estimator_)
    if type(model).__name__ != "Pipeline":
        return (), model
    parts: list[Any] = []
    for _, step in model.steps:
        if step is None or step == "passthrough" or hasattr(step, "fit_resample"):  # a sampler acts in training alone
            continue
        before, last = _flat(step)
        parts += [*before, last]
    if not parts:
        return (), model
    return tuple(parts[:-1]), parts[-1]


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"
