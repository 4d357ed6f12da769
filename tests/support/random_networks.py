"""Hypothesis strategies for small ONNX text classifiers over every operator that is read.

    networks()         any mixture of STEPS between an embedding and two to four logits
    tiny_networks()    an MLP, CNN, mean, residual, maximum or limits classifier with a small swap space
    swap_spaces(...)   a few choices per position

`weights="small"` draws small integers, so that ties and exact arithmetic happen.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto
from random_graphs import Graph, Sample, finished
from random_steps import (
    ANYWHERE,
    ENDS,
    FEATURES,
    SEQUENCE,
    STEPS,
    WINDOWED,
    absolute,
    against_constant,
    clip,
    flatten,
    from_image,
    gemm,
    prelu,
    relu,
    to_image,
    transpose,
)

__all__ = [
    "HEADS", "STEPS", "TINY", "Graph", "Sample", "assembled", "finished", "networks", "swap_spaces", "tiny",
    "tiny_networks",
]  # fmt: skip

HEADS = ("", "Softmax", "LogSoftmax", "Sigmoid", "Tanh")
ONE_TEXT = ("join_constant",)
"""Steps that only make sense for a batch of one: a constant has no batch."""
NO_DOUBLE = (
    "average_pool", "average_pool_ceil", "clip", "convolution", "convolution_normalised", "global_pool", "leaky_relu",
    "prelu",
)  # fmt: skip
"""Steps whose operators onnxruntime has in single precision only, or fails on in double (a Clip after a Relu)."""


def start(g: Graph, length: int, vocabulary: int, tokens: str) -> None:
    """One embedding, two of the same tokens, or one and a position's own constants."""
    size = g.whole(1, 3)
    if g.coin():
        half = g.call("Slice", tokens, g.wholes(0), g.wholes(length), g.wholes(1))
        tokens = g.call("Cast", half, to=TensorProto.INT64)
    table = g.constant(g.numbers(vocabulary, size))
    g.go(g.call("Gather", table, tokens, axis=0), 1, length, size)
    way = g.whole(0, 2)
    if way == 1:
        other = g.call("Gather", g.constant(g.numbers(vocabulary + g.whole(0, 2), size)), tokens, axis=0)
        g.go(g.call("Add", g.at, other), *g.shape)
    if way == 2:
        places = g.call("Gather", g.constant(g.numbers(length, size)), g.wholes(*range(length)), axis=0)
        g.go(g.call("Add", g.at, places), *g.shape)


def assembled(
    steps: tuple[str, ...], source: int, *, opset: int = 17, small: bool = False, kind: str = "float32", head: str = ""
) -> Sample:
    """A classifier of these steps; the first that ends in features divides those on sequences from those on features.

    A step that does not fit the shape it meets is left out.
    """
    random = np.random.default_rng(source)
    g = Graph(random, opset, small, kind)
    length, vocabulary, classes = g.whole(2, 5), g.whole(3, 8), g.whole(2, 4)
    start(g, length, vocabulary, "tokens")
    used = []
    for name in (*steps, "flatten"):
        rank = len(g.shape)
        if kind == "float64" and name in NO_DOUBLE:
            continue
        if name in ENDS and rank > 2:
            if rank == 3 and g.coin() and name == "global_pool":
                to_image(g)
        elif name in WINDOWED and rank > 2:
            if rank == 3 and g.coin():
                to_image(g)
        elif name in SEQUENCE and rank > 2:
            if rank == 4:
                from_image(g)
        elif not (name in ANYWHERE or (name in FEATURES and rank == 2)):
            continue
        STEPS[name](g)
        used.append(name)
        if np.prod(g.shape) > 400:
            break
    if len(g.shape) > 2:
        flatten(g)
    gemm(g, classes)
    return finished(
        g,
        length=length,
        vocabulary=vocabulary,
        classes=classes,
        head=head,
        tokens=g.pick(TensorProto.INT32, TensorProto.INT64),
        batch="batch" if all(n not in used for n in ONE_TEXT) else 1,
        fixed_length=g.coin(),
        steps=tuple(used),
        source=source,
    )


