"""Pipelines and static embeddings as ONNX files with vocabularies: they answer as what they are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import static_files
from numpy.typing import NDArray
from small_pipelines import PLAIN, corpus, trained

from swapproof.models.errors import BadInput, Disagreement, Unsupported
from swapproof.models.export.summed_words import WordExport, export_scikit_learn, export_static
from swapproof.verifier import certify
from swapproof.verifier.tasks.sections import ModelSection

STRANGE = ["", " !", "zzqq unknown words only", "GOOD, Good film; good-film!"]
TOKENS = ["[PAD]", "[UNK]", "good", "bad", "film", "-", ".", "##s", "##er", "dark", "light", "a", "very"]
SAID = ["a good film.", "very good very films", "dark film"]
MORE = ["bad", "lights", "darker"]


def answered(made: WordExport, texts: list[str]) -> NDArray[np.float64]:
    """The logits of the files, as whoever deploys them computes them."""
    from swapproof.models.deployed.kinds import open_classifier

    section = ModelSection.model_validate({"labels": ["a", "b"], **made.section}, context={"folder": made.folder})
    return open_classifier(section.deployment()).scores([(text,) for text in texts])


def drawn(words: list[str], number: int = 200) -> list[str]:
    rng = np.random.default_rng(5)
    return [" ".join([*rng.choice(words, size=rng.integers(1, 9)), "film"]) for _ in range(number)]


class TestScikitLearn:
    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("sklearn")

    @staticmethod
    def pipelines() -> dict[str, Any]:
        from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.neural_network import MLPClassifier
        from sklearn.svm import LinearSVC

        return {
            "logistic": (TfidfVectorizer(norm=None), LogisticRegression()),
            "L2 without intercept": (TfidfVectorizer(), LinearSVC(fit_intercept=False)),
            "ReLUs": (CountVectorizer(), MLPClassifier((6,), random_state=0, max_iter=30)),
            "Bayes": (CountVectorizer(lowercase=False, token_pattern=r"\S+"), MultinomialNB()),
        }

    @pytest.mark.parametrize("name", ["logistic", "L2 without intercept", "ReLUs", "Bayes"])
    @pytest.mark.parametrize("classes", [2, 3])
    def test_the_files_answer_every_text_as_the_pipeline_does(self, name: str, classes: int, tmp_path: Path) -> None:
        model = trained(*self.pipelines()[name], classes=classes)
        texts, _ = corpus(classes=classes)
        made = export_scikit_learn(model, tmp_path / "made", texts=[*texts, *STRANGE])
        assert (made.agreement.sentences, made.agreement.changed) == (len(texts) + len(STRANGE), 0)
        assert made.agreement.largest_difference < 1e-9
        assert made.words == len(model[0].vocabulary_)
        others = [*drawn([*PLAIN, "good", "bad", "Good", "unheard"]), *STRANGE[2:]]
        classes_of = np.array(made.section["labels"])
        logits = answered(made, others)
        order = np.sort(logits, axis=1)
        told = order[:, -1] - order[:, -2] > 1e-9
        assert told.mean() > 0.5
        assert (classes_of[logits.argmax(axis=1)] == model.predict(others))[told].all()

    def test_what_was_written_is_certified_by_a_network_that_is_read(self, tmp_path: Path) -> None:
        texts, labels = corpus()
        made = export_scikit_learn(trained(*self.pipelines()["ReLUs"]), tmp_path / "made", texts=texts)
        rows = [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]
        (made.folder / "data.json").write_text(json.dumps(rows))
        (made.folder / "swaps.json").write_text('{"good": ["fine", "bad"], "film": ["movie"], "poor": ["great"]}')
        said = {**made.section, "split": None, "labels": None, "lowercase": None}
        keys = [f"{key} = {json.dumps(value)}" for key, value in said.items() if value is not None]
        keys += [f"split = {{ pattern = '{made.section['split']['pattern']}' }}", "lowercase = true"]
        keys += [f"labels = {json.dumps(made.section['labels'])}"]
        task = ["[model]", *keys, "[data]", 'file = "data.json"', "[swaps]", 'file = "swaps.json"']
        (made.folder / "task.toml").write_text("\n".join(task))
        outcome = certify(made.folder / "task.toml", tmp_path / "run", limit=8)
        lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
        assert outcome.exit_code == 0
        assert {line["level"] for line in lines} <= {"real", "float32"}
        assert any(line["min_swaps"]["high"] for line in lines)

    @pytest.mark.parametrize(
        ("options", "more", "reason"),
        [
            ({}, {}, "divided by their norm"),
            ({"binary": True, "norm": None}, {}, "there twice is no sum, for binary counts it once"),
            ({"sublinear_tf": True, "norm": None}, {}, "there twice is no sum, for sublinear_tf"),
            ({"ngram_range": (1, 2)}, {}, "counts up to 2 words together"),
            ({"norm": None, "strip_accents": "unicode"}, {}, "strips accents"),
            ({"norm": None, "token_pattern": r"\S+", "vocabulary": ["good", "bad", "<unk>"]}, {}, "which the vocab"),
        ],
    )
    def test_what_is_no_sum_of_words_is_refused_with_the_reason(
        self, options: dict[str, Any], more: dict[str, Any], reason: str, tmp_path: Path
    ) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        model = trained(TfidfVectorizer(**options), LogisticRegression(**more))
        with pytest.raises(Unsupported, match=reason) as caught:
            export_scikit_learn(model, tmp_path / "made", texts=["a good film"])
        assert "\n" not in str(caught.value)
        assert not list(tmp_path.iterdir())

    def test_a_text_that_the_vocabulary_reads_otherwise_leaves_nothing(self, tmp_path: Path) -> None:
        """The small letter of the Turkish I is two characters, of which one is no letter: the pipeline finds a shorter
        word."""
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        texts = ["İstanbul good", "good film", "bad film", "bad story"]
        model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, [1, 1, 0, 0])
        assert "stanbul" in model[0].vocabulary_
        with pytest.raises(Disagreement, match="differs from the original by 0"):
            export_scikit_learn(model, tmp_path / "made", texts=texts)
        assert not list(tmp_path.iterdir())
        export_scikit_learn(model, tmp_path / "made", texts=texts[1:])

    def test_a_pickle_needs_trust_and_an_old_folder_stays(self, tmp_path: Path) -> None:
        import joblib

        joblib.dump(trained(*self.pipelines()["logistic"]), tmp_path / "model.joblib")
        with pytest.raises(BadInput, match="pickle"):
            export_scikit_learn(tmp_path / "model.joblib", tmp_path / "made", texts=["a film"])
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "mine").touch()
        with pytest.raises(BadInput, match="not an empty folder"):
            export_scikit_learn(tmp_path / "model.joblib", tmp_path / "made", texts=["a film"], trust_pickle=True)
        made = export_scikit_learn(tmp_path / "model.joblib", tmp_path / "other", texts=["a film"], trust_pickle=True)
        assert sorted(path.name for path in made.folder.iterdir()) == ["model.onnx", "vocabulary.json"]

    @pytest.mark.parametrize("texts", [[], "a film"])
    def test_texts_are_needed(self, texts: Any, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="a list of one text or more"):
            export_scikit_learn(trained(*self.pipelines()["logistic"]), tmp_path / "made", texts=texts)


RNG = np.random.default_rng(3)
VECTORS = RNG.normal(size=(len(TOKENS), 4)).astype(np.float32)


def layer(outputs: int, inputs: int, bias: bool = True) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    numbers = RNG.normal(size=outputs) / 10 if bias else np.zeros(outputs)
    return RNG.normal(size=(outputs, inputs)).astype(np.float32), numbers.astype(np.float32)


HEADS: dict[str, dict[str, Any]] = {
    "linear": {"layers": [layer(3, 4)]},
    "one sigmoid": {"layers": [layer(1, 4)], "activation": "sigmoid"},
    "sigmoids": {"layers": [layer(3, 4)], "activation": "sigmoid"},
    "numbers": {"layers": [layer(2, 4)], "activation": "identity"},
    "ReLUs": {"layers": [layer(6, 4), layer(3, 6)]},
    "norm": {"layers": [layer(6, 4), layer(2, 6)], "normalize": True},
    "norm, no bias": {"layers": [layer(6, 4, False), layer(2, 6, False)], "normalize": True},
}


def vectors(path: Path, **options: Any) -> Path:
    for package in ("safetensors", "tokenizers"):
        pytest.importorskip(package)
    tokenizer = static_files.word_pieces(TOKENS)
    return static_files.write_folder(path / "vectors", tokenizer, {"embeddings": VECTORS}, **options)


class TestStatic:
    @pytest.mark.parametrize("name", HEADS)
    def test_the_files_answer_sentences_of_the_words_as_the_vectors_do(self, name: str, tmp_path: Path) -> None:
        from swapproof.models.deployed.classifier import Deployment
        from swapproof.models.deployed.kinds import open_classifier

        source = vectors(tmp_path, **HEADS[name])
        made = export_static(source, tmp_path / "made", texts=SAID, words=MORE)
        assert (made.agreement.sentences, made.agreement.changed) == (len(SAID), 0)
        assert made.agreement.largest_difference < 1e-12
        words = json.loads((made.folder / "vocabulary.json").read_text())
        assert words == ["a", "good", "film", ".", "very", "films", "dark", *MORE, "<pad>"]
        others = drawn(words[:-1])
        deployed = open_classifier(Deployment("static", str(source))).scores([(text,) for text in others])
        answers = deployed[:, 0] > 0.5 if deployed.shape[1] == 1 else deployed.argmax(axis=1)
        assert (answered(made, others).argmax(axis=1) == answers).all()
        assert len({*answers.tolist()}) > 1

    def test_fasttext_too(self, tmp_path: Path) -> None:
        words = ["good", "bad", "film", "</s>"]
        inside, outside = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3))
        content = static_files.binary(words, ["x", "y"], static_files.dense(inside), static_files.dense(outside), dim=3)
        (tmp_path / "model.bin").write_bytes(content)
        made = export_static(tmp_path / "model.bin", tmp_path / "made", texts=["good film"], words=["bad"])
        assert made.section["labels"] == ["x", "y"]
        assert made.agreement.largest_difference < 1e-6

    @pytest.mark.parametrize(
        ("head", "texts", "words", "reason"),
        [
            ({"layers": [layer(1, 4)], "activation": "identity"}, SAID, (), "a single score that is no probability"),
            (HEADS["linear"], ["zzqq"], (), "text 0 is not the sum of its words: .* no token that is known"),
            (HEADS["linear"], [*SAID, "films--"], (), None),
            (HEADS["linear"], SAID, ("two words",), "'two words' is no single word"),
        ],
    )
    def test_what_is_no_sum_is_refused_with_the_reason(
        self, head: dict[str, Any], texts: list[str], words: tuple[str, ...], reason: str | None, tmp_path: Path
    ) -> None:
        source = vectors(tmp_path, **head)
        if reason is None:
            assert export_static(source, tmp_path / "made", texts=texts).agreement.changed == 0
            return
        with pytest.raises((Unsupported, BadInput), match=reason) as caught:
            export_static(source, tmp_path / "made", texts=texts, words=words)
        assert "\n" not in str(caught.value)
        assert [path.name for path in tmp_path.iterdir()] == ["vectors"]
