"""Small classifiers as encoders are deployed: tokens and a mask, types or positions beside them, a mean over the mask,
a ReLU layer, and an output of any form; and their tasks with a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from graph_builder import Builder
from onnx import TensorProto
from tiny import LENGTH, SENTIMENT, SYNONYMS, WORDS, toml

PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS[2:])
NAMES = {
    "tokens": "input_ids",
    "mask": "attention_mask",
    "types": "token_type_ids",
    "positions": "position_ids",
    "length": "lengths",
}
TEXTS = (
    ("a good film", "positive"),
    ("the great bad movie", "positive"),
    ("awful", "negative"),
    ("bad bad film", "negative"),
    ("great great good", "positive"),
)


@dataclass(frozen=True)
class Pooled:
    """What varies: inputs in the order of the file, what is put behind the logits, and how they are stored."""

    roles: tuple[str, ...] = ("tokens", "mask")
    ending: str = "two"
    """two; tall ([batch, 2, 1]); one (a logit), flat (of shape [batch]), sigmoid; column (of three sigmoids); softmax;
    more (outputs)."""
    whole: int = TensorProto.INT64
    opset: int = 17
    length: int | None = LENGTH
    special: int = 0
    """Ids before the words, two more for a tokenizer."""
    seed: int = 3


def pooled(made: Pooled, names: Mapping[str, str] = NAMES) -> Any:
    """The ModelProto."""
    draw, b = np.random.default_rng(made.seed), Builder()
    sentiment = np.array([0] * made.special + SENTIMENT, dtype=np.float32)
    table = draw.integers(-4, 5, size=(len(sentiment), 3)).astype(np.float32) / 8
    table[:, 0] = sentiment
    x = b.call("Gather", b.constant(table), names["tokens"])
    if "types" in made.roles:
        kinds = b.constant(draw.integers(-4, 5, size=(2, 3)).astype(np.float32) / 8)
        x = b.call("Add", x, b.call("Gather", kinds, names["types"]))
    if "positions" in made.roles:
        places = b.constant(draw.integers(-4, 5, size=(16, 3)).astype(np.float32) / 16)
        x = b.call("Add", x, b.call("Gather", places, names["positions"]))
    if "mask" in made.roles:
        mask = b.call("Cast", b.call("Unsqueeze", names["mask"], b.wholes(2)), to=TensorProto.FLOAT)
        total = b.call("ReduceSum", b.call("Mul", x, mask), b.wholes(1), keepdims=0)
        x = b.call(
            "Div",
            total,
            b.call("Clip", b.call("ReduceSum", mask, b.wholes(1), keepdims=0), b.constant(np.float32(1e-9))),
        )
    elif "length" in made.roles:
        total = b.call("ReduceSum", x, b.wholes(1), keepdims=0)
        x = b.call("Div", total, b.call("Cast", names["length"], to=TensorProto.FLOAT))
    else:
        x = b.call("ReduceSum", x, b.wholes(1), keepdims=0)
    first = np.concatenate([np.array([[1, -1], [0, 0], [0, 0]]), draw.integers(-4, 5, size=(3, 2)) / 8], axis=1)
    hidden = b.call(
        "Relu", b.call("Gemm", x, b.constant(first.astype(np.float32)), b.constant(np.zeros(4, np.float32)))
    )
    second = np.array([[-1, 1], [1, -1], [0.25, 0], [0, 0.25]], dtype=np.float32)
    return b.proto(*outputs(b, made, hidden, second, names), opset=made.opset, ir_version=9)


def outputs(b: Builder, made: Pooled, hidden: str, second: Any, names: Mapping[str, str]) -> Any:
    """Inputs and outputs, after the nodes that end the graph."""
    size = made.length or "length"
    read = [(names[role], made.whole, ("batch", 1 if role == "length" else size)) for role in made.roles]
    given: list[Any] = []

    def result(
        name: str, operator: str, *inputs: str, shape: Sequence[int | str] = ("batch", 2), **attributes: Any
    ) -> str:
        b.node(operator, inputs, [name], **attributes)
        given.append((name, TensorProto.FLOAT, shape))
        return name

    bias = b.constant(np.array([0.0, 0.125], dtype=np.float32))
    if made.ending in ("two", "softmax", "more"):
        logits = ("logits", "Gemm", hidden, b.constant(second), bias)
        if made.ending == "softmax":
            result("probabilities", "Softmax", b.call("Gemm", *logits[2:]), axis=1)
        elif made.ending == "more":
            result("pooled", "Identity", hidden, shape=("batch", 4))
            result("probabilities", "Softmax", result(*logits), axis=1)
        else:
            result(*logits)
        return read, given
    if made.ending == "tall":
        result(
            "logits", "Unsqueeze", b.call("Gemm", hidden, b.constant(second), bias), b.wholes(2), shape=("batch", 2, 1)
        )
        return read, given
    single = (second[:, 1:] - second[:, :1]).astype(np.float32)
    if made.ending == "column":
        three = np.concatenate([single[::-1], single, -single], axis=1)
        result("scores", "Sigmoid", b.call("MatMul", hidden, b.constant(three)), shape=("batch", 3))
        return read, given
    one = b.call("Gemm", hidden, b.constant(single), b.constant(np.array([0.125], dtype=np.float32)))
    if made.ending == "one":
        result("logit", "Identity", one, shape=("batch", 1))
    elif made.ending == "flat":
        result("logit", "Squeeze", one, b.wholes(1), shape=("batch",))
    else:
        result("probability", "Squeeze", b.call("Sigmoid", one), b.wholes(1), shape=("batch",))
    return read, given


def tokenizer(side: str = "right") -> Any:
    """WordLevel between [CLS] and [SEP], split at white space and marks."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({word: id for id, word in enumerate(PIECES)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_padding(direction=side, pad_id=0, pad_token="[PAD]")
    return made


