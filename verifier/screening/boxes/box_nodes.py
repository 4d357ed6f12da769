"""The tree of a box certificate as nodes, read by the checker's own reader: what it refuses is refused here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from swapproof.proofs import check, check_box
from swapproof.proofs.writing.box_certificate import CUT, INPUT, LINEAR, PHASE, RENEW

from ..numbers.float64_rounding import Floats

Entries = list[tuple[NDArray[np.int64], Floats]]
"""Elements of rectifiers, by their numbers in the network, each with a value."""
HALVES = {LINEAR: 0, CUT: 1, RENEW: 1, INPUT: 2, PHASE: 2}
"""How many children a node has."""


@dataclass(eq=False)
class Node:
    """`data` are its own bytes; `place` and `point` of a split: an input and a number, or an element."""

    kind: int
    data: bytes = b""
    weights: Sequence[int] = ()
    slopes: Entries = field(default_factory=list)
    betas: Entries = field(default_factory=list)
    place: int = 0
    point: tuple[int, int] = (0, 1)
    children: list[int] = field(default_factory=list)
    mended: int = 0
    """How often a leaf that did not hold was cut or halved to get it."""


class NodeReader(check_box.Tree):
    """`nodes` in preorder. Raises Refused where the checker would, but for phases that are set twice."""

    def read(self) -> list[Node]:
        nodes: list[Node] = []
        waiting: list[tuple[Node | None, int]] = [(None, 0)]
        while waiting:
            parent, depth = waiting.pop()
            check.require(
                len(nodes) < check_box.MAX_NODES and depth <= check_box.MAX_DEPTH, "the tree is too large or too deep"
            )
            begin, node = self.at, Node(self.byte())
            check.require(node.kind in HALVES, f"tree byte {node.kind} is not in the format")
            if parent is not None:
                parent.children.append(len(nodes))
            self.fill(node)
            node.data = self.data[begin : self.at]
            nodes.append(node)
            waiting += [(node, depth + 1)] * HALVES[node.kind]
        check.require(self.at == len(self.data), "bytes after the end of the tree")
        return nodes

    def sub(self, data: bytes) -> list[Node]:
        """Those of another tree about the same case."""
        self.data, self.at = data, 0
        return self.read()

    def fill(self, node: Node) -> None:
        if node.kind in (LINEAR, CUT):
            node.weights = [self.number() for _ in self.rows]
            node.slopes, exponent = self.entries(64), self.number()
            check.require(exponent <= check_box.BETA_BITS, f"betas finer than 2**-{check_box.BETA_BITS}")
            node.betas = [(places, values / 2.0**exponent) for places, values in self.entries(1 << 31)]
        elif node.kind == INPUT:
            node.place, exponent, above = self.number(), self.number(), self.integer()
            inputs = len(self.start.inputs.ends)
            check.require(
                node.place < inputs and exponent <= check.GRID, "an input out of range, or an exponent beyond 64"
            )
            node.point = above, 1 << exponent
        elif node.kind == PHASE:
            layer, i = self.rectifier(), self.number()
            check.require(i < layer.size, "a phase out of range")
            node.place = layer.start + i

    def entries(self, highest: int) -> Entries:
        """As `table`, whose pairs of single bytes are read all at once."""
        count, last, found = self.number(), -1, []
        for _ in range(count):
            begin, layer, pairs = self.at, self.rectifier(), self.number()
            here = np.frombuffer(self.data[self.at : self.at + 2 * pairs], dtype=np.uint8).astype(np.int64)
            if highest < 128 and 0 < pairs <= layer.size and len(here) == 2 * pairs and here.max() < 128:
                steps, values = here[::2], here[1::2]
                places = np.cumsum(steps)
                check.require(bool((steps[1:] > 0).all()), "indices must ascend")
                check.require(
                    int(places[-1]) < layer.size and int(values.max()) <= highest, "an element or a value out of range"
                )
                self.at += 2 * pairs
                found.append((places + layer.start, values.astype(np.float64)))
            else:
                self.at = begin
                layer, each = self.values(1 << 31, highest)
                found.append((np.array(list(each), dtype=np.int64), np.array(list(each.values()), dtype=np.float64)))
            check.require(layer.start > last, "a table out of order")
            last = layer.start
        return found
