"""The tree of a box certificate as nodes, read by the checker's own reader: what it refuses is refused here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from swapproof.proofs import check, check_box
from swapproof.proofs.writing.box_certificate import CUT, INPUT, LINEAR, PHASE, RENEW

from .packed_numbers import ENDED, unpacked

Range = tuple[int, int]
"""Of a reader's elements and amounts."""
MOST = 29
"""Bytes of the longest number."""
HALVES = {LINEAR: 0, CUT: 1, RENEW: 1, INPUT: 2, PHASE: 2}
"""How many children a node has."""


@dataclass(eq=False, slots=True)
class Node:
    """`data` are its own bytes; betas are over 2**fine; `place` and `point` of a split: an input and a number, or an
    element."""

    kind: int
    data: bytes = b""
    weights: Sequence[int] = ()
    slopes: Range = (0, 0)
    betas: Range = (0, 0)
    fine: int = 0
    place: int = 0
    point: tuple[int, int] = (0, 1)
    children: list[int] = field(default_factory=list)
    mended: int = 0
    """How often a leaf that did not hold was cut or halved to get it."""

    def become(self, other: Node) -> None:
        for each in fields(Node):
            setattr(self, each.name, getattr(other, each.name))

    @property
    def idle(self) -> bool:
        """Of a cut: says that 0 >= 0."""
        return self.kind == CUT and not any(self.weights) and self.betas[0] == self.betas[1]


class NodeReader(check_box.Tree):
    """`nodes` in preorder. Raises Refused where the checker would, but for phases that are set twice.

    `elements` of rectifiers, by their numbers in the network, and their `amounts` are those of all tables read.
    """

    elements, amounts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def read(self) -> list[Node]:
        self.numbers, begins = unpacked(self.data)
        self.listed: list[int] = self.numbers.tolist()
        self.begins, self.at = begins.tolist(), 0
        self.tables: list[tuple[int, int, int, int, int]] = []
        self.entered = len(self.elements)
        nodes: list[Node] = []
        waiting: list[tuple[Node | None, int]] = [(None, 0)]
        while waiting:
            parent, depth = waiting.pop()
            check.require(
                len(nodes) < check_box.MAX_NODES and depth <= check_box.MAX_DEPTH, "the tree is too large or too deep"
            )
            begin, node = self.at, Node(self.number())
            check.require(node.kind in HALVES, f"tree byte {node.kind} is not in the format")
            if parent is not None:
                parent.children.append(len(nodes))
            self.fill(node)
            node.data = self.data[self.begins[begin] : self.begins[self.at]]
            nodes.append(node)
            waiting += [(node, depth + 1)] * HALVES[node.kind]
        check.require(self.at == len(self.listed), "bytes after the end of the tree")
        self.enter()
        return nodes

    def sub(self, data: bytes) -> list[Node]:
        """Those of another tree about the same case."""
        self.data = data
        return self.read()

    def number(self) -> int:
        """`at` is a place among all numbers here, not among bytes."""
        found = self.listed[self.at] if self.at < len(self.listed) else -1
        if found < 0:
            raise check.Refused("the tree ends too early, or a number in it is too large")
        self.at += 1
        return found

    def fill(self, node: Node) -> None:
        if node.kind in (LINEAR, CUT):
            node.weights = [self.number() for _ in self.rows]
            node.slopes, node.fine = self.entries(64), self.number()
            check.require(node.fine <= check_box.BETA_BITS, f"betas finer than 2**-{check_box.BETA_BITS}")
            node.betas = self.entries(ENDED)
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

    def integer(self) -> int:
        check.require(self.at < len(self.listed), "the tree ends too early")
        held = self.data[self.begins[self.at] : self.begins[self.at + 1]]
        self.at += 1
        check.require(len(held) <= MOST, "a number in the tree is too large")
        value = sum([(byte & 127) << 7 * place for place, byte in enumerate(held)])
        return value >> 1 ^ -(value & 1)

    def entries(self, highest: int) -> Range:
        """As `table`; what stands in it is read and looked at by `enter`."""
        count, last, begin = self.number(), -1, self.entered
        for _ in range(count):
            layer, pairs = self.rectifier(), self.number()
            check.require(
                layer.start > last and 0 < pairs <= layer.size, f"a table out of order, or of {pairs} elements"
            )
            self.tables.append((self.at, pairs, layer.start, layer.size, highest))
            self.at, self.entered, last = self.at + 2 * pairs, self.entered + pairs, layer.start
        check.require(self.at <= len(self.listed), "the tree ends too early")
        return begin, self.entered

    def enter(self) -> None:
        if self.tables:
            at, pairs, start, size, highest = np.array(self.tables).T
            first = np.cumsum(pairs) - pairs
            table = np.repeat(np.arange(len(pairs)), pairs)
            rank = np.arange(len(table)) - first[table]
            places = at[table] + 2 * rank
            steps, amounts = self.numbers[places], self.numbers[places + 1]
            check.require(bool((steps >= (rank > 0)).all()), "indices must ascend")
            last = np.cumsum(steps)
            places = last - (last - steps)[first][table]
            fit = (places < size[table]) & (amounts >= 0) & (amounts <= highest[table])
            check.require(bool(fit.all()), "an element or a value out of range")
            self.elements = np.concatenate([self.elements, places + start[table]])
            self.amounts = np.concatenate([self.amounts, amounts])
