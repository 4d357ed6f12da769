"""The ONNX operators that are read, each with the function that adds its layers to a network."""

from __future__ import annotations

from collections.abc import Callable

from ..smooth.bent_operators import curve, divide, gelu, hard_sigmoid, multiply, power
from ..smooth.line_operators import layer_normalisation, matmul, norm, softmax
from ..smooth.recurrent_operators import recurrent
from .affine_operators import (
    add,
    batch_normalisation,
    convolution,
    gemm,
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
    "Erf": curve,
    "Exp": curve,
    "Expand": move,
    "Flatten": move,
    "GRU": recurrent,
    "Gather": gather,
    "GatherElements": move,
    "GatherND": move,
    "Gelu": gelu,
    "Gemm": gemm,
    "GlobalAveragePool": reduce,
    "GlobalMaxPool": reduce,
    "HardSigmoid": hard_sigmoid,
    "Identity": same,
    "LSTM": recurrent,
    "LayerNormalization": layer_normalisation,
    "LeakyRelu": leaky_relu,
    "MatMul": matmul,
    "Max": maximum,
    "MaxPool": max_pool,
    "Min": minimum,
    "Mul": multiply,
    "Neg": negate,
    "PRelu": prelu,
    "Pad": pad,
    "Pow": power,
    "RNN": recurrent,
    "Reciprocal": curve,
    "ReduceL2": norm,
    "ReduceMax": reduce,
    "ReduceMean": reduce,
    "ReduceSum": reduce,
    "ReduceSumSquare": norm,
    "Relu": relu,
    "Reshape": move,
    "Sigmoid": curve,
    "Slice": move,
    "Softmax": softmax,
    "Split": move,
    "Sqrt": curve,
    "Squeeze": move,
    "Sub": subtract,
    "Sum": sum_all,
    "Tanh": curve,
    "Tile": move,
    "Transpose": move,
    "Unsqueeze": move,
    "Where": where,
}
