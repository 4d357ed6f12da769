"""What a tokenizer is, with all that stands beside it, holds on both roads, and the run keeps it in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_runs import results, timeless
from graph_builder import Builder, floats, tokens

from swapproof.verifier.cli import main

tokenizers = pytest.importorskip("tokenizers")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "film", "it", "was", "fun"]
TEXTS = ["good bad film", "fun it was good film", "bad it good was fun film it was bad"]
LENGTH = 10


def tokenizer(**truncation: Any) -> Any:
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: id for id, word in enumerate(WORDS)}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if truncation:
        made.enable_truncation(**truncation)
    return made


def write(folder: Path, files: Mapping[str, str], keys: str = "", inputs: tuple[str, ...] = ("input_ids",)) -> Path:
    """A model that reads LENGTH tokens, or any number of them and their positions."""
    for name, content in files.items():
        (folder / name).write_text(content)
    length = LENGTH if inputs == ("input_ids",) else "length"
    source, b = np.random.default_rng(3), Builder()
    read = b.call("Gather", b.constant(source.normal(size=(len(WORDS), 2)).astype(np.float32)), "input_ids")
    if "position_ids" in inputs:
        places = b.call("Gather", b.constant(source.normal(size=(20, 2)).astype(np.float32)), "position_ids")
        read = b.call("Add", read, places)
    b.node("ReduceSum", [read, b.wholes(1)], ["logits"], keepdims=0)
    given = [tokens("batch", length, name=name) for name in inputs]
    onnx.save(b.proto(given, [floats("logits", "batch", 2)]), folder / "model.onnx")
    rows = [json.dumps({"text": text, "label": str(label)}) for text in TEXTS for label in (0, 1)]
    (folder / "data.jsonl").write_text("\n".join(rows) + "\n")
    swaps = {word: [other for other in WORDS[4:] if other != word][:2] for word in WORDS[4:]}
    (folder / "swaps.json").write_text(json.dumps(swaps))
    path = folder / "task.toml"
    path.write_text(
        f'[model]\nonnx = "model.onnx"\nvocabulary = "{next(iter(files))}"\n{keys}labels = ["0", "1"]\n'
        '[data]\nfile = "data.jsonl"\n[swaps]\nfile = "swaps.json"\n'
    )
    return path


def config(**said: Any) -> dict[str, str]:
    return {"tokenizer.json": tokenizer().to_str(), "tokenizer_config.json": json.dumps({"pad_token": "[PAD]", **said})}


def on_road(task: Path, road: str) -> Path:
    told = task.with_name(f"{road}.toml")
    told.write_text(task.read_text().replace("[model]\n", f'[model]\nroad = "{road}"\n'))
    assert main(["certify", str(told), "--out", str(task.with_name(road))]) == 0
    return task.with_name(road)


CASES: dict[str, tuple[dict[str, str], str]] = {
    "words, one a line": (
        {"words.txt": "\n".join(["<pad>", "<unk>", *WORDS[2:]])},
        f"length = {LENGTH}\n",
    ),
    "BERT's vocab.txt": ({"vocab.txt": "\n".join(WORDS)}, f"length = {LENGTH}\n"),
    "a padding token beside it": (config(), f"length = {LENGTH}\n"),
    "sides beside it": (config(padding_side="left", truncation_side="left"), "length = 5\n"),
    "the longest text beside it": (config(model_max_length=4), ""),
    "the longest text and where it is cut": (config(model_max_length=4, truncation_side="left"), ""),
    "the longest text in it": (
        config() | {"tokenizer.json": tokenizer(max_length=4, direction="left").to_str()},
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_both_roads_answer_alike_and_what_a_run_keeps_is_enough_to_check_it(case: str, tmp_path: Path) -> None:
    files, keys = CASES[case]
    task = write(tmp_path, files, keys, ("input_ids", "position_ids") if "length = 5" in keys else ("input_ids",))
    read, run = on_road(task, "read"), on_road(task, "run")
    found = [
        [(line["predicted"], line["min_swaps"]["high"], line["status"]) for line in results(folder)]
        for folder in (read, run)
    ]
    assert found[0] == found[1]
    assert {line["level"] for line in results(run)} == {"replay"}
    assert {line["level"] for line in results(read)} & {"float32", "real"}
    for folder in (read, run):
        assert main(["check", str(folder)]) == 0
    assert main(["certify", str(read / "task.toml"), "--out", str(tmp_path / "again")]) == 0
    assert timeless(results(tmp_path / "again")) == timeless(results(read))


def test_texts_beyond_a_length_that_two_files_dispute_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = config(model_max_length=6) | {"tokenizer.json": tokenizer(max_length=5).to_str()}
    task = write(tmp_path, files, 'road = "read"\n')
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert "a text of 9 tokens: tokenizer.json says 5 and tokenizer_config.json says 6; set length" in told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("of_class", [False, True])
def test_positions_that_skip_the_padding_are_not_read(
    of_class: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As RoBERTa counts them. Read from 0, such a model was certified for other positions than it is given."""
    made = tokenizer()
    if not of_class:
        made.post_processor = tokenizers.processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2))
    files = config(**({"tokenizer_class": "XLMRobertaTokenizer"} if of_class else {}))
    task = write(tmp_path, files | {"tokenizer.json": made.to_str()}, "", ("input_ids", "position_ids"))
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    assert {line["level"] for line in results(tmp_path / "run")} == {"replay"}
    assert main(["check", str(tmp_path / "run")]) == 0
    task.write_text(task.read_text().replace("[model]", '[model]\nroad = "read"'))
    capsys.readouterr()
    assert main(["certify", str(task), "--out", str(tmp_path / "other")]) == 2
    assert "count positions from the padding on, as RoBERTa" in capsys.readouterr().err
