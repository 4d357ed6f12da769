"""A few sentences through a model that is opened: what may stand together in a batch and change no answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import BadInput
from ..classifier import NoAnswer, Scores, TooLong
from ..swapped_text import Fields

if TYPE_CHECKING:
    from ..onnx_classifier import OnnxClassifier

ALIKE, ROUNDING = 1e-4, 2e-6
"""Scores are those of a sentence alone if they differ by no more than these shares of how much sentences differ, and of
the largest score."""
WORDS = ("good", "a", "film", "that", "is", "neither", "bad", "nor", "new")
ALONE = "every sentence is evaluated alone"


def tried(classifier: OnnxClassifier) -> OnnxClassifier:
    """With the batches that are safe on these: each sentence gets the scores that it has alone, padded as deployed."""
    batching = classifier.batching
    single = replace(classifier, batching=replace(batching, alone=True))
    sentences, answers = answered(single, [fitting(classifier, words) for words in samples(classifier)])
    if len(sentences) < 2:  # no text may have their lengths, and of those that texts have nothing is known
        return replace(single, met=(f"answers at most one of the sentences that it was tried on: {ALONE}",))
    alone = single.stacked(answers)
    single = replace(single, columns=alone.shape[1])
    if classifier.file.dynamic:
        return replace(single, met=(f"computes its scales from a whole batch: {ALONE}",))
    together = replace(classifier, columns=alone.shape[1])
    alike = batching.fixed == 1 or difference(together, sentences, alone) is not None
    if reasons := classifier.apart.reasons:
        return replace(single, met=(f"{reasons[0]}: {ALONE}",))
    return together if alike else replace(single, met=(f"answers a text differently beside others: {ALONE}",))


def answered(classifier: OnnxClassifier, sentences: Sequence[Fields]) -> tuple[list[Fields], list[Scores]]:
    """Those that the model answers, and their scores; of others it need not read the length, where it reads tokens."""
    found: list[tuple[Fields, Scores]] = []
    for fields in sentences:
        try:
            found.append((fields, classifier.scores([fields])))
        except (NoAnswer, TooLong) as error:
            if classifier.tokeniser is None:
                raise BadInput(str(error)) from error
    return [fields for fields, _ in found], [scores for _, scores in found]


def samples(classifier: OnnxClassifier) -> Sequence[Sequence[str]]:
    """Words of sentences, few where all are padded to one width, and otherwise some of equal numbers."""
    words = WORDS if classifier.tokeniser is None else classifier.tokeniser.words
    if classifier.tokeniser is not None and classifier.padding.width is not None:
        return words[:1], words[-4:], words
    return words[:1], words[-1:], words[:4], words[-4:], words, words[::-1]


def fitting(classifier: OnnxClassifier, words: Sequence[str]) -> Fields:
    """A sentence of them, or of as many as the model reads."""
    fields = (" ".join(words),) * classifier.deployment.fields
    try:
        if classifier.tokeniser is not None:
            for stream in range(classifier.signature.streams):
                classifier.tokeniser.rows(classifier.part([fields], stream))
    except BadInput:
        if len(words) == 1:
            raise
        return fitting(classifier, words[: len(words) // 2])
    return fields


def difference(classifier: OnnxClassifier, sentences: Sequence[Fields], alone: Scores) -> float | None:
    """How far their scores are from those that they have alone; None if it is more than rounding."""
    try:
        scores = classifier.scores(sentences)
    except (NoAnswer, BadInput):
        return None
    with np.errstate(invalid="ignore"):  # the same infinity twice is the same answer
        apart = np.where(scores == alone, 0.0, np.abs(scores - alone))
    apart[np.isnan(scores) & np.isnan(alone)] = 0.0
    finite = np.where(np.isfinite(alone), alone, 0.0)
    allowed = ALIKE * np.ptp(finite, axis=0) + ROUNDING * np.abs(finite).max(initial=0.0)
    return float(apart.max()) if (apart <= allowed).all() else None
