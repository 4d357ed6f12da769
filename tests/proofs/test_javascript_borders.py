"""Certificates at the border of acceptance, with weights from 2^-149 to 2^100 and words that differ in the last bits.

The margin of a leaf with joint groups is worked out here from section 7 of FORMAT.md, sentence by sentence. A constant
then moves it to 0, or to one unit beside: check.js and check.py accept where the format does, and nowhere else.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from pathlib import Path
from typing import Any

import pytest
from both_checkers import CHECKERS, verdicts_of
from javascript_networks import Text, certificate, claim, random_text, write_certificates
from long_numbers import products
from tree_bytes import deltas, leb128, mask

onnx = pytest.importorskip("onnx")
np = pytest.importorskip("numpy")

TIMES = 40 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1
POSITIONS, WORDS = 4, 6
RECTIFIERS = (2, 4)  # their layers, from 0: an embedding comes first, and each has a Gemm before it

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

Row = list[Fraction]


# ---- networks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """y = max(x, alpha x) of x = rows times what comes before, plus shifts, in this order: some twice or not at all."""

    rows: list[Row]
    shifts: Row
    order: list[int]
    alpha: Fraction
    slopes: dict[int, int]  # of 64

    @property
    def weights(self) -> list[Row]:
        return [self.rows[place] for place in self.order]

    @property
    def bias(self) -> Row:
        return [self.shifts[place] for place in self.order]


@dataclass(frozen=True)
class Network:
    """z_0 - z_1 is a sum of the last layer's outputs, and of the embedding, with these coefficients."""

    words: list[Row]
    layers: list[Layer]
    last: Row
    straight: Row
    type: int

    def model(self, bias: Fraction) -> bytes:
        """As an ONNX file; z_0 gets the bias as a sum of products of constants, since it has hundreds of bits."""
        helper = onnx.helper
        kind = np.float64 if self.type == onnx.TensorProto.DOUBLE else np.float32
        constants = []

        def keep(name: str, rows: list[Row]) -> str:
            array = np.array([[float(x) for x in row] for row in rows], kind)
            assert [Fraction(float(x)) for x in array.flat] == [x for row in rows for x in row], name
            constants.append(onnx.numpy_helper.from_array(array, name))
            return name

        digits, factors = products(bias, 50 if kind is np.float64 else 24)
        nodes = [
            helper.make_node("Gather", [keep("words", self.words), "tokens"], ["embedded"]),
            helper.make_node("Flatten", ["embedded"], ["flat"]),
        ]
        before = "flat"
        for number, layer in enumerate(self.layers):
            weights = [keep(f"weights{number}", layer.rows), keep(f"bias{number}", [layer.shifts])]
            nodes.append(helper.make_node("Gemm", [before, *weights], [f"rows{number}"], transB=1))
            constants.append(onnx.numpy_helper.from_array(np.array(layer.order), f"order{number}"))
            nodes.append(helper.make_node("Gather", [f"rows{number}", f"order{number}"], [f"x{number}"], axis=1))
            before = f"y{number}"
            nodes.append(
                helper.make_node("LeakyRelu", [f"x{number}"], [before], alpha=float(layer.alpha))
                if layer.alpha
                else helper.make_node("Relu", [f"x{number}"], [before])
            )
        nodes += [
            helper.make_node("Concat", [before, "flat", keep("digits", [digits])], ["all"], axis=1),
            helper.make_node("Gemm", ["all", keep("last", self.split(factors))], ["logits"], transB=1),
        ]
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "g", [info("tokens", onnx.TensorProto.INT64, [1, POSITIONS])],
            [info("logits", self.type, [1, 2])], constants,
        )  # fmt: skip
        return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())

    def split(self, factors: Row) -> list[Row]:
        """The rows of weights of z_0 and z_1: either has every other coefficient, and z_0 all of the factors."""
        none = Fraction(0)
        row = self.last + self.straight
        first = [x if place % 2 else none for place, x in enumerate(row)]
        second = [none if place % 2 else -x for place, x in enumerate(row)]
        return [first + factors, second + [none] * len(factors)]


