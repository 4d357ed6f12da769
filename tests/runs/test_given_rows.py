"""The rows a run is about: samples that anybody can draw again, rows that are skipped and counted, defects listed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tiny import ROWS, write_task

from swapproof.encodings.errors import BadInput
from swapproof.models.errors import BrokenRows
from swapproof.verifier.cli import main
from swapproof.verifier.tasks.inputs import Inputs, read_inputs
from swapproof.verifier.tasks.task import read_task

Capture = pytest.CaptureFixture[str]
MANY = [(f"{text} {'good ' * (number % 3)}", label) for number in range(25) for text, label in ROWS]


def inputs(folder: Path, rows: list[tuple[str, str]] | None = None, limit: int | None = None, **data: Any) -> Inputs:
    task = write_task(folder, rows, **{f"data_{key}": value for key, value in data.items()})
    return read_inputs(read_task(task), 6, limit)


def texts(found: Inputs) -> list[str]:
    return [text.encoded.text for text in found.texts]


class TestSample:
    def test_it_is_the_rows_with_the_least_keys(self, tmp_path: Path) -> None:
        """The method is written down: SHA-256 of `swapproof sample 1:SEED:ROW`."""
        keys = [hashlib.sha256(f"swapproof sample 1:7:{row}".encode()).hexdigest() for row in range(len(MANY))]
        drawn = sorted(range(len(MANY)), key=keys.__getitem__)[:20]
        found = inputs(tmp_path, MANY, sample=20, seed=7)
        assert texts(found) == [MANY[row][0] for row in drawn]
        assert [text.id for text in found.texts] == list(range(20))

    def test_a_larger_one_begins_with_a_smaller_and_a_limit_takes_its_first(self, tmp_path: Path) -> None:
        large, small = inputs(tmp_path, MANY, sample=50, seed=1), inputs(tmp_path, MANY, sample=20, seed=1)
        assert texts(large)[:20] == texts(small) == texts(inputs(tmp_path, MANY, 20, sample=50, seed=1))
        assert texts(inputs(tmp_path, MANY, sample=20, seed=2)) != texts(small)

    def test_every_row_is_drawn_equally_often(self, tmp_path: Path) -> None:
        rows = [(f"good {number}", "positive") for number in range(10)]
        drawn = Counter(text for seed in range(200) for text in texts(inputs(tmp_path, rows, sample=3, seed=seed)))
        assert len(drawn) == 10
        assert all(30 <= number <= 90 for number in drawn.values())  # 60 expected, 6.5 its standard deviation

    def test_a_balanced_one_takes_as_many_of_every_class(self, tmp_path: Path) -> None:
        rows = [("good film", "positive")] * 60 + [(f"awful {number}", "negative") for number in range(9)]
        found = inputs(tmp_path, rows, sample=12, seed=1, balanced=True)
        assert [text.label for text in found.texts] == [0, 1] * 6
        odd = inputs(tmp_path, rows, sample=7, seed=1, balanced=True)
        assert texts(odd) == texts(found)[:7]
        with pytest.raises(BadInput, match="9 rows of class 0, and a sample of 30 needs 15"):
            inputs(tmp_path, rows, sample=30, seed=1, balanced=True)

    def test_more_than_there_are_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="8 rows, and a sample of 9 needs 9"):
            inputs(tmp_path, sample=9, seed=1)

    def test_a_run_of_a_sample_is_checked_and_grows(self, tmp_path: Path) -> None:
        run = tmp_path / "run"
        for size in (5, 12):
            task = write_task(tmp_path / "task", MANY, data_sample=size, data_seed=3)
            assert main(["certify", str(task), "--out", str(run)]) == 0
        assert len((run / "results.jsonl").read_text().splitlines()) == 12
        assert main(["check", str(run), "--quiet"]) == 0

    def test_frozen_spaces_know_a_text_by_its_row(self, tmp_path: Path) -> None:
        rows = [(f"good {'the ' * number}", "positive") for number in range(5)]
        lines = [json.dumps({"id": number, "choices": [["good", "fine"], *[["the"]] * number]}) for number in range(5)]
        (tmp_path / "spaces.jsonl").write_text("\n".join(lines) + "\n")
        task = write_task(
            tmp_path,
            rows,
            data_sample=3,
            data_seed=5,
            swaps_file=None,
            swaps_max_per_word=None,
            swaps_frozen="spaces.jsonl",
        )
        found = read_inputs(read_task(task), 6)
        assert [text.frozen.id for text in found.texts] == [0, 1, 2]
        assert all(text.frozen.words[0] == ("good", "fine") for text in found.texts)


BROKEN = [ROWS[0], ("", "positive"), ROWS[1], ("good\tfilm", "positive"), ("awful", "neutral"), ROWS[2], ROWS[3]]


class TestDefects:
    def test_all_kinds_are_listed_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(BrokenRows) as refused:
            inputs(tmp_path, BROKEN)
        said = [line.removeprefix(str(tmp_path / "texts.tsv ")) for line in refused.value.lines]
        assert [line.split(":")[0] for line in said] == ["line 3", "line 5", "line 6"]
        assert ["the text is empty" in said[0], "3 fields" in said[1], "'neutral' is outside" in said[2]] == [True] * 3

    def test_the_command_line_lists_them_and_writes_nothing(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task", BROKEN)
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
        assert [line.startswith("swapproof: ") for line in capsys.readouterr().err.splitlines()] == [True] * 3
        assert not (tmp_path / "run").exists()

    def test_those_that_are_skipped_are_counted_and_said(self, tmp_path: Path, capsys: Capture) -> None:
        found = inputs(tmp_path / "task", BROKEN, on_error="skip")
        assert texts(found) == [text for text, _ in ROWS[:4]]
        assert found.skipped == 3
        assert main(["certify", str(tmp_path / "task" / "task.toml"), "--out", str(tmp_path / "run")]) == 0
        assert "note: 3 rows of the data were skipped; the first: texts.tsv line 3:" in capsys.readouterr().out
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert summary["data"]["skipped"] == len(summary["data"]["defects"]) == 3
        assert "3 rows of the data were skipped" in (tmp_path / "run" / "report.html").read_text()
        assert main(["check", str(tmp_path / "run")]) == 0

    def test_a_limit_counts_the_rows_that_can_be_used(self, tmp_path: Path) -> None:
        found = inputs(tmp_path, BROKEN, 2, on_error="skip")
        assert (texts(found), found.skipped) == ([ROWS[0][0], ROWS[1][0]], 1)

    def test_a_limit_meets_no_defect_behind_it(self, tmp_path: Path) -> None:
        assert texts(inputs(tmp_path, BROKEN, 1)) == [ROWS[0][0]]

    def test_a_file_of_nothing_else_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="has no rows, but for 2 that were skipped"):
            inputs(tmp_path, [("", "positive"), ("x", "?")], on_error="skip")

    def test_no_sample_is_drawn_from_rows_that_cannot_be_used(self, tmp_path: Path) -> None:
        found = inputs(tmp_path, BROKEN, sample=4, seed=1, on_error="skip")
        assert sorted(texts(found)) == sorted(text for text, _ in ROWS[:4])


def test_a_map_of_labels_is_read_and_a_run_of_it_is_a_task_again(tmp_path: Path) -> None:
    rows = [(text, {"positive": "1.0", "negative": "-1"}[label]) for text, label in ROWS]
    task = write_task(tmp_path / "task", rows)
    spelt = task.read_text().replace('["negative", "positive"]', '{ "-1" = "negative", "1" = "positive" }')
    task.write_text(spelt)
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert [line["label"] for line in lines] == [int(label == "positive") for _, label in ROWS]
    assert main(["check", str(tmp_path / "run")]) == 0
    assert main(["certify", str(tmp_path / "run" / "task.toml"), "--out", str(tmp_path / "again")]) == 0


def test_rows_that_end_behind_the_last_text_are_said(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task", ROWS[:2], data_rows=[0, 1000])
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    assert "[data] rows end at 1000, and there are 2 texts: 2 in this run" in capsys.readouterr().err
    task = write_task(tmp_path / "exact", ROWS[:2], data_rows=[0, 2])
    assert main(["certify", str(task), "--out", str(tmp_path / "other")]) == 0
    assert "[data] rows end" not in capsys.readouterr().err
