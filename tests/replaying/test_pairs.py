"""Pairs of texts as SNLI has them, through models with an input for each and through one with both joined: the fewest
swaps are those that asking onnxruntime about every sentence finds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from command_runs import results
from graph_builder import Builder
from onnx import TensorProto

from swapproof.verifier.cli import main
from swapproof.verifier.roads import certify

LABELS = ["entailment", "neutral", "contradiction"]
PAIRS = [
    ("two women hold bags", "the sisters hold bags"),
    ("a man sleeps", "the man is awake"),
    ("children play outside", "kids play a game"),
    ("a dog runs in snow", "an animal runs"),
    ("the man eats", "a man sits"),
]
TABLE = {
    "sisters": ["women", "kids"],
    "man": ["person", "women", "dog"],
    "hold": ["carry"],
    "kids": ["children", "sisters"],
    "play": ["runs", "game"],
    "animal": ["dog"],
    "runs": ["sits", "sleeps"],
    "a": ["the"],
    "bags": ["game"],
    "sleeps": ["sits"],
}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SAID = " ".join([*itertools.chain(*PAIRS), *TABLE, *itertools.chain(*TABLE.values())])
WORDS = [*SPECIAL, *dict.fromkeys(SAID.split())]
VALUES = np.random.default_rng(7).normal(size=(len(WORDS), 1, 2)).astype(np.float32)
VALUES[: len(SPECIAL)] = 0


def three_scores(builder: Builder, premise: str, hypothesis: str) -> None:
    """Of two numbers for each text: products of the sums, which no reading of networks knows."""
    products = builder.call("Mul", premise, hypothesis)
    builder.node("Concat", [products, builder.call("ReduceSum", hypothesis, builder.wholes(1))], ["logits"], axis=1)


def sums(builder: Builder, name: str, weights: str | None = None) -> str:
    rows = builder.call("Squeeze", builder.call("Gather", builder.constant(VALUES), name), builder.wholes(2))
    if weights is not None:
        rows = builder.call("Mul", rows, builder.call("Unsqueeze", weights, builder.wholes(2)))
    return builder.call("ReduceSum", rows, builder.wholes(1), keepdims=0)


def two_inputs() -> str:
    """A model, and what [model] says of it."""
    builder = Builder()
    three_scores(builder, sums(builder, "premise"), sums(builder, "hypothesis"))
    shapes: Any = [(name, TensorProto.INT64, ["batch", f"{name}_length"]) for name in ("premise", "hypothesis")]
    onnx.save(builder.proto(shapes, [("logits", TensorProto.FLOAT, ["batch", 3])]), "model.onnx")
    Path("words.json").write_text(json.dumps(WORDS))
    return (
        'vocabulary = "words.json"\npad = "[PAD]"\nunknown = "[UNK]"\n'
        'inputs = { premise = "tokens", hypothesis = "tokens" }\n'
    )


def joined() -> str:
    """[CLS] premise [SEP] hypothesis [SEP], the second of type 1."""
    tokenizers = pytest.importorskip("tokenizers")

    builder = Builder()
    types = builder.call("Cast", "token_type_ids", to=TensorProto.FLOAT)
    others = builder.call("Sub", builder.constant(np.float32(1)), types)
    three_scores(builder, sums(builder, "input_ids", others), sums(builder, "input_ids", types))
    shapes: Any = [(name, TensorProto.INT64, ["batch", "length"]) for name in ("input_ids", "token_type_ids")]
    onnx.save(builder.proto(shapes, [("logits", TensorProto.FLOAT, ["batch", 3])]), "model.onnx")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save("tokenizer.json")
    return 'vocabulary = "tokenizer.json"\n'


def asked(premise: str, hypothesis: str) -> int:
    """The class of one pair, by hand."""
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    first, second = ([WORDS.index(word) for word in text.split()] for text in (premise, hypothesis))
    given = {"premise": [first], "hypothesis": [second]}
    if session.get_inputs()[0].name == "input_ids":
        given = {
            "input_ids": [[2, *first, 3, *second, 3]],
            "token_type_ids": [[0] * (len(first) + 2) + [1] * (len(second) + 1)],
        }
    (scores,) = session.run(None, {name: np.array(ids) for name, ids in given.items()})
    return int(scores[0].argmax())


def fewest(pair: tuple[str, str], moving: int, label: int) -> int | None:
    words = pair[moving].split()
    found = []
    for sentence in itertools.product(*([word, *TABLE.get(word, [])] for word in words)):
        swapped = [*pair]
        swapped[moving] = " ".join(sentence)
        if asked(*swapped) != label:
            found.append(sum(one != other for one, other in zip(words, sentence, strict=True)))
    return min(found, default=None)


@pytest.mark.parametrize("moving", ["premise", "hypothesis"])
@pytest.mark.parametrize("model", [two_inputs, joined])
def test_the_fewest_swaps_of_one_text_of_a_pair(
    model: Callable[[], str], moving: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    section = model()
    context = {"premise": "hypothesis", "hypothesis": "premise"}[moving]
    rows = [{"premise": one, "hypothesis": other, "label": LABELS[asked(one, other)]} for one, other in PAIRS]
    Path("pairs.json").write_text(json.dumps(rows))
    Path("swaps.json").write_text(json.dumps(TABLE))
    first = "text" if moving == "premise" else "context"
    Path("task.toml").write_text(
        f'[model]\nonnx = "model.onnx"\n{section}labels = {json.dumps(LABELS)}\n[data]\nfile = "pairs.json"\n'
        f'text = "{moving}"\ncontext = "{context}"\nfirst = "{first}"\n[swaps]\nfile = "swaps.json"\n'
    )
    assert certify("task.toml", "run").exit_code == 0
    lines = results(Path("run"))
    assert {line["level"] for line in lines} == {"replay"}
    found = [line["min_swaps"]["high"] for line in lines]
    place = ["premise", "hypothesis"].index(moving)
    assert found == [fewest(pair, place, asked(*pair)) for pair in PAIRS]
    assert {None, 1} <= {*found}
    assert main(["check", "run"]) == 0
