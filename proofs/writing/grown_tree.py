"""Grows the tree of a box certificate by what the checker itself bounds: halved until all of it is refuted.

For searches that bound more closely than the checker can, as they may where there are maxima: it takes the upper line
of a maximum to be a constant, and below a cut keeps the bounds of what a maximum reads. So nothing is cut here but
directly above a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import copysign, exp, inf
from operator import mul
from pathlib import Path

from .. import check, check_box
from .box_certificate import Multipliers, cut, linear, split_input

WEIGHTS = 1 << 20
"""What the weights of several constraints add up to."""
STEPS, RATE, SMALLEST = 40, 2.0, 1e-6
"""Of the ascent for these weights; how far the first step goes; where a weight starts from at the least."""
FINENESS = 8
"""A split is a multiple of a power of two that is about this part of the width."""


def grown(certificate: Path, stop: float) -> list[bytes]:
    """The trees for the cases of a certificate, whatever its own are. Raises Refused when none is found in time."""
    top, cases = check_box.read_certificate(check.read_file(certificate, check.MAX_CERTIFICATE))
    folder, bound = certificate.parent, top["model"]
    held = {name: check.read_file(folder / name, check.MAX_FILE) for name, _ in bound["tensors"]}
    model = check_box.read_model(check.read_file(folder / bound["file"], check.MAX_FILE), held)
    walks: list[Growing] = []

    def make(
        space: check_box.Space,
        ends: check_box.Ends,
        constraints: list[check_box.Constraint],
        data: bytes,
        stop: float,
    ) -> Growing:
        walks.append(Growing(space, ends, constraints, data, stop))
        return walks[-1]

    check_box.check_claims(top, cases, model, stop, make)
    return [bytes(walk.out) for walk in walks]


def chosen_weights(values: Sequence[float], slopes: Sequence[Sequence[float]]) -> list[int]:
    """For f_k = values[k] + slopes[k] t, |t_i| <= 1, weights for which the least value of the weighted sum is great.

    A step of ascent multiplies each weight by exp(rate f_k(t)), t being where the sum is least.
    """
    count = len(values)
    weights, best, kept = [1 / count] * count, -inf, [1.0] * count
    tried = [[float(i == one) for i in range(count)] for one in range(count)]
    for step in range(STEPS + count):
        weights = tried[step] if step < count else weights if step > count else [1 / count] * count
        given = [sum(w * row[i] for w, row in zip(weights, slopes, strict=True)) for i in range(len(slopes[0]))]
        least = sum(map(mul, weights, values)) - sum(map(abs, given))
        if least > best:
            best, kept = least, weights
        corner = [-copysign(1.0, slope) for slope in given]
        at = [value + sum(map(mul, row, corner)) for value, row in zip(values, slopes, strict=True)]
        rate = RATE / (1 + step) ** 0.5 / (max(map(abs, at)) or 1.0)
        moved = [max(w, SMALLEST) * exp(rate * value) for w, value in zip(weights, at, strict=True)]
        weights = [w / sum(moved) for w in moved]
    return [round(w * WEIGHTS / sum(kept)) for w in kept]


class Growing(check_box.Tree):
    """In place of a walk through a tree, one that makes it: `out`."""

    out: bytearray

    def walk(self) -> None:
        waiting, self.out = [self.start], bytearray()
        while waiting:
            check.in_time(self.space.stop)
            self.nodes += 1
            fits = self.nodes <= check_box.MAX_NODES and len(self.out) <= check.MAX_CERTIFICATE // 2
            check.require(fits, "no tree within the limits was found")
            region = waiting.pop()
            leaf, weights = self.leaf(region)
            if leaf is None:
                split = self.split(region, weights)
                self.out += split
                waiting += reversed(self.followed(split, region))
            else:
                self.leaves += 1
                self.out += leaf

    def followed(self, data: bytes, region: check_box.Region) -> list[check_box.Region]:
        """The children of the node that these bytes begin with."""
        self.data, self.at = data, 1
        return check_box.RULES[data[0]](self, region)

    def leaf(self, region: check_box.Region) -> tuple[bytes | None, Sequence[int]]:
        """Cuts and a leaf that refute the region, if they do, and the weights of the constraints in it."""
        check.require(self.rows, "a box without constraints")
        units = [[int(i == one) for i in range(len(self.rows))] for one in range(len(self.rows))]
        try:
            region = replace(region, box=self.space.bounds(region.inputs))  # type: ignore[arg-type]
        except check_box.Nowhere:
            return linear(Multipliers(units[0])), units[0]
        cuts = b""
        for _ in range(2):
            weights = self.weights(region, units)
            chosen = Multipliers(weights)
            if self.refutes(linear(chosen), region):
                return cuts + linear(chosen), weights
            for found in (*(map(Multipliers, units) if len(units) > 1 else ()), chosen):
                cuts += cut(found)
                region = self.followed(cut(found), region)[0]
        return None, weights

    def refutes(self, data: bytes, region: check_box.Region) -> bool:
        self.data, self.at = data, 1
        return self.holds(region)

    def weights(self, region: check_box.Region, units: Sequence[Sequence[int]]) -> Sequence[int]:
        """Of the constraints, by a linear bound of each."""
        if len(units) == 1:
            return units[0]
        middles, widths = region.inputs.middles, region.inputs.widths
        lines: list[tuple[int, list[int]]] = []
        for unit in units:
            self.data, self.at = linear(Multipliers(unit)), 1
            found = self.plane(region)
            if found is None:
                return unit
            _, slopes, least, _ = found
            value = (least >> check.GRID) * 2 - sum(s * m for s, m in zip(slopes, middles, strict=True))
            lines.append((value, [-s * w for s, w in zip(slopes, widths, strict=True)]))
        size = max(max(abs(value), sum(map(abs, slopes))) for value, slopes in lines) or 1
        values = [value / size for value, _ in lines]
        sloped = [[slope / size for slope in slopes] for _, slopes in lines]
        return chosen_weights(values, sloped)

    def split(self, region: check_box.Region, weights: Sequence[int]) -> bytes:
        """In the middle of the input that moves most what the lines of open elements cost, or all that there is."""
        box, widths = self.space.bounds(region.inputs), region.inputs.widths  # type: ignore[arg-type]
        whole, straight = (self.reach(box, weights, bends=bends) for bends in (True, False))
        moves = [(a - b) * width for a, b, width in zip(whole, straight, widths, strict=True)]
        if not any(moves):
            moves = [a * width for a, width in zip(whole, widths, strict=True)]
        place = moves.index(max(moves))
        (low, high), scale = region.inputs.ends[place], self.space.network.input_scale
        check.require(low < high, "a single point is not refuted")
        exponent = min(check.GRID, (2 * FINENESS * scale // (high - low)).bit_length())
        return split_input(place, exponent, (low + high << exponent) // (2 * scale))

    def reach(self, box: check.Box, weights: Sequence[int], *, bends: bool) -> list[int]:
        """How fast the weighted constraints move with each input where no two paths of it cancel; without `bends` only
        through elements that bend nowhere between their bounds."""
        space, network = self.space, self.space.network

        def define(top: int, c: int) -> list[tuple[int, int]] | None:
            layer = network.owner[top]
            at = top - layer.start
            if not layer.depth:
                return None
            if isinstance(layer, check.Affine):
                row = layer.rows[at]
                return [(i, c * abs(w)) for i, w in zip(layer.lists[row.read], row.weights, strict=True)]
            if isinstance(layer, check.Rectifier):
                low, high = box.inputs[layer][at]
                moves = high > 0 or layer.p if bends else low >= 0 or (high <= 0 and layer.p)
                return [(layer.sources[at], c * layer.factors[at])] if moves else []
            if not isinstance(layer, check.Maximum):
                raise check.Refused("a layer of which nothing is known")
            here, (first, certain) = box.inputs[layer], box.picks[layer][at]
            able = [k for k in layer.windows[at] if here[k][1] >= here[first][0]] if bends else []
            return [(layer.sources[k], c * layer.factors[k]) for k in ([first] if certain else able)]

        function: dict[int, int] = {}
        for weight, (terms, _) in zip(weights, self.rows, strict=True):
            for i, c in terms:
                unit = network.scale * network.input_scale // network.owner[i].scale
                function[i] = function.get(i, 0) + weight * c * unit
        found = [0] * len(network.inputs)
        for i, c in check.substitute({i: abs(c) for i, c in function.items()}, define).items():
            for place, weight in enumerate(space.columns[network.slot[i]]):
                found[place] += c * abs(weight)
        return found
