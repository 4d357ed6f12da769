"""Small models with smooth and recurrent operators: an embedding, what is made of it, a linear layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from graph_builder import Builder, floats, tokens

LENGTH, WIDTH, ROWS = 5, 4, 9
Made = Callable[[Builder, str, Any], str]
"""From x (1, LENGTH, WIDTH) to any variable."""


def model(make: Made, seed: int, classes: int = 3, size: float = 1.0) -> bytes:
    """Embedding, with numbers of this size, what is made of it, and a linear layer of all its elements."""
    b, rng = Builder(), np.random.default_rng(seed)
    x = b.call("Gather", b.constant((size * rng.normal(size=(ROWS, WIDTH))).astype(np.float32)), "tokens")
    flat = b.call("Reshape", make(b, x, rng), b.wholes(1, -1))
    probe = b.proto([tokens(1, LENGTH)], [floats("probe", None, None)], opset=20)
    probe.graph.node[-1].output[0] = "probe"
    width = session(probe.SerializeToString()).run(None, {"tokens": [[0] * LENGTH]})[0].size
    weights = rng.normal(size=(width, classes)).astype(np.float32)
    b.node("Gemm", [flat, b.constant(weights), b.constant(f32(0.5, 0, -1)[:classes])], ["out"])
    return bytes(b.proto([tokens(1, LENGTH)], [floats("out", 1, classes)], opset=20).SerializeToString())


def session(data: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def f32(*numbers: float) -> Any:
    return np.array(numbers, dtype=np.float32)


def positive(b: Builder, x: str) -> str:
    return b.call("Add", b.call("Mul", x, x), b.constant(f32(0.5)))


def power(exponent: float, rank: int = 0) -> Made:
    value = np.full((1,) * rank, exponent, np.float32)
    return lambda b, x, _: b.call("Pow", positive(b, x), b.constant(value))


def attention(b: Builder, x: str, rng: Any) -> str:
    q, k, v = [b.call("MatMul", x, b.constant(rng.normal(size=(WIDTH, 3)).astype(np.float32))) for _ in range(3)]
    scores = b.call("MatMul", q, b.call("Transpose", k, perm=[0, 2, 1]))
    return b.call("MatMul", b.call("Softmax", b.call("Div", scores, b.constant(f32(1.5)))), v)


def normalised(axis: int, parts: int) -> Made:
    shape = (LENGTH, WIDTH)[axis - 1 :]

    def make(b: Builder, x: str, rng: Any) -> str:
        given = [b.constant(rng.normal(size=shape).astype(np.float32)) for _ in range(parts)]
        return b.call("LayerNormalization", x, *given, axis=axis, epsilon=0.01)

    return make


CURVES: dict[str, Made] = {
    "Exp": lambda b, x, _: b.call("Exp", x),
    "Tanh": lambda b, x, _: b.call("Tanh", x),
    "Sigmoid": lambda b, x, _: b.call("Sigmoid", x),
    "Erf": lambda b, x, _: b.call("Erf", x),
    "Reciprocal": lambda b, x, _: b.call("Reciprocal", positive(b, x)),
    "Sqrt": lambda b, x, _: b.call("Sqrt", positive(b, x)),
    "Mul of two": lambda b, x, _: b.call("Mul", x, b.call("ReduceSum", x, b.wholes(1))),
    "Div of two": lambda b, x, _: b.call("Div", x, positive(b, b.call("ReduceMax", x, b.wholes(1), keepdims=1))),
    "Div of a number": lambda b, x, _: b.call("Div", b.constant(f32(2, 0, -1, 3)), positive(b, x)),
    "Pow 2": power(2),
    "Pow 3": power(3, rank=1),
    "Pow 0.5": power(0.5),
    "Pow -0.5": power(-0.5, rank=4),
    "Pow -1": power(-1),
    "Pow 1": lambda b, x, r: b.call("Tanh", power(1, rank=4)(b, x, r)),
    "HardSigmoid": lambda b, x, _: b.call("HardSigmoid", x, alpha=0.7, beta=0.3),
    "Gelu": lambda b, x, _: b.call("Gelu", x),
    "Gelu tanh": lambda b, x, _: b.call("Gelu", x, approximate="tanh"),
    "Softmax": lambda b, x, _: b.call("Softmax", x),
    "Softmax of columns": lambda b, x, _: b.call("Softmax", x, axis=1),
    "LayerNormalization": normalised(2, 2),
    "LayerNormalization of all": normalised(1, 1),
    "ReduceL2": lambda b, x, _: b.call("ReduceL2", x, b.wholes(2)),
    "ReduceSumSquare": lambda b, x, _: b.call("ReduceSumSquare", x, b.wholes(1), keepdims=0),
    "ReduceL2 of all": lambda b, x, _: b.call("ReduceL2", x),
    "norm of the sum": lambda b, x, _: b.call("ReduceL2", b.call("ReduceSum", x, b.wholes(1)), b.wholes(2)),
    "MatMul of two": lambda b, x, _: b.call("MatMul", x, b.call("Transpose", x, perm=[0, 2, 1])),
    "attention": attention,
}


SIZE = 3
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def cell(
    operator: str, direction: str, output: int, rest: str = "BSI", variable: bool = False, stacked: int = 1, **more: Any
) -> Made:
    """One or several in a row; `rest` names the inputs that are there: B, sequence_lens S, initial states I."""
    count, gates = 1 + (direction == "bidirectional"), GATES[operator]

    def make(b: Builder, x: str, rng: Any) -> str:
        def normal(*shape: int) -> str:
            return b.constant(rng.normal(size=shape).astype(np.float32))

        read = b.call("Transpose", x, perm=[1, 0, 2])
        for number in range(stacked):
            width = WIDTH if number == 0 else SIZE * count
            inputs = [read, normal(count, gates * SIZE, width), normal(count, gates * SIZE, SIZE)]
            inputs.append(normal(count, 2 * gates * SIZE) if "B" in rest else "")
            inputs.append(b.constant(np.array([LENGTH - 2], np.int32)) if "S" in rest else "")
            if "I" in rest:
                for _ in range(1 + (operator == "LSTM")):
                    state = normal(count, 1, SIZE)
                    if variable:
                        state = b.call("Add", state, b.call("ReduceMean", x, b.wholes(1, 2)))
                    inputs.append(state)
            while not inputs[-1]:
                inputs.pop()
            names = [f"{name}{number}" for name in ("y", "h", "c")[: 2 + (operator == "LSTM")]]
            last = number == stacked - 1
            wanted = [name if not last or i == output else "" for i, name in enumerate(names)]
            while not wanted[-1]:
                wanted.pop()
            b.node(operator, inputs, wanted, hidden_size=SIZE, direction=direction, **more)
            if not last:
                moved = b.call("Transpose", names[0], perm=[0, 2, 1, 3])
                read = b.call("Reshape", moved, b.wholes(LENGTH, 1, SIZE * count))
        return b.call("Identity", names[output])

    return make
