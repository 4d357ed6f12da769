"""What `certify` does not take: each is one line, exit code 2, and no run folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_runs import Capture
from onnx import TensorProto, helper, numpy_helper
from tiny import LENGTH, WORDS, model

from swapproof.verifier.cli import main

Spoil = Callable[[Path], object]


def classifier(**changes: Any) -> Spoil:
    """Another model.onnx: another input type, another shape, no embedding."""

    def write(folder: Path) -> None:
        proto = model()
        if "input" in changes:
            proto.graph.input[0].CopyFrom(changes["input"])
        if "output" in changes:
            proto.graph.node[-1].output[0] = "other"
            proto.graph.node.append(changes["output"])
        onnx.save(proto, folder / "model.onnx")

    return write


def table(text: str) -> Spoil:
    return lambda folder: (folder / "synonyms.json").write_text(text)


def rows(text: str) -> Spoil:
    return lambda folder: (folder / "texts.tsv").write_text(text)


def vocabulary(words: list[str]) -> Spoil:
    return lambda folder: (folder / "vocabulary.json").write_text(json.dumps(words))


def remove(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def directory(name: str) -> Spoil:
    def replace(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return replace


def truncate(name: str) -> Spoil:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:200])


def both(first: Spoil, second: Spoil) -> Spoil:
    def spoil(folder: Path) -> None:
        first(folder)
        second(folder)

    return spoil


def edit(before: str, after: str) -> Spoil:
    def replace(folder: Path) -> None:
        text = (folder / "task.toml").read_text()
        assert before in text
        (folder / "task.toml").write_text(text.replace(before, after))

    return replace


def value_info(kind: int, shape: list[int | str]) -> Any:
    return helper.make_tensor_value_info("tokens", kind, shape)


def save_regression(folder: Path) -> None:
    """A model of vectors, not of words."""
    weights = numpy_helper.from_array(np.ones((LENGTH, 2), dtype=np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "regression",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", LENGTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [weights],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    proto.ir_version = 9
    onnx.save(proto, folder / "model.onnx")


def save_with_external_data_in(name: str) -> Spoil:
    return lambda folder: onnx.save(
        model(), folder / "model.onnx", save_as_external_data=True, location=name, size_threshold=0
    )


SMOOTH = classifier(output=helper.make_node("Mish", ["other"], ["logits"]))

BAD: dict[str, tuple[Spoil, str]] = {
    "external data under a name of ours": (save_with_external_data_in("summary.json"), "external data in"),
    "external data under a name that cannot be bound": (save_with_external_data_in("my weights"), "external data in"),
    "pairs of texts": (edit('label = "label"', 'label = "label"\ncontext = "text"'), "name the input of each text"),
    "model missing": (remove("model.onnx"), "model.onnx: no such file"),
    "model is a directory": (directory("model.onnx"), "directory"),
    "model truncated": (truncate("model.onnx"), "not a readable ONNX model"),
    "model of vectors": (save_regression, "float; token ids are int64"),
    "model of floats": (classifier(input=value_info(TensorProto.FLOAT, ["b", LENGTH])), "model.onnx"),
    "model of rank 3": (classifier(input=value_info(TensorProto.INT64, ["b", LENGTH, 1])), "rank 3"),
    "model of another length": (edit("length = 6", "length = 7"), "length"),
    "model with another operator, to be read": (
        both(
            classifier(output=helper.make_node("Mish", ["other"], ["logits"])),
            edit("[model]", '[model]\nroad = "read"'),
        ),
        "operator Mish is not supported",
    ),
    "three labels": (edit('["negative", "positive"]', '["a", "b", "c"]'), "label 'positive' is outside the classes"),
    "three labels, two classes": (
        edit('"negative", "positive"', '"negative", "positive", "neutral"'),
        "answers 2 classes, and [model] labels names 3",
    ),
    "vocabulary missing": (remove("vocabulary.json"), "vocabulary.json"),
    "vocabulary longer than the embedding": (vocabulary([*WORDS, "extra"]), "12 rows"),
    "vocabulary of numbers": (lambda folder: (folder / "vocabulary.json").write_text("[1, 2]"), "not a word"),
    "synonyms of numbers": (table('{"good": [1]}'), "a number where a synonym"),
    "synonyms that are no table": (table('["good"]'), "a list where an object"),
    "synonyms cut off": (table('{"good": ["fi'), "not JSON"),
    "label outside the classes": (rows("text\tlabel\na film\tneutral\n"), "line 2: label 'neutral'"),
    "empty text": (rows("text\tlabel\na film\tpositive\n \tpositive\n"), "line 3"),
    "broken row": (rows("text\tlabel\na film\tpositive\na film\n"), "line 3"),
    "no rows": (rows("text\tlabel\n"), "has no rows"),
    "unknown key": (edit("lowercase", "lowercasing"), "'lowercase'"),
    "unknown section": (edit("[swaps]", "[swap]"), "[swaps]"),
    "task that is no TOML": (edit("[data]", "[data"), "not TOML"),
}


class TestBadInput:
    """Each is one line on stderr, exit code 2, and no run folder."""

    @pytest.mark.parametrize("name", BAD)
    def test_a_bad_file_is_one_line_and_no_folder(self, task: Path, tmp_path: Path, capsys: Capture, name: str) -> None:
        spoil, message = BAD[name]
        spoil(task.parent)
        before = sorted(tmp_path.rglob("*"))
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        first, *others = captured.err.splitlines()
        assert message in first
        assert all(f"texts.tsv line {number}: label" in line for number, line in enumerate(others, start=3))
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--engines", "gredy"],
            ["--engines", ""],
            ["--seconds", "0"],
            ["--seconds", "nan"],
            ["--limit", "0"],
            ["--limit", "few"],
            ["--radius", "-1"],
            ["--jobs", "0"],
            ["--colour"],
        ],
    )
    def test_a_bad_option_is_exit_code_2_and_no_folder(self, task: Path, tmp_path: Path, arguments: list[str]) -> None:
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), *arguments]) == 2
        assert not (tmp_path / "run").exists()

    def test_the_nearest_engine_is_named(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--engines", "gredy"]) == 2
        assert "did you mean greedy?" in capsys.readouterr().err

    def test_a_missing_task_file_is_one_line(self, tmp_path: Path, capsys: Capture) -> None:
        assert main(["certify", str(tmp_path / "task.toml"), "--out", str(tmp_path / "run")]) == 2
        assert capsys.readouterr().err == f"swapproof: {tmp_path / 'task.toml'}: no such file\n"

    def test_a_folder_with_other_things_in_it_is_left_alone(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        other = tmp_path / "other"
        other.mkdir()
        (other / "thesis.txt").write_text("mine")
        for arguments in ([], ["--no-resume"]):
            assert main(["certify", str(task), "--out", str(other), *arguments]) == 2
            assert "not the folder of a run" in capsys.readouterr().err
            assert [path.name for path in other.iterdir()] == ["thesis.txt"]

    def test_a_file_where_the_folder_should_be_is_left_alone(self, task: Path, tmp_path: Path) -> None:
        (tmp_path / "run").write_text("mine")
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
        assert (tmp_path / "run").read_text() == "mine"

    def test_an_empty_folder_is_used(self, task: Path, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--limit", "1"]) == 0
