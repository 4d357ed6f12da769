"""What a defence may do while a network is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..architectures.network_shape import PAD, Body, Noise, Shape, embedded, features, head, without_padding

if TYPE_CHECKING:
    import torch


class TrainingRule:
    """Rules in force while one network is trained; this one changes nothing."""

    remarks: tuple[str, ...] = ()

    @property
    def own(self) -> Mapping[str, torch.Tensor]:
        """What it keeps from step to step: kept with an unfinished training; tensors with gradients are learned too."""
        return {}

    def table(self, embedding: torch.Tensor) -> torch.Tensor:
        """The embedding table that the network reads, made from the one that is learned; the export holds it too."""
        return embedding

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        """Leaves the gradients of a loss on this batch in the weights and returns it; `done`: share of the epochs."""
        return descend(network.loss(tokens, labels))

    def hold(self, weights: dict[str, torch.Tensor]) -> None:
        """Called before the first step and after every one: changes weights in place."""


@dataclass(frozen=True)
class Learner:
    """The network as it is while it learns: with its dropout and noise, and the table that its rule makes."""

    shape: Shape
    weights: Mapping[str, torch.Tensor]
    rule: TrainingRule
    noise: Noise

    @property
    def generator(self) -> torch.Generator:
        return self.noise.generator

    @property
    def table(self) -> torch.Tensor:
        return self.rule.table(self.weights["embedding"])

    def is_word(self, tokens: torch.Tensor) -> torch.Tensor:
        """No padding and no special token: what may be changed."""
        return self.shape.body.is_word(tokens)

    def vectors(self, tokens: torch.Tensor) -> torch.Tensor:
        return embedded({"embedding": self.table}, tokens)

    def features(self, vectors: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        return features(self.shape, self.weights, vectors, real, self.noise)

    def logits(self, vectors: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        return head(self.shape, self.weights, self.features(vectors, real), self.noise)

    def loss(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Cross entropy, the mean over the texts."""
        tokens = without_padding(self.shape, tokens)
        return cross_entropy(self.logits(self.vectors(tokens), tokens != PAD), labels)


@dataclass(frozen=True)
class Setting:
    """What a defence begins with: the network, the words by number, the texts to learn from, and how texts are read."""

    shape: Shape
    words: Sequence[str]
    folder: Path
    """Files of the recipe are relative to it."""
    tokens: torch.Tensor
    labels: torch.Tensor
    generator: torch.Generator
    labels_by_name: Sequence[str] = ()
    read: Callable[[str], tuple[int, ...]] = field(default=lambda text: ())
    spans: Callable[[str], Sequence[tuple[int, int]]] = field(default=lambda text: ())


FILE_KEYS = ("synonyms", "examples", "vectors", "antonyms")
"""Keys of defences that name files, relative to the recipe; `vectors` may name a package instead."""


@dataclass(frozen=True)
class Defence(ABC):
    """A method of `[defence]` in a recipe; its fields are the other keys of that section."""

    @property
    def synonym_file(self) -> str | None:
        """The table that it was made for, where there is one."""
        return None

    def files(self, folder: Path) -> dict[str, Path]:
        """What it reads there, by the key that names it."""
        found: dict[str, Path] = {}
        for key in FILE_KEYS:
            said: str | tuple[str, ...] = getattr(self, key, ())
            if isinstance(said, str):
                found[key] = folder / said
            else:
                found |= {f"{key} {name}": folder / name for name in said}
        return {key: path for key, path in found.items() if path.is_file()}

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        """What must hold for the keys of this method, each with its complaint."""
        return ()

    @abstractmethod
    def start(self, setting: Setting) -> TrainingRule:
        """The rule for the training of this network."""

    def smoothing(self, split: str) -> dict[str, str | int | float]:
        """[smoothing] of the classifier that is to be deployed with the network, where it is to be smoothed."""
        return {}

    def more_texts(self, setting: Setting) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Tokens and labels to learn from beside those of the recipe."""
        return None


def descend(loss: torch.Tensor) -> float:
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.item())


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    from torch.nn import functional

    return functional.cross_entropy(logits, labels)
