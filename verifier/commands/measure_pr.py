"""`measure --quantity pr`: the share of sentences that keep their label, for one radius or several."""

from __future__ import annotations

import sys
from pathlib import Path

from swapproof.encodings.errors import BadInput

from ..counting.whole_runs.measuring_runs import MOST, SECONDS, PrOptions, measure_radii, measure_radius
from ..counting.whole_runs.sample_request import Sampling
from ..pages.pr_plots import without_figures
from ..pages.printing.json_printing import print_run
from ..pages.printing.pr_printing import print_measured
from ..runs.life import require
from ..runs.measured_runs import MeasureOptions
from ..tasks.sections import gates_said, refuse_unmeasured

EPSILON, DELTA = "0.025", "0.005"


def command(task: Path, out: Path, asked: MeasureOptions, *, as_json: bool = False) -> int:
    """The command line's `measure --quantity pr`; the exit code."""
    if asked.quantity != "pr":
        raise BadInput(f"--quantity {asked.quantity!r}: can be pr, kappa, msr or vote")
    refuse_unmeasured(gates_said(asked.require), "measure --quantity pr")
    radii = radii_of(asked.radius)
    options = PrOptions(
        limit=asked.limit,
        seconds=SECONDS if asked.seconds is None else asked.seconds,
        sampling=Sampling.of(asked.samples, asked.epsilon or EPSILON, asked.delta or DELTA, asked.width),
        jobs=asked.jobs,
        count=not asked.sampled,
        resume=asked.resume,
        progress=True,
        cluster=asked.cluster,
    )
    if len(radii) == 1:
        outcome = measure_radius(task, out, radii[0], options)
    else:
        outcome = measure_radii(task, out, radii, options)
    if (remark := without_figures()) is not None:
        print(remark, file=sys.stderr)
    if as_json:
        return print_run(outcome.folder, outcome.exit_code, outcome.summary)
    print_measured(outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code


def radii_of(text: str | None) -> list[int]:
    """`3`, or several with commas: `1,2,3`."""
    if text is None:
        raise BadInput("--quantity pr needs --radius: how many swaps a sentence may have, or several: 1,2,3")
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise BadInput(f"--radius {text!r}: whole numbers of swaps, separated by commas")
    fits = all(len(part.lstrip("0")) <= len(str(MOST)) for part in parts)
    radii = sorted({int(part) for part in parts}) if fits else [MOST + 1]
    require(radii[-1] <= MOST, f"--radius {text[:40]!r}: at most {MOST}, more than any text has words")
    return radii
