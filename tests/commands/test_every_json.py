"""`--json` on every command: one object on the standard output and nothing else, with the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny
import typer.main
import unreadable
from command_runs import Capture

from swapproof.verifier.cli import app, main

Given = dict[str, Any]
Call = Callable[[Given, Path], list[object]]
SMALL = ["--limit", "2"]
CALLS: dict[str, Call] = {
    "demo": lambda given, out: ["--out", out],
    "init": lambda given, out: [
        given["task"].parent / "model.onnx", "--data", given["task"].parent / "texts.tsv",
        "--synonyms", given["task"].parent / "synonyms.json", "--out", out, "--set", "unknown=<unk>",
        "--set", "pad_side=right",
    ],
    "inspect": lambda given, out: [given["task"].parent / "model.onnx"],
    "certify": lambda given, out: [given["task"], "--out", out, *SMALL],
    "shards": lambda given, out: [given["task"], "--count", "2", "--out", out],
    "merge": lambda given, out: [given["run"], "--out", out],
    "check": lambda given, out: [given["run"]],
    "report": lambda given, out: [given["run"]],
    "compare": lambda given, out: [given["run"], given["other"], "--out", out],
    "bundle": lambda given, out: [given["run"], "--out", out],
    "attack": lambda given, out: [given["task"], "--method", "pdp", "--out", out, *SMALL],
    "measure": lambda given, out: [given["task"], "--quantity", "pr", "--radius", "1", "--out", out, *SMALL],
    "export": lambda given, out: [given["task"], "--text-id", "0", "--format", "smt2", "--out", out],
    "vipr": lambda given, out: [given["run"], "--text-id", given["proved"], "--out", out],
    "doctor": lambda given, out: [],
    "synonyms reject": lambda given, out: ["good", "fine", "--task", given["task"]],
    "bench exact": lambda given, out: [given["task"], "--engines", "exact,enumerate", *SMALL],
    "bench deep": lambda given, out: [given["deep"], "--engines", "boxes", "--radius", "1", *SMALL],
    "bench check": lambda given, out: [given["run"]],
    "bench run": lambda given, out: [given["task"], *SMALL],
    "bench growth": lambda given, out: ["--size", "small", "--engines", "exact"],
    "bench page": lambda given, out: [given["page"]],
}  # fmt: skip
ELSEWHERE = {"train", "defend", "paper", "verify", "bench papers"}
"""Commands whose object is looked at where their runs are made: they take long, or need more than a task."""


def leaves() -> Iterator[tuple[str, Any]]:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {own}", one) for own, one in inner.items())


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    folder = tmp_path_factory.mktemp("every")
    task = tiny.write_task(folder / "task")
    deep = tiny.write_task(folder / "deep")
    unreadable.lstm(deep.parent / "model.onnx")
    for name in ("run", "other"):
        assert main(["certify", str(task), "--out", str(folder / name)]) == 0
    lines = [json.loads(line) for line in (folder / "run" / "results.jsonl").read_text().splitlines()]
    proved = next(line["id"] for line in lines if line["min_swaps"]["low"] > 1)
    page = folder / "PAGE.md"
    page.write_text("# Figures\n")
    return {"task": task, "run": folder / "run", "other": folder / "other", "deep": deep, "page": page,
            "proved": proved}  # fmt: skip


def test_every_command_has_the_option() -> None:
    every = dict(leaves())
    assert [
        name for name, command in every.items() if "--json" not in {o for p in command.params for o in p.opts}
    ] == []
    assert every.keys() == CALLS.keys() | ELSEWHERE


@pytest.mark.parametrize("name", CALLS)
def test_it_prints_one_object_with_the_exit_code(given: Given, tmp_path: Path, capsys: Capture, name: str) -> None:
    capsys.readouterr()
    code = main([*name.split(), *map(str, CALLS[name](given, tmp_path / "out")), "--json"])
    printed = capsys.readouterr()
    assert code in (0, 3), printed.err
    found = json.loads(printed.out)
    assert found["exit_code"] == code
    assert len(found) > 1
