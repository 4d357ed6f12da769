"""Packages of public registries with classifiers in them, as models/PACKAGES.md has them: found as archives beside the
repository, or skipped."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("SWAPPROOF_PACKAGES", ROOT.parent / "packages"))
PAGE = (ROOT / "models" / "PACKAGES.md").read_text("utf-8")
ROW = re.compile(r"^\| (PyPI|npm) `([a-z-]+)` ([\d.]+) \| `([0-9a-f]{64})` \|", re.MULTILINE)
HASHES = {name: sha256 for _, name, _, sha256 in ROW.findall(PAGE)}
ARCHIVES = {
    name: f"{name}-{version}.tgz" if registry == "npm" else f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    for registry, name, version, _ in ROW.findall(PAGE)
}
NEEDED = {
    "alt-profanity-check": ("sklearn", "skops"),
    "archguard": ("sklearn", "model2vec"),
    "cloneguard": ("tokenizers",),
    "contract-nli": ("torch",),
    "llm-jailbreak": ("sklearn", "skops"),
    "promptbadger": (),
    "toxic-comment-classifier": ("h5py",),
}
IMPORTED = ("archguard", "badger", "contract_nli", "promptbadger")
TRAINED_ON = 5000


def example(name: str) -> tuple[str | None, dict[str, Any]]:
    """The code of a package's section, if there is any, and its task."""
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (task,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    return (code[0] if code else None), tomllib.loads(task)


def unpacked(name: str, folder: Path) -> None:
    """Into this folder, if the archive is there and is the one that is meant."""
    path = FOLDER / ARCHIVES[name]
    if not path.is_file():
        pytest.skip(f"no {path.name} beside the repository")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == HASHES[name]
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as file:
            file.extractall(folder)
    else:
        with tarfile.open(path) as file:
            file.extractall(folder, filter="data")


def made_ready(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The archive unpacked and the code of the page run in this folder; gives the names that the code leaves."""
    for package in NEEDED[name]:
        pytest.importorskip(package)
    unpacked(name, folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for module in [module for module in sys.modules if module.split(".")[0] in IMPORTED]:
        del sys.modules[module]
    code, task = example(name)
    if code is None:
        return {}
    if "callable" in task["model"]:
        Path(task["model"]["callable"].partition(":")[0]).with_suffix(".py").write_text(code, "utf-8")
        return {}
    if name == "archguard":
        write_training_texts()
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, name, "exec"), names)
    return names


def write_training_texts() -> None:
    """The first of SST-2, as train.tsv."""
    path = ROOT.parent / "shared" / "data" / "sst2" / "train.tsv"
    if not path.is_file():
        pytest.skip("no SST-2 beside the repository")
    lines = path.read_text("utf-8").splitlines(keepends=True)[: TRAINED_ON + 1]
    Path("train.tsv").write_text("".join(lines), "utf-8")


def node() -> str:
    path = shutil.which("node")
    if path is None:
        pytest.skip("no node")
    return path
