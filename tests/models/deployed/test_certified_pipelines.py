"""Pipelines read as networks and certified: the minimum swaps are those that asking the pipeline everything shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_pipelines import SYNONYMS, all_rows, corpus, opened, swaps, trained

from swapproof.models.deployed.scikit_learn import read_texts
from swapproof.models.word_network import ReadTexts
from swapproof.verifier.cli import main

pytest.importorskip("sklearn")
pytest.importorskip("joblib")

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer as Tfidf
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

PIPELINES: dict[str, tuple[Any, ...]] = {
    "the defaults": (Tfidf(), LogisticRegression()),
    "binary": (CountVectorizer(binary=True), LogisticRegression()),
    "ReLUs": (Tfidf(norm=None, sublinear_tf=True), MLPClassifier((8,), random_state=0, max_iter=60)),
}
TABLE = {
    **SYNONYMS,
    **{"fine": ("dull",), "lovely": ("empty",), "moving": ("poor",), "poor": ("moving",), "awful": ("great",)},
    **{"dull": ("fine", "grey"), "empty": ("lovely",), "great": ("grand", "awful")},
}
TASK = """
[model]
onnx = "words.onnx"
vocabulary = "words.json"
pad = "<pad>"
split = "words"
labels = {labels}
[data]
file = "data.jsonl"
[swaps]
file = "synonyms.json"
"""


@pytest.mark.parametrize("name", PIPELINES)
def test_certified_minimum_swaps_are_those_of_the_pipeline(name: str, tmp_path: Path) -> None:
    classifier = opened(trained(*PIPELINES[name]), tmp_path)
    drawn, labels = corpus(16)
    texts = [swaps(text, TABLE) for text in drawn]
    spellings = list(dict.fromkeys(option for text in texts for options in text.options for option in options))
    result = read_texts(classifier, spellings, texts)
    assert isinstance(result, ReadTexts)
    assert not any(result.misfits)
    result.network.to_onnx(tmp_path / "words.onnx")
    names = [*classifier.classes, "undecided"][: result.network.classes]
    rows = [{"text": text, "label": label} for text, label in zip(drawn, labels, strict=True)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "words.json").write_text(json.dumps([*spellings, "<pad>"]))
    (tmp_path / "synonyms.json").write_text(json.dumps(TABLE))
    (tmp_path / "task.toml").write_text(TASK.format(labels=json.dumps(names)))
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(tmp_path / "run"), "--jobs", "1"]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert {line["status"] for line in lines} <= {"exact", "unbreakable"}
    for line, text, label in zip(lines, texts, labels, strict=True):
        choices = all_rows(text)
        predicted = classifier.pipeline.head.predict(classifier.pipeline.features([text.moved(row) for row in choices]))
        broken = (choices[predicted != label] > 0).sum(axis=1)
        assert line["min_swaps"]["high"] == (int(broken.min()) if len(broken) else None)
        if not len(broken):
            assert line["status"] == "unbreakable"
    assert np.mean([line["min_swaps"]["high"] is not None for line in lines]) > 0.5


@pytest.mark.parametrize("damage", ["another column", "a weight that is no number"])
def test_what_damaged_numbers_make_of_a_text_is_no_answer(damage: str, tmp_path: Path) -> None:
    """The pipeline is run, and other texts have theirs."""
    skops = pytest.importorskip("skops.io")
    pipeline = trained(*PIPELINES["the defaults"])
    drawn, labels = corpus(16)
    word = drawn[0].split()[0].lower()
    vectoriser = pipeline[0]
    if damage == "another column":
        vectoriser.vocabulary_[word] = 10**6
    else:
        vectoriser._tfidf.idf_[vectoriser.vocabulary_[word]] = np.nan
    skops.dump(pipeline, tmp_path / "m.skops")
    rows = [{"text": text, "label": str(label)} for text, label in zip(drawn, labels, strict=True)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "synonyms.json").write_text(json.dumps(TABLE))
    names = [str(name) for name in pipeline.classes_]
    (tmp_path / "task.toml").write_text(
        f'[model]\nsklearn = "m.skops"\nlabels = {json.dumps(names)}\n'
        '[data]\nfile = "data.jsonl"\n[swaps]\nfile = "synonyms.json"\n'
    )
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(tmp_path / "run")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert lines[0]["status"] == "open"
    assert "the pipeline raises" in lines[0]["reason"]
    assert {line["level"] for line in lines} == {"replay"}
    assert main(["check", str(tmp_path / "run")]) == 0