def drawer(least: int, most: int, source: random.Random) -> Any:
    """Numbers of up to 20 bits from 2^least to 2^most: near-equal ones, powers of two or any."""
    kind = source.choice(["near", "opposite", "powers", "any", "few"])
    exponent = source.randint(least, most - 20)
    middle = source.getrandbits(20) | 1 << 19

    def draw() -> Fraction:
        sign = source.choice([-1, 1])
        unit = Fraction(2) ** exponent
        match kind:
            case "near":
                return (middle + source.randint(-1, 1)) * unit
            case "opposite":
                return sign * (middle + source.randint(-1, 1)) * unit
            case "powers":
                return sign * Fraction(2) ** source.randint(least, most - 1)
            case "any":
                return sign * source.getrandbits(20) * Fraction(2) ** source.randint(least, most - 20)
        return source.randint(-2, 2) * unit

    return draw


def random_network(source: random.Random) -> Network:
    width = source.choice([1, 1, 2])
    sizes = [POSITIONS * width, source.randint(1, 6), *([source.randint(1, 2)] if source.random() < 0.5 else [])]
    draw = drawer(*source.choice([(-149, 100), (-149, -100), (70, 100), (-20, 20)]), source)
    other = drawer(-149, 100, source) if source.random() < 0.6 else draw
    words = [[source.choice([draw, draw, other])() for _ in range(width)] for _ in range(WORDS)]
    layers = []
    for inner, outer in pairwise(sizes):
        draw = drawer(*source.choice([(-30, 30), (-2, 22), (-20, 0)]), source)
        bias = drawer(-60, 60, source) if source.random() < 0.4 else lambda: Fraction(0)
        alpha = source.choice([Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(1, 4), Fraction(1)])
        slopes = {i: source.randint(0, 64) for i in range(outer) if source.random() < 0.3}
        order = [source.randrange(outer) for _ in range(outer)] if source.random() < 0.3 else list(range(outer))
        rows = [[draw() for _ in range(inner)] for _ in range(outer)]
        layers.append(Layer(rows, [bias() for _ in range(outer)], order, alpha, slopes))
    draw = drawer(*source.choice([(-30, 30), (-2, 22)]), source)
    flip = source.choice([-1, 1])
    last = [abs(draw()) * source.choice([flip, flip, flip, -flip]) for _ in range(sizes[-1])]
    draw = drawer(-30, 30, source)
    straight = [draw() * source.choice([0, 0, 1]) for _ in range(sizes[0])]
    return Network(words, layers, last, straight, source.choice([onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT]))


# ---- the margin of a leaf (section 7) ------------------------------------------------------------------------------


Sentences = list[tuple[Row, Row]]  # the embedding, and the first layer's pre-activations


def dot(a: Row, b: Row) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), Fraction(0))


def least(inner: Row, straight: Row, sentences: Sentences) -> Fraction:
    return min(dot(inner, x) + dot(straight, e) for e, x in sentences)


def down(x: Fraction) -> Fraction:
    return Fraction(floor(x * 2**64), 2**64)


@dataclass(frozen=True)
class Line:
    """Of one rectifier: the slopes below and above, and the constant above."""

    lower: Fraction
    upper: Fraction
    constant: Fraction
    exact: bool


def line(low: Fraction, high: Fraction, alpha: Fraction) -> Line:
    if low >= 0 or high <= 0:
        slope = Fraction(1) if low >= 0 else alpha
        return Line(slope, slope, Fraction(0), True)
    s = Fraction(floor(2**16 * (high - alpha * low) / (high - low) + Fraction(1, 2)), 2**16)
    return Line(Fraction(1) if high > -low else alpha, s, max((alpha - s) * low, (1 - s) * high), False)


def pass_rectifier(
    coefficients: Row, lines: list[Line], layer: Layer | None, jointly: dict[int, Fraction]
) -> tuple[Row, Fraction]:
    """Coefficients of the pre-activations, and a constant; in margins with the slopes of the layer."""
    slopes, constant = [], Fraction(0)
    for i, (c, its) in enumerate(zip(coefficients, lines, strict=True)):
        slope = its.lower if c > 0 else its.upper
        if i in jointly:
            slope = jointly[i]
        elif not its.exact and c < 0:
            constant += c * its.constant
        elif not its.exact and layer is not None and i in layer.slopes:
            slope = max(layer.alpha, Fraction(layer.slopes[i], 64))
        slopes.append(c * slope)
    return slopes, constant


