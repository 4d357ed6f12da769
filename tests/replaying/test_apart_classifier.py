"""A Python function that ends its process, or answers nothing, ends neither the command nor what is known of others."""

from __future__ import annotations

import importlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from command_runs import Capture, results
from tiny import write_task

from swapproof.models.deployed.classifier import NoAnswer
from swapproof.verifier.cli import main
from swapproof.verifier.replaying.apart_classifier import open_apart
from swapproof.verifier.tasks.deployed_model import FOREIGN, Trust
from swapproof.verifier.tasks.inputs import read_plain
from swapproof.verifier.tasks.task import read_task

FUNCTION = """
import os

GOOD = {"good": 3, "fine": 1, "great": 4, "bad": -3, "poor": -1, "awful": -4}


def scores(texts):
    if any("film" in text.lower() for text in texts):
        os._exit(7)
    totals = [sum(GOOD.get(word, 0) for word in text.lower().split()) for text in texts]
    return [[-total, total + 0.5] for total in totals]


def ends(texts):
    os._exit(0)


def silent(texts):
    return [[float("nan"), 0.0] for _ in texts]


def named(texts):
    return [{"up": 1.0, "down": 0.0} for _ in texts]


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError


def speechless(texts):
    raise Speechless
"""


FEW = [("awful", "negative"), ("a good film", "positive")]


def task_of(folder: Path, function: str, rows: list[tuple[str, str]] | None = None) -> Path:
    gone = dict.fromkeys(("model_onnx", "model_vocabulary", "model_length", "model_lowercase"))
    task = write_task(folder, rows, **gone, model_callable=f"ending_module:{function}")
    (folder / "ending_module.py").write_text(FUNCTION)
    return task


def test_a_text_that_ends_its_process_has_no_answer_and_others_do(tmp_path: Path, capsys: Capture) -> None:
    task, run = task_of(tmp_path / "task", "scores", FEW), tmp_path / "run"
    assert main(["attack", str(task), "--method", "greedy", "--out", str(run)]) == 3
    first, second = results(run)
    assert (first["predicted"], second["predicted"]) == (0, None)
    assert "exit code 7, 3 times" in second["reason"]
    capsys.readouterr()
    assert main(["check", str(run)]) in (0, 3)
    assert "refused" not in capsys.readouterr().out


def test_a_function_that_always_ends_its_process_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    task = task_of(tmp_path / "task", "ends", FEW[:1])
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "exit code 0" in line


@pytest.mark.parametrize(
    ("function", "said"),
    [("named", "scores of up, down, and [model] labels are"), ("speechless", "raised Speechless; the text is")],
)
def test_a_mistake_of_the_function_is_one_line(function: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    """Also what this program refuses in the process of the function, and an exception that cannot say what it is."""
    task = task_of(tmp_path / "task", function, FEW[:1])
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


PREPARED = """
import os
import signal


def prepared(text):
    if "film" in text:
        os.kill(os.getpid(), signal.SIGSEGV)
    return text.lower()
"""


def test_a_pipeline_that_crashes_its_process_at_a_text_is_asked_about_others_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of others: it never runs in the process of the command."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    pipelines = pytest.importorskip("sklearn.pipeline")
    (tmp_path / "crashing_module.py").write_text(PREPARED)
    monkeypatch.syspath_prepend(tmp_path)
    crashing = importlib.import_module("crashing_module")
    pipeline = pipelines.make_pipeline(
        text.CountVectorizer(preprocessor=crashing.prepared), linear.LogisticRegression()
    ).fit(["good", "great", "bad", "awful"], [1, 1, 0, 0])
    gone = dict.fromkeys(("model_onnx", "model_vocabulary", "model_length", "model_lowercase"))
    path = write_task(tmp_path / "task", FEW, **gone, model_sklearn="model.pickle")
    (tmp_path / "task" / "model.pickle").write_bytes(pickle.dumps(pipeline))
    task = read_task(path)
    classifier = open_apart(task, Trust(pickle=True), kinds=FOREIGN)
    awful, film = (one.swaps for one in read_plain(task).texts)
    rows = np.zeros((1, 1), dtype=np.int32)
    expected = pipeline.decision_function(["awful"])
    assert classifier.variants(awful).scores(rows)[:, 0] == expected
    with pytest.raises(NoAnswer, match="killed by SIGSEGV"):
        classifier.variants(film).scores(np.zeros((1, 3), dtype=np.int32))
    assert classifier.scores([("awful",)])[:, 0] == expected


def test_a_model_that_answers_nan_to_every_text_says_little_and_meets_no_requirement(
    tmp_path: Path, capsys: Capture
) -> None:
    task, run = task_of(tmp_path / "task", "silent"), tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run), "--radius", "1"]) == 3
    said = "the model answers none of the 8 texts with a class"
    assert said in capsys.readouterr().out
    assert any(said in one for one in json.loads((run / "summary.json").read_text())["vacuous"])
