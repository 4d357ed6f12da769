"""Three small text classifiers as named arrays and the torch function that turns tokens into logits with them.

    mmws   Embedding, Flatten, hidden ReLU layers, logits          (every position has its own weights)
    mean   Embedding, mean over all positions, hidden ReLU layers, logits
    cnn    Embedding, Conv1d, ReLU, maximum over time, hidden ReLU layers, logits

The weights are a plain dictionary, so that `export.py` can write the same network as an ONNX graph without tracing.
The embedding of the padding token (id 0) is zero and stays zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Architecture = Literal["mmws", "mean", "cnn"]
PAD = 0
UNKNOWN = 1


@dataclass(frozen=True)
class Shape:
    """Everything that fixes the names and sizes of the weights."""

    architecture: Architecture
    vocabulary: int
    length: int
    classes: int
    embedding: int
    hidden: tuple[int, ...]
    filters: int = 0
    width: int = 0

    @property
    def features(self) -> int:
        """How many numbers the first fully connected layer reads."""
        match self.architecture:
            case "mmws":
                return self.length * self.embedding
            case "mean":
                return self.embedding
            case "cnn":
                return self.filters

    @property
    def dense(self) -> tuple[tuple[str, int, int], ...]:
        """(name, inputs, outputs) of the fully connected layers, the logits last."""
        sizes = (self.features, *self.hidden, self.classes)
        names = [f"hidden{i + 1}" for i in range(len(self.hidden))] + ["logits"]
        return tuple(zip(names, sizes[:-1], sizes[1:], strict=True))


@dataclass(frozen=True)
class Noise:
    """Disturbance, in training only: `dropout` zeroes values, `embedding` is the deviation of added Gaussian noise."""

    dropout: float
    embedding: float
    generator: torch.Generator


def initial_weights(shape: Shape, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Embedding ~ N(0, 0.1^2), padding 0; layers ~ U(-a, a) with a = sqrt(6 / inputs) (He); biases 0."""
    import torch

    def uniform(inputs: int, *size: int) -> torch.Tensor:
        bound = math.sqrt(6.0 / inputs)
        return (torch.rand(size, generator=generator) * 2.0 - 1.0) * bound

    weights = {"embedding": torch.randn((shape.vocabulary, shape.embedding), generator=generator) * 0.1}
    weights["embedding"][PAD] = 0.0
    if shape.architecture == "cnn":
        weights["conv.weight"] = uniform(shape.embedding * shape.width, shape.filters, shape.embedding, shape.width)
        weights["conv.bias"] = torch.zeros(shape.filters)
    for name, inputs, outputs in shape.dense:
        weights[f"{name}.weight"] = uniform(inputs, outputs, inputs)
        weights[f"{name}.bias"] = torch.zeros(outputs)
    return {name: value.requires_grad_() for name, value in weights.items()}


def logits(
    shape: Shape, weights: dict[str, torch.Tensor], tokens: torch.Tensor, noise: Noise | None = None
) -> torch.Tensor:
    """tokens int64 [batch, length] -> float32 [batch, classes]; `noise` only while training."""
    import torch
    from torch.nn import functional

    def disturbed(values: torch.Tensor) -> torch.Tensor:
        if noise is None or noise.dropout == 0.0:
            return values
        kept = torch.rand(values.shape, generator=noise.generator) >= noise.dropout
        return values * kept / (1.0 - noise.dropout)

    embedded = functional.embedding(tokens, weights["embedding"], padding_idx=PAD)
    if noise is not None and noise.embedding:
        gaussian = torch.randn(embedded.shape, generator=noise.generator) * noise.embedding
        embedded = embedded + gaussian * (tokens != PAD).unsqueeze(-1)
    match shape.architecture:
        case "mmws":
            values = disturbed(embedded).flatten(1)
        case "mean":
            values = disturbed(embedded.mean(dim=1))
        case "cnn":
            features = functional.conv1d(
                disturbed(embedded).transpose(1, 2), weights["conv.weight"], weights["conv.bias"]
            )
            values = disturbed(torch.relu(features).amax(dim=2))
    for name, _, _ in shape.dense[:-1]:
        values = disturbed(torch.relu(functional.linear(values, weights[f"{name}.weight"], weights[f"{name}.bias"])))
    return functional.linear(values, weights["logits.weight"], weights["logits.bias"])
