"""`init`: looks at a model and data, and writes a task file that says where each of its lines comes from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from ..exit_codes import HOLDS
from ..pages.printing.json_printing import print_json
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
    as_json: bool = False,
) -> int:
    """With JSON, what is told and asked on the way goes to the error output."""
    given = parse_settings(settings)
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
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
    if as_json:
        told = [{"topic": topic, "sentence": sentence} for topic, sentence in found.said]
        print_json({"task": str(out), "exit_code": HOLDS, "found": told, "doubts": found.doubts})
        return HOLDS
    if found.doubts:
        print("\nLook at this first:")
        for doubt in found.doubts:
            found.point(doubt)
    trust = " --trust-pickle" * trust_pickle + " --allow-endpoint" * allow_endpoint
    print(f"\nWritten: {out}. Next: swapproof certify {out} --out run{trust}")
    return HOLDS