def margin(network: Network, embedded: list[Row], groups: list[dict[int, int]], sign: int) -> Fraction:
    """Of label over rival (sign 1: class 0 over class 1) in the region of these sentences."""
    first, *others = network.layers
    sentences = [(e, [dot(row, e) + b for row, b in zip(first.weights, first.bias, strict=True)]) for e in embedded]
    lines = []
    for i in range(len(first.order)):
        values = [x[i] for _, x in sentences]
        lines.append(line(down(min(values)), -down(-max(values)), first.alpha))

    def bound(row: Row, bias: Fraction) -> Fraction:
        inner, more = pass_rectifier(row, lines, None, {})
        return down(least(inner, [Fraction(0)] * len(network.straight), sentences) + more + bias)

    goal, constant = [sign * x for x in network.last], Fraction(0)
    for layer in others:
        ends = [(bound(w, b), -bound([-x for x in w], -b)) for w, b in zip(layer.weights, layer.bias, strict=True)]
        goal, constant = pass_rectifier(goal, [line(*pair, layer.alpha) for pair in ends], layer, {})
        constant += dot(goal, layer.bias)
        goal = [dot(goal, [row[j] for row in layer.weights]) for j in range(len(first.order))]
    # What groups hold together: elements with a coefficient below 0.
    together = [{i: Fraction(a, 64) for i, a in group.items() if goal[i] < 0} for group in groups]
    inner, more = pass_rectifier(goal, lines, first, {i: a for group in together for i, a in group.items()})
    gaps = sum(
        max(sum(-goal[i] * (max(x[i], first.alpha * x[i]) - a * x[i]) for i, a in group.items()) for _, x in sentences)
        for group in together
    )
    return least(inner, [sign * x for x in network.straight], sentences) + constant + more - gaps


# ---- certificates --------------------------------------------------------------------------------------------------


