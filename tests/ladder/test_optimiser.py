"""onnxruntime's graph optimiser computes another maximum than some files say: what certify and verify say of those."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from handmade import node, save
from onnx import TensorProto, helper, numpy_helper
from tiny import LENGTH, SENTIMENT, WORDS, write_task

from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.verifier.cli import main
from swapproof.verifier.ladder.optimiser import merges
from swapproof.verifier.ladder.replay import session_of

Capture = pytest.CaptureFixture[str]
POOL: dict[str, Any] = {"name": "pool", "kernel_shape": [3], "strides": [2]}
PADDED = [node("Pad", "turned amounts", "padded"), node("MaxPool", "padded", "pooled", **POOL)]
BY_CONCAT = [
    node("Slice", "turned zero one two", "first"),
    node("Mul", "first none", "nothing"),
    node("Concat", "turned nothing", "padded", axis=2),
    node("MaxPool", "padded", "pooled", **POOL),
]
AFTER_RELU = [node("Relu", "turned", "rectified"), node("Pad", "rectified amounts", "padded"), PADDED[1]]


def pooled_task(folder: Path, steps: list[Any], *, lowest: float = -9.0) -> Path:
    """Texts of a model that pools the sentiments of words, three at a time; `lowest` is the least sentiment."""
    folder.mkdir()
    path = write_task(folder, [("awful awful awful awful awful awful", "negative"), ("a good film", "positive")])
    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        node("Transpose", "embedded", "turned", perm=[0, 2, 1]),
    ]
    nodes += [*steps, node("Flatten", "pooled", "flat", axis=1), node("Gemm", "flat w b", "logits")]
    sentiment = np.maximum(SENTIMENT, lowest)[:, None]
    weights = {"table": sentiment, "w": [[-1, 1]] * 3, "b": [0.5, 0], "none": [0.0]}
    save(folder, nodes, weights, length=LENGTH)
    proto = onnx.load(folder / "model.onnx")
    numbers = {"amounts": [0, 0, 0, 0, 0, 1], "zero": [0], "one": [1], "two": [2]}
    proto.graph.initializer.extend(numpy_helper.from_array(np.array(v), name) for name, v in numbers.items())
    onnx.save(proto, folder / "model.onnx")
    return path


def test_the_optimiser_does_change_this_model(tmp_path: Path) -> None:
    """Zero wins over six times -4 as the file says; in onnxruntime, by default, it does not."""
    path = pooled_task(tmp_path / "task", PADDED).parent / "model.onnx"
    tokens = np.full((1, LENGTH), WORDS.index("awful"))
    said, answered = (session_of(path, optimised=on).run(None, {"tokens": tokens})[0][0, 1] for on in (False, True))
    assert (said, answered) == (-8, -12)


def test_a_changed_answer_is_exit_code_4_and_names_the_optimiser_and_the_node(tmp_path: Path, capsys: Capture) -> None:
    task = pooled_task(tmp_path / "task", PADDED)
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert "onnxruntime's graph optimiser changes what the model computes: the model answers" in line
    assert "without graph optimisation (GraphOptimizationLevel.ORT_DISABLE_ALL) they agree" in line
    assert "the first node changed is node pool (MaxPool): the zeros put around its input become its own" in line
    assert not (tmp_path / "run").exists()


def test_a_change_that_no_sentence_shows_is_refused_too(tmp_path: Path, capsys: Capture) -> None:
    """Whether the sentences tried hold a window of negative numbers is luck; robustness is not to depend on it."""
    task = pooled_task(tmp_path / "task", PADDED, lowest=0.0)
    task.write_text(task.read_text().replace("[model]", '[model]\nroad = "read"'))
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "turns the zeros put around the input of node pool (MaxPool) into its own padding" in line
    assert "put the zeros there by Concat" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("steps", [BY_CONCAT, AFTER_RELU], ids=["by Concat", "after a ReLU"])
def test_what_the_refusal_advises_is_certified(steps: list[Any], tmp_path: Path) -> None:
    task = pooled_task(tmp_path / "task", steps)
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    assert main(["check", str(tmp_path / "run")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert {line["status"] for line in lines} <= {"exact", "unbreakable"}


def test_a_merge_after_a_relu_happens_and_is_known_to_be_harmless(tmp_path: Path) -> None:
    model = open_model(pooled_task(tmp_path / "task", AFTER_RELU).parent / "model.onnx")
    assert merges(model.path, model.proto) == [("node pool (MaxPool)", True)]


def test_sampling_asks_the_deployed_model_that_is_refused_for_proofs(tmp_path: Path) -> None:
    task = pooled_task(tmp_path / "task", PADDED, lowest=0.0)
    arguments = ["measure", str(task), "--quantity", "pr", "--radius", "1", "--out", str(tmp_path / "run")]
    assert main([*arguments, "--sampled", "--samples", "2"]) in (0, 3)
    line = json.loads((tmp_path / "run" / "results.jsonl").read_text().splitlines()[0])
    assert line["robust_fraction"]["kind"] == "sampled"


@pytest.mark.parametrize(("low", "code"), [(-2, 4), (1, 0)], ids=["negative", "positive"])
def test_verify_says_the_same(low: int, code: int, tmp_path: Path, capsys: Capture) -> None:
    """A box of negative numbers shows the change; over a box that does not, unsat is said to be of the file."""
    graph = helper.make_graph(
        [helper.make_node("Pad", ["X", "amounts"], ["padded"]), helper.make_node("MaxPool", ["padded"], ["Y"], **POOL)],
        "pooling",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 1, 4])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, 1, 2])],
        [numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 1]), "amounts")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(proto, tmp_path / "model.onnx")
    lines = [f"(declare-const X_{i} Real)(assert (>= X_{i} {low}))(assert (<= X_{i} {low + 1}))" for i in range(4)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(2)]
    (tmp_path / "query.vnnlib").write_text("\n".join([*lines, "(assert (<= Y_0 -5.0))"]))
    assert main(["verify", str(tmp_path / "query.vnnlib"), "--network", str(tmp_path / "model.onnx")]) == code
    shown = capsys.readouterr()
    if code:
        assert "without graph optimisation (GraphOptimizationLevel.ORT_DISABLE_ALL) they agree" in shown.err
        assert "the first node changed is node pool (MaxPool)" in shown.err
    else:
        assert shown.out == "unsat\n"
        assert "node pool (MaxPool) into its own padding" in shown.err
        assert "unsat is of the file" in shown.err
