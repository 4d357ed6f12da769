"""`measure --quantity pr` end to end on a tiny model: certified counts, samples that can be drawn again, refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unreadable
from oracles import all_sentences
from tiny import ROWS, write_task

from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.check import Refused
from swapproof.verifier.cli import main
from swapproof.verifier.counting import measuring_text as station
from swapproof.verifier.counting.stopping import Stop
from swapproof.verifier.engines.protocol import Budget
from swapproof.verifier.ladder import run_certificates
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.run_certificates import Checker
from swapproof.verifier.ladder.station import Station
from swapproof.verifier.runs.work import Settled
from swapproof.verifier.tasks.inputs import Text, read_inputs
from swapproof.verifier.tasks.task import read_task

ROOT = Path(__file__).parent.parent.parent
Capture = pytest.CaptureFixture[str]
PARTS = "swapproof.verifier.counting.cells.PARTS"
SMALL = "swapproof.verifier.counting.cells.SMALL"
TEXTS = [*ROWS, ("awful film", "positive"), ("good bad great bad good film", "positive")]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", rows=TEXTS)


def measured(task: Path, out: Path, *options: str, code: int = 0) -> list[dict[str, Any]]:
    assert main(["measure", str(task), "--quantity", "pr", "--out", str(out), *options]) == code
    return results(out)


def results(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


def by_hand(task: Path, radius: int) -> list[tuple[int, int] | None]:
    """(robust, total) of every text by onnxruntime on every sentence; None for texts already wrong."""
    model = open_model(task.parent / "model.onnx")
    replay, found = Replay.open(model), []
    for text in read_inputs(read_task(task), 6).texts:
        sentences = np.array(list(all_sentences(text.frozen.space, radius)))
        kept = replay.answers(sentences) == text.label
        found.append((int(kept.sum()), len(kept)) if kept[0] else None)
    return found


@pytest.mark.parametrize("radius", [0, 2, 9])
def test_counts_are_exact_certified_and_accepted_by_the_independent_checker(
    task: Path, tmp_path: Path, radius: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Radius 0 (the text alone), beyond the number of positions, texts without swaps, texts already wrong."""
    monkeypatch.setattr(SMALL, 2)
    lines = measured(task, tmp_path / "run", "--radius", str(radius))
    expected = by_hand(task, radius)
    assert None in expected
    for line, hand in zip(lines, expected, strict=True):
        if hand is None:
            assert (line["status"], line["robust_fraction"], line["certificate"]) == ("already_wrong", None, None)
            continue
        found = line["robust_fraction"]
        assert line["status"] == found["kind"] == "exact"
        assert (found["robust"], found["total"]) == (str(hand[0]), str(hand[1]))
        assert found["low"] == found["high"] == float(Fraction(*hand))
        assert (tmp_path / "run" / line["certificate"]).is_file()
    capsys.readouterr()
    assert main(["check", str(tmp_path / "run")]) == 0
    count = sum(hand is not None for hand in expected)
    assert capsys.readouterr().out.endswith(f"accepted {count} of {count}\n")
    alone = subprocess.run(
        [sys.executable, "-I", "-S", str(ROOT / "proofs" / "check.py"), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert alone.stdout.endswith(f"accepted {count} of {count}\n")


def test_the_summary_says_what_the_lines_say(task: Path, tmp_path: Path, capsys: Capture) -> None:
    lines = measured(task, tmp_path / "run", "--radius", "2")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    shares = [line["robust_fraction"]["low"] for line in lines if line["robust_fraction"]]
    assert summary["robust_fraction"]["low"] == summary["robust_fraction"]["high"]
    assert summary["robust_fraction"]["low"] == pytest.approx(sum(shares) / len(shares), abs=1e-8)
    assert summary["share_above_0.9"]["low"] == pytest.approx(
        sum(share > 0.9 for share in shares) / len(shares), abs=1e-8
    )
    assert summary["texts"] == len(TEXTS)
    assert summary["exact"] + summary["already_wrong"] == len(TEXTS)
    assert "the original included" in " ".join(capsys.readouterr().out.split())
    assert main(["report", str(tmp_path / "run")]) == 0
    assert "Robust fraction" in capsys.readouterr().out
    assert (tmp_path / "run" / "robust_fraction.png").stat().st_size > 0


@pytest.mark.usefixtures("larger")
def test_samples_enclose_the_count_and_can_be_drawn_again(task: Path, tmp_path: Path, capsys: Capture) -> None:
    lines = measured(task, tmp_path / "run", "--radius", "2", "--sampled", "--samples", "2000")
    for line, hand in zip(lines, by_hand(task, 2), strict=True):
        if hand is None:
            continue
        found = line["robust_fraction"]
        assert line["status"] == found["kind"] == "sampled"
        assert found["sample"]["samples"] == 2000
        assert found["low"] <= hand[0] / hand[1] <= found["high"]
        assert found["sample"]["hoeffding"]["low"] <= hand[0] / hand[1] <= found["sample"]["hoeffding"]["high"]
        assert line["certificate"] is None
    capsys.readouterr()
    assert main(["check", str(tmp_path / "run")]) == 0
    assert "samples drawn again" in capsys.readouterr().out


@pytest.mark.usefixtures("larger")
def test_epsilon_and_delta_say_how_many_samples(task: Path, tmp_path: Path) -> None:
    lines = measured(task, tmp_path / "run", "--radius", "1", "--sampled", "--limit", "1")
    assert lines[0]["robust_fraction"]["sample"]["samples"] == 4794
    lines = measured(
        task, tmp_path / "other", "--radius", "1", "--sampled", "--limit", "1", "--epsilon", "0.1", "--delta", "1/20"
    )
    assert lines[0]["robust_fraction"]["sample"]["samples"] == 185
    assert lines[0]["robust_fraction"]["sample"]["confidence"] == 0.95


@pytest.fixture
def larger() -> Iterator[None]:
    """Samples are drawn, as of spaces that have more sentences than that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stop, "lists", lambda self, total: False)
        yield


@pytest.fixture
def stopped(task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose counts were stopped after a few cells."""
    monkeypatch.setattr(SMALL, 1)
    monkeypatch.setattr(PARTS, 1)
    monkeypatch.setattr("swapproof.verifier.counting.fraction.most_enumerated", lambda seconds: 4)
    measured(task, tmp_path / "run", "--radius", "4", "--samples", "500")
    return tmp_path / "run"


def test_a_stopped_count_is_a_certified_bracket_with_a_sample_of_the_rest(
    task: Path, stopped: Path, capsys: Capture
) -> None:
    bracketed = 0
    for line, hand in zip(results(stopped), by_hand(task, 4), strict=True):
        if hand is None or line["status"] != "deterministic":
            continue
        bracketed += 1
        found, sample = line["robust_fraction"], line["robust_fraction"]["sample"]
        share = hand[0] / hand[1]
        assert found["low"] <= share <= found["high"]
        assert found["low"] < found["high"]
        inner = sample["clopper_pearson"]
        assert found["low"] <= inner["low"] <= share <= inner["high"] <= found["high"]
        assert int(found["robust"]) + int(found["broken"]) + int(found["open"]) == int(found["total"]) == hand[1]
        assert sample["sampled_from"] == found["open"]
        assert "out of time" in line["reason"]
    assert bracketed
    capsys.readouterr()
    assert main(["check", str(stopped)]) == 0


def test_words_without_swaps_before_those_with_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Words of a tree are numbered among those that have swaps: a stopped count had ended with `option 1 of 1`."""
    task = write_task(
        tmp_path / "other", rows=[("a good bad great bad good", "positive"), ("the good film", "positive")]
    )
    monkeypatch.setattr(SMALL, 1)
    monkeypatch.setattr(PARTS, 1)
    monkeypatch.setattr("swapproof.verifier.counting.fraction.most_enumerated", lambda seconds: 4)
    lines = measured(task, tmp_path / "run", "--radius", "4", "--samples", "500")
    assert "deterministic" in {line["status"] for line in lines}
    capsys.readouterr()
    assert main(["check", str(tmp_path / "run")]) == 0


def edit(run: Path, change: Callable[[dict[str, Any]], None], kind: str) -> int:
    """Change the first line of this kind; its text's id."""
    lines = results(run)
    line = next(line for line in lines if line["status"] == kind)
    change(line)
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "summary.json").unlink()
    return int(line["id"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line["robust_fraction"].update(robust="1"), "another count than the certificate"),
        (lambda line: line["robust_fraction"].update(low=0.99, high=0.99), "not those of its counts"),
        (lambda line: line.update(level="replay"), "another count than the certificate"),
        (lambda line: line.update(status="sampled"), "no certificate proves"),
        (lambda line: line.update(text="another film"), "has another text or label"),
        (lambda line: line.update(predicted=9), "says the model answers 9"),
        (lambda line: line["robust_fraction"].update(rounding_may_decide="1"), "holds for every rounding"),
        (lambda line: line["robust_fraction"].update(open="1"), "do not add up"),
        (lambda line: line.update(status="already_wrong", robust_fraction=None), "and the text is answered rightly"),
        (lambda line: line.pop("robust_fraction"), "the check met KeyError"),
    ],
)
def test_lines_that_claim_more_than_their_certificate_are_refused(
    task: Path, tmp_path: Path, capsys: Capture, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    measured(task, tmp_path / "run", "--radius", "2")
    edit(tmp_path / "run", change, "exact")
    assert main(["check", str(tmp_path / "run")]) == 4
    assert message in capsys.readouterr().out


def test_a_text_that_is_answered_rightly_cannot_be_left_out_of_the_mean(
    task: Path, tmp_path: Path, capsys: Capture
) -> None:
    run = tmp_path / "run"
    measured(task, run, "--radius", "2")
    id = edit(run, lambda line: line.update(status="already_wrong", robust_fraction=None, certificate=None), "exact")
    (run / "certificates" / f"{id:06d}.json").unlink()
    assert main(["check", str(run)]) == 4
    assert "refused: the line says already_wrong, and the text is answered rightly" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line["robust_fraction"]["sample"].update(robust_samples=500),
        lambda line: line["robust_fraction"]["sample"].update(seed="0" * 64),
    ],
)
def test_a_sample_that_was_not_drawn_like_that_is_refused(
    stopped: Path, capsys: Capture, change: Callable[[dict[str, Any]], None]
) -> None:
    edit(stopped, change, "deterministic")
    assert main(["check", str(stopped)]) == 4
    assert "the sample drawn again is another" in capsys.readouterr().out


