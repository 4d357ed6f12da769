"""Margins bounded by auto_LiRPA: intervals (IBP), CROWN, or CROWN whose slopes are optimised (alpha-CROWN).

It works in float64 without outward rounding: what it says is a claim, and nothing else.
"""

from __future__ import annotations

import time
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from ..errors import Unsupported
from ..network import end_to_end
from .lirpa_loading import lirpa
from .lirpa_mending import operators, refuse_infinite, refuse_unsound
from .margin_problem import MarginProblem
from .solver_answer import Clock, Found, Limits
from .swap_perturbation import perturbation
from .torch_rules import Words, logits_of

OPTIONS: dict[str, Any] = {
    "conv_mode": "matrix",
    # These look for neurons that need no bound; 0.3 fails on sequences then.
    "sparse_intermediate_bounds": False,
    "sparse_conv_intermediate_bounds": False,
    "sparse_intermediate_bounds_with_ibp": False,
    "sparse_features_alpha": False,
    "sparse_spec_alpha": False,
    # Known from 0.7 on. No network of ours holds a softmax as such, and intervals of one are never taken.
    "softmax": "lse",
}
CLEAR = 1e-6
"""A margin must exceed this part of the largest logit of the text to count: rounding is not bounded, and ties exist."""


def ask_lirpa(problem: MarginProblem, limits: Limits, clock: Clock, *, method: str) -> Found:
    """Solution: the least margin for one k after the other; bound: the last one that is positive."""
    lirpa()
    told = f"auto_LiRPA {version('auto-LiRPA')}, {method}"
    try:
        found: list[float] = clock.run(partial(least_margins, problem, limits, method))
    except Unsupported as error:
        return Found("error", detail=f"{told}: {error}")
    except Exception as error:  # whatever a library may raise: it says nothing then
        return Found("error", detail=f"{told}: {type(error).__name__}: {first_line(error)}")
    above = [margin for margin in found if margin > 0]
    return Found("optimal", bound=above[-1] if above else None, solution=np.array(found), detail=told)


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def least_margins(problem: MarginProblem, limits: Limits, method: str) -> list[float]:
    """For k = first, ...: a lower bound of all margins less what must be clear, until one is not positive.

    No k is begun for which there is not the time that the last one took, half as much again.
    """
    module = bounded(problem)
    logits = module(words_of(problem))[0].detach().numpy()
    clear = CLEAR * max(1.0, float(np.abs(logits).max()))
    found, began, took = list[float](), time.monotonic(), 0.0
    for k in range(problem.first, problem.last + 1):
        started = time.monotonic()
        if found and started - began + 1.5 * took > limits.seconds:
            break
        found.append(float(margins(module, problem, k, method).min()) - clear)
        took = time.monotonic() - started
        if not found[-1] > 0:
            break
    return found


def words_of(problem: MarginProblem) -> Any:
    import torch

    return torch.as_tensor(problem.words[None])


def margins(module: Any, problem: MarginProblem, k: int, method: str) -> Any:
    """[rivals] lower bounds of logit[label] - logit[rival] over all sentences of at most k swaps."""
    import torch

    given = lirpa().BoundedTensor(words_of(problem), perturbation(problem, k))
    wanted = torch.zeros(1, len(problem.rivals), problem.network.classes)
    wanted[0, :, problem.label] = 1
    for row, rival in enumerate(problem.rivals):
        wanted[0, row, rival] = -1
    # Where there is no slope to choose it fails to optimise.
    chosen = method if module.optimizable_activations or method != "CROWN-Optimized" else "CROWN"
    low, _ = module.compute_bounds(x=(given,), C=wanted, method=chosen, bound_upper=False)
    refuse_infinite(module)
    return torch.nan_to_num(low.detach().reshape(-1), nan=-np.inf)


def bounded(problem: MarginProblem) -> Any:
    """The network in torch, as auto_LiRPA reads it."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            # auto_LiRPA takes its float type from the first parameter, and fails where there is none.
            self.nothing = torch.nn.Parameter(torch.zeros(problem.network.classes))

        def forward(self, x: Any) -> Any:
            sizes = [problem.network.nodes[index].size for index in problem.embeddings]
            parts = dict(zip(problem.embeddings, end_to_end(sizes), strict=True))
            return logits_of(Words(torch, problem.network, x, parts)) + self.nothing

    return checked(Module().eval(), words_of(problem))


def checked(module: Any, given: Any) -> Any:
    """auto_LiRPA's reading of a module, refused where that holds an operator whose bounds are not sound."""
    found = lirpa().BoundedModule(module, given, bound_opts=dict(OPTIONS), device="cpu", custom_ops=dict(operators()))
    refuse_unsound(found)
    found.eval()
    return found
