"""Small ONNX models whose scores show exactly what they were given, and tokenizers of many kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from graph_builder import Builder
from onnx import TensorProto

from swapproof.models.deployed.classifier import Deployment
from swapproof.models.deployed.onnx_classifier import OnnxClassifier, open_onnx
from swapproof.models.deployed.swapped_text import SwapText

DOUBLE, INT64, STRING = TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING
Inputs = Sequence[tuple[str, int, Sequence[int | str]]]
TOKENS: Inputs = [("input_ids", INT64, ["batch", "length"])]
MASKED: Inputs = [(name, INT64, ["batch", "length"]) for name in ("input_ids", "attention_mask")]


def saved(model: Any, path: Path) -> Path:
    onnx.save(model, str(path))
    return path


def echo(inputs: Inputs, *, output: Sequence[int | str] = ("batch", "scores")) -> Any:
    """Two scores for each input: the sum of its numbers, and that of its numbers times their places from 1 on.

    In double precision, so that they tell any two small inputs apart.
    """
    builder = Builder()
    parts: list[str] = []
    for name, _, shape in inputs:
        numbers = builder.call("Cast", name, to=DOUBLE)
        if len(shape) == 1:
            numbers = builder.call("Unsqueeze", numbers, builder.wholes(1))
        ones = builder.call("Add", builder.call("Mul", numbers, builder.constant(0.0)), builder.constant(1.0))
        places = builder.call("CumSum", ones, builder.wholes(1))
        both = (numbers, builder.call("Mul", numbers, places))
        parts += [builder.call("ReduceSum", values, builder.wholes(1), keepdims=1) for values in both]
    builder.node("Concat", parts, ["scores"], axis=1)
    return builder.proto(inputs, [("scores", DOUBLE, output)])


def masked_sum(table: Any, inputs: Inputs = MASKED) -> Any:
    """The sum of rows of a table where the mask is 1."""
    builder = Builder()
    rows = builder.call("Gather", builder.constant(np.asarray(table, dtype=np.float32)), inputs[0][0])
    mask = builder.call("Unsqueeze", builder.call("Cast", inputs[1][0], to=TensorProto.FLOAT), builder.wholes(2))
    builder.node("ReduceSum", [builder.call("Mul", rows, mask), builder.wholes(1)], ["scores"], keepdims=0)
    return builder.proto(inputs, [("scores", TensorProto.FLOAT, ["batch", np.asarray(table).shape[1]])])


def summed(table: Any, length: int | str = "length", batch: int | str = "batch") -> Any:
    """The sum of rows of a table."""
    builder = Builder()
    rows = builder.call("Gather", builder.constant(np.asarray(table, dtype=np.float32)), "input_ids")
    builder.node("ReduceSum", [rows, builder.wholes(1)], ["scores"], keepdims=0)
    scores = ("scores", TensorProto.FLOAT, [batch, np.asarray(table).shape[1]])
    return builder.proto([("input_ids", INT64, [batch, length])], [scores])


def opened(
    folder: Path, model: Any, vocabulary: Any = None, name: str = "tokenizer.json", **said: Any
) -> OnnxClassifier:
    """The model and its vocabulary (a tokenizer, or whatever JSON holds, or text) as a task would name them."""
    path = saved(model, folder / "model.onnx")
    if vocabulary is not None:
        if hasattr(vocabulary, "to_str"):
            vocabulary = vocabulary.to_str()
        text = vocabulary if isinstance(vocabulary, str) else json.dumps(vocabulary)
        (folder / name).write_text(text, encoding="utf-8")
        said["vocabulary"] = folder / name
    return open_onnx(Deployment("onnx", str(path), **said))


def swaps(text: str, *options: Sequence[str], other: str | None = None, moving: int = 0) -> SwapText:
    """Words and marks, in order, with the alternatives of each."""
    spans = tuple(match.span() for match in re.finditer(r"[\w']+|[^\w\s]", text))
    fields = (text,) if other is None else (other, text) if moving else (text, other)
    given = [*options, *[()] * (len(spans) - len(options))]
    words = tuple((text[start:end], *more) for (start, end), more in zip(spans, given, strict=True))
    return SwapText(fields, moving, spans, words)


def every_row(text: SwapText) -> np.ndarray[Any, np.dtype[np.int32]]:
    """All sentences of a text, by options."""
    rows = list(product(*(range(len(options)) for options in text.options)))
    return np.array(rows, dtype=np.int32).reshape(len(rows), len(text.options))


# --- tokenizers -------------------------------------------------------------------------------------------------

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [
    "good",
    "film",
    "new",
    "york",
    "cafe",
    "café",
    "##s",
    "##a",
    "a",
    "b",
    ".",
    ",",
    "&",
    "!",
    "5",
    "0",
    "it",
    "'",
]


def wordpiece(*, pair: bool = True, **fixed: Any) -> Any:
    """As BERT's."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {piece: index for index, piece in enumerate([*SPECIAL, *PIECES])}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1" if pair else None,
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    if "padding" in fixed:
        tokenizer.enable_padding(**fixed["padding"])
    if "truncation" in fixed:
        tokenizer.enable_truncation(**fixed["truncation"])
    return tokenizer


