"""Operators that are written with others that are read: the same function, in more than one node.

A line of EXPANSIONS is all that another one needs. Whoever adapts a model compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..onnx_files.computed import is_floating


class Writer:
    """The nodes that take the place of one; `kind`: the floating type of the model."""

    def __init__(self, node: Any, kind: Any) -> None:
        self.node, self.kind = node, kind
        self.nodes: list[Any] = []
        self.numbers: list[Any] = []

    def number(self, value: float) -> str:
        import onnx.numpy_helper

        name = f"{self.node.output[0]}.number.{len(self.numbers)}"
        self.numbers.append(onnx.numpy_helper.from_array(self.kind(value), name))
        return name

    def call(self, operator: str, *inputs: str, **attributes: Any) -> str:
        import onnx.helper

        name = f"{self.node.output[0]}.step.{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def attribute(self, name: str, default: float) -> float:
        return next((float(one.f) for one in self.node.attribute if one.name == name), default)

    def below(self, x: str, scale: float) -> str:
        """exp(min(x, 0) / scale) - 1."""
        least = self.call("Neg", self.call("Relu", self.call("Neg", x)))
        return self.call("Sub", self.call("Exp", self.call("Div", least, self.number(scale))), self.number(1.0))


def elu(w: Writer, x: str) -> str:
    bent = w.call("Mul", w.below(x, 1.0), w.number(w.attribute("alpha", 1.0)))
    return w.call("Add", w.call("Relu", x), bent)


def celu(w: Writer, x: str) -> str:
    alpha = w.attribute("alpha", 1.0)
    return w.call("Add", w.call("Relu", x), w.call("Mul", w.below(x, alpha), w.number(alpha)))


def selu(w: Writer, x: str) -> str:
    bent = w.call("Mul", w.below(x, 1.0), w.number(w.attribute("alpha", 1.67326319217681884765625)))
    gamma = w.number(w.attribute("gamma", 1.05070102214813232421875))
    return w.call("Mul", w.call("Add", w.call("Relu", x), bent), gamma)


def hard_swish(w: Writer, x: str) -> str:
    return w.call("Mul", x, w.call("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def softsign(w: Writer, x: str) -> str:
    return w.call("Div", x, w.call("Add", w.call("Abs", x), w.number(1.0)))


def mean(w: Writer, *terms: str) -> str:
    return w.call("Div", w.call("Sum", *terms), w.number(len(terms)))


def reduce_min(w: Writer, x: str, *axes: str) -> str:
    greatest = w.call("ReduceMax", w.call("Neg", x), *axes)
    w.nodes[-1].attribute.extend(w.node.attribute)
    return w.call("Neg", greatest)


def of_bits(w: Writer, operator: str, *bits: str) -> str:
    """An operator of INT64 on BOOLs, for which runtimes have it, and not Where."""
    numbers = [w.call("Cast", bit, to=7) for bit in bits]
    return w.call("Cast", w.call(operator, *numbers), to=9)


def both(w: Writer, x: str, y: str) -> str:
    return of_bits(w, "Mul", x, y)


def either(w: Writer, x: str, y: str) -> str:
    return of_bits(w, "Max", x, y)


EXPANSIONS: dict[str, Callable[..., str]] = {
    "And": both,
    "Celu": celu,
    "Elu": elu,
    "HardSwish": hard_swish,
    "Mean": mean,
    "Or": either,
    "ReduceMin": reduce_min,
    "Selu": selu,
    "Softsign": softsign,
}


def expand_operators(proto: Any) -> list[str]:
    """Those of the table, in place; one note for each that was met."""
    met = dict.fromkeys(node.op_type for node in proto.graph.node if is_expanded(node))
    kinds = floating_types(proto) if met else []
    if len(kinds) != 1:
        return []  # reading it says what is not read
    nodes: list[Any] = []
    for node in proto.graph.node:
        if not is_expanded(node):
            nodes.append(copied(node))
            continue
        writer = Writer(node, kinds[0])
        EXPANSIONS[node.op_type](writer, *node.input)
        writer.nodes[-1].output[0] = node.output[0]
        nodes += writer.nodes
        proto.graph.initializer.extend(writer.numbers)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return [f"{name} is written with operators that are read" for name in met]


def is_expanded(node: Any) -> bool:
    return node.op_type in EXPANSIONS and node.domain in ("", "ai.onnx")


def floating_types(proto: Any) -> Sequence[Any]:
    """Of the stored numbers."""
    import onnx.helper

    kinds = {onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).type for tensor in proto.graph.initializer}
    return [kind for kind in kinds if is_floating(kind(0)[None])]


def copied(node: Any) -> Any:
    return type(node).FromString(node.SerializeToString())
