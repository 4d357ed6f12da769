"""How tests put ONNX graphs together: nodes and initializers one after the other, and the model that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str | None] | None
Value = tuple[str, int, Shape]
"""An input or output: its name, element type and shape."""


def tokens(*shape: int | str | None, name: str = "tokens") -> Value:
    return name, TensorProto.INT64, shape


def floats(name: str, *shape: int | str | None) -> Value:
    return name, TensorProto.FLOAT, shape


def model_of(
    nodes: Sequence[Any],
    initializers: Mapping[str, ArrayLike] | Sequence[Any],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    *,
    name: str = "made",
    opset: int = 17,
    ir_version: int = 8,
) -> Any:
    """A ModelProto; initializers are tensors, or arrays by name."""
    if isinstance(initializers, Mapping):
        initializers = [numpy_helper.from_array(np.asarray(array), key) for key, array in initializers.items()]
    read, made = ([helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs))
    graph = helper.make_graph(nodes, name, read, made, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


@dataclass(kw_only=True)
class Builder:
    """Nodes and initializers so far. What is added gets a name of its own, which is given back."""

    nodes: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)

    def constant(self, value: ArrayLike) -> str:
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def wholes(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, dtype=np.int64))

    def node(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Whose outputs have these names."""
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))

    def parts(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """All outputs of an operator."""
        name = f"v{len(self.nodes)}"
        names = [name] if count == 1 else [f"{name}.{k}" for k in range(count)]
        self.node(operator, inputs, names, **attributes)
        return names

    def call(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """The first output of an operator."""
        return self.parts(operator, outputs, *inputs, **attributes)[0]

    def proto(self, inputs: Sequence[Value], outputs: Sequence[Value], **options: Any) -> Any:
        """The model, as `model_of` makes it."""
        return model_of(self.nodes, self.initializers, inputs, outputs, **options)