def test_a_summary_of_other_lines_is_refused(task: Path, tmp_path: Path, capsys: Capture) -> None:
    measured(task, tmp_path / "run", "--radius", "1")
    file = tmp_path / "run" / "summary.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"exact": 99}))
    assert main(["check", str(tmp_path / "run")]) == 4
    assert "summary.json says another exact" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["[1]", "{}", "{"])
def test_a_summary_that_is_none_is_one_line(task: Path, tmp_path: Path, capsys: Capture, content: str) -> None:
    measured(task, tmp_path / "run", "--radius", "1")
    (tmp_path / "run" / "summary.json").write_text(content)
    assert main(["check", str(tmp_path / "run")]) == 4
    assert "refused: summary.json" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "run")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def unscreened(opened: Callable[..., Checker], **changes: Any) -> Callable[..., Checker]:
    """A checker that leaves everything to proofs/check.py."""
    return lambda *arguments: replace(opened(*arguments), screen=None, **changes)


def test_a_count_whose_certificate_is_refused_is_not_published(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*anything: object) -> None:
        raise Refused("for the sake of the test")

    monkeypatch.setattr(Checker, "open", unscreened(Checker.open))
    monkeypatch.setattr(run_certificates, "check_certificate", refuse)
    lines = measured(task, tmp_path / "run", "--radius", "1", "--limit", "2", code=4)
    for line in lines:
        assert line["status"] == "sampled"
        assert line["certificate"] is None
        assert "robust" not in line["robust_fraction"]
        assert "for the sake of the test" in line["contradiction"]


