"""Classifiers that leave the padding out, in the ways in which exporters write it."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from random_graphs import Graph, Sample, finished

SIZE = 2
STYLES = ("float", "fill", "greatest", "lowest", "product", "greater", "where", "lengths")


def scalar(g: Graph, value: float, kind: str = "int64") -> str:
    return g.constant(np.array(value, dtype=kind))


def masked(style: str, source: int, length: int, vocabulary: int) -> Sample:
    """The mean or maximum over the words that are not padding (token 0), in one of the ways exporters write it."""
    g = Graph(np.random.default_rng(source), 17, small=True)
    words = g.call("Gather", g.constant(g.numbers(vocabulary, SIZE)), "tokens")
    last, time = g.wholes(-1), g.wholes(1)
    padding = g.call("Equal", "tokens", scalar(g, 0))
    real = g.call("Not", padding)
    column = g.call("Cast", g.call("Unsqueeze", real, last), to=TensorProto.FLOAT)
    one = scalar(g, 1, "float32")
    if style == "greater":
        column = g.call("Cast", g.call("Unsqueeze", g.call("Greater", "tokens", scalar(g, 0)), last), to=1)
    if style in ("float", "greater"):
        total = g.call("ReduceSum", g.call("Mul", words, column), time, keepdims=0)
        count = g.call("ReduceSum", column, time, keepdims=0)
        found = g.call("Div", total, g.call("Clip", count, one) if g.coin() else g.call("Max", count, one))
    elif style == "fill":
        padded = g.call("Cast", g.call("Unsqueeze", padding, last), to=TensorProto.BOOL)
        kept = g.call("Where", padded, scalar(g, 0, "float32"), words)
        count = g.call("ReduceSum", g.call("Cast", real, to=TensorProto.INT64), time, keepdims=1)
        found = g.call("Div", g.call("ReduceSum", kept, time, keepdims=0), g.call("Cast", count, to=1))
    elif style in ("greatest", "lowest"):
        padded = g.call("Unsqueeze", padding, last)
        kept = g.call("Where", padded, scalar(g, -1e9 if style == "greatest" else -np.inf, "float32"), words)
        found = g.call("ReduceMax", kept, axes=[1], keepdims=0)
    elif style == "product":
        row = g.call("Unsqueeze", g.call("Cast", real, to=TensorProto.FLOAT), time)
        found = g.call("Squeeze", g.call("MatMul", row, words), time)
    elif style == "where":
        zeros = g.call("ConstantOfShape", g.call("Shape", words))
        wide = g.call("Expand", g.call("Unsqueeze", real, last), g.call("Shape", words))
        found = g.call("ReduceSum", g.call("Where", wide, words, zeros), time, keepdims=0)
    else:
        count = g.call("ReduceSum", g.call("Cast", real, to=TensorProto.INT32), time, keepdims=1)
        least = g.call("Cast", g.call("Max", count, scalar(g, 1, "int32")), to=TensorProto.FLOAT)
        found = g.call("Div", g.call("ReduceSum", words, time, keepdims=0), least)
    g.go(found, 1, SIZE)
    weight, out = g.constant(g.numbers(SIZE, 3)), g.constant(g.numbers(3, 2))
    hidden = g.call("Relu", g.call("Gemm", g.at, weight, g.constant(g.numbers(3))))
    g.go(g.call("Gemm", hidden, out, g.constant(g.numbers(2))), 1, 2)
    return finished(g, length=length, vocabulary=vocabulary, classes=2, steps=(style,), source=source)
