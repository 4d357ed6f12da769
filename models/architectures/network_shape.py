"""A text classifier: embedding, the body that its architecture is, hidden ReLU layers, logits.

The weights are a plain dictionary, so that `export/trained_graph.py` can write the same network as an ONNX graph
without tracing.
The embedding of the padding token (id 0) is zero and stays zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

    from .graph_writer import GraphWriter

PAD = 0
UNKNOWN = 1

Arrays = dict[str, NDArray[np.float32]]
Draw = Callable[..., "torch.Tensor"]
"""`draw(bound, *size)`: uniform numbers between -bound and bound."""
Disturb = Callable[["torch.Tensor"], "torch.Tensor"]


Box = tuple["torch.Tensor", "torch.Tensor"]
"""Low and high ends."""
Moved = Callable[["torch.Tensor"], Box]
"""`moved(matrix)`, matrix [rows, features] or [batch, rows, features]: numbers l <= h [batch, places, swaps, rows] so
that, whatever swaps of different places are made, matrix @ features moves by at least the sum of their l and at most
the sum of their h."""


@dataclass(frozen=True)
class Changes:
    """Swaps of a batch: `places` [batch, places] of words, `vectors` [batch, places, swaps, embedding] how far each
    moves the word's vector; 0 where there is none."""

    places: torch.Tensor
    vectors: torch.Tensor


@dataclass(frozen=True)
class Body(ABC):
    """What an architecture puts between the embedding and the fully connected layers.

    Its fields are the keys of `[network]` in a recipe.
    """

    embedding: int = 16
    hidden: tuple[int, ...] = (32,)
    vectors: Literal["random", "glove"] = "random"
    """What the embedding begins with."""
    fixed: bool = False
    """Whether the embedding stays as it begins."""

    has_boxes: ClassVar[bool] = False
    """Whether `box` answers."""
    adds_up: ClassVar[bool] = False
    """Whether `moved` answers."""
    knows_padding: ClassVar[bool] = False
    """Whether a text gives the same features behind any amount of padding."""
    package: ClassVar[str | None] = None
    """The Python package that weights and tokenizer come from; None: words are counted and weights are drawn."""

    @property
    def takes_any_length(self) -> bool:
        """Whether the exported graph takes texts of any length, so that deployed texts are neither cut nor padded."""
        return False

    @property
    def has_positions(self) -> bool:
        """Whether texts longer than `length` have no answer all the same."""
        return False

    @property
    def state_matrices(self) -> tuple[str, ...]:
        """Names of the matrices that act on a recurrent state, one row for each gate and unit."""
        return ()

    def rules(self, length: int) -> tuple[tuple[bool, str], ...]:
        """What must hold for the keys of this architecture, each with its complaint."""
        return ()

    @abstractmethod
    def features(self, length: int) -> int:
        """How many numbers the first fully connected layer reads."""

    def weights(self, length: int, draw: Draw) -> dict[str, torch.Tensor]:
        """The weights of the body, before any training."""
        return {}

    def begin(self, weights: Mapping[str, torch.Tensor], words: Sequence[str]) -> str:
        """Puts what is known beforehand into fresh weights, and says what that was."""
        if self.vectors == "random":
            return ""
        from .glove_vectors import put_glove

        found = put_glove(weights["embedding"], words)
        return f"{found} of {len(words)} words begin with their GloVe vector"

    def is_word(self, tokens: torch.Tensor) -> torch.Tensor:
        """Where a token is a word or a piece of one: what a defence may change."""
        return tokens != PAD

    @abstractmethod
    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        """embedded [batch, length, embedding], real [batch, length] (no padding) -> [batch, features].

        `disturbed` is dropout in training and does nothing otherwise.
        """

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box | None:
        """Ends of every feature where each number of `embedded` lies between `low` and `high`; None: not known."""
        return None

    def moved(self, weights: Mapping[str, torch.Tensor], vectors: torch.Tensor, changes: Changes) -> Moved | None:
        """By how much swaps move the features; None where they do not simply add up."""
        return None

    @abstractmethod
    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        """The same as ONNX nodes, from `embedded` (and `tokens`) to `features`."""


