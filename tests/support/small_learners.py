"""Tiny networks of every architecture while they learn, with words that have synonyms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.models.architectures.convolutional_network import Convolution
from swapproof.models.architectures.flat_network import Flat
from swapproof.models.architectures.folded_network import Folded
from swapproof.models.architectures.kim_network import Kim
from swapproof.models.architectures.mean_network import Mean
from swapproof.models.architectures.network_shape import Body, Noise, Shape, initial_weights
from swapproof.models.architectures.recurrent_network import BiLstm, Lstm
from swapproof.models.architectures.sentence_encoder import MiniLm
from swapproof.models.architectures.static_network import Static
from swapproof.models.architectures.transformer_network import Transformer
from swapproof.models.defences.training_rule import Defence, Learner, Setting, TrainingRule

WORDS = ("<pad>", "<unk>", "good", "fine", "great", "bad", "poor", "film", "movie", "plot")
SYNONYMS = {"good": ["fine", "great"], "bad": ["poor"], "poor": ["bad"], "fine": ["good"], "movie": ["film"]}
LENGTH = 5
BODIES: dict[str, Body] = {
    "mmws": Flat(2, (4, 3)),
    "mean": Mean(3, (4,)),
    "cnn": Convolution(3, (3,), filters=4, width=2),
    "kim": Kim(3, (), filters=2, widths=(1, 3)),
    "msr-cnn": Folded(2, (3,), filters=3, width=1, columns=5),
    "static": Static(3, (3,), "random", False),
    "minilm": MiniLm(4, (), layers=1, heads=2, inner=4),
    "lstm": Lstm(3, (), units=3),
    "bilstm": BiLstm(2, (3,), units=2, pooling="last"),
    "bilstm-max": BiLstm(2, (), units=2, pooling="max"),
    "transformer": Transformer(4, (), heads=2, inner=4),
}


def setting(
    body: Body, folder: Path = Path(), texts: Sequence[Sequence[int]] = ((2, 7), (5, 9)), classes: int = 2
) -> Setting:
    import torch

    return Setting(
        Shape(body, len(WORDS), LENGTH, classes),
        WORDS,
        folder,
        torch.tensor([[*text, *[0] * (LENGTH - len(text))] for text in texts], dtype=torch.int32),
        torch.arange(len(texts)) % classes,
        torch.Generator().manual_seed(1),
        tuple("abcdef"[:classes]),
        lambda text: tuple(WORDS.index(word) if word in WORDS else 1 for word in text.split()),
        spans,
    )


def spans(text: str) -> list[tuple[int, int]]:
    found, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        found.append((start, at))
    return found


def learner(
    body: Body, rule: TrainingRule | None = None, seed: int = 0, scale: float = 4.0, classes: int = 2
) -> Learner:
    """Without dropout; vectors large enough for words to matter."""
    import torch

    shape, generator = Shape(body, len(WORDS), LENGTH, classes), torch.Generator().manual_seed(seed)
    weights = initial_weights(shape, generator)
    with torch.no_grad():
        weights["embedding"] *= scale
    return Learner(shape, weights, rule or TrainingRule(), Noise(0.0, 0.0, generator))


def started(defence: Defence, body: Body, folder: Path) -> TrainingRule:
    return defence.start(setting(body, folder))


def gradients(network: Learner, learn: Callable[[], Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Those that a call leaves in the weights."""
    for value in network.weights.values():
        value.grad = None
    learn()
    return {name: value.grad.numpy().copy() for name, value in network.weights.items() if value.grad is not None}
