"""Certificates with maxima that count swaps, at the border of acceptance.

The margin of a leaf is worked out here from section 7 of FORMAT.md, sentence by sentence, over networks of rectifiers
and maxima, some of which read each other. A constant then moves it to 0, or just below: the checkers accept at 0 alone.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest
from both_checkers import CHECKERS, verdicts_of
from javascript_networks import Text, certificate, claim, write_certificates
from long_numbers import products
from tree_bytes import deltas, leb128, mask

onnx = pytest.importorskip("onnx")
np = pytest.importorskip("numpy")

TIMES = 40 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1
POSITIONS, TOKENS = 4, 6

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

Sentence = tuple[int, ...]
Choices = list[list[int]]


def down(x: Fraction) -> Fraction:
    return Fraction(floor(x * 2**64), 2**64)


def up(x: Fraction) -> Fraction:
    return Fraction(ceil(x * 2**64), 2**64)


# ---- networks ------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Element:
    """One element: of a layer (by its index) and a place in it, or a constant (layer -1)."""

    kind: str
    layer: int
    place: int
    reads: list[Element] = field(default_factory=list)
    weights: list[Fraction] = field(default_factory=list)  # of an affine element
    number: Fraction = Fraction(0)  # bias, alpha, or the constant; of an embedding the coordinate
    position: int = 0  # of an embedding

    def is_front(self) -> bool:
        """Affine in the words."""
        return self.kind == "embedding" or (
            self.kind == "affine" and all(x.kind == "constant" or x.is_front() for x in self.reads)
        )

    def counts(self) -> bool:
        """All its roots are constants or affine in the words."""
        return all(x.kind == "constant" or x.is_front() for x in self.roots())

    def roots(self) -> set[Element]:
        if self.kind in ("rectifier", "maximum"):
            return set().union(*(x.roots() for x in self.reads))
        return {self}

    def meets_rectifier(self) -> bool:
        return self.kind == "rectifier" or (self.kind == "maximum" and any(x.meets_rectifier() for x in self.reads))


class Growing:
    """An ONNX graph of doubles that grows beside its elements, a layer at a time."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.layers: list[list[Element]] = []
        self.table = [[self.draw() for _ in range(2)] for _ in range(TOKENS)]
        self.add("Gather", self.keep(self.table), "tokens", output="embedded")
        self.add("Flatten", "embedded", output="flat")
        places = [(p, c) for p in range(POSITIONS) for c in range(2)]
        self.flat = self.layer([Element("embedding", 0, 2 * p + c, [], [], Fraction(c), p) for p, c in places])

    def draw(self) -> Fraction:
        return Fraction(self.source.randint(-24, 24), 16)

    def keep(self, numbers: Any, kind: Any = np.float64) -> str:
        name = f"c{len(self.constants)}"
        array = np.array([[float(x) for x in row] for row in numbers]) if kind is np.float64 else np.array(numbers)
        self.constants.append(onnx.numpy_helper.from_array(array.astype(kind), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def layer(self, elements: list[Element]) -> list[Element]:
        self.layers.append(elements)
        return elements

    def affine(self, x: tuple[str, list[Element]], size: int) -> tuple[str, list[Element]]:
        rows = [[self.draw() for _ in x[1]] for _ in range(size)]
        bias = [self.draw() for _ in range(size)]
        name = self.add("Gemm", x[0], self.keep(rows), self.keep([bias]), transB=1)
        number = len(self.layers)
        return name, self.layer([Element("affine", number, i, x[1], rows[i], bias[i]) for i in range(size)])

    def rectifier(self, x: tuple[str, list[Element]]) -> tuple[str, list[Element]]:
        alpha = self.source.choice([Fraction(0), Fraction(0), Fraction(1, 4)])
        name = self.add("LeakyRelu", x[0], alpha=float(alpha)) if alpha else self.add("Relu", x[0])
        number = len(self.layers)
        return name, self.layer([Element("rectifier", number, i, [y], [], alpha) for i, y in enumerate(x[1])])

    def joined(self, *parts: tuple[str, list[Element]]) -> tuple[str, list[Element]]:
        return self.add("Concat", *(name for name, _ in parts), axis=1), [y for _, part in parts for y in part]

    def maximum(self, x: tuple[str, list[Element]], size: int) -> tuple[str, list[Element]]:
        """Each over a window of up to four of these elements."""
        width = self.source.randint(2, 4)
        windows = [[self.source.randrange(len(x[1])) for _ in range(width)] for _ in range(size)]
        picked = self.add("Gather", x[0], self.keep(windows, np.int64), axis=1)
        name = self.add("ReduceMax", picked, axes=[2], keepdims=0)
        number = len(self.layers)
        reads = [sorted({x[1][at] for at in window}, key=in_order) for window in windows]
        return name, self.layer([Element("maximum", number, i, window) for i, window in enumerate(reads)])


def in_order(x: Element) -> tuple[int, Fraction]:
    """Constants come first, by their numbers."""
    return (x.layer, x.number if x.kind == "constant" else Fraction(x.place))


@dataclass(frozen=True)
class Network:
    growing: Growing
    logits: tuple[str, list[Element]]  # what they read
    weights: list[Fraction]  # of z_0 - z_1

    def model(self, bias: Fraction) -> bytes:
        """z_0 gets the bias as a sum of products of constants, since it has hundreds of bits."""
        helper, growing = onnx.helper, self.growing
        nodes, constants = list(growing.nodes), list(growing.constants)
        digits, factors = products(bias, 50)
        first = self.weights + factors
        rows = np.array([[float(x) for x in first], [0.0] * len(first)])
        constants += [onnx.numpy_helper.from_array(np.array([[float(x) for x in digits]]), "digits")]
        constants += [onnx.numpy_helper.from_array(rows, "last")]
        nodes.append(helper.make_node("Concat", [self.logits[0], "digits"], ["all"], axis=1))
        nodes.append(helper.make_node("Gemm", ["all", "last"], ["logits"], transB=1))
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "g", [info("tokens", onnx.TensorProto.INT64, [1, POSITIONS])],
            [info("logits", onnx.TensorProto.DOUBLE, [1, 2])], constants,
        )  # fmt: skip
        return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def random_network(source: random.Random) -> Network:
    """Maxima of numbers, of what is affine in the words, of rectifiers of it, and of maxima; then a hidden layer."""
    growing = Growing(source)
    flat = ("flat", growing.flat)
    numbers = sorted(Fraction(source.randint(-32, 32), 16) for _ in range(2))
    fixed = (growing.keep([numbers]), [Element("constant", -1, 0, [], [], number) for number in numbers])
    if numbers[0] == numbers[1]:
        fixed[1][1] = fixed[1][0]
    x = growing.affine(flat, source.randint(2, 4))
    y = growing.rectifier(x)
    inputs = source.choice([[y], [x], [x, y], [y, fixed], [x, fixed]])
    maxima = growing.maximum(growing.joined(*inputs) if len(inputs) > 1 else inputs[0], source.randint(1, 3))
    last = [y, maxima]
    if source.random() < 0.5:
        more = growing.rectifier(maxima)
        last += [more, growing.maximum(growing.joined(more, x), source.randint(1, 2))]
    if source.random() < 0.5:
        hidden = growing.affine(growing.joined(*last), 2)
        last.append(growing.rectifier(hidden))
        if source.random() < 0.3:
            last.append(growing.maximum(growing.joined(hidden, maxima), 1))
    if source.random() < 0.5:
        last.append(flat)
    logits = growing.joined(*last)
    # Weights below 0 ask for upper relaxations.
    weights = [growing.draw() if z.kind != "maximum" else -abs(growing.draw()) for z in logits[1]]
    return Network(growing, logits, weights)


# ---- the margin of a leaf (section 7) ------------------------------------------------------------------------------


@dataclass
class Leaf:
    """A region that holds a sentence, with the values of node 8 by element."""

    text: Text
    table: list[list[Fraction]]
    chosen: Choices
    swaps: int
    set_values: dict[Element, int]

    def __post_init__(self) -> None:
        every = self.text.sentences(self.swaps)
        self.sentences = [s for s in every if all(s[w] in options for w, options in enumerate(self.chosen))]
        self.forced = [w for w, options in enumerate(self.chosen) if 0 not in options]
        self.free = [w for w, options in enumerate(self.chosen) if 0 in options and len(options) > 1]
        self.known: dict[Element, tuple[Fraction, Fraction]] = {}
        self.over: dict[Element, list[Fraction]] = {}

    def value(self, x: Element, sentence: Sentence) -> Fraction:
        if x.kind == "constant":
            return x.number
        if x.kind == "rectifier":
            inner = self.value(x.reads[0], sentence)
            return max(inner, x.number * inner)
        if x.kind == "maximum":
            return max(self.value(y, sentence) for y in x.reads)
        if x.kind == "embedding":
            return self.table[self.text.read(sentence)[x.position]][int(x.number)]
        return x.number + sum(c * self.value(y, sentence) for y, c in zip(x.reads, x.weights, strict=True))

    def least(self, terms: dict[Element, Fraction], in_margin: bool) -> Fraction:
        """What backward substitution shows of this sum."""
        sums, constant = [Fraction(0)] * len(self.sentences), Fraction(0)
        while terms:
            x = max(terms, key=in_order)
            c = terms.pop(x)
            if c == 0:
                continue
            if x.kind == "constant" or x.is_front():
                sums = [old + c * self.value(x, s) for old, s in zip(sums, self.sentences, strict=True)]
                continue
            if x.kind == "affine":
                constant += c * x.number
                parts = list(zip(x.reads, x.weights, strict=True))
            elif x.kind == "rectifier":
                slope, more = self.rectifier_line(x, c > 0, in_margin)
                constant += c * more
                parts = [(x.reads[0], slope)]
            else:
                lows = [self.bounds(y)[0] for y in x.reads]
                best = x.reads[lows.index(max(lows))]
                if c > 0 or all(self.bounds(y)[1] <= max(lows) for y in x.reads if y is not best):
                    parts = [(best, Fraction(1))]
                else:
                    parts = []
                    sums = [old + c * more for old, more in zip(sums, self.above(x), strict=True)]
            for y, factor in parts:
                terms[y] = terms.get(y, Fraction(0)) + c * factor
        return min(sums) + constant

    def rectifier_line(self, x: Element, below: bool, in_margin: bool) -> tuple[Fraction, Fraction]:
        alpha = x.number
        low, high = self.bounds(x.reads[0])
        if low >= 0 or high <= 0:
            return (Fraction(1) if low >= 0 else alpha), Fraction(0)
        if not below:
            slope = Fraction(floor(2**16 * (high - alpha * low) / (high - low) + Fraction(1, 2)), 2**16)
            return slope, max((alpha - slope) * low, (1 - slope) * high)
        if in_margin and x in self.set_values:
            return max(alpha, Fraction(self.set_values[x], 64)), Fraction(0)
        return (Fraction(1) if high > -low else alpha), Fraction(0)

    def bounds(self, x: Element) -> tuple[Fraction, Fraction]:
        if x not in self.known:
            self.known[x] = self.bounds_anew(x)
        return self.known[x]

    def bounds_anew(self, x: Element) -> tuple[Fraction, Fraction]:
        if x.kind == "maximum":
            lows, highs = zip(*(self.bounds(y) for y in x.reads), strict=True)
            return max(lows), max(highs)
        if x.kind == "rectifier":
            low, high = (max(end, x.number * end) for end in self.bounds(x.reads[0]))
            return down(low), up(high)
        one = Fraction(1)
        return down(self.least({x: one}, False)), up(-self.least({x: -one}, False))

    def above(self, x: Element) -> list[Fraction]:
        """The upper relaxation of a maximum, in each sentence."""
        if x not in self.over:
            self.over[x] = self.above_anew(x)
        return self.over[x]

    def above_anew(self, x: Element) -> list[Fraction]:
        top = max(self.bounds(y)[1] for y in x.reads)
        height = Fraction(self.set_values.get(x, 64), 64)
        if height == 1:
            return [top] * len(self.sentences)
        original = (0,) * len(self.chosen)

        def put(*pairs: tuple[int, int]) -> Sentence:
            put_there = dict(pairs)
            return tuple(put_there.get(w, 0) for w in range(len(original)))

        def change(z: Element, w: int, o: int) -> Fraction:
            return self.value(z, put((w, o))) - self.value(z, original)

        roots = x.roots()
        base = {
            z: up(self.value(z, original) + sum(max(change(z, w, o) for o in self.chosen[w]) for w in self.forced))
            for z in roots
        }
        bottom = max(base.values())
        if x.meets_rectifier():
            bottom = max(bottom, Fraction(0))
        if top <= bottom:
            return [top] * len(self.sentences)
        beta = bottom + up((top - bottom) * height)
        gains = {(w, o): Fraction(0) for w in self.free for o in self.chosen[w] if o}
        for z in roots:
            changes = {(w, o): up(change(z, w, o)) for w, o in gains}
            most = {w: max([Fraction(0), *(d for (v, _), d in changes.items() if v == w)]) for w in self.free}
            total = sum(sorted(most.values(), reverse=True)[: self.swaps - len(self.forced)])
            slack = beta - base[z]
            if total <= slack:
                continue
            for (w, o), d in changes.items():
                gains[w, o] = max(gains[w, o], d - down(slack * most[w] / total))
        return [beta + sum(gains[w, s[w]] for w in self.free if s[w]) for s in self.sentences]


# ---- trees ---------------------------------------------------------------------------------------------------------


def random_values(network: Network, source: random.Random) -> dict[Element, int]:
    """Slopes of rectifiers and heights of maxima that count swaps."""
    able = [x for layer in network.growing.layers for x in layer if x.kind == "rectifier"]
    tops = [x for layer in network.growing.layers for x in layer if x.kind == "maximum" and x.counts()]
    chosen = source.sample(able, source.randint(0, 1)) + source.sample(tops, source.randint(1, len(tops)))
    return {x: source.choice([0, 0, 1, 63, 64, source.randint(0, 64), source.randint(0, 32)]) for x in chosen}


def node(values: dict[Element, int]) -> bytes:
    layers = sorted({x.layer for x in values})
    out = bytes([8]) + leb128(len(layers))
    for number in layers:
        own = sorted((x for x in values if x.layer == number), key=in_order)
        gaps = deltas([x.place for x in own])
        out += leb128(number) + leb128(len(own))
        out += b"".join(leb128(gap) + leb128(values[x]) for gap, x in zip(gaps, own, strict=True))
    return out


def random_tree(network: Network, text: Text, swaps: int, source: random.Random) -> tuple[bytes, list[Leaf]]:
    """Words nodes, nodes 8 that set some elements anew, and linear leaves: those that hold a sentence are given."""
    leaves: list[Leaf] = []

    def grow(depth: int, chosen: Choices, values: dict[Element, int]) -> bytes:
        several = [w for w, options in enumerate(chosen) if len(options) > 1]
        if source.random() < 0.4:
            more = random_values(network, source)
            return node(more) + grow(depth, chosen, values | more)
        if depth == 0 or not several:
            leaf = Leaf(text, network.growing.table, chosen, swaps, values)
            leaves.extend([leaf] if leaf.sentences else [])
            return b"\1"
        w = source.choice(several)
        left = sorted(source.sample(chosen[w], source.randint(1, len(chosen[w]) - 1)))
        right = [option for option in chosen[w] if option not in left]
        parts = [grow(depth - 1, [*chosen[:w], part, *chosen[w + 1 :]], values) for part in (left, right)]
        return bytes([4]) + leb128(w) + mask(left, len(text.words[w][1])) + b"".join(parts)

    values = random_values(network, source)
    tree = node(values) + grow(source.randint(0, 2), [list(range(len(options))) for _, options in text.words], values)
    return tree, leaves


def random_text(source: random.Random) -> Text:
    """Four words of one position: one without other options, the others with up to two."""
    original = [source.randrange(TOKENS) for _ in range(POSITIONS)]
    words: list[list[Any]] = []
    for position, token in enumerate(original):
        others = [other for other in range(TOKENS) if other != token]
        count = 0 if position == 1 else source.randint(1, 2)
        words.append([position, [[token], *([other] for other in source.sample(others, count))]])
    return Text([["words", original]], words)


@pytest.mark.parametrize("part", range(TIMES))
def test_a_leaf_with_heights_is_accepted_from_its_exact_margin_on(tmp_path: Path, part: int) -> None:
    """At margin 0 the label 0 wins, and 2^-290 below it does not. No sentence has less than the margin of its leaf, and
    heights make many margins greater."""
    source = random.Random(900 + part)
    folder = tmp_path / "run"
    folder.mkdir()
    expected: list[bool] = []
    drafts = []
    better = 0
    while len(expected) < 200:
        network = random_network(source)
        text = random_text(source)
        swaps = source.randint(0, 3)
        tree, leaves = random_tree(network, text, swaps, source)
        goal: dict[Element, Fraction] = {}
        for x, weight in zip(network.logits[1], network.weights, strict=True):
            goal[x] = goal.get(x, Fraction(0)) + weight
        margins = [leaf.least(dict(goal), True) for leaf in leaves]
        plain = [Leaf(leaf.text, leaf.table, leaf.chosen, swaps, {}).least(dict(goal), True) for leaf in leaves]
        better += min(margins) > min(plain)
        for leaf, margin in zip(leaves, margins, strict=True):
            assert margin <= min(sum(c * leaf.value(x, s) for x, c in goal.items()) for s in leaf.sentences)
        for moved, accepted in ((Fraction(0), True), (-Fraction(1, 2**290), False)):
            model = network.model(moved - min(margins))
            file = f"m{len(expected)}.onnx"
            (folder / file).write_bytes(model)
            drafts.append(certificate(file, model, text.parts(), 0, lower=claim("real", swaps, tree)))
            expected.append(accepted)
    names = write_certificates(folder, drafts)
    assert better > 10
    for checker in CHECKERS:
        assert verdicts_of(checker, folder) == dict(zip(names, expected, strict=True)), checker


def test_a_table_names_maxima_that_count_swaps_with_heights_of_at_most_one(tmp_path: Path) -> None:
    """In node 8 only, and whether or not a leaf asks for the height."""
    growing = Growing(random.Random(3))
    rectified = growing.rectifier(growing.affine(("flat", growing.flat), 3))
    counting = growing.maximum(rectified, 2)
    behind = growing.maximum(growing.affine(counting, 2), 1)
    logits = growing.joined(counting, behind)
    model = Network(growing, logits, [Fraction(0)] * 3).model(Fraction(1))
    layer, other = counting[1][0].layer, behind[1][0].layer
    trees = {
        bytes([8, 1, layer, 2, 0, 0, 1, 64, 1]): True,
        bytes([8, 2, layer - 1, 1, 0, 5, layer, 1, 1, 63, 1]): True,
        bytes([8, 1, layer, 1, 1, 65, 1]): False,
        bytes([8, 1, layer, 1, 2, 5, 1]): False,
        bytes([8, 1, other, 1, 0, 64, 1]): False,
        bytes([8, 1, other, 1, 0, 5, 2]): False,
        bytes([8, 1, layer + 1, 1, 0, 5, 1]): False,
        bytes([10, 1, layer, 1, 0, 5, 1]): False,
        bytes([8, 2, layer, 1, 0, 5, layer, 1, 1, 5, 1]): False,
    }
    text = random_text(random.Random(3))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(model)
    claims = [claim("real", 1, tree) for tree in trees]
    names = write_certificates(folder, [certificate("model.onnx", model, text.parts(), 0, lower=c) for c in claims])
    for checker in CHECKERS:
        assert verdicts_of(checker, folder) == dict(zip(names, trees.values(), strict=True)), checker
