"""What a paper will cost, before it begins: processor seconds of the same command at --size small, times its texts.

The seconds are those of measured_seconds.json, which `bench papers` writes: of each command of --size small, once
measured, with the texts that it was about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..defending.cell_steps import Step
from .paper_data import FEW
from .paper_plan import Paper, Setting, json_in

MEASURED = Path(__file__).with_name("measured_seconds.json")
MINUTE = 60.0


def expected(paper: Paper, setting: Setting, steps: Sequence[Step]) -> str:
    """One line, and what it rests on."""
    known = (json_in(MEASURED) or {}).get(paper.name, {})
    left = [step for step in steps if not step.done.is_file()]
    if not known or not left:
        return f"{len(left)} of {len(steps)} commands are to be done"
    with TemporaryDirectory() as folder:
        small = {step.out.name: step for step in paper.steps(replace(setting, folder=Path(folder), size="small"))}
    seconds = sum(of_step(step, small, known, learned(paper, setting)) for step in left)
    rest = "" if len(left) == len(steps) else f" for the {len(left)} of {len(steps)} commands that are left"
    return (
        f"about {shown(seconds)} of one processor{rest}: the texts of each command x the seconds a text of --size "
        f"small, "
        f"measured on another machine; --jobs {setting.jobs} works on as many texts at a time"
    )


def shown(seconds: float) -> str:
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < 120 * MINUTE else f"{seconds / MINUTE / MINUTE:.0f} h"


def of_step(step: Step, small: Mapping[str, Step], known: Mapping[str, float], more: float) -> float:
    """A step that --size small has not costs as much as the mean of its command there. `more`: training rows, as a
    multiple of those of --size small."""
    name = step.out.name
    command = step.arguments[0]
    alike = [other for other in small if small[other].arguments[0] == command and other in known]
    like = [name] if name in known and name in small else alike
    if not like:
        return 0.0
    factors = ((of_texts(step) / of_texts(small[other])) if command != "train" else more for other in like)
    return sum(known[other] * factor for other, factor in zip(like, factors, strict=True)) / len(like)


def of_texts(step: Step) -> float:
    """Its --limit, times the seeds and methods of a comparison."""
    words = dict(zip(step.arguments, step.arguments[1:], strict=False))
    each = (len(words[option].split(",")) for option in ("--methods", "--seeds", "--attacks") if option in words)
    number = float(words.get("--limit", 1))
    for one in each:
        number *= one
    return number


def learned(paper: Paper, setting: Setting) -> float:
    """How many times as many training rows as at --size small, of all data sets together."""
    there = sum(data.rows[1] for data in setting.data.values())
    few = sum(min(data.rows[0], paper.few.get(name, FEW)) for name, data in setting.data.items())
    return there / few if few else 1.0
