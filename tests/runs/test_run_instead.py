"""Models that are not read for what they hold or answer are run, and it is said why; nothing is refused for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_runs import results
from graph_builder import Builder, floats, tokens
from onnx import helper, numpy_helper
from pooled_models import Pooled, write_pooled
from tiny import SENTIMENT, WORDS, model, write_task

from swapproof.verifier.cli import main

ROWS = [("a good film", "positive"), ("awful", "negative"), ("bad film", "negative")]


def without_a_word(proto: Any) -> None:
    """A row of the table that no word of the vocabulary reads holds NaN."""
    table = next(one for one in proto.graph.initializer if one.name == "table")
    array = numpy_helper.to_array(table).copy()
    array[-1] = np.nan
    table.CopyFrom(numpy_helper.from_array(array, "table"))


def switched_off(proto: Any) -> None:
    """A class whose bias is minus infinity."""
    bias = next(one for one in proto.graph.initializer if one.name == "b2")
    bias.CopyFrom(numpy_helper.from_array(np.array([-np.inf, 0], dtype=np.float32), "b2"))


def overflowing(proto: Any) -> None:
    """exp(10 x) in place of a ReLU: of the texts and their swaps finite, of sentences drawn at random inf - inf."""
    relu = next(node for node in proto.graph.node if node.op_type == "Relu")
    proto.graph.initializer.append(numpy_helper.from_array(np.array(10, dtype=np.float32), "ten"))
    proto.graph.node.insert(3, helper.make_node("Mul", ["before", "ten"], ["scaled"]))
    relu.op_type, relu.input[0] = "Exp", "scaled"


def alone(proto: Any) -> None:
    """The shape of the scores is that of one sentence."""
    proto.graph.node[-1].output[0] = "scores"
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1, 2]), "one"))
    proto.graph.node.append(helper.make_node("Reshape", ["scores", "one"], ["logits"]))


def test_a_text_longer_than_the_places_leaves_only_itself_open(tmp_path: Path) -> None:
    """A network of seven places, read for lengths that fit; the longest text is of none that is tried first."""
    b = Builder()
    rows = b.call("Gather", b.constant(np.array([SENTIMENT, SENTIMENT[::-1]], dtype=np.float32).T), "tokens")
    size = b.call("Slice", b.call("Shape", "tokens"), b.wholes(1), b.wholes(2))
    places = b.call("Slice", b.constant(np.ones((7, 2), np.float32)), b.wholes(0), size)
    b.node("ReduceSum", [b.call("Relu", b.call("Add", rows, places)), b.wholes(1)], ["logits"], keepdims=0)
    texts = [(" ".join(["good"] * length), "positive") for length in (1, 2, 3, 4, 5, 8)]
    task = write_task(tmp_path / "task", texts, model_length=None)
    proto = b.proto([tokens("batch", "length")], [floats("logits", "batch", 2)], opset=18)
    onnx.save(proto, task.parent / "model.onnx")
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    *others, longest = results(tmp_path / "run")
    assert {line["status"] for line in others} <= {"exact", "unbreakable", "already_wrong"}
    assert "the text has 8 tokens: [model] length says" in longest["reason"]


def test_scores_that_look_like_probabilities_are_logits_where_the_task_says_so(tmp_path: Path) -> None:
    made = Pooled(ending="sigmoid")
    unsaid = write_pooled(tmp_path / "unsaid", made, model_road="run")
    assert main(["certify", str(unsaid), "--out", str(tmp_path / "none")]) == 2
    said = write_pooled(tmp_path / "said", made, model_road="run", model_scores="logits")
    assert main(["certify", str(said), "--out", str(tmp_path / "run")]) == 0
    remarks = json.loads((tmp_path / "run" / "summary.json").read_bytes())["remarks"]
    assert sum("every score lies in [0, 1]" in remark for remark in remarks) == 1


CASES = {
    "table holds NaN": without_a_word,
    "infinity": switched_off,
    "it answers ": overflowing,
    "onnxruntime fails on ": alone,
}


@pytest.mark.parametrize("reason", CASES)
def test_a_model_that_is_not_read_is_run_with_the_reason(reason: str, tmp_path: Path) -> None:
    task, run = write_task(tmp_path / "task", ROWS), tmp_path / "run"
    proto = model(len(WORDS) + 1)
    CASES[reason](proto)
    onnx.save(proto, task.parent / "model.onnx")
    assert main(["certify", str(task), "--out", str(run)]) == 0
    assert {line["level"] for line in results(run) if line["status"] != "already_wrong"} == {"replay"}
    remarks = json.loads((run / "summary.json").read_bytes())["remarks"]
    assert [reason in remark for remark in remarks if "is run, not read" in remark] == [True]
