"""What is to be true of every kind of run: interrupted, gone on with, checked and put together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runs import Capture, results, timeless
from run_kinds import CHECKED, command, task_for
from tiny import ROWS, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.runs import workers
from swapproof.verifier.runs.jobs.worker_process import settle_here

KNOWN = [row for row in ROWS if "," not in row[0]]
"""The vocabulary has every word of these."""


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def task(kind: str) -> Path:
        if kind not in made:
            made[kind] = task_for(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    return task


def interrupted_at(monkeypatch: pytest.MonkeyPatch, id: int) -> None:
    """The user presses Ctrl-C at this text."""

    def settled(station: Any, text: Any) -> Any:
        if text.id == id:
            raise KeyboardInterrupt
        return settle_here(station, text)

    monkeypatch.setattr(workers, "settle_here", settled)


@pytest.mark.parametrize("kind", CHECKED)
def test_check_of_an_interrupted_run_ends_with_3(
    kind: str, tasks: Callable[[str], Path], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has is right, and is not the whole of it; the same command brings the rest."""
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupted_at(patch, 6)
        assert main(command(kind, tasks(kind), run)) == 130
    rest = 8 - len(results(run))
    assert 0 < rest < 8
    capsys.readouterr()
    assert main(["check", str(run)]) == 3
    said = f"incomplete: {rest} of the run's 8 texts have no line in results.jsonl: they are not settled"
    out = capsys.readouterr().out
    assert said in out
    assert "accepted " not in out.splitlines()[-1]
    assert main(["check", str(run), "--json"]) == 3
    assert any(remark.startswith(said) for remark in json.loads(capsys.readouterr().out)["remarks"])
    (run / "results.jsonl").unlink()  # as after a kill, which leaves the store alone
    assert main(["check", str(run)]) == 3
    assert capsys.readouterr().out.startswith(f"incomplete: {run}: the run was killed before it wrote what it found")
    assert main(command(kind, tasks(kind), run)) == 0
    assert len(results(run)) == 8
    capsys.readouterr()
    assert main(["check", str(run)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("accepted ")


def test_check_of_radii_of_which_one_was_interrupted_ends_with_3(
    tasks: Callable[[str], Path], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    arguments = ["measure", str(tasks("pr")), "--quantity", "pr", "--radius", "1,2", "--out", str(run)]
    with monkeypatch.context() as patch:
        interrupted_at(patch, 6)
        assert main(arguments) == 130
    capsys.readouterr()
    assert main(["check", str(run)]) == 3
    assert "incomplete: not all of the radii are measured" in capsys.readouterr().out
    assert main(["check", str(run), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["exit_code"] == 3
    assert main(arguments) == 0
    assert main(["check", str(run)]) == 0


@pytest.mark.parametrize("kind", [kind for kind in CHECKED if kind != "certify"])
def test_runs_of_shards_put_together_are_the_run_of_the_whole_task(
    kind: str, tasks: Callable[[str], Path], tmp_path: Path, capsys: Capture
) -> None:
    whole, shards, merged = tmp_path / "whole", tmp_path / "shards", tmp_path / "merged"
    assert main(["shards", str(tasks(kind)), "--count", "2", "--out", str(shards)]) == 0
    runs = [shards / f"run-{number}" for number in (0, 1)]
    for number, run in enumerate(runs):
        assert main(command(kind, shards / f"shard-000{number}.toml", run)) == 0
    assert main(command(kind, tasks(kind), whole)) == 0
    assert main(["merge", str(runs[1]), str(runs[0]), "--out", str(merged)]) == 0
    assert timeless(results(merged)) == timeless(results(whole))
    assert summary_in(merged) == summary_in(whole)
    capsys.readouterr()
    assert main(["check", str(merged)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("accepted ")
    assert main(["report", str(merged)]) == 0


def summary_in(run: Path) -> dict[str, Any]:
    """Without what the clock says."""
    summary = dict(json.loads((run / "summary.json").read_text()))
    return {name: value for name, value in summary.items() if name not in ("seconds", "slowest", "model")}


def test_runs_of_different_kinds_or_of_kappa_are_not_put_together(
    tasks: Callable[[str], Path], tmp_path: Path, capsys: Capture
) -> None:
    runs = {kind: tmp_path / kind for kind in ("certify", "attack", "kappa")}
    for kind, run in runs.items():
        assert main(command(kind, tasks("certify"), run)) == 0
    capsys.readouterr()
    assert main(["merge", str(runs["certify"]), str(runs["attack"]), "--out", str(tmp_path / "out")]) == 2
    assert "what is measured" in capsys.readouterr().err
    assert main(["merge", str(runs["kappa"]), "--out", str(tmp_path / "out")]) == 2
    assert "a run of kappa, whose numbers are of all texts together" in capsys.readouterr().err


def skipping(folder: Path, unread: int, texts: int) -> Path:
    """So many texts, behind others that shards count and this model, whose vocabulary has no unknown word, is not
    given."""
    rows = [*[("unheard film", "positive")] * unread, *KNOWN[:texts]]
    return write_task(folder, rows, model_unknown="<none>", data_on_error="skip")


@pytest.mark.parametrize(("unread", "missing"), [(2, ()), (3, (2,))])
def test_shards_of_which_the_data_end_early_are_all_there(
    unread: int, missing: tuple[int, ...], tmp_path: Path, capsys: Capture
) -> None:
    """Of nine rows that were counted the last shard has fewer than the others, or none at all."""
    task, shards, merged = skipping(tmp_path / "task", unread, 9 - unread), tmp_path / "shards", tmp_path / "merged"
    assert main(["shards", str(task), "--count", "3", "--out", str(shards)]) == 0
    runs = []
    for number in range(3):
        run = tmp_path / f"run-{number}"
        made = main(command("certify", shards / f"shard-000{number}.toml", run))
        assert made == (2 if number in missing else 0)
        assert run.exists() == (number not in missing)
        runs += [] if number in missing else [str(run)]
    assert ("merge needs no run of this one" in capsys.readouterr().err) == bool(missing)
    assert main(["merge", *runs, "--out", str(merged)]) == 0
    assert [line["text"] for line in results(merged)] == [text for text, _ in KNOWN[: 9 - unread]]
    assert main(["check", str(merged)]) == 0


def test_a_limit_is_no_early_end_of_the_data(tmp_path: Path, capsys: Capture) -> None:
    task, shards = skipping(tmp_path / "task", 2, 7), tmp_path / "shards"
    assert main(["shards", str(task), "--count", "2", "--out", str(shards)]) == 0
    runs = [str(tmp_path / f"run-{number}") for number in range(2)]
    assert main(command("certify", shards / "shard-0000.toml", Path(runs[0]))) == 0
    assert main(command("certify", shards / "shard-0001.toml", Path(runs[1]), "--limit", "2")) == 0
    assert main(["merge", *runs, "--out", str(tmp_path / "merged")]) == 2
    assert "no run has texts 6 to 8; give their runs too" in capsys.readouterr().err
    assert main(command("certify", shards / "shard-0001.toml", Path(runs[1]))) == 0
    assert main(["merge", *runs, "--out", str(tmp_path / "merged")]) == 0
