"""Small ONNX classifiers of every supported kind, their truth by onnxruntime, and a plain proof producer.

Weights are small multiples of 1/4, so that float32 evaluation is exact and onnxruntime can be the judge.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from graph_builder import Builder, floats, tokens
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from swapproof.proofs import check, lower
from swapproof.proofs.writing import certificate as c

VOCABULARY = 7


@dataclass
class Maker(Builder):
    """One for texts of this length, whose weights come from one random generator."""

    rng: random.Random
    length: int
    scale: float = 0.25

    def weights(self, *shape: int) -> str:
        size = int(np.prod(shape, dtype=np.int64))
        values = [self.rng.randint(-6, 6) * self.scale for _ in range(size)]
        return self.constant(np.array(values, dtype=np.float32).reshape(shape))

    def embed(self, width: int) -> str:
        return self.call("Gather", self.weights(VOCABULARY, width), "tokens")

    def gemm(self, x: str, wide: int, out: int) -> str:
        return self.call("Gemm", x, self.weights(out, wide), self.weights(out), transB=1)

    def model(self, output: str, classes: int, opset: int = 17, inputs: Sequence[str] = ("tokens",)) -> bytes:
        texts = [tokens("batch", self.length, name=name) for name in inputs]
        made = self.proto(texts, [floats(output, "batch", classes)], opset=opset)
        onnx.checker.check_model(made)
        return made.SerializeToString()  # type: ignore[no-any-return]


def paper(m: Maker, classes: int) -> bytes:
    """Embedding, flatten, one hidden layer."""
    flat = m.call("Flatten", m.embed(2))
    hidden = m.call("Relu", m.gemm(flat, 2 * m.length, 5))
    return m.model(m.gemm(hidden, 5, classes), classes)


def two_layers(m: Maker, classes: int) -> bytes:
    """The shape chain torch writes, MatMul and Add apart, two hidden layers, the second leaky."""
    x = m.embed(2)
    batch = m.call("Gather", m.call("Shape", x), m.constant(np.array(0)), axis=0)
    shape = m.call("Concat", m.call("Unsqueeze", batch, m.constant([0])), m.constant([-1]), axis=0)
    flat = m.call("Reshape", x, shape)
    first = m.call("Relu", m.call("Add", m.call("MatMul", flat, m.weights(2 * m.length, 4)), m.weights(4)))
    second = m.call("LeakyRelu", m.call("Add", m.weights(1, 3), m.call("MatMul", first, m.weights(4, 3))), alpha=0.25)
    return m.model(m.gemm(second, 3, classes), classes)


def bag(m: Maker, classes: int) -> bytes:
    """Mean of embeddings (the length is 4), scaled, one hidden layer."""
    mean = m.call("ReduceMean", m.embed(3), axes=[1], keepdims=0)
    scaled = m.call("Add", m.call("Mul", mean, m.weights(3)), m.weights(1))
    hidden = m.call("Relu", m.gemm(scaled, 3, 4))
    return m.model(m.gemm(hidden, 4, classes), classes)


def convolution(m: Maker, classes: int) -> bytes:
    """1-D convolution with padding, rectified, maximum over time, one hidden layer, softmax."""
    x = m.call("Transpose", m.embed(2), perm=[0, 2, 1])
    conv = m.call("Conv", x, m.weights(4, 1, 2), m.weights(4), kernel_shape=[2], pads=[1, 0], group=2, strides=[1])
    top = m.call("ReduceMax", m.call("Relu", conv), axes=[2], keepdims=0)
    hidden = m.call("Relu", m.gemm(top, 4, 3))
    return m.model(m.call("Softmax", m.gemm(hidden, 3, classes), axis=-1), classes)


def plane(m: Maker, classes: int) -> bytes:
    """2-D convolution over the sentence as a plane, pooled, before and after the rectifier."""
    x = m.call("Unsqueeze", m.embed(3), m.constant([1]))
    conv = m.call("Conv", x, m.weights(2, 1, 2, 2), m.weights(2), dilations=[1, 1], strides=[1, 1], pads=[0, 1, 1, 0])
    pool = m.call("MaxPool", conv, kernel_shape=[2, 2], strides=[2, 1], pads=[0, 0, 0, 1])
    rows, columns = m.length // 2, 3
    flat = m.call("Flatten", m.call("Relu", pool))
    return m.model(m.gemm(flat, 2 * rows * columns, classes), classes)


def residual(m: Maker, classes: int) -> bytes:
    """A skip connection around a hidden layer, and a difference."""
    flat = m.call("Flatten", m.embed(2))
    first = m.call("Relu", m.gemm(flat, 2 * m.length, 4))
    second = m.call("Relu", m.call("Add", m.gemm(first, 4, 4), first))
    last = m.call("Sub", second, m.gemm(flat, 2 * m.length, 4))
    return m.model(m.gemm(last, 4, classes), classes)


def oddities(m: Maker, classes: int) -> bytes:
    """Everything else: slices, padding, concatenation, pooling of all kinds, Max, constants, heads."""
    tokens = m.call("Cast", m.call("Identity", "tokens"), to=TensorProto.INT32)
    x = m.call("Dropout", m.call("Gather", m.weights(VOCABULARY, 2), tokens))
    turned = m.call("Transpose", x, perm=[0, 2, 1])
    left = m.call("Slice", turned, m.constant([0]), m.constant([-1]), m.constant([2]), m.constant([1]))
    right = m.call("Slice", turned, m.constant([-1]), m.constant([-100]), m.constant([-1]), m.constant([-1]))
    average = m.call("AveragePool", right, kernel_shape=[2], pads=[1, 0], strides=[1], count_include_pad=1)
    padded = m.call("Pad", left, m.constant([0, 0, 1, 0, 0, 0]), m.constant(np.array(0.5, np.float32)))
    half = m.call("Div", m.call("Neg", padded), m.constant(np.array([2.0], np.float32)))
    top = m.call("Max", half, average, m.constant(np.array([[[0.25], [-4.0]]], np.float32)))
    joined = m.call(
        "Concat", top, m.call("LeakyRelu", turned, alpha=0.5), m.constant(np.ones((1, 1, m.length), np.float32)), axis=1
    )
    best = m.call("Squeeze", m.call("GlobalMaxPool", joined), m.constant([2]))
    total = m.call("ReduceSum", joined, m.constant([2]), keepdims=0)
    mean = m.call("Squeeze", m.call("GlobalAveragePool", m.call("Relu", joined)))
    mean = m.call("Reshape", mean, m.constant([1, -1]))
    together = m.call("Sub", m.constant(np.array(1.0, np.float32)), m.call("Concat", best, total, mean, axis=-1))
    picked = m.call("Gather", together, m.constant([0, -1, 3, 5, 7]), axis=1)
    return m.model(m.call("LogSoftmax", m.gemm(picked, 5, classes)), classes)


def straight(m: Maker, classes: int) -> bytes:
    """No nonlinear layer at all."""
    return m.model(m.gemm(m.call("ReduceSum", m.embed(3), m.constant([1]), keepdims=0), 3, classes), classes)


def normalised(m: Maker, classes: int) -> bytes:
    """A batch normalisation with variances whose roots are exact, in front of a rectifier."""
    x = m.call("Transpose", m.embed(2), perm=[0, 2, 1])
    variance = m.constant(np.array([0.25, 4.0], np.float32))
    scaled = m.call("BatchNormalization", x, m.weights(2), m.weights(2), m.weights(2), variance, epsilon=0.0)
    flat = m.call("Flatten", m.call("Relu", scaled))
    return m.model(m.gemm(flat, 2 * m.length, classes), classes)


def pieces(m: Maker, classes: int) -> bytes:
    """Split, Tile, Expand, Sum and Min with numbers among them, a constant of a shape (the length is 4)."""
    first, rest = m.parts("Split", 2, m.embed(2), m.constant([1, 3]), axis=1)
    tiled, wide = m.call("Tile", first, m.constant([1, 3, 1])), m.call("Expand", first, m.constant([3, 1]))
    low = m.call("Min", m.call("Sum", tiled, wide, m.weights(2), rest), rest, m.weights(1))
    half = numpy_helper.from_array(np.array([0.5], np.float32))
    joined = m.call("Concat", low, m.call("ConstantOfShape", m.constant([1, 1, 2]), value=half), axis=1)
    hidden = m.call("Relu", m.gemm(m.call("Flatten", joined), 8, 4))
    return m.model(m.gemm(hidden, 4, classes), classes)


def algebra(m: Maker, classes: int) -> bytes:
    """A product with a constant on the left, division element by element, Gemm with everything (the length is 4)."""
    left = m.call("MatMul", m.weights(2, 3, 4), m.embed(2))
    halves = m.call("Div", left, m.constant(np.array([2.0, -4.0], np.float32)))
    column = m.call("Reshape", halves, m.constant([12, 1]))
    gemm = m.call("Gemm", column, m.weights(12, 4), m.weights(4), transA=1, alpha=0.5, beta=0.25)
    return m.model(m.gemm(m.call("Relu", gemm), 4, classes), classes)


def windows(m: Maker, classes: int) -> bytes:
    """Padding that the operator works out, and outputs that a window only reaches with its beginning."""
    x = m.call("Transpose", m.embed(2), perm=[0, 2, 1])
    conv = m.call("Conv", x, m.weights(3, 2, 2), m.weights(3), kernel_shape=[2], auto_pad="SAME_UPPER")
    top = m.call("MaxPool", conv, kernel_shape=[3], strides=[2], auto_pad="SAME_LOWER")
    last = m.call("MaxPool", m.call("Relu", conv), kernel_shape=[2], strides=[3], ceil_mode=1)
    mean = m.call("AveragePool", conv, kernel_shape=[2], strides=[2], auto_pad="VALID")
    flat = m.call("Flatten", m.call("Concat", top, last, mean, axis=2))
    return m.model(m.gemm(flat, 18, classes), classes)


def limits(m: Maker, classes: int) -> bytes:
    """Limits by constants, slopes of any size, absolute values; and branches that lead nowhere."""
    number = [m.constant(np.array(value, np.float32)) for value in (-0.5, 0.0, 1.5)]
    x = m.gemm(m.call("Flatten", m.embed(2)), 2 * m.length, 3)
    m.call("Sin", m.call("Relu", x))
    both, low, high = (m.call("Clip", x, *ends) for ends in ((number[0], number[2]), (number[1],), ("", number[2])))
    bent = m.call("Abs", m.call("PRelu", x, m.weights(1, 3)))
    most = m.call("Max", m.weights(1, 3), m.call("Min", x, m.weights(3)))
    joined = m.call("Concat", both, low, high, bent, most, m.call("Max", x, number[1]), axis=1)
    m.call("Where", m.call("Less", x, number[1]), x, number[1])
    return m.model(m.gemm(m.call("Clip", m.gemm(joined, 18, 3), number[1], number[2]), 3, classes), classes)


def masked(m: Maker, classes: int) -> bytes:
    """Padding (token 0) left out of the mean and of the maximum, as exporters write it; positions from a Range."""
    x, last = m.embed(2), m.constant([-1])
    real = m.call("Not", m.call("Equal", "tokens", m.constant(np.array(0))))
    counted = m.call("Cast", m.call("Unsqueeze", real, last), to=TensorProto.FLOAT)
    total = m.call("ReduceSum", m.call("Mul", x, counted), m.constant([1]), keepdims=0)
    words = m.call("ReduceSum", counted, m.constant([1]), keepdims=0)
    mean = m.call("Div", total, m.call("Clip", words, m.constant(np.array(1, np.float32))))
    scalars = [m.constant(np.array(number)) for number in (0, 4, 1)]
    places = m.call("Gather", m.weights(4, 2), m.call("Range", *scalars))
    column = m.call("Unsqueeze", m.call("GreaterOrEqual", "tokens", scalars[2]), last)
    lowest = m.constant(np.array(-64, np.float32))
    top = m.call("ReduceMax", m.call("Where", column, m.call("Add", x, places), lowest), axes=[1], keepdims=0)
    hidden = m.call("Relu", m.gemm(m.call("Concat", mean, top, axis=1), 4, 4))
    return m.model(m.gemm(hidden, 4, classes), classes)


def repeated(m: Maker, classes: int) -> bytes:
    """Elements that stand several times in a rectifier and in a window."""
    x = m.gemm(m.call("Flatten", m.embed(2)), 2 * m.length, 2)
    wide = m.call("Concat", x, m.call("Gather", x, m.constant([0]), axis=1), x, axis=1)
    top = m.call("ReduceMax", wide, axes=[1])
    return m.model(m.gemm(m.call("Concat", m.call("Relu", wide), top, axis=1), 6, classes), classes)


def tangled(m: Maker, classes: int) -> bytes:
    """Positions read twice and by two tables, one not at all; constants under a rectifier; logits alike or constant."""
    twice = m.call("Gather", "tokens", m.constant([1, 0, 1, 2]), axis=1)
    first = m.call("Flatten", m.call("Gather", m.weights(VOCABULARY, 1), twice))
    some = m.call("Slice", m.embed(2), m.constant([1]), m.constant([3]), m.constant([1]))
    half = m.call("Div", m.call("Flatten", some), m.constant(np.array([2.0], np.float32)))
    joined = m.call("Concat", first, m.weights(1, 2), half, axis=1)
    bent = m.call("Add", m.call("Relu", joined), m.call("LeakyRelu", joined, alpha=0.5))
    last = m.call("Concat", m.gemm(m.call("Concat", bent, joined, axis=1), 20, 1), m.weights(1, 1), axis=1)
    return m.model(m.call("Gather", last, m.constant([0, 1, 0][:classes]), axis=1), classes)


Table = NDArray[np.float32] | list[list[float]]
Then = Callable[[Maker, str], str]
"""What a model does with the one row of a table that it looks up."""


def fused_constant() -> tuple[Table, Then]:
    """A product and a sum with a constant, which onnxruntime makes one Gemm: there rounding lets class 1 win."""
    unit = 2.0**-24
    table, weights, bias = fused_table(), fused_weights(unit), np.array([1 + 16 * unit, 1], np.float32)
    table[0, 1], weights[1, 0] = 1.0, 2.0**-10
    return table, lambda m, x: m.call("Add", m.call("MatMul", x, m.constant(weights)), m.constant(bias))


def fused_residual() -> tuple[Table, Then]:
    """A product and a residual: onnxruntime begins the sum of the one with the other."""
    unit = 2.0**-24
    table, weights = fused_table(), fused_weights(unit)
    table[0, 0], table[1, 0], table[1, 1] = 1.0, 1 + 20 * unit, 1.0

    def then(m: Maker, x: str) -> str:
        kept = m.call("Relu", m.call("Slice", x, m.constant([0]), m.constant([2]), m.constant([1])))
        return m.call("Add", m.call("MatMul", x, m.constant(weights)), kept)

    return table, then


def joined_products(products: int = 6, terms: int = 60) -> tuple[Table, Then]:
    """Products that one Sum adds: where each goes on from the one before, rounding lets class 1 win."""
    unit, weights = 2.0**-24, np.zeros((products, terms + 2, 2), np.float32)
    weights[0, 0] = 1 + 400 * unit, 1
    weights[1:, 2:, 0], weights[1:, 2:, 1] = unit * (1 - 2.0**-10), unit * (1 + 2.0**-10)
    table = np.ones((2, terms + 2), np.float32)
    table[:, 1] = 0
    return table, lambda m, x: m.call("Sum", *[m.call("MatMul", x, m.constant(each)) for each in weights])


def gone_on_with(table: Table) -> list[float]:
    """The logits of class 0 and 1 of `joined_products`, every product going on from the one before, in float32."""
    unit, terms = 2.0**-24, np.array(table).shape[1] - 2
    found = []
    for first, each in ((1 + 400 * unit, unit * (1 - 2.0**-10)), (1.0, unit * (1 + 2.0**-10))):
        total = np.float32(first)
        for _ in range(5 * terms):
            total = np.float32(total + np.float32(each))
        found.append(float(total))
    return found


def fused_table() -> NDArray[np.float32]:
    table = np.zeros((2, 256 * 12), np.float32)
    table[1, 2::256] = 1.0
    return table


def fused_weights(unit: float) -> NDArray[np.float32]:
    """Numbers that are lost, or count twice, when each is added to 1."""
    weights = np.zeros((256 * 12, 2), np.float32)
    weights[2::256, 0], weights[2::256, 1] = unit * (1 - 2.0**-10), unit * (1 + 2.0**-10)
    return weights


KINDS: tuple[Callable[[Maker, int], bytes], ...] = (
    paper,
    two_layers,
    bag,
    convolution,
    plane,
    residual,
    oddities,
    straight,
    normalised,
    pieces,
    algebra,
    windows,
    limits,
    masked,
    repeated,
    tangled,
)
REAL = ("algebra", "convolution", "oddities", "normalised")
"""Kinds about which nothing is claimed at level float32."""


@dataclass(frozen=True)
class Case:
    """A model, a text's choices at every position, and what onnxruntime says about every sentence."""

    data: bytes
    choices: tuple[tuple[int, ...], ...]
    label: int
    classes: int

    @property
    def rivals(self) -> tuple[int, ...]:
        return tuple(r for r in range(self.classes) if r != self.label)

    @property
    def inputs(self) -> tuple[c.Input, ...]:
        """One, of words."""
        return (c.Input("words", tuple(options[0] for options in self.choices)),)

    @property
    def words(self) -> tuple[c.Word, ...]:
        """One at every position."""
        return tuple(c.Word(p, tuple((token,) for token in options)) for p, options in enumerate(self.choices))


