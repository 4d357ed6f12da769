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
STEEPEST = 16.0
"""Power of the radius that a margin is held to fall with."""
HALVINGS = 40
CLOSE_TO = 0.02
"""A margin of this part of that at the center, or a ball this near to one that is not safe, ends the search."""
ROUNDS = 3
CUTS, PARTS = 5, 8
"""A way is cut so often into so many parts."""
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


def safe_radius(moving: SmoothMoving, balls: Sequence[Ball], most: float, first: float = np.inf) -> float:
    """The greatest radius up to `most` that forms hold for safe, nearly; `first` is tried at first."""
    return min((safe_against(moving.forms, ball, most, first) for ball in balls), default=most)


def safe_against(forms: BallForms, ball: Ball, most: float, first: float = np.inf) -> float:
    """The margin falls as m - s R - k R^p: p is 2 at first and follows from two radii, k from the last one, and from
    them the next one."""
    here = float(ball.margin(SmoothStack(forms), ball.center[None])[0])  # type: ignore[arg-type]
    if here <= 0:
        return 0.0
    slope = float(forms.reach(forms.gradient(ball.label, ball.rival) * ball.widths))
    low, high, radius = 0.0, np.inf, min(most, first, here / max(slope, SMALLEST) / 2)
    known, power = (0.0, 0.0), 2.0
    for _ in range(TRIES):
        margin = forms.margin(ball.with_radius(radius))
        if margin > 0:
            low = radius
        else:
            high = radius
        if low >= most or low > (1 - CLOSE_TO) * high or 0 < margin < CLOSE_TO * here:
            break
        bent = max(here - slope * radius - margin, SMALLEST)
        if known[0] and known[0] != radius and np.isfinite(bent):
            power = np.clip(np.log(bent / known[1]) / np.log(radius / known[0]), 1.0, STEEPEST)
        next_one = np.nan
        if np.isfinite(bent):
            known = radius, bent
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # what is not finite is not taken
                next_one = where_spent((1 - CLOSE_TO / 2) * here, slope, bent / radius**power, float(power))
        if not np.isfinite(next_one) or next_one <= low or next_one >= high:
            next_one = low + (high - low) / 2 if low and np.isfinite(high) else radius * 2 if low else radius / 8
        radius = min(most, float(next_one))
    return low


def where_spent(margin: float, slope: float, bend: float, power: float) -> float:
    """R with slope R + bend R^power = margin, by halving."""
    low, high = 0.0, (margin / bend) ** (1 / power)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope * middle + bend * middle**power < margin else (low, middle)
    return low


def near_points(moving: SmoothMoving, ball: Ball, starts: Floats) -> Floats:
    """Points at which the rival is no worse, found along the slopes at the center and at what was found so far, and
    the nearest of the starts where it is; each drawn to the center."""
    forms, stack = moving.forms, moving.stack
    beaten_starts = sorted(starts[1:][ball.margin(stack, starts[1:]) <= 0], key=ball.distance)
    met = [nearer(ball, stack, np.reshape(beaten_starts[:1], (-1, len(ball.center))))]
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
        met.append(nearer(ball, stack, tried[beaten[:1]]))
        at = met[-1][0]
    return np.concatenate(met)


def nearer(ball: Ball, stack: Any, points: Floats) -> Floats:
    """The points moved towards the center to where the class begins to be the label's."""
    low, high, ways = np.zeros(len(points)), np.ones(len(points)), points - ball.center
    every = np.arange(len(points))
    for _ in range(CUTS if len(points) else 0):
        tried = low[:, None] + (high - low)[:, None] * np.arange(1, PARTS + 1) / PARTS
        tried[:, -1] = high
        margins = ball.margin(stack, (ball.center + tried[..., None] * ways[:, None]).reshape(-1, len(ball.center)))
        beaten = (margins <= 0).reshape(tried.shape)
        beaten[:, -1] = True
        place = beaten.argmax(axis=1)
        low, high = np.where(place > 0, tried[every, place - 1], low), tried[every, place]
    return np.asarray(ball.center + high[:, None] * ways)
