"""Everything in a model file that cannot be read, at once, with what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import Curve, Node
from ..smooth.attention_depth import attention_layers, is_exponential
from .adaptation import RESHAPED, TYPES, converted, inlined, shape_of
from .computed import is_floating
from .constant_folding import SIZES
from .construction import Builder, Known, Tokens, Value
from .model_ports import LENGTH, ROLES, TOKENS, ModelInput, roles_of, type_named
from .onnx_reading import (
    HEADS,
    OPSETS,
    Model,
    call_of,
    head_of,
    load,
    moved,
    needed_nodes,
    opset_of,
    sizes_of,
    translate,
)
from .operators import OPERATORS

RUN = 'run the model instead (road = "run")'
LENGTH_TRIED = 8
"""Tokens of the sentence that a model of any length is read for."""
RECURRENT = ("(LSTM)", "(GRU)", "(RNN)")
"""How the origins of their nodes end."""
ADVICE = {
    "attention": f"of attention one layer is read; here only evaluating every sentence decides: {RUN}",
    "smooth": f"of curves Exp, Tanh, Sigmoid, Erf, GELU and SiLU are read: {RUN}, or train with these or Relu",
    "norm": f"of norms LayerNormalization and BatchNormalization are read: {RUN}, or use these",
    "recurrent": f"of loops LSTM, GRU and RNN are read: {RUN}, or use these",
    "other": f"this operator cannot be read: {RUN}",
    "integers": f"quantised layers cannot be read: {RUN}, or export the float model",
}
KINDS = {
    **dict.fromkeys(("Elu", "Selu", "Celu", "Softplus", "HardSwish", "Mish", "Swish", "Log", "Sin", "Cos"), "smooth"),
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization", "LpNormalization"), "norm"),
    "SkipLayerNormalization": "norm",
    **dict.fromkeys(("Loop", "Scan"), "recurrent"),
}
"""Operators that are not read -> what helps."""


def refusals_of(
    path: Path, roles: Mapping[str, str] | None = None, output: str | None = None, length: int | None = None
) -> tuple[str, ...]:
    """A line for each kind of thing that bars reading; none where the file can be read, perhaps after an adaptation.

    What a refused node gives is taken as depending on the text, and everything behind it is looked at all the same.
    """
    from ..smooth.expanded_operators import expand_operators
    from ..smooth.plain_constants import with_plain_constants

    try:
        proto = load(path)
        proto = inlined(proto, path) if proto.functions else proto
        proto = converted(proto, path) if opset_of(proto) > OPSETS[-1] else proto
    except (BadInput, Unsupported) as error:
        return (str(error),)
    found: list[str] = []
    if opset_of(proto) < OPSETS[0]:
        found.append(f"opset {opset_of(proto)}: convert it to {OPSETS[0]} or later with onnx.version_converter")
    if proto.graph.sparse_initializer:
        found.append("sparse weights: store them dense")
    output = output or scored(proto)
    expand_operators(proto)
    with suppress(BadInput):  # constants that are not to be had are told below
        proto, _ = with_plain_constants(proto, path, output, roles)
    look = Look(path, proto, found, roles, length)
    look.inputs()
    look.nodes(output)
    return tuple(look.lines())


def divides(nodes: Sequence[Node]) -> bool:
    """Whether a network divides by what the words say, as attention does, and is not recurrent."""
    reciprocals = any(isinstance(node.layer, Curve) and node.layer.function == "reciprocal" for node in nodes)
    return reciprocals and not any(node.origin.endswith(RECURRENT) for node in nodes)


def scored(proto: Any) -> str:
    """The output that most likely holds the scores."""
    outputs = list(proto.graph.output)
    floats = [one for one in outputs if one.type.tensor_type.elem_type in TYPES]
    plain = [one for one in floats if len(shape_of(one) or ()) == 2]
    return str((plain or floats or outputs)[0].name)


class Look:
    """One file read to its end, whatever is refused on the way."""

    def __init__(
        self, path: Path, proto: Any, found: list[str], roles: Mapping[str, str] | None, length: int | None
    ) -> None:
        self.path, self.proto, self.found, self.roles = path, proto, found, roles
        self.values: dict[str, Value] = {}
        self.opaque: set[str] = set()
        self.refused: dict[tuple[str, str], list[str]] = {}
        """(operator, why) -> nodes."""
        self.attending: list[Any] = []
        """Nodes that are read, and proved about where no two of them follow each other."""
        self.read: list[ModelInput] = []
        self.guessed, self.length = length is None, length or LENGTH_TRIED

    def inputs(self) -> None:
        stored = {tensor.name for tensor in self.proto.graph.initializer}
        given = [one for one in self.proto.graph.input if one.name not in stored]
        names = [one.name for one in given]
        try:
            roles = roles_of(names, self.roles, self.path.name)
        except (BadInput, Unsupported) as error:
            self.found.append(str(error))
            roles = tuple(role if role in ROLES else "mask" for role in (self.roles or {}).values())
            roles = (TOKENS, *["mask"] * (len(names) - 1)) if len(roles) != len(names) else roles
        for one, role in zip(given, roles, strict=True):
            try:
                _, length = sizes_of(one, role, self.path.name)
            except (BadInput, Unsupported) as error:
                self.found.append(str(error))
                self.opaque.add(one.name)
                continue
            if length and role != LENGTH:
                self.guessed, self.length = False, length
            self.read.append(ModelInput(one.name, type_named(one.type.tensor_type.elem_type), role, length))
        for read in self.read:
            self.values[read.name] = self.value_of(read)

    def value_of(self, read: ModelInput) -> Value:
        places = np.arange(self.length, dtype=np.int64).reshape(1, -1)
        if read.role == TOKENS:
            return Tokens(places, read.type)
        filled = {"mask": np.ones_like(places), "types": np.zeros_like(places), "positions": places}
        return Known(filled.get(read.role, np.array([[self.length]])).astype(read.type))

    def nodes(self, output: str) -> None:
        # A text that does not move, and most likely ends in padding: masks of it are constants.
        choices = (*((1,),) * (self.length - 1), (0,) if self.length > 1 else (1,))
        model = Model(self.path, self.proto, opset_of(self.proto), tuple(self.read), output, None)
        builder = Builder(moved, len(self.proto.graph.node), choices)
        try:
            self.values |= {name: Known(array) for name, array in model.constants.items()}
        except BadInput as error:
            self.found.append(str(error))
            return
        builder.types.update(str(array.dtype) for array in model.constants.values() if is_floating(array))
        needed = needed_nodes(self.proto.graph, output)
        builder.head = head_of(needed, output, through=RESHAPED)
        for position, node in needed:
            if self.opaque.intersection(node.input):
                self.behind(node)
                continue
            builder.number, before = position, len(builder.nodes)
            try:
                call = call_of(model, node, position, self.values)
                results = translate(builder, call)
            except (BadInput, Unsupported) as error:
                tried = f" (read for {self.length} tokens; a length may be missing)" if self.guessed else ""
                self.refuse(node, f"{error}{tried}" if isinstance(error, BadInput) else str(error))
                continue
            self.values |= dict(zip(node.output, results, strict=False))
            if any(map(is_exponential, builder.nodes[before:])):
                self.attending.append(node)
        if attention_layers(builder.nodes) > 1 and divides(builder.nodes):
            for node in self.attending:
                self.tell(node, ADVICE["attention"])

    def behind(self, node: Any) -> None:
        """A node that reads what was refused: only its operator tells."""
        known = node.op_type in OPERATORS or node.op_type in SIZES or node.op_type in HEADS or node.op_type == "Shape"
        if not known or node.domain not in ("", "ai.onnx"):
            self.refuse(node, f"operator {node.op_type} is not supported")
        self.opaque.update(name for name in node.output if name)

    def refuse(self, node: Any, why: str) -> None:
        self.opaque.update(name for name in node.output if name)
        for before in (f"{self.path.name}: node {node.name} ({node.op_type}): ", f"{self.path.name}: "):
            why = why.removeprefix(before)
        quantised = "Quantize" in node.op_type or node.op_type.startswith("QLinear") or "Integer" in node.op_type
        kind = "integers" if quantised else KINDS.get(node.op_type)
        unknown = f"operator {node.op_type} is not supported" in why
        advice = ADVICE[kind] if kind else ADVICE["other"] if unknown else why
        self.tell(node, advice)

    def tell(self, node: Any, advice: str) -> None:
        nodes, name = self.refused.setdefault((node.op_type, advice), []), node.name or node.output[0]
        if name not in nodes:
            nodes.append(name)

    def lines(self) -> list[str]:
        """The kinds of refusals in the order in which they are met."""
        told = []
        for (operator, advice), nodes in self.refused.items():
            more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
            told.append(f"{operator} (node {nodes[0]}{more}): {advice}")
        return [*dict.fromkeys(self.found), *told]
