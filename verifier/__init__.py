"""The ladder and its engines, run folders, reports and the command line.

The public API is `certify` and `measure_pr`, the same as `swapproof certify` and `swapproof measure --quantity pr`, and
`sample_pr`, which samples any classifier that is a Python function (`Sampling`: how many samples `measure_pr` draws);
`attack` is the same as `swapproof attack`, with `AttackOptions`:

    from swapproof.verifier import certify
    outcome = certify("task.toml", "runs/first", limit=20)
    outcome.summary["mmws"], outcome.exit_code, outcome.folder

Importing this package loads nothing heavy: what a name needs is imported when the name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attacks.attack_run import AttackOptions, attack
    from .counting.any_classifier import sample_pr
    from .counting.whole_runs.measuring_runs import measure_pr
    from .counting.whole_runs.sample_request import Sampling
    from .roads import certify
    from .runs.life import Outcome

__all__ = ["AttackOptions", "Outcome", "Sampling", "attack", "certify", "measure_pr", "sample_pr"]

HOMES = {
    "AttackOptions": ".attacks.attack_run",
    "attack": ".attacks.attack_run",
    "Outcome": ".runs.life",
    "Sampling": ".counting.whole_runs.sample_request",
    "certify": ".roads",
    "measure_pr": ".counting.whole_runs.measuring_runs",
    "sample_pr": ".counting.any_classifier",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name], __name__), name)
