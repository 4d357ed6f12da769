"""Operators of auto_LiRPA 0.3 whose bounds are wrong, written anew, and those that it does not have.

| operator | what is wrong |
|---|---|
| Gather | an element that is read twice keeps the coefficient of one of its readers only |
| Sqrt | the upper line has slope -x^(-3/2) / 2: it is not above the root |
| Reciprocal | backward, its lines are taken over intervals that hold 0; forward, it works in float32 |
| Tanh, Sigmoid | beyond 500 the line over [l, 500] is continued, and leaves the curve |
| Erf | there is none |
| Softmax | intervals: the denominator has an addend that makes the upper end too small |

tests/engines/test_lirpa.py keeps a reproduction of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import pi, sqrt
from typing import Any

from ..errors import Unsupported
from .lirpa_loading import lirpa

NEVER = {"BoundSoftmax": "its softmax is not sound: write it with exp, a sum and a reciprocal"}
"""Classes of operators that no bound is taken from."""
FARTHEST = 500.0
"""Where its tables of tangents to tanh and sigmoid end."""


@lru_cache(maxsize=1)
def operators() -> Mapping[str, Any]:
    """ONNX operator -> the class that bounds it."""
    lirpa()
    import torch
    from auto_LiRPA.operators import (
        BoundActivation,
        BoundGather,
        BoundReciprocal,
        BoundSigmoid,
        BoundSqrt,
        BoundTanh,
    )

    class Gather(BoundGather):  # type: ignore[misc]
        """out = in[:, index]; coefficients of what is read twice are added up."""

        def bound_backward(self, lower: Any, upper: Any, x: Any, index: Any, **others: Any) -> Any:
            def back(coefficients: Any) -> Any:
                if coefficients is None:
                    return None
                shape = (*coefficients.shape[:2], self.input_shape[1])
                return coefficients.new_zeros(shape).index_add(2, self.indices, coefficients)

            return [(back(lower), back(upper)), (None, None)], 0, 0

    class Reciprocal(BoundReciprocal):  # type: ignore[misc]
        """1 / in for in > 0: above its tangents, below its chords."""

        def interval_propagate(self, *given: Any) -> Any:
            low, high = given[0][0], given[0][1]
            refuse_below_zero("reciprocal", low)
            return torch.reciprocal(high), torch.reciprocal(low)

        def bound_relax(self, x: Any, **others: Any) -> None:
            refuse_below_zero("reciprocal", x.lower)
            middle = torch.sqrt(x.lower * x.upper)
            self.add_linear_relaxation(mask=None, type="lower", k=-1 / middle**2, x0=middle, y0=1 / middle)
            self.add_linear_relaxation(mask=None, type="upper", k=-1 / (x.lower * x.upper), x0=x.lower, y0=1 / x.lower)

    class Sqrt(BoundActivation):  # type: ignore[misc]
        """sqrt(in) for in > 0: below its tangents, above its chords."""

        forward = BoundSqrt.forward

        def bound_relax(self, x: Any, **others: Any) -> None:
            refuse_below_zero("square root", x.lower)
            low, middle, high = torch.sqrt(x.lower), torch.sqrt((x.lower + x.upper) / 2), torch.sqrt(x.upper)
            self.add_linear_relaxation(mask=None, type="lower", k=1 / (low + high), x0=x.lower, y0=low)
            self.add_linear_relaxation(mask=None, type="upper", k=1 / (2 * middle), x0=middle**2, y0=middle)

    class Tabled:
        """An S-shaped curve; its tables of tangents are made once for all places where it stands."""

        tables: dict[str, Any] = {}  # noqa: RUF012 (one for all)

        def precompute_relaxation(self: Any, name: str, *given: Any, **others: Any) -> None:
            if name in Tabled.tables:
                self.__dict__.update(Tabled.tables[name])
                return
            super().precompute_relaxation(name, *given, **others)  # type: ignore[misc]
            made = ("x_limit", "step_pre", "num_points_pre", "d_lower", "d_upper")
            Tabled.tables[name] = {part: getattr(self, part) for part in made}

        def bound_relax_impl(self: Any, x: Any, function: Any, slope: Any) -> None:
            """As it is, but f(low) <= f <= f(high) where the input may go beyond the tables."""
            super().bound_relax_impl(x, function, slope)  # type: ignore[misc]
            far = (x.upper > FARTHEST) | (x.lower < -FARTHEST)
            for lines, levels, end in ((self.lw, self.lb, x.lower), (self.uw, self.ub, x.upper)):
                lines[..., far] = 0.0
                levels[..., far] = function(end)[far]

    class Tanh(Tabled, BoundTanh):  # type: ignore[misc]
        pass

    class Sigmoid(Tabled, BoundSigmoid):  # type: ignore[misc]
        pass

    class Erf(Tabled, BoundTanh):  # type: ignore[misc]
        """Bounded as tanh is: it is odd too, and bends once, at 0."""

        def __init__(self, attributes: Any, inputs: Any, output: Any, options: Any) -> None:
            super(BoundTanh, self).__init__(attributes, inputs, output, options)
            self.precompute_relaxation("erf", torch.erf, self.slope)
            self.alpha_batch_dim = 3

        def slope(self, x: Any) -> Any:
            return 2 / sqrt(pi) * torch.exp(-x * x)

        def forward(self, x: Any) -> Any:
            return torch.erf(x)

        def bound_relax(self, x: Any, **others: Any) -> None:
            self.bound_relax_impl(x, torch.erf, self.slope)

    made = (Gather, Reciprocal, Sqrt, Tanh, Sigmoid, Erf)
    return {f"onnx::{operator.__name__}": operator for operator in made}


def refuse_below_zero(function: str, low: Any) -> None:
    least = float(low.min())
    if not least > 0:
        raise Unsupported(f"a {function} whose input auto_LiRPA bounds by {least:.3g} from below: it must be positive")


def refuse_unsound(module: Any) -> None:
    """Operators from which no bound is taken."""
    for node in module.modules():
        why = NEVER.get(type(node).__name__)
        if why is not None:
            raise Unsupported(f"{type(node).__name__} of auto_LiRPA: {why}")


def refuse_infinite(module: Any) -> None:
    """It drops what becomes NaN, as infinity times 0 does, and goes on."""
    import torch

    for node in module.modules():
        for end in ("lower", "upper"):
            known = getattr(node, end, None)
            if isinstance(known, torch.Tensor) and not bool(torch.isfinite(known).all()):
                raise Unsupported(f"auto_LiRPA has no finite bounds at {type(node).__name__}")
