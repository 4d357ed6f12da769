"""A run that this one must not be worse than: as large a share of the same texts certified, for any number of swaps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path

from swapproof.encodings.errors import BadInput

from ..runs.life import RunPlan
from ..runs.manifest import QUESTION
from ..runs.run_folder import existing
from ..runs.store import Store, intact
from ..tasks.sections import CertifiedGate
from .known_ends import Short, robust, short

STAGE = "min_swaps"
"""Of the lines of a run of `certify`."""
MOST_RADII = 12
DIGITS = 6


def required_of(baseline: Path | None, plan: RunPlan) -> RunPlan:
    """The plan with what the baseline certified as requirements. Raises BadInput where it has other texts or swaps."""
    if baseline is None:
        return plan
    run = existing(baseline)
    with Store.open(run.store, readonly=True) as store, intact(run.store):
        facts = store.facts()
        if QUESTION in facts:
            raise BadInput(f"--baseline {baseline}: not a run of certify")
        texts = [short(line) for line in store.results(STAGE)]
        if not texts or len(texts) != json.loads(facts["total"]):
            raise BadInput(f"--baseline {baseline}: the run is not finished; run certify on it again")
        if len(texts) != len(plan.inputs.texts):
            said = f"has {len(texts):,} texts, and this task has {len(plan.inputs.texts):,}"
            raise BadInput(f"--baseline {baseline}: {said}")
        if facts["texts"] != plan.inputs.digest:
            raise BadInput(f"--baseline {baseline}: has other texts or labels than this task")
    refuse_other_spaces(baseline, run.spaces, plan)
    gates = tuple(CertifiedGate(at=at, least=least) for at, least in shares(texts))
    require = plan.task.require.model_copy(update={"baseline": gates})
    return replace(plan, task=plan.task.model_copy(update={"require": require}))


def refuse_other_spaces(baseline: Path, spaces: Path, plan: RunPlan) -> None:
    frozen = [text.frozen for text in plan.inputs.texts]
    try:
        raw = spaces.read_bytes()
    except OSError as error:
        raise BadInput(f"{spaces}: cannot be read ({error.strerror or error})") from None
    for one, line in zip(frozen, raw.split(b"\n"), strict=False):
        if one.line.encode() != line:
            raise BadInput(
                f"--baseline {baseline}: text {one.id} has other swaps there; freeze them for both: "
                f'[swaps] frozen = "{spaces}"'
            )


def shares(texts: Sequence[Short]) -> Iterator[tuple[int, float]]:
    """The numbers of swaps at which the certified share falls, 0 first, each with the share, rounded down."""
    ends = {0, *(int(text.low) for text in texts if 0 < text.low < math.inf)}
    for at in islice(sorted(ends), MOST_RADII):
        held = Fraction(sum(robust(text, at) for text in texts), len(texts))
        yield at, math.floor(held * 10**DIGITS) / 10**DIGITS
