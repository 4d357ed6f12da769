"""Networks of all operators that grow at random, a node at a time; what onnxruntime does not take is left out.

For the tests of check.js: without any code of ours.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import onnxruntime
from graph_builder import Builder, tokens
from onnx import TensorProto

POSITIONS, WORDS, WIDTH = 4, 7, 3
NONLINEAR = {
    "Relu", "LeakyRelu", "PRelu", "Abs", "Clip", "Max", "Min", "Against", "MaxPool", "GlobalMaxPool", "ReduceMax",
}  # fmt: skip

Inputs = dict[str, list[Any]]  # by name, a role and a length


class Growing(Builder):
    """A graph that grows: each step adds a node on a value, if onnxruntime takes it and the result is small."""

    def __init__(self, source: random.Random) -> None:
        super().__init__()
        self.source = source
        self.operators: list[str] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.inputs: Inputs = {"tokens": ["words", POSITIONS]}
        # A few bits each, so that sums come out even now and then.
        table = self.numbers((WORDS, WIDTH))
        self.values = ["embedded"]
        if source.random() < 0.5:
            self.node("Gather", [table, "tokens"], ["embedded"])
        else:
            # The text is read from two inputs, and what a third, of constants, says does not count.
            first = source.randint(1, POSITIONS - 1)
            self.inputs = {
                "start": ["words", first], "mask": ["constant", POSITIONS], "rest": ["words", POSITIONS - first],
            }  # fmt: skip
            self.node("Concat", ["start", "rest"], ["tokens"], axis=1)
            words = self.call("Gather", table, "tokens")
            mask = self.call("Cast", "mask", to=TensorProto.FLOAT)
            mask = self.call("Unsqueeze", mask, self.wholes(2))
            self.node("Mul", [words, mask], ["embedded"])
        self.shapes["embedded"] = (1, POSITIONS, WIDTH)

    def numbers(self, shape: tuple[int, ...], least: int = -8) -> str:
        values = [
            self.source.choice([n for n in range(least, 9) if n or least < 0]) / 8 for _ in range(int(np.prod(shape)))
        ]
        return self.constant(np.array(values, np.float32).reshape(shape))

    def condition(self, shape: tuple[int, ...]) -> str:
        """Zeros and ones, stored or worked out, of constants or of what all choices of a text may have in common."""
        bits = np.array([self.source.random() < 0.5 for _ in range(int(np.prod(shape)))]).reshape(shape)
        match self.source.randrange(5):
            case 0:
                return self.constant(bits)
            case 1:
                return self.call("Not", self.constant(bits))
            case 2:
                comparison = self.source.choice(["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
                return self.call(comparison, self.numbers(shape), self.numbers(()))
            case 3:
                places = self.call("Range", *(self.constant(np.array(n)) for n in (0, 2 * bits.size, 2)))
                few = self.call("Less", places, self.constant(np.array(bits.size)))
                return self.call("Reshape", few, self.wholes(*shape))
            case _:
                return self.call("Reshape", self.seen("Less", WORDS // 2), self.wholes(*([1] * len(shape))))

    def seen(self, comparison: str, word: int) -> str:
        """Is the first word of the text one of these? Only where all its choices answer alike."""
        words = self.call(comparison, "tokens", self.wholes(word))
        return self.call("Gather", words, self.wholes(0), axis=1)

    def model(self, output: str) -> bytes:
        texts = [tokens(1, length, name=name) for name, (_, length) in self.inputs.items()]
        made = self.proto(texts, [(output, TensorProto.FLOAT, None)], opset=18, ir_version=9)
        return bytes(made.SerializeToString())

    def originals(self) -> list[list[Any]]:
        """Of each input, as in a certificate: its role, and integers at random."""
        limits = {"words": WORDS, "constant": 2}
        return [
            [role, [self.source.randrange(limits[role]) for _ in range(length)]]
            for role, length in self.inputs.values()
        ]

    def add(self, operator: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> bool:
        names = self.parts(operator, outputs, *inputs, **attributes)
        try:
            feeds = {name: [0] * length for name, (_, length) in self.inputs.items()}
            shapes = [run(self.model(name), feeds)[0].shape for name in names]
        except Exception:  # whatever onnxruntime does not take
            shapes = []
        if not shapes or any(not 1 <= int(np.prod(shape)) <= 48 or len(shape) > 5 for shape in shapes):
            self.nodes.pop()
            return False
        if self.source.random() < 0.1:
            self.call("Sin", names[0])  # leads nowhere
        self.values += names
        self.shapes |= dict(zip(names, shapes, strict=True))
        self.operators.append(operator)
        return True

    def step(self) -> None:
        source = self.source
        x = source.choice(self.values[-3:])
        shape = self.shapes[x]
        rank = len(shape)
        axis = source.randrange(rank) if rank else 0
        some = sorted(source.sample(range(rank), source.randint(1, rank))) if rank else []
        part = tuple(source.choice([1, n]) for n in shape)[source.randint(0, rank) :]
        length = shape[axis] if rank else 1
        spatial = max(rank - 2, 1)
        window: dict[str, Any] = {
            "kernel_shape": [source.randint(1, 3) for _ in range(spatial)],
            "strides": [source.randint(1, 2) for _ in range(spatial)],
        }
        padding = source.choice(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
        if padding == "NOTSET":
            window["pads"] = [source.randint(0, 1) for _ in range(2 * spatial)]
        else:
            window["auto_pad"] = padding
        dilations: dict[str, Any] = (
            {"dilations": [source.randint(1, 2) for _ in range(spatial)]} if padding == "NOTSET" else {}
        )
        ceil: dict[str, Any] = {"ceil_mode": source.randint(0, 1)} if padding == "NOTSET" else {}
        # onnxruntime takes some kernels that are larger than their input, which the format does not.
        reach = [
            (w - 1) * d + 1 for w, d in zip(window["kernel_shape"], dilations.get("dilations", [1, 1]), strict=False)
        ]
        fits = padding.startswith("SAME") or all(n >= least for n, least in zip(shape[2:], reach, strict=False))
        other = source.choice([value for value in self.values if self.shapes[value] == shape])
        axes = self.wholes(*some) if source.random() < 0.8 else ""
        keep = source.randint(0, 1)
        kind = source.choice(KINDS)
        if kind in NONLINEAR and sum(operator in NONLINEAR for operator in self.operators) >= 3:
            return
        match kind:
            case "Identity" | "Neg":
                self.add(kind, [x])
            case "GlobalMaxPool" | "GlobalAveragePool" if rank in (3, 4):
                self.add(kind, [x])
            case "Relu" | "Abs":
                self.add(kind, [x])
            case "PRelu":
                self.add(kind, [x, self.numbers(part)])
            case "Clip":
                limits = [self.numbers(()) if source.random() < 0.8 else "" for _ in range(2)]
                self.add(kind, [x, *limits])
            case "Against":
                zeros = self.constant(np.zeros(part, np.float32))
                pair = [x, source.choice([zeros, self.numbers(part), self.numbers((2, *shape))])]
                if self.add(source.choice(["Max", "Min"]), pair[:: 1 if keep else -1]):
                    self.operators[-1] = kind
            case "Where":
                pieces = [x, source.choice([other, self.numbers(part)])]
                self.add(kind, [self.condition(part), *pieces[:: 1 if keep else -1]])
            case "Range":
                span = source.choice([(0, length, 1), (length - 1, -1, -1), (-1, length, 2)])
                places = self.call(kind, *(self.constant(np.array(n)) for n in span))
                if self.add("Gather", [x, places], axis=axis):
                    self.operators[-1] = kind
            case "Computed":
                self.computed(x, part)
            case "Cast":
                self.add(kind, [x], to=TensorProto.FLOAT)
            case "Dropout":
                self.add(kind, [x, self.constant(np.array(0.5, np.float32)), self.constant(np.array(False))])
            case "LeakyRelu":
                slope: dict[str, Any] = {"alpha": source.choice([0.0, 0.25, 0.3, 1.0])} if keep else {}
                self.add(kind, [x], **slope)
            case "Flatten":
                self.add(kind, [x], axis=source.randint(-rank, rank))
            case "Reshape":
                sizes = [-1 if place == axis else 0 if place < axis and keep else n for place, n in enumerate(shape)]
                self.add(kind, [x, self.wholes(*(sizes if source.random() < 0.5 else [1, -1, 2]))])
            case "Squeeze":
                ones = [i for i in some if shape[i] == 1]
                self.add(kind, [x, self.wholes(*ones)] if keep and ones else [x])
            case "Unsqueeze":
                self.add(kind, [x, self.wholes(*source.choice([[0], [-1], [1, 0]]))])
            case "Transpose":
                order: dict[str, Any] = {"perm": source.sample(range(rank), rank)} if keep and rank else {}
                self.add(kind, [x], **order)
            case "Expand":
                self.add(kind, [x, self.wholes(*(source.choice([1, n, 2]) for n in shape))])
            case "Tile":
                self.add(kind, [x, self.wholes(*(source.choice([1, 1, 2]) for _ in shape))])
            case "Split" if length > 1:
                if keep:
                    first = source.randint(1, length - 1)
                    self.add(kind, [x, self.wholes(first, length - first)], 2, axis=axis)
                else:
                    self.add(kind, [x], 2, axis=axis - rank, num_outputs=2)
            case "Gather":
                indices = np.array([source.randrange(-length, length) for _ in range(3)], np.int64)
                self.add(
                    kind, [x, self.constant(source.choice([indices, indices[0], indices[:2].reshape(1, 2)]))], axis=axis
                )
            case "GatherElements" if rank:
                sizes = [source.randint(1, n) for n in shape]
                sizes[axis] = source.randint(1, 3)
                indices = np.array([source.randrange(-length, length) for _ in range(math.prod(sizes))], np.int64)
                self.add(kind, [x, self.constant(indices.reshape(sizes))], axis=axis - rank * keep)
            case "GatherND" if rank:
                shared = source.randrange(rank)
                read = source.randint(1, rank - shared)
                lists = [*shape[:shared], *([source.randint(1, 3)] if keep else [])]
                picked = [[source.randrange(-n, n) for n in shape[shared:][:read]] for _ in range(math.prod(lists))]
                said: dict[str, Any] = {"batch_dims": shared} if shared or keep else {}
                self.add(kind, [x, self.constant(np.array(picked, np.int64).reshape(*lists, read))], **said)
            case "Slice":
                step = source.choice([1, 1, 2, -1])
                ends = [source.choice([length, -1, 2, 2**62, -(2**62)])]
                self.add(
                    kind, [x, *(self.wholes(*v) for v in ([source.randint(-length, length)], ends, [axis], [step]))]
                )
            case "Concat":
                pieces = [x, other, self.numbers(shape)][: source.randint(1, 3)]
                source.shuffle(pieces)
                self.add(kind, pieces, axis=axis - rank * keep)
            case "Pad":
                pads = self.wholes(*(source.randint(0, 1) for _ in range(2 * len(some))))
                self.add(kind, [x, pads, self.numbers(()) if keep else "", self.wholes(*some)], mode="constant")
            case "Add" | "Sub":
                pair = [x, source.choice([self.numbers(part), other, self.numbers((2, *shape))])]
                self.add(kind, pair[:: 1 if keep else -1])
            case "Mul":
                self.add(kind, [x, self.numbers(part)][:: 1 if keep else -1])
            case "Div":
                self.add(kind, [x, self.numbers(part, 1)])
            case "Sum" | "Max" | "Min":
                pieces = [x, other, self.numbers(part), self.numbers(shape)]
                self.add(kind, pieces[: source.randint(1, 4)])
            case "MatMul" if rank >= 2:
                batch = () if keep else shape[:-2]
                if source.random() < 0.5:
                    self.add(kind, [x, self.numbers((*batch, shape[-1], source.randint(1, 3)))])
                else:
                    self.add(kind, [self.numbers((*batch, source.randint(1, 3), shape[-2])), x])
            case "Gemm" if rank == 2:
                a, b = source.randint(0, 1), source.randint(0, 1)
                rows, inner, columns = shape[a], shape[1 - a], source.randint(1, 3)
                c = [self.numbers(source.choice([(columns,), (rows, 1), (1, columns), ()]))] if keep else []
                alpha: dict[str, Any] = {"alpha": 0.5, "beta": -1.25} if source.random() < 0.5 else {}
                self.add(
                    kind,
                    [x, self.numbers((columns, inner) if b else (inner, columns)), *c],
                    transA=a,
                    transB=b,
                    **alpha,
                )
            case "Conv" if rank in (3, 4) and shape[0] == 1 and fits:
                groups = source.choice([n for n in (1, 2, 3) if shape[1] % n == 0])
                outer = groups * source.randint(1, 2)
                kernel = self.numbers((outer, shape[1] // groups, *window["kernel_shape"]))
                bias = [self.numbers((outer,))] if keep else []
                self.add(kind, [x, kernel, *bias], group=groups, **window, **dilations)
            case "BatchNormalization" if rank >= 2:
                n = shape[1:2]
                self.add(kind, [x, self.numbers(n), self.numbers(n), self.numbers(n), self.numbers(n, 1)], epsilon=1e-3)
            case "ReduceSum":
                self.add(kind, [x, axes], keepdims=keep, noop_with_empty_axes=source.randint(0, 1))
            case "ReduceMean" | "ReduceMax":
                self.add(kind, [x, axes], keepdims=keep, noop_with_empty_axes=source.randint(0, 1))
            case "AveragePool" if rank in (3, 4) and fits:
                include = source.randint(0, 1)
                self.add(kind, [x], count_include_pad=include, **window, **({} if include else ceil))
            case "MaxPool" if rank in (3, 4) and fits:
                self.add(kind, [x], **window, **ceil, **dilations)

    def computed(self, x: str, part: tuple[int, ...]) -> None:
        """Numbers that are computed from constants, mostly whole ones, beside a variable."""
        source = self.source
        whole = [self.constant(np.array(source.sample(range(1, 9), 1), np.float32)) for _ in range(2)]
        match source.randrange(5):
            case 0:
                number = self.call(source.choice(["Add", "Sub", "Mul", "Max", "Min"]), *whole)
            case 1:
                number = self.call("Div", *whole)
            case 2:
                number = self.call("Clip", whole[0], self.constant(np.array(2, np.float32)))
            case 3:
                number = self.call("ReduceSum", self.numbers(part) if source.random() < 0.5 else whole[0])
            case _:
                bit = self.seen(source.choice(["Equal", "Greater"]), source.randrange(-1, WORDS))
                number = self.call("Cast", bit, to=TensorProto.FLOAT)
        if self.add(source.choice(["Add", "Sub", "Mul"]), [x, number]):
            self.operators[-1] = "Computed"


KINDS = [
    "Identity", "Cast", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile",
    "Split", "Gather", "GatherElements", "GatherND", "Slice", "Concat", "Pad", "Add", "Sub", "Mul", "Div", "Sum",
    "Neg", "MatMul", "MatMul", "Gemm", "Gemm", "Conv", "Conv", "BatchNormalization", "ReduceSum", "ReduceMean",
    "AveragePool", "AveragePool", "GlobalAveragePool", "Relu", "Relu", "Relu", "LeakyRelu", "ReduceMax", "MaxPool",
    "MaxPool", "GlobalMaxPool", "Max", "Min", "Against", "Against", "Clip", "Clip", "PRelu", "Abs", "Where", "Where",
    "Range", "Computed", "Computed",
]  # fmt: skip


def run(model: bytes, feeds: dict[str, list[int]]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {name: np.array([tokens], np.int64) for name, tokens in feeds.items()}))


def random_network(source: random.Random) -> tuple[bytes, Growing]:
    while True:
        graph = Growing(source)
        steps = source.randint(3, 9)
        for _ in range(60):
            if len(graph.operators) >= steps:
                break
            graph.step()
        assert graph.add("Flatten", [graph.values[-1]], axis=0)
        size = graph.shapes[graph.values[-1]][1]
        # Now and then onnxruntime foretells another shape than it gives, and then does not take this.
        if graph.add("Gemm", [graph.values[-1], graph.numbers((size, 2)), graph.numbers((2,))]):
            return graph.model(graph.values[-1]), graph
