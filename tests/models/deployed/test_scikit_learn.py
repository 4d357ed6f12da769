"""scikit-learn pipelines as deployed: what answers, that fast paths agree with it, and which files are refused."""

from __future__ import annotations

import pickle
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_pipelines import all_rows, corpus, opened, swaps, trained

from swapproof.models.deployed.classifier import Deployment, NoAnswer, SpeltOut
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.pipelines.text_pipeline import text_pipeline
from swapproof.models.deployed.scikit_learn import Counted, open_scikit_learn
from swapproof.models.errors import BadInput

sklearn = pytest.importorskip("sklearn")
joblib = pytest.importorskip("joblib")
skops_io = pytest.importorskip("skops.io")

from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.decomposition import TruncatedSVD  # noqa: E402
from sklearn.ensemble import IsolationForest, RandomForestClassifier  # noqa: E402
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier  # noqa: E402
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV  # noqa: E402
from sklearn.multiclass import OneVsRestClassifier  # noqa: E402
from sklearn.multioutput import MultiOutputClassifier  # noqa: E402
from sklearn.naive_bayes import MultinomialNB  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline  # noqa: E402
from sklearn.svm import SVC, LinearSVC  # noqa: E402

TEXT = "The film was very good , the movie it's bad film."


def saved(model: Any, path: Path) -> Deployment:
    skops_io.dump(model, path)
    return Deployment("sklearn", str(path))


def refusal(deployment: Deployment) -> str:
    with pytest.raises(BadInput) as caught:
        open_scikit_learn(deployment)
    message = str(caught.value)
    assert "\n" not in message
    assert deployment.source in message
    return message


# Files


@pytest.mark.parametrize("name", ["model.joblib", "model.pkl", "model"])
def test_a_pickle_is_not_loaded_without_trust(name: str, tmp_path: Path) -> None:
    """Were it loaded, it would leave a file."""

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "sprung",)

    (tmp_path / name).write_bytes(pickle.dumps(Trap()))
    message = refusal(Deployment("sklearn", str(tmp_path / name)))
    assert "runs whatever code is in it" in message
    assert "skops.io.dump" in message
    assert "--trust-pickle" in message
    assert not (tmp_path / "sprung").exists()


def test_a_trusted_pickle_is_loaded_and_the_report_says_so(tmp_path: Path) -> None:
    classifier = opened(trained(CountVectorizer(), LogisticRegression()), tmp_path)
    assert classifier.identity.remarks == ("loaded with --trust-pickle: its file may run code when it is loaded",)
    assert [copy.name for copy in classifier.identity.files] == ["model.joblib"]


@pytest.mark.parametrize(
    "head",
    [
        LogisticRegression(),
        LinearSVC(),
        SGDClassifier(),
        MultinomialNB(),
        MLPClassifier((4,), max_iter=2),
        MLPClassifier((4,), max_iter=2, solver="sgd"),
        CalibratedClassifierCV(LinearSVC(), cv=2),
    ],
    ids=lambda head: type(head).__name__,
)
def test_skops_files_of_plain_pipelines_are_loaded_without_trust(head: Any, tmp_path: Path) -> None:
    model = trained(TfidfVectorizer(), head)
    classifier = open_scikit_learn(saved(model, tmp_path / "model.skops"))
    assert classifier.identity.remarks == ()
    texts, _ = corpus(10)
    method = classifier.identity.facts["scores"]
    if method != "predict_joint_log_proba":  # pipelines do not hand this one on
        own = getattr(model, str(method))(texts)
        np.testing.assert_array_equal(classifier.scores([(text,) for text in texts]).squeeze(), own)


def test_a_skops_file_with_foreign_types_is_refused_by_their_names(tmp_path: Path) -> None:
    """The compiled nodes of a tree are believed without a look at their indices."""
    deployment = saved(trained(TfidfVectorizer(), RandomForestClassifier(2)), tmp_path / "model.skops")
    message = refusal(deployment)
    assert "sklearn.tree._tree.Tree" in message
    assert "--trust-pickle" in message
    trusted = open_scikit_learn(Deployment("sklearn", deployment.source, trust_pickle=True))
    assert trusted.identity.facts["scores"] == "predict_proba"


