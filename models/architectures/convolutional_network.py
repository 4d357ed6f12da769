"""Embedding, Conv1d, ReLU, maximum over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .graph_writer import GraphWriter
from .network_shape import Arrays, Body, Box, Changes, Disturb, Draw, Moved, he_bound
from .window_moves import added_up, moves_of_windows, window_box

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Convolution(Body):
    filters: int = 32
    width: int = 3

    has_boxes: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True

    def rules(self, length: int) -> tuple[tuple[bool, str], ...]:
        return (
            (self.filters >= 1, "filters must be at least 1"),
            (1 <= self.width <= length, "width must be between 1 and length"),
        )

    def features(self, length: int) -> int:
        return self.filters

    def weights(self, length: int, draw: Draw) -> dict[str, torch.Tensor]:
        import torch

        bound = he_bound(self.embedding * self.width)
        weight = draw(bound, self.filters, self.embedding, self.width)
        return {"conv.weight": weight, "conv.bias": torch.zeros(self.filters)}

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        import torch
        from torch.nn import functional

        channels = disturbed(embedded).transpose(1, 2)
        windows = functional.conv1d(channels, weights["conv.weight"], weights["conv.bias"])
        return disturbed(torch.relu(windows).amax(dim=2))

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box:
        return window_box(weights["conv.weight"], weights["conv.bias"], low, high)

    def moved(self, weights: Mapping[str, torch.Tensor], vectors: torch.Tensor, changes: Changes) -> Moved:
        return added_up(moves_of_windows(weights["conv.weight"], weights["conv.bias"], vectors, changes))

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        graph.node("Transpose", ["embedded"], "channels", "transpose", perm=[0, 2, 1])
        graph.node("Conv", ["channels", *graph.copy(weights, "conv.weight", "conv.bias")], "windows", "conv")
        graph.node("Relu", ["windows"], "active_windows", "conv_relu")
        graph.node("ReduceMax", ["active_windows", graph.integers("axes", 2)], "features", "maximum", keepdims=0)
