"""What is done to each network, as command lines that anybody can repeat; what was done is not done again."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED, VIOLATED
from ..runs.run_folder import write_atomically
from .cell_recipe import write_recipe
from .compared_cell import EXACT, Asked, Cell, examples_folder

BY_KAPPA = "sp-attack"
"""The attack that begins with the words of the greatest kappa."""
HANDS = ("--jobs", "--cluster")
RESUMED = ("certify", "attack", "measure")
"""Commands that begin anew with --no-resume."""
FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))
"""Of a disk: no network's fault, and the next would meet it too."""
ANSWERED = (HOLDS, VIOLATED, INCOMPLETE, UNCHECKED)
"""Exit codes of a command that left its files."""


@dataclass(frozen=True)
class Step:
    """`arguments` of swapproof, which leave `out`."""

    out: Path
    arguments: tuple[str, ...]
    home: Path | None = None
    """A folder that may be moved with all that the arguments name."""

    @property
    def done(self) -> Path:
        return self.out.with_name(f"{self.out.name}.done")

    @property
    def begun(self) -> Path:
        """What `out` is about, until that has ended."""
        return self.out.with_name(f"{self.out.name}.begun")

    @property
    def question(self) -> list[str]:
        """What decides the answer: not where the files are, nor how many work on it."""
        told = self.named_from_home
        hands = {place + more for place, word in enumerate(told) if word in HANDS for more in (0, 1)}
        return [word for place, word in enumerate(told) if place not in hands]

    @property
    def named_from_home(self) -> list[str]:
        """As it is given to a shell in that folder."""
        if self.home is None:
            return list(self.arguments)
        return [word.removeprefix(f"{self.home}/") for word in self.arguments]


@dataclass(frozen=True)
class Ended:
    code: int
    said: str
    """Its last line of complaint."""
    cpu_seconds: float | None = None


Command = Callable[[Sequence[str]], Ended]


def steps_of(cell: Cell, asked: Asked, wanted_examples: Sequence[str]) -> Iterator[Step]:
    """In order; `wanted_examples`: attacks whose examples other cells learn from, if this is their base."""
    if cell.recipe is not None:
        yield Step(cell.folder / "model", ("train", str(write_recipe(cell)), "--out", str(cell.folder / "model")))
    for name in wanted_examples:
        out = cell.folder / examples_folder(name)
        yield Step(out, (*sought(name, asked, cell.training_task, out), *limited(asked.example_texts)))
    out, jobs = cell.folder / "certify", asked.workers
    certify = ("certify", str(cell.deployed), "--out", str(out), *asked.timed, *jobs)
    if asked.certified:
        yield Step(out, (*certify, *limited(asked.limit)))
    for name in asked.attacks:
        if name != BY_KAPPA:
            yield attacking(name, cell, asked)
    if cell.deployed == cell.smoothed_task:
        out = cell.folder / "vote"
        alone = ("--jobs", str(asked.jobs))  # a vote and kappa are measured on this machine
        vote = ("measure", str(cell.deployed), "--quantity", "vote", "--out", str(out), *alone)
        yield Step(out, (*vote, *limited(asked.limit)))
        return  # robust fractions and kappa are of networks
    for radius in asked.radii:
        out = cell.folder / f"pr-{radius}"
        measure = ("measure", str(cell.deployed), "--quantity", "pr", "--radius", str(radius), "--out", str(out), *jobs)
        yield Step(out, (*measure, *asked.timed, *limited(asked.limit)))
    if asked.kappa:
        tasks = {"kappa": cell.task}
        if cell.recipe is not None and cell.recipe["task"]["training_texts"]:
            tasks["kappa-training"] = cell.training_task
        for folder, task in tasks.items():
            out = cell.folder / folder
            measure = ("measure", str(task), "--quantity", "kappa", "--out", str(out), *asked.kappa_by)
            yield Step(out, (*measure, *limited(asked.limit)))
    if BY_KAPPA in asked.attacks:
        yield attacking(BY_KAPPA, cell, asked, "--kappa", str(cell.folder / "kappa" / "kappa.csv"))


def attacking(name: str, cell: Cell, asked: Asked, *more: str) -> Step:
    out = cell.folder / f"attack-{name}"
    attack = ("attack", str(cell.deployed), "--method", name, "--out", str(out), *asked.workers, *asked.limits, *more)
    return Step(out, (*attack, *limited(asked.limit)))


def sought(name: str, asked: Asked, task: Path, out: Path) -> tuple[str, ...]:
    jobs = asked.workers
    if name == EXACT:
        return ("certify", str(task), "--out", str(out), *asked.timed, *jobs)
    return ("attack", str(task), "--method", name, "--out", str(out), *jobs)


def limited(limit: int | None) -> tuple[str, ...]:
    return () if limit is None else ("--limit", str(limit))


def take(step: Step, command: Command, said: Callable[[str], None]) -> Ended:
    """One step; what has ended with the same question is not taken again, with another it begins anew, also where that
    was not ended."""
    arguments = list(step.arguments)
    ended, begun = note_in(step.done), note_in(step.begun)
    if ended is not None and ended["arguments"] == step.question and step.out.is_dir():
        return Ended(ended["exit_code"], ended["said"], ended.get("cpu_seconds"))
    last = begun or ended
    if last is not None and last["arguments"] != step.question and arguments[0] in RESUMED:
        arguments.append("--no-resume")
    step.out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(step.begun, json.dumps({"arguments": step.question}).encode())
    step.done.unlink(missing_ok=True)
    said(f"swapproof {' '.join(arguments)}")
    trained = arguments[0] == "train" and (step.out / "training.json").is_file()  # and killed before its note
    now = Ended(HOLDS, "") if trained else command(arguments)
    if now.code not in (*ANSWERED, 2) or any(reason in now.said for reason in FULL):
        raise BadInput(f"`swapproof {' '.join(arguments)}` ended with exit code {now.code}: {now.said}")
    if now.code in ANSWERED:
        note: dict[str, object] = {"arguments": step.question, "exit_code": now.code, "said": now.said}
        note["cpu_seconds"] = now.cpu_seconds
        write_atomically(step.done, json.dumps(note).encode())
        step.begun.unlink()
    return now


def note_in(path: Path) -> dict[str, Any] | None:
    """None where there is none that can be read."""
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found


def as_process(arguments: Sequence[str]) -> Ended:
    """A command as users run it, in a process of its own; what it complains of is shown, its tables are not."""
    last, before = "", processor_seconds()
    process = subprocess.Popen(
        [sys.executable, "-m", "swapproof", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
    )
    try:
        for line in process.stderr or ():
            print(f"  {line.rstrip()}", file=sys.stderr, flush=True)
            last = line.strip() or last
        code = process.wait()
    except BaseException:
        process.terminate()  # it keeps what it has found, as after Ctrl-C
        process.wait()
        raise
    said = last.removeprefix("swapproof: ") if code == 2 else ""
    return Ended(code, said, round(processor_seconds() - before, 1))


def processor_seconds() -> float:
    """Of all processes that were started here and have ended; theirs too."""
    used = os.times()
    return used.children_user + used.children_system
