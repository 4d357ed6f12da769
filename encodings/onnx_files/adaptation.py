"""A model file changed into one that can be read and that answers the same class: one output, two logits or more.

Whoever adapts a model compares its answers with those of the file as given, and says what was changed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadInput, Unsupported
from .model_ports import Given, Scores
from .onnx_reading import OPSETS, load, needed_nodes, opset_of

RESHAPED = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
HEADS = {"probabilities": "Softmax", "log_probabilities": "LogSoftmax"}
TYPES: dict[int, Any] = {1: np.float32, 10: np.float16, 11: np.float64}
"""ONNX number -> floating type."""
LARGEST = 1 << 31
"""Bytes of a file of protobuf."""


def adapted(path: Path, scores: Scores, roles: Mapping[str, str] | None = None) -> tuple[Any, Given] | None:
    """The model of this file with one output, a logit for each class; None where the file is that already.

    `roles`: what its inputs are for, where their names do not tell.
    """
    from ..smooth.expanded_operators import expand_operators
    from ..smooth.plain_constants import with_plain_constants

    proto = load(path)
    output = chosen_output(proto, scores, path)
    notes: list[str] = []
    if proto.functions:
        notes.append("model-local functions are inlined")
        proto = inlined(proto, path)
    if opset_of(proto) > OPSETS[-1]:
        notes.append(f"converted from opset {opset_of(proto)} to {OPSETS[-1]} by onnx.version_converter")
        proto = converted(proto, path)
    notes += expand_operators(proto)
    proto, settled = with_plain_constants(proto, path, output, roles)
    notes += settled
    others = [one.name for one in proto.graph.output if one.name != output]
    if others:
        notes.append(f"of its outputs {output} is kept, and not {', '.join(others)}")
    keep_output(proto, next(one for one in proto.graph.output if one.name == output))
    kept = flat(proto, output)
    if kept != output:
        notes.append(f"axes of size 1 of {output} are left out")
    ending = ending_of(proto, kept, scores, path)
    if ending is not None:
        notes.append(ending.decide())
    if not notes:
        return None
    prune(proto)
    headless = ending is not None and ending.left_out is not None
    return proto, Given(path, sha256(path), tuple(notes), output, scores, headless)


def write_model(proto: Any, path: Path) -> None:
    """One file, or one with a file of tensors beside it where a single one would be too large; the same every time."""
    import onnx

    if proto.ByteSize() < LARGEST:
        path.write_bytes(proto.SerializeToString(deterministic=True))
    else:
        onnx.save(proto, path, save_as_external_data=True, location=f"{path.name}.data")


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- which output ---------------------------------------------------------------------------------------------------


def chosen_output(proto: Any, scores: Scores, path: Path) -> str:
    """As said, or the only one that can be scores of so many classes."""
    names = [one.name for one in proto.graph.output]
    match scores.output:
        case str() as name if name in names:
            return name
        case int() as number if number < len(names):
            return str(names[number])
        case None:
            fitting = [one.name for one in proto.graph.output if len(names) == 1 or can_score(one, scores.classes)]
            if len(fitting) == 1:
                return str(fitting[0])
            raise BadInput(
                f"{path}: {len(names)} outputs ({', '.join(names)}); [model] output names that of the scores"
            )
        case other:
            raise BadInput(f"{path}: no output {other!r}; its outputs are {', '.join(names)}")


def can_score(output: Any, classes: int) -> bool:
    """Whether it is declared as floating numbers [batch, classes]."""
    shape = shape_of(output)
    return output.type.tensor_type.elem_type in TYPES and shape is not None and shape[1:] == [classes]


def shape_of(value: Any) -> list[int | None] | None:
    """None where unknown."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return [one.dim_value if one.HasField("dim_value") and one.dim_value > 0 else None for one in tensor.shape.dim]


# --- opsets and functions -------------------------------------------------------------------------------------------


def inlined(proto: Any, path: Path) -> Any:
    import onnx.inliner

    try:
        return onnx.inliner.inline_local_functions(proto)
    except Exception as error:  # the library raises nothing narrower
        raise Unsupported(f"{path}: its model-local functions cannot be inlined ({first_line(error)})") from None


def converted(proto: Any, path: Path) -> Any:
    import onnx.version_converter

    try:
        return onnx.version_converter.convert_version(proto, OPSETS[-1])
    except Exception as error:  # the library raises nothing narrower
        raise Unsupported(
            f"{path}: opset {opset_of(proto)} cannot be converted to {OPSETS[-1]} ({first_line(error)}); "
            f"export with opset_version={OPSETS[-1]} or below"
        ) from None


