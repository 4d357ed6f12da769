"""A limit of time for a text under attack, and answers that are kept while it is attacked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_runs import Capture, results
from tiny import write_task

from swapproof.verifier.attacks import timed_answers
from swapproof.verifier.attacks.attacked_text import Spent
from swapproof.verifier.attacks.sentence_answers import OfNetwork
from swapproof.verifier.attacks.timed_answers import KeptAnswers, TimedAnswers
from swapproof.verifier.cli import main


def attack(task: Path, run: Path, *more: str) -> list[dict[str, Any]]:
    assert main(["attack", str(task), "--method", "greedy", "--out", str(run), *more]) == 0
    return [{name: value for name, value in line.items() if name != "seconds"} for line in results(run)]


def test_what_was_found_in_time_stands_and_more_time_finds_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    task = write_task(tmp_path / "task")
    whole = attack(task, tmp_path / "whole")
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(timed_answers.TimedAnswers, "look", lambda self: out_of_time(self))
        late = attack(task, run, "--seconds", "5")
    assert any(line["attack"].get("out_of_time") for line in late)
    assert all(line["reason"].startswith("out of time; ") for line in late if line["attack"].get("out_of_time"))
    assert json.loads((run / "summary.json").read_text())["out_of_time"] > 0
    assert main(["check", str(run)]) in (0, 3)
    assert attack(task, run, "--seconds", "600") == whole
    assert main(["attack", str(task), "--method", "greedy", "--out", str(run), "--seconds", "5"]) == 2
    assert "--seconds 5 is less" in capsys.readouterr().err
    assert main(["attack", str(task), "--method", "greedy", "--out", str(tmp_path / "no"), "--seconds", "0"]) == 2


def out_of_time(timed: TimedAnswers) -> None:
    timed.late = True
    raise Spent


def test_an_attack_that_was_stopped_asks_nothing_twice_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after twenty questions, again and again, where every answer is kept at once."""
    task = write_task(tmp_path / "task", [("the great great good movie", "positive")])
    run, asked = tmp_path / "run", [0, 0]
    arguments = ["attack", str(task), "--method", "beam", "--seconds", "600", "--out"]
    answered = OfNetwork.answered

    def counted(self: OfNetwork, rows: Any) -> Any:
        if asked[1] >= 3:
            raise KeyboardInterrupt
        asked[0], asked[1] = asked[0] + len(rows), asked[1] + 1
        return answered(self, rows)

    monkeypatch.setattr(timed_answers, "EVERY", 0.0)
    monkeypatch.setattr(timed_answers, "AGAIN", 0.0)
    monkeypatch.setattr(OfNetwork, "answered", counted)
    codes: list[int] = []
    while not codes or codes[-1] == 130:
        asked[1] = 0
        codes.append(main([*arguments, str(run)]))
    assert codes[-1] == 0
    assert len(codes) > 1
    monkeypatch.undo()
    again = [{k: v for k, v in line.items() if k != "seconds"} for line in results(run)]
    assert main([*arguments, str(tmp_path / "beam")]) == 0
    expected = [{k: v for k, v in line.items() if k != "seconds"} for line in results(tmp_path / "beam")]
    assert again == expected
    assert asked[0] == expected[0]["evaluations"]
    assert not list(run.glob("transcripts/*"))


def test_a_file_that_was_not_wholly_written_or_is_of_another_text_is_not_believed(tmp_path: Path) -> None:
    path, rows = tmp_path / "kept", np.array([[0, 1], [1, 0]], dtype=np.int32)
    kept = KeptAnswers.at(path, "a text")
    kept.add(rows, np.array([[1.0, 2.0], [3.0, 4.0]]))
    kept.write()
    kept.add(rows + 1, np.array([[5.0, 6.0], [7.0, 8.0]]))
    kept.write()
    whole = path.read_bytes()
    assert len(KeptAnswers.at(path, "a text").known) == 4
    assert not KeptAnswers.at(path, "another text").known
    path.write_bytes(whole[:-3])
    cut = KeptAnswers.at(path, "a text")
    assert len(cut.known) == 2
    cut.add(rows + 1, np.array([[5.0, 6.0], [7.0, 8.0]]))
    cut.write()
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert len(KeptAnswers.at(path, "a text").known) == 2
