"""Given vectors stay as they are, and counter-fitting goes down the three losses of the paper."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from swapproof.models.defences.given_vectors import (
    CounterFitted,
    add_slope,
    antonym_pairs,
    counter_fitted,
    distances,
    near_pairs,
    vectors_of,
)
from swapproof.models.errors import BadInput

ASKED = CounterFitted("vectors.txt", "synonyms.json", ("antonyms.txt",))


def losses(vectors: np.ndarray, alike: np.ndarray, apart: np.ndarray, near: np.ndarray, were: np.ndarray) -> float:
    lengths = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    parts = np.maximum(ASKED.delta - distances(lengths, apart), 0).sum()
    parts += np.maximum(distances(lengths, alike) - ASKED.gamma, 0).sum()
    return float(parts + np.maximum(distances(lengths, near) - were, 0).sum())


def test_slopes_are_those_of_the_distances() -> None:
    """By differences, at vectors of length 1."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(5, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = np.array([[0, 1], [1, 2], [3, 0]])
    slope = np.zeros_like(vectors)
    add_slope(slope, vectors, pairs, 1.0, np.ones(3, dtype=bool))
    for at in np.ndindex(*vectors.shape):
        moved = vectors.copy()
        moved[at] += 1e-6
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        change = (distances(moved, pairs).sum() - distances(vectors, pairs).sum()) / 1e-6
        assert slope[at] == pytest.approx(change, abs=1e-4)


def test_synonyms_come_together_and_antonyms_part() -> None:
    random = np.random.default_rng(1)
    given = random.normal(size=(40, 6)) * 3
    alike, apart = np.array([[0, 1], [2, 3]]), np.array([[4, 5], [6, 7]])
    given[5], given[7] = given[4] + random.normal(size=6), given[6] + random.normal(size=6)
    found = counter_fitted(given, alike, apart, ASKED)
    assert np.allclose(np.linalg.norm(found, axis=1), np.linalg.norm(given, axis=1))
    before, after = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (given, found))
    assert (distances(after, alike) < distances(before, alike)).all()
    assert (distances(after, apart) > distances(before, apart) + 0.1).all()
    near = near_pairs(before, ASKED.rho)
    assert losses(found, alike, apart, near, distances(before, near)) < losses(
        given, alike, apart, near, distances(before, near)
    )
    lonely = np.setdiff1d(np.arange(40), np.concatenate([near.ravel(), alike.ravel(), apart.ravel()]))
    assert len(lonely)
    assert np.allclose(found[lonely], given[lonely])


def test_a_pair_that_is_both_counts_as_antonyms() -> None:
    given = np.random.default_rng(2).normal(size=(4, 3))
    pair = np.array([[0, 1]])
    found = counter_fitted(given, pair, pair, ASKED)
    alone = counter_fitted(given, pair[:0], pair, ASKED)
    assert np.array_equal(found, alone)


def test_files_are_read_and_bad_ones_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\ngood 1 2\nbad -1 0.5\nother 0 0\n")
    known, vectors = vectors_of(path, "vectors.txt", ["<pad>", "<unk>", "bad", "film", "good"])
    assert known.tolist() == [2, 4]
    assert vectors.tolist() == [[-1, 0.5], [1, 2]]
    bad = {"good 1 x\n": "lines of a word", "a 1 2\nb 1\n": "line 2", "z 1 2\n": "no word", "good 1 inf\n": "finite"}
    for content, said in bad.items():
        path.write_text(content)
        with pytest.raises(BadInput, match=said):
            vectors_of(path, "vectors.txt", ["good"])
    with pytest.raises(BadInput, match="no such file of vectors"):
        vectors_of(tmp_path / "none", "none", ["good"])
    (tmp_path / "antonyms.txt").write_text("good bad \nbad good\ngood good\nx\n")
    assert antonym_pairs(["good", "bad"], [tmp_path / "antonyms.txt"]).tolist() == [[0, 1]]


def test_a_network_is_trained_on_vectors_that_do_not_move(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import onnx
    from onnx import numpy_helper

    from swapproof.models.training import swap_size, train

    rows = ["text\tlabel"] + [row for n in range(8) for row in (f"good fine f{n}\tyes", f"bad fine f{n}\tno")]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "vectors.txt").write_text("good 1 2\nbad 1.5 2\nfine 2 1\n")
    (tmp_path / "synonyms.json").write_text(json.dumps({"good": ["fine"]}))
    (tmp_path / "antonyms.txt").write_text("good bad\n")
    recipe = (
        '[data]\ntrain = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out_rows = 4\n[vocabulary]\nlength = 3\n'
        '[network]\narchitecture = "mean"\nembedding = 2\nhidden = [3]\n[training]\nepochs = 1\nbatch = 4\n[defence]\n'
    )
    (tmp_path / "given.toml").write_text(recipe + 'method = "vectors"\nvectors = "vectors.txt"\n')
    more = 'vectors = "vectors.txt"\nsynonyms = "synonyms.json"\nantonyms = ["antonyms.txt"]\n'
    (tmp_path / "fitted.toml").write_text(recipe + 'method = "counter-fit"\n' + more)
    tables = []
    for name in ("given", "fitted"):
        train(tmp_path / f"{name}.toml", tmp_path / name, lambda line: None)
        words = json.loads((tmp_path / name / "vocabulary.json").read_text())
        model = onnx.load(tmp_path / name / "model.onnx")
        (table,) = [one for one in model.graph.initializer if one.dims == [len(words), 2]]
        tables.append(numpy_helper.to_array(table)[[words.index(word) for word in ("good", "bad", "fine")]])
    assert np.array_equal(tables[0], np.array([[1, 2], [1.5, 2], [2, 1]], dtype=np.float32))
    lengths = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in tables]
    apart, alike = np.array([[0, 1]]), np.array([[0, 2]])
    assert distances(lengths[1], apart) > distances(lengths[0], apart)
    assert distances(lengths[1], alike) < distances(lengths[0], alike)
    none = np.zeros((3, 2), dtype=np.float32)
    assert swap_size(none, ["good", "bad", "fine"], ({"good": ["fine"]}, None)) is None  # of words without a vector
