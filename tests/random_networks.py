"""Hypothesis strategies for small ONNX text classifiers over every operator that is read.

    networks()         any mixture of STEPS between an embedding and two to four logits
    tiny_networks()    an MLP, CNN, mean, residual or maximum classifier with a small swap space
    swap_spaces(...)   a few choices per position

`weights="small"` draws small integers, so that ties and exact arithmetic happen. A step is a function that appends
ONNX nodes to a Graph and keeps account of the shape of the value it is at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
KINDS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}


@dataclass(frozen=True)
class Sample:
    """A model with what one must know to run it."""

    model: Any
    length: int
    vocabulary: int
    classes: int
    steps: tuple[str, ...]
    random_source: int
    batch: int | str

    def __repr__(self) -> str:
        return f"Sample({' > '.join(self.steps)}; seed {self.random_source})"

    def save(self, folder: Path, name: str = "model.onnx") -> Path:
        path = folder / name
        onnx.save(self.model, path)
        return path

    def runner(self, path: Path, *, optimised: bool = True) -> Callable[[Array], Array]:
        """onnxruntime on the saved file: tokens [batch, length] -> outputs [batch, classes]."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        (tokens,) = session.get_inputs()
        kind = np.int32 if "int32" in tokens.type else np.int64

        def run(sentences: Array) -> Array:
            rows = len(sentences) if self.batch == "batch" else 1
            blocks = [sentences[start : start + rows] for start in range(0, len(sentences), rows)]
            return np.concatenate([session.run(None, {tokens.name: block.astype(kind)})[0] for block in blocks])

        return run

    def sentences(self, count: int, source: int = 0) -> NDArray[np.int64]:
        return np.random.default_rng(source).integers(self.vocabulary, size=(count, self.length))


@dataclass
class Graph:
    """Nodes and weights so far, the name and shape (for a batch of one) of the value they lead to."""

    random: np.random.Generator
    opset: int
    small: bool = False
    kind: str = "float32"
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    at: str = ""
    shape: tuple[int, ...] = ()
    counter: int = 0

    def name(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def whole(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def coin(self) -> bool:
        return bool(self.random.integers(2))

    def pick(self, *options: Any) -> Any:
        return options[self.whole(0, len(options) - 1)]

    def numbers(self, *shape: int) -> Array:
        """Weights: small integers, or normal with some zeros."""
        if self.small:
            return self.random.integers(-2, 3, size=shape).astype(self.kind)
        size = int(np.prod(shape[:-1])) if len(shape) > 1 else 1
        found = self.random.normal(size=shape) / max(1.0, size**0.5)
        return np.where(self.random.random(shape) < 0.1, 0.0, found).astype(self.kind)

    def nonzero(self, *shape: int) -> Array:
        signs = self.random.choice([-1.0, 1.0], size=shape)
        found = self.random.choice([0.5, 1.0, 2.0], size=shape) if self.small else self.random.uniform(0.3, 3, shape)
        return (signs * found).astype(self.kind)

    def constant(self, array: Array) -> str:
        """An initializer or a Constant node."""
        name = self.name()
        if self.coin():
            self.weights.append(numpy_helper.from_array(array, name))
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        return name

    def wholes(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, dtype=np.int64))

    def call(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=f"{operator}_{names[0]}", **attributes))
        return names[0]

    def go(self, name: str, *shape: int) -> None:
        self.at, self.shape = name, tuple(int(size) for size in shape)

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        kept = shape[self.whole(0, len(shape) - 1) :] if self.coin() else shape
        return tuple(1 if self.random.random() < 0.3 else size for size in kept[1:]) if len(kept) == len(shape) else kept

    def axes(self, operator: str, axes: list[int], **attributes: Any) -> str:
        """A reduction: its axes an attribute or an input, as the opset wants."""
        if self.opset >= 18 or operator == "ReduceSum":
            return self.call(operator, self.at, self.wholes(*axes), **attributes)
        return self.call(operator, self.at, axes=axes, **attributes)


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
    names = [g.name(), g.name()]
    inputs = [g.at, g.wholes(first, size - first)]
    if size % 2 == 0 and g.opset < 18 and g.coin():
        inputs = [g.at]
    g.nodes.append(helper.make_node("Split", inputs, names, axis=g.pick(axis, axis - len(g.shape))))
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


def pad(g: Graph) -> None:
    before = [0] + [g.whole(0, 1) for _ in g.shape[1:]]
    after = [0] + [g.whole(0, 1) for _ in g.shape[1:]]
    mode = g.pick("constant", "edge", "reflect") if min(g.shape[1:]) > 1 else "constant"
    inputs = [g.at, g.wholes(*before, *after)]
    if mode == "constant" and g.coin():
        inputs.append(g.constant(np.array(0.5, dtype=g.kind)))
    shape = [b + n + a for b, n, a in zip(before, g.shape, after, strict=True)]
    g.go(g.call("Pad", *inputs, mode=mode), *shape)