def test_another_version_of_scikit_learn_is_a_remark(tmp_path: Path) -> None:
    data = pickle.dumps(trained(CountVectorizer(), LogisticRegression()))
    older = sklearn.__version__[:-1] + ("0" if sklearn.__version__[-1] != "0" else "1")
    (tmp_path / "m.pkl").write_bytes(data.replace(sklearn.__version__.encode(), older.encode()))
    classifier = open_scikit_learn(Deployment("sklearn", str(tmp_path / "m.pkl"), trust_pickle=True))
    remark = f"written with scikit-learn {older}, run with {sklearn.__version__}: answers may differ"
    assert classifier.identity.remarks[1:] == (remark,)


def test_files_that_are_not_there_or_no_files_are_refused(tmp_path: Path) -> None:
    assert "no such file" in refusal(Deployment("sklearn", str(tmp_path / "none.skops")))
    assert "a directory" in refusal(Deployment("sklearn", str(tmp_path)))


def test_a_skops_file_that_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.skops").write_bytes(pickle.dumps([]))
    assert "a zip file" in refusal(Deployment("sklearn", str(tmp_path / "m.skops"), trust_pickle=True))


def test_a_zip_without_a_schema_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as file:
        file.writestr("weights.npy", b"")
    assert "without schema.json" in refusal(Deployment("sklearn", str(tmp_path / "m.skops")))


