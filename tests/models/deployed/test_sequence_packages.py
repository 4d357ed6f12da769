"""Packages with an LSTM and with attention over two texts: written as ONNX by the code of models/PACKAGES.md, they
answer as the packages do."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from deployed_models import every_row
from real_packages import ROOT, example, made_ready

from swapproof.models.deployed.onnx_classifier import OnnxClassifier, open_onnx
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.encoded import spans_of
from swapproof.verifier.tasks.sections import ModelSection

OWN_EXAMPLE = "You are so dumb and stupid!"
OWN_SCORES = [0.9889402985572815, 0.07256772369146347, 0.620429277420044, 0.01934845559298992]
OWN_SCORES += [0.8664075136184692, 0.04072948172688484]
OWN_MEANS = {
    "I hate you so much!": 0.1395,
    "This is wonderful news.": 0.0013,
    "You're disgusting!": 0.3110,
    "Absolutely love your energy!": 0.0088,
    "You're the worst person ever!": 0.0937,
    "Have a nice day :)": 0.0115,
}
"""As its page has them; it runs TensorFlow."""
PREMISE = "The Recipient shall not make copies of the Confidential Information without written consent"
HYPOTHESIS = "Receiving Party may create a copy of some Confidential Information"


def opened(name: str, folder: Path, fields: int = 1, moving: int | None = None) -> OnnxClassifier:
    section = ModelSection.model_validate(example(name)[1]["model"], context={"folder": folder})
    return open_onnx(section.deployment(fields=fields, moving=moving))


def test_toxic_comments_get_the_scores_of_the_packages_own_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_ready("toxic-comment-classifier", tmp_path, monkeypatch)
    classifier = opened("toxic-comment-classifier", tmp_path)
    scores = classifier.scores([(OWN_EXAMPLE,), *((text,) for text in OWN_MEANS)])
    np.testing.assert_allclose(scores[0], OWN_SCORES, rtol=0, atol=2e-6)
    np.testing.assert_allclose(scores[1:].mean(axis=1), list(OWN_MEANS.values()), rtol=0, atol=6e-5)
    alone = [classifier.scores([(text,)])[0] for text in OWN_MEANS]
    np.testing.assert_allclose(scores[1:], alone, rtol=0, atol=1e-6)


def test_toxic_comments_are_cut_and_unknown_words_left_out_as_keras_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last hundred known words are read; marks are none."""
    made_ready("toxic-comment-classifier", tmp_path, monkeypatch)
    classifier = opened("toxic-comment-classifier", tmp_path)
    long = " ".join(["you idiot"] * 10 + ["the river flows through the town"] * 16 + ["and then the rain came"])
    texts = [long, " ".join(long.split()[-100:]), "zzqqx Hello, there", "hello there"]
    one, same, other, without = classifier.scores([(text,) for text in texts])
    np.testing.assert_array_equal(one, same)
    np.testing.assert_array_equal(other, without)
    assert one[0] < 0.5 < classifier.scores([(" ".join(long.split()[:20]),)])[0][0]


def test_pairs_are_answered_as_the_packages_own_network_answers_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words are those of split(), unknown ones <unk>; nothing is padded, whatever stands in one batch."""
    import torch

    names = made_ready("contract-nli", tmp_path, monkeypatch)
    network, number = names["model"].eval(), {word: place for place, word in enumerate(names["words"])}
    classifier = opened("contract-nli", tmp_path, fields=2, moving=0)
    pairs = [
        (PREMISE, HYPOTHESIS),
        (HYPOTHESIS, PREMISE),
        ("This Agreement is governed by zzqqx law .", HYPOTHESIS),
        ("Party", "Agreement shall not"),
    ]
    expected = []
    for pair in pairs:
        premise, hypothesis = (
            torch.tensor([[number.get(word, number["<unk>"]) for word in text.split()]]) for text in pair
        )
        with torch.no_grad():
            expected.append(network(premise, hypothesis)[0].numpy())
    np.testing.assert_allclose(classifier.scores(pairs), expected, rtol=0, atol=1e-4)
    assert np.ptp(np.array(expected), axis=0).max() > 1


@pytest.mark.parametrize("moving", [0, 1])
def test_swapped_sentences_of_pairs_are_those_of_whole_pairs(
    moving: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the texts of SNLI, where they are there; either text may move."""
    made_ready("contract-nli", tmp_path, monkeypatch)
    classifier = opened("contract-nli", tmp_path, fields=2, moving=moving)
    pairs = [(PREMISE, HYPOTHESIS), *snli(6)]
    table = {"not": ("never",), "a": ("one", "the"), "copy": ("duplicate",), "The": ("A",), "in": ("within",)}
    for pair in pairs:
        spans = spans_of(pair[moving], "whitespace")
        words = [pair[moving][start:end] for start, end in spans]
        text = SwapText(pair, moving, spans, tuple((word, *table.get(word, ())) for word in words))
        rows = every_row(text)[:200]
        whole = classifier.scores([text.sentence(row) for row in rows])
        np.testing.assert_allclose(classifier.variants(text).scores(rows), whole, rtol=0, atol=1e-4)


def snli(number: int) -> list[tuple[str, str]]:
    path = ROOT.parent / "shared" / "data" / "snli" / "dev.tsv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(row["premise"], row["hypothesis"]) for row in rows[:number]]


def test_the_words_of_the_pickles_are_those_that_their_ids_stand_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keras counts words from the most frequent one, and keeps those below num_words."""
    made_ready("toxic-comment-classifier", tmp_path, monkeypatch)
    config = json.loads((tmp_path / "words.json").read_text())["config"]
    words = list(config["word_index"].items())
    assert words[:5] == [("the", 1), ("to", 2), ("of", 3), ("and", 4), ("a", 5)]
    assert [number for _, number in words] == list(range(1, config["num_words"]))
    assert all(not set(word) & set(config["filters"]) for word, _ in words)
