"""What is made on the way in a folder of the system's: it is gone afterwards, also after a kill."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from swapproof.models.deployed.passing_folder import CONTENT, LOCK, PassingFolder

STAYING = """
import sys
from swapproof.models.deployed.passing_folder import PassingFolder
folder = PassingFolder()
(folder.path / "model.onnx").write_text("of a process")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_lasts_as_long_as_its_block_or_its_owner(place: Path) -> None:
    with PassingFolder() as path:
        assert list(path.iterdir()) == []
    assert list(place.iterdir()) == []

    class Owner:
        pass

    owner, folder = Owner(), PassingFolder()
    folder.owned_by(owner)
    path = folder.path
    del folder
    gc.collect()
    assert path.is_dir()
    del owner
    gc.collect()
    assert list(place.iterdir()) == []


def test_a_process_that_was_forked_removes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = PassingFolder()
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        folder.remove()
    assert folder.path.is_dir()


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_living_one_holds_is_not(place: Path) -> None:
    strange = place / "swapproof-strange"  # whoever made it: it has no lock
    (strange / CONTENT).mkdir(parents=True)
    linked = place / "swapproof-linked"
    linked.symlink_to(place / "elsewhere")
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / LOCK).touch()
    with subprocess.Popen([sys.executable, "-c", STAYING], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        assert path.parent.parent == place
        with PassingFolder():
            assert (path / "model.onnx").exists()
        process.kill()
    assert (path / "model.onnx").exists()
    with PassingFolder():
        assert not path.parent.exists()
    assert sorted(one.name for one in place.iterdir()) == ["elsewhere", "swapproof-linked", "swapproof-strange"]
    assert (place / "elsewhere" / LOCK).exists()
