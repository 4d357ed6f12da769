"""Random small networks with products and curves: gates, softmax, normalisation, and single functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swapproof.encodings.network import (
    Affine,
    Curve,
    Embedding,
    Layer,
    Network,
    Node,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
)

VOCABULARY = 8
PARTS = ("tanh", "sigmoid", "exp", "erf", "reciprocal", "sqrt", "product", "square", "softmax", "gate", "norm")


@dataclass
class Maker:
    """Nodes one after the other; each part takes a node of some width and gives another."""

    random: np.random.Generator
    nodes: list[Node] = field(default_factory=list)

    def add(self, layer: Layer, *inputs: int, width: int) -> int:
        number = len(self.nodes)
        self.nodes.append(Node(layer, inputs, (1, width), f"node {number}", number))
        return number

    def width(self, at: int) -> int:
        return self.nodes[at].size

    def words(self, length: int, size: int) -> int:
        table = self.random.normal(size=(VOCABULARY, size))
        layer = Embedding(table, np.arange(length)[None])
        self.nodes.append(Node(layer, (), (1, length, size), "words", 0))
        count = length * size
        return self.add(Rearrangement(np.arange(count).reshape(1, count)), 0, width=count)

    def affine(self, at: int, width: int, size: float = 1.0) -> int:
        weight = self.random.normal(size=(self.width(at), width)) * size / np.sqrt(self.width(at))
        return self.add(Affine(weight, self.random.normal(size=width) * 0.3), at, width=width)

    def summed(self, at: int, factor: float, more: float) -> int:
        weight = np.full((self.width(at), 1), factor)
        return self.add(Affine(weight, np.full(1, more)), at, width=1)

    def curve(self, function: Any, at: int) -> int:
        return self.add(Curve(function), at, width=self.width(at))

    def product(self, one: int, other: int) -> int:
        return self.add(Product(), one, other, width=self.width(one))

    def repeated(self, at: int, width: int) -> int:
        return self.add(Rearrangement(np.zeros((1, width), dtype=np.int64)), at, width=width)

    def part(self, name: str, at: int, width: int, size: float) -> int:
        x = self.affine(at, width, size)
        match name:
            case "reciprocal" | "sqrt":
                one, more = np.ones((1, width)), np.full((1, width), 0.1)
                return self.curve(name, self.add(Scaling(one, one, more), self.curve("exp", x), width=width))
            case "product":
                return self.product(x, self.affine(at, width))
            case "square":
                return self.product(x, x)
            case "gate":
                return self.product(self.curve("tanh", x), self.curve("sigmoid", self.affine(at, width)))
            case "softmax":
                return self.softmax(x)
            case "norm":
                root = self.curve("sqrt", self.summed(self.product(x, x), 1 / width, 0.01))
                return self.product(x, self.repeated(self.curve("reciprocal", root), width))
            case _:
                return self.curve(name, x)

    def softmax(self, x: int) -> int:
        powers = self.curve("exp", x)
        whole = self.curve("reciprocal", self.summed(powers, 1.0, 0.0))
        return self.product(powers, self.repeated(whole, self.width(x)))


def smooth_network(parts: tuple[str, ...], source: int) -> Network:
    """Words, these parts with a rectifier here and there, and two or three logits."""
    maker = Maker(np.random.default_rng(source))
    random = maker.random
    length = int(random.integers(2, 6))
    at = maker.words(length, int(random.integers(1, 4)))
    for name in parts:
        at = maker.part(name, at, int(random.integers(2, 6)), float(random.choice([0.5, 1.0, 3.0])))
        if random.random() < 0.3:
            at = maker.add(Rectifier(0.0), at, width=maker.width(at))
    maker.affine(at, int(random.integers(2, 4)))
    return Network(tuple(maker.nodes), length, VOCABULARY)
