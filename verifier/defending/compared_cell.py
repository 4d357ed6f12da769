"""One network of a comparison, what is asked about it, and what is found, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

AS_GIVEN = "as given"
EXACT = "exact"
"""Examples of `certify`, with as few swaps as there can be, in place of those of an attack."""

Figures = dict[str, float | None]
"""Column -> number, in the order of the table; None where nothing is known."""


@dataclass(frozen=True)
class Cell:
    """One network: `task` is there already, or `recipe` is trained in `folder`."""

    source: str
    defended: str
    seed: int | None
    folder: Path
    task: Path
    recipe: dict[str, Any] | None = None
    origin: Path | None = None
    """The recipe that it was made from."""
    examples: str | None = None
    base: Path | None = None
    """The folder of the undefended cell whose examples it learns from."""

    @property
    def smoothed_task(self) -> Path:
        """Of a network that is deployed as a vote over random texts; there once it is trained."""
        return self.folder / "model" / "smoothed_task.toml"

    @property
    def deployed(self) -> Path:
        """The task about what is deployed."""
        return self.smoothed_task if self.smoothed_task.is_file() else self.task

    @property
    def training_task(self) -> Path:
        return self.folder / "model" / "training_task.toml"


@dataclass(frozen=True)
class Asked:
    """What is measured of every network: how many texts, how long each, which attacks and measures."""

    limit: int | None = None
    seconds: float = 10.0
    attacks: tuple[str, ...] = ()
    radii: tuple[int, ...] = ()
    """Of the robust fraction."""
    kappa: bool = False
    kappa_by: tuple[str, ...] = ()
    """Options of `measure --quantity kappa` for networks that it cannot read: --brute-force, or --euba M."""
    jobs: int = 1
    example_texts: int | None = None
    """Training texts that examples are sought for."""
    limits: tuple[str, ...] = ()
    """Options of `attack` that say how far the attacks of the table may go."""
    certified: bool = True
    """Or by attacks alone."""
    cluster: str | None = None
    """A Ray cluster, for what can work on one."""

    @property
    def timed(self) -> tuple[str, ...]:
        """1 and 1.0 are the same argument."""
        return ("--seconds", str(float(self.seconds)))

    @property
    def workers(self) -> tuple[str, ...]:
        """The options of commands that can work on a cluster."""
        return ("--jobs", str(self.jobs), *(() if self.cluster is None else ("--cluster", self.cluster)))


def examples_folder(attack: str) -> str:
    return f"examples-{attack}"
