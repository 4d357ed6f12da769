"""Networks for given texts: repetitions that count less, and norms before an intercept, over all sentences."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from small_pipelines import all_rows, numbered, opened, swaps, trained

from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.models.deployed.pipelines import text_networks
from swapproof.models.deployed.scikit_learn import ScikitLearn, difference, fits, read_texts
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.word_network import CountedNorm, ReadTexts, Unreadable

pytest.importorskip("sklearn")
pytest.importorskip("joblib")

from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.feature_extraction.text import TfidfVectorizer as Tfidf
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MaxAbsScaler, Normalizer

TEXTS = (
    swaps("The film was very good , it's great and film-like good."),
    swaps("the the film film was good bad bad not not not"),
    SwapText(("xyzzy film xyzzy",), 0, ((0, 5), (6, 10), (11, 16)), (("xyzzy",), ("film", "plugh"), ("xyzzy", "good"))),
)
"""Of the last, one sentence holds no word that is counted."""
EXACT: dict[str, tuple[Any, ...]] = {
    "binary": (CountVectorizer(binary=True), LogisticRegression()),
    "sublinear": (Tfidf(sublinear_tf=True, norm=None), LogisticRegression()),
    "sublinear, two layers": (Tfidf(sublinear_tf=True, norm=None), MLPClassifier((6, 5), random_state=0, max_iter=30)),
    "binary and sublinear": (Tfidf(sublinear_tf=True, binary=True, norm=None), MultinomialNB()),
    "present or not": (CountVectorizer(), BernoulliNB()),
    "present or not, whatever the weights": (Tfidf(sublinear_tf=True), BernoulliNB()),
    "sums": (CountVectorizer(), LogisticRegression()),
    "L2, no intercept, binary": (Tfidf(binary=True), LogisticRegression(fit_intercept=False)),
}
ENCLOSED: dict[str, tuple[Any, ...]] = {
    "the defaults": (Tfidf(), LogisticRegression()),
    "sublinear": (Tfidf(sublinear_tf=True), LogisticRegression()),
    "binary, naive Bayes": (Tfidf(binary=True), MultinomialNB(class_prior=[0.3, 0.7])),
    "in steps": (CountVectorizer(), TfidfTransformer(norm=None), Normalizer(), RidgeClassifier()),
    "scaled first": (CountVectorizer(), MaxAbsScaler(), Normalizer(), LogisticRegression()),
    "scaled afterwards": (Tfidf(), MaxAbsScaler(), LogisticRegression()),
}
DIVIDED: dict[str, tuple[int, tuple[Any, ...]]] = {
    "three classes": (3, (Tfidf(), LogisticRegression())),
    "three classes, sublinear": (3, (Tfidf(sublinear_tf=True), RidgeClassifier())),
    "three classes, naive Bayes": (3, (Tfidf(binary=True), MultinomialNB(class_prior=[0.3, 0.5, 0.2]))),
    "ReLUs": (2, (Tfidf(), MLPClassifier((6,), random_state=0, max_iter=30))),
    "ReLUs, three classes": (3, (Tfidf(), MLPClassifier((6, 5), random_state=1, max_iter=30))),
    "ReLUs, in steps": (
        2,
        (CountVectorizer(), MaxAbsScaler(), Normalizer(), MLPClassifier((6,), random_state=0, max_iter=30)),
    ),
}
SPELLINGS = list(dict.fromkeys(option for text in TEXTS for options in text.options for option in options))


def read(classifier: ScikitLearn) -> ReadTexts:
    result = read_texts(classifier, SPELLINGS, TEXTS)
    assert isinstance(result, ReadTexts)
    return result


def compare(classifier: ScikitLearn, result: ReadTexts, text: SwapText, tolerance: float) -> None:
    rows = all_rows(text)
    sentences, ids = [text.sentence(row) for row in rows], numbered(text, rows, SPELLINGS)
    answers = classifier.pipeline.head.predict(classifier.pipeline.features([sentence for (sentence,) in sentences]))
    wins = result.network.scores(ids).argmax(axis=1)
    assert [classifier.pipeline.classes[win] for win in wins] == answers.tolist()
    assert difference(classifier, result.network, sentences, ids) < tolerance


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", EXACT)
def test_repetitions_are_read_exactly(name: str, classes: int, tmp_path: Path) -> None:
    classifier = opened(trained(*EXACT[name], classes=classes), tmp_path)
    result = read(classifier)
    assert (result.misfits, result.undecided) == ((None, None, None), False)
    for text in TEXTS:
        compare(classifier, result, text, 1e-9)
    if name != "sums":
        assert "may be counted twice" in str(fits(classifier, TEXTS[1]))  # sums alone would not do


@pytest.mark.parametrize("name", ENCLOSED)
def test_a_norm_before_an_intercept_is_enclosed(name: str, tmp_path: Path) -> None:
    """As close as 0.02 % of what the intercept adds."""
    model = trained(*ENCLOSED[name])
    intercept = getattr(model[-1], "intercept_", [math.log(0.7 / 0.3)])[0]
    classifier = opened(model, tmp_path)
    result = read(classifier)
    assert (result.misfits, result.undecided) == ((None, None, None), True)
    assert result.network.classes == 3
    for text in TEXTS[:2]:
        compare(classifier, result, text, 2e-4 * abs(intercept) * 30)
    compare(classifier, result, TEXTS[2], math.inf)  # the sentence that counts nothing: its answer is right


@pytest.mark.parametrize("factor", [0.3, -0.3])
def test_where_the_pieces_cannot_tell_nothing_is_decided(factor: float, tmp_path: Path) -> None:
    """The intercept is moved until the margin of one sentence is all but 0, on either side."""
    model = trained(Tfidf(), LogisticRegression())
    text, row = TEXTS[1], all_rows(TEXTS[1])[5:6]
    sentence = text.sentence(row[0])
    model[-1].intercept_[:] = 0
    model[-1].coef_ *= -np.sign(factor) * np.sign(model.decision_function(sentence))
    own = model.decision_function(sentence)[0]
    for near, decided in [(1e-7, False), (-1e-7, False), (1e-2, True), (-1e-2, True)]:
        model[-1].intercept_[:] = -own * (1 + near)
        assert np.sign(model[-1].intercept_[0]) == np.sign(factor)
        classifier = opened(model, tmp_path)
        wins = read(classifier).network.scores(numbered(text, row, SPELLINGS)).argmax()
        assert (wins == 2) == (not decided)
        if decided:
            assert classifier.classes[wins] == model.predict(sentence)[0]


def test_words_beyond_those_that_most_texts_repeat_leave_their_texts_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_networks, "MOST_REPEATED", 6)
    classifier = opened(trained(*EXACT["binary"]), tmp_path)
    result = read(classifier)
    assert [misfit is None for misfit in result.misfits] == [True, False, True]
    assert "the network minds 6" in str(result.misfits[1])
    compare(classifier, result, TEXTS[0], 1e-9)


def test_texts_whose_words_join_are_left_out(tmp_path: Path) -> None:
    classifier = opened(trained(*ENCLOSED["the defaults"]), tmp_path)
    result = read_texts(classifier, ["good", "_", "film"], [swaps("good_film", {})])
    assert isinstance(result, ReadTexts)
    assert "touch" in str(result.misfits[0])


@pytest.mark.parametrize("name", DIVIDED)
def test_a_norm_before_more_than_one_difference_is_a_root(name: str, tmp_path: Path) -> None:
    """Also where nothing is counted, which is not divided."""
    classes, steps = DIVIDED[name]
    classifier = opened(trained(*steps, classes=classes), tmp_path)
    result = read(classifier)
    assert (result.misfits, result.undecided) == ((None, None, None), False)
    assert result.network.classes == classes
    for text in TEXTS[:2]:
        compare(classifier, result, text, 1e-9)
    compare(classifier, result, TEXTS[2], math.inf)  # the sentence that counts nothing: its answer is right
    assert isinstance(result.network.norm, CountedNorm)
    assert result.network.norm.least > 0
    counted = read_texts(classifier, SPELLINGS, TEXTS[:2])
    assert isinstance(counted, ReadTexts)
    assert isinstance(counted.network.norm, CountedNorm)
    assert counted.network.norm.least == 0


@pytest.mark.parametrize(
    "steps",
    [
        (Tfidf(norm="l1"), LogisticRegression()),
        (Tfidf(), Normalizer(), LogisticRegression()),
        (Tfidf(norm="l1"), MLPClassifier((4,), max_iter=3)),
    ],
    ids=["L1", "two norms", "ReLUs"],
)
def test_other_norms_are_not_read(steps: tuple[Any, ...], tmp_path: Path) -> None:
    result = read_texts(opened(trained(*steps), tmp_path), SPELLINGS, TEXTS)
    assert isinstance(result, Unreadable)
    assert "divided by a norm" in result.reason


@pytest.mark.parametrize(
    "steps",
    [EXACT["sublinear, two layers"], ENCLOSED["the defaults"], DIVIDED["ReLUs"][1]],
    ids=["exact", "enclosed", "divided"],
)
def test_the_engines_read_the_file(steps: tuple[Any, ...], tmp_path: Path) -> None:
    read(opened(trained(*steps), tmp_path)).network.to_onnx(tmp_path / "words.onnx")
    assert read_network(tmp_path / "words.onnx", length=12) is not None


@cases(60)
@given(
    st.floats(1e-3, 1e3),
    st.floats(1, 1e6),
    st.floats(-100, 100).filter(lambda number: abs(number) > 1e-6),
    st.floats(0, 1),
)
def test_the_pieces_enclose_the_root(lowest: float, ratio: float, factor: float, share: float) -> None:
    kinks, pieces = text_networks._root(lowest, lowest * ratio, factor)
    for square in (lowest, lowest * ratio, lowest * ratio**share, *kinks[kinks >= lowest]):
        _, middle, half = pieces @ np.concatenate([[1.0], np.maximum(square - kinks, 0)])
        middle, half, exact = 2 * middle, 2 * half, factor * math.sqrt(square)
        assert middle - half < exact < middle + half
        assert half < 1e-4 * abs(exact)
    at_nothing = pieces[:, 0]
    assert at_nothing.argmax() == (factor > 0)


@pytest.mark.parametrize("share", [0.4, 0.9])
def test_pieces_that_do_not_enclose_the_root_are_found_out(share: float) -> None:
    """Half as wide as they must be, or a little too narrow."""
    kinks, pieces = text_networks._root(1.0, 50.0, 2.0)
    middle, half = 2 * pieces[1], 2 * pieces[2]
    text_networks._prove(kinks, middle, half, 2.0, 1.0, 50.0)
    with pytest.raises(ArithmeticError, match="root"):
        text_networks._prove(kinks, middle, half * share, 2.0, 1.0, 50.0)
    with pytest.raises(ArithmeticError, match="begin too late"):
        text_networks._prove(kinks, middle, half, 2.0, 0.5, 50.0)
