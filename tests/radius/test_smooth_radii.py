"""Radii of networks with LSTM and attention: proved balls hold at points of a grid, and `check` agrees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats, tokens
from onnx import numpy_helper
from vector_models import LENGTH, TEXTS, WORDS, attending_model, encoded, recurrent_model, table, write

from swapproof.verifier.cli import main
from swapproof.verifier.radius.radius_run import measure_msr

Line = dict[str, Any]
MODELS: dict[str, Callable[[], Any]] = {"lstm": lambda: recurrent_model(3), "attention": lambda: attending_model(4, 3)}


def measured(task: Path, out: Path, norm: str, words: str = "one") -> list[Line]:
    outcome = measure_msr(task, out, norm, words, seconds=30.0)
    assert outcome.exit_code == 0, outcome.summary["verdict"]
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def behind(run: Path, text: int) -> Any:
    """The network that the text's certificate is of."""
    import onnxruntime

    top = json.loads((run / f"certificates/{text:06d}.json").read_text())
    return onnxruntime.InferenceSession(run / top["model"]["file"], providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", MODELS)
def test_no_point_of_a_proved_ball_changes_the_class(tmp_path: Path, name: str, norm: str) -> None:
    """Points on the border of every ball; every text has a ball, and its ends are not far from each other."""
    model = MODELS[name]()
    rows = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
    lines = measured(write(tmp_path / "task", model), tmp_path / "run", norm)
    random, close = np.random.default_rng(0), 0
    for line in lines:
        assert line["status"] in ("open", "exact")
        network = behind(tmp_path / "run", line["id"])
        center = rows[encoded()[line["id"]]].astype(np.float32)
        for part in line["words"]:
            assert part["low"] > 0
            ways = random.normal(size=(60, rows.shape[1]))
            size = np.abs(ways).max(axis=1) if norm == "linf" else np.sqrt((ways**2).sum(axis=1))
            for way in ways / size[:, None] * part["low"]:
                point = center.copy()
                point[part["position"]] += way.astype(np.float32)
                logits = np.asarray(network.run(None, {network.get_inputs()[0].name: point[None]})[0]).reshape(-1)
                assert logits[line["label"]] - logits[1 - line["label"]] > -1e-5
            close += part["high"] is not None and part["low"] > 0.2 * part["high"]
    assert close >= 2
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_words_together_have_balls_within_each_one_s(tmp_path: Path) -> None:
    task = write(tmp_path / "task", recurrent_model(3))
    one = measured(task, tmp_path / "one", "l2")
    for words in ("2", "all"):
        for single, line in zip(one, measured(task, tmp_path / words, "l2", words), strict=True):
            (part,) = line["sets"]
            assert part["low"] > 0
            for position in part["positions"]:
                high = single["words"][position]["high"]
                assert high is None or part["low"] <= high
        assert main(["check", str(tmp_path / words), "--quiet"]) == 0


def test_a_larger_radius_is_refused(tmp_path: Path) -> None:
    task = write(tmp_path / "task", recurrent_model(3))
    lines = measured(task, tmp_path / "run", "l2")
    path = tmp_path / "run" / "certificates" / "000000.json"
    top = json.loads(path.read_text())
    assert top["recipe"] == "forms-1"
    high = min(part["high"] for part in lines[0]["words"] if part["high"] is not None)
    top["cases"][0]["radius"] = str(int(high) + 2)
    path.write_text(json.dumps(top, sort_keys=True, separators=(",", ":")))
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 4


def test_the_precision_is_what_the_margin_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From one at which rounding takes all of the margin; balls are then as large as at a fine one."""
    task = write(tmp_path / "task", recurrent_model(3, units=24, scale=1.0))
    lows, precisions = [], []
    for coarsest in (16, 80):
        monkeypatch.setattr("swapproof.verifier.radius.proved_balls.COARSEST", coarsest)
        lines = measured(task, tmp_path / str(coarsest), "l2")
        lows.append([part["low"] for line in lines for part in line["words"]])
        tops = [json.loads((tmp_path / str(coarsest) / line["certificate"]).read_text()) for line in lines]
        precisions.append([top["precision"] for top in tops])
    assert len(set(precisions[0])) > 1
    assert max(precisions[0]) < 40
    assert set(precisions[1]) == {80}
    assert lows[0] == pytest.approx(lows[1], rel=0.03)
    assert min(lows[0]) > 0


def masked_model() -> Any:
    """Computes with the tokens themselves, beside their embedding: vectors of padding count as 0."""
    g = Builder()
    at = g.call("Gather", g.constant(table(np.random.default_rng(0), 2) + 1), "tokens", axis=0)
    flags = g.call("Cast", g.call("Greater", "tokens", g.wholes(0)), to=1)
    at = g.call("Mul", at, g.call("Unsqueeze", flags, g.wholes(2)))
    g.node("ReduceSum", [at, g.wholes(1)], ["logits"], keepdims=0)
    return g.proto([tokens("batch", LENGTH)], [floats("logits", "batch", 2)])


def test_what_a_model_computes_from_the_tokens_is_as_the_text_has_it(tmp_path: Path) -> None:
    """The mask of a text stands as numbers in its network: one file for each number of words."""
    model = masked_model()
    lines = measured(write(tmp_path / "task", model), tmp_path / "run", "l2")
    rows = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
    for line in lines:
        words = [WORDS.index(word) for word in TEXTS[line["id"]].split()]
        margin = rows[words].sum(axis=0) @ [1, -1] * (1 if line["label"] == 0 else -1)
        for part in line["words"]:
            assert part["low"] == pytest.approx(margin / np.sqrt(2), rel=2e-3)
            assert part["exact"]
    names = {path.name for path in (tmp_path / "run").glob("behind-*.onnx")}
    assert len(names) == len({len(text.split()) for text in TEXTS})
    for name in names:
        onnx.checker.check_model(onnx.load(tmp_path / "run" / name))
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0
