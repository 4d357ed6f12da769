"""Embedding, Flatten: every position has its own weights in the first hidden layer (the MMWS paper's network)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .graph_writer import GraphWriter
from .network_shape import Arrays, Body, Disturb

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Flat(Body):
    embedding: int = 2
    hidden: tuple[int, ...] = (64,)

    def features(self, length: int) -> int:
        return length * self.embedding

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        return disturbed(embedded).flatten(1)

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        graph.node("Flatten", ["embedded"], "features", "flatten", axis=1)
