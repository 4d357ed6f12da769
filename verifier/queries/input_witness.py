"""Witnesses: inputs in the model's own float type, strictly inside the exact box, replayed by onnxruntime."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.encodings.network import Floats
from swapproof.encodings.onnx_files.numeric_input import NumericModel
from swapproof.encodings.vnnlib.linear_property import Case, Property

from ..ladder.replay import session_of
from .question import Question

Array = NDArray[Any]


@dataclass(frozen=True)
class InputWitness:
    """Input and output elements, exact values of the floats that the model read and answered."""

    inputs: tuple[float, ...]
    outputs: tuple[float, ...]

    def text(self, question: Property) -> str:
        """((X_0 1.5) ... (Y_0 2)) for version 1.0; name, type, sizes and then a value a line for 2.0."""
        pairs = ((question.inputs, self.inputs), (question.outputs, self.outputs))
        if question.version == 1:
            parts = [f"({t.element(i)} {decimal(v)})" for t, values in pairs for i, v in enumerate(values)]
            return "(" + "\n ".join(parts) + ")"
        lines = []
        for tensor, values in pairs:
            lines.append(f"{tensor.name} {tensor.kind} [{','.join(map(str, tensor.shape))}]")
            lines += [decimal(value) for value in values]
        return "\n".join(lines)


def decimal(value: float) -> str:
    """The float exactly, without an exponent: every float has finitely many digits."""
    return format(Decimal(value), "f")


@dataclass
class Deployed:
    """The model in onnxruntime; `evaluations` counts the points it was asked."""

    model: NumericModel
    session: Any
    evaluations: int = field(default=0, init=False)

    @classmethod
    def open(cls, model: NumericModel) -> Deployed:
        return cls(model, session_of(model.path))

    def output(self, x: Array) -> Array:
        """The flat output for one flat input in the model's own type."""
        self.evaluations += 1
        try:
            (result,) = self.session.run([self.model.output], {self.model.input: x.reshape(self.model.shape)})
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            raise BadInput(f"{self.model.path}: onnxruntime fails on one input ({reason})") from None
        return np.asarray(result).reshape(-1)

    def witness(self, case: Case, point: Floats) -> InputWitness | None:
        """The witness near this point, when there is one."""
        for x in self.near(case, point):
            y = self.output(x)
            if not np.isfinite(y).all():
                continue
            inputs = {i: Fraction(float(value)) for i, value in enumerate(x)}
            outputs = {i: Fraction(float(value)) for i, value in enumerate(y)}
            if all(atom.holds(inputs, outputs) for atom in case.atoms):
                return InputWitness(tuple(map(float, x)), tuple(map(float, y)))
        return None

    def near(self, case: Case, point: Floats) -> Iterator[Array]:
        """The nearest input inside the box, and the nearest one of whole numbers."""
        kind = np.dtype(self.model.kind)
        for rounded in (point, np.round(point)):
            x = rounded.astype(kind)
            if all(inside(case, x)):
                yield x
                continue
            moved = [within(low, high, value) for low, high, value in zip(case.low, case.high, x, strict=True)]
            if all(value is not None for value in moved):
                yield np.array(moved, dtype=kind)


def without_floats(question: Question, kind: str) -> int | None:
    """The first input between whose bounds no number of the model's type lies."""
    low, high, case = question.low, question.high, question.case
    widest = 2 * np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(kind)).astype(np.float64)
    number = np.dtype(kind).type
    narrow = np.flatnonzero(high - low <= widest).tolist()
    return next((i for i in narrow if within(case.low[i], case.high[i], number(low[i])) is None), None)


def inside(case: Case, x: Array) -> Iterator[bool]:
    return (low <= Fraction(float(v)) <= high for low, high, v in zip(case.low, case.high, x, strict=True))


def within(low: Fraction, high: Fraction, value: Any) -> Any:
    """The float of the same type nearest to this one in low .. high; None when there is none."""
    kind = type(value)
    if math.isnan(value):
        return None
    with np.errstate(over="ignore"):
        for end, direction in ((low, np.inf), (high, -np.inf)):
            if (direction > 0 and Fraction(float(value)) < low) or (direction < 0 and Fraction(float(value)) > high):
                value = kind(float(end))
                exact = Fraction(float(value))
                if (direction > 0 and exact < low) or (direction < 0 and exact > high):
                    value = np.nextafter(value, kind(direction))
    return value if low <= Fraction(float(value)) <= high else None
