"""One case of a box certificate followed in float64, many nodes at once; leaves that do not hold are split."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from swapproof.proofs import check, check_box
from swapproof.proofs.writing.box_certificate import (
    CUT,
    INPUT,
    LINEAR,
    PHASE,
    RENEW,
    Multipliers,
    cut,
    renew,
    split_input,
    split_phase,
)

from ..form.unsure import Unsure
from ..numbers.float64_rounding import LARGEST, Floats
from .box_nodes import Node, NodeReader
from .float_bounds import FloatBounds
from .float_network import FloatNetwork
from .float_regions import Flags, Indices, Regions, crossed, joined

DEEPEST, SEARCHED = 8, 9
"""How often a leaf that does not hold is cut or halved before it is searched again, which is done once."""
FEW_INPUTS = 10
"""Up to so many an input is halved, with more of them a neuron is decided."""
NARROWEST = 2.0**-58
"""Narrower intervals are not halved: splits are multiples of 2**-64."""
CLEAR = 2.0**-30
"""By this part of all its terms a leaf must clear 0: the checker's own numbers may differ a little."""
CELLS = 1_200_000
"""Numbers in one array of coefficients, which should stay in the cache."""


Again = Callable[[Floats, Floats, bool], bytes]
"""Of a smaller box, and whether neurons may be split: a tree, empty when none was found."""


@dataclass(frozen=True)
class Screened:
    """`tree` is the one that was given, but that leaves which did not hold are split; `unsure` leaves still do not."""

    tree: bytes
    nodes: int
    leaves: int
    unsure: int


def screened(network: FloatNetwork, case: check_box.Case, until: float, again: Again | None = None) -> Screened:
    """Raises Unsure when nothing can be said, Refused where the checker would. `until` as of time.monotonic()."""
    scale = network.space.network.input_scale
    ends = tuple([(int(low * scale), int(high * scale)) for low, high in case.box])
    reader = NodeReader(network.space, ends, case.constraints, case.tree, until)
    walk = Walk(network, reader, until, again)
    with np.errstate(all="ignore"):  # what is not a number decides nothing
        walk.run(start(network, case))
    return walk.result()


def start(network: FloatNetwork, case: check_box.Case) -> Regions:
    """The box as the only region."""
    low, _ = around([end for end, _ in case.box])
    _, high = around([end for _, end in case.box])
    if max(np.abs(low).max(initial=0), np.abs(high).max(initial=0)) > LARGEST:
        raise Unsure("inputs beyond all numbers")
    none, limit = np.zeros((1, len(low))), np.full((1, network.neurons), np.inf)
    return Regions(
        nodes=np.zeros(1, dtype=np.int64),
        low=low[None],
        high=high[None],
        planed=np.zeros(1, dtype=np.bool_),
        slopes=none,
        least=np.zeros(1),
        kept_low=-limit,
        kept_high=limit,
        phases=np.zeros(limit.shape, dtype=np.int8),
        fresh=np.zeros(1, dtype=np.bool_),
    )


def around(numbers: Sequence[Fraction]) -> tuple[Floats, Floats]:
    """The float64 numbers next to these, below and above; the same where one is a float64 number."""
    found = np.array([float(number) for number in numbers])
    less = np.array([Fraction(float(number)) > number for number in numbers], dtype=np.bool_)
    more = np.array([Fraction(float(number)) < number for number in numbers], dtype=np.bool_)
    return np.where(less, np.nextafter(found, -np.inf), found), np.where(more, np.nextafter(found, np.inf), found)


