"""Pipelines read as word networks: the same answers over all sentences of the texts that fit, and no others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from small_pipelines import all_rows, numbered, opened, swaps, trained

from swapproof.models.deployed.pipelines.word_counts import WordCounts, every_option, word_counts
from swapproof.models.deployed.scikit_learn import difference, fits, read_scikit_learn
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.encoded import spans_of
from swapproof.models.word_network import Unreadable, WordNetwork

pytest.importorskip("sklearn")
pytest.importorskip("joblib")

from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.feature_extraction.text import TfidfVectorizer as Tfidf
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC

TEXT = "The film was very good , it's great and film-like."
ONCE = "The film was very good , it's great ."
"""No sentence of it has a token twice."""

READ: dict[str, tuple[Any, ...]] = {
    "counts, logistic": (CountVectorizer(), LogisticRegression()),
    "counts, support vectors": (CountVectorizer(), LinearSVC()),
    "counts, kernel": (CountVectorizer(), SVC(kernel="linear")),
    "counts, gradient": (CountVectorizer(), SGDClassifier(random_state=0)),
    "counts, ridge": (CountVectorizer(), RidgeClassifier()),
    "counts, perceptron": (CountVectorizer(), Perceptron()),
    "counts, naive Bayes": (CountVectorizer(), MultinomialNB()),
    "counts, complement": (CountVectorizer(), ComplementNB()),
    "counts, ReLUs": (CountVectorizer(), MLPClassifier((6,), random_state=0, max_iter=30)),
    "counts, two layers": (CountVectorizer(), MLPClassifier((6, 5), random_state=0, max_iter=30)),
    "counts, no layer": (CountVectorizer(), MLPClassifier((), random_state=0, max_iter=30)),
    "tf-idf, logistic": (Tfidf(norm=None), LogisticRegression()),
    "tf-idf, ReLUs": (Tfidf(norm=None, use_idf=False), MLPClassifier((6,), random_state=0, max_iter=30)),
    "tf-idf in two steps": (CountVectorizer(), TfidfTransformer(norm=None), LogisticRegression()),
    "L2, no intercept": (Tfidf(), LogisticRegression(fit_intercept=False)),
    "L2 as a step, no intercept": (CountVectorizer(), Normalizer(), LinearSVC(fit_intercept=False)),
    "L1, complement": (Tfidf(norm="l1"), ComplementNB()),
    "L2, equal priors": (Tfidf(), MultinomialNB(fit_prior=False)),
    "scaled": (Tfidf(norm=None), MaxAbsScaler(), StandardScaler(with_mean=False), LogisticRegression()),
    "chosen": (CountVectorizer(), SelectKBest(k=5), LogisticRegression()),
    "projected": (CountVectorizer(), TruncatedSVD(3, random_state=0), LogisticRegression()),
}
FLAT: dict[str, tuple[Any, ...]] = {
    "binary": (CountVectorizer(binary=True), LogisticRegression()),
    "sublinear": (Tfidf(sublinear_tf=True, norm=None), MLPClassifier((6,), random_state=0, max_iter=30)),
    "present or not": (CountVectorizer(), BernoulliNB()),
    "present or not, weighted": (Tfidf(), BernoulliNB()),
}


def spellings_of(*texts: SwapText) -> list[str]:
    return list(dict.fromkeys(option for text in texts for options in text.options for option in options))


def compare(model: Any, text: SwapText, folder: Path) -> None:
    """Over all sentences of a text."""
    classifier = opened(model, folder)
    assert fits(classifier, text) is None
    spellings = spellings_of(text)
    network = read_scikit_learn(classifier, spellings)
    assert isinstance(network, WordNetwork)
    rows = all_rows(text)
    sentences = [text.sentence(row) for row in rows]
    ids = numbered(text, rows, spellings)
    logits = network.scores(ids)
    answers = [classifier.classes[number] for number in logits.argmax(axis=1)]
    assert answers == model.predict([sentence[0] for sentence in sentences]).tolist()
    assert difference(classifier, network, sentences, ids) < 1e-9
    assert difference(classifier, network, sentences[:-1], ids[1:]) > 1e-3  # of sentences that are not the same


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", READ)
def test_every_sentence_is_answered_as_the_pipeline_does(name: str, classes: int, tmp_path: Path) -> None:
    if (name, classes) == ("counts, kernel", 3):
        pytest.skip("of three classes, pairs vote")
    compare(trained(*READ[name], classes=classes), swaps(TEXT), tmp_path)


@pytest.mark.parametrize("name", FLAT)
def test_so_is_a_text_without_repetitions_where_words_count_once(name: str, tmp_path: Path) -> None:
    compare(trained(*FLAT[name], classes=3), swaps(ONCE), tmp_path)


@pytest.mark.parametrize("name", FLAT)
def test_a_text_in_which_a_word_may_stand_twice_does_not_fit_there(name: str, tmp_path: Path) -> None:
    """Twice as it stands; twice after two swaps; twice within one word."""
    classifier = opened(trained(*FLAT[name]), tmp_path)
    within = SwapText(("good film",), 0, ((0, 4), (5, 9)), (("good",), ("film", "film-film")))
    for text in (swaps("good good"), swaps("film and movie", {"film": ("story",), "movie": ("story",)}), within):
        reason = fits(classifier, text)
        assert reason is not None
        assert "may be counted twice in a sentence" in reason
    assert fits(classifier, swaps("xyzzy xyzzy")) is None  # it is not in the vocabulary


def test_single_precision_is_read_as_the_numbers_that_it_holds(tmp_path: Path) -> None:
    model = trained(Tfidf(norm=None, dtype=np.float32), LogisticRegression())
    assert model[-1].coef_.dtype == np.float32
    classifier, text = opened(model, tmp_path), swaps(TEXT)
    network = read_scikit_learn(classifier, spellings_of(text))
    assert isinstance(network, WordNetwork)
    rows = all_rows(text)
    ids = numbered(text, rows, spellings_of(text))
    apart = difference(classifier, network, [text.sentence(row) for row in rows], ids)
    assert 0 < apart < 1e-5


def test_engines_and_checkers_read_the_file_alike(tmp_path: Path) -> None:
    from swapproof.encodings.onnx_files.onnx_reading import read_network

    text = swaps(TEXT)
    spellings = spellings_of(text)
    classifier = opened(trained(*READ["counts, two layers"]), tmp_path)
    network = read_scikit_learn(classifier, spellings)
    assert isinstance(network, WordNetwork)
    network.to_onnx(tmp_path / "words.onnx")
    assert read_network(tmp_path / "words.onnx", length=9) is not None


UNREAD: dict[str, tuple[tuple[Any, ...], str]] = {
    "two words": ((Tfidf(ngram_range=(1, 2)), LogisticRegression()), "counts up to 2 words together"),
    "characters": ((Tfidf(analyzer="char"), LogisticRegression()), "reads characters"),
    "own tokenizer": (
        (CountVectorizer(tokenizer=str.split, token_pattern=None), LinearSVC()),
        "a tokenizer of its own",
    ),
    "own preprocessor": ((CountVectorizer(preprocessor=str.lower), LinearSVC()), "a preprocessor of its own"),
    "a wide pattern": ((CountVectorizer(token_pattern=r"\w.*\w"), LinearSVC()), "may look beyond a word"),
    "an outlook": ((CountVectorizer(token_pattern=r"\w+(?= )"), LinearSVC()), "may look beyond a word"),
    "hashing": ((HashingVectorizer(n_features=64), LinearSVC()), "HashingVectorizer is neither"),
    "L2 and intercept": ((Tfidf(), LogisticRegression()), "fit_intercept=False"),
    "L2 and ReLUs": ((Tfidf(), MLPClassifier((4,), max_iter=3)), "divided by their norm"),
    "L2 and priors": ((Tfidf(), MultinomialNB(class_prior=[0.3, 0.7])), "divided by their norm"),
    "tanh": ((CountVectorizer(), MLPClassifier((4,), activation="tanh", max_iter=3)), "activation is tanh"),
    "other kernel": ((CountVectorizer(), SVC()), "neither linear"),
    "calibrated": ((CountVectorizer(), CalibratedClassifierCV(LinearSVC(), cv=2)), "probabilities of Calibrated"),
    "scaled logarithms": (
        (CountVectorizer(), MaxAbsScaler(), TfidfTransformer(sublinear_tf=True), LinearSVC(fit_intercept=False)),
        "logarithm of what is no count",
    ),
    "logarithms of a norm": (
        (CountVectorizer(), Normalizer(), TfidfTransformer(sublinear_tf=True), LinearSVC(fit_intercept=False)),
        "logarithm of what is no count",
    ),
    "presence of a projection": (
        (CountVectorizer(), TruncatedSVD(3), BernoulliNB()),
        "some may be negative",
    ),
    "a border": ((CountVectorizer(), BernoulliNB(binarize=1.0)), "exceed 1.0"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_no_sum_over_words_is_not_read_and_says_why(name: str, tmp_path: Path) -> None:
    steps, said = UNREAD[name]
    classifier = opened(trained(*steps), tmp_path)
    result = read_scikit_learn(classifier, ["good"])
    assert isinstance(result, Unreadable)
    assert said in result.reason
    assert "\n" not in result.reason
    assert fits(classifier, swaps(TEXT)) == result.reason


def test_a_class_of_the_same_name_from_elsewhere_is_not_read(tmp_path: Path) -> None:
    """It may compute something else."""

    model = trained(CountVectorizer(), LogisticRegression())
    model.steps[-1] = ("own", _Own().adopt(model[-1]))
    result = read_scikit_learn(opened(model, tmp_path), ["good"])
    assert isinstance(result, Unreadable)
    assert "LogisticRegression is neither linear" in result.reason


class _Own(LogisticRegression):  # type: ignore[misc]
    def adopt(self, other: Any) -> Any:
        self.__dict__.update(other.__dict__)
        return self


_Own.__name__ = "LogisticRegression"
_Own.__qualname__ = "_Own"


# Texts that do not fit


def reason(text: SwapText, **options: Any) -> str | None:
    counts = word_counts(CountVectorizer(**options).fit(["good film fine a_b ab a b cafe"]))
    assert isinstance(counts, WordCounts)
    return counts.joined(text) or counts.differs(text, every_option(text))


def test_words_that_touch_do_not_fit() -> None:
    assert "'good' and '_' touch" in str(reason(swaps("good_film")))
    assert reason(swaps("good, film.")) is None


def test_words_that_would_touch_after_a_swap_do_not_fit() -> None:
    assert reason(swaps("(film)")) is None
    assert "touch" in str(reason(swaps("(film)", {"(": ("_",)})))


def test_whitespace_tokens_need_words_split_at_white_space() -> None:
    assert "touch" in str(reason(swaps("good film."), token_pattern=r"\S+"))
    assert reason(swaps("good film.", split="whitespace"), token_pattern=r"\S+") is None


def test_stripped_accents_may_not_take_a_word_away() -> None:
    """Of a—b nothing but ab is left in ASCII."""
    assert "nothing is left of '—'" in str(reason(swaps("a—b"), strip_accents="ascii"))
    assert reason(swaps("a—b"), strip_accents="unicode") is None
    assert "nothing is left" in str(reason(swaps("e\u0301a b"), strip_accents="unicode"))


def test_the_capital_sigma_does_not_fit() -> None:
    assert "lower case" in str(reason(swaps("ΟΔΟΣ film")))
    assert reason(swaps("ΟΔΟΣ film"), lowercase=False) is None
    assert "ΑΣ.Α".lower() != "ΑΣ".lower() + "." + "Α".lower()


def test_what_is_counted_between_words_does_not_fit_a_network(tmp_path: Path) -> None:
    """Whoever froze the text took 'bad' for no word."""
    classifier = opened(trained(*READ["counts, logistic"]), tmp_path)
    text = SwapText(("good bad film",), 0, ((0, 4), (9, 13)), (("good", "fine"), ("film",)))
    assert "' bad ' is counted, and is no word" in str(fits(classifier, text))


def test_every_option_is_looked_at() -> None:
    text = swaps(TEXT)
    rows = every_option(text)
    assert not any(rows[0])
    for word, options in enumerate(text.options):
        assert {row[word] for row in rows} == set(range(len(options)))


LETTERS = "abcABΣσ_'-.é\u0301—İßﬁ١ "
PATTERNS = (r"(?u)\b\w\w+\b", r"\w+", r"[a-c']+", r"(?u)\b[a-c]{2,3}\b", r"\S+", r"[^\s.]{2,}")


@cases(300)
@given(
    st.lists(st.lists(st.text(LETTERS.strip(), min_size=1, max_size=3), min_size=1, max_size=3), max_size=4),
    st.lists(st.sampled_from(["", " ", "-", "\n", "b", " b "]), min_size=5, max_size=5),
    st.sampled_from(PATTERNS),
    st.sampled_from([None, "ascii", "unicode"]),
    st.booleans(),
)
def test_sentences_of_a_text_that_fits_count_what_their_words_count(
    words: list[list[str]], between: list[str], pattern: str, accents: Any, lowercase: bool
) -> None:
    """Only by the rule: without looking at any sentence."""
    spans: list[tuple[int, int]] = []
    whole = between[0]
    for options, after in zip(words, between[1:], strict=False):
        spans.append((len(whole), len(whole) + len(options[0])))
        whole += options[0] + after
    text = SwapText((whole,), 0, tuple(spans), tuple(map(tuple, words)))
    counts = word_counts(CountVectorizer(token_pattern=pattern, strip_accents=accents, lowercase=lowercase))
    assert isinstance(counts, WordCounts)
    if counts.joined(text) is not None:
        return
    for row in all_rows(text):
        parts = [*text.between, *(options[number] for options, number in zip(text.options, row, strict=True))]
        one_by_one = Counter(token for part in parts for token in counts.analyze(part))
        assert Counter(counts.analyze(text.moved(row))) == one_by_one


def test_the_rule_lets_ordinary_texts_pass() -> None:
    for text in ("It's a good film, isn't it?", "5-star (great)!", "naïve café …"):
        for pattern in PATTERNS[:4]:
            if "'" not in pattern:
                assert reason(swaps(text), token_pattern=pattern) is None
    assert spans_of("5-star", "words") == ((0, 1), (1, 2), (2, 6))
