"""Small transformers of one layer, of random shapes: heads, order of the norms, curves, poolings, masked positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from graph_builder import Builder
from smooth_cases import LENGTH, ROWS, f32, model

HEAD = 2


class Shape(NamedTuple):
    """What a transformer is made of; `masked` positions at the end are not attended to."""

    heads: int = 2
    inner: int = 3
    first: bool = False
    curve: str = "Relu"
    pooling: str = "mean"
    masked: int = 0
    shifted: bool = True
    size: float = 1.0
    pooled: str = ""


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
            if shape.masked:
                seen = np.arange(LENGTH) < LENGTH - shape.masked
                scores = b.call("Where", b.constant(seen), scores, b.constant(f32(-1e9)[0:1]))
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


__all__ = ["LENGTH", "ROWS", "Shape", "transformer"]