@pytest.mark.parametrize(
    "schema", ["", "{}", "[]", '{"__class__": "Pipeline"}', "{" * 100_000, '{"__loader__": "ObjectNode"}']
)
def test_a_schema_that_says_nothing_is_refused(schema: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as file:
        file.writestr("schema.json", schema)
    assert "not a skops file that can be restored" in refusal(Deployment("sklearn", str(tmp_path / "m.skops")))


def test_a_zip_that_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    """Its directory says that an array is longer than it is, or shorter."""
    deployment = saved(trained(CountVectorizer(), LogisticRegression()), tmp_path / "m.skops")
    data = (tmp_path / "m.skops").read_bytes()
    with zipfile.ZipFile(tmp_path / "m.skops") as file:
        entry = next(entry for entry in file.infolist() if entry.filename.endswith(".npy"))
    place = data.rindex(entry.filename.encode()) - 46  # its record in the central directory
    assert data[place : place + 4] == b"PK\x01\x02"
    for size, said in [(0xFFFFFFFE, "is not as long as"), (entry.file_size // 2, "not a skops file")]:
        lying = data[: place + 24] + size.to_bytes(4, "little") + data[place + 28 :]
        (tmp_path / "m.skops").write_bytes(lying)
        assert said in refusal(deployment)


def test_a_file_larger_than_is_allowed_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swapproof.models.deployed.pipelines.pipeline_files.LARGEST", 1000)
    deployment = saved(trained(CountVectorizer(), LogisticRegression()), tmp_path / "m.skops")
    assert "bytes when unpacked; 1,000 are allowed" in refusal(deployment)


def test_a_truncated_pickle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(trained(CountVectorizer(), LogisticRegression()))[:-20])
    assert "not a pickle" in refusal(Deployment("sklearn", str(tmp_path / "m.pkl"), trust_pickle=True))


def test_a_pickle_that_needs_a_missing_module_names_it(tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(b"cno_such_module\nThing\n.")
    message = refusal(Deployment("sklearn", str(tmp_path / "m.pkl"), trust_pickle=True))
    assert "needs the module no_such_module" in message


# What is no classifier of texts


def unfit(model: Any, folder: Path) -> str:
    joblib.dump(model, folder / "m.joblib")
    return refusal(Deployment("sklearn", str(folder / "m.joblib"), trust_pickle=True))


def test_a_classifier_of_numbers_is_told_to_bring_its_vectoriser(tmp_path: Path) -> None:
    numbers = LogisticRegression().fit(np.eye(4), [0, 1, 0, 1])
    assert "begins with its text vectoriser" in unfit(numbers, tmp_path)
    assert "begins with its text vectoriser" in unfit(make_pipeline(numbers), tmp_path)


def test_a_pipeline_without_its_classifier_is_refused(tmp_path: Path) -> None:
    assert "TfidfVectorizer, which has no predict" in unfit(TfidfVectorizer().fit(corpus()[0]), tmp_path)
    assert "has no predict" in unfit({"model": 1}, tmp_path)


def test_a_regression_is_refused(tmp_path: Path) -> None:
    model = make_pipeline(CountVectorizer(), LinearRegression()).fit(corpus(10)[0], range(10))
    assert "LinearRegression has no classes" in unfit(model, tmp_path)
    outliers = make_pipeline(CountVectorizer(), IsolationForest(n_estimators=2)).fit(corpus(10)[0])
    assert "IsolationForest has no classes" in unfit(outliers, tmp_path)


def test_a_pipeline_that_is_not_fitted_is_refused(tmp_path: Path) -> None:
    assert "not fitted" in unfit(make_pipeline(CountVectorizer(), LogisticRegression()), tmp_path)


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    model = trained(CountVectorizer(token_pattern=r"\w+", vocabulary=["text", "one"]), LogisticRegression())
    model[-1].coef_[:] = np.nan
    assert "answers NaN" in unfit(model, tmp_path)


def test_a_model_of_one_class_is_refused(tmp_path: Path) -> None:
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(corpus(5)[0], [1] * 5)
    assert "knows one class, 1" in unfit(model, tmp_path)


def test_several_questions_with_classes_of_their_own_are_refused(tmp_path: Path) -> None:
    texts, _ = corpus(8)
    many = MultiOutputClassifier(LogisticRegression())
    model = make_pipeline(CountVectorizer(), many).fit(texts, [[0, 1], [1, 0]] * 4)
    assert "several questions" in unfit(model, tmp_path)


def test_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="reads one text, not a pair"):
        opened(trained(CountVectorizer(), LogisticRegression()), tmp_path, fields=2)


def test_an_output_that_the_model_has_not_is_refused_with_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no output 'logits'; it has decision_function, predict"):
        opened(trained(CountVectorizer(), LinearSVC()), tmp_path, output="logits")


# What answers


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("head", "method"),
    [
        (LogisticRegression(), "decision_function"),
        (LinearSVC(), "decision_function"),
        (SVC(decision_function_shape="ovo"), None),
        (MultinomialNB(), "predict_joint_log_proba"),
        (RandomForestClassifier(3, random_state=0), "predict_proba"),
        (MLPClassifier((4,), max_iter=20, random_state=0), "predict_proba"),
        (GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2), "decision_function"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_the_scores_win_where_predict_says(head: Any, method: str | None, classes: int, tmp_path: Path) -> None:
    model = trained(TfidfVectorizer(), head, classes=classes)
    classifier = opened(model, tmp_path)
    texts, _ = corpus(60, classes)
    scores = classifier.scores([(text,) for text in texts])
    assert classifier.identity.facts["scores"] == (method or ("decision_function" if classes == 2 else "predict"))
    wins = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    assert [classifier.classes[win] for win in wins] == model.predict(texts).tolist()


def test_classes_stand_in_the_order_of_the_scores(tmp_path: Path) -> None:
    classifier = opened(trained(CountVectorizer(), LogisticRegression()), tmp_path)
    assert classifier.classes == ("negative", "positive")
    assert classifier.identity.facts["classes"] == "negative, positive"
    assert classifier.scores([("good good good",)]) > 0
    assert classifier.scores([("bad bad bad",)]) < 0


def test_labels_in_another_order_are_refused(tmp_path: Path) -> None:
    """Other names may stand for the classes; the same names mean them."""
    model = trained(CountVectorizer(), LogisticRegression())
    with pytest.raises(BadInput, match="answers in the order negative, positive, and"):
        opened(model, tmp_path, labels=("positive", "negative"))
    for labels in (("negative", "positive"), ("bad", "good"), ()):
        assert opened(model, tmp_path, labels=labels).classes == ("negative", "positive")
    spelt = {"Positive": "good", "negative": "bad", "x": "bad"}
    with pytest.raises(BadInput, match=r'write labels = { "negative" = "bad", "x" = "bad", "Positive" = "good" }'):
        opened(model, tmp_path, labels=("good", "bad"), label_map=spelt)
    assert opened(model, tmp_path, labels=("bad", "good"), label_map=spelt).classes == ("negative", "positive")


@pytest.mark.parametrize(
    ("output", "decision", "refused"),
    [
        (None, Decision(2, "probabilities"), 'scores are logits, and .* write scores = "logits"'),
        ("decision_function", Decision(2, "sigmoid"), "scores are logits"),
        ("predict_proba", Decision(2, threshold=0.3), "scores are probabilities"),
        ("predict_proba", Decision(2, "sigmoid", threshold=0.3), None),
        ("predict_proba", Decision(2), None),
        (None, Decision(2, threshold=0.3), None),
    ],
)
def test_scores_that_would_be_compared_as_what_they_are_not_are_refused(
    output: str | None, decision: Decision, refused: str | None, tmp_path: Path
) -> None:
    """A decision_function of 0.3 is positive to predict, and as a share it would be negative."""
    own = opened(trained(CountVectorizer(), LogisticRegression()), tmp_path, output=output).identity.answered
    assert own is not None
    with nullcontext() if refused is None else pytest.raises(BadInput, match=refused):
        decision.refuse_other_meaning("here", own)


def test_a_threshold_of_its_own_is_followed(tmp_path: Path) -> None:
    """Where only predict knows the threshold, its answer is the score."""
    model = trained(
        CountVectorizer(), FixedThresholdClassifier(LogisticRegression(), threshold=0.97, pos_label="positive")
    )
    classifier = opened(model, tmp_path)
    texts, _ = corpus(40)
    scores = classifier.scores([(text,) for text in texts])
    assert [classifier.classes[win] for win in scores.argmax(axis=1)] == model.predict(texts).tolist()
    assert (scores.argmax(axis=1) != model.predict_proba(texts).argmax(axis=1)).any()


def test_several_labels_at_once_are_a_score_each(tmp_path: Path) -> None:
    """As [model] column reads them: each exceeds 0 where its label is given."""
    texts, _ = corpus(60)
    labels = np.array([["film" in text, "good" in text, "dull" in text] for text in texts], dtype=int)
    model = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression())).fit(texts, labels)
    scores = opened(model, tmp_path).scores([(text,) for text in texts])
    np.testing.assert_array_equal(scores > 0, model.predict(texts) > 0)
    assert scores.shape == (60, 3)


def test_an_output_can_be_chosen(tmp_path: Path) -> None:
    model = trained(CountVectorizer(), LogisticRegression())
    classifier = opened(model, tmp_path, output="predict_proba")
    np.testing.assert_array_equal(classifier.scores([("a good film",)]), model.predict_proba(["a good film"]))


class Contrary(LogisticRegression):  # type: ignore[misc]
    """Predicts the other class."""

    def predict(self, X: Any) -> Any:
        return self.classes_[1 - np.searchsorted(self.classes_, super().predict(X))]


def test_scores_that_predict_does_not_follow_are_no_answer() -> None:
    pipeline = text_pipeline(trained(CountVectorizer(), Contrary()), "here", None)
    with pytest.raises(NoAnswer, match="predict answers 'negative' where decision_function answers 'positive'"):
        pipeline.scores(pipeline.features(["good good good"]))


def test_a_text_that_the_pipeline_raises_at_is_no_answer(tmp_path: Path) -> None:
    picky = text_pipeline(trained(CountVectorizer(preprocessor=_picky), LogisticRegression()), "here", None)
    classifier = replace(opened(trained(CountVectorizer(), LogisticRegression()), tmp_path), pipeline=picky)
    assert np.isfinite(classifier.scores([("good",)])).all()
    with pytest.raises(NoAnswer, match="raises ValueError: not this"):
        classifier.scores([("good",), ("forbidden",)])


def _picky(text: str) -> str:
    if text == "forbidden":
        raise ValueError("not this")
    return text.lower()


def test_pipelines_within_pipelines_are_one(tmp_path: Path) -> None:
    inner = Pipeline([("words", CountVectorizer()), ("nothing", "passthrough")])
    classifier = opened(trained(inner, make_pipeline(TruncatedSVD(2), LogisticRegression())), tmp_path)
    assert classifier.identity.facts["pipeline"] == "CountVectorizer, TruncatedSVD, LogisticRegression"


def test_no_sentences_have_no_scores(tmp_path: Path) -> None:
    classifier = opened(trained(CountVectorizer(), LogisticRegression(), classes=3), tmp_path)
    text = swaps(TEXT)
    assert classifier.scores([]).shape == (0, 3)
    assert classifier.variants(text).scores(all_rows(text)[:0]).shape == (0, 3)


# The sentences of a text


VECTORISERS = [
    CountVectorizer(),
    CountVectorizer(binary=True, stop_words=["the"]),
    TfidfVectorizer(),
    TfidfVectorizer(sublinear_tf=True, norm="l1", strip_accents="unicode"),
    TfidfVectorizer(dtype=np.float32, token_pattern=r"(?u)\b[a-z']+\b"),
]


@pytest.mark.parametrize("vectoriser", VECTORISERS, ids=range(len(VECTORISERS)))
@pytest.mark.parametrize("head", [LogisticRegression(), MultinomialNB(), LinearSVC()], ids=lambda h: type(h).__name__)
def test_counted_sentences_score_bit_for_bit_as_spelt_out(vectoriser: Any, head: Any, tmp_path: Path) -> None:
    classifier = opened(trained(vectoriser, head, classes=3), tmp_path)
    text = swaps(TEXT)
    rows = all_rows(text)
    variants = classifier.variants(text)
    assert isinstance(variants, Counted)
    np.testing.assert_array_equal(variants.scores(rows), classifier.scores([text.sentence(row) for row in rows]))


@pytest.mark.parametrize(
    "vectoriser",
    [
        TfidfVectorizer(ngram_range=(1, 2)),
        TfidfVectorizer(analyzer="char_wb"),
        CountVectorizer(tokenizer=str.split, token_pattern=None),
        HashingVectorizer(n_features=64),
        FeatureUnion([("a", CountVectorizer()), ("b", TfidfVectorizer(analyzer="char"))]),
    ],
    ids=["two words", "characters", "own tokenizer", "hashed", "two vectorisers"],
)
def test_where_neighbours_may_matter_sentences_are_spelt_out(vectoriser: Any, tmp_path: Path) -> None:
    classifier = opened(trained(vectoriser, LogisticRegression()), tmp_path)
    text = swaps(TEXT)
    rows = all_rows(text)[::7]
    variants = classifier.variants(text)
    assert isinstance(variants, SpeltOut)
    np.testing.assert_array_equal(variants.scores(rows), classifier.scores([text.sentence(row) for row in rows]))


def test_words_that_may_join_are_spelt_out(tmp_path: Path) -> None:
    """good_film is one token to the vectoriser, and two words and a mark to whoever swaps."""
    classifier = opened(trained(CountVectorizer(), LogisticRegression()), tmp_path)
    assert isinstance(classifier.variants(swaps("a good_film")), SpeltOut)
    assert isinstance(classifier.variants(swaps("a good-film")), Counted)


def test_batches_do_not_change_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = opened(trained(TfidfVectorizer(), LogisticRegression()), tmp_path)
    text = swaps(TEXT)
    rows = all_rows(text)
    whole = classifier.scores([text.sentence(row) for row in rows])
    monkeypatch.setattr("swapproof.models.deployed.scikit_learn.LARGEST", 5)
    monkeypatch.setattr("swapproof.models.deployed.scikit_learn.SMALLEST", 5)
    parts = opened(trained(TfidfVectorizer(), LogisticRegression()), tmp_path)
    assert parts.most == 5
    np.testing.assert_array_equal(parts.variants(text).scores(rows), whole)
    np.testing.assert_array_equal(parts.scores([text.sentence(row) for row in rows]), whole)
