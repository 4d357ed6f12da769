"""Runs of `measure`: what each answers, and the folder that holds those of several radii."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.models.errors import unreadable

from ..counting.fraction import Settings
from .manifest import QUESTION
from .run_folder import Run, existing, refuse_strange
from .store import Store, intact, is_store

FOLDER = re.compile(r"radius-(0|[1-9][0-9]*)")


OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "radius": ("--radius", ("pr",)),
    "seconds": ("--seconds", ("pr", "kappa", "msr")),
    "samples": ("--samples", ("pr", "vote")),
    "epsilon": ("--epsilon", ("pr",)),
    "delta": ("--delta", ("pr", "vote")),
    "width": ("--stop-when-width", ("pr",)),
    "sampled": ("--sampled", ("pr",)),
    "brute_force": ("--brute-force", ("kappa",)),
    "euba": ("--euba", ("kappa",)),
    "variant": ("--euba-variant", ("kappa",)),
    "jobs": ("--jobs", ("pr", "kappa", "msr", "vote")),
    "require": ("--require", ("kappa", "pr")),
    "cluster": ("--cluster", ("pr", "msr", "vote")),
    "norm": ("--norm", ("msr",)),
    "words": ("--words", ("msr",)),
    "units": ("--units", ("msr",)),
    "padding": ("--padding", ("msr",)),
    "saliency": ("--saliency", ("msr",)),
    "lime": ("--lime", ("msr",)),
    "same_part_of_speech": ("--same-part-of-speech", ("msr",)),
}
"""Of each option its name and the quantities that have it; all have the others."""


@dataclass(frozen=True)
class MeasureOptions:
    """The options of `measure`, as they were given; each quantity refuses those that it does not have."""

    quantity: str
    radius: str | None = None
    limit: int | None = None
    seconds: float | None = None
    samples: int | None = None
    epsilon: str | None = None
    delta: str | None = None
    width: str | None = None
    sampled: bool = False
    brute_force: bool = False
    euba: int | None = None
    variant: str | None = None
    jobs: int = 1
    resume: bool = True
    require: tuple[str, ...] = ()
    cluster: str | None = None
    norm: str | None = None
    words: str | None = None
    units: str | None = None
    padding: bool = False
    saliency: bool = False
    lime: int | None = None
    same_part_of_speech: bool = False

    def refuse_others(self) -> None:
        """Options that another quantity has and this one would pass over."""
        plain = MeasureOptions(self.quantity)
        every = {quantity for _, quantities in OPTIONS.values() for quantity in quantities}
        for name, (option, quantities) in OPTIONS.items() if self.quantity in every else ():
            if self.quantity not in quantities and getattr(self, name) != getattr(plain, name):
                told = " or ".join(quantities)
                raise BadInput(f"{option} is one of the options that belong to --quantity {told}")


def question_of(folder: Path) -> dict[str, Any] | None:
    """What a run of `measure` answers; None for a run of another command."""
    run = existing(folder)
    with Store.open(run.store, readonly=True) as store:
        asked = store.facts().get(QUESTION)
    with intact(run.store):
        question = None if asked is None else dict(json.loads(asked))
        if question is not None and question["quantity"] == "pr":
            settings_of(question)
        return question


def settings_of(question: Mapping[str, Any]) -> Settings:
    """How the texts of a run of `measure --quantity pr` were measured; raises LookupError, TypeError or ValueError."""
    width = question["width"]
    numbers = [question[name] for name in ("radius", "batch", "samples")]
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ValueError(f"radius, batch and samples {numbers}")
    return Settings(
        question["radius"],
        question["samples"],
        Fraction(question["delta"]),
        count=False,
        seconds=None,
        deployed=question["deployed"],
        width=None if width is None else Fraction(width),
        batch=question["batch"],
    )


def runs_of(folder: Path) -> dict[int, Run]:
    """The runs in this folder, by their radius."""
    refuse_strange(Run(folder))
    found = ((FOLDER.fullmatch(path.name), path) for path in (folder.iterdir() if folder.is_dir() else ()))
    runs = {int(named[1]): Run(path) for named, path in found if named and is_store(path / "store.sqlite")}
    return dict(sorted(runs.items()))


def holds_radii(folder: Path) -> bool:
    """Whether this is no run but the folder of several."""
    return not is_store(Run(folder).store) and bool(runs_of(folder))


def folder_of(folder: Path, radius: int) -> Path:
    """Where the run of one of several radii lies."""
    return folder / f"radius-{radius}"


def refuse_foreign_radii(folder: Path, radii: Iterable[int]) -> None:
    """A folder with other things in it than runs of these radii, and what is said of all of them."""
    ours = {"summary.json", "curve.png", "report.html", *(folder_of(folder, radius).name for radius in radii)}
    if folder.is_dir():
        strange = sorted(path.name for path in folder.iterdir() if path.name not in ours)
        if strange:
            raise BadInput(f"{folder}: holds {strange[0]}, which is not of this measurement; give --out a new folder")


def together(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of runs of several radii."""
    return {
        "quantity": "pr",
        "radii": [one["radius"] for one in summaries],
        "curve": {str(one["radius"]): one["robust_fraction"] for one in summaries},
        "runs": {str(one["radius"]): one for one in summaries},
    }


def summary_in(folder: Path) -> dict[str, Any]:
    """What the summary of a measurement says."""
    path = Run(folder).summary
    try:
        summary = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(f"{folder}: the run is not finished; run the same `swapproof measure` again") from None
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError):
        raise BadInput(f"{path}: not JSON; run the same `swapproof measure` again") from None
    if not isinstance(summary, dict):
        raise BadInput(f"{path}: not the summary of a measurement; run the same `swapproof measure` again")
    return summary
