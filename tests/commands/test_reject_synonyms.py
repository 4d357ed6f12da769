"""`synonyms reject`: the pair is gone from every space, counted, and only the texts that had it are settled again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_runs import Capture, results, timeless
from tiny import write_task

from swapproof.verifier.cli import main
from swapproof.verifier.synonyms.rejected_pairs import read_rejected


def spaces(run: Path) -> list[list[list[str]]]:
    return [json.loads(line)["choices"] for line in (run / "spaces.jsonl").read_text().splitlines()]


def certify(task: Path, run: Path, *more: str) -> dict[str, Any]:
    assert main(["certify", str(task), "--out", str(run), *more]) == 0
    summary: dict[str, Any] = json.loads((run / "summary.json").read_text())
    return summary


def test_only_the_texts_that_had_the_pair_are_settled_again(tmp_path: Path, capsys: Capture) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    certify(task, run)
    before, lines = spaces(run), results(run)
    assert main(["synonyms", "reject", "Good", "bad", "--task", str(task)]) == 0
    assert "neither stands for the other any more" in capsys.readouterr().out
    summary = certify(task, run)
    with_pair = [id for id, words in enumerate(before) for word in words if word[0] == "good" and "bad" in word]
    assert with_pair
    assert not [word for words in spaces(run) for word in words if "bad" in word[1:] and word[0] == "good"]
    assert summary["swaps"]["removed"]["rejected by a reader"] == len(with_pair)
    kept = [id for id in range(len(lines)) if id not in with_pair]
    again = results(run)
    assert [again[id] for id in kept] == [lines[id] for id in kept]  # to the second that they took
    assert main(["check", str(run)]) == 0
    fresh = tmp_path / "fresh"
    certify(task, fresh)
    ends = [[(line["min_swaps"], line["status"]) for line in timeless(some)] for some in (again, results(fresh))]
    assert ends[0] == ends[1]


def test_frozen_spaces_honour_the_list_too(tmp_path: Path) -> None:
    certify(write_task(tmp_path / "task"), tmp_path / "run")
    task = write_task(
        tmp_path / "frozen", swaps_file=None, swaps_max_per_word=None, swaps_frozen=str(tmp_path / "run/spaces.jsonl")
    )
    assert main(["synonyms", "reject", "film", "movie", "--task", str(task)]) == 0
    summary = certify(task, tmp_path / "again")
    assert summary["swaps"]["removed"]["rejected by a reader"] > 0
    assert not [word for words in spaces(tmp_path / "again") for word in words if {"film", "movie"} <= set(word)]
    assert main(["check", str(tmp_path / "again")]) == 0


def test_a_pair_that_no_swap_is_is_said_and_written_down(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    for pair, said in ((("bad", "GOOD"), False), (("nosuchword", "other"), True)):
        assert main(["synonyms", "reject", *pair, "--task", str(task)]) == 0
        assert ("has no swap of these two" in capsys.readouterr().out) == said
    assert frozenset({"nosuchword", "other"}) in read_rejected(tmp_path / "task" / "rejected.tsv")


def test_line_ends_of_a_task_file_stay_what_they_are(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    task.write_bytes(task.read_bytes().replace(b"[swaps]", b"[swaps] # of a table").replace(b"\n", b"\r\n"))
    before = task.read_bytes()
    assert main(["synonyms", "reject", "good", "bad", "--task", str(task)]) == 0
    after = task.read_bytes()
    assert after.replace(b'rejected = "rejected.tsv"\r\n', b"") == before != after


def test_the_task_file_keeps_every_other_byte_and_a_pair_is_listed_once(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    task.write_text("# mine\n" + task.read_text().replace("[swaps]", "[swaps]  # of a table"))
    before = task.read_text()
    for pair in (["good", "bad"], ["bad", "good"], ["film", "movie"]):
        assert main(["synonyms", "reject", *pair, "--task", str(task)]) == 0
    assert task.read_text().replace('rejected = "rejected.tsv"\n', "") == before
    assert read_rejected(tmp_path / "task" / "rejected.tsv") == {
        frozenset({"good", "bad"}),
        frozenset({"film", "movie"}),
    }
    assert "already rejected" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [(["good", "GOOD"], "no swap of itself"), (["a\tb", "c"], "not a word"), (["", "c"], "not a word")],
)
def test_what_is_no_pair_changes_nothing(tmp_path: Path, capsys: Capture, words: list[str], said: str) -> None:
    task = write_task(tmp_path / "task")
    before = task.read_text()
    assert main(["synonyms", "reject", *words, "--task", str(task)]) == 2
    assert said in capsys.readouterr().err
    assert task.read_text() == before
    assert not (tmp_path / "task" / "rejected.tsv").exists()


def test_a_list_that_is_none_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task", swaps_rejected="rejected.tsv")
    (tmp_path / "task" / "rejected.tsv").write_text("good\tbad\none two three\n")
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "rejected.tsv, line 2: not a pair" in error
    assert error.count("\n") == 1
