"""Is there a point of a ball at which a rival is no worse than the label? The search of `verify`, in ellipsoids too.

Extremes of a linear function c + g x in the ellipsoid sum ((x - m) / h)^2 <= 1, which the box m - h .. m + h holds:

    g m -+ ||g h||_2,   met at m -+ g h^2 / ||g h||_2

A region may be cut and halved along inputs as well; then the better of both bounds counts.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from swapproof.encodings.bounds.normal_form import Functions, Stack
from swapproof.encodings.network import Floats
from swapproof.encodings.vnnlib.linear_property import Case

from ..queries.ascent import Ascended
from ..queries.query_bounds import Bounded, InputRegions, QueryBounds
from ..queries.question import Question
from ..queries.search import Block, QuerySearch, SearchOutcome, Way
from ..queries.search_tree import UPPER_SLOPES, TreeRecord
from .moving_ball import SMALLEST, Ball
from .moving_network import Moving

STEPS = 8
"""Of ascent for each region."""


@dataclass(frozen=True)
class Round:
    """The ellipsoid that a box holds."""

    middle: Floats
    half: Floats

    def reach(self, given: Floats) -> Floats:
        """||g h||_2 over the last axis."""
        return np.asarray(np.sqrt(((given * self.half) ** 2).sum(axis=-1)))

    def least(self, given: Floats) -> Floats:
        return np.asarray(given @ self.middle - self.reach(given))

    def lowest_point(self, given: Floats) -> Floats:
        return self.middle - given * self.half**2 / np.maximum(self.reach(given), SMALLEST)[..., None]


class BallBounds(QueryBounds):
    """Bounds over regions of a box, and of the ellipsoid in it where there is one."""

    def __init__(self, stack: Stack, low: Floats, high: Floats, round: Round | None) -> None:
        self.round = round
        super().__init__(stack, low, high, UPPER_SLOPES)

    def intervals(self, rows: Functions, regions: InputRegions) -> tuple[Floats, Floats]:
        low, high = super().intervals(rows, regions)
        weight = rows.weights.get(0)
        if self.round is None or weight is None:
            return low, high
        middle, radius = (regions.low + regions.high) / 2, (regions.high - regions.low) / 2
        at, spread = middle @ weight.T, radius @ np.abs(weight).T
        center, reach = weight @ self.round.middle, self.round.reach(weight)
        closer = np.maximum(center - reach - (at - spread), 0.0), np.minimum(center + reach - (at + spread), 0.0)
        return low + closer[0], high + closer[1]

    def lowest(self, given: Floats, regions: InputRegions) -> Floats:
        found = super().lowest(given, regions)
        return found if self.round is None else np.maximum(found, self.round.least(given))

    def corners(self, given: Floats, regions: InputRegions) -> Floats:
        """Where the better of both bounds is met."""
        found = super().corners(given, regions)
        if self.round is None:
            return found
        better = self.round.least(given) > (given * found).sum(axis=1)
        return np.where(better[:, None], self.round.lowest_point(given), found)


def bounds_in(ball: Ball, stack: Stack, part: tuple[Floats, Floats] | None = None) -> BallBounds:
    half = ball.half
    low, high = (ball.center - half, ball.center + half) if part is None else part
    return BallBounds(stack, low, high, Round(ball.center, half) if ball.norm == "l2" else None)


@dataclass
class Judge:
    """In the place of a deployed model: keeps the points met at which the label is beaten in float64, and goes on."""

    stack: Stack
    atoms: Functions
    ball: Ball
    met: list[Floats] = field(default_factory=list)

    def witness(self, case: Case, point: Floats) -> Any:
        """The point itself, if it is in the ball and beats the label."""
        if self.ball.distance(point) <= self.ball.radius and self.ball.margin(self.stack, point[None])[0] <= 0:
            self.met.append(point)
            return tuple(point.tolist())
        return None


@dataclass(eq=False)
class BallSearch(QuerySearch):
    """Cuts speak of the box, so they take its bound, which may be lower than that of the ellipsoid."""

    most: int = 1 << 30
    """Regions: then it is given up."""

    def next_block(self) -> Block:
        if self.regions > self.most:
            self.until = -math.inf
        return super().next_block()

    def sharpen(self, regions: InputRegions, best: Ascended) -> None:
        super().sharpen(regions, replace(best, low=best.low + self.lost(regions, best)))

    def lost(self, regions: InputRegions, best: Ascended) -> Floats:
        given = best.coefficients[:, None]
        box = QueryBounds.lowest(self.bounds, given, regions)
        return np.asarray((box - self.bounds.lowest(given, regions))[:, 0])


def search(
    moving: Moving, ball: Ball, way: Way, seconds: float, most: int, part: tuple[Floats, Floats] | None = None
) -> tuple[SearchOutcome, list[Floats]]:
    """Whether the rival is beaten in the whole ball, or in a `part` of its box, with the tree that says so; and points
    where it is not."""
    stack, bounds, atoms = moving.stack, bounds_in(ball, moving.stack, part), ball.atoms(moving.stack)
    low, high = bounds.whole.low[0], bounds.whole.high[0]
    nothing = Case((Fraction(0),), (Fraction(0),), ())
    question = Question(stack, nothing, low, high, atoms)
    judge = Judge(stack, atoms, ball)
    record = TreeRecord(moving.layers, stack.widths[1:], 1)
    until = time.monotonic() + seconds
    found = BallSearch(question, judge, bounds, way, STEPS, until, record, most=most).run()  # type: ignore[arg-type]
    return found, judge.met


def plainly_safe(moving: Moving, ball: Ball) -> bool:
    """Whether linear bounds alone say that the rival is beaten in the whole ball."""
    bounds = bounds_in(ball, moving.stack)
    found: Bounded = bounds.least(ball.atoms(moving.stack), bounds.whole, bounds.all_lines(bounds.whole))
    return bool(found.low[0, 0] > 0)