def tile(g: Graph) -> None:
    axis = g.whole(1, len(g.shape) - 1)
    if g.shape[axis] > 4:
        return
    counts = [2 if a == axis else 1 for a in range(len(g.shape))]
    g.go(g.call("Tile", g.at, g.wholes(*counts)), *(n * c for n, c in zip(g.shape, counts, strict=True)))


def matmul(g: Graph) -> None:
    out = g.whole(1, 4)
    shape = (g.shape[-1], out)
    if len(g.shape) > 2 and g.coin():
        shape = (1, *shape)
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(*shape))), *g.shape[:-1], out)


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
        size = g.call("Gather", g.call("Shape", g.at), g.constant(np.array(0, dtype=np.int64)), axis=0)
        first = g.call("Unsqueeze", size, g.wholes(0))
        target = g.call("Concat", first, *(g.wholes(n) for n in (rest if way == 2 else [*rest[:-1], -1])), axis=0)
    g.go(g.call("Reshape", g.at, target), *shape)


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
        relu, leaky_relu, negative, identity, dropout, add_constant, subtract_constant, multiply_constant,
        divide_constant, residual, against_constant, cast, folded, expand, slice_axis, split_and_join, join_constant,
        pad, tile, matmul, dense,
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
HEADS = ("", "Softmax", "LogSoftmax", "Sigmoid", "Tanh")


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


def finished(
    g: Graph,
    *,
    length: int,
    vocabulary: int,
    classes: int,
    head: str = "",
    tokens: int = TensorProto.INT64,
    batch: int | str = "batch",
    fixed_length: bool = True,
    steps: tuple[str, ...] = (),
    source: int = 0,
) -> Sample:
    """The model of a graph that has come to its logits."""
    if head:
        g.go(g.call(head, g.at, **({"axis": g.pick(1, -1)} if "Soft" in head else {})), *g.shape)
    g.nodes.append(helper.make_node("Identity", [g.at], ["logits"]))
    graph = helper.make_graph(
        g.nodes,
        "random",
        [helper.make_tensor_value_info("tokens", tokens, [batch, length if fixed_length else "length"])],
        [helper.make_tensor_value_info("logits", KINDS[g.kind], [batch, classes])],
        g.weights,
    )
    version = helper.find_min_ir_version_for([helper.make_opsetid("", g.opset)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=version)
    return Sample(model, length, vocabulary, classes, steps, source, batch)


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


ONE_TEXT = ("join_constant",)
"""Steps that only make sense for a batch of one: a constant has no batch."""
NO_DOUBLE = ("average_pool", "average_pool_ceil", "convolution", "convolution_normalised", "global_pool", "leaky_relu")
"""Steps whose operators onnxruntime has in single precision only."""


@st.composite
def networks(draw: st.DrawFn, weights: str = "any", heads: bool = True, kinds: bool = True) -> Sample:
    """Any mixture of the steps; `weights` is "any", "normal" or "small"."""
    before = draw(st.lists(st.sampled_from(sorted({**ANYWHERE, **WINDOWED, **SEQUENCE})), max_size=5))
    end = draw(st.sampled_from(sorted(ENDS)))
    after = draw(st.lists(st.sampled_from(sorted({**ANYWHERE, **FEATURES})), max_size=3))
    return assembled(
        (*before, end, *after),
        draw(st.integers(0, 2**32 - 1)),
        opset=draw(st.integers(13, 20)),
        small=draw(st.booleans()) if weights == "any" else weights == "small",
        kind=draw(st.sampled_from(["float32", "float32", "float64"])) if kinds else "float32",
        head=draw(st.sampled_from(HEADS)) if heads else "",
    )


TINY = ("mlp", "deep", "mean", "cnn", "residual", "maximum")


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
        relu(g)
        if shape == "residual":
            g.go(g.call("Add", g.at, before[0]), *g.shape)
    hidden(g, classes)
    return finished(g, length=length, vocabulary=vocabulary, classes=classes, steps=(shape,), source=source)


def hidden(g: Graph, outputs: int) -> None:
    weight, bias = g.constant(g.numbers(g.shape[1], outputs)), g.constant(g.numbers(outputs))
    g.go(g.call("Gemm", g.at, weight, bias), 1, outputs)


@st.composite
def swap_spaces(
    draw: st.DrawFn, length: int, vocabulary: int, most_choices: int = 3
) -> tuple[tuple[int, ...], ...]:
    """Choices per position: distinct tokens, the original first; some positions fixed."""
    word = st.integers(0, vocabulary - 1)
    rows = st.lists(word, min_size=1, max_size=most_choices, unique=True).map(tuple)
    return tuple(draw(rows) for _ in range(length))
