"""Sentences that a model cannot be given or does not answer cost their text, and not the run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_runs import results
from graph_builder import Builder, floats, tokens

from swapproof.verifier.cli import main

ODD = """
from math import inf, nan

def count(text, words):
    return float(sum(word in words for word in text.split()))

def scores(texts):
    return [[count(text, ("bad", "dull")) + 0.5, count(text, ("good", "fun"))] for text in texts]

def three(texts):
    return [[*row, 0.0][: 3 if "movie" in text else 2] for text, row in zip(texts, scores(texts))]

def none(texts):
    return [[nan, 1.0] for text in texts]

def infinite(texts):
    return [[inf if "film" in text else 0.0, inf] for text in texts]
"""
TEXTS = [("a good film", "1"), ("fun and good", "1"), ("a dull film", "0"), ("bad and dull", "0")]
SWAPS = {"film": ["movie"], "good": ["fun", "bad"], "and": ["or"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "odd_answers.py").write_text(ODD)
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = [json.dumps({"text": text, "label": label}) for text, label in TEXTS]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "swaps.json").write_text(json.dumps(SWAPS))
    yield tmp_path
    sys.modules.pop("odd_answers", None)


def run_of(folder: Path, model: str) -> Path:
    (folder / "task.toml").write_text(
        f'[model]\n{model}\nlabels = ["0", "1"]\n[data]\nfile = "texts.jsonl"\n[swaps]\nfile = "swaps.json"\n'
    )
    assert main(["certify", str(folder / "task.toml"), "--out", str(folder / "run")]) == 0
    return folder / "run"


def statuses(run: Path) -> list[str]:
    return [line["status"] for line in results(run)]


def test_another_number_of_scores_for_one_sentence(folder: Path) -> None:
    run = run_of(folder, 'callable = "odd_answers:three"')
    assert statuses(run) == ["open", "exact", "open", "unbreakable"]
    assert "scores" in results(run)[0]["reason"]
    assert main(["check", str(run)]) == 0


def test_sentences_of_more_tokens_than_the_model_reads(folder: Path) -> None:
    """All texts fit, and a swap makes one longer."""
    tokenizers = pytest.importorskip("tokenizers")
    words = ["[PAD]", "[UNK]", "a", "good", "fun", "and", "film", "dull", "bad", "or", "mo", "##vie"]
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: id for id, word in enumerate(words)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(folder / "tokenizer.json"))
    table = np.zeros((len(words), 2), dtype=np.float32)
    table[[3, 4], 1], table[[7, 8], 0] = 1, 1
    b = Builder()
    b.node("ReduceSum", [b.call("Gather", b.constant(table), "ids"), b.wholes(1)], ["logits"], keepdims=0)
    onnx.save(b.proto([tokens("batch", 3, name="ids")], [floats("logits", "batch", 2)]), folder / "model.onnx")
    run = run_of(folder, 'onnx = "model.onnx"\nvocabulary = "tokenizer.json"\npad = "[PAD]"\nroad = "run"')
    assert statuses(run) == ["open", "exact", "open", "unbreakable"]
    assert "a text of 4 tokens: the model reads 3" in results(run)[0]["reason"]
    assert main(["check", str(run)]) == 0


def test_a_model_that_only_answers_nan_claims_nothing_and_is_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(folder, 'callable = "odd_answers:none"')
    assert set(statuses(run)) == {"ambiguous"}
    assert (
        "answers none of the 4 texts with a class: NaN" in json.loads((run / "summary.json").read_text())["vacuous"][0]
    )
    capsys.readouterr()
    assert main(["check", str(run)]) == 3
    assert "refused" not in capsys.readouterr().out


def test_infinite_scores_are_no_warning(folder: Path) -> None:
    run = run_of(folder, 'callable = "odd_answers:infinite"')
    assert statuses(run) == ["already_wrong", "unbreakable", "exact", "already_wrong"]
    assert main(["check", str(run)]) == 0


def test_words_that_a_tokenizer_does_not_know_are_said_where_the_model_is_run(folder: Path) -> None:
    (folder / "vocabulary.json").write_text(json.dumps(["<pad>", "<unk>", "film", "bad"]))
    table = np.array([[0, 0], [0, 0.1], [0.4, 0], [2, 0]], dtype=np.float32)
    b = Builder()
    b.node("ReduceSum", [b.call("Gather", b.constant(table), "ids"), b.wholes(1)], ["logits"], keepdims=0)
    onnx.save(b.proto([tokens("batch", "length", name="ids")], [floats("logits", "batch", 2)]), folder / "model.onnx")
    run = run_of(folder, 'onnx = "model.onnx"\nvocabulary = "vocabulary.json"\nroad = "run"')
    vacuous = json.loads((run / "summary.json").read_text())["vacuous"]
    assert any(said.startswith("9 of 12 words are unknown to the vocabulary") for said in vacuous)
    assert main(["certify", str(folder / "task.toml"), "--out", str(run), "--radius", "0"]) == 3