@st.composite
def networks(
    draw: st.DrawFn, weights: str = "any", heads: bool = True, kinds: bool = True, half: bool = False
) -> Sample:
    """Any mixture of the steps; `weights` is "any", "normal" or "small".

    `kinds` admits double precision, `half` half precision; `heads` a final function after the logits.
    """
    before = draw(st.lists(st.sampled_from(sorted({**ANYWHERE, **WINDOWED, **SEQUENCE})), max_size=5))
    end = draw(st.sampled_from(sorted(ENDS)))
    after = draw(st.lists(st.sampled_from(sorted({**ANYWHERE, **FEATURES})), max_size=3))
    return assembled(
        (*before, end, *after),
        draw(st.integers(0, 2**32 - 1)),
        opset=draw(st.integers(13, 22)),
        small=draw(st.booleans()) if weights == "any" else weights == "small",
        kind=draw(st.sampled_from(["float32", "float32", *["float64"] * kinds, *["float16"] * half])),
        head=draw(st.sampled_from(HEADS)) if heads else "",
    )


TINY = ("mlp", "deep", "mean", "cnn", "residual", "maximum", "limits")


@st.composite
def tiny_networks(draw: st.DrawFn, weights: str = "any", shapes: tuple[str, ...] = TINY) -> Sample:
    """A classical classifier of 2 to 6 positions, 2 to 4 classes and a few ReLUs."""
    small = draw(st.booleans()) if weights == "any" else weights == "small"
    shape, source = draw(st.sampled_from(shapes)), draw(st.integers(0, 2**32 - 1))
    return tiny(shape, source, small=small, classes=draw(st.integers(2, 4)))


def tiny(shape: str, source: int, *, small: bool = False, classes: int = 2) -> Sample:
    g = Graph(np.random.default_rng(source), 18, small)
    length, vocabulary, size = g.whole(2, 6), g.whole(4, 12), g.whole(1, 3)
    g.go(g.call("Gather", g.constant(g.numbers(vocabulary, size)), "tokens", axis=0), 1, length, size)
    if shape in ("cnn", "maximum"):
        transpose(g)
        if shape == "cnn":
            filters, width = g.whole(1, 4), g.whole(1, min(3, length))
            kernel, bias = g.constant(g.numbers(filters, size, width)), g.constant(g.numbers(filters))
            g.go(g.call("Conv", g.at, kernel, bias, kernel_shape=[width]), 1, filters, length - width + 1)
            relu(g)
        g.go(g.axes("ReduceMax", [2], keepdims=0), 1, g.shape[1])
    elif shape == "mean":
        g.go(g.axes("ReduceMean", [1], keepdims=0), 1, size)
    else:
        flatten(g)
    for _ in range(g.whole(1, 2) if shape in ("deep", "residual") else 1):
        before = g.at, g.shape
        hidden(g, g.shape[1] if shape == "residual" else g.whole(1, 6))
        (g.pick(clip, prelu, absolute, against_constant) if shape == "limits" else relu)(g)
        if shape == "residual":
            g.go(g.call("Add", g.at, before[0]), *g.shape)
    hidden(g, classes)
    return finished(g, length=length, vocabulary=vocabulary, classes=classes, steps=(shape,), source=source)


def hidden(g: Graph, outputs: int) -> None:
    weight, bias = g.constant(g.numbers(g.shape[1], outputs)), g.constant(g.numbers(outputs))
    g.go(g.call("Gemm", g.at, weight, bias), 1, outputs)


@st.composite
def swap_spaces(draw: st.DrawFn, length: int, vocabulary: int, most_choices: int = 3) -> tuple[tuple[int, ...], ...]:
    """Choices per position: distinct tokens, the original first; some positions fixed."""
    word = st.integers(0, vocabulary - 1)
    rows = st.lists(word, min_size=1, max_size=most_choices, unique=True).map(tuple)
    return tuple(draw(rows) for _ in range(length))
