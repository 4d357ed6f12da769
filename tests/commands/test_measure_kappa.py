"""`measure --quantity kappa` end to end on a tiny model: what it writes, leaves out and refuses."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from handmade import node, save
from smooth_models import exported, lstm, torch_module
from tiny import ROWS, WORDS, write_task

from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.verifier.cli import main
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.pages.printing.kappa_printing import speed_line
from swapproof.verifier.single_words.brute_force import flips_by_force
from swapproof.verifier.single_words.replacements import Candidates

Capture = pytest.CaptureFixture[str]


TEXTS = [*ROWS, ("awful film", "positive")]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", rows=TEXTS)


def by_hand(task: Path, rows: Sequence[tuple[str, str]] = TEXTS) -> tuple[dict[str, Fraction], int]:
    """kappa of every word, by onnxruntime on every sentence; and the number of texts answered correctly."""
    replay = Replay.open(open_model(task.parent / "model.onnx"))
    letters = [word for word in WORDS if word.isalpha()]
    flips, texts = dict.fromkeys(letters, 0), 0
    for text, label in rows:
        words = text.lower().split()
        tokens = [WORDS.index(word) if word in WORDS else 1 for word in words]
        padded = np.array([tokens + [0] * (6 - len(tokens))])
        gold = ["negative", "positive"].index(label)
        if int(replay.answers(padded)[0]) != gold:
            continue
        texts += 1
        for word in letters:
            swapped = np.repeat(padded, len(tokens), axis=0)
            swapped[np.arange(len(tokens)), np.arange(len(tokens))] = WORDS.index(word)
            flips[word] += bool((replay.answers(swapped) != gold).any())
    return {word: Fraction(count, texts) for word, count in flips.items()}, texts


def measured(task: Path, out: Path, *options: str) -> dict[str, Any]:
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(out), *options]) == 0
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


@pytest.mark.parametrize("options", [(), ("--brute-force",)])
def test_kappa_and_rho_are_those_of_every_sentence(task: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    """The unknown "," is a position; "<pad>" and "<unk>" are no words; texts already wrong are left out."""
    summary = measured(task, tmp_path / "run", *options)
    kappa, texts = by_hand(task)
    assert 0 < texts < len(TEXTS)
    assert 0 < sum(kappa.values()) < len(kappa)
    rho = 1 - sum(kappa.values()) / len(kappa)
    assert summary["rho_exact"] == [str(rho), str(rho)]
    assert summary["rho"] == {"low": float(rho), "high": float(rho)}
    assert (summary["texts"], summary["answered_correctly"]) == (len(TEXTS), texts)
    assert summary["already_wrong"] == len(TEXTS) - texts
    with (tmp_path / "run" / "kappa.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["word"]: float(row["low"]) for row in rows} == {word: float(value) for word, value in kappa.items()}
    assert all(row["low"] == row["high"] for row in rows)
    assert [float(row["high"]) for row in rows] == sorted((float(value) for value in kappa.values()), reverse=True)


def test_the_parquet_file_holds_the_same_table(task: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    measured(task, tmp_path / "run")
    table = parquet.read_table(tmp_path / "run" / "kappa.parquet").to_pylist()
    with (tmp_path / "run" / "kappa.csv").open() as file:
        assert [row["word"] for row in table] == [row["word"] for row in csv.DictReader(file)]


def test_the_report_shows_it_again_and_check_asks_again(task: Path, tmp_path: Path, capsys: Capture) -> None:
    measured(task, tmp_path / "run")
    shown = capsys.readouterr().out
    assert "rho =" in shown
    assert "a word replaced by itself is no flip" in " ".join(shown.split())
    assert main(["report", str(tmp_path / "run")]) == 0
    assert "rho =" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "run")]) == 0
    assert "kappa has no certificates" in capsys.readouterr().out


def test_measured_again_in_the_same_folder_and_not_over_another_run(
    task: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "run"
    first, again = measured(task, out), measured(task, out)
    assert first["rho"] == again["rho"]
    assert main(["certify", str(task), "--out", str(tmp_path / "other")]) == 0
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "other")]) == 2
    assert "another one" in capsys.readouterr().err


def test_a_model_that_answers_nothing_correctly_has_no_kappa(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task", rows=[("awful", "positive"), ("great", "negative")])
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "run")]) == 2
    assert "no text correctly" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_texts_that_rounding_decides_are_not_called_wrong(tmp_path: Path, capsys: Capture) -> None:
    """Both logits are a tenth of a mean: they tie over the reals, and rounding may part them."""
    task = write_task(tmp_path / "task", rows=[("a good film", "negative")])
    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        node("ReduceMean", "embedded", "mean", axes=[1], keepdims=0),
        node("Gemm", "mean w", "logits"),
    ]
    weights = {"table": [[1.0]] * len(WORDS), "w": [[0.1, 0.1]]}
    save(task.parent, nodes, weights, length=6).replace(task.parent / "model.onnx")
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "run")]) == 2
    assert "whatever the rounding, which decides 1 of them" in capsys.readouterr().err


def test_a_text_that_rounding_decides_widens_the_interval(tmp_path: Path) -> None:
    """It may be answered correctly or not, and any word may flip it: from f / (n + 1) to (f + 1) / (n + 1)."""
    rows = [("good film", "positive"), ("bad film", "negative"), ("the a", "negative")]
    task = write_task(tmp_path / "task", rows=rows)
    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        node("ReduceMean", "embedded", "mean", axes=[1], keepdims=0),
        node("Gemm", "mean w", "logits"),
    ]
    sentiment = np.array([[1.0, {"good": 9.0, "bad": -9.0}.get(word, 0.0)] for word in WORDS])
    save(task.parent, nodes, {"table": sentiment, "w": [[0.1, 0.1], [-1.0, 1.0]]}, length=6).replace(
        task.parent / "model.onnx"
    )
    summary = measured(task, tmp_path / "run")
    assert (summary["answered_correctly"], summary["ambiguous"], summary["already_wrong"]) == (2, 1, 0)
    with (tmp_path / "run" / "kappa.csv").open() as file:
        kappa = {row["word"]: (float(row["low"]), float(row["high"])) for row in csv.DictReader(file)}
    assert kappa["good"] == kappa["bad"] == (1 / 3, 2 / 3)
    low, high = (Fraction(end) for end in summary["rho_exact"])
    assert high - low == Fraction(1, 3)
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert [line["ambiguous"] for line in lines] == [False, False, True]


def test_one_class_only_is_measured(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", rows=[("awful", "negative"), ("bad film", "negative")])
    summary = measured(task, tmp_path / "run")
    assert list(summary["highest_kappa"][0]["by_class"]) == ["negative"]


@pytest.mark.parametrize("variant", ["paper", "top1", "no-mask"])
def test_euba_is_shown_beside_the_exact_value(task: Path, tmp_path: Path, capsys: Capture, variant: str) -> None:
    summary = measured(task, tmp_path / "run", "--euba", "4", "--euba-variant", variant)
    euba = summary["euba"]
    assert euba["gap"]["low"] == euba["gap"]["high"] == pytest.approx(euba["rho"] - summary["rho"]["high"], abs=1e-12)
    assert euba["gap"]["low"] >= 0
    assert euba["flips_that_are_none"] == 0
    assert (euba["mask"], euba["variant"]) == ("<unk>", variant)
    assert "above the exact value" in " ".join(capsys.readouterr().out.split())


@pytest.fixture
def recurrent(tmp_path: Path) -> Path:
    """A task whose model is an LSTM; every text but the last has the class that it answers."""
    task = write_task(tmp_path / "task")
    lstm(task.parent, len(WORDS), 6, seed=3)
    replay = Replay.open(open_model(task.parent / "model.onnx"))
    rows = []
    for text, _ in [*ROWS, ("awful movie", "")]:
        words = text.lower().split()
        tokens = [WORDS.index(word) if word in WORDS else 1 for word in words]
        rows.append(
            (text, ["negative", "positive"][int(replay.answers(np.array([tokens + [0] * (6 - len(tokens))]))[0])])
        )
    rows[-1] = (rows[-1][0], "negative" if rows[-1][1] == "positive" else "positive")
    (task.parent / "texts.tsv").write_text("\n".join(["text\tlabel", *("\t".join(row) for row in rows)]) + "\n")
    return task


def test_a_model_that_cannot_be_read_gets_estimates_first(recurrent: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["measure", str(recurrent), "--quantity", "kappa", "--out", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert "LSTM" in message
    assert "--brute-force would evaluate" in message
    assert "CPU s" in message
    assert "--euba 512 finds flips only" in message
    assert not (tmp_path / "run").exists()


def test_an_lstm_by_brute_force_has_the_kappa_of_every_sentence(recurrent: Path, tmp_path: Path) -> None:
    summary = measured(recurrent, tmp_path / "run", "--brute-force")
    texts = [line.split("\t") for line in (recurrent.parent / "texts.tsv").read_text().splitlines()[1:]]
    kappa, count = by_hand(recurrent, [(text, label) for text, label in texts])
    assert (summary["level"], summary["answered_correctly"], summary["already_wrong"]) == ("replay", count, 1)
    assert 0 < sum(kappa.values()) < len(kappa)
    assert summary["rho_exact"] == [str(1 - sum(kappa.values()) / len(kappa))] * 2


@pytest.mark.parametrize("variant", ["paper", "top1", "no-mask"])
def test_the_gap_of_euba_on_an_lstm(recurrent: Path, tmp_path: Path, capsys: Capture, variant: str) -> None:
    """Alone it leaves everything else open; beside brute force its gap is known."""
    options = ["--euba", "2", "--euba-variant", variant]
    assert main(["measure", str(recurrent), "--quantity", "kappa", "--out", str(tmp_path / "alone"), *options]) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "EUBA finds flips only" in shown
    alone = json.loads((tmp_path / "alone" / "summary.json").read_text())
    assert alone["rho"] == {"low": 0.0, "high": alone["euba"]["rho"]}
    assert "gap" not in alone["euba"]
    both = measured(recurrent, tmp_path / "both", "--brute-force", *options)
    assert both["euba"]["rho"] == alone["euba"]["rho"] >= both["rho"]["high"] == both["rho"]["low"]
    gap = both["euba"]["rho"] - both["rho"]["low"]
    assert both["euba"]["gap"] == {"low": pytest.approx(gap), "high": pytest.approx(gap)}
    assert both["euba"]["flips_that_are_none"] == 0
    output = capsys.readouterr()
    assert "above the brute-force value" in " ".join(output.out.split())
    assert "sentences for gradients" in output.err
    assert "a step twice as long changes them by" in both["euba"]["gradients"]


def test_torch_differentiates_what_it_computes(recurrent: Path, tmp_path: Path) -> None:
    """Unstopped, EUBA finds every flip, whoever differentiates."""
    pytest.importorskip("onnxscript")
    exported(torch_module("transformer-2", len(WORDS), 6, seed=2), recurrent.parent / "model.onnx", 6, dynamo=False)
    found = measured(recurrent, tmp_path / "run", "--brute-force", "--euba", "1000000")
    assert 0 < found["rho"]["low"] < 1
    assert found["euba"]["rho"] == found["rho"]["low"]
    assert found["euba"]["gradients"] == "by torch, which computes the same graph"
    assert "ByAutograd" in found["euba"]["kept_as"]


def test_brute_force_out_of_time_leaves_an_interval_that_euba_narrows(
    recurrent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["measure", str(recurrent), "--quantity", "kappa", "--brute-force"]
    assert main([*command, "--seconds", "1e-9", "--euba", "9", "--out", str(tmp_path / "none")]) == 3
    none = json.loads((tmp_path / "none" / "summary.json").read_text())
    assert none["rho"] == {"low": 0.0, "high": 1.0}
    assert none["rho_of_the_distribution"]["hoeffding"] == [0.0, 1.0]

    def out_of_time(answers: Any, words: Any, subject: Any, deadline: float, batch: int) -> Any:
        return flips_by_force(answers, words, subject, 0.0, batch)

    monkeypatch.setattr("swapproof.verifier.single_words.part_search.flips_by_force", out_of_time)
    assert main([*command, "--euba", "9", "--out", str(tmp_path / "euba")]) == 3
    narrowed = json.loads((tmp_path / "euba" / "summary.json").read_text())
    assert narrowed["rho"] == {"low": 0.0, "high": narrowed["euba"]["rho"]}
    assert narrowed["rho"]["high"] < 1.0
    assert narrowed["euba"]["gap"] == {"low": 0.0, "high": narrowed["euba"]["rho"]}


@pytest.mark.parametrize(
    ("options", "done", "total"),
    [(["--brute-force"], 3, 8), (["--euba", "3"], 3, 8), (["--brute-force", "--euba", "3"], 11, 16)],
)
def test_a_killed_run_goes_on_where_it_was(
    recurrent: Path,
    tmp_path: Path,
    options: list[str],
    done: int,
    total: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    """Texts that are finished are not asked about again, and the end is that of a run in one go."""
    from swapproof.verifier.single_words.euba.euba_flips import Euba

    command = ["measure", str(recurrent), "--quantity", "kappa", *options, "--out"]
    code = main([*command, str(tmp_path / "whole")])
    asked: list[object] = []
    whole = Euba.flips

    def killed(subject: object) -> None:
        if len(asked) == stop:
            raise KeyboardInterrupt
        asked.append(subject)

    def euba(self: Euba, subject: Any) -> Any:
        killed(subject)
        return whole(self, subject)

    def by_force(answers: Any, words: Any, subject: Any, *more: Any) -> Any:
        killed(subject)
        return flips_by_force(answers, words, subject, *more)

    monkeypatch.setattr(Euba, "flips", euba)
    monkeypatch.setattr("swapproof.verifier.single_words.part_search.flips_by_force", by_force)
    stop = done
    assert main([*command, str(tmp_path / "run")]) == 130
    assert "can be resumed" in capsys.readouterr().err
    stop = -1
    assert main([*command, str(tmp_path / "run")]) == code
    assert len(asked) == total
    ends = []
    for name in ("whole", "run"):
        summary = json.loads((tmp_path / name / "summary.json").read_text())
        for part in (summary, summary.get("euba", {})):
            for measurement in ("seconds", "cpu_seconds", "speed"):
                part.pop(measurement, None)
        ends.append((summary, (tmp_path / name / "results.jsonl").read_bytes()))
    assert ends[0] == ends[1]


def test_a_killed_exact_run_keeps_the_class_that_is_done(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swapproof.verifier.single_words.exact_flips.flips import Flips, FlipSearch

    asked: list[int] = []
    whole, stop = FlipSearch.run, 1
    first = measured(task, tmp_path / "whole")

    def run(self: FlipSearch) -> Flips:
        if len(asked) == stop:
            raise KeyboardInterrupt
        asked.append(self.label)
        return whole(self)

    monkeypatch.setattr(FlipSearch, "run", run)
    command = ["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "run")]
    assert main(command) == 130
    stop = -1
    again = measured(task, tmp_path / "run")
    assert sorted(asked) == [0, 1]
    assert [again[name] for name in ("rho", "work", "highest_kappa")] == [
        first[name] for name in ("rho", "work", "highest_kappa")
    ]


def test_a_changed_task_is_not_resumed_unless_anew(task: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "run"
    measured(task, out)
    (task.parent / "texts.tsv").write_text("text\tlabel\na good film\tpositive\n")
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(out)]) == 2
    assert "the texts changed" in capsys.readouterr().err
    assert measured(task, out, "--no-resume")["texts"] == 1


def test_a_run_that_was_moved_is_measured_again_from_its_own_files(task: Path, tmp_path: Path) -> None:
    """Nothing in it names the folders that it was made in."""
    first = measured(task, tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "moved")
    shutil.rmtree(task.parent)
    assert str(tmp_path) not in (tmp_path / "moved" / "task.toml").read_text()
    again = measured(tmp_path / "moved" / "task.toml", tmp_path / "again")
    assert [again[name] for name in ("rho", "highest_kappa")] == [first[name] for name in ("rho", "highest_kappa")]
    assert (tmp_path / "again" / "kappa.csv").read_bytes() == (tmp_path / "moved" / "kappa.csv").read_bytes()
    anew = measured(tmp_path / "moved" / "task.toml", tmp_path / "moved", "--no-resume")
    assert anew["rho"] == first["rho"]


def test_a_run_killed_while_its_files_were_copied_is_begun_again(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: Any) -> None:
        raise KeyboardInterrupt

    command = ["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "run")]
    with monkeypatch.context() as patch:
        patch.setattr("swapproof.verifier.runs.life.copy_inputs", killed)
        assert main(command) == 130
    measured(task, tmp_path / "run")
    assert (tmp_path / "run" / "model.onnx").read_bytes() == (task.parent / "model.onnx").read_bytes()


def test_effects_on_accuracy_are_those_of_the_sentences(task: Path, tmp_path: Path) -> None:
    """Of the texts with "good", and of these without it; of the texts without it, and of these with it anywhere."""
    summary = measured(task, tmp_path / "run")
    replay = Replay.open(open_model(task.parent / "model.onnx"))

    def right(words: list[str], label: str) -> bool:
        tokens = [WORDS.index(word) if word in WORDS else 1 for word in words]
        answer = int(replay.answers(np.array([tokens + [0] * (6 - len(tokens))]))[0])
        return ["negative", "positive"][answer] == label

    texts = [(text.lower().split(), label) for text, label in TEXTS]
    held = [(words, label) for words, label in texts if "good" in words]
    others = [(words, label) for words, label in texts if "good" not in words]
    attacked = [
        all(right([*words[:at], "good", *words[at + 1 :]], label) for at in range(len(words))) and right(words, label)
        for words, label in others
    ]
    removed = [right([word for word in words if word != "good"], label) for words, label in held]
    (good,) = (one for one in summary["highest_kappa"] if one["word"] == "good")
    assert (good["texts_with_it"], good["texts_without_it"]) == (len(held), len(others))
    assert 0 < len(held) < len(TEXTS)
    for name, expected in (
        ("accuracy_with_it", [right(*one) for one in held]),
        ("accuracy_with_it_removed", removed),
        ("accuracy_without_it", [right(*one) for one in others]),
        ("accuracy_with_it_put_in", attacked),
    ):
        assert good[name] == pytest.approx(sum(expected) / len(expected), abs=1e-6), name
    alone = next(one for one in summary["highest_kappa"] if one["word"] == "awful")
    assert (alone["texts_with_it"], alone["texts_of_it_alone"]) == (2, 1)


def test_parts_of_speech_name_their_source(task: Path, tmp_path: Path) -> None:
    parts = measured(task, tmp_path / "run")["parts_of_speech"]
    assert parts["words"] == sum(word.isalpha() for word in WORDS)
    assert sum(parts["counts"].values()) in (0, parts["words"])
    assert (parts["source"] is None) == (not parts["counts"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--quantity", "kappa", "--euba", "4", "--euba-variant", "top2"], "can be paper, top1, no-mask"),
        (["--quantity", "rho"], "can be pr, kappa, msr or vote"),
        (["--quantity", "kappa", "--radius", "2"], "belong to --quantity pr"),
        (["--quantity", "pr"], "needs --radius"),
        (["--quantity", "pr", "--radius", "1", "--brute-force"], "belong to --quantity kappa"),
    ],
)
def test_misfitting_options_are_refused(
    task: Path, tmp_path: Path, capsys: Capture, options: list[str], message: str
) -> None:
    assert main(["measure", str(task), "--out", str(tmp_path / "run"), *options]) == 2
    assert message in capsys.readouterr().err


def test_words_of_several_tokens_are_listed_and_not_tried() -> None:
    class Pieces:
        """Reads "unfunny" as two pieces."""

        ids: ClassVar = {"un": 0, "funny": 1, "unfunny": 2, "##x": 3, "good!": 4, "<pad>": 5}

        def tokens_of(self, word: str) -> tuple[int, ...] | None:
            return (0, 1) if word == "unfunny" else (self.ids[word],)

    found = Candidates.of(Pieces())  # type: ignore[arg-type]
    assert found.words == ("un", "funny")
    assert found.several == ("unfunny",)


@pytest.mark.parametrize(
    ("spent", "other", "ratio", "shown"),
    [
        (0.36, 97.4, 270.6, "0.36 CPU seconds; evaluated in batches by onnxruntime they would take 97 CPU seconds"),
        (0.02, 0.25, 12.5, "they would take 0.25 CPU seconds (extrapolated from 512): 12 times as long"),
        (0.001, 0.004, 4.0, "7 sentences in 0.001 CPU seconds"),
        (0.0, 0.0, None, "7 sentences in 0 CPU seconds"),
    ],
)
def test_times_have_a_unit_and_next_to_nothing_is_not_compared(
    spent: float, other: float, ratio: float | None, shown: str
) -> None:
    speed = {"sentences": 7, "cpu_seconds": spent, "ratio": ratio, "onnxruntime_sample": 512}
    line = speed_line({**speed, "onnxruntime_cpu_seconds_extrapolated": other})
    assert shown in line
    assert ("times as long" in line) == (other > 0.01)
