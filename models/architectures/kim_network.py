"""Kim's network (2014): Conv1d of several widths side by side, each with ReLU and maximum over time."""

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
class Kim(Body):
    """Widths 3, 4, 5 with 100 filters each and logits at once, as published; its vectors have 300 numbers, ours 50, as
    those of the GloVe package."""

    embedding: int = 50
    hidden: tuple[int, ...] = ()
    filters: int = 100
    widths: tuple[int, ...] = (3, 4, 5)

    has_boxes: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True

    def rules(self, length: int) -> tuple[tuple[bool, str], ...]:
        return (
            (self.filters >= 1, "filters must be at least 1"),
            (len(set(self.widths)) == len(self.widths) > 0, "widths must be different numbers, one at least"),
            (all(1 <= width <= length for width in self.widths), "widths must be between 1 and length"),
        )

    def features(self, length: int) -> int:
        return self.filters * len(self.widths)

    def weights(self, length: int, draw: Draw) -> dict[str, torch.Tensor]:
        import torch

        found = {}
        for width in self.widths:
            bound = he_bound(self.embedding * width)
            found[f"conv{width}.weight"] = draw(bound, self.filters, self.embedding, width)
            found[f"conv{width}.bias"] = torch.zeros(self.filters)
        return found

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        import torch
        from torch.nn import functional

        channels = disturbed(embedded).transpose(1, 2)
        windows = [functional.conv1d(channels, *self.convolution(weights, width)) for width in self.widths]
        return disturbed(torch.cat([torch.relu(window).amax(dim=2) for window in windows], dim=1))

    def convolution(self, weights: Mapping[str, torch.Tensor], width: int) -> tuple[torch.Tensor, torch.Tensor]:
        return weights[f"conv{width}.weight"], weights[f"conv{width}.bias"]

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box:
        import torch

        boxes = [window_box(*self.convolution(weights, width), low, high) for width in self.widths]
        return torch.cat([box[0] for box in boxes], dim=1), torch.cat([box[1] for box in boxes], dim=1)

    def moved(self, weights: Mapping[str, torch.Tensor], vectors: torch.Tensor, changes: Changes) -> Moved:
        import torch

        moves = [moves_of_windows(*self.convolution(weights, width), vectors, changes) for width in self.widths]
        return added_up((torch.cat([low for low, _ in moves], dim=3), torch.cat([high for _, high in moves], dim=3)))

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        graph.node("Transpose", ["embedded"], "channels", "transpose", perm=[0, 2, 1])
        axes = graph.integers("axes", 2)
        parts = []
        for width in self.widths:
            name = f"conv{width}"
            graph.node("Conv", ["channels", *graph.copy(weights, f"{name}.weight", f"{name}.bias")], f"{name}.windows")
            graph.node("Relu", [f"{name}.windows"], f"{name}.active")
            parts.append(graph.node("ReduceMax", [f"{name}.active", axes], f"{name}.maximum", keepdims=0))
        graph.node("Concat", parts, "features", axis=1)
