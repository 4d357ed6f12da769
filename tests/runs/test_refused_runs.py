"""A folder in which a run cannot go on: one line and the same exit code for every kind of run, and nothing lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_runs import Capture, results
from folder_bytes import folder_bytes
from run_kinds import command, task_for
from tiny import weaker

from swapproof.verifier.cli import main
from swapproof.verifier.runs.run_folder import Run, held

KINDS = ("certify", "attack", "pr", "kappa", "msr", "vote")
NOBODY = 65534


@dataclass(frozen=True)
class Made:
    """A finished run, in a folder that every user may enter."""

    kind: str
    task: Path
    run: Path


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest) -> Iterator[Made]:
    with tempfile.TemporaryDirectory(prefix="swapproof-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        task = task_for(request.param, folder / "task")
        assert main(command(request.param, task, folder / "run")) == 0
        yield Made(request.param, task, folder / "run")


def other_version(made: Made) -> AbstractContextManager[None]:
    connection = sqlite3.connect(made.run / "store.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    return nullcontext()


def at_work(made: Made) -> AbstractContextManager[None]:
    """Somebody else holds the run; the lock of another open file is another's, whoever has it."""
    return held(Run(made.run))


@contextmanager
def read_only(made: Made) -> Iterator[None]:
    """To the superuser no folder is: somebody else gives the command."""
    made.run.chmod(0o555)
    for path in made.run.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(NOBODY)
        yield
    finally:
        if root:
            os.seteuid(0)
        for path in (made.run, *made.run.rglob("*")):
            path.chmod(0o755)


def half_a_store(made: Made) -> AbstractContextManager[None]:
    path = made.run / "store.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return nullcontext()


def no_store(made: Made) -> AbstractContextManager[None]:
    (made.run / "store.sqlite").unlink()
    return nullcontext()


def other_model(made: Made) -> AbstractContextManager[None]:
    weaker(made.task)
    return nullcontext()


CASES: dict[str, tuple[Callable[[Made], AbstractContextManager[None]], str]] = {
    "other version": (other_version, "a store of version 99"),
    "two processes": (at_work, "another process is working on this run; wait for it"),
    "read-only": (read_only, "cannot be written (Permission denied)"),
    "half a store": (half_a_store, "store.sqlite: damaged ("),
    "no store": (no_store, "holds files and is not the folder of a run; give --out a new folder"),
    "other model": (other_model, "the run there is of another task: the model"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_go_on_is_one_line_and_changes_nothing(made: Made, case: str, capsys: Capture) -> None:
    spoil, said = CASES[case]
    place = made.run.parent / case.replace(" ", "-")
    task = shutil.copytree(made.task.parent, place / "task") / made.task.name
    copy = Made(made.kind, task, shutil.copytree(made.run, place / "run"))
    capsys.readouterr()
    with spoil(copy):
        before = folder_bytes(copy.run)
        assert main(command(copy.kind, copy.task, copy.run)) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
        after = folder_bytes(copy.run)
    assert {name: after.get(name) for name in before} == before
    assert not after.keys() - before.keys() - {".lock"}


def test_a_run_that_was_copied_in_part_has_all_of_its_files_when_it_was_gone_on_with(
    made: Made, capsys: Capture
) -> None:
    """One that is checked before is one line."""
    place = shutil.copytree(made.run, made.run.parent / "half" / "run")
    lost = [next(place.rglob("model.onnx")), *(place / name for name in ("texts.jsonl", "task.toml"))]
    cut = place / "spaces.jsonl"
    before = {path: path.read_bytes() for path in (*lost, cut)}
    for path in lost:
        path.unlink()
    cut.write_bytes(before[cut][:40])
    half = folder_bytes(place)
    capsys.readouterr()
    assert main(["check", str(place)]) in (1, 2)
    out = capsys.readouterr()
    assert "Traceback" not in out.out + out.err
    assert folder_bytes(place) == half
    assert main(command(made.kind, made.task, place)) == 0
    assert {path: path.read_bytes() for path in before} == before
    assert results(place) == results(made.run)