@dataclass(frozen=True)
class Shape:
    """Everything that fixes the names and sizes of the weights."""

    body: Body
    vocabulary: int
    length: int
    classes: int

    @property
    def dense(self) -> tuple[tuple[str, int, int], ...]:
        """(name, inputs, outputs) of the fully connected layers, the logits last."""
        sizes = (self.body.features(self.length), *self.body.hidden, self.classes)
        names = [f"hidden{i + 1}" for i in range(len(self.body.hidden))] + ["logits"]
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

    def draw(bound: float, *size: int) -> torch.Tensor:
        return (torch.rand(size, generator=generator) * 2.0 - 1.0) * bound

    weights = {"embedding": torch.randn((shape.vocabulary, shape.body.embedding), generator=generator) * 0.1}
    weights["embedding"][PAD] = 0.0
    weights |= shape.body.weights(shape.length, draw)
    for name, inputs, outputs in shape.dense:
        weights[f"{name}.weight"] = draw(he_bound(inputs), outputs, inputs)
        weights[f"{name}.bias"] = torch.zeros(outputs)
    fixed = {"embedding"} if shape.body.fixed else set()
    return {name: value.requires_grad_(name not in fixed) for name, value in weights.items()}


def he_bound(inputs: int) -> float:
    """Of the uniform distribution that keeps the size of numbers through a ReLU layer."""
    return math.sqrt(6.0 / inputs)


def logits(
    shape: Shape, weights: Mapping[str, torch.Tensor], tokens: torch.Tensor, noise: Noise | None = None
) -> torch.Tensor:
    """tokens int64 [batch, length] -> float32 [batch, classes]; `noise` only while training."""
    tokens = without_padding(shape, tokens)
    return head(shape, weights, features(shape, weights, embedded(weights, tokens), tokens != PAD, noise), noise)


def without_padding(shape: Shape, tokens: torch.Tensor) -> torch.Tensor:
    """Columns that are padding in every text of the batch cost a network that knows padding nothing but time."""
    real = tokens != PAD
    if not shape.body.knows_padding:
        return tokens
    return tokens[:, : max(1, int(real.any(dim=0).nonzero().max()) + 1 if real.any() else 1)]


def embedded(weights: Mapping[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    """[batch, length, embedding]: the rows of the table."""
    from torch.nn import functional

    return functional.embedding(tokens, weights["embedding"], padding_idx=PAD)


def features(
    shape: Shape,
    weights: Mapping[str, torch.Tensor],
    vectors: torch.Tensor,
    real: torch.Tensor,
    noise: Noise | None = None,
) -> torch.Tensor:
    """[batch, features]: what the fully connected layers read, of any vectors [batch, length, embedding]."""
    import torch

    if noise is not None and noise.embedding:
        gaussian = torch.randn(vectors.shape, generator=noise.generator) * noise.embedding
        vectors = vectors + gaussian * real.unsqueeze(-1)
    return shape.body.values(weights, vectors, real, dropout_of(noise))


def head(
    shape: Shape, weights: Mapping[str, torch.Tensor], values: torch.Tensor, noise: Noise | None = None
) -> torch.Tensor:
    """The fully connected layers: features -> logits."""
    import torch
    from torch.nn import functional

    disturbed = dropout_of(noise)
    for name, _, _ in shape.dense[:-1]:
        values = disturbed(torch.relu(functional.linear(values, weights[f"{name}.weight"], weights[f"{name}.bias"])))
    return functional.linear(values, weights["logits.weight"], weights["logits.bias"])


def dropout_of(noise: Noise | None) -> Disturb:
    import torch

    def disturbed(values: torch.Tensor) -> torch.Tensor:
        if noise is None or noise.dropout == 0.0:
            return values
        kept = torch.rand(values.shape, generator=noise.generator) >= noise.dropout
        return values * kept / (1.0 - noise.dropout)

    return disturbed
