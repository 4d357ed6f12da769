"""`compare`: runs over the same texts and swaps, side by side; others are refused in one line that says where."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_runs import Capture, results
from report_rows import rows_in
from tiny import ROWS, weaker, write_task

from swapproof.verifier.cli import main

MEASURE = ["measure", "--quantity", "pr", "--radius", "2"]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("both")
    for name in ("one", "two"):
        task = write_task(folder / name)
        if name == "two":
            weaker(task)
        assert main(["certify", str(task), "--out", str(folder / name / "run")]) == 0
    return folder / "one" / "run", folder / "two" / "run"


def compare(capsys: Capture, out: Path, *runs: Path) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["compare", *map(str, runs), "--out", str(out), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_paired_differences_are_those_of_the_lines(both: tuple[Path, Path], tmp_path: Path, capsys: Capture) -> None:
    found = compare(capsys, tmp_path / "out", *both)
    assert [one["name"] for one in found["runs"]] == ["one/run", "two/run"]
    (pair,) = found["against_the_first"]
    lines = [results(run) for run in both]
    for share in pair["shares"]:
        kept = [[line["status"] == "unbreakable" or line["min_swaps"]["low"] > share["radius"] for line in some]
                for some in lines]  # fmt: skip
        gained = sum(not one and other for one, other in zip(*kept, strict=True))
        lost = sum(one and not other for one, other in zip(*kept, strict=True))
        assert (share["gained"]["low"], share["lost"]["low"]) == (gained, lost)
        assert share["difference"]["low"] == pytest.approx((gained - lost) / len(ROWS), abs=1e-6)
        assert share["interval"]["low"] <= share["difference"]["low"]
    assert pair["moved"]["worse"] == len(pair["worse"]) > 0
    assert sum(pair["moved"].values()) == len(ROWS)
    assert sum(group["texts"] for group in pair["by_class"]) == len(ROWS)
    assert sum(group["texts"] for group in pair["by_length"]) == len(ROWS)
    with (tmp_path / "out" / "compare.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows if row["two/run: moved"] == "worse"] == sorted(pair["worse"])
    _, _, held = page_rows(tmp_path / "out")
    assert [cells[0] for cells, _ in held][: len(pair["worse"])] == pair["worse"]


def page_rows(out: Path) -> tuple[Any, Any, list[Any]]:
    return rows_in((out / "compare.html").read_text())


def test_the_terminal_says_what_got_worse_and_defines_every_table(
    both: tuple[Path, Path], tmp_path: Path, capsys: Capture
) -> None:
    assert main(["compare", *map(str, both), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    said = " ".join(printed.split())
    assert "What got worse in two/run" in said
    assert "McNemar's exact test" in said
    assert "bootstrap resamples of the texts (seed 1)" in said
    assert "two/run against one/run:" in said


def test_a_run_that_says_little_is_said_to(tmp_path: Path, capsys: Capture) -> None:
    for name in ("one", "two"):
        task = write_task(tmp_path / name)
        (tmp_path / name / "synonyms.json").write_text("{}")
        assert main(["certify", str(task), "--out", str(tmp_path / name / "run")]) == 0
    runs = [str(tmp_path / name / "run") for name in ("one", "two")]
    assert main(["compare", *runs, "--out", str(tmp_path / "out")]) == 0
    assert "one/run says little: there is nothing to swap in any text" in capsys.readouterr().out
    assert '<p class="verdict incomplete"><span class="claim">' in (tmp_path / "out" / "compare.html").read_text()


def test_a_run_beside_a_copy_of_itself_differs_in_nothing(
    both: tuple[Path, Path], tmp_path: Path, capsys: Capture
) -> None:
    shutil.copytree(both[0], tmp_path / "copy")
    found = compare(capsys, tmp_path / "out", both[0], tmp_path / "copy")
    assert found["against_the_first"][0]["moved"] == {"worse": 0, "better": 0, "not_settled": 0, "same": len(ROWS)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": [*ROWS[:-1], ("great great great great great great", "negative")]}, "text 7 has the label negative"),
        ({"rows": ROWS[:-1]}, "has 7 texts, and"),
        ({"rows": [("a bad film", "positive"), *ROWS[1:]]}, "text 0 is another one than in"),
        ({"swaps_max_per_word": 1}, "text 0, word 1 (good) can become fine, and fine, bad in"),
    ],
)
def test_other_texts_labels_and_swaps_are_refused_saying_where(
    both: tuple[Path, Path], tmp_path: Path, capsys: Capture, changes: dict[str, Any], said: str
) -> None:
    assert main(["certify", str(write_task(tmp_path / "task", **changes)), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["compare", str(both[0]), str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_runs_of_attack_and_measure_are_compared_each_with_its_kind(tmp_path: Path, capsys: Capture) -> None:
    runs: dict[str, list[Path]] = {"attack": [], "pr": [], "kappa": [], "msr": []}
    for name in ("one", "two"):
        task = write_task(tmp_path / name)
        if name == "two":
            weaker(task)
        for kind, words in (
            ("attack", ["attack", str(task), "--method", "greedy"]),
            ("pr", [MEASURE[0], str(task), *MEASURE[1:]]),
            ("kappa", ["measure", str(task), "--quantity", "kappa"]),
            ("msr", ["measure", str(task), "--quantity", "msr", "--words", "all", "--seconds", "1"]),
        ):
            runs[kind].append(tmp_path / name / kind)
            assert main([*words, "--out", str(runs[kind][-1])]) in (0, 3)
    for kind, folders in runs.items():
        found = compare(capsys, tmp_path / "out" / kind, *folders)
        assert found["kind"] == kind
        assert found["against_the_first"][0]["moved"]["worse"] > 0
        assert "<h1>" in (tmp_path / "out" / kind / "compare.html").read_text()
    assert main(["compare", str(runs["pr"][0]), str(runs["attack"][0]), "--out", str(tmp_path / "x")]) == 2
    assert "give runs of one kind" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["run", "strange"])
def test_a_folder_with_other_files_is_left_alone(
    both: tuple[Path, Path], tmp_path: Path, capsys: Capture, place: str
) -> None:
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "mine.txt").write_text("mine")
    out = both[0] if place == "run" else tmp_path / "strange"
    before = sorted(out.iterdir())
    assert main(["compare", *map(str, both), "--out", str(out)]) == 2
    assert "give --out a new folder" in capsys.readouterr().err
    assert sorted(out.iterdir()) == before


def test_one_run_and_the_same_run_twice_are_no_comparison(both: tuple[Path, Path], tmp_path: Path) -> None:
    assert main(["compare", str(both[0]), "--out", str(tmp_path / "out")]) == 2
    assert main(["compare", str(both[0]), str(both[0]), "--out", str(tmp_path / "out")]) == 2


def test_unfinished_runs_are_refused(both: tuple[Path, Path], tmp_path: Path, capsys: Capture) -> None:
    shutil.copytree(both[1], tmp_path / "copy")
    (tmp_path / "copy" / "summary.json").unlink()
    assert main(["compare", str(both[0]), str(tmp_path / "copy"), "--out", str(tmp_path / "out")]) == 2
    assert "the run is not finished" in capsys.readouterr().err
