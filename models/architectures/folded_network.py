"""The MSR paper's convolutional network (La Malfa et al. 2020): a text folded into a square, Conv2d, ReLU, mean.

Word t stands in row t // columns and column t % columns, so that a window of 3 x 3 reads three words of three rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .graph_writer import GraphWriter
from .network_shape import Arrays, Body, Box, Changes, Disturb, Draw, Moved, he_bound
from .window_moves import added_up

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Folded(Body):
    """As released: 100 words of 50-d GloVe in 10 columns, 150 filters of 3 x 3, 100 ReLUs. Its vectors are those of
    GloVe / (2 * greatest number); here `vectors = "glove"` takes them as they are, and padding is 0."""

    embedding: int = 50
    hidden: tuple[int, ...] = (100,)
    filters: int = 150
    width: int = 3
    columns: int = 10

    has_boxes: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True

    def rules(self, length: int) -> tuple[tuple[bool, str], ...]:
        return (
            (self.filters >= 1, "filters must be at least 1"),
            (self.columns >= 1 and length % max(1, self.columns) == 0, "columns must divide length"),
            (
                1 <= self.width <= min(self.columns, length // max(1, self.columns)),
                "width must be between 1 and the number of columns, and of rows",
            ),
        )

    def features(self, length: int) -> int:
        return self.filters

    def weights(self, length: int, draw: Draw) -> dict[str, torch.Tensor]:
        import torch

        bound = he_bound(self.embedding * self.width * self.width)
        weight = draw(bound, self.filters, self.embedding, self.width, self.width)
        return {"conv.weight": weight, "conv.bias": torch.zeros(self.filters)}

    def folded(self, vectors: torch.Tensor) -> torch.Tensor:
        """[batch, length, embedding] -> [batch, embedding, rows, columns]."""
        return vectors.reshape(len(vectors), -1, self.columns, vectors.shape[2]).permute(0, 3, 1, 2)

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        import torch
        from torch.nn import functional

        windows = functional.conv2d(self.folded(disturbed(embedded)), weights["conv.weight"], weights["conv.bias"])
        return disturbed(torch.relu(windows).mean(dim=(2, 3)))

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box:
        """Centre and radius through the convolution; ReLU and mean rise with what they read."""
        import torch
        from torch.nn import functional

        weight = weights["conv.weight"]
        middle = functional.conv2d(self.folded((low + high) / 2), weight, weights["conv.bias"])
        reach = functional.conv2d(self.folded((high - low) / 2), weight.abs())
        return torch.relu(middle - reach).mean(dim=(2, 3)), torch.relu(middle + reach).mean(dim=(2, 3))

    def moved(self, weights: Mapping[str, torch.Tensor], vectors: torch.Tensor, changes: Changes) -> Moved:
        """With d_t the move of window t by one swap, n windows: a feature rises by at most the sum of max(0, d_t) / n
        and sinks by at most that of max(0, -d_t) / n, for a ReLU moves no further than what it reads."""
        rows, columns = vectors.shape[1] // self.columns - self.width + 1, self.columns - self.width + 1
        low = high = changes.vectors.new_zeros(*changes.vectors.shape[:-1], self.filters)
        for down in range(self.width):
            for right in range(self.width):
                row, column = changes.places // self.columns - down, changes.places % self.columns - right
                inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
                move = changes.vectors @ weights["conv.weight"][:, :, down, right].T * inside[:, :, None, None]
                low, high = low + move.clamp(max=0.0), high + move.clamp(min=0.0)
        return added_up((low / (rows * columns), high / (rows * columns)))

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        square = graph.integers("square", 0, length // self.columns, self.columns, self.embedding)
        graph.node("Reshape", ["embedded", square], "rows_and_columns")
        graph.node("Transpose", ["rows_and_columns"], "channels", perm=[0, 3, 1, 2])
        graph.node("Conv", ["channels", *graph.copy(weights, "conv.weight", "conv.bias")], "windows", "conv")
        graph.node("Relu", ["windows"], "active_windows")
        graph.node("GlobalAveragePool", ["active_windows"], "means")
        graph.node("Flatten", ["means"], "features", axis=1)
