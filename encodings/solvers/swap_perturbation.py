"""The perturbation that auto_LiRPA bounds against: at most k positions take one of their options each.

It minimises a linear function of the embedded words exactly:

    min (a . w) = a . w0 + the sum of the k least of min(0, min over options of a[e] . d)

with w0 the words of the text, and over positions: e their elements, d the differences of their options.
"""

from __future__ import annotations

from typing import Any

from .lirpa_loading import lirpa
from .margin_problem import MarginProblem


def perturbation(problem: MarginProblem, k: int) -> Any:
    """Of the kind that auto_LiRPA has for synonyms, for only that may be in any place; nothing of it is used."""
    lirpa()
    import torch
    from auto_LiRPA.linear_bound import LinearBound
    from auto_LiRPA.perturbations import Perturbation, PerturbationSynonym

    swaps = [(torch.as_tensor(one.elements), torch.as_tensor(one.differences)) for one in problem.swaps]

    class OfSwaps(PerturbationSynonym):  # type: ignore[misc]
        def __init__(self) -> None:
            Perturbation.__init__(self)
            self.eps = 1.0

        def __repr__(self) -> str:
            return f"at most {k} of {len(swaps)} words swapped"

        def init(self, x: Any, aux: Any = None, forward: bool = False) -> Any:
            """The box around all options: what intervals start from."""
            low, high = x.clone(), x.clone()
            for elements, differences in swaps if k else ():
                low[:, elements] += differences.min(0).values.clamp(max=0)
                high[:, elements] += differences.max(0).values.clamp(min=0)
            return LinearBound(None, None, None, None, low, high), x, None

        def concretize(self, x: Any, A: Any, sign: int = -1, aux: Any = None, **others: Any) -> Any:
            """[1, functions] of coefficients [1, functions, elements]; sign +1: the maximum."""
            if A is None:
                return None
            base = A.matmul(x.reshape(1, -1, 1)).squeeze(-1)
            gains = [
                (sign * A[:, :, elements] @ differences.T).max(-1).values.clamp(min=0)
                for elements, differences in swaps
            ]
            if not gains or not k:
                return base
            best = torch.stack(gains, -1).topk(min(k, len(gains)), -1).values
            return base + sign * best.sum(-1)

    return OfSwaps()
