"""A head on static embeddings, as model2vec's classifiers: the mean of the words' vectors, of length 1, then the head.

    features = m / |m|, m the mean of the vectors of the words, padding left out (`unit = false`: m itself)

The vectors stay as they are (`fixed = false` lets them learn).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from .graph_writer import GraphWriter, write_mask, write_mean
from .network_shape import Arrays, Body, Box, Disturb

if TYPE_CHECKING:
    import torch

SHORTEST = 1e-12
"""A mean that is shorter is divided by this."""


@dataclass(frozen=True)
class Static(Body):
    embedding: int = 50
    vectors: Literal["random", "glove"] = "glove"
    fixed: bool = True
    hidden: tuple[int, ...] = (32,)
    unit: bool = True
    dynamic: bool = True

    knows_padding: ClassVar[bool] = True
    has_boxes: ClassVar[bool] = True

    @property
    def takes_any_length(self) -> bool:
        return self.dynamic

    def features(self, length: int) -> int:
        return self.embedding

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        column = real.unsqueeze(-1)
        mean = (embedded * column).sum(dim=1) / real.sum(dim=1, keepdim=True).clamp(min=1)
        if self.unit:
            mean = mean / mean.norm(dim=1, keepdim=True).clamp(min=SHORTEST)
        return disturbed(mean)

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box:
        """Of the mean m between its ends; m / |m| lies between the ends of m over the ends of |m|, and in [-1, 1]."""
        import torch

        words = real.sum(dim=1, keepdim=True).clamp(min=1)
        low, high = ((end * real.unsqueeze(-1)).sum(dim=1) / words for end in (low, high))
        if not self.unit:
            return low, high
        nearest = torch.maximum(low, -high).clamp(min=0.0).norm(dim=1, keepdim=True).clamp(min=SHORTEST)
        farthest = torch.maximum(low.abs(), high.abs()).norm(dim=1, keepdim=True).clamp(min=SHORTEST)
        least = torch.minimum(low / nearest, low / farthest).clamp(min=-1.0)
        most = torch.maximum(high / nearest, high / farthest).clamp(max=1.0)
        return least, most

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        real, words = write_mask(graph)
        mean = write_mean(graph, "embedded", real, words, "mean" if self.unit else "features")
        if self.unit:
            axis = graph.integers("vector_axis", 1)
            graph.node("ReduceL2", [mean, axis], "length_of_mean", keepdims=1)
            graph.node("Max", ["length_of_mean", graph.floats("shortest", SHORTEST)], "divisor")
            graph.node("Div", [mean, "divisor"], "features")
