"""Small transformers of one layer, of random shapes: heads, order of the norms, curves, poolings, masked positions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
from graph_builder import Builder
from hypothesis import strategies as st
from smooth_cases import LENGTH, ROWS, f32, model
from smooth_values import EXACT, FLOAT, values_of

from swapproof.proofs import check, lower

HEAD = 2


class Shape(NamedTuple):
    """What a transformer is made of; no word attends to `masked` positions at the end, nor, `causal`, to later ones."""

    heads: int = 2
    inner: int = 3
    first: bool = False
    curve: str = "Relu"
    pooling: str = "mean"
    masked: int = 0
    shifted: bool = True
    size: float = 1.0
    pooled: str = ""
    low: float = -1e9
    causal: bool = False


def transformer(shape: Shape, seed: int) -> bytes:
    """Scores that are softmaxed by the operator (`shifted`), or by Exp, ReduceSum and Div."""
    width = 4

    def made(b: Builder, x: str, rng: Any) -> str:
        def linear(values: str, inputs: int, outputs: int) -> str:
            weight = (rng.normal(size=(inputs, outputs)) / inputs**0.5).astype(np.float32)
            bias = (0.3 * rng.normal(size=outputs)).astype(np.float32)
            return b.call("Add", b.call("MatMul", values, b.constant(weight)), b.constant(bias))

        def normalised(values: str) -> str:
            scale = (1 + 0.2 * rng.normal(size=width)).astype(np.float32)
            shift = (0.2 * rng.normal(size=width)).astype(np.float32)
            return b.call(
                "LayerNormalization", values, b.constant(scale), b.constant(shift), axis=-1, epsilon=float(f32(0.01)[0])
            )

        def by_head(values: str, perm: list[int]) -> str:
            parts = linear(values, width, shape.heads * HEAD)
            return b.call("Transpose", b.call("Reshape", parts, b.wholes(1, LENGTH, shape.heads, HEAD)), perm=perm)

        def attended(values: str) -> str:
            q, k, v = [by_head(values, perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
            scores = b.call("Div", b.call("MatMul", q, k), b.constant(f32(1.5)))
            if shape.masked or shape.causal:
                seen = np.tile(np.arange(LENGTH) < LENGTH - shape.masked, (LENGTH, 1))
                seen = np.tril(seen) if shape.causal else seen
                scores = b.call("Where", b.constant(seen), scores, b.constant(f32(shape.low)))
            if shape.shifted:
                shares = b.call("Softmax", scores, axis=-1)
            else:
                powers = b.call("Exp", scores)
                shares = b.call("Div", powers, b.call("ReduceSum", powers, b.wholes(-1), keepdims=1))
            mixed = b.call("Transpose", b.call("MatMul", shares, v), perm=[0, 2, 1, 3])
            return linear(b.call("Reshape", mixed, b.wholes(1, LENGTH, shape.heads * HEAD)), shape.heads * HEAD, width)

        def fed(values: str) -> str:
            inner = linear(values, width, shape.inner)
            return linear(b.call(shape.curve, inner), shape.inner, width)

        x = b.call("Add", x, b.constant((0.1 * rng.normal(size=(LENGTH, width))).astype(np.float32)))
        if shape.first:
            y = b.call("Add", x, attended(normalised(x)))
            z = b.call("Add", y, fed(normalised(y)))
        else:
            y = normalised(b.call("Add", x, attended(x)))
            z = normalised(b.call("Add", y, fed(y)))
        if shape.pooling == "mean":
            z = b.call("ReduceMean", z, b.wholes(1), keepdims=1)
        elif shape.pooling == "max":
            z = b.call("ReduceMax", z, b.wholes(1), keepdims=1)
        else:
            z = b.call("Gather", z, b.constant(np.array([0])), axis=1)
        return b.call(shape.pooled, linear(z, width, 3)) if shape.pooled else z

    return model(made, seed, classes=2, size=shape.size)


def two_layers(seed: int) -> bytes:
    """Two layers that attend, of one head and nothing else."""

    def made(b: Builder, x: str, rng: Any) -> str:
        for _ in range(2):
            q, k, v = [b.call("MatMul", x, b.constant(rng.normal(size=(4, 4)).astype(np.float32))) for _ in range(3)]
            scores = b.call("MatMul", q, b.call("Transpose", k, perm=[0, 2, 1]))
            x = b.call("Add", x, b.call("MatMul", b.call("Softmax", scores, axis=-1), v))
        return b.call("ReduceMean", x, b.wholes(1), keepdims=1)

    return model(made, seed, classes=2, size=0.3)


shapes = st.builds(
    Shape,
    heads=st.integers(1, 2),
    inner=st.just(3),
    first=st.booleans(),
    curve=st.sampled_from(["Relu", "Gelu", "Tanh"]),
    pooling=st.sampled_from(["mean", "first", "max"]),
    masked=st.integers(0, 1),
    shifted=st.booleans(),
    size=st.sampled_from([0.1, 0.3, 1.0, 2.0]),
    pooled=st.sampled_from(["", "", "Relu", "Tanh"]),
    low=st.sampled_from([-1e9, -(2.0**128 - 2.0**104), -math.inf]),
    causal=st.booleans(),
)


def space_of(data: bytes, rng: random.Random, count: int, repeated: bool = False) -> check.Space:
    """Words of one or two positions; `repeated`: every position has the same token, and the same options."""
    text = [1] * LENGTH if repeated else [rng.randrange(ROWS) for _ in range(LENGTH)]
    words: list[Any] = []
    free = 0
    for start in sorted(rng.sample(range(LENGTH), count)):
        if start < free:
            continue
        width = 2 if start + 1 < LENGTH and rng.random() < 0.25 and not repeated else 1
        free = start + width
        original = tuple(text[start:free])
        others = [each for each in itertools.product(range(ROWS), repeat=width) if each != original]
        chosen = others[:2] if repeated else rng.sample(others, rng.randrange(1, 4))
        words.append([start, [list(each) for each in (original, *chosen)]])
    found = lower.read_model(data).lower([["words", text]], words)
    return check.Space(check.Network(found.data, found.numbers, found.no_float32), words, 0, text)


def sentences_of(
    space: check.Space, masks: Sequence[int], swaps: int, exact: bool = False
) -> list[tuple[tuple[int, ...], list[Any]]]:
    """Options and the values of all elements, of each sentence of a region."""
    kind: tuple[Any, Any] = (EXACT, mpmath.mpf) if exact else (FLOAT, float)
    found = []
    original = [0] * LENGTH
    for position, tokens in enumerate(space.tokens):
        original[position] = min(tokens)
    for chosen in itertools.product(*[[o for o in range(m.bit_length()) if m >> o & 1] for m in masks]):
        if sum(map(bool, chosen)) > swaps:
            continue
        text = original.copy()
        for (start, options), option in zip(space.words, chosen, strict=True):
            text[start : start + len(options[option])] = options[option]
        found.append((chosen, values_of(space.network, text, *kind)))
    return found


__all__ = ["LENGTH", "ROWS", "Shape", "sentences_of", "shapes", "space_of", "transformer", "two_layers"]
