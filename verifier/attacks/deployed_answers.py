"""What a model answers as it is deployed, to sentences of one text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Unsupported
from swapproof.models.deployed.answers.score_rows import Unreachable
from swapproof.models.deployed.classifier import Classifier, NoAnswer, Rows
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.swapped_text import SwapText

from ..replaying.asking import Asking
from .sentence_answers import Without

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class OfModel:
    """Of any model: sentences are put to it as it is deployed."""

    asking: Asking
    unknown: str
    """The word that stands for a word taken away."""

    @property
    def decision(self) -> Decision:
        return self.asking.decision

    def answered(self, rows: Rows) -> Array:
        return self.asking.variants.scores(rows)

    def without(self, words: Array, way: Without) -> Array:
        text, place = self.asking.text, {"unknown": self.unknown, "delete": ""}[way]
        gone = set(words.tolist())
        options = tuple((one[0], place) if word in gone else one[:1] for word, one in enumerate(text.options))
        rows = (np.arange(len(options)) == words[:, None]).astype(np.int32)
        try:
            return self.asking.classifier.variants(replace(text, options=options)).scores(rows)
        except Unreachable:
            raise
        except NoAnswer:  # a text of one word has no other without it
            return np.full((len(rows), self.decision.classes), np.nan)

    def slopes(self, row: Array, words: Array, options: Array) -> Array:
        raise Unsupported("this attack needs gradients: of a network that is read; the model of this task is run")


def answers_of_model(classifier: Classifier, decision: Decision, text: SwapText, label: int, unknown: str) -> OfModel:
    return OfModel(Asking(classifier, decision, text, label), unknown)
