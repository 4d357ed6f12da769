"""A ball around the vectors of a text, in the inputs that move, and who is asked to beat whom in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swapproof.encodings.bounds.normal_form import Functions, Stack
from swapproof.encodings.network import Floats
from swapproof.proofs.writing.ball_certificate import Norm

SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class Ball:
    """Around `center`, as far as `radius` in units of `widths`, in one norm; which class is asked of which other."""

    center: Floats
    widths: Floats
    norm: Norm
    label: int
    rival: int
    radius: float = 0.0

    def distance(self, point: Floats) -> float:
        away = np.abs(point - self.center) / self.widths
        return float(away.max() if self.norm == "linf" else np.sqrt((away**2).sum()))

    def margin(self, stack: Stack, points: Floats) -> Floats:
        """[n]: the label's logit less the rival's."""
        logits = stack.values(points)[1]
        return np.asarray(logits[:, self.label] - logits[:, self.rival])

    def with_radius(self, radius: float) -> Ball:
        return replace(self, radius=radius)

    @property
    def half(self) -> Floats:
        return self.radius * self.widths

    def atoms(self, stack: Stack) -> Functions:
        """The margin, which is <= 0 where the rival wins."""
        row = np.zeros((1, len(stack.output)))
        row[0, self.label], row[0, self.rival] = 1.0, -1.0
        return stack.output.mapped(row, 4)
