"""Smoothed classifiers from the recipe to the checked run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swapproof.models.errors import BadInput
from swapproof.verifier.cli import main
from swapproof.verifier.tasks.deployed_model import Trust, open_deployed
from swapproof.verifier.tasks.task import read_task

pytest.importorskip("torch")


@pytest.fixture(scope="module", params=['method = "mask"\nrate = 0.5', 'method = "substitute"\nsynonyms = "s.json"'])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from swapproof.models.training import train

    folder = tmp_path_factory.mktemp("smoothed")
    generator = np.random.default_rng(3)
    rows = ["label\ttext"]
    for row in range(80):
        words = [str(word) for word in generator.choice(["film", "plot", "the", "is"], 3)]
        rows.append(f"{row % 2}\t{' '.join(words)} {'good' if row % 2 else 'bad'} {'fine' if row % 2 else 'poor'}")
    (folder / "train.tsv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    table = {"good": ["fine"], "fine": ["good"], "bad": ["poor"], "poor": ["bad"], "film": ["plot"], "plot": ["film"]}
    (folder / "s.json").write_text(json.dumps(table), encoding="utf-8")
    (folder / "recipe.toml").write_text(
        '[data]\ntrain = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out_rows = 12\n[vocabulary]\nlength = 6\n'
        '[network]\narchitecture = "mean"\nembedding = 4\n[training]\nepochs = 4\nbatch = 8\nlearning_rate = 0.05\n'
        f'[defence]\n{request.param}\n[swaps]\nfile = "s.json"\n',
        encoding="utf-8",
    )
    train(folder / "recipe.toml", folder / "model", lambda line: None)
    with (folder / "model" / "smoothing.toml").open("a", encoding="utf-8") as file:
        file.write("samples = 20\n")
    return folder / "model"


def results(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_smoothed_classifier_answers_the_mean_over_its_random_texts(trained: Path) -> None:
    task = read_task(trained / "smoothed_task.toml")
    classifier = open_deployed(task, Trust())
    drawn = classifier.drawn("the film is good fine")  # type: ignore[attr-defined]
    assert len(drawn) == 20
    scores = classifier.scores([("the film is good fine",), ("the plot is bad poor",)])
    expected = classifier.base.scores([(text,) for text in drawn]).mean(axis=0)  # type: ignore[attr-defined]
    np.testing.assert_allclose(scores[0], expected, atol=1e-5)
    assert scores.argmax(axis=1).tolist() == [1, 0]


def test_votes_are_measured_checked_and_not_to_be_changed(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    arguments = ["measure", str(trained / "smoothed_task.toml"), "--quantity", "vote", "--out", str(run)]
    assert main([*arguments, "--samples", "50", "--limit", "6"]) == 0
    assert main(["check", str(run)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("accepted ")
    assert main(["report", str(run)]) == 0
    assert "6 texts: " in capsys.readouterr().out
    assert main(["bundle", str(run), "--out", str(tmp_path / "run.zip")]) == 2
    (refusal,) = capsys.readouterr().err.splitlines()
    assert "no proofs to bundle; hand over the folder itself, which `swapproof check` checks" in refusal
    assert not (tmp_path / "run.zip").exists()
    (run / "manifest.json").rename(tmp_path / "manifest.json")
    assert main(["check", str(run)]) == 4
    (tmp_path / "manifest.json").rename(run / "manifest.json")
    lines = results(run)
    assert len(lines) == 6
    assert all(line["vote"]["samples"] == int(line["vote"]["outcomes"]) for line in lines)  # few: all were asked
    assert any(line["status"] == "certified" for line in lines)
    (changed,) = [number for number, line in enumerate(lines) if line["status"] == "certified"][:1]
    lines[changed]["smoothed_radius"]["low"] += 1
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert main(["check", str(run)]) == 4


def test_of_a_vote_that_is_always_for_one_class_it_is_said_first(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All texts are alike, and labelled otherwise in turn."""
    task = read_task(trained / "smoothed_task.toml")
    rows = [json.dumps({"text": "film good fine", "label": number % 2}) for number in range(8)]
    (tmp_path / "texts.jsonl").write_text("\n".join([*rows, ""]), encoding="utf-8")
    said = (trained / "smoothed_task.toml").read_text(encoding="utf-8")
    said = said.replace(task.data.file.name, str(tmp_path / "texts.jsonl"))
    (trained / "alike.toml").write_text(said, encoding="utf-8")
    run = tmp_path / "run"
    arguments = ["measure", str(trained / "alike.toml"), "--quantity", "vote", "--out", str(run)]
    assert main([*arguments, "--samples", "50"]) == 0
    assert capsys.readouterr().out.startswith("This says little: the model answers ")
    assert json.loads((run / "summary.json").read_text(encoding="utf-8"))["vacuous"]
    page = (run / "report.html").read_text(encoding="utf-8")
    assert '<p class="verdict incomplete"><span class="claim">This says little' in page
    assert main(["check", str(run)]) == 0


def test_smoothed_classifiers_are_attacked_and_certified_as_they_are_deployed(trained: Path, tmp_path: Path) -> None:
    task = str(trained / "smoothed_task.toml")
    assert main(["attack", task, "--method", "greedy", "--out", str(tmp_path / "attack"), "--limit", "4"]) == 0
    assert main(["certify", task, "--out", str(tmp_path / "certify"), "--limit", "4", "--seconds", "5"]) == 0
    assert main(["check", str(tmp_path / "certify")]) == 0
    assert {line["level"] for line in results(tmp_path / "certify")} == {"replay"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("samples = 20", "samples = 0", "samples is 0"),
        ("[smoothing]", "[smoothing]\nhope = 1", "'hope' is unknown"),
        ("[base]", "[bass]", "no section"),
        ('onnx = "model.onnx"', "", "needs onnx"),
        ("method", "combine = 'hope'\nmethod", "combine is 'hope'"),
        ('method = "ranmask"', 'method = "hope"', "method is 'hope'"),
        ("rate = 0.5", "rate = 2", "rate is 2"),
        ('mask = "<unk>"', 'mask = "two words"', "must be one word"),
    ],
)
def test_a_bad_file_is_one_line(trained: Path, old: str, new: str, message: str) -> None:
    text = (trained / "smoothing.toml").read_text(encoding="utf-8")
    if old not in text:
        pytest.skip("of the other method")
    other, task = trained / "other.toml", trained / "other_task.toml"
    other.write_text(text.replace(old, new, 1), encoding="utf-8")
    said = (trained / "smoothed_task.toml").read_text(encoding="utf-8")
    task.write_text(said.replace("smoothing.toml", "other.toml"), encoding="utf-8")
    with pytest.raises(BadInput, match=message) as refusal:
        open_deployed(read_task(task), Trust())
    assert "\n" not in str(refusal.value)


def test_a_vote_is_of_smoothed_classifiers_only(trained: Path, tmp_path: Path) -> None:
    assert main(["measure", str(trained / "task.toml"), "--quantity", "vote", "--out", str(tmp_path / "run")]) == 2
    assert not (tmp_path / "run").exists()
