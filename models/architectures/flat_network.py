"""Embedding, Flatten: every position has its own weights in the first hidden layer (the MMWS paper's network)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .graph_writer import GraphWriter
from .network_shape import Arrays, Body, Box, Changes, Disturb, Moved

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Flat(Body):
    embedding: int = 2
    hidden: tuple[int, ...] = (64,)

    has_boxes: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True

    def features(self, length: int) -> int:
        return length * self.embedding

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        return disturbed(embedded).flatten(1)

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box:
        return low.flatten(1), high.flatten(1)

    def moved(self, weights: Mapping[str, torch.Tensor], vectors: torch.Tensor, changes: Changes) -> Moved:
        """Exactly: features are the vectors themselves."""
        import torch

        def through(matrix: torch.Tensor) -> Box:
            by_place = matrix.reshape(*matrix.shape[:-1], *vectors.shape[1:])
            if matrix.dim() == 2:
                own = by_place[:, changes.places].permute(1, 2, 0, 3)
            else:
                own = by_place[torch.arange(len(vectors))[:, None], :, changes.places]
            move = torch.einsum("bpce,bpoe->bpco", changes.vectors, own)
            return move, move

        return through

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        graph.node("Flatten", ["embedded"], "features", "flatten", axis=1)
