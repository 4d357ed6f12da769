"""The nearest word that changes the class, for one place of a text: every word of the vocabulary is looked at.

All words are looked at in single precision first. What is not well beyond a tie is computed again in double precision,
nearer words first, and what is close to one then is asked of onnxruntime; so is the nearest that changes the class,
before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Floats, Indices

from ..moving_ball import Ball

CHUNK, SWEPT = 256, 4096
"""Words that are computed at once, in double and in single precision."""
CLOSE = 1e-4
"""Margins below this part of the logits' size are left to onnxruntime: float32 may round by less than this."""
DOUBTFUL = 1e-3
"""Margins below this part of it, in single precision, are computed again."""
TRIED = 32
"""Words on which single precision is compared with double; it must agree ten times better than DOUBTFUL."""


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


class AnsweringWords(Protocol):
    def singly(self, rows: slice) -> Floats:
        """[n, logits] in single precision, of words that stand side by side."""

    def logits(self, rows: Indices) -> Floats:
        """[n, logits]."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The words that may change the class, the nearest first."""

    answering: AnsweringWords
    balls: Sequence[Ball]
    vectors: Floats
    """[width, words]."""
    rows: Indices
    every: bool
    same: int
    farthest: float

    @classmethod
    def of(
        cls,
        answering: AnsweringWords,
        balls: Sequence[Ball],
        vectors: Floats,
        own: int,
        among: Indices | None = None,
    ) -> Candidates:
        """`vectors` [width, words]; `own` is the row that stands there, or -1; `among`: the only rows looked at."""
        distance = distances(balls[0], vectors)
        others = np.ones(len(distance), dtype=np.bool_)
        if own >= 0:
            others[own] = False
        seen = distance[others]
        same, farthest = int((seen == 0).sum()), float(seen.max(initial=0.0))
        rows = np.flatnonzero(others & in_doubt(answering, balls, len(distance))) if among is None else among
        rows = rows[rows != own]
        order = np.argsort(distance[rows], kind="stable")
        return cls(answering, balls, vectors, rows[order], among is None, same, farthest)

    def nearest(self, breaks: Callable[[int], bool]) -> WordsFound:
        """`breaks`, of a row, whether onnxruntime says so."""
        for first in range(0, len(self.rows), CHUNK):
            rows = self.rows[first : first + CHUNK]
            logits = self.answering.logits(rows)
            for place in np.flatnonzero(~(margins(logits, self.balls) > CLOSE * size(logits))):
                row = int(rows[place])
                if breaks(row):
                    away = self.balls[0].distance(self.vectors[:, row])
                    return WordsFound(row, away, False, self.same, self.farthest)
        return WordsFound(None, np.inf, self.every, self.same, self.farthest)


def distances(ball: Ball, vectors: Floats) -> Floats:
    """[words], of vectors [width, words]."""
    away = vectors - ball.center[:, None]
    if (ball.widths != 1).any():
        away /= ball.widths[:, None]
    if ball.norm == "linf":
        return np.asarray(np.abs(away, out=away).max(axis=0))
    return np.asarray(np.sqrt(np.square(away, out=away).sum(axis=0)))


def margins(logits: Floats, balls: Sequence[Ball]) -> Floats:
    """[n]: the label's logit less that of its best rival."""
    return np.asarray(np.min([logits[:, ball.label] - logits[:, ball.rival] for ball in balls], axis=0))


def size(logits: Floats) -> Floats:
    return np.asarray(1.0 + np.abs(logits.T).max(axis=0))


def in_doubt(answering: AnsweringWords, balls: Sequence[Ball], words: int) -> NDArray[np.bool_]:
    """[words]: which single precision does not show to be harmless; all, where it cannot be trusted."""
    found = swept(answering, balls, words)
    return np.ones(words, dtype=np.bool_) if found is None else ~(found[0] > found[1])


def swept(answering: AnsweringWords, balls: Sequence[Ball], words: int) -> tuple[Floats, Floats] | None:
    """Margins of all words in single precision, and by how much they may be off; None where it cannot be trusted."""
    if not words:
        return None
    step = max(1, words // TRIED)
    found, off, tried = np.empty(words), np.empty(words), list[Floats]()
    with np.errstate(all="ignore"):
        exact = answering.logits(np.arange(0, words, step))
        for first in range(0, words, SWEPT):
            rows = slice(first, min(words, first + SWEPT))
            logits = answering.singly(rows)
            found[rows], off[rows] = margins(logits, balls), DOUBTFUL * size(logits)
            tried.append(logits[-first % step :: step])
        apart = np.abs(np.concatenate(tried) - exact).max(axis=1)
        trusted = bool((apart < DOUBTFUL / 10 * size(exact)).all())
    return (found, off) if trusted else None


def least_margin(answering: AnsweringWords, balls: Sequence[Ball], words: int) -> float:
    """Of all words; in double precision those that single precision does not show to have a greater one."""
    found, rows = swept(answering, balls, words), np.arange(words)
    if found is not None:
        single, off = found
        rows = np.flatnonzero(~(single - off > np.min(single + off)))
    parts = [rows[first : first + CHUNK] for first in range(0, len(rows), CHUNK)]
    return float(min(margins(answering.logits(part), balls).min() for part in parts))
