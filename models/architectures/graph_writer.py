"""ONNX nodes and constants in the order in which they are written, and what several architectures write alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .network_shape import PAD, Arrays

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class GraphWriter:
    """A graph in the making: `node` and `constant` add to it and return the name of what they added."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    def node(self, operator: str, reads: list[str], gives: str, name: str = "", **attributes: Any) -> str:
        """One node with one output, or with several whose names are separated by blanks (`-` for none)."""
        from onnx import helper

        outputs = ["" if output == "-" else output for output in gives.split()]
        self.nodes.append(helper.make_node(operator, reads, outputs, name=name or outputs[-1], **attributes))
        return outputs[-1]

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants[name] = np.ascontiguousarray(value)
        return name

    def floats(self, name: str, value: NDArray[Any] | float) -> str:
        return self.constant(name, np.asarray(value, dtype=np.float32))

    def integers(self, name: str, *values: int) -> str:
        return self.constant(name, np.array(values, dtype=np.int64))

    def copy(self, weights: Arrays, *names: str) -> list[str]:
        """Trained weights as they are, under their own names."""
        return [self.floats(name, weights[name]) for name in names]


def write_mask(graph: GraphWriter) -> tuple[str, str]:
    """Of `tokens`: `real` (bool [batch, length], no padding) and `words` (int32 [batch], how many, at least 1)."""
    graph.node("Equal", ["tokens", graph.constant("pad", np.array(PAD, dtype=np.int64))], "padding")
    graph.node("Not", ["padding"], "real")
    graph.node("Cast", ["real"], "real_integers", to=6)  # TensorProto.INT32, which sequence_lens must be
    graph.node("ReduceSum", ["real_integers", graph.integers("over_time", 1)], "counted", keepdims=0)
    graph.node("Max", ["counted", graph.constant("one_word", np.array([1], dtype=np.int32))], "words")
    return "real", "words"


def write_mean(graph: GraphWriter, values: str, real: str, words: str, gives: str) -> str:
    """The mean of `values` [batch, length, n] over the words, padding left out: sum of real * values, over words."""
    graph.node("Cast", [real], "real_floats", to=1)
    graph.node("Unsqueeze", ["real_floats", graph.integers("last_axis", -1)], "real_column")
    graph.node("Mul", [values, "real_column"], "masked")
    graph.node("ReduceSum", ["masked", "over_time"], "summed", keepdims=0)
    graph.node("Cast", [words], "words_float", to=1)
    graph.node("Unsqueeze", ["words_float", "last_axis"], "words_column")
    return graph.node("Div", ["summed", "words_column"], gives)
