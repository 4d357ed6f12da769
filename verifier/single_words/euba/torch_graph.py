"""An ONNX graph computed by torch, operator by operator, so that torch can differentiate it.

Only what encoders of sentences are made of; a graph with another operator is refused. Nothing rests on these numbers
but in which order EUBA tries words: what flips a text is asked of the deployed model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swapproof.encodings.errors import Unsupported

if TYPE_CHECKING:
    import torch

OLDEST = 13
"""The first opset that gives axes and splits as inputs and lets Softmax work along one axis."""


@dataclass(frozen=True)
class Step:
    """A node with its attributes read and its inputs computed; an input that is left out is None."""

    attributes: Mapping[str, Any]
    inputs: Sequence[torch.Tensor | None]

    def __getitem__(self, place: int) -> torch.Tensor:
        found = self.inputs[place]
        if found is None:
            raise Unsupported(f"torch does not compute for us what leaves out input {place}")
        return found

    def integers(self, place: int, attribute: str = "") -> list[int] | None:
        """An input of whole numbers, or the attribute that older opsets had in its place."""
        if place < len(self.inputs) and self.inputs[place] is not None:
            return [int(one) for one in self[place].flatten().tolist()]
        found = self.attributes.get(attribute)
        return None if found is None else list(found)

    def axis(self, default: int) -> int:
        return int(self.attributes.get("axis", default))


Rule = Callable[[Step], Any]


def one(function: Callable[[Any], torch.Tensor]) -> Rule:
    return lambda step: function(step[0])


def two(function: Callable[[Any, Any], torch.Tensor]) -> Rule:
    return lambda step: function(step[0], step[1])


def folded(function: Callable[[Any, Any], torch.Tensor]) -> Rule:
    """Of any number of inputs, one after the other."""

    def rule(step: Step) -> torch.Tensor:
        found = step[0]
        for place in range(1, len(step.inputs)):
            found = function(found, step[place])
        return found

    return rule


def reduced(function: Callable[..., torch.Tensor]) -> Rule:
    def rule(step: Step) -> torch.Tensor:
        axes = step.integers(1, "axes")
        if not axes:
            if step.attributes.get("noop_with_empty_axes"):
                return step[0]
            axes = list(range(step[0].ndim))
        return function(step[0], dim=axes, keepdim=bool(step.attributes.get("keepdims", 1)))

    return rule


def divided(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a / b if a.is_floating_point() else a.div(b, rounding_mode="trunc")


def cast(step: Step) -> torch.Tensor:
    import torch
    from onnx import helper

    return step[0].to(getattr(torch, np.dtype(helper.tensor_dtype_to_np_dtype(step.attributes["to"])).name))


def clip(step: Step) -> torch.Tensor:
    low, high = (*step.inputs[1:], None, None)[:2]
    return step[0].clamp(low, high)


def constant(step: Step) -> torch.Tensor:
    import torch
    from onnx import numpy_helper

    return torch.from_numpy(np.array(numpy_helper.to_array(step.attributes["value"])))


def constant_of_shape(step: Step) -> torch.Tensor:
    import torch

    value = constant(step) if "value" in step.attributes else torch.zeros(1)
    return value.expand(step.integers(0) or [])


def expanded(step: Step) -> torch.Tensor:
    sizes = np.broadcast_shapes(tuple(step[0].shape), tuple(step.integers(1) or []))
    return step[0].expand(sizes)


def gathered(step: Step) -> torch.Tensor:
    return step[0][(slice(None),) * (step.axis(0) % step[0].ndim) + (step[1],)]


def gelu(step: Step) -> torch.Tensor:
    from torch.nn import functional

    return functional.gelu(step[0], approximate=step.attributes.get("approximate", b"none").decode())


def gemm(step: Step) -> torch.Tensor:
    a, b = step[0], step[1]
    a, b = a.T if step.attributes.get("transA") else a, b.T if step.attributes.get("transB") else b
    product = step.attributes.get("alpha", 1.0) * (a @ b)
    found: torch.Tensor = product + step.attributes.get("beta", 1.0) * step[2] if len(step.inputs) > 2 else product
    return found


def joined(step: Step) -> torch.Tensor:
    import torch

    return torch.cat([step[place] for place in range(len(step.inputs))], dim=step.axis(0))


def normalised(step: Step) -> torch.Tensor:
    from torch.nn import functional

    size, shift = step[0].shape[step.axis(-1) :], step[2] if len(step.inputs) > 2 else None
    return functional.layer_norm(step[0], tuple(size), step[1], shift, step.attributes.get("epsilon", 1e-5))


def ranged(step: Step) -> torch.Tensor:
    import torch

    return torch.arange(step[0].item(), step[1].item(), step[2].item(), dtype=step[0].dtype)


def reshaped(step: Step) -> torch.Tensor:
    sizes = step.integers(1) or []
    if not step.attributes.get("allowzero"):
        sizes = [step[0].shape[place] if size == 0 else size for place, size in enumerate(sizes)]
    return step[0].reshape(sizes)


def shape(step: Step) -> torch.Tensor:
    import torch

    sizes = list(step[0].shape)[step.attributes.get("start", 0) : step.attributes.get("end")]
    return torch.tensor(sizes, dtype=torch.int64)


def sliced(step: Step) -> torch.Tensor:
    starts, ends = step.integers(1) or [], step.integers(2) or []
    axes, steps = step.integers(3) or list(range(len(starts))), step.integers(4) or [1] * len(starts)
    where = [slice(None)] * step[0].ndim
    for axis, start, end, by in zip(axes, starts, ends, steps, strict=True):
        where[axis] = slice(*slice(start, end, by).indices(step[0].shape[axis]))
    return step[0][tuple(where)]


def squeezed(step: Step) -> torch.Tensor:
    axes = step.integers(1)
    return step[0].squeeze() if axes is None else step[0].squeeze(tuple(axes))


def transposed(step: Step) -> torch.Tensor:
    return step[0].permute(*step.attributes.get("perm", range(step[0].ndim)[::-1]))


def unsqueezed(step: Step) -> torch.Tensor:
    found, axes = step[0], step.integers(1) or []
    for axis in sorted(axis % (step[0].ndim + len(axes)) for axis in axes):
        found = found.unsqueeze(axis)
    return found


RULES: dict[str, Rule] = {
    **{"Add": two(lambda a, b: a + b), "Sub": two(lambda a, b: a - b), "Mul": two(lambda a, b: a * b)},
    **{"Div": two(divided), "MatMul": two(lambda a, b: a @ b), "Pow": two(lambda a, b: a**b)},
    **{"Mod": lambda step: step[0].fmod(step[1]) if step.attributes.get("fmod") else step[0].remainder(step[1])},
    **{"Equal": two(lambda a, b: a == b), "Greater": two(lambda a, b: a > b), "Less": two(lambda a, b: a < b)},
    **{"GreaterOrEqual": two(lambda a, b: a >= b), "LessOrEqual": two(lambda a, b: a <= b)},
    **{"And": two(lambda a, b: a & b), "Or": two(lambda a, b: a | b), "Not": one(lambda a: ~a)},
    **{"Max": folded(lambda a, b: a.maximum(b)), "Min": folded(lambda a, b: a.minimum(b))},
    **{"Neg": one(lambda a: -a), "Abs": one(lambda a: a.abs()), "Reciprocal": one(lambda a: a.reciprocal())},
    **{"Exp": one(lambda a: a.exp()), "Log": one(lambda a: a.log()), "Sqrt": one(lambda a: a.sqrt())},
    **{"Erf": one(lambda a: a.erf()), "Tanh": one(lambda a: a.tanh()), "Sigmoid": one(lambda a: a.sigmoid())},
    **{"Relu": one(lambda a: a.relu()), "Gelu": gelu, "Clip": clip, "IsNaN": one(lambda a: a.isnan())},
    **{"Softmax": lambda step: step[0].softmax(step.axis(-1)), "LayerNormalization": normalised, "Gemm": gemm},
    **{"ReduceSum": reduced(lambda a, **how: a.sum(**how)), "ReduceMean": reduced(lambda a, **how: a.mean(**how))},
    **{"ReduceMax": reduced(lambda a, **how: a.amax(**how)), "ReduceMin": reduced(lambda a, **how: a.amin(**how))},
    **{"Where": lambda step: step[1].where(step[0], step[2]), "Cast": cast, "Expand": expanded, "Range": ranged},
    **{"Constant": constant, "ConstantOfShape": constant_of_shape, "Shape": shape, "Gather": gathered},
    **{"Concat": joined, "Reshape": reshaped, "Slice": sliced, "Squeeze": squeezed, "Unsqueeze": unsqueezed},
    **{"Transpose": transposed, "Identity": one(lambda a: a), "Dropout": one(lambda a: a)},
}


@dataclass(frozen=True, eq=False)
class TorchGraph:
    """`constants` by name; `nodes` in order, with their attributes."""

    constants: Mapping[str, torch.Tensor]
    nodes: Sequence[tuple[Any, Mapping[str, Any]]]
    output: str

    @classmethod
    def of(cls, proto: Any) -> TorchGraph:
        """Refuses what has no rule."""
        import torch
        from onnx import helper, numpy_helper

        opset = next((one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")), 0)
        strange = sorted({node.op_type for node in proto.graph.node if node.op_type not in RULES or node.domain})
        if opset < OLDEST or strange:
            raise Unsupported(f"torch does not compute {', '.join(strange) or f'opset {opset}'} for us")
        constants = {
            tensor.name: torch.from_numpy(np.array(numpy_helper.to_array(tensor))) for tensor in proto.graph.initializer
        }
        nodes = [
            (node, {one.name: helper.get_attribute_value(one) for one in node.attribute}) for node in proto.graph.node
        ]
        return cls(constants, nodes, proto.graph.output[0].name)

    def __call__(self, given: Mapping[str, torch.Tensor]) -> torch.Tensor:
        values: dict[str, Any] = {**self.constants, **given, "": None}
        for node, attributes in self.nodes:
            values[node.output[0]] = RULES[node.op_type](Step(attributes, [values[name] for name in node.input]))
        found: torch.Tensor = values[self.output]
        return found