@dataclass(frozen=True)
class WideCase:
    """A model of one input or several, and words over one position or several."""

    data: bytes
    inputs: tuple[c.Input, ...]
    words: tuple[c.Word, ...]
    label: int
    classes: int

    @property
    def rivals(self) -> tuple[int, ...]:
        return tuple(r for r in range(self.classes) if r != self.label)

    def text(self, picks: Sequence[int]) -> list[int]:
        """The integers at all positions, for an option of every word."""
        found = [token for given in self.inputs for token in given.integers]
        for word, option in zip(self.words, picks, strict=True):
            found[word.start : word.start + len(word.options[option])] = word.options[option]
        return found

    def sentences(self, swaps: int) -> Iterator[tuple[int, ...]]:
        for picks in itertools.product(*[range(len(word.options)) for word in self.words]):
            if len(picks) - picks.count(0) <= swaps:
                yield picks

    def logits(self, picks: Sequence[int]) -> NDArray[np.float32]:
        """By onnxruntime."""
        found, run = self.text(picks), session(self.data)
        feeds = {
            item.name: np.array([found[5 * at : 5 * at + 5]], np.int64) for at, item in enumerate(run.get_inputs())
        }
        return run.run(None, feeds)[0][0]  # type: ignore[no-any-return]


VARIANTS = ("one input", "a mask", "two texts")


