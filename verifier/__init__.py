"""The ladder and its engines, run folders, reports and the command line.

The public API is `certify`, the same as `swapproof certify`:

    from swapproof.verifier import certify
    outcome = certify("task.toml", "runs/first", limit=20)
    outcome.summary["mmws"], outcome.exit_code, outcome.folder

Importing this package loads nothing heavy: what a name needs is imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certifying import Outcome, certify

__all__ = ["Outcome", "certify"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import certifying

    return getattr(certifying, name)