CORPUS = [
    "new york is great & good!",
    "salt and, pepper 50% café",
    "It's a b aab bab... new films",
    "中文 naïve “quoted” ☃ ß",
]


def kinds() -> dict[str, Any]:
    """Tokenizers whose parts are known to read words one by one, and others, by name."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    def words(*more: str) -> Any:
        known = [
            "[PAD]",
            "[UNK]",
            "new",
            "york",
            "good",
            "film",
            "a",
            "b",
            "&",
            ",",
            "&,",
            "!",
            "5",
            "50",
            "café",
            *more,
        ]
        return Tokenizer(models.WordLevel({word: index for index, word in enumerate(known)}, unk_token="[UNK]"))

    def trained(model: Any, trainer: Any, splitter: Any, normaliser: Any = None) -> Any:
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = splitter
        if normaliser is not None:
            tokenizer.normalizer = normaliser
        tokenizer.train_from_iterator(CORPUS, trainer)
        return tokenizer

    def split(tokenizer: Any, splitter: Any, normaliser: Any = None) -> Any:
        tokenizer.pre_tokenizer = splitter
        if normaliser is not None:
            tokenizer.normalizer = normaliser
        return tokenizer

    quiet: dict[str, Any] = {"show_progress": False, "special_tokens": ["[PAD]", "[UNK]"]}
    letters = pre_tokenizers.ByteLevel.alphabet()
    bytelevel = {**quiet, "vocab_size": 320, "initial_alphabet": letters}
    pieces = trainers.UnigramTrainer(vocab_size=60, unk_token="[UNK]", **quiet)
    merges = trainers.BpeTrainer(vocab_size=90, **quiet)
    pre = pre_tokenizers
    found = {
        "wordpiece": wordpiece(),
        "words": split(words(), pre.Whitespace()),
        "white space": split(words(), pre.WhitespaceSplit(), normalizers.NFKC()),
        "digits": split(words(), pre.Sequence([pre.WhitespaceSplit(), pre.Punctuation(), pre.Digits(True)])),
        "lower": split(
            words(),
            pre.BertPreTokenizer(),
            normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]),
        ),
        "bytes": trained(models.BPE(), trainers.BpeTrainer(**bytelevel), pre.ByteLevel(add_prefix_space=False)),
        "bytes with a space": trained(
            models.BPE(), trainers.BpeTrainer(**bytelevel), pre.ByteLevel(add_prefix_space=True), normalizers.NFC()
        ),
        "bpe": trained(models.BPE(unk_token="[UNK]", fuse_unk=True), merges, pre.Whitespace(), normalizers.NFC()),
        "unigram": trained(models.Unigram(), pieces, pre.WhitespaceSplit()),
        "metaspace": trained(models.Unigram(), pieces, pre.Metaspace()),
        "unsplit": trained(models.Unigram(), pieces, pre.Metaspace(split=False)),
        "split by a pattern": split(words(), pre.Split(Regex(r"[^\r\n\w]?\w+|\S+[\r\n]*"), "isolated")),
        "replace": split(words("newyork"), pre.Whitespace(), normalizers.Replace("new york", "newyork")),
    }
    roberta = found["bytes with a space"]
    roberta.add_special_tokens([AddedToken("<s>"), AddedToken("</s>"), AddedToken("<mask>", lstrip=True)])
    identity = roberta.token_to_id
    roberta.post_processor = processors.RobertaProcessing(("</s>", identity("</s>")), ("<s>", identity("<s>")))
    roberta.decoder = decoders.ByteLevel()
    found["added words"] = split(words(), pre.Whitespace())
    found["added words"].add_tokens([AddedToken("new york", normalized=True)])
    found["added marks"] = split(words(), pre.Whitespace())
    found["added marks"].add_tokens([AddedToken("a&b"), AddedToken("<x>", single_word=True)])
    found["added character"] = split(words(), pre.BertPreTokenizer(), normalizers.BertNormalizer())
    found["added character"].add_tokens([AddedToken("中b")])
    found["greedy mark"] = split(words(), pre.Whitespace())
    found["greedy mark"].add_tokens([AddedToken("<x>", rstrip=True)])
    return found


APART = {
    "wordpiece",
    "words",
    "white space",
    "digits",
    "lower",
    "bytes",
    "bytes with a space",
    "bpe",
    "unigram",
    "added marks",
    "greedy mark",
}
"""Those that are known to read words one by one."""
