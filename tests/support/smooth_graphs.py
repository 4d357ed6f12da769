"""Random small ONNX classifiers with smooth and recurrent operators, for the two checkers: they draw all attributes and
optional inputs that FORMAT 4.2 and 4.4 know, and a few that they do not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graph_builder import Builder, floats, tokens
from numpy.typing import NDArray

Value = tuple[str, tuple[int, ...]]
"""A variable: its name and its shape."""

ROWS = 7
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
NAMES = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


class Graph(Builder):
    """A builder that draws; numbers are float32."""

    def __init__(self, seed: int, runs: bool) -> None:
        super().__init__()
        self.source = random.Random(seed)
        self.runs = runs
        """In onnxruntime, which wants to be told what it could see."""

    def numbers(self, *shape: int, scale: float = 1.0) -> NDArray[np.float32]:
        values = [self.source.gauss(0, scale) for _ in range(int(np.prod(shape)))]
        return np.array(values, np.float32).reshape(shape)


def unary(g: Graph, x: Value) -> Value:
    operator = g.source.choice(["Tanh", "Sigmoid", "Erf", "HardSigmoid", "Gelu", "Exp"])
    options: dict[str, Any] = {}
    if operator == "Gelu":
        options = {"approximate": g.source.choice(["none", "tanh"])}
    if operator == "HardSigmoid" and g.source.random() < 0.5:
        options = {"alpha": g.source.choice([0.25, 0.1, 0.0, -0.5]), "beta": g.source.choice([0.5, 0.0, 0.3])}
    name = g.call("Tanh", x[0]) if operator == "Exp" else x[0]
    return g.call(operator, name, **options), x[1]


def positive(g: Graph, x: Value) -> str:
    """Something above 0."""
    return g.call("Add", g.call("Sigmoid", x[0]), g.constant(np.float32(0.5)))


def powers(g: Graph, x: Value) -> Value:
    exponent = g.source.choice([2.0, 3.0, 0.5, -0.5, -1.0, 1.0])
    base = x[0] if exponent in (2.0, 3.0, 1.0) else positive(g, x)
    if g.source.random() < 0.3:
        return g.call("Reciprocal", g.call("Sqrt", positive(g, x))), x[1]
    shape = g.source.choice([(), (1,), (1, 1)])
    return g.call("Pow", base, g.constant(np.full(shape, exponent, np.float32))), x[1]


def products(g: Graph, x: Value) -> Value:
    match g.source.randrange(5):
        case 0:
            return g.call("Mul", x[0], x[0]), x[1]
        case 1:
            return g.call("Mul", g.call("Tanh", x[0]), g.call("ReduceMean", x[0], axes=[len(x[1]) - 1])), x[1]
        case 2:
            return g.call("Div", x[0], positive(g, x)), x[1]
        case 3:
            divided = g.constant(g.numbers(*x[1][-1:]))
            return g.call("Div", divided, positive(g, x)), x[1]
        case _:
            turned = g.call("Transpose", x[0], perm=[0, 2, 1])
            scores = g.call("MatMul", x[0], turned)
            return g.call("MatMul", g.call("Mul", scores, g.constant(np.float32(0.25))), x[0]), x[1]


def attention(g: Graph, x: Value) -> Value:
    turned = g.call("Transpose", x[0], perm=[0, 2, 1])
    axis = g.source.choice([-1, 2, 1])
    weights = g.call("Softmax", g.call("MatMul", x[0], turned), axis=axis)
    return g.call("Add", x[0], g.call("MatMul", weights, x[0])), x[1]


def softmax(g: Graph, x: Value) -> Value:
    axis = g.source.choice([None, -1, 1, 2])
    return g.call("Softmax", x[0], **({} if axis is None else {"axis": axis})), x[1]


def normalised(g: Graph, x: Value) -> Value:
    axis = g.source.choice([-1, -1, 1, 2])
    inner = x[1][axis:] if axis > 0 else x[1][-1:]
    shape = g.source.choice([inner, inner[-1:], (1,), ()])
    scale = [g.constant(g.numbers(*shape))]
    shift = [g.constant(g.numbers(*g.source.choice([inner, inner[-1:]])))] if g.source.random() < 0.7 else []
    options: dict[str, Any] = {} if g.source.random() < 0.3 else {"axis": axis}
    if not options:
        scale, shift = [g.constant(g.numbers(x[1][-1]))], []
    if g.source.random() < 0.6:
        options["epsilon"] = g.source.choice([0.25, 0.1])
    return g.call("LayerNormalization", x[0], *scale, *shift, **options), x[1]


def norms(g: Graph, x: Value) -> Value:
    operator = g.source.choice(["ReduceL2", "ReduceSumSquare"])
    axes = g.source.choice([[2], [1], [-1]])
    name = g.call(operator, x[0], g.wholes(*axes), keepdims=1)
    if operator == "ReduceL2":
        name = g.call("Add", name, g.constant(np.float32(1)))
    return g.call("Mul", x[0], g.call("Tanh", name)), x[1]


def recurrent(g: Graph, x: Value) -> Value:
    """Over the positions, with drawn options; back to rank 3."""
    operator = g.source.choice(["LSTM", "GRU", "RNN"])
    length, width = x[1][1:]
    hidden = g.source.choice([1, 2, 3])
    direction = g.source.choice(["forward", "reverse", "bidirectional", None])
    d = 2 if direction == "bidirectional" else 1
    rows = GATES[operator] * hidden
    steps = g.call("Transpose", x[0], perm=[1, 0, 2])
    w, r = g.constant(g.numbers(d, rows, width)), g.constant(g.numbers(d, rows, hidden))
    inputs = [steps, w, r]
    inputs.append(g.constant(g.numbers(d, 2 * rows)) if g.source.random() < 0.6 else "")
    ends = g.source.randint(1, length)
    inputs.append(g.constant(np.array([ends], np.int32)) if g.source.random() < 0.4 else "")
    inputs.append(g.constant(g.numbers(d, 1, hidden)) if g.source.random() < 0.4 else "")
    if operator == "LSTM":
        inputs.append(g.constant(g.numbers(d, 1, hidden)) if g.source.random() < 0.4 else "")
    while inputs[-1] == "":
        inputs.pop()
    options: dict[str, Any] = {} if direction is None else {"direction": direction}
    if g.source.random() < 0.7 or g.runs:
        options["hidden_size"] = hidden
    if g.source.random() < 0.4:
        names = [g.source.choice([name, name.lower(), name.upper()][: 1 if g.runs else 3]) for name in NAMES[operator]]
        options["activations"] = names * d
    if operator == "GRU" and g.source.random() < 0.6:
        options["linear_before_reset"] = g.source.choice([0, 1])
    at = len(g.nodes)
    whole = g.source.random() < 0.6
    names = [f"all{at}" if whole else "", f"last{at}"] + ([f"cell{at}"] if operator == "LSTM" else [])
    g.node(operator, inputs, names[: g.source.randint(1 if whole else 2, len(names))], **options)
    if whole:  # (L, D, 1, H) to (1, L, D H)
        flat = g.call("Reshape", g.call("Transpose", names[0], perm=[2, 0, 1, 3]), g.wholes(1, length, d * hidden))
        return flat, (1, length, d * hidden)
    last = names[2] if len(g.nodes[at].output) == 3 and g.source.random() < 0.5 else names[1]
    return g.call("Transpose", last, perm=[1, 0, 2]), (1, d, hidden)


def linear(g: Graph, x: Value) -> Value:
    width = g.source.choice([2, 3])
    product = g.call("MatMul", x[0], g.constant(g.numbers(x[1][-1], width)))
    return g.call("Add", product, g.constant(g.numbers(width))), (*x[1][:-1], width)


Step = Callable[[Graph, Value], Value]
STEPS: tuple[Step, ...] = (unary, powers, products, attention, softmax, normalised, norms, recurrent, linear)


def smooth_model(
    seed: int, length: int = 3, steps: Sequence[Step] | None = None, biases: Sequence[float] = ()
) -> bytes:
    """An embedding, a few steps, a mean over the positions, and logits; sometimes a head. Biases are added to
    the first of them, one after the other; then there is no head."""
    g = Graph(seed, runs=len(biases) > 0)
    width = g.source.choice([1, 2, 3])
    value: Value = g.call("Gather", g.constant(g.numbers(ROWS, width)), "tokens"), (1, length, width)
    for step in steps if steps is not None else g.source.choices(STEPS, k=g.source.randint(1, 4)):
        value = step(g, value)
    pooled = g.call("ReduceMean", value[0], axes=[1], keepdims=0)
    classes = g.source.choice([2, 2, 3])
    weights = g.constant(g.numbers(value[1][-1], classes, scale=3.0))
    logits = g.call("Gemm", pooled, weights)
    for bias in biases:
        logits = g.call("Add", logits, g.constant(np.array([bias, *[0] * (classes - 1)], np.float32)))
    if not biases and g.source.random() < 0.2:
        logits = g.call(g.source.choice(["Softmax", "LogSoftmax", "Sigmoid", "Tanh"]), logits)
    opset = 20 if any(node.op_type in ("Gelu", "ReduceL2", "ReduceSumSquare") for node in g.nodes) else 17
    if opset == 20:  # axes of ReduceMean became an input
        for node in g.nodes:
            axes = [each for each in node.attribute if each.name == "axes" and node.op_type == "ReduceMean"]
            for each in axes:
                node.input.append(g.wholes(*each.ints))
                node.attribute.remove(each)
    proto = g.proto([tokens(1, "length")], [floats(logits, 1, classes)], opset=opset)
    return bytes(proto.SerializeToString())
