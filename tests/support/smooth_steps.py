"""The smooth steps that random classifiers are made of: curves, products, attention, normalisations, recurrences."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from random_graphs import Graph, Sample, finished
from random_networks import start
from random_steps import ANYWHERE, FEATURES, STEPS, Step, flatten, gemm

Smooth = Step


def bounded(g: Graph) -> str:
    """Something of the same shape that is at least 1."""
    square = g.call("Mul", g.at, g.at)
    return g.call("Add", square, g.constant(np.array(1.0, dtype=g.kind)))


def curve(g: Graph) -> None:
    g.go(g.call(g.pick("Tanh", "Sigmoid", "Erf"), g.at), *g.shape)


def exponential(g: Graph) -> None:
    g.go(g.call("Exp", g.call("Tanh", g.at)), *g.shape)


def inverse(g: Graph) -> None:
    g.go(g.call(g.pick("Reciprocal", "Sqrt"), bounded(g)), *g.shape)


def silu(g: Graph) -> None:
    g.go(g.call("Mul", *g.pick((g.at, g.call("Sigmoid", g.at)), (g.call("Tanh", g.at), g.at))), *g.shape)


def quotient(g: Graph) -> None:
    """Of two variables, or of numbers and a variable; the divisor may be broadcast."""
    below = bounded(g)
    if g.coin():
        below = g.axes_of("ReduceSum", below, [len(g.shape) - 1], keepdims=1)
    above = g.pick(g.at, g.constant(g.numbers(*g.shape[1:])))
    g.go(g.call("Div", above, below), *g.shape)


def power(g: Graph) -> None:
    whole = g.coin()
    number = g.pick(1.0, 2.0, 3.0) if whole else g.pick(0.5, -0.5, -1.0)
    exponent = g.constant(np.full(g.pick((), (1,), (1, 1)), number, dtype=g.kind))
    g.go(g.call("Pow", g.at if whole else bounded(g), exponent), *g.shape)


def hard_sigmoid(g: Graph) -> None:
    options = g.pick({}, {"alpha": 0.25}, {"alpha": 1.0, "beta": 0.25})
    g.go(g.call("HardSigmoid", g.at, **options), *g.shape)


def gelu(g: Graph) -> None:
    if g.opset >= 20:
        g.go(g.call("Gelu", g.at, **g.pick({}, {"approximate": "tanh"}, {"approximate": "none"})), *g.shape)
        return
    root = g.constant(np.array(2.0**0.5, dtype=g.kind))
    half, one = (g.constant(np.array(number, dtype=g.kind)) for number in (0.5, 1.0))
    turned = g.call("Add", g.call("Erf", g.call("Div", g.at, root)), one)
    g.go(g.call("Mul", g.call("Mul", g.at, turned), half), *g.shape)


def softmax(g: Graph) -> None:
    rank = len(g.shape)
    axis = g.whole(1, rank - 1)
    g.go(g.call("Softmax", g.at, axis=g.pick(axis, axis - rank)), *g.shape)


def layer_normalisation(g: Graph) -> None:
    if g.opset < 17:
        return mean_normalisation(g)
    axis = g.whole(1, len(g.shape) - 1)
    normal = g.shape[axis:]
    parts = [g.constant(g.numbers(*normal)) for _ in range(g.pick(1, 2))]
    options = g.pick({}, {"epsilon": 0.01})
    g.go(g.call("LayerNormalization", g.at, *parts, axis=g.pick(axis, axis - len(g.shape)), **options), *g.shape)
    return None


def mean_normalisation(g: Graph) -> None:
    """RMSNorm, and the same of what is centred, as exporters write them."""
    last = [len(g.shape) - 1]
    if g.coin():
        mean = g.axes_of("ReduceMean", g.at, last, keepdims=1)
        g.go(g.call("Sub", g.at, mean), *g.shape)
    square = g.pick(g.call("Mul", g.at, g.at), g.call("Pow", g.at, g.constant(np.array(2.0, dtype=g.kind))))
    mean = g.axes_of("ReduceMean", square, last, keepdims=1)
    root = g.call("Sqrt", g.call("Add", mean, g.constant(np.array(0.01, dtype=g.kind))))
    g.go(g.call("Div", g.at, root), *g.shape)


def norm(g: Graph) -> None:
    axis = len(g.shape) - 1
    keep = g.pick(0, 1) if len(g.shape) > 2 else 1
    found = g.axes_of(g.pick("ReduceL2", "ReduceSumSquare"), g.at, [axis], keepdims=keep)
    g.go(found, *g.shape[:-1], *([1] * keep))


def attention(g: Graph) -> None:
    """[1, n, d]: softmax(Q K' / sqrt(d)) V, with V = x."""
    _, n, d = g.shape
    query = g.call("MatMul", g.at, g.constant(g.numbers(d, d)))
    key = g.call("Transpose", g.call("MatMul", g.at, g.constant(g.numbers(d, d))), perm=[0, 2, 1])
    scores = g.call("Div", g.call("MatMul", query, key), g.constant(np.array(d**0.5, dtype=g.kind)))
    if g.coin():  # the last word is padding
        mask = np.zeros((1, 1, n), dtype=np.bool_)
        mask[..., -1] = n > 1
        low = g.constant(np.array(-1e4, dtype=g.kind))
        scores = g.call("Where", g.constant(mask), low, scores)
    g.go(g.call("MatMul", g.call("Softmax", scores, axis=-1), g.at), *g.shape)


def recurrent(g: Graph) -> None:
    """[1, n, d]: an LSTM, GRU or RNN in any direction, with and without what is optional."""
    _, n, d = g.shape
    operator = g.pick("LSTM", "GRU", "RNN")
    hidden, gates = g.whole(1, 3), {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    direction = g.pick("forward", "reverse", "bidirectional")
    count = 2 if direction == "bidirectional" else 1
    inputs = [g.call("Transpose", g.at, perm=[1, 0, 2])]
    inputs += [g.constant(g.numbers(count, gates * hidden, size)) for size in (d, hidden)]
    inputs.append(g.constant(g.numbers(count, 2 * gates * hidden)) if g.coin() else "")
    inputs.append(g.constant(np.array([g.whole(1, n)], dtype=np.int32)) if g.coin() else "")
    states = "LSTM" if operator == "LSTM" else ""
    inputs += [g.constant(g.numbers(count, 1, hidden)) if g.coin() else "" for _ in range(2 if states else 1)]
    while not inputs[-1]:
        inputs.pop()
    options = {"linear_before_reset": g.pick(0, 1)} if operator == "GRU" else {}
    outputs = g.parts(operator, 3 if states else 2, *inputs, hidden_size=hidden, direction=direction, **options)
    match g.pick(*range(len(outputs))):
        case 0:
            whole = g.call("Transpose", outputs[0], perm=[2, 0, 1, 3])
            g.go(g.call("Reshape", whole, g.wholes(1, n, count * hidden)), 1, n, count * hidden)
        case which:
            last = g.call("Transpose", outputs[which], perm=[1, 0, 2])
            g.go(g.call("Reshape", last, g.wholes(1, count * hidden)), 1, count * hidden)


ONE_CONSTANT = ("choose",)
"""Of a text of one word it may leave nothing that depends on the text."""
ELEMENTWISE: dict[str, Smooth] = {
    step.__name__: step
    for step in (curve, exponential, inverse, silu, quotient, power, hard_sigmoid, gelu, softmax, layer_normalisation,
                 mean_normalisation, norm)
}  # fmt: skip
OF_WORDS: dict[str, Smooth] = {step.__name__: step for step in (attention, recurrent)}
SMOOTH_STEPS = ELEMENTWISE | OF_WORDS


def smooth(steps: tuple[str, ...], source: int, *, opset: int = 17, head: str = "") -> Sample:
    """A classifier of these steps, for a batch of one; a step that does not fit the shape it meets is left out."""
    g = Graph(np.random.default_rng(source), opset)
    length, vocabulary, classes = g.whole(1, 4), g.whole(3, 6), g.whole(2, 3)
    start(g, length, vocabulary, "tokens")
    used = []
    for name in (*steps, "flatten"):
        rank = len(g.shape)
        fits = name in ELEMENTWISE or name in ANYWHERE
        fits = fits or (name in OF_WORDS and rank == 3) or (name in FEATURES and rank == 2)
        if np.prod(g.shape) > 200 or not fits or (name in ONE_CONSTANT and length == 1):
            continue
        (SMOOTH_STEPS | STEPS)[name](g)
        used.append(name)
    if len(g.shape) > 2:
        flatten(g)
    gemm(g, classes)
    return finished(
        g, length=length, vocabulary=vocabulary, classes=classes, head=head, batch=1, steps=tuple(used), source=source
    )


@st.composite
def smooth_networks(draw: st.DrawFn, heads: bool = True) -> Sample:
    """Any mixture of smooth steps and of those that keep the shape."""
    names = st.sampled_from([*SMOOTH_STEPS, *SMOOTH_STEPS, "recurrent", "attention", *sorted(ANYWHERE)])
    steps = tuple(draw(st.lists(names, min_size=1, max_size=4)))
    head = draw(st.sampled_from(("", "Softmax", "Sigmoid"))) if heads else ""
    return smooth(steps, draw(st.integers(0, 2**32 - 1)), opset=draw(st.integers(13, 22)), head=head)
