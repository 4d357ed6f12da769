"""Paired means: of texts that have a number in both runs, the mean of the differences, with a bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

RESAMPLES, SEED = 2_000, 1
AT_A_TIME = 1 << 22
"""Numbers drawn at once."""
METHOD = (
    f"95 % percentile interval of {RESAMPLES:,} bootstrap resamples of the texts (seed {SEED}); where a text is an "
    "interval, the low ends make the low end and the high ends the high end"
)
Ends = tuple[float, float]


def mean_difference(first: Sequence[Ends], other: Sequence[Ends]) -> dict[str, Any]:
    """`other` less `first`, text by text; no interval of fewer than two texts."""
    before, after = np.array(first, dtype=float).reshape(-1, 2), np.array(other, dtype=float).reshape(-1, 2)
    texts = len(before)
    if not texts:
        return {"texts": 0, "first": None, "other": None, "difference": None, "interval": None}
    lows, highs = after[:, 0] - before[:, 1], after[:, 1] - before[:, 0]
    return {
        "texts": texts,
        "first": ends(before[:, 0].mean(), before[:, 1].mean()),
        "other": ends(after[:, 0].mean(), after[:, 1].mean()),
        "difference": ends(lows.mean(), highs.mean()),
        "interval": None if texts < 2 else bootstrap(lows, highs),
    }


def bootstrap(lows: np.ndarray[Any, Any], highs: np.ndarray[Any, Any]) -> dict[str, float]:
    draw, texts = np.random.default_rng(SEED), len(lows)
    least, most = [], []
    left = RESAMPLES
    while left:
        some = min(left, max(1, AT_A_TIME // texts))
        chosen = draw.integers(0, texts, size=(some, texts))
        least.append(lows[chosen].mean(axis=1))
        most.append(highs[chosen].mean(axis=1))
        left -= some
    return ends(np.quantile(np.concatenate(least), 0.025), np.quantile(np.concatenate(most), 0.975))


def ends(low: float, high: float) -> dict[str, float]:
    return {"low": round(float(low), 6), "high": round(float(high), 6)}
