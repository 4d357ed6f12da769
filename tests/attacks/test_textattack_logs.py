"""TextAttack's CSV logs: what is written is what TextAttack 0.3.11 writes, and what is read is replayed first."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from command_runs import Capture, results
from hypothesis import given
from hypothesis import strategies as st
from tiny import ROWS, write_task

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.verifier.attacks.textattack.log_rows import COLUMNS, fields_of, marked, plainly, read_log, row_of
from swapproof.verifier.cli import main

TEXT = SwapText(("a good film, good!",), 0, ((2, 6), (7, 11), (13, 17)), (("good", "go", "fine"), ("film",), ("good",)))


def log_of(path: Path, *rows: tuple[str, str, str]) -> Path:
    """Original, perturbed, result; as pandas writes them."""
    with path.open("w", newline="") as file:
        table = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows([one, two, 0.1, 0.9, 1, 0, 1, 7.0, result] for one, two, result in rows)
    return path


def imported(task: Path, log: Path, out: Path, code: int = 0, *options: str) -> tuple[list[dict[str, Any]], Any]:
    assert main(["attack", str(task), "--read-textattack", str(log), "--out", str(out), *options]) == code
    return results(out), json.loads((out / "summary.json").read_text())


def test_what_is_written_is_read_as_the_same_run(tmp_path: Path) -> None:
    rows = [*ROWS, ("good film", "negative")]
    task, log = write_task(tmp_path / "task", rows), tmp_path / "log.csv"
    options = ["--method", "pdp", "--out", str(tmp_path / "own"), "--write-textattack", str(log)]
    assert main(["attack", str(task), *options]) == 0
    own = results(tmp_path / "own")
    again, summary = imported(task, log, tmp_path / "again")
    keys = ("id", "min_swaps", "witness", "status")
    first, second = ([{key: line[key] for key in keys} for line in lines if line["witness"]] for lines in (own, again))
    assert first == second
    broken = sum(line["witness"] is not None and line["status"] == "open" for line in own)
    assert summary["textattack"]["witness"] == broken
    with log.open(newline="") as file:
        logged = list(csv.DictReader(file))
    assert list(logged[0]) == list(COLUMNS)
    kinds = {"already_wrong": "Skipped"}
    for row, line in zip(logged, own, strict=True):
        ended = "Failed" if line["witness"] is None else "Successful"
        assert row["result_type"] == kinds.get(line["status"], ended)
        swaps = line["witness"]["swaps"] if line["witness"] else []
        assert row["perturbed_text"].count("[[") == len(swaps)
        assert all(f"[[{swap['to']}]]" in row["perturbed_text"] for swap in swaps)
        assert (float(row["perturbed_score"]) >= 0.5) == bool(line["witness"])


def test_a_log_replaces_only_what_the_same_run_wrote(tmp_path: Path, capsys: Capture) -> None:
    task, log, mine = write_task(tmp_path / "task"), tmp_path / "log.csv", tmp_path / "mine.csv"
    mine.write_text("a,b\n")

    def attack(run: str, to: Path) -> int:
        return main(
            ["attack", str(task), "--method", "greedy", "--out", str(tmp_path / run), "--write-textattack", str(to)]
        )

    for to, said in ((mine, "this command did not write it"), (tmp_path / "none" / "log.csv", "there is no folder")):
        assert attack("run", to) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "run").exists()
    assert mine.read_text() == "a,b\n"
    assert [attack("run", log), attack("run", log), attack("run", mine), attack("other", log)] == [0, 0, 2, 2]


def test_a_log_is_believed_in_nothing(tmp_path: Path, capsys: Capture) -> None:
    """Of four successes one is a sentence of the space, one is outside it, two are false; one text is absent."""
    rows = [
        ("a good film", "positive"),
        ("the great film", "positive"),
        ("bad film", "negative"),
        ("great", "positive"),
    ]
    task = write_task(tmp_path / "task", [*rows, ("good movie", "positive")])
    log = log_of(
        tmp_path / "log.csv",
        ("a [[good]] film", "a [[bad]] film", "Successful"),
        ("the [[great]] film", "the [[awful]] film", "Successful"),
        ("bad [[film]]", "bad [[movie]]", "Successful"),
        ("[[great]]", "[[good]]", "Maximized"),
        ("no text of ours", "none", "Failed"),
    )
    lines, summary = imported(task, log, tmp_path / "run", 3)
    assert [line["min_swaps"]["high"] for line in lines] == [1, None, None, None, None]
    found = [line["attack"]["textattack"]["found"] for line in lines]
    assert found == ["witness", "outside", "false success", "false success", "not in the log"]
    assert lines[0]["requests"] == 7
    assert {line["evaluations"] for line in lines} == {None} == {summary["evaluations"]}
    assert summary["textattack"]["false_ids"] == [2, 3]
    assert summary["broken"] == 1
    assert any("1 rows of log.csv are of no text of this task (row 5)" in remark for remark in summary["remarks"])
    assert "2 are false (texts 2, 3)" in " ".join(capsys.readouterr().out.split())
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_evaluations_of_a_log_are_not_known_where_attacks_are_compared(tmp_path: Path) -> None:
    task, out = write_task(tmp_path / "task", [("a good film", "positive")]), tmp_path / "both"
    log = log_of(tmp_path / "log.csv", ("a [[good]] film", "a [[bad]] film", "Successful"))
    assert main(["attack", str(task), "--method", "greedy", "--read-textattack", str(log), "--out", str(out)]) == 0
    own, read = json.loads((out / "comparison.json").read_text())["comparison"]["methods"]
    assert own["evaluations"] > 0
    assert (read["requests"], read["evaluations"]) == (7, None)
    assert ">-<" in (out / "report.html").read_text()


def test_limits_hold_for_a_log_too(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", [("a good film", "positive")])
    log = log_of(tmp_path / "log.csv", ("a [[good]] film", "a [[bad]] film", "Successful"))
    (line,), _ = imported(task, log, tmp_path / "run", 0, "--rho-max", "0.1")
    assert line["min_swaps"]["high"] is None
    assert line["attack"]["textattack"]["found"] == "outside"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("original_text,perturbed_text\na,b\n", "no column num_queries"),
        ("", "not a log of TextAttack"),
        ("original_text,perturbed_text,num_queries,result_type\na,b,3,Won\n", "row 1: result_type 'Won'"),
        ("original_text,perturbed_text,num_queries,result_type\na,b,many,Failed\n", "row 1: num_queries 'many'"),
        ("original_text,perturbed_text,num_queries,result_type\na,b,1,Failed\n", "none of its rows"),
    ],
)
def test_what_is_no_log_is_one_line(content: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    (tmp_path / "log.csv").write_text(content)
    out = ["--out", str(tmp_path / "run")]
    assert main(["attack", str(task), "--read-textattack", str(tmp_path / "log.csv"), *out]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_log_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_log(tmp_path / "none.csv")


def test_fields_of_pairs_have_their_names() -> None:
    """Verbatim from a log of TextAttack 0.3.11."""
    shown = "[[[[Premise]]]]: Two dogs run.<SPLIT>[[[[Hypothesis]]]]: Two [[dogs]] sleep."
    assert fields_of(shown) == ("Two dogs run.", "Two dogs sleep.")
    assert marked(("Two dogs run.", "Two dogs sleep."), ("premise", "hypothesis"), [(4, 8)], 1) == shown
    assert fields_of("one<SPLIT>two") == ("one\ntwo",)
    assert plainly(("a  [[b]] c",)) == ("a b c",)


def test_words_are_found_where_one_option_begins_another() -> None:
    assert row_of(TEXT, "a go film, good!") == [1, 0, 0]
    assert row_of(TEXT, "A Fine film, GOOD!") == [2, 0, 0]
    assert row_of(TEXT, "a good film, fine!") is None
    assert row_of(TEXT, "a good film good!") is None


@given(st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_every_sentence_of_a_space_is_found_again(numbers: list[int]) -> None:
    row = [number if number < len(options) else 0 for number, options in zip(numbers, TEXT.options, strict=True)]
    assert row_of(TEXT, TEXT.moved(row)) == row
