"""model2vec folders that divide by a norm, read with proofs: the fewest swaps are the package's, of every sentence."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import static_files
from command_runs import results

from swapproof.verifier.cli import main

inference = pytest.importorskip("model2vec.inference")

WORDS = ["good", "fine", "bad", "poor", "film", "movie", "a", "very", "quite", "dull", "was", "the", "fun", "noise"]
TOKENS = ["[PAD]", "[UNK]", *WORDS]
SYNONYMS = {
    "good": ["fine", "bad", "fun"],
    "film": ["movie", "noise"],
    "very": ["quite", "a"],
    "dull": ["poor", "quite"],
    "fun": ["noise", "good"],
}
TEXTS = [
    "the film was very good",
    "a very dull film",
    "good fun , a very good film",
    "the movie was dull and the film was dull",
    "very very good fun",
    "dull noise , good film , very fun",
]
RNG = np.random.default_rng(11)
VECTORS = RNG.normal(size=(len(TOKENS), 6)).astype(np.float32)


def layers(*sizes: int) -> list[tuple[Any, Any]]:
    return [
        (RNG.normal(size=(after, before)).astype(np.float32), RNG.normal(size=after).astype(np.float32))
        for before, after in itertools.pairwise(sizes)
    ]


HEADS = {
    "linear, 2": layers(6, 2),
    "linear, 3": layers(6, 3),
    "ReLUs, 2": layers(6, 5, 2),
    "ReLUs, 3": layers(6, 5, 4, 3),
}


def write(folder: Path, name: str) -> Any:
    """A task, its labels those that the model answers; and the model as the package opens it."""
    labels = ["x", "y", "z"][: int(name[-1])]
    tokenizer = static_files.word_pieces(TOKENS)
    static_files.write_folder(
        folder / "model", tokenizer, {"embeddings": VECTORS}, HEADS[name], classes=labels, normalize=True
    )
    pipeline = inference.StaticModelPipeline.from_pretrained(folder / "model")
    rows = [json.dumps({"text": text, "label": str(pipeline.predict([text])[0])}) for text in TEXTS]
    (folder / "texts.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (folder / "task.toml").write_text(
        f'[model]\nstatic = "model"\nlabels = {json.dumps(labels)}\nscores = "probabilities"\nsplit = "words"\n\n'
        '[data]\nfile = "texts.jsonl"\n\n[swaps]\nfile = "synonyms.json"\n'
    )
    return pipeline


def fewest_swaps(pipeline: Any, choices: list[list[str]]) -> int | None:
    sentences = list(itertools.product(*choices))
    answers = pipeline.predict([" ".join(words) for words in sentences])
    swaps = [
        sum(a != b for a, b in zip(words, sentences[0], strict=True))
        for words, answer in zip(sentences, answers, strict=True)
        if answer != answers[0]
    ]
    return min(swaps, default=None)


@pytest.mark.parametrize("name", HEADS)
def test_the_fewest_swaps_are_those_of_model2vec(name: str, tmp_path: Path) -> None:
    pipeline = write(tmp_path, name)
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    spaces = [json.loads(line)["choices"] for line in (run / "spaces.jsonl").read_text().splitlines()]
    for line, choices in zip(results(run), spaces, strict=True):
        least = fewest_swaps(pipeline, choices)
        assert (line["level"], line["min_swaps"]["high"]) == ("real", least)
        assert line["status"] == ("unbreakable" if least is None else "exact")
        assert line["certificate"] is not None
        if least is not None:
            assert line["min_swaps"]["low"] == least
            assert pipeline.predict([line["witness"]["sentence"]])[0] != pipeline.predict([TEXTS[line["id"]]])[0]
    assert main(["check", str(run), "--exact"]) == 0


def test_a_text_that_may_be_without_tokens_is_run_beside(tmp_path: Path) -> None:
    write(tmp_path, "linear, 3")
    with (tmp_path / "texts.jsonl").open("a") as file:
        file.write(json.dumps({"text": "unheard xyzzy", "label": "x"}) + "\n")
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    assert [line["level"] for line in results(run)] == ["real"] * len(TEXTS) + ["replay"]


@pytest.mark.parametrize("changes", [False, True])
def test_a_sum_of_0_is_answered_as_deployed_and_not_proved_harmless(changes: bool, tmp_path: Path) -> None:
    """Two words whose vectors are opposite: the greatest bias wins, by less than any proof can see."""
    from safetensors.numpy import save_file

    write(tmp_path, "linear, 2")
    vectors = VECTORS.copy()
    vectors[TOKENS.index("bad")] = -vectors[TOKENS.index("good")]
    weight = HEADS["linear, 2"][0][0]
    vector = vectors[TOKENS.index("bad")] + vectors[TOKENS.index("fun")]
    answer = int((weight @ vector).argmax())
    bias = np.zeros(2, dtype=np.float32)
    bias[1 - answer if changes else answer] = 1e-3
    save_file({"embeddings": vectors}, tmp_path / "model" / "model.safetensors")
    save_file({"head.0.weight": weight, "head.0.bias": bias}, tmp_path / "model" / "head.safetensors")
    pipeline = inference.StaticModelPipeline.from_pretrained(tmp_path / "model")
    assert (pipeline.predict(["bad good"])[0] != pipeline.predict(["bad fun"])[0]) == changes
    (tmp_path / "texts.jsonl").write_text(json.dumps({"text": "bad fun", "label": "xy"[answer]}) + "\n")
    (tmp_path / "synonyms.json").write_text(json.dumps({"fun": ["good"]}))
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    (line,) = results(run)
    assert (line["status"], line["min_swaps"]["high"]) == (("exact", 1) if changes else ("open", None))
    assert main(["check", str(run)]) == (0 if changes else 3)
