"""A line of results.jsonl of an attack: the same keys as of `certify`, with a high end only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..replaying.replayed_line import LEVEL, witness_of
from ..replaying.simple_prover import Found
from ..runs.results import opening
from ..tasks.inputs import Text

HIGH_ONLY = "an attack proves nothing below its sentence"
LATE = "out of time; "
UNBROKEN = "the attack found no sentence, which proves nothing"


def line_of(
    text: Text,
    method: str,
    predicted: int | None,
    witness: NDArray[Any] | None,
    spent: dict[str, Any],
    *,
    failed: str | None = None,
    measured: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """`witness`: the option of every word of a sentence that was replayed; `failed`: why the text has no answer;
    `measured`: similarity and perplexity of that sentence, where these are asked for."""
    wrong = failed is None and predicted is not None and predicted != text.label
    high = None if witness is None else int(np.count_nonzero(witness))
    shown = None
    if witness is not None:
        shown = witness_of(text, Found(witness=witness))
        shown |= {name: round(value, 6) for name, value in (measured or {}).items()}
    line = opening(text, predicted) | {
        "min_swaps": {"low": 0 if wrong else None, "high": high},
        "status": "already_wrong" if wrong else "open",
        "level": LEVEL,
        "witness": shown,
        "certificate": None,
        "engine": method,
        "seconds": spent["seconds"],
        "evaluations": spent["evaluations"],
        "requests": spent["requests"],
        "attack": {"method": method, **{name: value for name, value in spent.items() if name != "seconds"}},
    }
    if not wrong:
        line["reason"] = failed or (LATE if spent.get("out_of_time") else "") + (
            UNBROKEN if high is None else HIGH_ONLY
        )
    if failed is not None:
        line["attack"]["failed"] = True
    return line
