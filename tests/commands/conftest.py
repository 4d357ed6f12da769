"""A tiny task, and a finished run of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny import write_task

from swapproof.verifier.cli import main


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that tests copy before they change it."""
    folder = tmp_path_factory.mktemp("finished")
    assert main(["certify", str(write_task(folder / "task")), "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"