class Walk:
    """From the root down; regions that wait are taken from the end, so many at a time."""

    def __init__(self, network: FloatNetwork, reader: NodeReader, until: float, again: Again | None) -> None:
        self.network, self.until, self.again = network, until, again
        self.nodes, self.reader = reader.read(), reader
        self.rows = network.constraints(reader)
        self.neuron = np.full(len(network.space.network.owner), -1, dtype=np.int64)
        self.neuron[list(network.neuron)] = list(network.neuron.values())
        widest = max([len(layer.rows.bias) for layer in network.layers], default=1)
        deep = any(layer.rows.weights for layer in network.layers)
        cells = 2 * widest**2 if deep else widest * (network.inputs + 2)
        self.batch = int(np.clip(CELLS // (cells + 1), 2, 256))
        self.pending: list[Regions] = []
        self.unsure = 0

    def run(self, root: Regions) -> None:
        self.pending.append(root)
        while self.pending:
            check.require(len(self.nodes) <= check_box.MAX_NODES, "the tree is too large or too deep")
            if time.monotonic() > self.until:
                raise Unsure("out of time")
            regions = self.next_regions()
            kinds = np.array([self.nodes[node].kind for node in regions.nodes])
            idle = regions.fresh & np.array([self.nodes[node].idle for node in regions.nodes], dtype=np.bool_)
            bounded = ((kinds == LINEAR) | (kinds == CUT)) & ~idle
            for fresh in (True, False):
                some = np.flatnonzero(bounded & (regions.fresh == fresh))
                if len(some):
                    self.bound(regions.take(some), kinds[some] == CUT)
            self.halve(regions, np.flatnonzero(kinds == INPUT))
            self.decide(regions, np.flatnonzero(kinds == PHASE))
            self.go_on(regions, kinds == RENEW)
            self.go_on(regions, idle)

    def next_regions(self) -> Regions:
        taken, count = [], 0
        while self.pending and count < self.batch:
            block = self.pending.pop()
            room = self.batch - count
            if len(block) > room:
                self.pending.append(block.take(slice(0, len(block) - room)))
                block = block.take(slice(len(block) - room, None))
            taken.append(block)
            count += len(block)
        return joined(taken)

    def wait(self, regions: Regions, child: int) -> None:
        """As children with this number of the nodes that they are at."""
        if len(regions):
            regions.nodes = np.array([self.nodes[node].children[child] for node in regions.nodes], dtype=np.int64)
            self.pending.append(regions)

    # ---- nodes

    def go_on(self, regions: Regions, some: Flags) -> None:
        """Without the bounds, where these are to be found anew, and without the plane, where it is 0 >= 0."""
        if some.any():
            regions = regions.take(some)
            kinds = np.array([self.nodes[node].kind for node in regions.nodes])
            regions.fresh, regions.planed = kinds != RENEW, regions.planed & (kinds == RENEW)
            self.wait(regions, 0)

    def bound(self, regions: Regions, cuts: Flags) -> None:
        """Leaves that hold are done with; cuts have one child."""
        bounds = FloatBounds.of(self.network, regions)
        weights, slopes, betas = self.multipliers(regions.nodes)
        function = bounds.weighed(self.rows, weights, slopes, betas)
        size = np.abs(function.constant) + (np.abs(function.given) @ regions.reach[:, :, None])[:, :, 0]
        empty = crossed(regions.low, regions.high) | bounds.crossed()
        holds = ((function.least(regions) > CLEAR * size)[:, 0] & bounds.clear() | empty) & bounds.usable()
        failed = ~cuts & ~holds
        if failed.any():
            self.mend(regions.take(failed), function.given[failed, 0], function.risen[failed, 0])
        regions, kept = regions.take(cuts), cuts
        if not len(regions):
            return
        regions.kept_low = np.concatenate([regions.kept_low[:, :0], *(low[kept] for low in bounds.low)], axis=1)
        regions.kept_high = np.concatenate([regions.kept_high[:, :0], *(high[kept] for high in bounds.high)], axis=1)
        regions.slopes = -function.given[kept, 0]
        regions.least = function.constant[kept, 0] - function.error[kept, 0]
        regions.planed[:], regions.fresh[:] = True, True
        regions.move_ends()
        self.wait(regions, 0)

    def halve(self, regions: Regions, rows: Indices) -> None:
        if len(rows):
            points = around([Fraction(*self.nodes[node].point) for node in regions.nodes[rows]])
            inputs = np.array([self.nodes[node].place for node in regions.nodes[rows]], dtype=np.int64)
            for child, half in enumerate(regions.split(rows, inputs, *points)):
                half.fresh[:] = False
                self.wait(half, child)

    def decide(self, regions: Regions, rows: Indices) -> None:
        neurons = np.array([self.neuron[self.nodes[node].place] for node in regions.nodes[rows]], dtype=np.int64)
        twice = regions.phases[rows, neurons] != 0
        check.require(not twice.any(), "a phase out of range or set twice")
        for child, sign in enumerate((-1, 1)):
            half = regions.take(rows)
            half.phases[np.arange(len(rows)), neurons] = sign
            half.fresh[:] = False
            self.wait(half, child)

    def multipliers(self, nodes: Indices) -> tuple[Floats, Floats, Floats]:
        """Weights [n, K]; slopes, below 0 where none is set, and betas [n, neurons]."""
        shape, found = (len(nodes), self.network.neurons), [self.nodes[number] for number in nodes]
        slopes, betas = np.full(shape, -1.0), np.zeros(shape)
        for values, ranges in ((slopes, [node.slopes for node in found]), (betas, [node.betas for node in found])):
            begins, ends = np.array(ranges).T
            counts = ends - begins
            rows = np.repeat(np.arange(len(found)), counts)
            places = np.arange(len(rows)) + (begins - np.cumsum(counts) + counts)[rows]
            values[rows, self.neuron[self.reader.elements[places]]] = self.reader.amounts[places]
        slopes[slopes > 0] /= 64.0
        betas /= np.exp2([node.fine for node in found])[:, None]
        weights = np.array([node.weights for node in found], dtype=np.float64)
        return weights.reshape(len(nodes), -1), slopes, betas

    # ---- leaves that do not hold

    def mend(self, regions: Regions, given: Floats, risen: Floats) -> None:
        """By turns each is cut by all that it may use, and halved where it matters most; then it is searched again."""
        widths = regions.high - regions.low
        mended = np.ones(len(regions), dtype=np.bool_)
        for row, number in enumerate(regions.nodes):
            node = self.nodes[number]
            place = int((np.abs(given[row]) * widths[row]).argmax())
            wide = float(widths[row, place])
            if node.mended < DEEPEST and node.mended % 2 == 0:
                self.cut(node)
            elif node.mended < DEEPEST and self.network.inputs > FEW_INPUTS and risen[row].max(initial=0.0) > 0:
                self.part(node, PHASE, self.element(int(risen[row].argmax())), (0, 1))
            elif node.mended < DEEPEST and wide > NARROWEST:
                self.part(node, INPUT, place, short(float(regions.low[row, place]), wide))
            else:
                mended[row] = self.searched(node, regions.low[row], regions.high[row], bool(regions.phases[row].any()))
        self.unsure += int((~mended).sum())
        self.pending.append(regions.take(mended))

    def cut(self, node: Node) -> None:
        """The leaf comes, with new bounds, below cuts by each constraint and by its multipliers."""
        leaf = replace(node, mended=node.mended + 1)
        count = len(node.weights)
        units = [[int(i == one) for i in range(count)] for one in range(count)] if count > 1 else []
        cuts = [Node(CUT, cut(Multipliers(weights)), weights) for weights in units]
        cuts += [replace(node, kind=CUT, data=bytes([CUT]) + node.data[1:]), Node(RENEW, renew())]
        chain = [*cuts[1:], leaf]
        for above, number in zip(cuts, range(len(self.nodes), len(self.nodes) + len(chain)), strict=True):
            above.children = [number]
        node.become(cuts[0])
        self.nodes += chain

    def part(self, node: Node, kind: int, place: int, point: tuple[int, int]) -> None:
        """The leaf becomes a split into two of its kind."""
        leaf = replace(node, mended=node.mended + 1)
        node.kind, node.place, node.point = kind, place, point
        node.children = [len(self.nodes), len(self.nodes) + 1]
        self.nodes += [leaf, replace(leaf, children=[])]
        if kind == INPUT:
            node.data = split_input(place, point[1].bit_length() - 1, point[0])
        else:
            layer = next(each for each in self.network.layers if self.neuron[place] < each.neurons.stop)
            node.data = split_phase(layer.number, int(self.neuron[place]) - layer.neurons.start)

    def searched(self, node: Node, low: Floats, high: Floats, phases: bool) -> bool:
        """Whether the leaf became the tree of another search, which is made once."""
        tree = b"" if self.again is None or node.mended >= SEARCHED else self.again(low, high, not phases)
        if not tree:
            return False
        found, first = self.reader.sub(tree), len(self.nodes)
        for each in found:
            each.children = [first + child for child in each.children]
            each.mended = SEARCHED
        node.become(found[0])
        self.nodes += found
        return True

    def element(self, neuron: int) -> int:
        return int(np.flatnonzero(self.neuron == neuron)[0])

    # ---- what is found

    def result(self) -> Screened:
        out, stack, leaves, nodes = bytearray(), [0], 0, 0
        while stack:
            node = self.nodes[stack.pop()]
            out += node.data
            nodes, leaves = nodes + 1, leaves + (node.kind == LINEAR)
            stack += reversed(node.children)
        return Screened(bytes(out), nodes, leaves, self.unsure)


def short(low: float, width: float) -> tuple[int, int]:
    """A number near the middle, a multiple of a power of two that is no finer than a sixteenth of the width."""
    unit = 2.0 ** (math.floor(math.log2(width)) - 3)
    above, below = (round((low + width / 2) / unit) * unit).as_integer_ratio()
    return above, below
