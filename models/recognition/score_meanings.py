"""What the scores of a model mean, told from what it answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Meaning = Literal["logits", "probabilities", "log_probabilities", "sigmoid"]
NEAR = 1e-3
"""How far from 1 the sum of probabilities may be: those of float16 are that far off."""


@dataclass(frozen=True)
class Scores:
    """`several`: as many questions as columns, each with a share of its own, and not one of several classes."""

    meaning: Meaning
    several: bool
    reason: str
    sure: bool


def meaning_of(scores: NDArray[Any], head: str | None = None) -> Scores:
    """Of scores [texts, outputs]; `head`: what the model makes them with last, where that is known."""
    finite = scores[np.isfinite(scores).all(axis=1)]
    outputs = scores.shape[1]
    inside = bool(((finite >= -NEAR) & (finite <= 1 + NEAR)).all())
    what = f"{len(finite)} texts"
    if outputs == 1:
        if head == "sigmoid":
            return Scores("sigmoid", False, "made by a sigmoid", True)
        if inside:
            return Scores("sigmoid", False, f"between 0 and 1 for all of {what}", len(finite) >= 20)
        return Scores("logits", False, f"from {finite.min():.3g} to {finite.max():.3g}", True)
    sums = finite.sum(axis=1)
    if inside and bool((np.abs(sums - 1) <= NEAR).all()):
        return Scores("probabilities", False, f"between 0 and 1, and their sum is 1 for all of {what}", True)
    if bool((finite <= NEAR).all()) and bool((np.abs(np.exp(finite).sum(axis=1) - 1) <= NEAR).all()):
        return Scores("log_probabilities", False, f"the sum of their exponentials is 1 for all of {what}", True)
    if head != "sigmoid" and len(finite) > 1 and bool((finite == finite[0]).all()):
        return Scores("logits", False, f"the same for all of {what}, which tells nothing", False)
    if head == "sigmoid" or inside:
        how = "each made by a sigmoid" if head == "sigmoid" else f"between 0 and 1 for all of {what}"
        return Scores("sigmoid", True, f"{how}, and their sum is not 1", head == "sigmoid")
    low, high = (finite.min(), finite.max()) if finite.size else (0, 0)
    return Scores("logits", False, f"from {low:.3g} to {high:.3g}", True)
