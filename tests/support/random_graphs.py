"""A random ONNX text classifier under construction, and the finished sample with what one must know to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from graph_builder import Builder
from numpy.typing import ArrayLike, NDArray
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
class Graph(Builder):
    """One whose numbers are drawn, with the name and shape (for a batch of one) of the value it has come to."""

    random: np.random.Generator
    opset: int
    small: bool = False
    kind: str = "float32"
    at: str = ""
    shape: tuple[int, ...] = ()

    def whole(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def coin(self) -> bool:
        return bool(self.random.integers(2))

    def pick(self, *options: Any) -> Any:
        """One of them."""
        return options[self.whole(0, len(options) - 1)]

    def numbers(self, *shape: int) -> Array:
        """Weights: small integers, or normal with some zeros."""
        if self.small:
            return self.random.integers(-2, 3, size=shape).astype(self.kind)
        size = int(np.prod(shape[:-1])) if len(shape) > 1 else 1
        found = self.random.normal(size=shape) / max(1.0, size**0.5)
        return np.asarray(np.where(self.random.random(shape) < 0.1, 0.0, found), dtype=self.kind)

    def nonzero(self, *shape: int) -> Array:
        signs = self.random.choice([-1.0, 1.0], size=shape)
        # Of doubles, powers of two: onnxruntime fuses a factor or divisor into MatMul as a float32 attribute.
        plain = self.small or self.kind == "float64"
        found = self.random.choice([0.5, 1.0, 2.0], size=shape) if plain else self.random.uniform(0.3, 3, shape)
        return np.asarray(signs * found, dtype=self.kind)

    def constant(self, value: ArrayLike) -> str:
        """An initializer or a Constant node."""
        if self.coin():
            return super().constant(value)
        return self.call("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def node(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """It has a name too."""
        super().node(operator, inputs, outputs, name=f"{operator}_{outputs[0]}", **attributes)

    def go(self, name: str, *shape: int) -> None:
        self.at, self.shape = name, tuple(int(size) for size in shape)

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        kept = shape[self.whole(0, len(shape) - 1) :] if self.coin() else shape
        return (
            tuple(1 if self.random.random() < 0.3 else size for size in kept[1:]) if len(kept) == len(shape) else kept
        )

    def axes(self, operator: str, axes: list[int], **attributes: Any) -> str:
        return self.axes_of(operator, self.at, axes, **attributes)

    def axes_of(self, operator: str, name: str, axes: list[int], **attributes: Any) -> str:
        """A reduction: its axes an attribute or an input, as the opset wants."""
        if self.opset >= 18 or operator == "ReduceSum":
            return self.call(operator, name, self.wholes(*axes), **attributes)
        return self.call(operator, name, axes=axes, **attributes)


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
    attributes = {"axis": g.pick(1, -1)} if "Soft" in head else {}
    g.nodes.append(helper.make_node(head or "Identity", [g.at], ["logits"], **attributes))
    model = g.proto(
        [("tokens", tokens, [batch, length if fixed_length else "length"])],
        [("logits", KINDS[g.kind], [batch, classes])],
        opset=g.opset,
        ir_version=helper.find_min_ir_version_for([helper.make_opsetid("", g.opset)]),
    )
    return Sample(model, length, vocabulary, classes, steps, source, batch)