def first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


# --- shapes ---------------------------------------------------------------------------------------------------------


def flat(proto: Any, output: str) -> str:
    """The name of the output without axes of size 1 behind the first, until two are left, as where it is run."""
    import onnx

    shape = next((shape for shape in shapes_of(proto, output) if None not in shape[1:]), [])
    axes = [axis for axis, size in enumerate(shape) if axis and size == 1][: max(0, len(shape) - 2)]
    if opset_of(proto) < OPSETS[0] or not axes or len(axes) < len(shape) - 2:
        return output
    name, kind = f"{output}.flat", proto.graph.output[0].type.tensor_type.elem_type
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(axes, dtype=np.int64), f"{name}.axes"))
    proto.graph.node.append(onnx.helper.make_node("Squeeze", [output, f"{name}.axes"], [name]))
    left = ["batch", *(size for axis, size in enumerate(shape) if axis and axis not in axes)]
    keep_output(proto, onnx.helper.make_tensor_value_info(name, kind, left))
    return name


# --- scores ---------------------------------------------------------------------------------------------------------


def ending_of(proto: Any, output: str, scores: Scores, path: Path) -> Ending | None:
    """What is to be put behind the scores where a single one, or a threshold, decides; None where they are logits."""
    if scores.classes != 2 and (scores.threshold is not None or scores.column is not None):
        raise BadInput(f"{path}: a threshold decides between two classes, and there are {scores.classes}")
    width, rank, kind = measured(proto, output)
    single = scores.classes == 2 and (rank == 1 or width == 1) and scores.column is None
    if not single and scores.threshold is None and scores.column is None:
        return None
    if kind not in TYPES or rank not in (1, 2) or (width is None and rank == 2):
        raise Unsupported(f"{path}: output {output} is not declared as floating numbers [batch, scores]: declare it")
    if not single and scores.column is None and width != 2:
        raise BadInput(f"{path}: output {output} has {width} scores, and [model] labels names 2 classes")
    if scores.column is not None and (rank != 2 or width is None or scores.column >= width):
        raise BadInput(f"{path}: output {output} has {width if rank == 2 else 1} scores; no column {scores.column}")
    return Ending(proto, output, kind, scores, rank, alone=single or scores.column is not None)


def measured(proto: Any, output: str) -> tuple[int | None, int | None, int]:
    """Scores of a text, rank and element type of an output, as far as they are declared or follow."""
    declared = next(one for one in proto.graph.output if one.name == output)
    shapes = shapes_of(proto, output)
    width = next((shape[-1] for shape in shapes if len(shape) == 2 and shape[-1]), None)
    return width, next(map(len, shapes), None), declared.type.tensor_type.elem_type


def shapes_of(proto: Any, output: str) -> list[list[int | None]]:
    """The one declared, and the one that follows where the first leaves open how many scores there are."""
    import onnx

    declared = next(one for one in proto.graph.output if one.name == output)
    found = [declared]
    if not (shape_of(declared) or [None])[-1] and proto.ByteSize() < LARGEST:
        inferred = onnx.shape_inference.infer_shapes(proto)
        found.append(next(one for one in inferred.graph.output if one.name == output))
    return [shape for shape in map(shape_of, found) if shape is not None]