def wide_model(variant: str, rng: random.Random, classes: int) -> bytes:
    """Texts of 5 positions; the mask is a constant; two texts are laid side by side."""
    m = Maker(rng, 5)
    x, width = m.embed(2), 10
    names = {"one input": ["tokens"], "a mask": ["tokens", "mask"], "two texts": ["tokens", "others"]}[variant]
    if variant == "a mask":
        real = m.call("Cast", m.call("Unsqueeze", "mask", m.constant([-1])), to=TensorProto.FLOAT)
        x = m.call("Mul", x, real)
        x = m.call("Add", x, m.call("Div", m.weights(1, 1, 2), m.call("ReduceSum", real, m.constant([1]))))
    if variant == "two texts":
        x = m.call("Concat", x, m.call("Gather", m.weights(VOCABULARY, 2), "others"), axis=1)
        width = 20
    hidden = m.call("Relu", m.gemm(m.call("Flatten", x), width, 4))
    top = m.call("ReduceMax", m.call("Concat", m.gemm(hidden, 4, 2), m.gemm(hidden, 4, 2), axis=0), axes=[0])
    last = m.gemm(m.call("Concat", hidden, m.call("Reshape", top, m.constant([1, 2])), axis=1), 6, classes)
    return m.model(last, classes, inputs=names)


