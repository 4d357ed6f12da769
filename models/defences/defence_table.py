"""The defences that a recipe can name: adding one is a file beside this one and a line in this table."""

from __future__ import annotations

from .smooth_contract import Contract, Smooth, SmoothContract
from .training_rule import Defence

DEFENCES: dict[str, type[Defence]] = {
    "smooth-contract": SmoothContract,
    "smooth": Smooth,
    "contract": Contract,
}


def method_of(defence: Defence) -> str:
    """What a recipe calls this defence."""
    return next(name for name, kind in DEFENCES.items() if type(defence) is kind)
