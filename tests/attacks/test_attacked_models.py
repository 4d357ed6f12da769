"""Models of other kinds under attack: word pieces, endpoints that fail for a while, endpoints that do not answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_runs import Capture, results
from small_server import server
from smooth_models import lstm
from tiny import LENGTH, WORDS, write_task

from swapproof.verifier.cli import main

TEXTS = ("a good film", "a bad plot")
SYNONYMS = {"good": ["fine", "great"], "bad": ["poor", "awful"], "film": ["movie"]}


def task_of(folder: Path, model: str, rows: list[tuple[str, str]]) -> Path:
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": a, "label": b}) + "\n" for a, b in rows))
    (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (folder / "task.toml").write_text(
        f'[model]\n{model}\n\n[data]\nfile = "texts.jsonl"\n\n[swaps]\nfile = "synonyms.json"\n'
    )
    return folder / "task.toml"


def test_a_classifier_of_word_pieces_is_attacked_as_its_tokenizer_reads(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("onnxscript", reason="exports need it")
    import torch
    from tiny_transformers import save
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = save("bert", tmp_path / "model")
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def answer(text: str) -> int:
        with torch.inference_mode():
            return int(model(**tokenizer(text, truncation=True, return_tensors="pt")).logits[0].argmax())

    names = [str(number) for number in range(model.config.num_labels)]
    rows = [(text, names[answer(text)]) for text in TEXTS]
    task = task_of(tmp_path, f'hf = "model"\nlabels = {json.dumps(names)}', rows)
    target = (answer(TEXTS[0]) + 1) % len(names)
    options = ["--method", "pdp", "--target", names[target], "--out", str(tmp_path / "run")]
    assert main(["attack", str(task), *options]) == 0
    lines = results(tmp_path / "run")
    for line in lines:
        assert line["predicted"] == answer(line["text"])
        if line["min_swaps"]["high"]:
            assert answer(line["witness"]["sentence"]) == target
    claims = any(line["witness"] is not None for line in lines)  # its weights are random: maybe nothing fools it
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == (0 if claims else 3)


def scores(asked: Any) -> dict[str, Any]:
    text = asked["text"]
    return {"scores": [text.count("awful") + text.count("poor"), 0.5 + text.count("good")]}


def test_an_endpoint_that_fails_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    def answer(asked: Any, number: int) -> Any:
        return (503, {"Retry-After": "0"}, b"later") if number in (0, 3) else scores(asked)

    with server(answer) as served:
        task = task_of(tmp_path, endpoint(served.url), [("a good film", "positive"), ("a bad plot", "positive")])
        run = ["attack", str(task), "--method", "beam", "--allow-endpoint", "--out", str(tmp_path / "run")]
        assert main(run) == 0
        first, second = results(tmp_path / "run")
    assert first["min_swaps"]["high"] is None
    assert second["min_swaps"]["high"] == 1


def test_an_endpoint_that_does_not_answer_is_one_line_and_the_same_command_goes_on(
    tmp_path: Path, capsys: Capture
) -> None:
    gone = [True]

    def answer(asked: Any, number: int) -> Any:
        late = gone[0] and ("awful" in asked["text"] or "poor" in asked["text"])
        return (lambda handler: None) if late else scores(asked)

    with server(answer) as served:
        task = task_of(tmp_path, endpoint(served.url), [("a good film", "positive"), ("a bad plot", "positive")])
        run = ["attack", str(task), "--method", "beam", "--allow-endpoint", "--out", str(tmp_path / "run")]
        assert main(run) == 2
        assert "the same command goes on from there" in capsys.readouterr().err
        gone[0] = False
        assert main(run) == 0
        assert [line["min_swaps"]["high"] for line in results(tmp_path / "run")] == [None, 1]


def endpoint(url: str) -> str:
    return f'endpoint = "{url}"\nattempts = 2\ntimeout = 2\nresponse = "scores"\nlabels = ["negative", "positive"]'


@pytest.mark.parametrize("method", ["hotflip", "a2t"])
def test_a_recurrent_network_has_gradients_too(method: str, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    lstm(tmp_path / "task", len(WORDS), LENGTH, seed=4)
    assert main(["attack", str(task), "--method", method, "--out", str(tmp_path / "run")]) == 0
    lines = results(tmp_path / "run")
    assert any(line["min_swaps"]["high"] for line in lines)
    assert all(line["attack"].get("gradients") for line in lines if line["status"] == "open" and line["candidates"])
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0
