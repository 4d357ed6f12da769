"""Embedding, mean over all positions, padding (zero) included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .graph_writer import GraphWriter
from .network_shape import Arrays, Body, Disturb

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Mean(Body):
    def features(self, length: int) -> int:
        return self.embedding

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        return disturbed(embedded.mean(dim=1))

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        graph.node("ReduceMean", ["embedded", graph.integers("axes", 1)], "features", "mean", keepdims=0)
