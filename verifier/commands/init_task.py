"""`init`: looks at a model and data, and writes a task file that says where each of its lines comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..exit_codes import HOLDS
from ..starting.beginning import begin_task
from ..starting.decisions import parse_settings


def command(
    model: str,
    data: Path,
    synonyms: Path | None,
    out: Path,
    settings: Sequence[str],
    *,
    force: bool,
    trust_pickle: bool,
    allow_endpoint: bool,
) -> int:
    given = parse_settings(settings)
    found = begin_task(
        model,
        data,
        synonyms,
        out,
        given,
        force=force,
        trust_pickle=trust_pickle,
        allow_endpoint=allow_endpoint,
    )
    if found.doubts:
        print("\nLook at this first:")
        for doubt in found.doubts:
            found.point(doubt)
    trust = " --trust-pickle" * trust_pickle + " --allow-endpoint" * allow_endpoint
    print(f"\nWritten: {out}. Next: swapproof certify {out} --out run{trust}")
    return HOLDS
