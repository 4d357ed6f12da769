"""The example of models/PACKAGES.md: archguard's potion-base-8M with a head trained on it, read exactly."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from real_packages import made_ready

from swapproof.models.deployed.classifier import Deployment
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.deployed.static_embeddings import StaticClassifier, Summed
from swapproof.models.deployed.static_models.static_reading import fits, read_static
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.encoded import spans_of
from swapproof.models.word_network import WordNetwork

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data"


def swapped(text: str, table: dict[str, list[str]]) -> SwapText:
    spans = spans_of(text, "words")
    options = tuple((text[start:end], *table.get(text[start:end], ())) for start, end in spans)
    return SwapText((text,), 0, spans, options)


def test_the_example_trains_a_head_whose_folder_is_run_and_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inference = pytest.importorskip("model2vec.inference")
    made_ready("archguard", tmp_path, monkeypatch)
    model = open_classifier(Deployment("static", str(tmp_path / "reviews")))
    assert isinstance(model, StaticClassifier)
    assert json.loads(str(model.identity.facts["labels"])) == ["negative", "positive"]
    with (DATA / "sst2" / "dev.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = [row["content"] for row in rows]
    scores = model.scores([(text,) for text in texts])
    expected = inference.StaticModelPipeline.from_pretrained(tmp_path / "reviews").predict_proba(texts)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=2e-6)
    assert np.mean(scores.argmax(axis=1) == [int(row["label"]) for row in rows]) > 0.7
    table = json.loads((DATA / "synonyms" / "counterfitted_neighbors.json").read_text())
    moving = [swapped(text, table) for text in texts[:40]]
    words = list(dict.fromkeys(word for text in moving for options in text.options for word in options))
    network = read_static(model, words)
    assert isinstance(network, WordNetwork)
    assert network.remarks == ()
    numbers = {word: number for number, word in enumerate(words)}
    for text in moving:
        assert fits(model, text) is None
        sizes = [len(options) for options in text.options]
        drawn = np.random.default_rng(0).integers(0, sizes, size=(50, len(sizes))).astype(np.int32)
        ids = np.array([[numbers[text.options[place][one]] for place, one in enumerate(row)] for row in drawn])
        variants = model.variants(text)
        assert isinstance(variants, Summed)
        found, logits = variants.scores(drawn), network.scores(ids)
        np.testing.assert_array_equal(found.argmax(axis=1), logits.argmax(axis=1))
        np.testing.assert_allclose(found, model.scores([text.sentence(row) for row in drawn]), rtol=0, atol=1e-13)