def random_groups(size: int, source: random.Random) -> list[dict[int, int]]:
    order = source.sample(range(size), size)
    pieces = [order] if source.random() < 0.5 else [order[: size // 2], order[size // 2 : size // 2 + 2]]
    return [{i: source.choice([0, 64, source.randint(0, 64)]) for i in piece} for piece in pieces if piece]


def entries(node: int, values: dict[int, int]) -> bytes:
    order = sorted(values)
    pairs = zip(deltas(order), order, strict=True)
    return leb128(node) + leb128(len(order)) + b"".join(leb128(gap) + leb128(values[i]) for gap, i in pairs)


def random_split(
    text: Text, every: list[tuple[int, ...]], source: random.Random
) -> tuple[bytes, list[list[tuple[int, ...]]]]:
    """A tree of words nodes and linear leaves; and the sentences of each leaf. Some leaves hold none."""

    def grow(depth: int, chosen: list[list[int]]) -> bytes:
        several = [word for word, options in enumerate(chosen) if len(options) > 1]
        if depth == 0 or not several:
            parts.append([s for s in every if all(s[w] in options for w, options in enumerate(chosen))])
            return b"\1"
        word = source.choice(several)
        left = sorted(source.sample(chosen[word], source.randint(1, len(chosen[word]) - 1)))
        node = bytes([4]) + leb128(word) + mask(left, len(text.words[word][1]))
        for part in (left, [option for option in chosen[word] if option not in left]):
            node += grow(depth - 1, [*chosen[:word], part, *chosen[word + 1 :]])
        return node

    parts: list[list[tuple[int, ...]]] = []
    tree = grow(source.choice([0, 0, 1, 1, 2, 3]), [list(range(len(options))) for _, options in text.words])
    return tree, parts


@pytest.mark.parametrize("part", range(TIMES))
def test_a_leaf_is_accepted_from_its_exact_margin_on(tmp_path: Path, part: int) -> None:
    """At margin 0 the class with the lower number wins; 2^-290 above it any class does, and below it none."""
    source = random.Random(300 + part)
    folder = tmp_path / "run"
    folder.mkdir()
    expected: list[bool] = []
    drafts = []
    while len(expected) < 400:
        network = random_network(source)
        text = random_text([["words", [source.randrange(WORDS) for _ in range(POSITIONS)]]], WORDS, source)
        swaps = source.randint(1, POSITIONS)
        every = text.sentences(swaps)
        # The last joint node counts, also if it has no groups.
        size = len(network.layers[0].order)
        joint = [random_groups(size, source) for _ in range(source.choice([1, 1, 1, 2]))]
        if source.random() < 0.1:
            joint.append([])
        groups = joint[-1]
        split, parts = random_split(text, every, source)
        slopes = [(node, layer.slopes) for node, layer in zip(RECTIFIERS, network.layers, strict=False) if layer.slopes]
        tree = bytes([8]) + leb128(len(slopes)) + b"".join(entries(*pair) for pair in slopes) if slopes else b""
        for node in joint:
            tree += bytes([10, len(node)]) + b"".join(entries(RECTIFIERS[0], group) for group in node)
        tree += split
        # Joint groups are about coefficients below 0.
        likely = 0 if sum(c < 0 for c in network.last) * 2 > len(network.last) else 1
        label = source.choice([likely, likely, likely, 1 - likely])
        sign = 1 if label == 0 else -1

        def embedded(sentence: tuple[int, ...]) -> Row:
            return [x for token in text.read(sentence) for x in network.words[token]]  # noqa: B023

        margins = [margin(network, [embedded(s) for s in part], groups, sign) for part in parts if part]
        unit = Fraction(1, 2**290)
        # The least step that changes the verdict: at margin 0 the label 0 wins, and the label 1 loses.
        for moved, accepted in ((0, True), (-unit, False)) if label == 0 else ((unit, True), (0, False)):
            model = network.model(sign * (moved - min(margins)))
            file = f"m{len(expected)}.onnx"
            (folder / file).write_bytes(model)
            claims = {"lower": claim("real", swaps, tree)}
            drafts.append(certificate(file, model, text.parts(), label, **claims))
            expected.append(accepted)
    names = write_certificates(folder, drafts)
    for checker in CHECKERS:
        assert verdicts_of(checker, folder) == dict(zip(names, expected, strict=True)), checker


# ---- the rounding bound of one sentence (section 8) ----------------------------------------------------------------


Place = tuple[int, int] | Fraction  # an element of a layer, or a constant element
UNIT = Fraction(1, 2**64)


def up(x: Fraction) -> Fraction:
    return -down(-x)


@dataclass(frozen=True)
class Values:
    """The elements of one value of shape (1, n), by its name in the file."""

    name: str
    places: list[Place]


class Chain:
    """A graph that grows beside its layers: `layers` holds of each what it is, and its elements one by one."""

    def __init__(self, text: Text, source: random.Random) -> None:
        self.source = source
        self.text = text
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.layers: list[tuple[str, list[Any]]] = []
        self.table = [[source.randint(-16, 16) / 8 for _ in range(2)] for _ in range(WORDS)]
        self.nodes.append(onnx.helper.make_node("Gather", [self.keep(self.table), "tokens"], ["e"]))
        self.nodes.append(onnx.helper.make_node("Flatten", ["e"], ["flat"]))
        self.flat = self.layer("flat", "embedding", [(p, c) for p in range(POSITIONS) for c in range(2)])

    def keep(self, numbers: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.array(numbers, np.float32), name))
        return name

    def layer(self, name: str, kind: str, elements: list[Any]) -> Values:
        self.layers.append((kind, elements))
        return Values(name, [(len(self.layers) - 1, i) for i in range(len(elements))])

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def gemm(self, x: Values, weights: list[list[float]], bias: list[float]) -> Values:
        name = self.add("Gemm", x.name, self.keep(weights), self.keep([bias]), transB=1)
        rows = [(x.places, list(map(Fraction, row)), Fraction(b)) for row, b in zip(weights, bias, strict=True)]
        return self.layer(name, "affine", rows)

    def draw(self) -> float:
        return self.source.choice([0, 0, 1, -1, 2, 3, -5, 4, -4]) / 4

    def step(self, x: Values, before: list[Values]) -> Values:
        """One more layer on x, sometimes beside a value of the same size."""
        size = len(x.places)
        none = Fraction(0)
        one = Fraction(1)
        other, third = self.source.choices([value for value in before if len(value.places) == size] or [x], k=2)
        pairs = zip(x.places, other.places, strict=True)
        match self.source.choice(["gemm", "gemm", "residual", "less", "sums", "sum", "mul", "relu", "leaky", "max"]):
            case "gemm":
                out = self.source.choice([size, 3])
                weights = [[self.draw() for _ in range(size)] for _ in range(out)]
                return self.gemm(x, weights, [self.draw() for _ in range(out)])
            case "residual":
                rows = [([a, b], [one, one], none) for a, b in pairs]
                return self.layer(self.add("Add", x.name, other.name), "affine", rows)
            case "less":
                rows = [([a, b], [one, -one], none) for a, b in pairs]
                return self.layer(self.add("Sub", x.name, other.name), "affine", rows)
            case "sums":
                all_three = zip(x.places, other.places, third.places, strict=True)
                rows = [(list(read), [one] * 3, none) for read in all_three]
                return self.layer(self.add("Sum", x.name, other.name, third.name), "affine", rows)
            case "sum":
                number = self.draw()
                rows = [([a, Fraction(number), a], [one, one, one], none) for a in x.places]
                return self.layer(self.add("Sum", x.name, self.keep(number), x.name), "affine", rows)
            case "mul":
                factors = [self.draw() for _ in range(size)]
                rows = [([a], [Fraction(c)], none) for a, c in zip(x.places, factors, strict=True)]
                return self.layer(self.add("Mul", x.name, self.keep([factors])), "affine", rows)
            case "max":
                return self.layer(self.add("Max", x.name, other.name), "maximum", [[a, b] for a, b in pairs])
            case "leaky":
                return self.layer(self.add("LeakyRelu", x.name, alpha=0.25), "leaky", list(x.places))
            case _:
                return self.layer(self.add("Relu", x.name), "relu", list(x.places))

    def model(self, logits: Values) -> bytes:
        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            self.nodes, "g", [info("tokens", onnx.TensorProto.INT64, [1, POSITIONS])],
            [info(logits.name, onnx.TensorProto.FLOAT, [1, 2])], self.constants,
        )  # fmt: skip
        made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
        return bytes(made.SerializeToString())

    def evaluate(self, tokens: list[int]) -> dict[Place, Fraction]:
        values: dict[Place, Fraction] = {}

        def at(place: Place) -> Fraction:
            return place if isinstance(place, Fraction) else values[place]

        for number, (kind, elements) in enumerate(self.layers):
            for i, element in enumerate(elements):
                if kind == "embedding":
                    found = Fraction(self.table[tokens[element[0]]][element[1]])
                elif kind == "affine":
                    found = sum((w * at(x) for x, w in zip(*element[:2], strict=True)), element[2])
                elif kind == "maximum":
                    found = max(at(x) for x in element)
                else:
                    found = max(at(element), at(element) * (Fraction(1, 4) if kind == "leaky" else 0))
                values[number, i] = found
        return values

    def in_words(self) -> list[bool]:
        """Of each layer: is it affine in the words?"""
        found: list[bool] = []
        for kind, elements in self.layers:
            read = [x for element in elements for x in element[0]] if kind == "affine" else []
            found.append(
                kind == "embedding" or (kind == "affine" and all(isinstance(x, Fraction) or found[x[0]] for x in read))
            )
        return found


