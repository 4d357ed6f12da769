"""The ladder and its engines, run folders, reports and the command line.

The public API is `certify` and `measure_pr`, the same as `swapproof certify` and `swapproof measure --quantity pr`, and
`sample_pr`, which samples any classifier that is a Python function (`Sampling`: how many samples `measure_pr` draws);
`attack` is the same as `swapproof attack`, with `AttackOptions`; `write_shards` and `merge` are `swapproof shards` and
`swapproof merge`. `load` opens the folder of a run, whoever made it:

    from swapproof.verifier import certify, load
    outcome = certify("task.toml", "runs/first", limit=20)
    outcome.summary["mmws"], outcome.exit_code, outcome.folder

    run = load("runs/first")
    [result.text for result in run if result.high == 1]
    run.witnesses[4].sentence, run.spaces[4], run.summary["mmws"]

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
    from .loaded_run import LoadedComparison, LoadedRun, Result, Swap, Witness, load, load_comparison
    from .roads import certify
    from .runs.life import Outcome
    from .sharding.merged_run import merge
    from .sharding.shard_files import write_shards

__all__ = [
    "AttackOptions",
    "LoadedComparison",
    "LoadedRun",
    "Outcome",
    "Result",
    "Sampling",
    "Swap",
    "Witness",
    "attack",
    "certify",
    "load",
    "load_comparison",
    "measure_pr",
    "merge",
    "sample_pr",
    "write_shards",
]

HOMES = {
    "AttackOptions": ".attacks.attack_run",
    "attack": ".attacks.attack_run",
    "Outcome": ".runs.life",
    "Sampling": ".counting.whole_runs.sample_request",
    **dict.fromkeys(
        ("LoadedComparison", "LoadedRun", "Result", "Swap", "Witness", "load", "load_comparison"), ".loaded_run"
    ),
    "certify": ".roads",
    "merge": ".sharding.merged_run",
    "write_shards": ".sharding.shard_files",
    "measure_pr": ".counting.whole_runs.measuring_runs",
    "sample_pr": ".counting.any_classifier",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name], __name__), name)
