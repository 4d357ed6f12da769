"""Of networks that differ with the mask of a text the run tells one, and `check` knows it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx

from swapproof.verifier.cli import main

WORDS = ["<pad>", "w1", "w2", "w3", "w4", "w5"]
GRAPH = """
    <ir_version: 8, opset_import: ["" : 17]> masked (int64[b, 4] ids) => (float[b, 2] logits) {
        nothing = Constant <value = int64 {0}> ()
        padded = Equal (ids, nothing)
        mask = Where (padded, hidden, shown)
        last = Constant <value = int64[1] {2}> ()
        beside = Unsqueeze (mask, last)
        vectors = Gather (table, ids)
        moved = Add (vectors, beside)
        bent = Relu (moved)
        words = Constant <value = int64[1] {1}> ()
        logits = ReduceSum <keepdims = 0> (bent, words)
    }"""
TASK = """
    [model]
    onnx = "model.onnx"
    vocabulary = "vocabulary.json"
    labels = ["a", "b"]
    pad = "<pad>"
    length = 4
    [data]
    file = "data.tsv"
    text = "text"
    label = "label"
    [swaps]
    file = "synonyms.json"
    """


def test_texts_of_other_lengths_under_a_mask_of_minus_infinity(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(GRAPH)
    numbers = {"table": np.random.default_rng(1).normal(size=(6, 2)), "hidden": -np.inf, "shown": 0.0}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(value, dtype=np.float32), name) for name, value in numbers.items()
    )
    onnx.save(model, tmp_path / "model.onnx")
    (tmp_path / "vocabulary.json").write_text(json.dumps(WORDS))
    (tmp_path / "synonyms.json").write_text(json.dumps({"w1": ["w3"], "w2": ["w4", "w5"]}))
    for texts in (["w2 w5", "w1 w2 w3 w4"], ["w1 w2 w3 w4", "w2 w5"]):
        (tmp_path / "data.tsv").write_text("\n".join(["text\tlabel", *(f"{text}\t0" for text in texts), ""]))
        (tmp_path / "task.toml").write_text(TASK)
        run = str(tmp_path / texts[0].replace(" ", ""))
        assert main(["certify", str(tmp_path / "task.toml"), "--out", run]) in (0, 3)
        levels = [json.loads(line)["level"] for line in Path(run, "results.jsonl").read_text().splitlines()]
        assert "replay" not in levels
        assert main(["check", run]) == 0