@dataclass(frozen=True)
class Rounding:
    size: Fraction
    error: Fraction
    count: int = 0


def roundings(
    chain: Chain, values: dict[Place, Fraction] | None, whole: dict[Place, Rounding]
) -> dict[Place, Rounding]:
    """A, e and n of all elements: over the whole space, or of one sentence with these values."""
    found: dict[Place, Rounding] = {}
    keeps = chain.in_words()

    def at(place: Place) -> Rounding:
        return Rounding(up(abs(place)), Fraction(0)) if isinstance(place, Fraction) else found[place]

    def ends(place: Place) -> tuple[Fraction, Fraction]:
        if isinstance(place, Fraction):
            return down(place), up(place)
        return (-at(place).size, at(place).size) if values is None else (down(values[place]), up(values[place]))

    for number, (kind, elements) in enumerate(chain.layers):
        for i, element in enumerate(elements):
            if values is not None and keeps[number]:
                found[number, i] = whole[number, i]
            elif kind == "embedding":
                position, column = element
                words = chain.text.words
                standing = {option[position - start] for start, options in words for option in options
                            if start <= position < start + len(option)}  # fmt: skip
                standing.add(chain.text.inputs[0][1][position])
                found[number, i] = Rounding(max(abs(Fraction(chain.table[t][column])) for t in standing), Fraction(0))
            elif kind == "affine":
                read, weights, bias = element
                terms = [(abs(w), at(x)) for x, w in zip(read, weights, strict=True) if w and at(x).size + at(x).error]
                total = sum((w * (x.size + x.error) for w, x in terms), abs(bias))
                joined = sum(x.count for w, x in terms if w == 1)
                n = len(terms) + 3 + joined + max((x.count for w, x in terms if w != 1), default=0)
                error = up(sum((w * x.error for w, x in terms), Fraction(0)) + Fraction(n * 257, 2**32) * total) + UNIT
                found[number, i] = Rounding(up(sum((w * x.size for w, x in terms), abs(bias))), error, n)
            elif kind == "maximum":
                lows, highs = zip(*map(ends, element), strict=True)
                found[number, i] = Rounding(max(-max(lows), max(highs)), max(at(x).error for x in element))
            else:
                (low, high), error = ends(element), at(element).error
                if kind == "leaky":
                    size = max(-low, high)
                    more = Fraction(4 * 257, 2**32) * (size + error)
                    found[number, i] = Rounding(size, up(error + more) + UNIT)
                elif high + error <= 0:
                    found[number, i] = Rounding(Fraction(0), Fraction(0))
                else:
                    found[number, i] = Rounding(max(high, Fraction(0)), error)
    return found


