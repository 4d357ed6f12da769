"""`check` of networks that were made of a pipeline: the deployed model is asked, whatever the files of the run say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_runs import results

from swapproof.verifier.cli import main

pytest.importorskip("sklearn")
pytest.importorskip("skops")

import skops.io
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

TEXTS = [("good film it was great", 1), ("bad film it was awful", 0), ("a great film", 1), ("an awful film ΣΑΣ", 0)]
SWAPS = {"good": ["bad", "fine"], "great": ["awful"], "film": ["movie"], "awful": ["great", "ΟΔΟΣ"], "bad": ["good"]}


def trained(texts: list[tuple[str, int]] = TEXTS) -> Any:
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    return pipeline.fit([text for text, _ in texts], [label for _, label in texts])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Some texts are read, and those that may hold a final sigma are run."""
    skops.io.dump(trained(), tmp_path / "m.skops")
    rows = [json.dumps({"text": text, "label": str(label)}) for text, label in TEXTS]
    (tmp_path / "data.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "swaps.json").write_text(json.dumps(SWAPS))
    (tmp_path / "task.toml").write_text(
        '[model]\nsklearn = "m.skops"\nlabels = ["0", "1"]\n[data]\nfile = "data.jsonl"\n[swaps]\nfile = "swaps.json"\n'
    )
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(tmp_path / "run")]) == 0
    assert {line["level"] for line in results(tmp_path / "run")} == {"real", "replay"}
    assert main(["check", str(tmp_path / "run")]) == 0
    return tmp_path / "run"


def test_swaps_of_a_witness_that_the_space_does_not_have_are_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every option in turn, misspelt: no traceback, and nothing accepted."""
    path = run / "spaces.jsonl"
    before = path.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in before.splitlines()]
    for line in lines:
        for options in line["choices"]:
            for place in range(1, len(options)):
                kept, options[place] = options[place], options[place] + "x"
                path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines), encoding="utf-8")
                assert main(["check", str(run), "--quiet"]) == 4
                options[place] = kept
    path.write_text(before, encoding="utf-8")
    capsys.readouterr()
    assert main(["check", str(run)]) == 0


def test_another_model_in_the_place_of_the_deployed_one_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skops.io.dump(trained([(text, 1 - label) for text, label in TEXTS]), run / "deployed" / "m.skops")
    capsys.readouterr()
    assert main(["check", str(run)]) == 4
    assert "the deployed model answers 0, and the line says 1" in capsys.readouterr().out


def test_a_deployed_model_that_answers_no_more_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = trained()
    weighting = pipeline[0]._tfidf
    weighting.idf_[:] = float("nan")
    skops.io.dump(pipeline, run / "deployed" / "m.skops")
    capsys.readouterr()
    assert main(["check", str(run)]) == 4
    assert "the deployed model has no answer, and the line says" in capsys.readouterr().out
