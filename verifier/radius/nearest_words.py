"""The nearest word that changes the class, for one place of a text: every word of the vocabulary is looked at.

All words at one place are one matrix product through the part of the network that moves. Nearer words come first, and
what is close to a tie is asked of onnxruntime; so is the nearest that changes the class, before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from swapproof.encodings.bounds.normal_form import Stack
from swapproof.encodings.network import Floats, Indices

from .moving_ball import Ball

CHUNK = 1024
CLOSE = 1e-4
"""Margins below this part of the logits' size are left to onnxruntime: float32 may round by less than this."""


@dataclass(frozen=True)
class WordsFound:
    """Of one place: the nearest word that changes the class (a row, and its distance), and what else was seen."""

    row: int | None
    distance: float
    harmless: bool
    """Every word was looked at, and none changes the class."""
    same: int
    """Words with the very vector that stands there."""
    farthest: float
    """The greatest distance to a word."""


def nearest_word(
    stack: Stack,
    balls: Sequence[Ball],
    vectors: Floats,
    own: int,
    breaks: Callable[[int], bool],
    among: Indices | None = None,
) -> WordsFound:
    """`vectors` [words, width]; `own` is the row that stands there, or -1; `among`: the only rows that are looked at.
    `breaks`, of a row, whether onnxruntime says so."""
    ball = balls[0]
    away = np.abs(vectors - ball.center) / ball.widths
    distance = away.max(axis=1) if ball.norm == "linf" else np.sqrt((away**2).sum(axis=1))
    order = np.argsort(distance, kind="stable")
    others = order[order != own]
    same = int((distance[others] == 0).sum())
    farthest = float(distance[others].max(initial=0.0))
    if among is not None:
        others = others[np.isin(others, among)]
    for first in range(0, len(others), CHUNK):
        rows: Indices = others[first : first + CHUNK]
        logits = stack.values(vectors[rows])[1]
        margin = np.min([logits[:, b.label] - logits[:, b.rival] for b in balls], axis=0)
        close = CLOSE * (1.0 + np.abs(logits).max(axis=1))
        for place in np.flatnonzero(margin <= close):
            row = int(rows[place])
            if breaks(row):
                return WordsFound(row, float(distance[row]), False, same, farthest)
    return WordsFound(None, np.inf, among is None, same, farthest)
