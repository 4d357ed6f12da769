"""Networks that read a text as the sum of a row of numbers for each of its words: bags of words, static embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput

if TYPE_CHECKING:
    import onnx

OPSET = 18
IR_VERSION = 8  # the oldest that knows opset 18, so that older runtimes read the file
LARGEST = 2**31 - 2**20
"""Bytes of an ONNX file, less room for all that is no weight."""
BATCH = 2**24
"""Numbers that are gathered at once."""

Array = NDArray[np.float64]
Layer = tuple[Array, Array]
"""Weight [outputs, inputs] and bias [outputs]."""


@dataclass(frozen=True)
class Unreadable:
    """Why a model is no such network: it can only be run."""

    reason: str


@dataclass(frozen=True, eq=False)
class VectorNorm:
    """t = |x| + e: x are all sums but the last, which is e."""

    def check(self, width: int) -> int:
        """Of so many sums, how many the layers read."""
        if width < 2:
            raise BadInput("a norm of no numbers")
        return width - 1

    def divided(self, sums: Array) -> tuple[Array, Array]:
        """What the layers read, and t [texts, 1]."""
        x = sums[:, :-1]
        return x, np.sqrt((x * x).sum(axis=1, keepdims=True)) + sums[:, -1:]


@dataclass(frozen=True, eq=False)
class CountedNorm:
    """x + bias t with t = sqrt(max(q, least)): the sums are x, q, y; bends @ max(y, 0) is added to x and q first."""

    bias: Array
    bends: Array
    """[sizes of x and q, size of y]"""
    least: float = 0.0
    """Below every q that is not 0: a text of which nothing is counted is not divided, and any t will do."""

    def check(self, width: int) -> int:
        if self.bends.shape != (len(self.bias) + 1, width - len(self.bias) - 1):
            raise BadInput(f"bends {self.bends.shape} do not belong to {width} sums and bias {self.bias.shape}")
        return len(self.bias)

    def divided(self, sums: Array) -> tuple[Array, Array]:
        here = len(self.bias) + 1
        both = sums[:, :here] + np.maximum(sums[:, here:], 0.0) @ self.bends.T
        norm = np.sqrt(np.maximum(both[:, -1:], self.least))
        return both[:, :-1] + norm * self.bias, norm


@dataclass(frozen=True, eq=False)
class WordNetwork:
    """rows[i] is what spelling i adds to a sum that begins with `start`; then the layers, with a Relu between them,
    and one before the first of them where the sums are `rectified`. Without layers the sums are the logits.

    Where the model made into this network divides a text by its `norm` t, the network multiplies each bias by t, which
    multiplies the logits by it: relu(V x / t + b) t = relu(V x + b t).

    The number after the last spelling is padding: it adds nothing.
    """

    rows: Array
    start: Array
    layers: tuple[Layer, ...] = ()
    rectified: bool = False
    remarks: tuple[str, ...] = ()
    """What the numbers are not exactly, for the report."""
    norm: VectorNorm | CountedNorm | None = None

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.start.shape != (self.rows.shape[1],):
            raise BadInput(f"rows {self.rows.shape} and start {self.start.shape} do not belong together")
        width = self.width
        for place, (weight, bias) in enumerate(self.layers):
            if weight.ndim != 2 or weight.shape[1] != width or bias.shape != (len(weight),):
                raise BadInput(
                    f"layer {place}, weight {weight.shape} and bias {bias.shape}, cannot read {width} numbers"
                )
            width = len(weight)
        if self.rectified and not self.layers:
            raise BadInput("sums that are rectified need a layer after them")
        if width < 2:
            raise BadInput(f"a network of {width} logits decides nothing: two classes need two")
        bent = (self.norm.bias, self.norm.bends) if isinstance(self.norm, CountedNorm) else ()
        if not all(np.isfinite(array).all() for array in (self.rows, self.start, *bent, *sum(self.layers, ()))):
            raise BadInput("a weight is not a number, or infinite")

    @property
    def padding(self) -> int:
        """The number that stands for no word."""
        return len(self.rows)

    @property
    def width(self) -> int:
        """How many numbers the layers read."""
        sums = self.rows.shape[1]
        return sums if self.norm is None else self.norm.check(sums)

    @property
    def classes(self) -> int:
        return len(self.layers[-1][1]) if self.layers else self.width

    def scores(self, ids: NDArray[np.int64]) -> Array:
        """[texts, classes] of [texts, words], in float64."""
        if ids.size and not (ids.min() >= 0 and ids.max() <= self.padding):
            raise BadInput(f"words {ids.min()} to {ids.max()}, of a network of {self.padding} spellings")
        rows = self.with_padding
        step = max(1, BATCH // max(1, ids.shape[1] * rows.shape[1]))
        batches = [self._logits(rows[ids[start : start + step]]) for start in range(0, len(ids), step)]
        return np.concatenate(batches) if batches else np.zeros((0, self.classes))

    def _logits(self, gathered: Array) -> Array:
        sums = gathered.sum(axis=1) + self.start
        reads, norm = (sums, 1.0) if self.norm is None else self.norm.divided(sums)
        for place, (weight, bias) in enumerate(self.layers):
            reads = (np.maximum(reads, 0.0) if place or self.rectified else reads) @ weight.T + bias * norm
        return np.asarray(reads)

    @property
    def with_padding(self) -> Array:
        """The rows and that of the padding."""
        return np.concatenate([self.rows, np.zeros((1, self.rows.shape[1]))])

    def to_onnx(self, path: Path) -> None:
        """A file of float64 weights: `words` int64 [batch, length] -> `logits` [batch, classes]."""
        import onnx

        size = 8 * (self.rows.size + sum(weight.size for weight, _ in self.layers))
        if size > LARGEST:
            raise BadInput(f"{path}: {size:,} bytes of weights; an ONNX file holds 2 GiB: take fewer texts")
        onnx.save(self.model(), str(path))

    def model(self) -> onnx.ModelProto:
        from onnx import TensorProto, checker, helper

        nodes = Nodes()
        gathered = nodes.add("Gather", "gathered", self.with_padding, "words")
        reads = nodes.add("ReduceSum", "sums", gathered, AFTER, keepdims=0)
        if self.start.any():
            reads = nodes.add("Add", "begun", reads, self.start)
        norm = None
        match self.norm:
            case VectorNorm():
                reads, norm = vector_norm(nodes, reads, self.width)
            case CountedNorm():
                reads, norm = counted_norm(nodes, reads, self.norm)
        for place, (weight, bias) in enumerate(self.layers):
            if place or self.rectified:
                reads = nodes.add("Relu", f"active.{place}", reads)
            if norm is None:
                reads = nodes.add("Gemm", f"layer.{place}", reads, weight, bias, transB=1)
                continue
            reads = nodes.add("Gemm", f"product.{place}", reads, weight, transB=1)
            if bias.any():
                reads = nodes.add("Add", f"layer.{place}", reads, nodes.add("Mul", f"bias.{place}", norm, bias))
        nodes.add("Identity", "logits", reads, called="logits")
        graph = helper.make_graph(
            nodes.made,
            "words",
            [helper.make_tensor_value_info("words", TensorProto.INT64, ["batch", "length"])],
            [helper.make_tensor_value_info("logits", TensorProto.DOUBLE, ["batch", self.classes])],
            nodes.constants,
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="swapproof"
        )
        checker.check_model(model, full_check=True)
        return model


AFTER = np.array([1], dtype=np.int64)
"""The axis of a text's words, and of its numbers."""


