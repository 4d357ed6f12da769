"""The examples for continuous integration are what they say: files that parse, and commands that run."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tiny import weaker, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.tasks.sections import RequireSection

PAGE = Path(__file__).parents[2] / "verifier" / "CI.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def documents() -> list[Any]:
    yaml = pytest.importorskip("yaml")
    return [yaml.safe_load(block) for block in blocks("yaml")]


def run(command: str) -> int:
    program, *arguments = shlex.split(command)
    assert program == "swapproof"
    return main(arguments)


def test_what_is_required_is_read() -> None:
    (block,) = blocks("toml")
    asked = RequireSection.model_validate(tomllib.loads(block)["require"]).asked
    assert asked == ("certified_accuracy", "mmws", "no_text_broken_by")


def test_the_action_runs_and_leaves_the_files_that_it_uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    action = documents()[0]
    assert True in action or "on" in action  # YAML 1.1 reads `on` as true
    steps = action["jobs"]["certify"]["steps"]
    write_task(tmp_path)
    monkeypatch.chdir(tmp_path)
    codes = {step["name"]: run(step["run"]) for step in steps if step.get("run", "").startswith("swapproof")}
    assert codes == {"certify": 0, "check": 0, "report": 0}
    uploads = [
        step["with"].get("sarif_file") or step["with"]["path"] for step in steps if "upload" in step.get("uses", "")
    ]
    assert uploads
    assert all((tmp_path / name).exists() for name in uploads)


def test_the_hook_passes_the_model_of_the_baseline_and_stops_a_weaker_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hook,) = documents()[1]["repos"][0]["hooks"]
    monkeypatch.chdir(tmp_path)
    task = write_task(tmp_path)
    assert re.search(hook["files"], task.name)
    assert run("swapproof certify task.toml --out runs/baseline --limit 50") == 0
    assert run(hook["entry"]) == 0
    weaker(task)
    assert run(hook["entry"]) == 1
    assert run("swapproof compare runs/baseline runs/hook --out runs/compared") == 0
