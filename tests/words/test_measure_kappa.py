"""`measure --quantity kappa` end to end on a tiny model: what it writes, leaves out and refuses."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from handmade import node, save
from tiny import ROWS, WORDS, write_task

from swapproof.encodings.reading import open_model
from swapproof.verifier.cli import main
from swapproof.verifier.replay import Replay
from swapproof.verifier.words.single_words import Candidates

Capture = pytest.CaptureFixture[str]


TEXTS = [*ROWS, ("awful film", "positive")]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", rows=TEXTS)


def by_hand(task: Path) -> tuple[dict[str, Fraction], int]:
    """kappa of every word, by onnxruntime on every sentence; and the number of texts answered correctly."""
    replay = Replay.open(open_model(task.parent / "model.onnx"))
    letters = [word for word in WORDS if word.isalpha()]
    flips, texts = dict.fromkeys(letters, 0), 0
    for text, label in TEXTS:
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


def test_the_report_shows_it_again_and_check_says_there_is_nothing(task: Path, tmp_path: Path, capsys: Capture) -> None:
    measured(task, tmp_path / "run")
    shown = capsys.readouterr().out
    assert "rho =" in shown
    assert "a word replaced by itself is no flip" in " ".join(shown.split())
    assert main(["report", str(tmp_path / "run")]) == 0
    assert "rho =" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "run")]) == 2
    assert "kappa has no certificates" in capsys.readouterr().err


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


def test_one_class_only_is_measured(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", rows=[("awful", "negative"), ("bad film", "negative")])
    summary = measured(task, tmp_path / "run")
    assert list(summary["highest_kappa"][0]["by_class"]) == ["negative"]


@pytest.mark.parametrize("variant", ["paper", "top1", "no-mask"])
def test_euba_is_shown_beside_the_exact_value(task: Path, tmp_path: Path, capsys: Capture, variant: str) -> None:
    summary = measured(task, tmp_path / "run", "--euba", "4", "--euba-variant", variant)
    euba = summary["euba"]
    assert euba["rho"] - summary["rho"]["high"] == pytest.approx(euba["gap"], abs=1e-12)
    assert euba["gap"] >= 0
    assert euba["flips_that_are_none"] == 0
    assert (euba["mask"], euba["variant"]) == ("<unk>", variant)
    assert "above the exact value" in " ".join(capsys.readouterr().out.split())


def test_a_model_that_cannot_be_read_gets_an_estimate_first_and_then_brute_force(
    tmp_path: Path, capsys: Capture
) -> None:
    """A sigmoid inside the network is outside the layers we know."""
    import onnx
    from onnx import helper

    task = write_task(tmp_path / "task", rows=TEXTS)
    path = task.parent / "model.onnx"
    model = onnx.load(path)
    relu = next(node for node in model.graph.node if node.op_type == "Relu")
    relu.CopyFrom(helper.make_node("Sigmoid", list(relu.input), list(relu.output)))
    onnx.save(model, path)
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert "--brute-force would evaluate" in message
    assert "CPU s" in message
    summary = measured(task, tmp_path / "run", "--brute-force")
    kappa, _ = by_hand(task)
    assert summary["level"] == "replay"
    assert summary["rho_exact"][0] == str(1 - sum(kappa.values()) / len(kappa))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--quantity", "kappa", "--euba", "4", "--brute-force"], "needs gradients"),
        (["--quantity", "kappa", "--euba", "4", "--euba-variant", "top2"], "can be paper, top1, no-mask"),
        (["--quantity", "rho"], "can be pr or kappa"),
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