class Nodes:
    """Of an ONNX graph, one after the other; arrays among their inputs become its constants."""

    def __init__(self) -> None:
        self.made: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, operator: str, name: str, *inputs: str | NDArray[Any], called: str | None = None, **said: Any) -> str:
        """The name of what it gives: `called`, or its own."""
        from onnx import helper, numpy_helper

        read = []
        for place, one in enumerate(inputs):
            if isinstance(one, str):
                read.append(one)
                continue
            read.append(f"{name}:{place}")
            self.constants.append(numpy_helper.from_array(np.ascontiguousarray(one), read[-1]))
        given = called or f"{name}:out"
        self.made.append(helper.make_node(operator, read, [given], name=name, **said))
        return given

    def part(self, name: str, reads: str, start: int, stop: int) -> str:
        """Some numbers of each text."""
        return self.add("Slice", name, reads, np.array([start]), np.array([stop]), AFTER)


def vector_norm(nodes: Nodes, sums: str, width: int) -> tuple[str, str]:
    x = nodes.part("vector", sums, 0, width)
    total = nodes.add("ReduceSum", "square", nodes.add("Mul", "squares", x, x), AFTER, keepdims=1)
    return x, nodes.add("Add", "norm", nodes.add("Sqrt", "root", total), nodes.part("rest", sums, width, width + 1))


def counted_norm(nodes: Nodes, sums: str, norm: CountedNorm) -> tuple[str, str]:
    width = len(norm.bias)
    if norm.bends.size:
        bent = nodes.add("Relu", "bent", nodes.part("bending", sums, width + 1, width + 1 + norm.bends.shape[1]))
        unbent = nodes.part("unbent", sums, 0, width + 1)
        sums = nodes.add("Add", "all", unbent, nodes.add("Gemm", "corrections", bent, norm.bends, transB=1))
    x, square = nodes.part("x", sums, 0, width), nodes.part("square", sums, width, width + 1)
    if norm.least:
        least = np.array([norm.least])
        square = nodes.add("Add", "least", nodes.add("Relu", "more", nodes.add("Sub", "above", square, least)), least)
    root = nodes.add("Sqrt", "norm", square)
    return nodes.add("Add", "biased", x, nodes.add("Mul", "bias", root, norm.bias)), root


@dataclass(frozen=True)
class ReadTexts:
    """`misfits`: why a text is not read, None where it is; `undecided`: the network has one logit after those of the
    classes, which wins where the deployed model may answer either of them."""

    network: WordNetwork
    misfits: tuple[str | None, ...]
    undecided: bool = False
