"""What is measured: functions of one number, their references in float64, and sessions of a graph of one operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.rounding.kernel_errors import KERNEL_ERRORS, KernelError
from swapproof.encodings.smooth.curves import error_function, logistic

Doubles = NDArray[np.float64]
Singles = NDArray[np.float32]

OPSET = 18
ERF_IS_ONE = 6.0
"""1 - erf(6) < 2^-55."""
TANH_IS_ONE = 20.0
"""1 - tanh(20) < 2^-56."""
STRAIGHT = 2.0**-27
"""Below it tanh(x) is x, and erf(x) is erf'(0) x, but for one part in 2^55.
Most floats are there, or where both are 1."""


def erf(x: Doubles) -> Doubles:
    size = np.abs(x)
    if size.max() < STRAIGHT:
        return np.asarray(2.0 / math.sqrt(math.pi) * x)
    return np.copysign(1.0, x) if size.min() > ERF_IS_ONE else error_function(x)


def tanh(x: Doubles) -> Doubles:
    size = np.abs(x)
    if size.max() < STRAIGHT:
        return x
    return np.copysign(1.0, x) if size.min() > TANH_IS_ONE else np.tanh(x)


@dataclass(frozen=True)
class Function:
    """An operator of one input; its values lie between `least` and `most`, and it only rises, or only falls."""

    name: str
    operator: str
    reference: Callable[[Doubles], Doubles]
    least: float
    most: float
    rises: bool = True

    @property
    def stated(self) -> KernelError:
        return KERNEL_ERRORS[self.name]


FUNCTIONS: tuple[Function, ...] = (
    Function("tanh", "Tanh", tanh, -1.0, 1.0),
    Function("sigmoid", "Sigmoid", logistic, 0.0, 1.0),
    Function("erf", "Erf", erf, -1.0, 1.0),
    Function("exp", "Exp", np.exp, 0.0, math.inf),
    Function("sqrt", "Sqrt", np.sqrt, 0.0, math.inf),
    Function("reciprocal", "Reciprocal", np.reciprocal, -math.inf, math.inf, rises=False),
)


def function_named(name: str) -> Function:
    (function,) = (function for function in FUNCTIONS if function.name == name)
    return function


def session_of_operator(operator: str, inputs: int = 1, rank: int = 1, **attributes: Any) -> Any:
    """The operator alone, on float32 arrays of any shape, in one thread."""
    from onnx import TensorProto, helper

    names = [f"x{number}" for number in range(inputs)]
    shape = [f"n{axis}" for axis in range(rank)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **attributes)],
        operator,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    return session_of_graph(graph)


def session_of_graph(graph: Any) -> Any:
    import onnxruntime
    from onnx import helper

    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: Any, feeds: Mapping[str, Singles], output: int = 0) -> Singles:
    return np.asarray(session.run(None, dict(feeds))[output])
