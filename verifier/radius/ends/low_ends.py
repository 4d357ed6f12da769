"""Low ends: balls that the checker accepts, by linear bounds alone, and larger ones by search."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from swapproof.encodings.network import Floats

from ...queries.question import floor_float
from ...queries.search import Way
from ..ball_search import plainly_safe, search
from ..proved_balls import PLAIN, finest_radius, rounded_down
from ..smooth.smooth_balls import SmoothMoving, safe_radius
from ..smooth.smooth_forms import BallForms
from .moving_words import GAP, Words

if TYPE_CHECKING:
    from .high_ends import HighEnds
    from .text_place import TextPlace

HALVINGS = 16
FURTHEST = 2.0
"""Where nothing changes the class, balls are looked for up to so many diameters of the embedding."""
SHRINKING = (1.0, 0.999, 0.98, 0.9, 0.7, 0.4)
"""Of a radius that float64 holds for safe, what is offered to the checker, until it accepts."""
NEAR = 1 - GAP / 4
"""Where a ball is proved and one so little larger was given up, nothing between them is tried."""
WAYS: tuple[Way, Way] = ("phases", "inputs")
FEW_INPUTS = 4
"""Up to so many, halving them is tried too, after splitting neurons."""
CHEAPEST = 1e-4
"""Seconds that checking a region takes at least."""
SEARCHED_AGAIN = 200
"""Regions of a leaf that the checker does not follow."""
PROVING = 0.9
"""The part of the time of a text that is left for search and checks; the rest is for writing it down."""


@dataclass(eq=False)
class LowEnds:
    """Of the sets of words of one text."""

    at: TextPlace
    high: HighEnds
    by_forms: bool = False
    """Whether forms prove the balls: of smooth networks, and where trees would take the checker too long."""
    first: float = math.inf
    """The ball that forms try first: what the last two words foretell."""
    last: float = 0.0

    @cached_property
    def finest(self) -> float:
        return finest_radius(self.at.widths)

    def plain_radius(self, each: Words) -> float:
        """The greatest radius that linear bounds alone hold for safe, by halving."""
        most = each.high if math.isfinite(each.high) else FURTHEST * self.at.far
        if isinstance(each.moving, SmoothMoving):
            return self.radius_of_forms(each.moving, each, most)
        if self.by_forms:
            forms = BallForms(self.at.room.forms, self.at.values, each.free, self.at.question.norm)
            return self.radius_of_forms(SmoothMoving(forms), each, most)
        safe = [plainly_safe(each.moving, ball.with_radius(most)) for ball in each.balls]
        if all(safe):
            return most
        low, high = 0.0, most
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if middle and all(plainly_safe(each.moving, ball.with_radius(middle)) for ball in each.balls):
                low = middle
            else:
                high = middle
        return low

    def radius_of_forms(self, moving: SmoothMoving, each: Words, most: float) -> float:
        found = safe_radius(moving, each.balls, most, self.first)
        if found:
            self.first, self.last = found * (min(found / self.last, 1.0) if self.last else 1.0), found
        return found

    def prove_plainly(self, each: Words, until: float) -> None:
        """A ball by linear bounds, which the checker accepts."""
        if time.monotonic() >= until:
            return
        found, proof = self.plain_radius(each), tuple(PLAIN for _ in each.balls)
        for part in SHRINKING:
            radius = rounded_down(part * found, self.finest)
            began = time.monotonic()
            accepted = radius > 0 and self.accepts(each, radius, proof, until)
            each.cost = max(each.cost, time.monotonic() - began)
            if accepted:
                return

    def accepts(self, each: Words, radius: Fraction, trees: Sequence[bytes], until: float) -> bool:
        """Whether the checker accepts these proofs; then they are what is known of the set."""
        if each.exact_case is None:
            return False
        balls = [ball.with_radius(float(radius)) for ball in each.balls]

        moving = each.moving

        def again(number: int, lows: Sequence[Fraction], highs: Sequence[Fraction], phases: bool) -> bytes:
            if isinstance(moving, SmoothMoving):
                return b""
            part = np.array([floor_float(end) for end in lows]), np.array([-floor_float(-end) for end in highs])
            way = WAYS[0] if phases else WAYS[1]
            met, _ = search(moving, balls[number], way, until - time.monotonic(), SEARCHED_AGAIN, part)
            return met.record.encoded() if met.answer == "unsat" and met.record is not None else b""

        found = each.exact_case.proved(radius, trees, until, again)
        if found is not None:
            each.low, each.trees = radius, found
        return found is not None

    def improve(self, each: Words, seconds: float) -> None:
        """Larger balls by search: first one just below the high end, then halfway between what holds and what does
        not."""
        until = time.monotonic() + seconds * PROVING
        most = each.high if math.isfinite(each.high) else FURTHEST * self.at.far
        target, failed = (1 - GAP / 2) * most, most
        while time.monotonic() < until and float(each.low) < NEAR * failed:
            radius = rounded_down(target, self.finest)
            if radius <= each.low:
                return
            if not self.tried(each, radius, until):
                if each.high < failed:  # a nearer point was met
                    failed = each.high
                    target = (1 - GAP / 2) * failed
                    continue
                failed = float(radius)
            target = (float(each.low) + failed) / 2

    def tried(self, each: Words, radius: Fraction, until: float) -> bool:
        """Whether this ball was proved; a point that was met on the way narrows the high end."""
        ways = WAYS if each.moving.stack.inputs <= FEW_INPUTS else WAYS[:1]
        share = (until - time.monotonic()) / len(ways) / 2
        for way in ways:
            trees, met = self.searched(each, radius, way, share)
            if met:
                self.high.look_for_points(each, np.array(met))
                return False
            if trees is not None and self.accepts(each, radius, trees, time.monotonic() + share + each.cost):
                return True
        return False

    def searched(
        self, each: Words, radius: Fraction, way: Way, seconds: float
    ) -> tuple[list[bytes] | None, list[Floats]]:
        """Proofs against each rival, None if one was not found; and points at which one wins."""
        trees: list[bytes] = []
        if isinstance(each.moving, SmoothMoving):
            return None, []
        until = time.monotonic() + seconds
        for ball in each.balls:
            rest = until - time.monotonic()
            regions = int(rest / max(each.cost, CHEAPEST) / len(each.balls))
            if rest <= 0 or regions < 1:
                return None, []
            found, met = search(each.moving, ball.with_radius(float(radius)), way, rest, regions)
            if found.answer != "unsat" or found.record is None:
                return None, met
            trees.append(found.record.encoded())
        return trees, []
