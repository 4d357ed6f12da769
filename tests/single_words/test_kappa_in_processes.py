"""kappa in several processes and with a limit of time: the same matrix, or less of it and that said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import write_task

from swapproof.verifier.cli import main
from swapproof.verifier.single_words import flip_matrix, part_search


class Hurrying:
    """A clock on which a thousand seconds pass between two looks."""

    now = 0.0

    def monotonic(self) -> float:
        self.now += 1000.0
        return self.now


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("task"))


def kappa(task: Path, run: Path, *more: str, code: int = 0) -> tuple[str, dict[str, Any]]:
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(run), *more]) == code
    summary = json.loads((run / "summary.json").read_text())
    return (run / "kappa.csv").read_text(), summary["rho"]


@pytest.mark.parametrize("more", [[], ["--brute-force"]])
def test_several_processes_find_the_same(
    task: Path, tmp_path: Path, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flip_matrix, "SHALLOW_TOGETHER", 2)
    alone = kappa(task, tmp_path / "alone", *more)
    assert kappa(task, tmp_path / "two", "--jobs", "2", *more) == alone
    assert (tmp_path / "two" / "results.jsonl").read_bytes() == (tmp_path / "alone" / "results.jsonl").read_bytes()


def test_a_text_whose_time_is_up_leaves_an_interval_and_more_time_closes_it(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kappa(task, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(part_search, "time", Hurrying())
        _, rho = kappa(task, tmp_path / "run", "--seconds", "1", code=3)
    assert rho["low"] <= whole[1]["low"] <= whole[1]["high"] <= rho["high"]
    assert rho["low"] < rho["high"]
    assert kappa(task, tmp_path / "run", "--seconds", "600") == whole
