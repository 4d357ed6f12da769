"""Low ends: balls whose proofs the checker accepted, case by case, before anything is said of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Floats, Indices
from swapproof.proofs import ball_forms, check, check_ball, check_box
from swapproof.proofs.lower import Lowered
from swapproof.proofs.writing import box_certificate as tree
from swapproof.proofs.writing.ball_certificate import Ball as ProvedBall
from swapproof.proofs.writing.ball_certificate import BallStatement, Norm, write_ball_certificate
from swapproof.proofs.writing.certificate import File

from ..queries.unsat_certificates import Again, Mending

if TYPE_CHECKING:
    from .behind_embedding import Behind

Array = NDArray[Any]
ROUNDS = 4
"""How often a tree is gone through: what was mended is true once a walk mends nothing."""
PLAIN = tree.linear(tree.Multipliers([1]))
"""The proof that linear bounds suffice for."""
COARSEST, FINEST, STEP, MORE = 24, 256, 4, 16
"""Precisions of forms that are tried; MORE bits are next where rounding takes all of the margin."""
LOST = 2.0**-6
"""What it may take. It is told at the center; in a ball it is as many times that as the reach of ones, nearly."""
BITS = 20
"""Of a radius: it is rounded down to so many."""


def finest_radius(widths: Floats) -> float:
    """A multiple of it times a width needs no finer grid than the checker's 2**-64."""
    bits = max(Fraction(width).denominator.bit_length() - 1 for width in widths.tolist())
    return 2.0 ** (bits - check.GRID)


def rounded_down(radius: float, finest: float) -> Fraction:
    """To a number with few digits: a multiple of `finest`, of 20 bits at most where that is coarser."""
    if radius <= 0:
        return Fraction(0)
    unit = max(finest, 2.0 ** (math.floor(math.log2(radius)) + 1 - BITS))
    return Fraction(math.floor(radius / unit)) * Fraction(unit)


@dataclass(eq=False)
class Claims:
    """What is proved of one text, and the exact network that it is checked with. `center` as the model reads it."""

    behind: Behind
    center: Array
    widths: Floats
    label: int
    rivals: Sequence[int]
    norm: Norm
    balls: list[ProvedBall] = field(default_factory=list)
    precision: int | None = None

    def __post_init__(self) -> None:
        lowered, numbers = self.lowered(), self.numbers
        scale = math.lcm(1 << check.GRID, *{number.denominator for number in numbers})
        self.whole = check_ball.Whole(lowered.data, lowered.numbers, scale, [int(n * scale) for n in numbers])

    def lowered(self) -> Lowered:
        """The network as the checker reads it."""
        model = check_ball.read_model(self.behind.model.path.read_bytes())
        lowered = model.lower()
        if lowered.sha256 != self.behind.canonical.sha256:
            raise check.Refused("the checker reads another network than the bounds are of")
        self.digest, self.outputs = lowered.sha256, model.outputs
        return lowered

    @property
    def numbers(self) -> list[Fraction]:
        return list(map(Fraction, self.center.astype(np.float64).tolist()))

    def place(self, free: Indices) -> ExactCase | FormCase:
        """For balls in these inputs."""
        moving = check_ball.Moving(self.whole, free.tolist(), math.inf)
        return ExactCase(self, free, check_box.Space(moving, math.inf))

    def statement(self) -> BallStatement:
        form = 1 if self.center.dtype == np.float32 else 2
        data = np.ascontiguousarray(self.center, dtype="<f4" if form == 1 else "<f8").tobytes()
        return BallStatement(
            File(self.behind.model.path.name, self.behind.sha256),
            [],
            self.digest,
            len(self.center),
            self.outputs,
            (form, data),
            (2, np.ascontiguousarray(self.widths, dtype="<f8").tobytes()),
            self.label,
            self.rivals,
            self.norm,
            self.balls,
            self.precision,
        )

    def certificate(self) -> bytes:
        return write_ball_certificate(self.statement())