def bound(chain: Chain, logits: Values, values: dict[Place, Fraction]) -> Fraction:
    whole = roundings(chain, None, {})
    both = (whole, roundings(chain, values, whole))
    return min(sum((found[place].error for place in logits.places), UNIT) for found in both)


def float_of(bits: int) -> float:
    return float(np.array([bits], np.int32).view(np.float32)[0])


@pytest.mark.parametrize("part", range(TIMES))
def test_a_sentence_is_accepted_at_float32_from_its_rounding_bound_on(tmp_path: Path, part: int) -> None:
    """Chains of affine layers, with rectifiers, maxima and sums of numbers between them. A bias of a few billionths
    moves the margin over the bound: one float lower the claim is refused."""
    source = random.Random(900 + part)
    folder = tmp_path / "run"
    folder.mkdir()
    expected: list[bool] = []
    drafts = []
    while len(expected) < 200:
        tokens = [source.randrange(WORDS) for _ in range(POSITIONS)]
        chain = Chain(random_text([["words", tokens]], WORDS, source), source)
        values = [chain.flat]
        for _ in range(source.randint(1, 7)):
            values.append(chain.step(values[-1], values))
        last = values[-1]
        weights = [[chain.draw() for _ in last.places] for _ in range(2)]
        exact = chain.evaluate(tokens)
        base = sum((Fraction(a - b) * exact[x] for a, b, x in zip(*weights, last.places, strict=True)), Fraction(0))
        even = float(np.float32(-base))
        kept = len(chain.nodes), len(chain.constants), len(chain.layers)

        def finish(less: float) -> Values:
            """The logits, the rival's lower by so much."""
            for items, count in zip((chain.nodes, chain.constants, chain.layers), kept, strict=True):  # noqa: B023
                del items[count:]
            return chain.gemm(last, weights, [even, -less])  # noqa: B023

        def holds(bits: int) -> bool:
            logits = finish(float_of(bits))
            found = chain.evaluate(tokens)  # noqa: B023
            return found[logits.places[0]] - found[logits.places[1]] > bound(chain, logits, found)  # noqa: B023

        # The least float that is enough; floats of one sign are ordered as their bits.
        none, enough = 0, int(np.array([1], np.float32).view(np.int32)[0])
        if holds(none) or not holds(enough):
            continue
        while enough - none > 1:
            middle = (none + enough) // 2
            none, enough = (none, middle) if holds(middle) else (middle, enough)
        for bits in (enough, none):
            logits = finish(float_of(bits))
            file = f"m{len(expected)}.onnx"
            model = chain.model(logits)
            (folder / file).write_bytes(model)
            lower = claim("float32", 0, b"\2")
            drafts.append(certificate(file, model, chain.text.parts(), 0, lower=lower))
            expected.append(bits == enough)
    names = write_certificates(folder, drafts)
    for checker in CHECKERS:
        assert verdicts_of(checker, folder) == dict(zip(names, expected, strict=True)), checker
