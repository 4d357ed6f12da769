"""The ONNX operators that are read, each with the function that adds its layers to a network."""

from __future__ import annotations

from collections.abc import Callable

from .affine_operators import (
    add,
    batch_normalisation,
    convolution,
    divide,
    gemm,
    matmul,
    multiply,
    negate,
    subtract,
    sum_all,
)
from .construction import Builder, Call, Value
from .moving_operators import cast, concat, dropout, gather, move, pad, same, where
from .pooling_operators import average_pool, max_pool, maximum, minimum, reduce
from .rectifying_operators import absolute, clip, leaky_relu, prelu, relu

OPERATORS: dict[str, Callable[[Builder, Call], list[Value]]] = {
    "Abs": absolute,
    "Add": add,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalisation,
    "Cast": cast,
    "Clip": clip,
    "Concat": concat,
    "Conv": convolution,
    "Div": divide,
    "Dropout": dropout,
    "Expand": move,
    "Flatten": move,
    "Gather": gather,
    "Gemm": gemm,
    "GlobalAveragePool": reduce,
    "GlobalMaxPool": reduce,
    "Identity": same,
    "LeakyRelu": leaky_relu,
    "MatMul": matmul,
    "Max": maximum,
    "MaxPool": max_pool,
    "Min": minimum,
    "Mul": multiply,
    "Neg": negate,
    "PRelu": prelu,
    "Pad": pad,
    "ReduceMax": reduce,
    "ReduceMean": reduce,
    "ReduceSum": reduce,
    "Relu": relu,
    "Reshape": move,
    "Slice": move,
    "Split": move,
    "Squeeze": move,
    "Sub": subtract,
    "Sum": sum_all,
    "Tile": move,
    "Transpose": move,
    "Unsqueeze": move,
    "Where": where,
}