def wide_case(variant: str, seed: int) -> WideCase:
    """Words of one to three positions, some positions without a word; labelled with the model's own answer."""
    rng = random.Random(seed)
    classes = rng.choice((2, 3))
    data = wide_model(variant, rng, classes)
    roles: list[Any] = {"one input": ["words"], "a mask": ["words", "constant"], "two texts": ["words"] * 2}[variant]
    given = [[rng.randrange(VOCABULARY) if role == "words" else int(p < 4) for p in range(5)] for role in roles]
    text, words, at = [token for tokens in given for token in tokens], [], 0
    while at < 5 * roles.count("words"):
        length = min(rng.randint(1, 3), 5 - at % 5)
        if rng.random() < 0.8:
            options = {tuple(text[at : at + length]): None}
            for _ in range(rng.randint(0, 2)):
                options[tuple(rng.randrange(VOCABULARY) for _ in range(length))] = None
            words.append(c.Word(at, tuple(options)))
        at += length
    inputs = tuple(c.Input(role, tuple(tokens)) for role, tokens in zip(roles, given, strict=True))
    case = WideCase(data, inputs, tuple(words), 0, classes)
    return replace(case, label=int(np.argmax(case.logits([0] * len(words)))))


def make_case(kind: Callable[[Maker, int], bytes], seed: int, most: int = 3) -> Case:
    """Labelled with the model's own answer, so that the original is never wrong."""
    rng = random.Random(seed)
    classes = rng.choice((2, 2, 3))
    data = kind(Maker(rng, 4), classes)
    choices = tuple(tuple(rng.sample(range(VOCABULARY), rng.randint(1, most))) for _ in range(4))
    if kind is masked:
        words = rng.choice((1, 2, 4))
        swaps = [tuple(rng.sample(range(1, VOCABULARY), rng.randint(1, most))) for _ in range(words)]
        choices = (*swaps, *[(0,)] * (4 - words))
    first = logits(data, [[options[0] for options in choices]])[0]
    return Case(data, choices, int(np.argmax(first)), classes)


