"""Embedding, Conv1d, ReLU, maximum over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .graph_writer import GraphWriter
from .network_shape import Arrays, Body, Box, Changes, Disturb, Draw, Moved, he_bound

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
        """Centre and radius through the convolution; ReLU and maximum rise with what they read."""
        import torch
        from torch.nn import functional

        centre, radius = ((low + high) / 2).transpose(1, 2), ((high - low) / 2).transpose(1, 2)
        middle = functional.conv1d(centre, weights["conv.weight"], weights["conv.bias"])
        reach = functional.conv1d(radius, weights["conv.weight"].abs())
        return torch.relu(middle - reach).amax(dim=2), torch.relu(middle + reach).amax(dim=2)

    def moved(self, weights: Mapping[str, torch.Tensor], vectors: torch.Tensor, changes: Changes) -> Moved:
        """With d_t the move of window t by one swap, and t* the window that wins before any: a feature rises by at most
        max(0, max over t of d_t), and sinks by at most max(0, -d_t*). Both add up, for ReLU and maximum move no further
        than what they read."""
        import torch
        from torch.nn import functional

        weight = weights["conv.weight"]
        windows = functional.conv1d(vectors.transpose(1, 2), weight, weights["conv.bias"])
        winner = windows.argmax(dim=2)
        low = high = changes.vectors.new_zeros(*changes.vectors.shape[:-1], self.filters)
        for offset in range(self.width):
            window = (changes.places - offset)[:, :, None, None]
            inside = (window >= 0) & (window < windows.shape[2])
            move = changes.vectors @ weight[:, :, offset].T * inside
            high = torch.maximum(high, move)
            low = torch.where(window == winner[:, None, None, :], move.clamp(max=0.0), low)

        def through(matrix: torch.Tensor) -> Box:
            rows = (matrix if matrix.dim() == 2 else matrix.unsqueeze(1)).transpose(-1, -2)
            up, down = rows.clamp(min=0.0), rows.clamp(max=0.0)
            return low @ up + high @ down, high @ up + low @ down

        return through

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        graph.node("Transpose", ["embedded"], "channels", "transpose", perm=[0, 2, 1])
        graph.node("Conv", ["channels", *graph.copy(weights, "conv.weight", "conv.bias")], "windows", "conv")
        graph.node("Relu", ["windows"], "active_windows", "conv_relu")
        graph.node("ReduceMax", ["active_windows", graph.integers("axes", 2)], "features", "maximum", keepdims=0)
