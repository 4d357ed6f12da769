"""Random classifiers of what is easy to get wrong in the canonical network: steps that make several layers of one ONNX
node or one of several, terms that are constants, constants worked out from constants, padding, broadcasts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import random_steps
from random_graphs import Graph, Sample, finished
from random_networks import start


def shared_product(g: Graph) -> None:
    """Read by two additions of constants, and perhaps as it is."""
    product = g.call("MatMul", g.at, g.constant(g.numbers(g.shape[-1], 3)))
    first = g.call("Add", product, g.constant(g.numbers(3)))
    second = g.call(g.pick("Add", "Sub"), product, g.constant(g.numbers(g.pick(1, 3))))
    terms = [first, g.call("Relu", second), *([product] if g.coin() else [])]
    g.go(g.call(g.pick("Sum", "Max", "Min"), *terms), *g.shape[:-1], 3)


def zeros_added(g: Graph) -> None:
    product = g.call("MatMul", g.at, g.constant(g.numbers(g.shape[-1], 2)))
    same = g.call("Add", product, g.constant(np.zeros(2, g.kind)))
    g.go(g.call("Add", same, g.constant(g.numbers(2))), *g.shape[:-1], 2)


def broadcast_terms(g: Graph) -> None:
    """One term broadcast to the others."""
    narrow = g.axes(g.pick("ReduceSum", "ReduceMean"), [len(g.shape) - 1], keepdims=1)
    terms = g.pick((narrow, g.at), (g.at, narrow))
    operators = ["Min", "Max", "Sum"]
    if g.coin():
        terms = (*terms, g.constant(g.numbers(*g.broadcastable(g.shape))))
    else:
        operators += ["Add", "Sub"]
    g.go(g.call(g.pick(*operators), *terms), *g.shape)


def computed_constant(g: Graph) -> None:
    left = g.random.integers(-3, 4, size=(2, 3)).astype(g.kind) if g.coin() else g.numbers(2, 3)
    right = (g.random.integers(1, 3, size=3) * g.pick(*([1.0] * 9), 1e-39)).astype(g.kind)
    a, b = g.constant(left), g.constant(right)
    operator = g.pick("Add", "Sub", "Mul", "Div", "Max", "Min", "Clip", "Greater", "Equal", "ReduceSum", "Where")
    if operator == "Clip":
        ends = [g.constant(number.reshape(())) for number in right[:2]]
        found = g.call("Clip", a, *g.pick(ends, ends[:1], ["", ends[1]], []))
    elif operator in ("Greater", "Equal"):
        found = g.call("Where", g.call(operator, a, b), a, b)
    elif operator == "ReduceSum":
        found = g.call("ReduceSum", a, *g.pick([g.wholes(1)], []), noop_with_empty_axes=g.pick(0, 1), keepdims=1)
    elif operator == "Where":
        found = g.call("Where", g.constant(left > 0), a, b)
    else:
        found = g.call(operator, a, b)
    one = g.call("Slice", found, g.wholes(0, 0), g.wholes(1, 1), g.wholes(0, 1))
    g.go(g.call(g.pick("Add", "Sum", "Max", "Min"), g.at, g.call("Reshape", one, g.wholes(1))), *g.shape)


def gemm_with_factors(g: Graph) -> None:
    if len(g.shape) != 2:
        return
    out, transposed = g.whole(1, 3), g.coin()
    weight = g.constant(g.numbers(*((out, g.shape[1]) if transposed else (g.shape[1], out))))
    bias = [g.constant(g.numbers(*g.pick((out,), (1, out), (1,), ())))] if g.coin() else []
    factors = {name: g.pick(1.0, 0.3, 2.0, 0.0) for name in ("alpha", "beta") if g.coin()}
    g.go(g.call("Gemm", g.at, weight, *bias, transB=int(transposed), **factors), 1, out)
    if g.coin():
        random_steps.add_constant(g)


def nothing_reduced(g: Graph) -> None:
    g.go(g.call("ReduceSum", g.at, noop_with_empty_axes=1, keepdims=g.pick(0, 1)), *g.shape)


def reduced(g: Graph) -> None:
    count = g.whole(1, len(g.shape) - 1)
    axes = sorted(g.random.choice(np.arange(1, len(g.shape)), size=count, replace=False).tolist())
    keep = g.pick(0, 1) if len(g.shape) - count >= 2 else 1
    shape = [1 if axis in axes else size for axis, size in enumerate(g.shape) if keep or axis not in axes]
    g.go(g.axes(g.pick("ReduceSum", "ReduceMean", "ReduceMax"), axes, keepdims=keep), *shape)
    if g.coin():
        g.go(g.call("Add", g.at, g.constant(g.numbers(1))), *g.shape)


def convolution_moved(g: Graph) -> None:
    """Its result added to, transposed or reshaped at once."""
    if len(g.shape) not in (3, 4):
        return
    random_steps.convolution(g)
    way = g.whole(0, 3)
    if way == 0:
        g.go(g.call("Add", g.at, g.constant(g.numbers(g.shape[1], *([1] * (len(g.shape) - 2))))), *g.shape)
    elif way == 1 and len(g.shape) == 3:
        random_steps.transpose(g)
    elif way == 2:
        g.go(g.call("Reshape", g.at, g.wholes(1, -1)), 1, int(np.prod(g.shape)))


def windows_of_padding(g: Graph) -> None:
    if len(g.shape) == 3:
        kernel = g.constant(g.numbers(2, g.shape[1], 2))
        g.go(g.call("Conv", g.at, kernel, pads=[2, 3], kernel_shape=[2]), 1, 2, g.shape[2] + 4)


def both_limits(g: Graph) -> None:
    low, high = sorted(g.numbers(2).tolist())
    ends = [g.constant(np.array(number, g.kind)) for number in (g.pick(0.0, low), high)]
    g.go(g.call("Clip", g.at, *ends), *g.shape)
    random_steps.negative(g)


def lone_number(g: Graph) -> None:
    g.go(g.call(g.pick("Mul", "Add", "Sub", "Div"), g.at, g.constant(g.nonzero(1).reshape(()))), *g.shape)


ODD: tuple[Callable[[Graph], None], ...] = (
    shared_product, zeros_added, broadcast_terms, computed_constant, gemm_with_factors, nothing_reduced, reduced,
    convolution_moved, windows_of_padding, both_limits, lone_number,
)  # fmt: skip


def odd(source: int) -> Sample:
    random = np.random.default_rng(source)
    kind = str(random.choice(["float32", "float32", "float32", "float64"]))
    g = Graph(random, int(random.integers(13, 21)), bool(random.integers(2)), kind)
    length, vocabulary = g.whole(2, 5), g.whole(3, 8)
    start(g, length, vocabulary, "tokens")
    if len(g.shape) == 3 and random.random() < 0.15:
        random_steps.to_image(g)
    used = []
    for _ in range(g.whole(1, 6)):
        step = g.pick(*ODD) if random.random() < 0.7 else g.pick(*random_steps.STEPS.values())
        name = step.__name__
        anywhere = step in ODD or name in random_steps.ANYWHERE
        if not anywhere and (len(g.shape) != 3 or name in random_steps.FEATURES):
            continue
        step(g)
        used.append(name)
        if np.prod(g.shape) > 300:
            break
    if len(g.shape) > 2:
        random_steps.flatten(g)
    random_steps.gemm(g, 2)
    return finished(g, length=length, vocabulary=vocabulary, classes=2, batch=1, steps=tuple(used), source=source)