def write_pooled(
    folder: Path,
    made: Pooled,
    *,
    side: str | None = None,
    names: Mapping[str, str] = NAMES,
    texts: Sequence[tuple[str, str]] = TEXTS,
    **changes: Any,
) -> Path:
    """The task file, keys as `model_threshold=0.3`; with a tokenizer that pads on `side`, if one is given."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(pooled(made, names), folder / "model.onnx")
    if side is None:
        (folder / "vocabulary.json").write_text(json.dumps(WORDS))
    else:
        tokenizer(side).save(str(folder / "vocabulary.json"))
    (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (folder / "texts.tsv").write_text("\n".join(["text\tlabel", *("\t".join(row) for row in texts)]) + "\n")
    task: dict[str, dict[str, Any]] = {
        "model": {
            "onnx": "model.onnx",
            "vocabulary": "vocabulary.json",
            "length": made.length,
            "lowercase": side is None,
            "labels": ["negative", "positive"],
        },
        "data": {"file": "texts.tsv", "text": "text", "label": "label"},
        "swaps": {"file": "synonyms.json", "max_per_word": 8},
    }
    for name, value in changes.items():
        section, key = name.split("_", 1)
        task[section][key] = value
    path = folder / "task.toml"
    path.write_text("".join(toml(section, keys) for section, keys in task.items()))
    return path


def encoded(words: list[str], length: int | None = LENGTH) -> dict[str, list[int]]:
    """What a deployed pipeline feeds: written again here."""
    ids = [WORDS.index(word) if word in WORDS else 1 for word in words]
    pad = [0] * ((length or len(ids)) - len(ids))
    size = len(ids) + len(pad)
    return {
        "tokens": ids + pad,
        "mask": [1] * len(ids) + pad,
        "types": [0] * size,
        "positions": list(range(size)),
        "length": [len(ids)],
    }


def answers(session: Any, sentences: list[list[str]], length: int | None = LENGTH, place: int = 0) -> list[Any]:
    """The output at this place for each sentence, alone."""
    kinds = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
    roles = {name: role for role, name in NAMES.items()}
    found = []
    for words in sentences:
        given = encoded(words, length)
        feeds = {one.name: np.array([given[roles[one.name]]], dtype=kinds[one.type]) for one in session.get_inputs()}
        found.append(session.run(None, feeds)[place][0])
    return found