def logits(data: bytes, sentences: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """One at a time: some of the models are written for a batch of one."""
    run = session(data).run
    rows = [run(None, {"tokens": np.array([sentence], np.int64)})[0][0] for sentence in sentences]
    return np.array(rows, dtype=np.float32)


def session(data: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def sentences(choices: Sequence[Sequence[int]], swaps: int) -> Iterator[tuple[int, ...]]:
    for sentence in itertools.product(*choices):
        if sum(token != options[0] for token, options in zip(sentence, choices, strict=True)) <= swaps:
            yield sentence


def min_swaps(case: Case) -> tuple[int | None, tuple[int, ...]]:
    """The least number of swaps that changes the answer, by trying everything; and such a sentence."""
    everything = sorted(
        sentences(case.choices, len(case.choices)),
        key=lambda s: sum(t != o[0] for t, o in zip(s, case.choices, strict=True)),
    )
    for sentence, row in zip(everything, logits(case.data, everything), strict=True):
        # The answer is the first of the greatest.
        if int(np.argmax(row)) != case.label:
            return sum(t != o[0] for t, o in zip(sentence, case.choices, strict=True)), sentence
    return None, ()


def listed(inputs: Sequence[c.Input], words: Sequence[c.Word]) -> tuple[list[Any], list[Any]]:
    """As they stand in a certificate."""
    return [[each.role, list(each.integers)] for each in inputs], [
        [word.start, [list(option) for option in word.options]] for word in words
    ]


def lowered(data: bytes, inputs: Sequence[c.Input], words: Sequence[c.Word]) -> lower.Lowered:
    return lower.read_model(data).lower(*listed(inputs, words))


def network_sha256(data: bytes, inputs: Sequence[c.Input], words: Sequence[c.Word]) -> str:
    """Nothing, 64 digits long, where there is no network."""
    try:
        return lowered(data, inputs, words).sha256
    except (check.Refused, check.Unusable):
        return "0" * 64


def statement(case: Case | WideCase, **parts: object) -> c.Statement:
    made = c.Statement(
        id=0,
        model=c.File("model.onnx", hashlib.sha256(case.data).hexdigest()),
        tensors=(),
        vocabulary=None,
        text=hashlib.sha256(b"a text").hexdigest(),
        synonyms=None,
        network=network_sha256(case.data, case.inputs, case.words),
        inputs=case.inputs,
        words=case.words,
        label=case.label,
        rivals=case.rivals,
    )
    return replace(made, **parts)  # type: ignore[arg-type]


def witness(case: Case, sentence: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Its swaps, a word standing at every position."""
    pairs = enumerate(zip(sentence, case.choices, strict=True))
    return tuple((p, options.index(token)) for p, (token, options) in pairs if token != options[0])


class Prover:
    """A plain branch and bound that asks the checker which leaves hold; splits and multipliers are drawn at random."""

    def __init__(
        self,
        case: Case | WideCase,
        swaps: int,
        level: c.Level,
        rng: random.Random,
        small: int = 6,
        counting: bool = False,
    ) -> None:
        self.case = case
        self.rng = rng
        self.small = small
        self.swaps = swaps
        self.tree = check.Tree(space_of(case), b"", case.rivals, swaps, level, counting)
        self.sizes = [len(word.options) for word in case.words]
        layers = enumerate(self.tree.space.network.layers)
        rectifiers = [(index, layer) for index, layer in layers if isinstance(layer, check.Rectifier)]
        self.relus = [(index, layer.size) for index, layer in rectifiers]
        self.first = [(index, layer.size) for index, layer in rectifiers if layer.depth == 1]

    def holds(self, rule: Callable[[check.Region], object], region: check.Region) -> bool:
        try:
            rule(region)
        except check.Refused:
            return False
        return True

    def prove(self, region: check.Region | None = None) -> c.Node | None:
        """A tree, or None when there is a counterexample in the region."""
        region = region or self.tree.root
        if self.holds(self.tree.linear, region):
            return c.Linear()
        if self.tree.sentences(region).count() <= self.small or region.depth > 12:
            return c.Enumerate() if self.holds(self.tree.enumerate, region) else None
        return self.split(region)

    def count(self, region: check.Region) -> tuple[c.Node, int, int]:
        """A tree of word splits with leaves of every kind, and how many sentences it shows robust and broken."""
        tree = self.tree
        able = [i for i, mask in enumerate(region.masks) if mask.bit_count() > 1]
        if able and region.depth < 4 and self.rng.random() < 0.7:
            i = self.rng.choice(able)
            option = next(b for b in range(99) if region.masks[i] >> b & 1)
            node = c.Words(i, frozenset([option]), c.Open(), c.Open())
            (left, robust, broken), (right, *more) = (self.count(child) for child in self.children(region, node))
            return replace(node, left=left, right=right), robust + more[0], broken + more[1]
        sentences = tree.sentences(region).count()
        if self.holds(tree.linear, region):
            return c.Linear(), sentences, 0
        for rival in region.rivals:
            tree.data, tree.at = bytes([rival]), 0
            if self.holds(tree.break_all, region):
                return c.Broken(rival), 0, sentences
        if self.rng.random() < 0.3:
            return c.Open(), 0, 0
        before = tree.broken, tree.open
        tree.enumerate(region)
        broken, unsure = tree.broken - before[0], tree.open - before[1]
        return c.Enumerate(), sentences - broken - unsure, broken

    def split(self, region: check.Region) -> c.Node | None:
        kind = self.rng.choice(("words", "words", "words", "rivals", "slopes", "joint"))
        if kind == "words":
            able = [i for i, mask in enumerate(region.masks) if mask.bit_count() > 1]
            if able:
                i = self.rng.choice(able)
                options = [k for k in range(region.masks[i].bit_length()) if region.masks[i] >> k & 1]
                chosen = frozenset(self.rng.sample(options, self.rng.randint(1, len(options) - 1)))
                return self.both(region, lambda a, b: c.Words(i, chosen, a, b))
        if kind == "rivals" and len(region.rivals) > 1:
            return self.both(region, lambda a, b: c.Rivals(frozenset(region.rivals[:1]), a, b))
        if kind == "slopes" and self.relus and not region.slopes:
            values = {node: {i: self.rng.randint(0, 64) for i in range(size)} for node, size in self.relus}
            return self.one(region, lambda a: c.Slopes(values, a))
        if kind == "joint" and self.first and not region.joint:
            groups = []
            for node, size in self.first:
                elements = self.rng.sample(range(size), min(size, 4))
                parts = [part for part in (elements[:2], elements[2:]) if part]
                groups += [(node, {i: self.rng.randint(0, 64) for i in part}) for part in parts]
            return self.one(region, lambda a: c.Joint(tuple(groups), a))
        return self.split(region)

    def children(self, region: check.Region, node: c.Node) -> list[check.Region]:
        data = c.encode_tree(node, self.sizes, self.case.rivals)
        self.tree.data, self.tree.at = data, 1
        return check.RULES[data[0]](self.tree, region) or []

    def both(self, region: check.Region, make: Callable[[c.Node, c.Node], c.Node]) -> c.Node | None:
        drawn = make(c.Open(), c.Open())
        left, right = self.children(region, drawn)
        first = self.prove(left)
        second = self.prove(right) if first is not None else None
        if first is None or second is None:
            return None
        assert isinstance(drawn, c.Words | c.Rivals)
        return replace(drawn, left=first, right=second)

    def one(self, region: check.Region, make: Callable[[c.Node], c.Node]) -> c.Node | None:
        drawn = make(c.Open())
        found = self.prove(self.children(region, drawn)[0])
        assert isinstance(drawn, c.Slopes | c.Joint)
        return replace(drawn, inner=found) if found is not None else None


def network_of(data: bytes, length: int) -> check.Network:
    """The checker's network for texts of this length, whatever they say."""
    return network_for(data, (c.Input("words", (0,) * length),), ())


def network_for(data: bytes, inputs: Sequence[c.Input], words: Sequence[c.Word]) -> check.Network:
    found = lowered(data, inputs, words)
    return check.Network(found.data, found.numbers, found.no_float32)


def read(case: Case | WideCase) -> check.Network:
    """The checker's network for this text."""
    return network_for(case.data, case.inputs, case.words)


def space_of(case: Case | WideCase) -> check.Space:
    inputs, words = listed(case.inputs, case.words)
    return check.Space(read(case), words, case.label, [token for _, tokens in inputs for token in tokens])


def numbers_of(network: check.Network, sentence: Sequence[int]) -> list[int]:
    """Every element of the network for one sentence, over the scale of its layer."""
    values = network.start()
    network.evaluate(network.layers, values, sentence)
    return values


def one_sentence(network: check.Network, values: Sequence[int]) -> Callable[[check.Layer], list[check.Bounds]]:
    """The exact values of what a nonlinear layer reads, as bounds."""
    return lambda layer: [check.grid(values[i], network.owner[i].scale) for i in check.sources_of(layer)]


def exact_logits(network: check.Network, sentence: Sequence[int]) -> list[Fraction]:
    values = numbers_of(network, sentence)
    return [Fraction(values[i], network.owner[i].scale) for i in network.logits]


def exact_answer(network: check.Network, case: Case, sentence: Sequence[int]) -> bool:
    """Whether some rival beats the label over the reals."""
    z = exact_logits(network, sentence)
    return any(z[r] > z[case.label] or (z[r] == z[case.label] and r < case.label) for r in case.rivals)
