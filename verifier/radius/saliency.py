"""Which words matter: radii beside the exact effects of leaving a word out and of replacing it, and LIME's weights.

A word is salient where its radius is small. How well that, or LIME, explains a text is the rank correlation (Spearman)
with the exact effects: the fall of the margin when the padding's vector takes the place of the word (`leave_one_out`),
and the greatest fall over all words of the vocabulary (`single_swap`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from swapproof.encodings.bounds.normal_form import Stack
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.network import Floats

from .moving_ball import Ball
from .seeking.nearest_words import AnsweringWords, least_margin, margins

Effects = dict[str, float]
DIGITS = 6
EFFECTS = ("leave_one_out", "single_swap")


def effects(stack: Stack, answering: AnsweringWords, balls: Sequence[Ball], words: int, nothing: Floats) -> Effects:
    """Of one word: by how much the margin falls; `nothing` is the vector of the padding."""
    here, without = margins(stack.values(np.array([balls[0].center, nothing]))[1], balls).tolist()
    found = here - without, here - least_margin(answering, balls, words)
    return {name: round(value, DIGITS) for name, value in zip(EFFECTS, found, strict=True)}


def agreement(words: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each explanation the rank correlation with each effect; None where one of them is the same for all words."""
    explanations = {"radius": [-word["low"] for word in words]}
    if all("lime" in word["saliency"] for word in words):
        explanations["lime"] = [word["saliency"]["lime"] for word in words]
    return {
        name: {effect: rank_correlation(scores, [word["saliency"][effect] for word in words]) for effect in EFFECTS}
        for name, scores in explanations.items()
    }


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The correlation of the ranks, equal numbers sharing theirs."""
    a, b = ranks(one), ranks(other)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return None if size == 0 or len(a) < 3 else round(float((a * b).sum()) / size, DIGITS)


def ranks(numbers: Sequence[float]) -> Floats:
    _, place, count = np.unique(np.array(numbers), return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    return np.asarray((ends - (count - 1) / 2)[place.reshape(-1)], dtype=np.float64)


def explainer_of() -> Any:
    """The class of LIME's explainers of texts, from an optional package."""
    try:
        from lime.lime_text import LimeTextExplainer
    except ImportError:
        raise Unsupported("--lime needs the package lime: pip install swapproof[lime]") from None
    return LimeTextExplainer


def lime_weights(
    words: Sequence[str], label: int, scores: Callable[[Sequence[Sequence[str | None]]], Floats], samples: int
) -> list[float]:
    """LIME's weight of each word for the label; `scores` of texts whose left-out words are None."""
    explainer = explainer_of()(split_expression=r"\s+", random_state=0)
    marks = " ".join(f"w{number}" for number in range(len(words)))

    def answered(texts: Sequence[str]) -> Floats:
        kept = [set(text.split()) for text in texts]
        rows = [[word if f"w{at}" in have else None for at, word in enumerate(words)] for have in kept]
        logits = scores(rows)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    told = explainer.explain_instance(marks, answered, labels=(label,), num_features=len(words), num_samples=samples)
    weights = dict(told.as_list(label))
    return [round(float(weights.get(f"w{at}", 0.0)), DIGITS) for at in range(len(words))]
