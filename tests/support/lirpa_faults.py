"""Run as a script: what auto_LiRPA alone says where it is wrong, what we make of it, and the truth, as JSON.

A process of its own, because loading auto_LiRPA changes torch's float type.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from swapproof.encodings.errors import Unsupported
from swapproof.encodings.solvers.ask_lirpa import OPTIONS, checked
from swapproof.encodings.solvers.lirpa_loading import lirpa

Bounds = tuple[float, float]


def bounds(module: Any, low: list[float], high: list[float], method: str) -> Bounds:
    """Of the sum of the outputs of a bounded module, over a box."""
    import torch
    from auto_LiRPA.perturbations import PerturbationLpNorm

    ends = [torch.tensor([end]) for end in (low, high)]
    box = PerturbationLpNorm(norm=np.inf, x_L=ends[0], x_U=ends[1])
    least, most = module.compute_bounds(x=(lirpa().BoundedTensor((ends[0] + ends[1]) / 2, box),), method=method)
    return float(least.reshape(-1)[0]), float(most.reshape(-1)[0])


def told(function: Callable[[Any], Any], low: list[float], high: list[float], method: str) -> dict[str, Any]:
    """By the library as it is, by ours, and by 10,000 points of the box."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.nothing = torch.nn.Parameter(torch.zeros(1))

        def forward(self, x: Any) -> Any:
            return function(x) + self.nothing

    given = (torch.tensor([low]) + torch.tensor([high])) / 2
    plain = lirpa().BoundedModule(Module().eval(), given, bound_opts={**OPTIONS, "softmax": "interval"}, device="cpu")
    points = torch.tensor(low) + torch.rand(10_000, len(low)) * (torch.tensor(high) - torch.tensor(low))
    points[0], points[1] = torch.tensor(low), torch.tensor(high)
    true = function(points)[:, 0]
    found: dict[str, Any] = {"true": [float(true.min()), float(true.max())]}
    try:
        found["library"] = bounds(plain, low, high, method)
    except Exception as error:
        found["library"] = f"{type(error).__name__}"
    try:
        found["ours"] = bounds(checked(Module().eval(), given), low, high, method)
    except Unsupported as error:
        found["ours"] = str(error)
    return found


def main() -> None:
    lirpa()
    import torch

    torch.manual_seed(0)
    twice = torch.tensor([0, 0])
    faults = {
        "gather": told(lambda x: x.index_select(1, twice).sum(1, keepdim=True), [-1.0], [1.0], "CROWN"),
        "sqrt": told(torch.sqrt, [0.25], [9.0], "CROWN"),
        "reciprocal": told(torch.reciprocal, [-1.0], [4.0], "CROWN"),
        "tanh": told(lambda x: torch.tanh(x) - x / 1000, [0.0], [2000.0], "CROWN"),
        # The score box of [-40, 0] x [-35, -34]: the first share comes near 1 at (0, -35).
        "softmax": told(lambda x: torch.softmax(x, 1)[:, 1:], [-40.0, -35.0], [0.0, -34.0], "IBP"),
    }
    json.dump(faults, sys.stdout)


if __name__ == "__main__":
    main()