@dataclass(eq=False)
class ExactCase:
    """The inputs that move, and the exact network of them, which serves every radius."""

    claims: Claims
    free: Indices
    space: check_box.Space

    def proved(self, radius: Fraction, trees: Sequence[bytes], until: float, again: Again) -> tuple[bytes, ...] | None:
        """The trees, mended where exact arithmetic does not follow, by halves and then by what `again` finds of a
        smaller box for the rival of this number; None where they do not prove it."""
        claims, scale = self.claims, self.claims.whole.input_scale
        self.space.stop = until
        widths = [Fraction(w) for w in claims.widths.tolist()]
        middle = [int(Fraction(float(claims.center[i])) * scale) for i in self.free.tolist()]
        half = [radius * widths[i % len(widths)] * scale for i in self.free.tolist()]
        if any(number.denominator != 1 for number in half):
            return None
        place = check_ball.Place(self.space, middle, [int(number) for number in half], claims.norm)
        found = []
        try:
            for number, (rival, data) in enumerate(zip(claims.rivals, trees, strict=True)):
                for _ in range(ROUNDS):
                    walk = place.tree(claims.label, rival, data, until, Mending)
                    walk.again = partial(again, number)  # type: ignore[attr-defined]
                    walk.walk()
                    if not walk.copied:  # type: ignore[attr-defined]
                        break
                    data = bytes(walk.out + data[walk.copied :])  # type: ignore[attr-defined]
                else:
                    return None
                found.append(data)
        except check.Refused:
            return None
        return tuple(found)

    def keep(self, radius: Fraction, trees: Sequence[bytes]) -> None:
        """Says it in the certificate."""
        self.claims.balls.append(ProvedBall(runs(self.free), radius, trees))


@dataclass(eq=False)
class FormClaims(Claims):
    """Of a smooth network, by forms."""

    def __post_init__(self) -> None:
        lowered = self.lowered()
        network = ball_forms.Network(lowered.data, lowered.numbers)
        self.precision, more = COARSEST, 0
        while True:
            self.precision = min(self.precision + more, FINEST)
            self.forms = ball_forms.BallForms(network, self.precision, self.numbers, math.inf)
            more = self.bits_missing(network.logits)
            if not more or self.precision == FINEST:
                return

    def bits_missing(self, logits: Sequence[int]) -> int:
        """By how many bits rounding takes too much of the margin over a rival, a multiple of STEP."""
        ones = math.sqrt(len(self.widths)) if self.norm == "l2" else len(self.widths)
        at = [self.forms.fixed[i] for i in logits]
        label, missing = at[self.label], 0
        for rival in [at[i] for i in self.rivals]:
            lost, margin = (label.e + rival.e) * ones, label.f - rival.f
            if lost >= margin:
                return MORE
            missing = max(missing, math.ceil(math.log2(max(lost, 1) / margin / LOST) / STEP) * STEP)
        return missing

    def place(self, free: Indices) -> FormCase:
        return FormCase(self, free)


@dataclass(eq=False)
class FormCase:
    """The inputs that move."""

    claims: FormClaims
    free: Indices

    def proved(self, radius: Fraction, trees: Sequence[bytes], until: float, again: Again) -> tuple[bytes, ...] | None:
        """No trees, where forms prove the ball."""
        claims = self.claims
        claims.forms.stop = until
        widths = [Fraction(w) for w in claims.widths.tolist()]
        halves = [radius * widths[i % len(widths)] for i in self.free.tolist()]
        try:
            found = claims.forms.beaten(claims.label, claims.rivals, self.free.tolist(), halves, claims.norm)
        except check.Refused:
            return None
        return () if all(found) else None

    def keep(self, radius: Fraction, trees: Sequence[bytes]) -> None:
        self.claims.balls.append(ProvedBall(runs(self.free), radius, trees))


def runs(places: Indices) -> list[tuple[int, int]]:
    """Ascending places as (first, count)."""
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    return [(int(part[0]), len(part)) for part in np.split(places, cuts)]
