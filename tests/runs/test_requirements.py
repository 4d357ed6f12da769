"""What is required of a run is answered true, false or not settled, with what it stands on; exit codes follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import weaker, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.gates.requirements import required_in
from swapproof.verifier.roads import certify
from swapproof.verifier.runs.run_summary import summarise

Capture = pytest.CaptureFixture[str]


def line(id: int, low: int, high: int | None, level: str = "float32", **changes: Any) -> dict[str, Any]:
    status = "already_wrong" if high == 0 else "exact" if low == high else "open"
    return {
        "id": id,
        "label": 1,
        "predicted": int(high != 0),
        "positions": 9,
        "candidates": 5,
        "cut": 0,
        "unknown": 0,
        "min_swaps": {"low": low, "high": high},
        "status": status,
        "level": level,
        "seconds": 0.5,
        "evaluations": 10,
        "requests": 2,
    } | changes


def lines(*ends: tuple[int, int | None], level: str = "float32") -> list[dict[str, Any]]:
    return [line(id, *both, level) for id, both in enumerate(ends)]


def certified(at: int, least: float) -> dict[str, list[dict[str, Any]]]:
    return {"certified_accuracy": [{"at": at, "least": least}]}


class TestAnswers:
    @pytest.mark.parametrize(
        ("least", "answer", "code"),
        [(0.5, "true", 0), (0.51, "not settled", 3), (0.75, "not settled", 3), (0.76, "false", 1)],
    )
    def test_a_share_is_compared_with_both_of_its_ends(self, least: float, answer: str, code: int) -> None:
        found = summarise(lines((3, 3), (3, None), (1, 5), (2, 2)), None, None, certified(2, least))
        assert (found["requirements"][0]["answer"], found["verdict"]["exit_code"]) == (answer, code)
        assert (found["requirements"][0]["low"], found["requirements"][0]["high"]) == (0.5, 0.75)

    @given(st.integers(0, 100), st.integers(1, 3))
    def test_a_share_that_is_just_reached_is_reached(self, percent: int, times: int) -> None:
        """0.07 of 100 is 7; in floating point it is more."""
        ends = [(2, 2)] * (percent * times) + [(1, 1)] * ((100 - percent) * times)
        found = summarise(lines(*ends), None, None, certified(1, percent / 100))
        assert found["requirements"][0]["answer"] == "true"

    def test_accuracy_is_of_all_texts(self) -> None:
        for least, answer in ((0.75, "true"), (0.8, "false")):
            found = summarise(lines((1, 1), (1, 1), (0, 0), (2, 2)), None, None, {"accuracy": [{"least": least}]})
            assert found["requirements"][0]["answer"] == answer

    def test_texts_that_are_missing_may_turn_out_either_way(self) -> None:
        require = certified(1, 0.5) | {"accuracy": [{"least": 0.9}]}
        found = summarise(lines((2, 2)), None, 4, require)
        assert [one["answer"] for one in found["requirements"]] == ["not settled", "not settled"]
        assert [(one["low"], one["high"]) for one in found["requirements"]] == [(0.25, 1.0), (0.25, 1.0)]
        assert found["verdict"]["exit_code"] == 3

    def test_one_that_is_false_decides(self) -> None:
        found = summarise(lines((2, 2), (2, None)), 1, None, certified(5, 0.5) | {"accuracy": [{"least": 1.0}]})
        assert [one["answer"] for one in found["requirements"]] == ["true", "not settled", "true"]
        assert found["verdict"]["exit_code"] == 3
        assert found["verdict"]["sentence"].startswith("1 of 3 requirements is open: accuracy under 5 swaps lies in [")
        found = summarise(lines((2, 2), (2, None)), 2, None, certified(5, 0.5))
        assert [one["answer"] for one in found["requirements"]] == ["false", "not settled"]
        assert found["verdict"]["exit_code"] == 1
        assert found["verdict"]["sentence"].startswith("1 of 2 requirements does not hold: not robust to 2 swaps: 1 of")
        found = summarise(lines((2, 2)), 1, None, certified(1, 1.0))
        assert found["verdict"] == {"exit_code": 0, "sentence": "all 2 requirements hold"}


class TestRadius:
    def test_it_asks_for_the_texts_that_are_answered_rightly(self) -> None:
        found = summarise(lines((2, 2), (0, 0), (3, None)), 1)
        assert found["verdict"] == {
            "exit_code": 0,
            "sentence": "proved robust to 1 swap: all 2 texts that the model answers rightly",
        }

    def test_texts_without_candidates_are_counted_and_alone_say_nothing(self) -> None:
        some = [line(0, 3, None), line(1, 3, None, candidates=0)]
        assert summarise(some, 1)["verdict"]["sentence"].endswith(", 1 of them with nothing to swap")
        wrong = [line(0, 0, 0), line(1, 3, None, candidates=0)]
        found = summarise(wrong, 1)
        assert found["vacuous"] == []
        assert found["verdict"]["exit_code"] == 3
        assert "the one text that the model answers rightly has nothing to swap" in found["verdict"]["sentence"]


class TestLevels:
    MIXED = (*lines((2, 2), (3, 3)), line(2, 2, 2, "replay"), line(3, 0, 0, "replay"))

    def test_certified_accuracy_is_parted_by_what_it_stands_on(self) -> None:
        found = summarise(self.MIXED)
        assert found["certified_accuracy"] == {"1": 0.75, "2": 0.25, "3": 0.0}
        assert found["levels"] == {
            "float32": {"texts": 2, "certified_accuracy": {"1": 0.5, "2": 0.25, "3": 0.0}},
            "replay": {"texts": 2, "certified_accuracy": {"1": 0.25, "2": 0.0, "3": 0.0}},
        }

    def test_what_is_evaluated_is_never_called_proved(self) -> None:
        replayed = lines((2, 2), (2, 2), level="replay")
        for found in (summarise(replayed, 1), summarise(replayed, None, None, certified(1, 0.5))):
            assert "evaluated in full" in found["verdict"]["sentence"]
            assert "proved" not in found["verdict"]["sentence"]
        assert "2 low ends are evaluated in full, not proved" in summarise(replayed)["verdict"]["sentence"]

    def test_where_nothing_is_required_it_is_said_how_many_withstand_one_swap(self) -> None:
        said = summarise(lines((2, 2), (1, 1), (0, 0), (3, None)))["verdict"]["sentence"]
        assert "; 50.00 % keep the right answer whichever single word is swapped (proved)" in said
        said = summarise(lines((2, 2), (1, 1), (0, 0), (1, None)))["verdict"]["sentence"]
        assert "; at least 25.00 % keep the right answer" in said

    def test_both_are_counted_where_there_are_both(self) -> None:
        assert "2 proved and 1 evaluated in full" in summarise(self.MIXED, 1)["verdict"]["sentence"]
        gate = summarise(self.MIXED, None, None, certified(1, 0.5))["verdict"]["sentence"]
        shown = (
            "accuracy under 1 swap is at least 75.00 % (3 of 4, 2 proved and 1 evaluated in full), and 50 % is required"
        )
        assert gate == shown

    def test_what_is_at_least_so_much_is_rounded_down_and_what_is_at_most_up(self) -> None:
        found = lines(*[(2, 2)] * 25, *[(1, 1)] * 35)
        for least, shown in (
            (0.4, "at least 41.66 % (25 of 60, proved), and 40 % is required"),
            (0.5, "at most 41.67 % (25 of 60), and 50 % is required"),
        ):
            assert summarise(found, None, None, certified(1, least))["verdict"]["sentence"].endswith(shown)
        found = lines(*[(2, 2)] * 20, *[(1, None)] * 20, *[(1, 1)] * 20)
        open_one = summarise(found, None, None, certified(1, 0.5))["verdict"]["sentence"]
        assert "lies in [33.33 %, 66.67 %]" in open_one
        assert "; at least 33.33 % keep" in summarise(found)["verdict"]["sentence"]


class TestCommand:
    def test_the_task_and_the_command_line_require(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task")
        with task.open("a") as file:
            file.write("[require]\naccuracy = { least = 0.9 }\n")
        run = tmp_path / "run"
        assert main(["certify", str(task), "--out", str(run)]) == 0
        assert main(["certify", str(task), "--out", str(run), "--require", "certified@1 >= 0.9"]) == 1
        summary = json.loads((run / "summary.json").read_text())
        assert [(one["require"], one["answer"]) for one in summary["requirements"]] == [
            ("certified_accuracy", "false"),
            ("accuracy", "true"),
        ]
        out = capsys.readouterr().out
        assert "required, false: accuracy under 1 swap is at most" in out
        assert "required, true: accuracy is at least 100.00 % (8 of 8), and 90 % is required" in out
        row = "<td>accuracy under 1 swap at least 90 %</td><td><b>false</b></td><td>accuracy under 1 swap is at most"
        assert row in (run / "report.html").read_text()
        assert main(["check", str(run)]) == 0
        summary["requirements"][0]["answer"] = "true"
        (run / "summary.json").write_text(json.dumps(summary))
        assert main(["check", str(run)]) == 4

    def test_python_requires_the_same(self, tmp_path: Path) -> None:
        outcome = certify(
            write_task(tmp_path / "task"), tmp_path / "run", require=["certified@1 >= 0.9", "accuracy >= 1"]
        )
        assert [one["answer"] for one in outcome.summary["requirements"]] == ["false", "true"]
        assert outcome.exit_code == 1

    def test_a_requirement_that_is_none_is_one_line(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task")
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--require", "robust >= 1"]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "run").exists()


class TestMoreGates:
    @pytest.mark.parametrize(
        ("least", "answer", "code"),
        [(2.25, "true", 0), (2.26, "not settled", 3), (3.25, "not settled", 3), (3.26, "false", 1)],
    )
    def test_a_mean_is_compared_with_both_of_its_ends(self, least: float, answer: str, code: int) -> None:
        found = summarise(lines((3, 3), (1, 5), (2, 2), (3, 3), (0, 0)), None, None, {"mmws": [{"least": least}]})
        assert (found["requirements"][0]["answer"], found["verdict"]["exit_code"]) == (answer, code)
        assert found["mmws"]["low"] == found["requirements"][0]["low"] == 2.25

    def test_a_mean_that_is_reached_in_thirds_is_reached(self) -> None:
        """Rounded up to 1.333334 it would be 4/3 in nobody's eyes."""
        found = summarise(lines((1, 1), (1, 1), (2, 2)), None, None, {"mmws": [{"least": 1.3333334}]})
        assert found["requirements"][0]["answer"] == "false"

    def test_a_mean_of_no_text_is_not_settled(self) -> None:
        found = summarise(lines((0, 0)), None, None, {"mmws": [{"least": 1.0}]})
        assert found["requirements"][0]["answer"] == "not settled"

    @pytest.mark.parametrize(("at", "answer"), [(0, "true"), (1, "true"), (2, "not settled"), (3, "false")])
    def test_no_text_broken_by_is_asked_of_the_texts_answered_rightly(self, at: int, answer: str) -> None:
        found = summarise(lines((2, 4), (3, 3), (0, 0)), None, None, {"no_text_broken_by": [at]})
        assert found["requirements"][0]["answer"] == answer

    def test_what_follows_from_a_summary_is_what_was_required(self) -> None:
        require: dict[str, list[Any]] = {
            "no_text_broken_by": [1],
            "certified_accuracy": [{"at": 2, "least": 0.5}],
            "baseline": [{"at": 0, "least": 0.9}],
            "accuracy": [{"at": None, "least": 0.9}],
            "mmws": [{"at": None, "least": 2.0}],
        }
        assert required_in(summarise(lines((2, 2)), 3, None, require)) == require

    def test_every_gate_holds_in_check_and_in_the_pages(self, tmp_path: Path, capsys: Capture) -> None:
        task, run = write_task(tmp_path / "task"), tmp_path / "run"
        with task.open("a") as file:
            file.write("[require]\nmmws = { least = 1.0 }\nno_text_broken_by = 1\n")
        assert main(["certify", str(task), "--out", str(run), "--require", "mmws >= 9"]) == 1
        summary = json.loads((run / "summary.json").read_text())
        answers = [(one["require"], one["answer"]) for one in summary["requirements"]]
        assert answers == [("no_text_broken_by", "false"), ("mmws", "true"), ("mmws", "false")]
        assert main(["check", str(run)]) == 0
        assert main(["report", str(run), "--junit", str(tmp_path / "junit.xml")]) == 1
        assert 'name="mmws"' in (tmp_path / "junit.xml").read_text()
        assert "MMWS is at most" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("command", "gate"),
        [
            (["certify"], "rho = { least = 0.9 }"),
            (["measure", "--quantity", "kappa"], "mmws = { least = 3.0 }"),
            (["measure", "--quantity", "pr", "--radius", "1"], "rho = { least = 0.9 }"),
            (["attack", "--method", "greedy"], "accuracy = { least = 0.9 }"),
        ],
    )
    def test_a_threshold_that_nobody_would_look_at_is_refused(
        self, tmp_path: Path, capsys: Capture, command: list[str], gate: str
    ) -> None:
        task = write_task(tmp_path / "task")
        with task.open("a") as file:
            file.write(f"[require]\n{gate}\n")
        assert main([command[0], str(task), *command[1:], "--out", str(tmp_path / "run")]) == 2
        error = capsys.readouterr().err
        assert f"[require] {gate.split()[0]}: `" in error
        assert error.count("\n") == 1
        assert not (tmp_path / "run").exists()

    def test_rho_is_required_of_a_run_of_kappa(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task")
        measure = ["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "run")]
        assert main([*measure, "--require", "rho >= 0.1"]) == 0
        assert main([*measure, "--require", "rho >= 0.999"]) == 1
        assert main(["report", str(tmp_path / "run")]) == 1
        assert "required, false: rho is at most" in capsys.readouterr().out


class TestBaseline:
    def test_the_same_model_is_no_worse_and_a_weaker_one_is(self, tmp_path: Path) -> None:
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        again = certify(write_task(tmp_path / "again"), tmp_path / "same", baseline=run)
        assert {one["require"] for one in again.summary["requirements"]} == {"baseline"}
        assert again.exit_code == 0
        assert main(["check", str(again.folder)]) == 0
        worse = certify(weaker(write_task(tmp_path / "weaker")), tmp_path / "worse", baseline=run)
        assert worse.exit_code == 1
        assert "as the baseline has it" in worse.summary["verdict"]["sentence"]

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"swaps_max_per_word": 1}, "text 0 has other swaps there"),
            ({"rows": [("a film", "positive")]}, "has 8 texts, and this task has 1"),
        ],
    )
    def test_other_texts_and_swaps_are_refused_before_anything_is_written(
        self, tmp_path: Path, capsys: Capture, changes: dict[str, Any], said: str
    ) -> None:
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        task = write_task(tmp_path / "other", **changes)
        assert main(["certify", str(task), "--out", str(tmp_path / "out"), "--baseline", str(run)]) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
