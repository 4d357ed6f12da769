"""Classifiers that are small Python functions of sentences, for tests of models that are run."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from swapproof.models.deployed.classifier import Classifier, Deployment, Identity, NoAnswer, Scores, SpeltOut, Variants
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.deployed.swapped_text import Fields, SwapText

MODULE = """
import re

WEIGHTS = {"good": 2.0, "great": 3.0, "fine": 1.0, "bad": -2.0, "poor": -1.5, "awful": -3.0, "ok": 0.4, "dull": -1.2}


def scores(texts):
    return [[0.0, 0.3 + sum(WEIGHTS.get(word.lower(), 0.0) for word in re.findall(r"\\w+", text))] for text in texts]


def raises(texts):
    if any("awful" in text for text in texts):
        raise RuntimeError("no awful films")
    return scores(texts)


def pairs(texts):
    return [[0.0, found[0][1] - found[1][1]] for found in ((scores([a])[0:1] + scores([b])) for a, b in texts)]
"""
"""Source of a module whose functions classify."""


@dataclass(eq=False)
class Function:
    """A function of one text as a classifier; `asked` counts its sentences."""

    of_text: Callable[[str], Sequence[float]]
    identity: Identity = field(default_factory=lambda: Identity("callable", "tests:function"))
    asked: int = 0

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        self.asked += len(sentences)
        return np.array([self.of_text(" | ".join(fields)) for fields in sentences], dtype=np.float64)

    def variants(self, text: SwapText) -> Variants:
        return SpeltOut(self, text)


@dataclass(eq=False)
class FirstOfBatch(Function):
    """Answers otherwise for whatever stands first of several."""

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        found = super().scores(sentences)
        if len(found) > 1:
            found[0] = found[0][::-1]
        return found


@dataclass(eq=False)
class Refusing(Function):
    """Cannot answer sentences that hold a word."""

    word: str = "z"

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        if any(self.word in " ".join(fields).split() for fields in sentences):
            raise NoAnswer(f"the word {self.word!r}")
        return super().scores(sentences)


def answers(deployment: Deployment) -> list[list[float]]:
    """Of the model that this opens, to two texts; other processes find it here."""
    scores: list[list[float]] = open_classifier(deployment).scores([("a",), ("four",)]).tolist()
    return scores


def by_hash(text: str, salt: int, share: float) -> list[float]:
    """Class 1 for a share of all texts, at random and always the same; as far from the border as chance has it."""
    number = int.from_bytes(hashlib.sha256(f"{salt} {text}".encode()).digest()[:8], "big") / 2**64
    return [0.0, share - number]


def fewest_swaps(classifier: Classifier, text: SwapText, label: int) -> int | None:
    """By asking about every sentence; None when none breaks."""
    rows = list(itertools.product(*(range(len(options)) for options in text.options)))
    answers = classifier.scores([text.sentence(row) for row in rows]).argmax(axis=1)
    broken = [sum(map(bool, row)) for row, answer in zip(rows, answers, strict=True) if answer != label]
    return min(broken, default=None)


def spaced(options: Sequence[Sequence[str]]) -> SwapText:
    """A text of these words with a space between any two."""
    words = [given[0] for given in options]
    starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
    spans = tuple((start, start + len(word)) for start, word in zip(starts, words, strict=True))
    return SwapText((" ".join(words),), 0, spans, tuple(map(tuple, options)))
