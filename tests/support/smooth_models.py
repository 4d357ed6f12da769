"""Classifiers outside the layers that we read: an LSTM written by hand, and torch modules with their exports."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from handmade import node, save

WIDTH, HIDDEN = 3, 4


def lstm(folder: Path, rows: int, length: int, seed: int = 0) -> Path:
    """Logits of the last state of an LSTM, written with onnx.helper."""
    generator = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return generator.normal(size=shape)

    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        node("Transpose", "embedded", "steps", perm=[1, 0, 2]),
        node("LSTM", "steps w r b", "all", hidden_size=HIDDEN),
        node("ReduceMax", "last", "state", axes=[0], keepdims=0),
        node("Gemm", "state out", "logits"),
    ]
    nodes[2].output[:] = ["", "last"]
    weights = {
        "table": normal(rows, WIDTH),
        "w": normal(1, 4 * HIDDEN, WIDTH),
        "r": normal(1, 4 * HIDDEN, HIDDEN),
        "b": normal(1, 8 * HIDDEN),
        "out": 3.0 * normal(HIDDEN, 2),
    }
    return save(folder, nodes, weights, length=length)


def torch_module(kind: str, rows: int, length: int, seed: int = 0) -> Any:
    """A small torch.nn.Module with its Embedding in `.words`: lstm, gru, lstm-time-first, transformer or masked.

    With -2 behind its name it has two layers.
    """
    import torch
    from torch import nn

    torch.manual_seed(seed)
    width = 8

    class Recurrent(nn.Module):
        def __init__(self, layer: Any, time_first: bool = False) -> None:
            super().__init__()
            layers = 2 if kind.endswith("-2") else 1
            self.words, self.time_first = nn.Embedding(rows, width), time_first
            self.layer = layer(width, HIDDEN, layers, batch_first=not time_first, bidirectional=True)
            self.out = nn.Linear(2 * HIDDEN, 2)

        def forward(self, tokens: Any) -> Any:
            states, _ = self.layer(self.words(tokens.T if self.time_first else tokens))
            return 4.0 * self.out(states.mean(dim=0 if self.time_first else 1))

    class Transformer(nn.Module):
        def __init__(self, masked: bool) -> None:
            super().__init__()
            self.words, self.masked = nn.Embedding(rows, width, padding_idx=0), masked
            self.places = nn.Embedding(length, width)
            layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2 if kind.endswith("-2") else 1, enable_nested_tensor=False)
            self.out = nn.Linear(width, 2)

        def forward(self, tokens: Any) -> Any:
            embedded = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
            mask = tokens == 0 if self.masked else None
            return 4.0 * self.out(self.layers(embedded, src_key_padding_mask=mask).mean(dim=1))

    match kind:
        case "lstm" | "lstm-2":
            module: Any = Recurrent(nn.LSTM)
        case "gru" | "gru-2":
            module = Recurrent(nn.GRU)
        case "lstm-time-first":
            module = Recurrent(nn.LSTM, time_first=True)
        case _:
            module = Transformer(kind == "masked")
    return module.eval()


def exported(module: Any, path: Path, length: int, *, dynamo: bool) -> Path:
    """By one of torch's two exporters, tokens [batch, length] -> logits."""
    import torch

    tokens = torch.ones((2, length), dtype=torch.int64)
    names: dict[str, Any] = {"input_names": ["tokens"], "output_names": ["logits"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            batch = {"tokens": {0: torch.export.Dim("batch")}}
            torch.onnx.export(
                module, (tokens,), path, dynamo=True, verbose=False, external_data=False, dynamic_shapes=batch, **names
            )
        else:
            torch.onnx.export(module, (tokens,), path, dynamo=False, dynamic_axes={"tokens": {0: "batch"}}, **names)
    return path
