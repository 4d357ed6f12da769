"""What makes a run say little is found, said first, and meets no requirement; what does not, is not found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny import ROWS, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.runs.vacuity import Seen

Capture = pytest.CaptureFixture[str]
TWO = {"labels": ["negative", "positive"]}


def found(pairs: Sequence[tuple[int, int | None]], about: dict[str, Any] = TWO, **changes: Any) -> list[str]:
    """Of texts with these labels and answers."""
    seen = Seen()
    for id, (label, predicted) in enumerate(pairs):
        line = {"id": id, "label": label, "predicted": predicted, "positions": 4, "unknown": 0, "candidates": 3}
        seen.add(line | changes)
    return seen.findings(about)


GOOD = [(0, 0), (1, 1)] * 9 + [(0, 1), (1, 0)]


class TestFindings:
    def test_an_ordinary_run_has_none(self) -> None:
        assert found(GOOD) == []
        assert found([]) == []
        assert found([(1, 1)] * 40) == []  # the first rows of a sorted file
        assert found([(0, 1), (1, 0)]) == []  # too few to tell

    def test_no_candidates(self) -> None:
        assert found(GOOD, candidates=0) == ["there is nothing to swap in any text"]
        swaps = {"source": "s.json", "considered": 0, "removed": {}}
        [said] = found(GOOD, TWO | {"swaps": swaps}, candidates=0)
        assert said.endswith("s.json has no candidate for any of their words")
        swaps = {"source": "s.json", "considered": 1200, "removed": {"not in vocabulary": 1200, "same token": 0}}
        [said] = found(GOOD, TWO | {"swaps": swaps}, candidates=0)
        assert said.endswith("all 1,200 candidates of s.json were left out (1,200 not in vocabulary)")

    @pytest.mark.parametrize(("unknown", "number"), [(1, 0), (2, 1), (4, 1)])
    def test_unknown_words(self, unknown: int, number: int) -> None:
        said = found(GOOD, unknown=unknown)
        assert len(said) == number
        assert all("words are unknown to the vocabulary" in one and "lowercase" in one for one in said)

    def test_answers_that_are_not_those_of_the_deployed_system(self) -> None:
        seen = Seen()
        for id in range(20):
            line = {"id": id, "label": 1, "predicted": 1, "positions": 4, "unknown": 0, "candidates": 3}
            seen.add(line | ({} if id == 19 else {"answer": int(id not in (3, 5))}))
        [said] = seen.findings(TWO)
        assert "answers 2 of 19 texts otherwise" in said
        assert "(texts 3, 5)" in said

    def test_a_constant_answer(self) -> None:
        [said] = found([(0, 1), (1, 1), (1, 1), (1, 1)] * 3)
        assert said == "the model answers positive to all 12 texts, whatever their label"

    def test_labels_in_another_order(self) -> None:
        pairs = [(1 - label, given) for label, given in GOOD]
        [said] = found(pairs)
        assert "accuracy is 10.00 %, and with positive, negative it would be 90.00 %" in said

    def test_two_of_four_labels_exchanged(self) -> None:
        """Accuracy is twice what guessing gives."""
        pairs = [(0, 0), (1, 2), (2, 1), (3, 3)] * 10
        [said] = found(pairs, {"labels": ["a", "b", "c", "d"]})
        assert "accuracy is 50.00 %, and with a, c, b, d it would be 100.00 %" in said

    @pytest.mark.parametrize(("right", "texts", "near"), [(11, 20, True), (12, 20, False), (1, 8, True), (3, 8, False)])
    def test_accuracy_near_chance_or_below(self, right: int, texts: int, near: bool) -> None:
        pairs = [(n % 2, n % 2) for n in range(right)]
        pairs += [(n // 2 % 2, 1 - n // 2 % 2) for n in range(texts - right)]
        said = found(pairs)
        assert bool(said) == near
        assert all("guessing one of 2 classes gives 50.00 %" in one for one in said)

    def test_what_was_observed_of_the_scores_comes_last(self) -> None:
        assert found(GOOD, TWO | {"observed": ["it answers by length"]}, candidates=0)[1:] == ["it answers by length"]

    def test_texts_that_nothing_is_known_of_are_not_counted(self) -> None:
        assert found([*GOOD, *[(1, None)] * 60]) == []


def certified(folder: Path, *options: str, **changes: Any) -> tuple[int, dict[str, Any], Path]:
    task = write_task(folder / "task", **changes)
    code = main(["certify", str(task), "--out", str(folder / "run"), *options])
    return code, json.loads((folder / "run" / "summary.json").read_text()), folder / "run"


class TestRuns:
    @pytest.mark.parametrize("gate", [["--radius", "3"], ["--require", "accuracy >= 0.1"]])
    def test_a_table_that_fits_no_word_meets_no_requirement(
        self, tmp_path: Path, capsys: Capture, gate: list[str]
    ) -> None:
        (tmp_path / "task").mkdir()
        (tmp_path / "none.json").write_text("{}")
        code, summary, run = certified(tmp_path, *gate, swaps_file="../none.json")
        assert code == 3
        assert summary["vacuous"] == [
            "there is nothing to swap in any text: none.json has no candidate for any of their words"
        ]
        assert capsys.readouterr().out.startswith("This says little: there is nothing to swap in any text")
        assert main(["check", str(run)]) == 0
        assert main(["report", str(run)]) == 3

    def test_without_a_requirement_it_is_said_and_the_exit_code_stays(self, tmp_path: Path, capsys: Capture) -> None:
        (tmp_path / "task").mkdir()
        (tmp_path / "none.json").write_text("{}")
        code, summary, run = certified(tmp_path, swaps_file="../none.json")
        assert code == 0
        assert summary["verdict"]["sentence"].startswith("this says little: there is nothing to swap in any text")
        page = (run / "report.html").read_text()
        assert page.index('<p class="verdict incomplete">This says little: there is') < page.index("ended in a checked")
        assert '<p class="verdict holds">' not in page
        assert "0 of 0 candidates of none.json kept" in capsys.readouterr().out

    def test_a_forgotten_lowercase_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "task").mkdir()
        rows = [("A GOOD FILM", "positive"), ("AWFUL", "negative")]
        task = write_task(tmp_path / "task", rows, model_lowercase=False)
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--radius", "1"]) == 3
        vacuous = json.loads((tmp_path / "run" / "summary.json").read_text())["vacuous"]
        assert any("4 of 4 words are unknown to the vocabulary" in one for one in vacuous)

    def test_labels_in_another_order_are_said(self, tmp_path: Path) -> None:
        swapped = [(text, "positive" if label == "negative" else "negative") for text, label in ROWS * 3]
        task = write_task(tmp_path / "task", swapped)
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--radius", "0"]) == 3
        [said] = json.loads((tmp_path / "run" / "summary.json").read_text())["vacuous"]
        assert "with positive, negative it would be 100.00 %" in said
        assert main(["check", str(tmp_path / "run")]) == 0

    def test_another_answer_than_the_deployed_systems_is_said_and_checked(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        task = write_task(tmp_path / "task", data_answer="said")
        rows = [f"{text}\t{label}\t{'positive' if n == 2 else label}" for n, (text, label) in enumerate(ROWS)]
        (task.parent / "texts.tsv").write_text("\n".join(["text\tlabel\tsaid", *rows]) + "\n")
        run = tmp_path / "run"
        assert main(["certify", str(task), "--out", str(run), "--radius", "0"]) == 3
        lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
        assert [line["answer"] == line["label"] for line in lines] == [n != 2 for n in range(len(ROWS))]
        [said] = json.loads((run / "summary.json").read_text())["vacuous"]
        assert "answers 1 of 8 texts otherwise" in said
        assert "(texts 2)" in said
        assert main(["check", str(run)]) == 0
        texts = (run / "texts.jsonl").read_text()
        (run / "texts.jsonl").write_text(texts.replace('"answer": "positive"', '"answer": "negative"', 1))
        assert main(["check", str(run)]) == 4
        assert "the line has another answer of the deployed system" in capsys.readouterr().out

    def test_a_summary_that_leaves_it_out_is_refused(self, tmp_path: Path, capsys: Capture) -> None:
        (tmp_path / "task").mkdir()
        (tmp_path / "none.json").write_text("{}")
        _, summary, run = certified(tmp_path, swaps_file="../none.json")
        (run / "summary.json").write_text(json.dumps(summary | {"vacuous": []}))
        assert main(["check", str(run)]) == 4
        assert "summary.json says vacuous = []" in capsys.readouterr().out