def test_a_certificate_that_takes_too_long_to_check_is_no_contradiction(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Checker, "open", unscreened(Checker.open, seconds=0.0))
    lines = measured(task, tmp_path / "run", "--radius", "1", "--limit", "1")
    assert lines[0]["status"] == "sampled"
    assert "could not be checked" in lines[0]["reason"]
    assert "contradiction" not in lines[0]


def test_a_killed_run_goes_on_where_it_was(task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle = station.Measuring.settle
    asked: list[int] = []

    def stumbling(self: station.Measuring, at: Station, text: Text) -> Settled:
        asked.append(text.id)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return settle(self, at, text)

    monkeypatch.setattr(station.Measuring, "settle", stumbling)
    measured_code = main(["measure", str(task), "--quantity", "pr", "--radius", "1", "--out", str(tmp_path / "run")])
    assert measured_code == 130
    done = {line["id"] for line in results(tmp_path / "run")}
    assert done == set(asked[:2])
    lines = measured(task, tmp_path / "run", "--radius", "1")
    assert sorted(asked[3:]) == sorted(set(range(len(TEXTS))) - done)
    assert [line["id"] for line in lines] == list(range(len(TEXTS)))


def test_a_text_is_done_when_its_certificate_is_on_the_disk_and_a_torn_one_is_made_again(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store holds the SHA-256 too: what becomes of one later is noticed by the next run, as in certify."""
    waits: list[int] = []
    monkeypatch.setattr("swapproof.verifier.runs.run_folder.os.fsync", waits.append)
    numbers = []
    for limit in ("1", str(len(TEXTS))):
        waits.clear()
        measured(task, tmp_path / limit, "--radius", "1", "--limit", limit)
        numbers.append(len(waits))
    assert numbers[1] >= numbers[0] + len(TEXTS) - 2  # all but the one that is already wrong
    certificates = sorted((tmp_path / limit / "certificates").iterdir())
    assert len(certificates) > 1
    whole = [path.read_bytes() for path in certificates]
    certificates[0].write_bytes(bytes(len(whole[0])))
    certificates[1].write_bytes(b"")
    measured(task, tmp_path / limit, "--radius", "1", "--limit", limit)
    assert [path.read_bytes() for path in certificates] == whole


def test_a_text_that_needs_too_much_memory_is_lost_alone_and_tried_again(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    settle, run = station.Measuring.settle, tmp_path / "run"

    def hungry(self: station.Measuring, at: Station, text: Text) -> Settled:
        if text.id == 2:
            raise MemoryError
        return settle(self, at, text)

    monkeypatch.setattr(station.Measuring, "settle", hungry)
    lines = measured(task, run, "--radius", "1", code=3)
    assert (lines[2]["status"], lines[2]["robust_fraction"]) == ("lost", None)
    assert lines[2]["reason"] == "out of memory"
    assert "1 texts were not measured" in capsys.readouterr().out
    assert main(["check", str(run)]) == 0
    monkeypatch.setattr(station.Measuring, "settle", settle)
    again = measured(task, run, "--radius", "1")
    assert again[2]["status"] != "lost"
    assert again[:2] + again[3:] == lines[:2] + lines[3:]


def test_texts_that_ran_out_of_time_are_measured_again_when_there_is_more(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no others; not with as much time as before."""
    run = tmp_path / "run"
    monkeypatch.setattr(SMALL, 1)
    monkeypatch.setattr(PARTS, 1)
    monkeypatch.setattr("swapproof.verifier.counting.fraction.most_enumerated", lambda seconds: 4)
    lines = measured(task, run, "--radius", "4", "--samples", "500")
    monkeypatch.undo()
    before = {line["id"] for line in lines if line["status"] == "deterministic"}
    assert before
    settle, asked = station.Measuring.settle, []

    def watched(self: station.Measuring, at: Station, text: Text) -> Settled:
        asked.append(text.id)
        return settle(self, at, text)

    monkeypatch.setattr(station.Measuring, "settle", watched)
    assert measured(task, run, "--radius", "4", "--samples", "500") == lines
    assert asked == []
    again = measured(task, run, "--radius", "4", "--samples", "500", "--seconds", "30")
    assert set(asked) == before
    assert "deterministic" not in {line["status"] for line in again}
    measured(task, run, "--radius", "4", "--samples", "500", "--seconds", "60")
    assert set(asked) == before, "there was nothing left to find"
    assert main(["check", str(run)]) == 0


def test_a_text_cannot_be_called_lost_and_count(task: Path, tmp_path: Path, capsys: Capture) -> None:
    measured(task, tmp_path / "run", "--radius", "1")
    edit(tmp_path / "run", lambda line: line.update(status="lost"), "exact")
    assert main(["check", str(tmp_path / "run")]) == 4
    assert "of a text that was not measured claims something" in capsys.readouterr().out


def test_processes_find_the_same(task: Path, tmp_path: Path) -> None:
    one, two = (measured(task, tmp_path / str(jobs), "--radius", "2", "--jobs", str(jobs)) for jobs in (1, 2))
    for line in one + two:
        line["seconds"] = 0
    assert one == two


def test_several_radii_make_a_curve(task: Path, tmp_path: Path) -> None:
    out = tmp_path / "curve"
    assert main(["measure", str(task), "--quantity", "pr", "--radius", "2,1,0", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["radii"] == [0, 1, 2]
    curve = [summary["curve"][str(radius)]["low"] for radius in (0, 1, 2)]
    assert curve[0] == 1.0
    for radius in (0, 1, 2):
        assert summary["curve"][str(radius)] == json.loads(
            (out / f"radius-{radius}" / "summary.json").read_text()
        )["robust_fraction"]  # fmt: skip
    assert main(["check", str(out / "radius-2")]) == 0


def test_several_radii_are_checked_as_a_whole(task: Path, tmp_path: Path, capsys: Capture) -> None:
    """One verdict, for all certificates of all radii; the summary of all is compared with those of the runs."""
    out, command = tmp_path / "curve", ["measure", str(task), "--quantity", "pr", "--radius"]
    assert main([*command, "2,0", "--out", str(out)]) == 0
    many = len(list(out.glob("radius-*/certificates/*.json")))
    assert many > 2
    for arguments in ([], ["--exact"]):
        capsys.readouterr()
        assert main(["check", str(out), *arguments]) == 0
        said = capsys.readouterr().out.splitlines()
        assert [line for line in said if line.startswith("radius")] == ["radius 0:", "radius 2:"]
        assert [line for line in said if "accepted" in line] == [said[-1]] == [f"accepted {many} of {many}"]
    summary = json.loads((out / "summary.json").read_text())

    def refusal(code: int) -> str:
        capsys.readouterr()
        assert main(["check", str(out)]) == code
        shown = capsys.readouterr()
        assert "accepted" not in shown.out
        return shown.out + shown.err

    for name, value in (
        ("curve", {}),
        ("radii", [0]),
        ("radii", [2, "0"]),
        ("runs", {}),
        ("quantity", "kappa"),
        ("remark", "audited"),
    ):
        (out / "summary.json").write_text(json.dumps({**summary, name: value}))
        assert f"summary.json says another {name} than the runs" in refusal(4)
    (out / "summary.json").unlink()
    assert "not all of the radii are measured" in refusal(3)
    (out / "summary.json").write_text(json.dumps(summary))
    certificate = min((out / "radius-2" / "certificates").iterdir())
    before = certificate.read_bytes()
    certificate.write_bytes(before.replace(b'"swaps":2', b'"swaps":3'))
    assert "refused: 1 of 2 radii" in refusal(4)
    certificate.write_bytes(before)
    (out / "radius-0").rename(out / "radius-1")
    assert "not a run of `measure --quantity pr --radius 1`" in refusal(2)
    assert main([*command, "0", "--limit", "1", "--out", str(out / "radius-0")]) == 0
    (out / "radius-1").rename(tmp_path / "elsewhere")
    assert "the runs are of different tasks: texts differs" in refusal(4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--radius", "two"], "whole numbers of swaps"),
        (["--radius", "1", "--delta", "2"], "between 0 and 1"),
        (["--radius", "1", "--epsilon", "small"], "a number such as"),
        (["--radius", "1", "--seconds", "0"], "a time above 0"),
    ],
)
def test_bad_options_are_one_line(
    task: Path, tmp_path: Path, capsys: Capture, options: list[str], message: str
) -> None:
    assert main(["measure", str(task), "--quantity", "pr", "--out", str(tmp_path / "run"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_another_question_needs_another_folder(task: Path, tmp_path: Path, capsys: Capture) -> None:
    measured(task, tmp_path / "run", "--radius", "1")
    assert main(["measure", str(task), "--quantity", "pr", "--radius", "2", "--out", str(tmp_path / "run")]) == 2
    assert "answers another question" in capsys.readouterr().err
    measured(task, tmp_path / "run", "--radius", "2", "--no-resume")
    assert main(["certify", str(task), "--out", str(tmp_path / "certified")]) == 0
    assert main(["measure", str(task), "--quantity", "pr", "--radius", "1", "--out", str(tmp_path / "certified")]) == 2
    assert "is not of `measure`" in capsys.readouterr().err
    assert main(["attack", str(task), "--method", "pdp", "--out", str(tmp_path / "certified")]) == 2
    assert "is not of `attack`" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["lstm", "attention"])
def test_a_model_that_cannot_be_read_is_sampled_through_onnxruntime(
    task: Path, tmp_path: Path, capsys: Capture, kind: str
) -> None:
    """Recurrent layers, attention and layer normalisation are outside the layers we know."""
    getattr(unreadable, kind)(task.parent / "model.onnx")
    out = tmp_path / "run"
    assert main(["measure", str(task), "--quantity", "pr", "--radius", "2", "--out", str(out)]) == 2
    assert "--sampled samples any model" in capsys.readouterr().err
    lines = measured(task, out, "--radius", "2", "--sampled", "--samples", "1000")
    assert "every sample was judged by onnxruntime" in " ".join(capsys.readouterr().out.split())
    expected = by_hand(task, 2)
    assert sum(hand is not None and hand[1] > 1 for hand in expected) > 2
    for line, hand in zip(lines, expected, strict=True):
        assert (hand is None) == (line["status"] == "already_wrong")
        if hand is not None:
            assert line["level"] == "replay"
            assert line["robust_fraction"]["low"] <= hand[0] / hand[1] <= line["robust_fraction"]["high"]
    assert main(["check", str(out)]) == 0
    assert "samples drawn again" in capsys.readouterr().out


def test_a_model_that_mixes_its_batch_is_asked_one_sentence_at_a_time(
    task: Path, tmp_path: Path, capsys: Capture
) -> None:
    unreadable.batch_mixing(task.parent / "model.onnx")
    run = tmp_path / "run"
    lines = measured(task, run, "--radius", "2", "--sampled", "--samples", "600")
    assert "so every sentence was answered alone" in " ".join(capsys.readouterr().out.split())
    model = open_model(task.parent / "model.onnx")
    replay = Replay.open(model)
    seen = 0
    for line, text in zip(lines, read_inputs(read_task(task), 6).texts, strict=True):
        own = [
            int(replay.answers(np.array([tokens]))[0]) == text.label for tokens in all_sentences(text.frozen.space, 2)
        ]
        if line["robust_fraction"] is not None:
            seen += 1
            assert line["robust_fraction"]["low"] <= sum(own) / len(own) <= line["robust_fraction"]["high"]
    assert seen > 2
    assert main(["check", str(run)]) == 0


def test_a_model_that_does_not_answer_as_a_classifier_does_is_one_line(
    task: Path, tmp_path: Path, capsys: Capture
) -> None:
    unreadable.per_word(task.parent / "model.onnx")
    run = tmp_path / "run"
    assert main(["measure", str(task), "--quantity", "pr", "--radius", "1", "--out", str(run), "--sampled"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "answers [8, 6] for 8 texts; a classifier of negative, positive answers [8, 2]" in line
    assert not run.exists()


class TestOptionalStopping:
    def test_every_interval_is_as_narrow_as_asked_for_and_encloses_the_count(
        self, task: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        run = tmp_path / "run"
        lines = measured(task, run, "--radius", "2", "--sampled", "--stop-when-width", "0.1")
        numbers = set()
        for line, hand in zip(lines, by_hand(task, 2), strict=True):
            if hand is None:
                continue
            found = line["robust_fraction"]
            sample = found["sample"]
            numbers.add(sample["samples"])
            assert sample["stopped"] == "width"
            assert sample["anytime"] == {"low": found["low"], "high": found["high"]}
            assert found["high"] - found["low"] <= 0.1 + 1e-9
            assert found["low"] <= hand[0] / hand[1] <= found["high"]
            assert not {"clopper_pearson", "hoeffding"} & set(sample)
        assert len(numbers) > 1
        assert "stopped at the width asked for" in capsys.readouterr().out
        assert main(["check", str(run)]) == 0
        assert "samples drawn again" in capsys.readouterr().out

    def test_what_is_drawn_depends_on_nothing_but_the_claim(self, task: Path, tmp_path: Path) -> None:
        """Another width goes on with the same draws; a number fixed beforehand has draws of its own."""
        seeds = []
        for name, options in {
            "narrow": ("--stop-when-width", "0.1"),
            "wide": ("--stop-when-width", "0.2", "--delta", "0.1"),
            "fixed": ("--samples", "500"),
        }.items():
            line = measured(task, tmp_path / name, "--radius", "2", "--sampled", "--limit", "1", *options)[0]
            seeds.append(line["robust_fraction"]["sample"]["seed"])
        assert seeds[0] == seeds[1] != seeds[2]

    def test_what_a_count_left_open_is_sampled_until_the_whole_is_narrow(
        self, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        monkeypatch.setattr(SMALL, 1)
        monkeypatch.setattr(PARTS, 1)
        monkeypatch.setattr("swapproof.verifier.counting.fraction.most_enumerated", lambda seconds: 4)
        run, seen = tmp_path / "run", 0
        for line, hand in zip(
            measured(task, run, "--radius", "4", "--stop-when-width", "0.05"), by_hand(task, 4), strict=True
        ):
            if line["status"] != "deterministic":
                continue
            seen += 1
            assert hand is not None
            sample = line["robust_fraction"]["sample"]
            assert sample["stopped"] == "width"
            assert sample["anytime"]["high"] - sample["anytime"]["low"] <= 0.05 + 1e-9
            assert sample["anytime"]["low"] <= hand[0] / hand[1] <= sample["anytime"]["high"]
        assert seen
        summary = json.loads((run / "summary.json").read_text())
        assert summary["confidence"] == 1.0
        assert summary["with_samples"]["confidence"] == 0.995
        certain, more = summary["robust_fraction"], summary["with_samples"]["robust_fraction"]
        assert certain["low"] <= more["low"] <= more["high"] <= certain["high"]
        assert "with samples of what the counts left open" in " ".join(capsys.readouterr().out.split())
        assert main(["check", str(run)]) == 0

    def test_too_few_samples_are_named(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        options = ("--sampled", "--stop-when-width", "0.01", "--samples", "300", "--limit", "1")
        (line,) = measured(task, run, "--radius", "2", *options)
        assert line["robust_fraction"]["sample"]["stopped"] == "most"
        assert line["reason"] == "the interval is wider than asked for after 300 samples"
        assert "stayed wider than asked for" in " ".join(capsys.readouterr().out.split())
        assert main(["check", str(run)]) == 0

    @pytest.mark.parametrize("options", [[], ["--stop-when-width", "0.01"]])
    @pytest.mark.usefixtures("larger")
    def test_a_clock_that_stops_the_drawing_leaves_the_interval_that_allows_for_it(
        self, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, options: list[str]
    ) -> None:
        monkeypatch.setattr("swapproof.verifier.counting.sampling.AT_ONCE", 100)
        monkeypatch.setattr(
            Budget, "spent", property(lambda self: self.deadline < float("inf") and self.evaluations >= 400)
        )
        run = tmp_path / "run"
        (line,) = measured(task, run, "--radius", "2", "--sampled", "--limit", "1", "--samples", "9000", *options)
        sample = line["robust_fraction"]["sample"]
        assert sample["stopped"] == "time"
        assert 400 <= sample["samples"] < 9000
        assert "anytime" in sample
        assert "hoeffding" not in sample
        assert line["reason"] == f"out of time after {sample['samples']:,} samples"
        assert "ran out of time" in capsys.readouterr().out
        monkeypatch.undo()
        assert main(["check", str(run)]) == 0

    @pytest.mark.parametrize(
        "change",
        [
            {"samples": 500},
            {"stopped": "time"},
            {"stopped": "number"},
            {"stopped": "most"},
            {"anytime": {"low": 0.9, "high": 0.95}},
            {"confidence": 0.999},
        ],
    )
    def test_another_end_than_the_rule_gives_is_refused(
        self, task: Path, tmp_path: Path, capsys: Capture, change: dict[str, Any]
    ) -> None:
        run = tmp_path / "run"
        measured(task, run, "--radius", "2", "--sampled", "--stop-when-width", "0.1", "--limit", "3")
        edit(run, lambda line: line["robust_fraction"]["sample"].update(change), "sampled")
        assert main(["check", str(run)]) == 4
        assert "the sample drawn again is another" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--stop-when-width", "0"], "between 0 and 1"),
            (["--stop-when-width", "narrow"], "a number such as"),
            (["--stop-when-width", "0.1", "--epsilon", "0.1"], "choose one"),
        ],
    )
    def test_bad_widths_are_one_line(
        self, task: Path, tmp_path: Path, capsys: Capture, options: list[str], message: str
    ) -> None:
        run = tmp_path / "run"
        assert main(["measure", str(task), "--quantity", "pr", "--radius", "1", "--out", str(run), *options]) == 2
        assert message in capsys.readouterr().err
        assert not run.exists()

    def test_a_width_is_no_option_of_kappa(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        options = ["--quantity", "kappa", "--stop-when-width", "0.1", "--out", str(tmp_path / "run")]
        assert main(["measure", str(task), *options]) == 2
        assert "belong to --quantity pr" in capsys.readouterr().err


class TestWhatIsSaid:
    @pytest.mark.usefixtures("larger")
    def test_sampled_texts_are_summed_up_with_the_confidence_of_all_together(
        self, task: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        lines = measured(task, tmp_path / "run", "--radius", "2", "--sampled", "--delta", "1/10")
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        shares = [hand[0] / hand[1] for hand in by_hand(task, 2) if hand is not None]
        mean = summary["robust_fraction"]
        assert summary["confidence"] == 0.9
        assert mean["low"] <= sum(shares) / len(shares) <= mean["high"]
        widest = max(line["robust_fraction"]["high"] - line["robust_fraction"]["low"] for line in lines[:1])
        assert mean["high"] - mean["low"] < widest, "texts together are known better than one"
        above, truth = summary["share_above_0.9"], sum(share > 0.9 for share in shares) / len(shares)
        assert above["low"] - 1e-9 <= truth <= above["high"] + 1e-9
        said = " ".join(capsys.readouterr().out.split())
        assert "0.9" in said
        assert "hold together at the confidence beside them" in said

    def test_counted_texts_are_certain(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        measured(task, tmp_path / "run", "--radius", "2")
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert summary["confidence"] == 1.0
        assert "with_samples" not in summary
        assert "certain" in capsys.readouterr().out

    def test_what_is_left_out_is_counted_by_reason(self, tmp_path: Path, capsys: Capture) -> None:
        """Candidates that the vocabulary does not know, an unknown word, a word beyond the model's length."""
        task = write_task(
            tmp_path / "task",
            rows=[("a good stuff film", "positive"), ("great great great great great great bad", "positive")],
        )
        table = json.loads((task.parent / "synonyms.json").read_text())
        table["good"] += ["splendid", "the film"]
        table["stuff"] = ["film"]
        (task.parent / "synonyms.json").write_text(json.dumps(table))
        measured(task, tmp_path / "run", "--radius", "1")
        said = " ".join(capsys.readouterr().out.split())
        swaps = json.loads((tmp_path / "run" / "summary.json").read_text())["swaps"]
        assert swaps["removed"]["not in vocabulary"] == 2
        assert swaps["fixed"] | {"unknown word": 1, "word beyond the model's length": 1} == swaps["fixed"]
        assert "not in vocabulary 2" in said
        assert (tmp_path / "run" / "left_out.csv").read_text() == (
            "word,candidate,reason,positions\n"
            "good,splendid,not in vocabulary,1\n"
            "good,the film,not in vocabulary,1\n"
            "stuff,film,unknown word,1\n"
        )
        assert "unknown word 1" in said
        assert "word beyond the model's length 1" in said

    def test_one_class_in_all_texts(self, tmp_path: Path) -> None:
        task = write_task(tmp_path / "task", rows=[("a good film", "positive"), ("great movie", "positive")])
        lines = measured(task, tmp_path / "run", "--radius", "2")
        assert [line["status"] for line in lines] == ["exact", "exact"]

    def test_texts_that_are_all_wrong_leave_nothing_to_measure(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task", rows=[("awful", "positive"), ("great movie", "negative")])
        measured(task, tmp_path / "run", "--radius", "2")
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert (summary["already_wrong"], summary["measured"], summary["confidence"]) == (2, 0, None)
        assert summary["robust_fraction"] == {"low": None, "high": None}
        assert "none" in capsys.readouterr().out
        assert main(["check", str(tmp_path / "run")]) == 0


def test_a_space_without_any_swap_is_its_text(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", rows=[("the a the", "positive"), ("a good film", "positive")])
    lines = measured(task, tmp_path / "run", "--radius", "3")
    assert lines[0]["robust_fraction"] | {"robust": "1", "total": "1"} == lines[0]["robust_fraction"]
    model = open_model(task.parent / "model.onnx")
    assert network_of(model, 6).length == SwapSpace(tuple((0,) for _ in range(6))).length


class TestSmallSpaces:
    """Where a sample would be no smaller than the space, every sentence is judged once: nothing is left to chance."""

    def test_every_sentence_is_judged_once(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        lines, expected = measured(task, run, "--radius", "2", "--sampled"), by_hand(task, 2)
        for line, hand in zip(lines, expected, strict=True):
            if hand is None:
                continue
            found = line["robust_fraction"]
            assert line["status"] == found["kind"] == "exact"
            assert found["low"] == found["high"] == pytest.approx(hand[0] / hand[1])
            assert (found["sample"]["samples"], found["sample"]["stopped"]) == (hand[1], "all")
            assert found["sample"]["confidence"] == 1.0
            assert line["certificate"] is None
        summary = json.loads((run / "summary.json").read_text())
        assert summary["confidence"] == 1.0
        assert summary["robust_fraction"]["low"] == summary["robust_fraction"]["high"]
        assert "each was judged once" in " ".join(capsys.readouterr().out.split())
        assert main(["check", str(run)]) == 0

    def test_a_space_larger_than_the_sample_is_sampled(self, task: Path, tmp_path: Path) -> None:
        (line,) = measured(task, tmp_path / "run", "--radius", "2", "--sampled", "--limit", "1", "--samples", "2")
        assert int(line["robust_fraction"]["total"]) > 2
        assert (line["status"], line["robust_fraction"]["sample"]["stopped"]) == ("sampled", "number")

    def test_another_number_than_was_counted_is_refused(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        measured(task, run, "--radius", "2", "--sampled", "--limit", "3")
        edit(run, lambda line: line["robust_fraction"].update(low=0.125, high=0.125), "exact")
        assert main(["check", str(run)]) == 4
        assert "the interval is not that of the sample" in capsys.readouterr().out

    def test_samples_that_earlier_versions_drew_are_accepted(self, task: Path, tmp_path: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Stop, "lists", lambda self, total: False)
            lines = measured(task, tmp_path / "run", "--radius", "2", "--sampled")
        assert lines[0]["status"] == "sampled"
        assert main(["check", str(tmp_path / "run")]) == 0

    def test_a_clock_that_stops_it_leaves_certain_ends(
        self, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("swapproof.verifier.counting.sampling.AT_ONCE", 2)
        monkeypatch.setattr(
            Budget, "spent", property(lambda self: self.deadline < float("inf") and self.evaluations >= 4)
        )
        run = tmp_path / "run"
        (line,) = measured(task, run, "--radius", "2", "--sampled", "--limit", "1")
        hand = by_hand(task, 2)[0]
        assert hand is not None
        found = line["robust_fraction"]
        assert (line["status"], found["sample"]["stopped"]) == ("deterministic", "some")
        assert found["low"] <= hand[0] / hand[1] <= found["high"]
        assert found["low"] < found["high"]
        monkeypatch.undo()
        assert main(["check", str(run)]) == 0
