"""`certify` and `check` on static embeddings: read where they are sums, run where not, and right as brute force is."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import static_files
from command_runs import Capture, results

from swapproof.models.deployed.classifier import Classifier, Deployment
from swapproof.models.deployed.kinds import open_classifier
from swapproof.verifier.cli import main

TABLE = {"good": ["bad", "lights"], "film": ["films", "dark"], "very": ["a"], "light": ["darker", "bad"]}
TEXTS = ["a very good film", "good light film", "very dark light film", "a film", "good good film"]
TOKENS = ["[PAD]", "[UNK]", "good", "bad", "film", "##s", "##er", "dark", "light", "a", "very"]


def folder(path: Path, *, normalize: bool) -> Path:
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    rng = np.random.default_rng(5)
    layers = [
        (rng.normal(size=(6, 4)).astype(np.float32), rng.normal(size=6).astype(np.float32)),
        (rng.normal(size=(2, 6)).astype(np.float32), np.zeros(2, dtype=np.float32)),
    ]
    tensors = {"embeddings": rng.normal(size=(len(TOKENS), 4)).astype(np.float32)}
    tokenizer = static_files.word_pieces(TOKENS)
    return static_files.write_folder(path / "reviews", tokenizer, tensors, layers, normalize=normalize)


def binary(path: Path, **settings: Any) -> Path:
    words = ["</s>", "a", "good", "bad", "film", "films", "light", "very"]
    rng = np.random.default_rng(1)
    vectors = static_files.dense(rng.normal(size=(len(words) + settings.get("buckets", 0), 3)))
    outputs = static_files.dense(rng.normal(size=(2, 3)))
    (path / "model.bin").write_bytes(static_files.binary(words, ["0", "1"], vectors, outputs, dim=3, **settings))
    return path / "model.bin"


def write_task(place: Path, model: Path, classifier: Classifier) -> Path:
    """Texts labelled as they are answered."""
    labels = classifier.scores([(text,) for text in TEXTS]).argmax(axis=1)
    rows = "".join(f"{label}\t{text}\n" for label, text in zip(labels, TEXTS, strict=True))
    (place / "data.tsv").write_text("label\ttext\n" + rows)
    (place / "synonyms.json").write_text(json.dumps(TABLE))
    task = place / "task.toml"
    task.write_text(
        f'[model]\nstatic = "{model.name}"\nscores = "probabilities"\nsplit = "whitespace"\nlabels = ["0", "1"]\n'
        '[data]\nfile = "data.tsv"\n[swaps]\nfile = "synonyms.json"\n'
    )
    return task


def fewest_swaps(classifier: Classifier, text: str) -> int | None:
    options = [[word, *TABLE.get(word, [])] for word in text.split()]
    sentences = list(itertools.product(*options))
    answers = classifier.scores([(" ".join(words),) for words in sentences]).argmax(axis=1)
    swaps = [sum(a != b for a, b in zip(words, sentences[0], strict=True)) for words in sentences]
    return min((number for number, answer in zip(swaps, answers, strict=True) if answer != answers[0]), default=None)


@pytest.mark.parametrize(
    ("kind", "level"),
    [("mean", "real"), ("norm", "real"), ("single words", "real"), ("parts", "real"), ("groups", "replay")],
)
def test_minimum_swaps_are_those_of_the_deployed_model(kind: str, level: str, tmp_path: Path, capsys: Capture) -> None:
    model = {
        "mean": lambda: folder(tmp_path, normalize=False),
        "norm": lambda: folder(tmp_path, normalize=True),
        "single words": lambda: binary(tmp_path),
        "parts": lambda: binary(tmp_path, shortest=2, longest=3, buckets=20),
        "groups": lambda: binary(tmp_path, grams=2, buckets=20),
    }[kind]()
    classifier = open_classifier(Deployment("static", str(model)))
    run = tmp_path / "run"
    assert main(["certify", str(write_task(tmp_path, model, classifier)), "--out", str(run), "--jobs", "1"]) == 0
    found = [fewest_swaps(classifier, text) for text in TEXTS]
    assert {None, *found} != {None}
    for line, number in zip(results(run), found, strict=True):
        assert line["min_swaps"]["high"] == number
        assert line["status"] == ("unbreakable" if number is None else "exact")
        assert line["level"] == level
    for file in list(model.iterdir()) if model.is_dir() else [model]:
        file.unlink()  # the run has copies
    capsys.readouterr()
    assert main(["check", str(run)]) == 0
    assert f"accepted {len(TEXTS)} of {len(TEXTS)}" in capsys.readouterr().out
