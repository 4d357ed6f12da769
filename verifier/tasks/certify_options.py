"""What a user asks of `certify` beside the task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .deployed_model import Trust


@dataclass(frozen=True)
class CertifyOptions:
    """`limit`: only the first texts. `radius`: swaps that every text must withstand. `seconds` for each text.
    `baseline`: a run that this one must not be worse than."""

    limit: int | None
    radius: int | None
    engines: str | None
    seconds: float | None
    jobs: int
    resume: bool
    progress: bool
    trust: Trust
    baseline: Path | None = None
    cluster: str | None = None
    """Of Ray: whose machines work."""
    apart: bool = False
    """The model is code of others: each text is settled in a process that may die."""
