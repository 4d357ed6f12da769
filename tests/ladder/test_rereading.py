"""What is swapped are words of sentences: a mark that touches a word stays, and every witness is read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from swapproof.verifier.cli import main
from swapproof.verifier.synonyms import freezing, spaces_file

Capture = pytest.CaptureFixture[str]
WORDS = ["<pad>", "<unk>", "hello", "!", "wow", "x"]


def task(folder: Path, text: str, length: int, swaps: dict[str, list[str]] | list[list[str]]) -> Path:
    """The sum of one row a word: "wow" says positive, an unknown word negative."""
    table = np.zeros((len(WORDS), 2), np.float32)
    table[2], table[5], table[4], table[1] = [1, 0], [1, 0], [0, 5], [9, 0]
    arrays: dict[str, Any] = {"table": table, "axis": np.array([1], np.int64)}
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"]),
        helper.make_node("ReduceSum", ["embedded", "axis"], ["logits"], keepdims=0),
    ]
    ends = [
        helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", length]),
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2]),
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "sum", ends[:1], ends[1:], constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx"
    )
    (folder / "vocabulary.json").write_text(json.dumps(WORDS))
    (folder / "texts.jsonl").write_text(json.dumps({"text": text, "label": "neg"}) + "\n")
    frozen = isinstance(swaps, list)
    name = "frozen.jsonl" if frozen else "synonyms.json"
    (folder / name).write_text(json.dumps({"id": 0, "choices": swaps} if frozen else swaps))
    (folder / "task.toml").write_text(
        '[model]\nonnx = "model.onnx"\nvocabulary = "vocabulary.json"\nsplit = "words"\nlabels = ["neg", "pos"]\n'
        f'[data]\nfile = "texts.jsonl"\n[swaps]\n{"frozen" if frozen else "file"} = "{name}"\n'
    )
    return folder / "task.toml"


def certified(folder: Path, code: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The line of the only text, and the summary."""
    assert main(["certify", str(folder / "task.toml"), "--out", str(folder / "run")]) == code
    summary = json.loads((folder / "run" / "summary.json").read_text())
    return json.loads((folder / "run" / "results.jsonl").read_text()), summary


def test_frozen_spaces_move_no_mark_that_touches_a_word(tmp_path: Path) -> None:
    """ "hello!" with "!" swapped is "hellowow", one unknown word: what was published as a witness keeps the label."""
    task(tmp_path, "hello!", 3, [["hello"], ["!", "wow"]])
    line, summary = certified(tmp_path, 0)
    assert (line["status"], line["candidates"]) == ("unbreakable", 0)
    assert summary["swaps"]["removed"]["punctuation touching a word"] == 1
    assert summary["swaps"]["fixed"]["punctuation touching a word"] == 1
    assert main(["check", str(tmp_path / "run")]) == 0


def test_frozen_spaces_say_what_they_left_out_and_why(tmp_path: Path) -> None:
    task(tmp_path, "hello!", 3, [["hello"], ["!", "wow"]])
    arguments = ["measure", str(tmp_path / "task.toml"), "--quantity", "pr", "--radius", "1"]
    assert main([*arguments, "--out", str(tmp_path / "run")]) == 0
    rows = (tmp_path / "run" / "left_out.csv").read_text().splitlines()
    assert rows[1:] == ["!,wow,punctuation touching a word,1"]
    assert main(["check", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize("frozen", [False, True])
def test_a_mark_at_the_cut_touches_the_word_beyond_it(frozen: bool, tmp_path: Path) -> None:
    task(tmp_path, "x !hello", 2, [["x"], ["!", "wow"], ["hello"]] if frozen else {"!": ["wow"]})
    line, summary = certified(tmp_path, 0)
    assert (line["status"], line["cut"], line["candidates"]) == ("unbreakable", 1, 0)
    assert summary["swaps"]["fixed"]["punctuation touching a word"] == 1
    assert main(["check", str(tmp_path / "run")]) == 0


def test_a_mark_between_spaces_moves(tmp_path: Path) -> None:
    task(tmp_path, "x ! hello", 3, {"!": ["wow"]})
    line, _ = certified(tmp_path, 0)
    assert line["witness"]["sentence"] == "x wow hello"
    assert main(["check", str(tmp_path / "run")]) == 0


def test_a_witness_that_is_read_as_other_tokens_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Whatever rule let the swap through: no witness, no high end, exit code 4, and what was read."""
    for module in (freezing, spaces_file):
        monkeypatch.setattr(module, "touching_marks", lambda text: frozenset())
    task(tmp_path, "hello!", 3, [["hello"], ["!", "wow"]])
    line, summary = certified(tmp_path, 4)
    assert (line["witness"], line["min_swaps"], line["status"]) == (None, {"low": 1, "high": None}, "open")
    told = "the sentence 'hellowow' is read as other tokens than those that were judged (token 0 is 1, not 2)"
    assert told in line["contradiction"]
    assert summary["contradictions"] == 1
    certificate = json.loads((tmp_path / "run" / "certificates" / "000000.json").read_text())
    assert certificate["upper"] is None


def test_check_reads_every_witness_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """A run that was made without rereading is refused."""
    from swapproof.verifier.ladder import settling as settle

    for module in (freezing, spaces_file):
        monkeypatch.setattr(module, "touching_marks", lambda text: frozenset())
    monkeypatch.setattr(settle, "reread", lambda reading, text, verdict: verdict)
    task(tmp_path, "hello!", 3, [["hello"], ["!", "wow"]])
    line, _ = certified(tmp_path, 0)
    assert line["witness"]["sentence"] == "hellowow"
    capsys.readouterr()
    assert main(["check", str(tmp_path / "run")]) == 4
    assert "is read as other tokens than those that were judged" in capsys.readouterr().out
