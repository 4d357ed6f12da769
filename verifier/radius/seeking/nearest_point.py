"""The nearest point at which a class changes, as near as local search finds it: a high end of the radius.

A network of rectifiers is linear around a point x: f(y) = f(x) + g (y - x). The nearest y to the center c with
f(y) = 0 is, w being the widths and ||.||_* the dual norm,

    c + t d,   t = (g (x - c) - f(x)) / ||g w||_*,   d = -w^2 g / ||g w||_2 (l2),   -w sign(g) (linf)

One goes there, and again from there, until it stays; from several starts. The nearest point met at which the class
changes is drawn to the center along its ray as far as the class allows, and rounded to what the model reads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from swapproof.encodings.bounds.normal_form import Stack, handed_back
from swapproof.encodings.network import Floats

from ..moving_ball import SMALLEST, Ball

ROUNDS, HALVINGS = 30, 40
BEYOND = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""How far behind the border, in parts of the way to it, a rounded point is tried."""
OVERSHOOT = 1.02
STEPS, TRIED, FIRST_STEP, FEW_HALVINGS = 24, 48, 0.2, 14
"""Of the random steps at the end: how many, points of each, the first in parts of the distance, and their accuracy."""


def margin_and_gradient(stack: Stack, ball: Ball, points: Floats) -> tuple[Floats, Floats]:
    """[n] and [n, inputs]."""
    inputs, logits = stack.values(points)
    output = {j: w[ball.label] - w[ball.rival] for j, w in stack.output.weights.items()}

    def through(i: int, given: Floats | None) -> Floats | None:
        return None if given is None else given * (inputs[i - 1] > 0)

    handed = {j: np.repeat(row[None], len(points), axis=0) for j, row in output.items()}
    gradient = handed_back(stack.layers, handed, through)
    return logits[:, ball.label] - logits[:, ball.rival], np.zeros_like(points) if gradient is None else gradient


def border_points(stack: Stack, ball: Ball, starts: Floats) -> Floats:
    """Points [n, inputs] met at which the rival is no worse, those of least distance of each start; some may be none
    and are left out."""
    w, x = ball.widths, starts.copy()
    best, nearest = np.full(len(x), np.inf), x.copy()
    for _ in range(ROUNDS):
        value, g = margin_and_gradient(stack, ball, x)
        away = (x - ball.center) / w
        distance = np.abs(away).max(axis=1) if ball.norm == "linf" else np.sqrt((away**2).sum(axis=1))
        closer = (value <= 0) & (distance < best)
        best, nearest = np.where(closer, distance, best), np.where(closer[:, None], x, nearest)
        scaled = g * w
        if ball.norm == "l2":
            size = np.sqrt((scaled**2).sum(axis=1))
            direction = -w * scaled / np.maximum(size, SMALLEST)[:, None]
        else:
            size = np.abs(scaled).sum(axis=1)
            direction = -w * np.sign(scaled)
        t = (value - (g * (x - ball.center)).sum(axis=1)) / np.maximum(size, SMALLEST)
        moved = ball.center + (OVERSHOOT * t)[:, None] * direction
        x = np.where((size > SMALLEST)[:, None] & np.isfinite(moved), moved, x)
    return np.asarray(nearest[np.isfinite(best)])


def drawn_in(stack: Stack, ball: Ball, points: Floats, halvings: int = HALVINGS) -> Floats:
    """The same points, each moved towards the center to where its class begins to be the label's."""
    low, high = np.zeros(len(points)), np.ones(len(points))
    way = points - ball.center
    for _ in range(halvings):
        middle = (low + high) / 2
        beaten = ball.margin(stack, ball.center + middle[:, None] * way) <= 0
        low, high = np.where(beaten, low, middle), np.where(beaten, middle, high)
    return np.asarray(ball.center + high[:, None] * way)


def refined(stack: Stack, ball: Ball, point: Floats, random: np.random.Generator) -> Floats:
    """A nearer point than this one at which the label is beaten, looked for by random steps that become smaller.

    The nearest point is often where two linear parts meet, and there going from one to the other does not end.
    """
    best, distance = point, ball.distance(point)
    step = FIRST_STEP * distance
    for _ in range(STEPS):
        tried = best + step * random.normal(size=(TRIED, len(best))) * ball.widths / np.sqrt(len(best))
        tried = tried[ball.margin(stack, tried) <= 0]
        if len(tried):
            found = drawn_in(stack, ball, tried, FEW_HALVINGS)
            distances = np.array([ball.distance(one) for one in found])
            if distances.min() < distance:
                best, distance = found[distances.argmin()], float(distances.min())
                continue
        step /= 2
    return best


def replayed(ball: Ball, points: Floats, breaks: Callable[[Floats], bool], kind: str) -> Floats | None:
    """The nearest of the points, as numbers that the model reads, that `breaks`; a little further where it must be."""
    order = np.argsort([ball.distance(point) for point in points])
    for place in order[:3]:
        for beyond in BEYOND:
            rounded = (ball.center + (1 + beyond) * (points[place] - ball.center)).astype(kind).astype(np.float64)
            if breaks(rounded):
                return np.asarray(rounded)
    return None