@dataclass(eq=False)
class Ending:
    """What is put behind the scores."""

    proto: Any
    output: str
    kind: int
    scores: Scores
    rank: int
    alone: bool
    """Whether one score decides, and not the second of two."""
    made: int = 0
    left_out: str | None = None
    """The function at the end."""

    def decide(self) -> str:
        """Puts it there, and says so."""
        return self.single() if self.alone else self.pair()

    def single(self) -> str:
        """[border, score] of one score for a text."""
        column, scores = self.scores.column, self.scores
        stripped = self.before("Sigmoid")
        if scores.meaning == "logits" and stripped is not None:
            raise BadInput(
                f'{self.output} comes out of a Sigmoid, so it is no logit: say [model] scores = "probabilities", and '
                "threshold = 0.5 where class 1 wins above that"
            )
        score = self.output if stripped is None else stripped
        if self.rank == 1:
            score = self.node("Reshape", score, self.constant(np.array([-1, 1], dtype=np.int64)))
        if column is not None:
            score = self.node("Gather", score, self.constant(np.array([column], dtype=np.int64)), axis=1)
        border = logit(self.share) if scores.meaning == "logits" or stripped is not None else self.share
        self.finish(self.below(score, border))
        which = f"column {column} of {self.output}" if column is not None else f"the one score {self.output}"
        without = "" if stripped is None else ", its Sigmoid left out,"
        return f"{which}{without} is compared with {border:.9g}, which stands as the first of two logits"

    def pair(self) -> str:
        """Two scores, of which the second must exceed a threshold."""
        scores, head = self.scores, HEADS.get(self.scores.meaning)
        before = None if head is None else self.before(head)
        if scores.meaning == "logits" or before is not None:
            border = logit(self.share)
            offsets = self.constant(np.array([border, 0], dtype=TYPES[self.kind]))
            self.finish(self.node("Add", self.output if before is None else before, offsets))
            without = "" if before is None else f", the {head} left out"
            return f"the first score is raised by {border:.9g}, the logit of the threshold{without}"
        stripped = self.before("Sigmoid")
        border = math.log(self.share) if scores.meaning == "log_probabilities" else self.share
        border = border if stripped is None else logit(self.share)
        second = self.constant(np.array([1], dtype=np.int64))
        score = self.node("Gather", self.output if stripped is None else stripped, second, axis=1)
        self.finish(self.below(score, border))
        without = "" if stripped is None else ", its Sigmoid left out,"
        return f"the second score{without} is compared with {border:.9g}, which stands as the first of two logits"

    @property
    def share(self) -> float:
        return 0.5 if self.scores.threshold is None else self.scores.threshold

    def below(self, score: str, border: float) -> str:
        """[border, score], the border the greatest number of the model's type that does not exceed it."""
        kind = TYPES[self.kind]
        rounded = kind(border)
        if float(rounded) > border:
            rounded = np.nextafter(rounded, kind(-np.inf))
        pads = self.constant(np.array([0, 1, 0, 0], dtype=np.int64))
        return self.node("Pad", score, pads, self.constant(np.array(rounded, dtype=kind)))

    def before(self, head: str) -> str | None:
        """What the last function of the model is applied to, in the shape of the output; None where it is another."""
        makers = {name: node for node in self.proto.graph.node for name in node.output}
        name, chain = self.output, list[Any]()
        while name in makers and makers[name].op_type in RESHAPED:
            chain.append(makers[name])
            name = makers[name].input[0]
        if name not in makers or makers[name].op_type != head or (chain and head != "Sigmoid"):
            return None
        if head != "Sigmoid" and not over_classes(makers[name]):
            return None
        self.left_out, value = head, str(makers[name].input[0])
        for node in reversed(chain):
            value = self.node(node.op_type, value, *node.input[1:])
            self.proto.graph.node[-1].attribute.extend(node.attribute)
        return value

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        import onnx

        name = self.name()
        self.proto.graph.node.append(onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, array: Any) -> str:
        import onnx

        name = self.name()
        self.proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    def name(self) -> str:
        """One that is not there yet."""
        self.made += 1
        return f"{self.output}.decision.{self.made}"

    def finish(self, name: str) -> None:
        import onnx

        keep_output(self.proto, onnx.helper.make_tensor_value_info(name, self.kind, ["batch", 2]))


def over_classes(node: Any) -> bool:
    """Of a Softmax of [batch, classes]."""
    return next((one.i for one in node.attribute if one.name == "axis"), -1) in (-1, 1)


def logit(share: float) -> float:
    return math.log(share / (1 - share))


def keep_output(proto: Any, value: Any) -> None:
    kept = type(value)()
    kept.CopyFrom(value)
    del proto.graph.output[:]
    proto.graph.output.append(kept)


def prune(proto: Any) -> None:
    """Leave out nodes that nothing reads any more, and what only they read."""
    graph = proto.graph
    nodes = [node for _, node in needed_nodes(graph, graph.output[0].name)]
    read = {name for node in nodes for name in node.input} | {one.name for one in graph.input}
    tensors = [tensor for tensor in graph.initializer if tensor.name in read]
    for part, kept in ((graph.node, nodes), (graph.initializer, tensors), (graph.value_info, [])):
        copies = [copied(one) for one in kept]
        del part[:]
        part.extend(copies)


def copied(message: Any) -> Any:
    other = type(message)()
    other.CopyFrom(message)
    return other
