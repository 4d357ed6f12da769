"""Small scikit-learn pipelines, trained in a moment, and texts with swaps to ask them about."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.models.deployed.classifier import Deployment
from swapproof.models.deployed.scikit_learn import ScikitLearn, open_scikit_learn
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.encoded import Split, spans_of

GOOD = ("good", "fine", "great", "lovely", "moving")
BAD = ("bad", "poor", "awful", "dull", "empty")
PLAIN = ("the", "film", "movie", "story", "it's", "a", "plot", "was", "not", "very", "don't", "actor")
SYNONYMS = {
    "good": ("fine", "bad"),
    "bad": ("poor", "dull", "good"),
    "film": ("movie", "picture"),
    "great": ("lovely", "awful"),
    "very": ("quite",),
    "the": ("a",),
}


def corpus(size: int = 120, classes: int = 2) -> tuple[list[str], list[str]]:
    """Texts whose class is their mood, drawn with one seed."""
    rng = random.Random(0)
    moods = (BAD, GOOD, PLAIN)[:classes]
    texts, labels = [], []
    for number in range(size):
        label = number % classes
        words = [rng.choice(PLAIN) for _ in range(rng.randint(3, 8))] + [rng.choice(moods[label]) for _ in range(3)]
        rng.shuffle(words)
        texts.append(" ".join(words) + rng.choice((" .", ".", " !", "")))
        labels.append(("negative", "positive", "neutral")[label])
    return texts, labels


def trained(*steps: Any, classes: int = 2) -> Any:
    from sklearn.pipeline import make_pipeline

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps of training do not converge
        return make_pipeline(*steps).fit(*corpus(classes=classes))


def opened(model: Any, folder: Path, **more: Any) -> ScikitLearn:
    """As it is when loaded from a file."""
    import joblib

    path = folder / "model.joblib"
    joblib.dump(model, path)
    classifier = open_scikit_learn(Deployment("sklearn", str(path), trust_pickle=True, **more))
    assert isinstance(classifier, ScikitLearn)
    return classifier


def swaps(text: str, table: dict[str, tuple[str, ...]] = SYNONYMS, split: Split = "words") -> SwapText:
    spans = spans_of(text, split)
    words = [text[start:end] for start, end in spans]
    return SwapText((text,), 0, spans, tuple((word, *table.get(word.lower(), ())) for word in words))


def all_rows(text: SwapText) -> NDArray[np.int32]:
    return np.array(list(product(*(range(len(options)) for options in text.options))), dtype=np.int32)


def numbered(text: SwapText, rows: NDArray[np.int32], spellings: Sequence[str]) -> NDArray[np.int64]:
    """The sentences as numbers of spellings."""
    number = {word: place for place, word in enumerate(spellings)}
    return np.array([[number[text.options[word][option]] for word, option in enumerate(row)] for row in rows])
