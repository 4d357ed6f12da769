"""Models with one score, a threshold, a column, several outputs or a newer opset: what is certified of the model made
from them is what the model as given answers to every sentence."""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from both_checkers import agree_on_each
from command_runs import results
from pooled_models import Pooled, answers, pooled, write_pooled
from tiny import SYNONYMS

from swapproof.encodings.errors import BadInput, Disagreement, Unsupported
from swapproof.encodings.onnx_files.adaptation import adapted
from swapproof.encodings.onnx_files.model_ports import Scores
from swapproof.models.deployed.decision import Decision
from swapproof.verifier.cli import main
from swapproof.verifier.tasks.opened_model import opened
from swapproof.verifier.tasks.task import read_task

CASES: dict[str, tuple[Pooled, dict[str, Any]]] = {
    "one logit": (Pooled(ending="one"), {}),
    "one logit, threshold": (Pooled(ending="one"), {"threshold": 0.3}),
    "logits without classes": (Pooled(ending="flat"), {"threshold": 0.7}),
    "sigmoid": (Pooled(ending="sigmoid"), {"scores": "sigmoid"}),
    "sigmoid, threshold": (Pooled(ending="sigmoid"), {"scores": "sigmoid", "threshold": 0.3}),
    "column": (Pooled(ending="column"), {"scores": "sigmoid", "column": 1, "threshold": 0.6}),
    "first column": (Pooled(ending="column"), {"scores": "probabilities", "column": 0}),
    "softmax, threshold": (Pooled(ending="softmax"), {"scores": "probabilities", "threshold": 0.3}),
    "two logits, threshold": (Pooled(), {"threshold": 0.3}),
    "an output by name": (Pooled(ending="more"), {"output": "logits"}),
    "an output by number": (Pooled(ending="more"), {"output": 2, "scores": "probabilities", "threshold": 0.3}),
    "an axis of size 1": (Pooled(ending="tall"), {}),
    "opset 23": (Pooled(opset=23), {}),
    "opset 24, one logit": (Pooled(opset=24, ending="one", roles=("tokens", "mask", "types")), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_texts_are_settled_as_the_model_given_answers(name: str, tmp_path: Path) -> None:
    made, keys = CASES[name]
    task = write_pooled(tmp_path / "task", made, **{f"model_{key}": value for key, value in keys.items()})
    source, run = tmp_path / "task" / "model.onnx", tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run), "--jobs", "1"]) == 0
    session = onnxruntime.InferenceSession(str(source))
    output = keys.get("output", 0)
    place = output if isinstance(output, int) else [one.name for one in session.get_outputs()].index(output)
    decision = Decision(2, keys.get("scores", "logits"), keys.get("threshold"), keys.get("column"))
    settled = 0
    for line in results(run):
        words = line["text"].split()
        sentences = [list(s) for s in itertools.product(*((word, *SYNONYMS.get(word, ())) for word in words))]
        labels = decision.answers(np.array(answers(session, sentences, place=place)))
        broken = [s for s, label in zip(sentences, labels, strict=True) if label != line["label"]]
        least = min((sum(a != b for a, b in zip(s, words, strict=True)) for s in broken), default=None)
        assert line["status"] in ("exact", "unbreakable", "already_wrong")
        assert line["min_swaps"]["high"] == least
        settled += line["status"] != "already_wrong"
    assert settled >= 2
    assert set(agree_on_each(run)) == {True}
    assert main(["check", str(run)]) == 0
    manifest = json.loads((run / "manifest.json").read_bytes())
    assert manifest["derived"]["from"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert len(manifest["derived"]["by"]) >= 1
    about = json.loads((run / "summary.json").read_bytes())
    assert any(manifest["derived"]["from"] in remark for remark in about["remarks"])
    assert "all answered alike" in about["model"]["largest_difference_from_the_model_given"]
    again = tmp_path / "again"
    assert main(["certify", str(run / "task.toml"), "--out", str(again), "--jobs", "1"]) == 0
    assert [line["min_swaps"] for line in results(again)] == [line["min_swaps"] for line in results(run)]


def test_a_model_that_is_made_from_another_lasts_until_an_attack_has_copied_it(tmp_path: Path) -> None:
    task = write_pooled(tmp_path / "task", Pooled(ending="one"))
    assert main(["attack", str(task), "--method", "pwws", "--out", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run" / "model.onnx").exists()


def test_a_file_that_is_read_as_it_is_stays_as_it_is(tmp_path: Path) -> None:
    write_pooled(tmp_path, Pooled())
    assert adapted(tmp_path / "model.onnx", Scores(2)) is None


def test_what_a_run_was_made_from_must_stand_in_its_manifest(tmp_path: Path) -> None:
    """`check` refuses remarks on a model made from another where the manifest knows of none."""
    run = tmp_path / "run"
    assert main(["certify", str(write_pooled(tmp_path / "task", Pooled(ending="one"))), "--out", str(run)]) == 0
    manifest = json.loads((run / "manifest.json").read_bytes())
    del manifest["derived"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert main(["check", str(run)]) == 4


@pytest.mark.parametrize(
    ("made", "scores", "words"),
    [
        (Pooled(ending="more"), Scores(2), "3 outputs .pooled, logits, probabilities"),
        (Pooled(ending="more"), Scores(2, output="scores"), "no output 'scores'"),
        (Pooled(ending="more"), Scores(2, output=3), "no output 3"),
        (Pooled(ending="column"), Scores(2, threshold=0.5), "has 3 scores, and .model. labels names 2"),
        (Pooled(ending="column"), Scores(2, column=3), "no column 3"),
        (Pooled(ending="flat"), Scores(2, column=1), "no column 1"),
        (Pooled(), Scores(3, threshold=0.5), "two classes, and there are 3"),
    ],
)
def test_scores_that_the_model_does_not_have_are_refused(
    made: Pooled, scores: Scores, words: str, tmp_path: Path
) -> None:
    write_pooled(tmp_path, made)
    with pytest.raises(BadInput, match=words) as caught:
        adapted(tmp_path / "model.onnx", scores)
    assert "\n" not in str(caught.value)


def test_an_opset_that_cannot_be_converted_is_refused_in_one_line(tmp_path: Path) -> None:
    proto = pooled(Pooled())
    proto.opset_import[0].version = onnx.defs.onnx_opset_version() + 1
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises((BadInput, Unsupported)) as caught:
        adapted(tmp_path / "model.onnx", Scores(2))
    assert "\n" not in str(caught.value)


def test_probabilities_said_to_be_logits_are_no_silent_answer(tmp_path: Path) -> None:
    """A Sigmoid behind which a border of 0 is put cannot be read, and nothing is claimed."""
    task = write_pooled(tmp_path / "task", Pooled(ending="sigmoid"))
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2


def test_a_model_made_from_another_that_answers_otherwise_is_refused(tmp_path: Path) -> None:
    """If what is read answered a text otherwise than the model given, nothing would be claimed."""
    from dataclasses import replace

    from swapproof.verifier.ladder.model_trial import tried
    from swapproof.verifier.tasks.inputs import read_inputs

    task = read_task(write_pooled(tmp_path / "task", Pooled(ending="one")))
    model = opened(task)
    assert model.given is not None
    inputs = read_inputs(task, model.length, roles=model.roles)
    trial = tried(model, model.length, inputs)
    assert trial.from_given is not None
    assert trial.from_given.difference == 0
    other = replace(model, given=replace(model.given, scores=Scores(2, threshold=0.999999)))
    with pytest.raises(Disagreement, match="the model given answers 0 for text 0"):
        tried(other, model.length, inputs)
