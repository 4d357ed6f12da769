"""Embedding, mean over all positions, padding (zero) included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .graph_writer import GraphWriter
from .network_shape import Arrays, Body, Box, Changes, Disturb, Moved

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Mean(Body):
    has_boxes: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True

    def features(self, length: int) -> int:
        return self.embedding

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        return disturbed(embedded.mean(dim=1))

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box:
        return low.mean(dim=1), high.mean(dim=1)

    def moved(self, weights: Mapping[str, torch.Tensor], vectors: torch.Tensor, changes: Changes) -> Moved:
        """Exactly: the move of a vector over the number of positions."""

        def through(matrix: torch.Tensor) -> Box:
            rows = matrix if matrix.dim() == 2 else matrix.unsqueeze(1)
            move = changes.vectors @ rows.transpose(-1, -2) / vectors.shape[1]
            return move, move

        return through

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        graph.node("ReduceMean", ["embedded", graph.integers("axes", 1)], "features", "mean", keepdims=0)
