"""Pipelines that are read as networks of words: exact numbers of swaps with proofs, witnesses that fool them too."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_runs import results

from swapproof.verifier.cli import main

pytest.importorskip("sklearn")
skops = pytest.importorskip("skops.io")

TEXTS = [
    ("a good film, and a great cast", "good"),
    ("this was bad and dull", "bad"),
    ("good good fun", "good"),
    ("the dull one is good", "bad"),
    ("a fine movie with a poor end", "good"),
    ("awful awful noise", "bad"),
]
SYNONYMS = {
    "good": ["fine", "ok", "bad"],
    "great": ["good", "ok", "dull"],
    "film": ["movie", "picture"],
    "bad": ["poor", "ok", "good"],
    "dull": ["fine", "ok"],
    "fun": ["noise", "poor"],
    "awful": ["bad", "fine"],
    "fine": ["bad", "good"],
}


def write(folder: Path, *steps: Any) -> Any:
    """A task of the pipeline of these steps, trained on the texts."""
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(*steps).fit([text for text, _ in TEXTS], [label for _, label in TEXTS])
    skops.dump(pipeline, folder / "model.skops")
    rows = [json.dumps({"text": text, "label": label}) for text, label in TEXTS]
    (folder / "texts.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (folder / "task.toml").write_text(
        '[model]\nsklearn = "model.skops"\nlabels = ["bad", "good"]\n\n[data]\nfile = "texts.jsonl"\n\n'
        '[swaps]\nfile = "synonyms.json"\n'
    )
    return pipeline


def fewest_swaps(pipeline: Any, choices: list[list[str]], text: str, label: str) -> int | None:
    """By asking the pipeline about every sentence, words spelt out with a space between any two."""
    sentences = list(itertools.product(*choices))
    answers = pipeline.predict([" ".join(words) for words in sentences])
    original = tuple(options[0] for options in choices)
    swaps = [
        sum(a != b for a, b in zip(words, original, strict=True))
        for words, answer in zip(sentences, answers, strict=True)
        if answer != label
    ]
    return min(swaps, default=None)


def linear() -> list[Any]:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    return [CountVectorizer(), LogisticRegression()]


def bayes() -> list[Any]:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    return [CountVectorizer(), MultinomialNB()]


def perceptron() -> list[Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.neural_network import MLPClassifier

    return [TfidfVectorizer(norm=None), MLPClassifier((5,), max_iter=300, random_state=1, solver="lbfgs")]


def normed_perceptron() -> list[Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.neural_network import MLPClassifier

    return [TfidfVectorizer(), MLPClassifier((5,), max_iter=300, random_state=1, solver="lbfgs")]


@pytest.mark.parametrize("steps", [linear, bayes, perceptron, normed_perceptron])
def test_a_pipeline_is_proved_about_and_enumeration_agrees(tmp_path: Path, steps: Any) -> None:
    pipeline = write(tmp_path, *steps())
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    spaces = [json.loads(line)["choices"] for line in (run / "spaces.jsonl").read_text().splitlines()]
    for line, choices, (text, label) in zip(results(run), spaces, TEXTS, strict=True):
        least = fewest_swaps(pipeline, choices, text, label)
        assert line["level"] == "real"
        assert line["certificate"] is not None
        assert line["min_swaps"]["high"] == least
        assert line["status"] == {None: "unbreakable", 0: "already_wrong"}.get(least, "exact")
        if least:
            assert line["min_swaps"]["low"] == least
            assert pipeline.predict([line["witness"]["sentence"]])[0] != label
    assert main(["check", str(run)]) == 0
    assert (run / "deployed" / "model.skops").read_bytes() == (tmp_path / "model.skops").read_bytes()


def test_a_witness_that_the_deployed_model_withstands_is_refused_by_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, *linear())
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    pipeline = skops.load(run / "deployed" / "model.skops")
    pipeline[-1].intercept_ += 100.0
    skops.dump(pipeline, run / "deployed" / "model.skops")
    assert main(["check", str(run)]) == 4
    assert "the deployed model" in capsys.readouterr().out


def test_a_deployed_model_that_was_changed_afterwards_is_refused_by_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it answers every text and witness as before; a run that does not note its files says so."""
    write(tmp_path, *linear())
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    task, manifest = run / "deployed" / "task.toml", run / "manifest.json"
    before = task.read_text()
    task.write_text(before.replace('["bad", "good"]', '["good", "bad"]'))
    assert main(["check", str(run)]) == 4
    assert "deployed/task.toml is another file than manifest.json notes" in capsys.readouterr().out
    task.write_text(before)
    noted = json.loads(manifest.read_text())
    assert set(noted["sha256"].pop("deployed")) == {"model.skops", "task.toml"}
    manifest.write_text(json.dumps(noted))
    assert main(["check", str(run)]) == 0
    assert "deployed/ is not covered" in capsys.readouterr().out


