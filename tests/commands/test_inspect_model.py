"""`inspect`: what a model is made of, on the screen and as JSON, and all that stands in the way of reading it."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from attending_networks import Shape, transformer, two_layers
from graph_builder import Builder, floats, tokens
from sentiment_data import write_onnx

from swapproof.verifier.cli import main

Capture = pytest.CaptureFixture[str]


def facts(model: str | Path, capture: Capture, *more: str) -> dict[str, Any]:
    capture.readouterr()
    assert main(["inspect", str(model), "--json", *more]) == 0
    found: dict[str, Any] = json.loads(capture.readouterr().out)
    return found


def printed(model: str | Path, capture: Capture, *more: str) -> str:
    capture.readouterr()
    assert main(["inspect", str(model), *more]) == 0
    return capture.readouterr().out


def test_an_onnx_file_is_told_part_by_part(tmp_path: Path, capsys: Capture) -> None:
    path = write_onnx(tmp_path / "model", masked=True)
    found = facts(path, capsys)
    data = path.read_bytes()
    assert found["files"] == [{"name": "model.onnx", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}]
    assert (found["opset"], found["ir_version"], found["parameters"]) == (17, 8, 16)
    assert [(port["name"], port["role"], port["shape"]) for port in found["inputs"]] == [
        ("input_ids", "tokens", ["batch", 8]),
        ("attention_mask", "mask", ["batch", 8]),
    ]
    assert [(port["name"], port["type"]) for port in found["outputs"]] == [("logits", "float32")]
    assert (found["batch"], found["length"]) == ("any", 8)
    assert [(table["rows"], table["columns"], table["read_by"]) for table in found["embedding_tables"]] == [
        (14, 1, "input_ids")
    ]
    assert found["operators"]["Gather"] == 1
    assert (found["road"], found["refusals"]) == ("read", [])


def test_the_screen_says_the_same_in_lines_that_fit(tmp_path: Path, capsys: Capture) -> None:
    out = printed(write_onnx(tmp_path / "model", length=None), capsys)
    lines = out.splitlines()
    assert "length        any" in lines
    assert "will be       read" in lines
    assert any(line.split() == ["embeddings", "14", "x", "1", "w0", "read", "by", "tokens"] for line in lines)


def test_all_that_cannot_be_read_is_said_at_once(tmp_path: Path, capsys: Capture) -> None:
    graph = Builder()
    vectors = graph.call("Gather", graph.constant(np.ones((5, 4), dtype=np.float32)), "tokens")
    normal = graph.call("LayerNormalization", vectors, graph.constant(np.ones(4, dtype=np.float32)))
    smooth = graph.call("Erf", graph.call("ReduceMean", normal, axes=[1], keepdims=0))
    graph.node("Identity", [graph.call("Sin", graph.call("Softplus", smooth))], ["logits"])
    path = tmp_path / "model.onnx"
    onnx.save(graph.proto([tokens("batch", 3)], [floats("logits", "batch", 4)]), path)
    found = facts(path, capsys)
    assert found["road"] == "run"
    refused = [line.partition(" (node ")[0] for line in found["refusals"]]
    assert refused == ["Softplus", "Sin"]  # LayerNormalization and Erf would be read
    out = printed(path, capsys)
    assert all(f"{name}" in out for name in ("Softplus", "Sin"))


def test_a_model_that_answers_classes_is_neither_read_nor_run(tmp_path: Path, capsys: Capture) -> None:
    path = write_onnx(tmp_path / "model")
    proto = onnx.load(path)
    proto.graph.node.append(onnx.helper.make_node("Cast", ["logits"], ["whole"], to=onnx.TensorProto.INT32))
    proto.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("whole", onnx.TensorProto.INT32, ["batch", 2]))
    onnx.save(proto, path)
    found = facts(path, capsys)
    assert "road" not in found
    assert "(whole is int32): export the model with its scores" in found["problem"]


def test_inputs_of_unknown_role_are_no_reason_to_say_nothing(tmp_path: Path, capsys: Capture) -> None:
    found = facts(write_onnx(tmp_path / "model", masked=True, more=("one", "two")), capsys)
    assert [port["role"] for port in found["inputs"]] == ["unknown"] * 4
    assert "inputs of unknown role: one int64" in found["inputs_problem"]
    assert found["operators"]


def test_recurrent_models_are_told_what_can_be_proved(tmp_path: Path, capsys: Capture) -> None:
    graph = Builder()
    vectors = graph.call("Gather", graph.constant(np.ones((5, 4), dtype=np.float32)), "tokens")
    steps = graph.call("Transpose", vectors, perm=[1, 0, 2])
    weights = (graph.constant(np.ones((1, 12, size), dtype=np.float32)) for size in (4, 3))
    graph.node("LSTM", [steps, *weights], ["", "last"], hidden_size=3)
    graph.node("Squeeze", ["last", graph.wholes(0)], ["logits"])
    path = tmp_path / "model.onnx"
    onnx.save(graph.proto([tokens("batch", 3)], [floats("logits", "batch", 3)]), path)
    found = facts(path, capsys)
    assert re.fullmatch(r"LSTM: growth per step \d+\.\d\d: boxes of states .*", found["recurrent"])
    assert found["road"] == "read"


def test_of_models_that_attend_it_says_how_far_bounds_reach(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(transformer(Shape(), 1))
    assert facts(path, capsys)["attention"].startswith("one layer attends: bounds")
    path.write_bytes(two_layers(1))
    assert facts(path, capsys)["attention"].startswith("2 layers attend one after the other: bounds are for one")


def safetensors(path: Path, **shapes: list[int]) -> None:
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    content = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(content)) + content + bytes(offset))


def test_a_hugging_face_folder_is_read_without_the_libraries(tmp_path: Path, capsys: Capture) -> None:
    config = {
        "architectures": ["DistilBertForSequenceClassification"],
        "model_type": "distilbert",
        "id2label": {"1": "good", "0": "bad"},
        "max_position_embeddings": 512,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    safetensors(tmp_path / "model.safetensors", a=[10, 4], b=[3])
    vocabulary = {"version": "1.0", "model": {"type": "WordPiece", "vocab": {"a": 0, "b": 1}}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(vocabulary))
    found = facts(tmp_path, capsys)
    assert (found["architecture"], found["parameters"]) == ("DistilBertForSequenceClassification", 43)
    assert found["labels"] == ["bad", "good"]
    assert (found["tokenizer"]["kind"], found["tokenizer"]["tokens"]) == ("WordPiece", 2)
    assert found["road"] == "run"


@pytest.mark.parametrize("content", [b"", b"\x08", struct.pack("<Q", 1 << 60) + b"{}", struct.pack("<Q", 2) + b"[]"])
def test_weights_that_lie_about_their_size_are_one_line(tmp_path: Path, capsys: Capture, content: bytes) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    (tmp_path / "model.safetensors").write_bytes(content)
    assert main(["inspect", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_pickle_stays_closed_and_its_file_is_told_all_the_same(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("sklearn")
    path = tmp_path / "model.pkl"
    path.write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
    found = facts(path, capsys)
    assert found["files"][0]["bytes"] == path.stat().st_size
    assert "--trust-pickle" in found["problem"]
    assert not (tmp_path / "opened").exists()
    assert not Path("opened").exists()


def test_the_steps_of_a_pipeline_are_named(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("sklearn")
    skops = pytest.importorskip("skops.io")
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    skops.dump(
        make_pipeline(CountVectorizer(), LogisticRegression()).fit(["a b", "cd ef"], [0, 1]), tmp_path / "m.skops"
    )
    found = facts(tmp_path / "m.skops", capsys)
    assert found["pipeline"] == "CountVectorizer, LogisticRegression"
    assert found["road"] == "read"


@pytest.mark.parametrize("model", ["guard:score", "http://127.0.0.1:9/classify"])
def test_functions_and_urls_are_neither_called_nor_asked(model: str, capsys: Capture) -> None:
    found = facts(model, capsys)
    assert found["road"] == "run"
    assert len(found["refusals"]) == 1


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x07"])
def test_what_is_no_model_is_one_line(tmp_path: Path, capsys: Capture, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert main(["inspect", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_weights_that_are_elsewhere_are_asked_for(tmp_path: Path, capsys: Capture) -> None:
    path = write_onnx(tmp_path / "model")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights", size_threshold=0)
    assert [file["name"] for file in facts(path, capsys)["files"]] == ["model.onnx", "weights"]
    (path.parent / "weights").unlink()
    assert main(["inspect", str(path)]) == 2
    assert "weights, which is not there" in capsys.readouterr().err
