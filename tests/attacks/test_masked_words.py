"""Candidates of a masked language model in a local folder, and attacks with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_runs import Capture, results
from masked_folder import SPECIAL, write_masked
from tiny import write_task

from swapproof.models.encoded import spans_of
from swapproof.models.language_models.masked_words import MaskedWords
from swapproof.verifier.cli import main

PLAIN = ["good", "fine", "bad", "awful", "film", "movie", "the", "a", "##s", "!"]
WORDS = [*SPECIAL, *PLAIN]
TEXT = "a good film !"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of random weights."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    return write_masked(tmp_path_factory.mktemp("masked"), PLAIN)


@pytest.mark.parametrize("in_place", [True, False])
def test_candidates_are_whole_words_by_likelihood(folder: Path, in_place: bool) -> None:
    import torch

    model = MaskedWords.open(folder, in_place=in_place)
    found = model.candidates(TEXT, spans_of(TEXT, "whitespace"))
    words = {"good", "fine", "bad", "awful", "film", "movie", "the", "a"}
    assert [set(some) for some in found] == [words - {own} for own in TEXT.split()]
    given = TEXT if in_place else TEXT.replace("good", "[MASK]")
    with torch.inference_mode():
        logits = model.model(**model.tokenizer(given, return_tensors="pt")).logits[0, 2]
    ranked = [WORDS[id] for id in logits.argsort(descending=True).tolist() if WORDS[id] in words - {"good"}]
    assert list(found[1]) == ranked


@pytest.mark.parametrize("method", ["bae", "bert-attack", "clare"])
def test_attacks_take_their_candidates_from_the_folder(method: str, folder: Path, tmp_path: Path) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    options = ["--method", method, "--language-model", str(folder), "--k-max", "3", "--out", str(run)]
    assert main(["attack", str(task), *options]) == 0
    choices = [json.loads(line)["choices"] for line in (run / "spaces.jsonl").read_text().splitlines()]
    assert {len(options) for text in choices for options in text} == {4}
    assert any(line["min_swaps"]["high"] for line in results(run))
    assert main(["check", str(run)]) == 0


def test_a_folder_without_a_model_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    options = ["--method", "bae", "--language-model", str(tmp_path), "--out", str(tmp_path / "run")]
    assert main(["attack", str(task), *options]) == 2
    assert "no config.json" in capsys.readouterr().err
