"""One table of attacks on several tasks, and caps on requests that every attack keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_runs import Capture, results
from tiny import ROWS, write_task

from swapproof.verifier.cli import main


def test_a_table_of_several_tasks_has_a_row_for_each_task_and_attack(tmp_path: Path, capsys: Capture) -> None:
    one, other = write_task(tmp_path / "one"), write_task(tmp_path / "other", ROWS[:5])
    out = tmp_path / "out"
    command = ["attack", str(one), "--also", str(other), "--compare", "textfooler,pdp", "--out", str(out)]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["summary"]["tasks"]
    assert list(found) == ["one", "other"]
    for name, summary in found.items():
        for method in summary["comparison"]["methods"]:
            lines = results(out / name / method["method"])
            assert method["succ"] == sum(line["min_swaps"]["high"] is not None for line in lines)
    assert main(command) == 0
    said = capsys.readouterr().out
    assert said.count("textfooler") == said.count("pdp") == 2
    assert "#Win" in said


def test_tasks_that_do_not_go_together_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    out = ["--out", str(tmp_path / "out")]
    assert main(["attack", str(task), "--also", str(task), "--compare", "pdp,beam", *out]) == 2
    assert "two tasks are called task" in capsys.readouterr().err
    assert main(["attack", str(task), "--also", str(tmp_path / "no.toml"), "--compare", "pdp,beam", *out]) == 2
    assert main(["attack", str(task), "--also", str(task), "--method", "pdp", *out]) == 2
    assert "give --compare A,B" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("most", [1, 7])
def test_no_attack_asks_more_than_the_cap(most: int, tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    out = tmp_path / "out"
    names = "textfooler,pwws,hotflip,beam,pdp,sempso,leap,local-released,best"
    assert main(["attack", str(task), "--compare", names, "--queries", str(most), "--out", str(out)]) == 0
    assert f"at most {most} requests a text" in " ".join(capsys.readouterr().out.split())
    for name in names.split(","):
        assert all(line["requests"] <= most for line in results(out / name))
    assert main(["attack", str(task), "--method", "pdp", "--queries", "0", "--out", str(tmp_path / "x")]) == 2
    assert main(["attack", str(task), "--method", "pdp", "--queries", "9", "--out", str(out / "pdp")]) == 2
    assert "the run there is another one" in capsys.readouterr().err


def test_our_attack_for_few_requests_wins_where_they_are_few(tmp_path: Path) -> None:
    """With gradients a sentence is guessed at each step, and only that one is asked about."""
    task = write_task(tmp_path / "task")
    out = tmp_path / "out"
    assert main(["attack", str(task), "--compare", "hotflip,pdp,best", "--queries", "4", "--out", str(out)]) == 0
    rows = json.loads((out / "comparison.json").read_text())["comparison"]["methods"]
    won = {row["method"]: row["win"] for row in rows}
    assert won["best"] == max(won.values())
