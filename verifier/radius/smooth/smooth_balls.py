"""Balls of a smooth network: the greatest that forms prove, and points and words at which the class changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from swapproof.encodings.network import Floats, Indices

from ..moving_ball import SMALLEST, Ball
from .smooth_forms import BallForms

CHEAP = 1 << 16
"""Multiplications of an evaluation up to which every word is looked at, and sentences are searched."""
FORETOLD, NEAREST = 96, 32
"""Words that are looked at elsewhere: those whose margin the slopes foretell to be least, and the nearest."""
TRIES = 9
CLOSE_TO = 0.01
"""A margin of this part of that at the center, or a ball this near to one that is not safe, ends the search."""
ROUNDS, HALVINGS = 3, 14
RAYS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0)
"""How far along a ray points are tried, in parts of where the slope says the class changes."""


@dataclass(frozen=True, eq=False)
class SmoothStack:
    """What moves, as those see it who only ask for logits."""

    forms: BallForms

    def values(self, points: Floats) -> tuple[list[Floats], Floats]:
        return [], self.forms.logits(points)


@dataclass(frozen=True, eq=False)
class SmoothWords:
    """These words in the place of the one that moves."""

    forms: BallForms
    vectors: Floats

    def singly(self, rows: slice) -> Floats:
        return self.forms.logits(self.vectors[rows])

    def logits(self, rows: Indices) -> Floats:
        return self.forms.logits(self.vectors[rows])


@dataclass(frozen=True, eq=False)
class SmoothMoving:
    """The inputs that move, in a smooth network."""

    forms: BallForms

    @cached_property
    def stack(self) -> Any:
        return SmoothStack(self.forms)

    @property
    def cheap(self) -> bool:
        return self.forms.cost <= CHEAP

    def among(self, ball: Ball, vectors: Floats) -> Indices | None:
        """The words that are looked at; None: all."""
        if self.cheap:
            return None
        slope = self.forms.gradient(ball.label, ball.rival)
        away = np.abs(vectors - ball.center) / ball.widths
        distance = away.max(axis=1) if ball.norm == "linf" else np.sqrt((away**2).sum(axis=1))
        foretold = (vectors - ball.center) @ slope
        return np.union1d(np.argsort(foretold, kind="stable")[:FORETOLD], np.argsort(distance, kind="stable")[:NEAREST])


def safe_radius(moving: SmoothMoving, balls: Sequence[Ball], most: float) -> float:
    """The greatest radius up to `most` that forms hold for safe, nearly."""
    return min((safe_against(moving.forms, ball, most) for ball in balls), default=most)


def safe_against(forms: BallForms, ball: Ball, most: float) -> float:
    """The margin falls nearly as m - s R - k R^2: k follows from each radius tried, and from that the next one."""
    here = float(ball.margin(SmoothStack(forms), ball.center[None])[0])  # type: ignore[arg-type]
    if here <= 0:
        return 0.0
    slope = float(forms.reach(forms.gradient(ball.label, ball.rival) * ball.widths))
    low, high, radius = 0.0, np.inf, min(most, here / max(slope, SMALLEST) / 2)
    for _ in range(TRIES):
        margin = forms.margin(ball.with_radius(radius))
        if margin > 0:
            low = radius
        else:
            high = radius
        if low >= most or low > (1 - CLOSE_TO) * high or 0 < margin < CLOSE_TO * here:
            break
        bend = max((here - slope * radius - margin) / radius**2, SMALLEST)
        next_one = 2 * here / (slope + np.sqrt(slope**2 + 4 * bend * here)) * (1 - CLOSE_TO / 4)
        if not np.isfinite(next_one) or next_one <= low or next_one >= high:
            next_one = low + (high - low) / 2 if low else radius / 8
        radius = min(most, float(next_one))
    return low


def near_points(moving: SmoothMoving, ball: Ball, starts: Floats) -> Floats:
    """Points at which the rival is no worse, found along the slopes at the center and at what was found so far, and
    the starts where it is; each drawn to the center."""
    forms, stack = moving.forms, moving.stack
    met = [start for start in starts[1:] if float(ball.margin(stack, start[None])[0]) <= 0]
    at = ball.center
    for _ in range(ROUNDS):
        value = float(ball.margin(stack, at[None])[0])
        g = forms.gradient(ball.label, ball.rival, at) * ball.widths
        size = float(np.abs(g).sum() if ball.norm == "linf" else np.sqrt((g * g).sum()))
        if not SMALLEST < size < np.inf:
            break
        way = -ball.widths * (np.sign(g) if ball.norm == "linf" else g / size)
        far = (value - float((g / ball.widths) @ (at - ball.center))) / size
        if far <= 0:
            break
        tried = ball.center + np.outer(far * np.array(RAYS), way)
        (beaten,) = np.nonzero(ball.margin(stack, tried) <= 0)
        if not len(beaten):
            break
        at = nearer(ball, stack, tried[beaten[0]])
        met.append(at)
    return np.array([nearer(ball, stack, point) for point in met]).reshape(-1, len(ball.center))


def nearer(ball: Ball, stack: Any, point: Floats) -> Floats:
    """The point moved towards the center to where its class begins to be the label's."""
    low, high, way = 0.0, 1.0, point - ball.center
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if float(ball.margin(stack, (ball.center + middle * way)[None])[0]) <= 0:
            high = middle
        else:
            low = middle
    return np.asarray(ball.center + high * way)
