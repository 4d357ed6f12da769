"""A task small enough to enumerate: an MLP that reads 6 tokens of 12 words, with texts and synonyms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

WORDS = ["<pad>", "<unk>", "good", "fine", "great", "bad", "poor", "awful", "film", "movie", "the", "a"]
SENTIMENT = [0, 0, 3, 1, 4, -3, -1, -4, 0.25, -0.25, 0.125, -0.125]
LENGTH = 6
SYNONYMS = {
    "good": ["fine", "bad"],
    "great": ["good", "fine"],
    "bad": ["poor", "fine"],
    "awful": ["bad", "poor"],
    "film": ["movie"],
    "movie": ["film"],
}
ROWS = [
    ("a good film", "positive"),
    ("the great great good movie", "positive"),
    ("awful", "negative"),
    ("The film , great", "positive"),
    ("bad bad film", "negative"),
    ("the a the", "positive"),
    ("good bad", "negative"),
    ("great great great great great great", "positive"),
]


def model(rows: int = len(WORDS)) -> Any:
    """logits = W2 relu(W1 flatten(embedding) + b1) + b2: the sum of sentiments, with a little of each position."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    generator = np.random.default_rng(7)
    table = np.zeros((rows, 2), dtype=np.float32)
    table[: len(SENTIMENT), 0] = SENTIMENT[:rows]
    table[:, 1] = generator.integers(-4, 5, size=rows) / 8
    weights = np.zeros((2 * LENGTH, 4), dtype=np.float32)
    weights[0::2, 0], weights[0::2, 1] = 1, -1
    weights[:, 2:] = generator.integers(-4, 5, size=(2 * LENGTH, 2)) / 8
    out = np.array([[-1, 1], [1, -1], [0.25, 0], [0, 0.25]], dtype=np.float32)
    arrays = {
        "table": table,
        "w1": weights,
        "b1": np.array([0.5, 0.25, 0, 0], dtype=np.float32),
        "w2": out,
        "b2": np.array([0.0, 0.125], dtype=np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"], axis=0),
        helper.make_node("Flatten", ["embedded"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "w1", "b1"], ["before"]),
        helper.make_node("Relu", ["before"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "w2", "b2"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", LENGTH])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    proto.ir_version = 9
    onnx.checker.check_model(proto)
    return proto


def write_task(folder: Path, rows: list[tuple[str, str]] | None = None, **changes: Any) -> Path:
    """The task file; `changes` override keys, a section and a key as `model_length=5`, None leaving the key out."""
    import onnx

    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model(), folder / "model.onnx")
    (folder / "vocabulary.json").write_text(json.dumps(WORDS))
    (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))
    lines = ["text\tlabel", *("\t".join(row) for row in (ROWS if rows is None else rows))]
    (folder / "texts.tsv").write_text("\n".join(lines) + "\n")
    task: dict[str, dict[str, Any]] = {
        "model": {
            "onnx": "model.onnx",
            "vocabulary": "vocabulary.json",
            "length": LENGTH,
            "lowercase": True,
            "labels": ["negative", "positive"],
        },
        "data": {"file": "texts.tsv", "text": "text", "label": "label"},
        "swaps": {"file": "synonyms.json", "max_per_word": 8},
    }
    for name, value in changes.items():
        section, key = name.split("_", 1)
        task[section][key] = value
    path = folder / "task.toml"
    path.write_text("".join(toml(section, keys) for section, keys in task.items()))
    return path


def toml(section: str, keys: dict[str, Any]) -> str:
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in keys.items() if value is not None]
    return f"[{section}]\n" + "".join(lines)


def weaker(task: Path) -> Path:
    """The task with a model that leans towards the first class: some texts break sooner."""
    import onnx
    from onnx import numpy_helper

    path = task.parent / "model.onnx"
    proto: Any = onnx.load(path)
    bias = next(one for one in proto.graph.initializer if one.name == "b2")
    values = numpy_helper.to_array(bias).copy()
    values[0] += 3.0
    bias.CopyFrom(numpy_helper.from_array(values, "b2"))
    onnx.save(proto, path)
    return task
