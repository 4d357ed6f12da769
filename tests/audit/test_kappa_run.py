"""`check` of a run of kappa: pairs are asked again, and every number that is published is counted anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import write_task

from swapproof.verifier.audit.by_kind import kappa_run
from swapproof.verifier.cli import main
from swapproof.verifier.single_words import part_search
from swapproof.verifier.single_words.kept_parts import MatrixPart

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("task"))


def measured(task: Path, run: Path, *more: str) -> Path:
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(run), *more]) == 0
    return run


@pytest.mark.parametrize("more", [(), ("--brute-force",), ("--euba", "4"), ("--brute-force", "--euba", "4")])
@pytest.mark.parametrize("exact", [(), ("--exact",)])
def test_a_run_is_accepted(
    task: Path, tmp_path: Path, more: tuple[str, ...], exact: tuple[str, ...], capsys: Capture
) -> None:
    run = measured(task, tmp_path / "run", *more)
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    capsys.readouterr()
    assert main(["check", str(run), *exact]) == 0
    *_, said, accepted = capsys.readouterr().out.splitlines()
    assert said.startswith("kappa has no certificates: 80 of 80 pairs")
    assert accepted == "accepted 8 of 8"
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before


def test_of_many_words_some_are_drawn(task: Path, tmp_path: Path, capsys: Capture, monkeypatch: Any) -> None:
    run = measured(task, tmp_path / "run")
    monkeypatch.setattr(kappa_run, "DRAWN", 1)
    capsys.readouterr()
    assert main(["check", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["remarks"][0].startswith("kappa has no certificates: 14 of 80 pairs")  # two texts no word flips


@pytest.mark.parametrize("exact", [(), ("--exact",)])
@pytest.mark.parametrize("flips", [True, False])
def test_a_pair_that_is_otherwise_is_refused(
    task: Path, tmp_path: Path, flips: bool, exact: tuple[str, ...], monkeypatch: Any, capsys: Capture
) -> None:
    """The whole run says so, from its store to its page: only the model says otherwise."""
    search = part_search.Searched.exactly

    def wrong(*about: Any) -> MatrixPart:
        part = search(*about)
        text, word = np.argwhere(part.flipped == flips)[0]
        part.flipped[text, word] = not flips
        return part

    with monkeypatch.context() as patch:
        patch.setattr(part_search.Searched, "exactly", wrong)
        run = measured(task, tmp_path / "run")
    capsys.readouterr()
    assert main(["check", str(run), *exact]) == 4
    assert "and it is otherwise" in capsys.readouterr().out


def changed_table(run: Path) -> None:
    table = (run / "kappa.csv").read_text()
    (run / "kappa.csv").write_text(table.replace("0.5", "0.25", 1))


def changed_rho(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    summary["rho"]["low"] += 0.01
    (run / "summary.json").write_text(json.dumps(summary))


def changed_line(run: Path) -> None:
    lines = (run / "results.jsonl").read_text().splitlines(keepends=True)
    line = json.loads(lines[0])
    line["words_that_flip_it"] -= 1
    (run / "results.jsonl").write_text("".join([json.dumps(line) + "\n", *lines[1:]]))


def changed_texts(run: Path) -> None:
    (run / "texts.jsonl").write_text((run / "texts.jsonl").read_text().replace("a good", "a  good"))


def changed_page(run: Path) -> None:
    (run / "report.html").write_text((run / "report.html").read_text().replace("rho", "RHO"))


@pytest.mark.parametrize("change", [changed_table, changed_rho, changed_line, changed_texts, changed_page])
def test_what_is_said_otherwise_in_one_place_is_refused(
    task: Path, tmp_path: Path, change: Callable[[Path], None], capsys: Capture
) -> None:
    run = measured(task, tmp_path / "run")
    change(run)
    capsys.readouterr()
    assert main(["check", str(run)]) == 4
    assert "accepted" not in capsys.readouterr().out


@pytest.mark.parametrize("damage", [{"kept_as": None}, {"kind": "other"}, {"level": "replay"}, {"kept_as": "euba"}])
def test_a_summary_that_names_no_such_way_is_one_line(
    task: Path, tmp_path: Path, damage: dict[str, str | None], capsys: Capture
) -> None:
    run = measured(task, tmp_path / "run")
    summary = json.loads((run / "summary.json").read_text()) | damage
    (run / "summary.json").write_text(json.dumps({name: value for name, value in summary.items() if value is not None}))
    capsys.readouterr()
    assert main(["check", str(run)]) == 2
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("swapproof:")]
    assert "summary.json: damaged" in line


def test_a_run_that_was_stopped_is_incomplete(task: Path, tmp_path: Path, capsys: Capture) -> None:
    run = measured(task, tmp_path / "run")
    (run / "summary.json").unlink()
    assert main(["check", str(run)]) == 3
    assert "incomplete" in capsys.readouterr().out
