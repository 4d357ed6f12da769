"""The steps random classifiers are made of: each appends ONNX nodes to a Graph and accounts for the shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from random_graphs import KINDS, Graph

Step = Callable[[Graph], None]


# --- any shape [batch, ...] -----------------------------------------------------------------------------------------


def relu(g: Graph) -> None:
    g.go(g.call("Relu", g.at), *g.shape)


def leaky_relu(g: Graph) -> None:
    g.go(g.call("LeakyRelu", g.at, alpha=g.pick(0.0, 0.01, 0.25, 1.0)), *g.shape)


def negative(g: Graph) -> None:
    g.go(g.call("Neg", g.at), *g.shape)


def identity(g: Graph) -> None:
    g.go(g.call("Identity", g.at), *g.shape)


def dropout(g: Graph) -> None:
    inputs = [g.at] + ([g.constant(np.array(0.5, dtype=np.float32))] if g.coin() else [])
    g.go(g.call("Dropout", *inputs, outputs=g.pick(1, 2)), *g.shape)


def add_constant(g: Graph) -> None:
    other = g.constant(g.numbers(*g.broadcastable(g.shape)))
    g.go(g.call("Add", *g.pick((g.at, other), (other, g.at))), *g.shape)


def subtract_constant(g: Graph) -> None:
    other = g.constant(g.numbers(*g.broadcastable(g.shape)))
    g.go(g.call("Sub", *g.pick((g.at, other), (other, g.at))), *g.shape)


def multiply_constant(g: Graph) -> None:
    other = g.constant(g.nonzero(*g.broadcastable(g.shape)))
    g.go(g.call("Mul", *g.pick((g.at, other), (other, g.at))), *g.shape)


def divide_constant(g: Graph) -> None:
    g.go(g.call("Div", g.at, g.constant(g.nonzero(*g.broadcastable(g.shape)))), *g.shape)


def residual(g: Graph) -> None:
    """Two values that depend on the text, joined."""
    before, shape = g.at, g.shape
    for step in (g.pick(relu, multiply_constant, add_constant), g.pick(negative, relu, identity)):
        step(g)
    operator = g.pick("Add", "Sub", "Max", "Min", "Sum")
    names = g.pick((before, g.at), (g.at, before))
    if operator in ("Max", "Min", "Sum") and g.coin():
        names = (*names, g.constant(g.numbers(*shape[1:])))
    g.go(g.call(operator, *names), *shape)


def against_constant(g: Graph) -> None:
    g.go(g.call(g.pick("Max", "Min"), g.at, g.constant(g.numbers(*g.shape[1:]))), *g.shape)


def clip(g: Graph) -> None:
    """Both limits, or one; the lower may be the greater."""
    ends = [g.constant(g.pick(np.zeros((), g.kind), g.numbers(1).reshape(()))) for _ in range(2)]
    g.go(g.call("Clip", g.at, *g.pick(ends, ends[:1], ["", ends[1]], ["", ""])), *g.shape)


def prelu(g: Graph) -> None:
    """A slope for each element, or for some; also beyond 0 to 1."""
    g.go(g.call("PRelu", g.at, g.constant(2 * g.numbers(*g.broadcastable(g.shape)[1:] or (1,)))), *g.shape)


def absolute(g: Graph) -> None:
    g.go(g.call("Abs", g.at), *g.shape)


def choose(g: Graph) -> None:
    """Some elements are others, by a constant condition that may be worked out."""
    chosen, other = g.numbers(*g.shape[1:]), g.constant(g.numbers(*g.broadcastable(g.shape)))
    condition = g.constant(chosen > 0)
    if g.coin():
        condition = g.call("Not", g.call("Greater", g.constant(chosen), g.constant(np.zeros(1, g.kind))))
    g.go(g.call("Where", condition, *g.pick((g.at, other), (other, g.at))), *g.shape)


def dead_end(g: Graph) -> None:
    """An operator that is not supported, and one that reads it: neither leads to the output."""
    g.call("Relu", g.call(g.pick("Sin", "Exp", "Sqrt"), g.at))


def cast(g: Graph) -> None:
    """There and back again; to the coarser type and back is rounded."""
    there = g.call("Cast", g.at, to=KINDS[g.pick("float64", "float32", g.kind)])
    g.go(g.call("Cast", there, to=KINDS[g.kind]), *g.shape)


def folded(g: Graph) -> None:
    """A constant that is computed from constants."""
    a, b = g.constant(g.numbers(g.shape[-1])), g.constant(g.nonzero(1))
    sum_of_both = g.call(g.pick("Add", "Mul", "Div"), a, b)
    g.go(g.call("Add", g.at, g.call("Unsqueeze", sum_of_both, g.wholes(0))), *g.shape)


def expand(g: Graph) -> None:
    if len(g.shape) == 2 or g.shape[1] > 3:
        shape = (1,) * len(g.shape)
        g.go(g.call("Expand", g.at, g.wholes(*shape)), *g.shape)
    else:
        one = g.call("Unsqueeze", g.at, g.wholes(1))
        wide = g.call("Expand", one, g.wholes(1, 2, *(1 for _ in g.shape[1:])))
        g.go(wide, 1, 2, *g.shape[1:])
        reshape_to(g, (1, 2 * g.shape[2], *g.shape[3:]))


def slice_axis(g: Graph) -> None:
    axis = g.whole(1, len(g.shape) - 1)
    size = g.shape[axis]
    start = g.whole(0, size - 1)
    stop = g.whole(start + 1, size)
    step = g.pick(1, 1, 2)
    ends = [g.wholes(start), g.wholes(g.pick(stop, stop - size) if stop < size else 2**40)]
    named = g.pick(axis, axis - len(g.shape))
    taken = len(range(start, stop, step))
    if g.coin():  # backwards
        ends, step = [g.wholes(size - 1), g.wholes(-size - 1)], -1
        taken = size
    shape = [taken if a == axis else n for a, n in enumerate(g.shape)]
    g.go(g.call("Slice", g.at, *ends, g.wholes(named), g.wholes(step)), *shape)


def split_and_join(g: Graph) -> None:
    axis = g.whole(1, len(g.shape) - 1)
    size = g.shape[axis]
    if size < 2:
        return
    first = g.whole(1, size - 1)
    inputs = [g.at, g.wholes(first, size - first)]
    if size % 2 == 0 and g.opset < 18 and g.coin():
        inputs = [g.at]
    names = g.parts("Split", 2, *inputs, axis=g.pick(axis, axis - len(g.shape)))
    g.go(g.call("Concat", names[1], names[0], axis=axis), *g.shape)


def join_constant(g: Graph) -> None:
    """Concat with a constant, and the positions behind it taken again."""
    axis = g.whole(1, len(g.shape) - 1)
    size = g.shape[axis]
    shape = [1 if a == axis else n for a, n in enumerate(g.shape)]
    other = g.constant(g.numbers(*shape))
    joined = g.call("Concat", *g.pick((g.at, other), (other, g.at)), axis=g.pick(axis, axis - len(shape)))
    index = g.random.integers(-size - 1, size + 1, size=size)
    g.go(g.call("Gather", joined, g.constant(index.astype(np.int64)), axis=axis), *g.shape)


def gather_elements(g: Graph) -> None:
    axis = g.whole(1, len(g.shape) - 1)
    shape = [n if a == axis else g.whole(1, n) for a, n in enumerate(g.shape)][1:]
    indices = np.array([g.whole(-g.shape[axis], g.shape[axis] - 1) for _ in range(int(np.prod(shape)))], dtype=np.int64)
    every = g.call("Expand", g.constant(indices.reshape(1, *shape)), with_batch(g, shape))
    g.go(g.call("GatherElements", g.at, every, axis=g.pick(axis, axis - len(g.shape))), 1, *shape)


def gather_places(g: Graph) -> None:
    rows = [[g.whole(-g.shape[1], g.shape[1] - 1)] for _ in range(g.whole(1, 4))]
    every = g.call("Expand", g.constant(np.array([rows], dtype=np.int64)), with_batch(g, [len(rows), 1]))
    g.go(g.call("GatherND", g.at, every, batch_dims=1), 1, len(rows), *g.shape[2:])


def pad(g: Graph) -> None:
    before = [0] + [g.whole(0, 1) for _ in g.shape[1:]]
    after = [0] + [g.whole(0, 1) for _ in g.shape[1:]]
    mode = g.pick("constant", "edge", "reflect") if min(g.shape[1:]) > 1 else "constant"
    inputs = [g.at, g.wholes(*before, *after)]
    filled = mode == "constant" and g.coin()
    if filled:
        inputs.append(g.constant(np.array(0.5, dtype=g.kind)))
    shape = [b + n + a for b, n, a in zip(before, g.shape, after, strict=True)]
    g.go(g.call("Pad", *inputs, mode=mode), *shape)
    if not filled:
        negative(g)  # onnxruntime 1.31 fuses zeros into a MaxPool that follows, which then is another function


def tile(g: Graph) -> None:
    axis = g.whole(1, len(g.shape) - 1)
    if g.shape[axis] > 4:
        return
    counts = [2 if a == axis else 1 for a in range(len(g.shape))]
    g.go(g.call("Tile", g.at, g.wholes(*counts)), *(n * c for n, c in zip(g.shape, counts, strict=True)))


def matmul(g: Graph) -> None:
    out = g.whole(1, 4)
    lead = (1,) if len(g.shape) > 2 and g.coin() else ()
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(*lead, g.shape[-1], out))), *g.shape[:-1], out)


def dense(g: Graph) -> None:
    """MatMul and Add, which runtimes fuse."""
    matmul(g)
    add_constant(g)


# --- sequences [batch, a, b] ----------------------------------------------------------------------------------------


def matmul_left(g: Graph) -> None:
    out = g.whole(1, 4)
    shape = (out, g.shape[1])
    g.go(g.call("MatMul", g.constant(g.numbers(*((1, *shape) if g.coin() else shape))), g.at), 1, out, g.shape[2])


def transpose(g: Graph) -> None:
    g.go(g.call("Transpose", g.at, perm=[0, 2, 1]), 1, g.shape[2], g.shape[1])


def windows(g: Graph, spatial: tuple[int, ...]) -> tuple[dict[str, Any], list[int]]:
    """kernel_shape, strides, dilations and padding that fit, and the result's spatial shape."""
    kernel, strides, dilations, before, after, result = [], [], [], [], [], []
    same = g.pick("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    for size in spatial:
        width = g.whole(1, min(3, size))
        dilation = g.whole(1, 2) if same in ("NOTSET", "VALID") and (width - 1) * 2 + 1 <= size else 1
        pads = [g.whole(0, width - 1), g.whole(0, width - 1)] if same == "NOTSET" and dilation == 1 else [0, 0]
        stride = g.whole(1, 2 if same in ("NOTSET", "VALID") else min(2, width))
        kernel.append(width)
        strides.append(stride)
        dilations.append(dilation)
        before.append(pads[0])
        after.append(pads[1])
        room = size + sum(pads) - ((width - 1) * dilation + 1)
        result.append(-(-size // stride) if same.startswith("SAME") else room // stride + 1)
    attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    if same == "NOTSET":
        attributes["pads"] = before + after
    else:
        attributes["auto_pad"] = same
    return attributes, result


def convolution(g: Graph) -> None:
    channels, spatial = g.shape[1], g.shape[2:]
    attributes, out = windows(g, spatial)
    groups = g.pick(*(n for n in (1, 2, channels) if channels % n == 0))
    filters = groups * g.whole(1, 2)
    kernel = g.constant(g.numbers(filters, channels // groups, *attributes["kernel_shape"]))
    bias = [g.constant(g.numbers(filters))] if g.coin() else []
    g.go(g.call("Conv", g.at, kernel, *bias, group=groups, **attributes), 1, filters, *out)


def max_pool(g: Graph) -> None:
    attributes, out = windows(g, g.shape[2:])
    g.go(g.call("MaxPool", g.at, **attributes), 1, g.shape[1], *out)


def max_pool_ceil(g: Graph) -> None:
    size = g.shape[2:]
    kernel = [min(2, n) for n in size]
    out = [-(-(n - k) // 2) + 1 for n, k in zip(size, kernel, strict=True)]
    g.go(g.call("MaxPool", g.at, kernel_shape=kernel, strides=[2] * len(size), ceil_mode=1), 1, g.shape[1], *out)


def average_pool(g: Graph) -> None:
    attributes, out = windows(g, g.shape[2:])
    if g.opset < 19:
        spans = zip(g.shape[2:], attributes["kernel_shape"], attributes.pop("dilations"), strict=True)
        if any(dilation > 1 for _, _, dilation in spans):
            return
    g.go(g.call("AveragePool", g.at, count_include_pad=g.pick(0, 1), **attributes), 1, g.shape[1], *out)


def average_pool_ceil(g: Graph) -> None:
    size = g.shape[2:]
    kernel = [min(2, n) for n in size]
    out = [-(-(n - k) // 2) + 1 for n, k in zip(size, kernel, strict=True)]
    g.go(g.call("AveragePool", g.at, kernel_shape=kernel, strides=[2] * len(size), ceil_mode=1), 1, g.shape[1], *out)


def normalise(g: Graph) -> None:
    channels = g.shape[1]
    scale, bias, mean = (g.constant(g.numbers(channels)) for _ in range(3))
    variance = g.constant(np.ones(channels, dtype=g.kind) if g.small else np.abs(g.nonzero(channels)))
    epsilon = 0.0 if g.small else 1e-5
    g.go(g.call("BatchNormalization", g.at, scale, bias, mean, variance, epsilon=epsilon), *g.shape)


def convolution_normalised(g: Graph) -> None:
    """Which runtimes fuse."""
    convolution(g)
    g.pick(normalise, multiply_constant, add_constant, residual)(g)


def to_image(g: Graph) -> None:
    """[batch, a, b] -> [batch, 1, a, b]."""
    g.go(g.call("Unsqueeze", g.at, g.wholes(g.pick(1, -3))), 1, 1, *g.shape[1:])


def from_image(g: Graph) -> None:
    """[batch, c, a, b] -> [batch, c * a, b], or squeezed where c is 1."""
    if g.shape[1] == 1 and g.coin():
        g.go(g.call("Squeeze", g.at, g.wholes(1)), 1, *g.shape[2:])
    else:
        reshape_to(g, (1, g.shape[1] * g.shape[2], g.shape[3]))


# --- to features [batch, n] -----------------------------------------------------------------------------------------


def reshape_to(g: Graph, shape: tuple[int, ...]) -> None:
    """By one of the ways in which exporters say it; none of them fixes the batch."""
    rest = list(shape[1:])
    way = g.whole(0, 3)
    if way == 0:
        target = g.wholes(0, *rest[:-1], -1)
    elif way == 1:
        target = g.wholes(-1, *rest)
    else:  # the chain of torch's older exporter
        target = with_batch(g, rest if way == 2 else [*rest[:-1], -1])
    g.go(g.call("Reshape", g.at, target), *shape)


def with_batch(g: Graph, rest: Sequence[int]) -> str:
    """The shape [batch, *rest]."""
    size = g.call("Gather", g.call("Shape", g.at), g.constant(np.array(0, dtype=np.int64)), axis=0)
    return g.call("Concat", g.call("Unsqueeze", size, g.wholes(0)), *(g.wholes(n) for n in rest), axis=0)


def flatten(g: Graph) -> None:
    size = int(np.prod(g.shape))
    if g.coin():
        g.go(g.call("Flatten", g.at, axis=g.pick(1, 1 - len(g.shape))), 1, size)
    else:
        reshape_to(g, (1, size))


def reduction(g: Graph) -> None:
    rank = len(g.shape)
    axes = g.pick([1], [-1]) if rank == 3 else g.pick([1, 2], [-1, 1], [2, 3], [-2, -1])
    operator, keep = g.pick("ReduceMax", "ReduceMean", "ReduceSum"), g.pick(0, 1)
    if keep:
        shape = [1 if a in [x % rank for x in axes] else n for a, n in enumerate(g.shape)]
    else:
        shape = [n for a, n in enumerate(g.shape) if a not in [x % rank for x in axes]]
    g.go(g.axes(operator, axes, keepdims=keep), *shape)
    if len(g.shape) > 2:
        flatten(g)


def global_pool(g: Graph) -> None:
    g.go(g.call(g.pick("GlobalMaxPool", "GlobalAveragePool"), g.at), *g.shape[:2], *(1 for _ in g.shape[2:]))
    if g.coin():
        g.go(g.call("Squeeze", g.at, g.wholes(*range(2, len(g.shape)))), *g.shape[:2])
    else:
        flatten(g)


# --- features [batch, n] --------------------------------------------------------------------------------------------


def gemm(g: Graph, outputs: int | None = None) -> None:
    out = outputs or g.whole(1, 5)
    transposed = g.pick(0, 1)
    weight = g.numbers(g.shape[1], out)
    attributes: dict[str, Any] = {"transB": transposed}
    if g.coin():
        attributes |= {"alpha": g.pick(0.5, 1.0, 1.7), "beta": g.pick(2.0, 1.0, 0.3)}
    inputs = [g.at, g.constant(np.ascontiguousarray(weight.T) if transposed else weight)]
    if g.coin():
        inputs.append(g.constant(g.numbers(*g.pick((out,), (1, out), (1,)))))
    if g.coin():
        inputs[0] = g.call("Transpose", g.at, perm=[1, 0])
        attributes["transA"] = 1
    g.go(g.call("Gemm", *inputs, **attributes), 1, out)


def normalise_features(g: Graph) -> None:
    normalise(g)


ANYWHERE: dict[str, Step] = {
    step.__name__: step
    for step in (
        relu, leaky_relu, prelu, absolute, clip, negative, identity, dropout, add_constant, subtract_constant,
        multiply_constant, divide_constant, residual, against_constant, choose, dead_end, cast, folded, expand,
        slice_axis, split_and_join, join_constant, gather_elements, gather_places, pad, tile, matmul, dense,
    )
}  # fmt: skip
WINDOWED: dict[str, Step] = {
    step.__name__: step
    for step in (
        convolution, max_pool, max_pool_ceil, average_pool, average_pool_ceil, normalise, convolution_normalised,
    )
}  # fmt: skip
SEQUENCE: dict[str, Step] = {step.__name__: step for step in (matmul_left, transpose)}
ENDS: dict[str, Step] = {step.__name__: step for step in (flatten, reduction, global_pool)}
FEATURES: dict[str, Step] = {step.__name__: step for step in (gemm, normalise_features)}
STEPS = ANYWHERE | WINDOWED | SEQUENCE | ENDS | FEATURES