def test_a_witness_that_is_none_is_refused_by_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, *linear())
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    lines = results(run)
    changed = [json.dumps(line | {"witness": 1}) for line in lines]
    (run / "results.jsonl").write_text("\n".join(changed) + "\n")
    assert main(["check", str(run)]) == 4
    assert "its witness has no swaps" in capsys.readouterr().out


def test_what_no_network_is_made_of_is_run(tmp_path: Path) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    pipeline = write(tmp_path, TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression())
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    spaces = [json.loads(line)["choices"] for line in (run / "spaces.jsonl").read_text().splitlines()]
    for line, choices, (text, label) in zip(results(run), spaces, TEXTS, strict=True):
        assert line["level"] == "replay"
        assert line["min_swaps"]["high"] == fewest_swaps(pipeline, choices, text.replace(",", " ,"), label)
    assert main(["check", str(run)]) == 0
    assert np.isfinite([line["seconds"] for line in results(run)]).all()


def normed() -> list[Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    return [TfidfVectorizer(), LogisticRegression()]


def binary() -> list[Any]:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    return [CountVectorizer(binary=True), LogisticRegression()]


@pytest.mark.parametrize("steps", [normed, binary])
def test_texts_that_no_network_holds_for_are_run_beside_those_that_are_read(
    tmp_path: Path, steps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Norms with an intercept and words that count once are read too; a text that fits none is evaluated."""
    from swapproof.models.deployed.pipelines import pipeline_reading

    hidden = pipeline_reading.Reading.uncountable
    monkeypatch.setattr(
        pipeline_reading.Reading,
        "uncountable",
        lambda self, text: "for the test" if text.text.startswith("a fine") else hidden(self, text),
    )
    pipeline = write(tmp_path, *steps())
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    spaces = [json.loads(line)["choices"] for line in (run / "spaces.jsonl").read_text().splitlines()]
    lines = results(run)
    assert [line["level"] for line in lines] == ["real"] * 4 + ["replay", "real"]
    assert [line["certificate"] is None for line in lines] == [False] * 4 + [True, False]
    for line, choices, (text, label) in zip(lines, spaces, TEXTS, strict=True):
        assert line["min_swaps"]["high"] == fewest_swaps(pipeline, choices, text, label)
        assert line["status"] != "open"
    assert main(["check", str(run)]) == 0
    path = run / "transcripts" / "000004.json"
    path.write_bytes(path.read_bytes().replace(b'"sentences":"3"', b'"sentences":"4"'))
    assert main(["check", str(run)]) == 4


def test_three_classes_behind_a_norm_are_proved_about(tmp_path: Path) -> None:
    """The root of a sum of squares; exact arithmetic accepts what was screened."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    write(tmp_path, *normed())
    texts = [(text, ("bad", "good", "so so")[number % 3]) for number, (text, _) in enumerate(TEXTS)]
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100)).fit(*zip(*texts, strict=True))
    skops.dump(pipeline, tmp_path / "model.skops")
    rows = [json.dumps({"text": text, "label": label}) for text, label in texts]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows) + "\n")
    task = tmp_path / "task.toml"
    task.write_text(task.read_text().replace('["bad", "good"]', '["bad", "good", "so so"]'))
    run = tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run)]) == 0
    spaces = [json.loads(line)["choices"] for line in (run / "spaces.jsonl").read_text().splitlines()]
    for line, choices, (text, label) in zip(results(run), spaces, texts, strict=True):
        least = fewest_swaps(pipeline, choices, text, label)
        assert (line["level"], line["min_swaps"]["high"]) == ("real", least)
        assert line["status"] == {None: "unbreakable", 0: "already_wrong"}.get(least, "exact")
    assert main(["check", str(run), "--exact"]) == 0


@pytest.mark.parametrize("road", ["read", "run"])
@pytest.mark.parametrize(
    ("said", "right"),
    [
        ('scores = "probabilities"\nlabels = ["bad", "good"]', 'write scores = "logits"'),
        ('labels = { good = "yes", bad = "no" }', 'write labels = { "bad" = "no", "good" = "yes" }'),
    ],
)
def test_a_task_that_makes_another_answer_of_the_scores_than_predict_is_refused(
    said: str, right: str, road: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, *linear())
    task = tmp_path / "task.toml"
    task.write_text(task.read_text().replace('labels = ["bad", "good"]', f'{said}\nroad = "{road}"'))
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    assert right in capsys.readouterr().err
