"""LSTM or GRU in one or both directions, then the mean, the maximum or the last state over the words of a text.

With sigmoid s and product *, W, R, b of each gate, and a state h (and c) that begins at zero:

    LSTM    i, f, o = s(W x + R h + b)    g = tanh(W x + R h + b)    c' = f * c + i * g    h' = o * tanh(c')
    GRU     r, z = s(W x + R h + b)    n = tanh(W x + b + r * (R h + b'))    h' = (1 - z) * n + z * h

Padding comes after the words and is never read: the number of words is the length of the sequence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .graph_writer import GraphWriter, write_mask, write_mean
from .network_shape import Arrays, Body, Box, Disturb, Draw

if TYPE_CHECKING:
    import torch

PARTS = ("weight_input", "weight_state", "bias_input", "bias_state")
# ONNX lists the gates i, o, f, c and z, r, h; torch i, f, g, o and r, z, n. These are torch's, in ONNX's order.
ONNX_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}
BELOW_EVERY_STATE = -2.0  # states lie between -1 and 1, up to the error of the runtime's tanh


@dataclass(frozen=True)
class Recurrent(Body):
    embedding: int = 50
    hidden: tuple[int, ...] = ()
    units: int = 150
    pooling: Literal["mean", "max", "last"] = "mean"
    dynamic: bool = True

    knows_padding: ClassVar[bool] = True
    cell: ClassVar[Literal["LSTM", "GRU"]]
    directions: ClassVar[tuple[str, ...]]

    @property
    def takes_any_length(self) -> bool:
        return self.dynamic

    @property
    def state_matrices(self) -> tuple[str, ...]:
        return tuple(f"{direction}.weight_state" for direction in self.directions)

    def rules(self, length: int) -> tuple[tuple[bool, str], ...]:
        return ((self.units >= 1, "units must be at least 1"),)

    def features(self, length: int) -> int:
        return self.units * len(self.directions)

    def weights(self, length: int, draw: Draw) -> dict[str, torch.Tensor]:
        """U(-a, a) with a = 1 / sqrt(units), as torch draws them."""
        gates = self.units * len(ONNX_GATES[self.cell])
        sizes = ((gates, self.embedding), (gates, self.units), (gates,), (gates,))
        bound = 1.0 / math.sqrt(self.units)
        return {
            f"{direction}.{part}": draw(bound, *size)
            for direction in self.directions
            for part, size in zip(PARTS, sizes, strict=True)
        }

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        import torch
        from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

        words = real.sum(dim=1).clamp(min=1)
        packed = pack_padded_sequence(disturbed(embedded), words, batch_first=True, enforce_sorted=False)
        flat = [weights[f"{direction}.{part}"] for direction in self.directions for part in PARTS]
        zero = embedded.new_zeros(len(self.directions), len(embedded), self.units)
        both = len(self.directions) == 2
        if self.cell == "LSTM":
            states, last, _ = torch.lstm(packed.data, packed.batch_sizes, [zero, zero], flat, True, 1, 0.0, False, both)
        else:
            states, last = torch.gru(packed.data, packed.batch_sizes, zero, flat, True, 1, 0.0, False, both)
        if self.pooling == "last":
            assert packed.unsorted_indices is not None  # enforce_sorted=False keeps them
            return disturbed(last[:, packed.unsorted_indices].transpose(0, 1).flatten(1))
        again = PackedSequence(states, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        states, _ = pad_packed_sequence(again, batch_first=True, total_length=real.shape[1])
        column = real.unsqueeze(-1)
        if self.pooling == "max":
            return disturbed(torch.where(column, states, BELOW_EVERY_STATE).amax(dim=1))
        return disturbed((states * column).sum(dim=1) / words.unsqueeze(-1))

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box | None:
        """Intervals of an LSTM's states, word by word: sigmoid and tanh rise, products have their ends at corners."""
        import torch

        if self.cell != "LSTM":
            return None
        length = real.shape[1]
        ends: list[list[torch.Tensor]] = [[], []]
        for direction in self.directions:
            order = range(length) if direction == "forward" else range(length - 1, -1, -1)
            states = interval_states(weights, direction, low, high, real, order)
            for end, found in zip(ends, zip(*states, strict=True), strict=True):
                end.append(torch.stack(found if direction == "forward" else found[::-1], dim=1))
        least, most = (torch.cat(end, dim=2) for end in ends)
        column = real.unsqueeze(-1)
        if self.pooling == "mean":
            words = real.sum(dim=1, keepdim=True).clamp(min=1)
            return (least * column).sum(dim=1) / words, (most * column).sum(dim=1) / words
        if self.pooling == "max":
            return tuple(torch.where(column, end, BELOW_EVERY_STATE).amax(dim=1) for end in (least, most))  # type: ignore[return-value]
        # Behind the last word a state stays as it is; read backwards the last state is that of the first word.
        first, last = torch.split(least, self.units, dim=2), torch.split(most, self.units, dim=2)
        places = [-1 if direction == "forward" else 0 for direction in self.directions]
        return (
            torch.cat([end[:, place] for end, place in zip(first, places, strict=True)], dim=1),
            torch.cat([end[:, place] for end, place in zip(last, places, strict=True)], dim=1),
        )

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        real, words = write_mask(graph)
        graph.node("Transpose", ["embedded"], "sequence", perm=[1, 0, 2])
        cell: dict[str, Any] = {"hidden_size": self.units}
        cell["direction"] = "bidirectional" if len(self.directions) == 2 else "forward"
        if self.cell == "GRU":
            cell["linear_before_reset"] = 1
        reads = ["sequence", *(graph.floats(f"cell.{name}", self.onnx_array(weights, name)) for name in "WRB"), words]
        if self.pooling == "last":
            graph.node(self.cell, reads, "- last", "cell", **cell)
            graph.node("Transpose", ["last"], "last_by_text", perm=[1, 0, 2])
            graph.node("Flatten", ["last_by_text"], "features", axis=1)
            return
        graph.node(self.cell, reads, "states", "cell", **cell)  # [length, directions, batch, units]
        graph.node("Transpose", ["states"], "states_by_text", perm=[2, 0, 1, 3])
        flat = graph.integers("flat_states", 0, 0, self.features(length))
        graph.node("Reshape", ["states_by_text", flat], "values")
        if self.pooling == "mean":
            write_mean(graph, "values", real, words, "features")
            return
        graph.node("Unsqueeze", [real, graph.integers("last_axis", -1)], "real_column")
        graph.node("Where", ["real_column", "values", graph.floats("below", BELOW_EVERY_STATE)], "masked")
        graph.node("ReduceMax", ["masked", "over_time"], "features", "maximum", keepdims=0)

    def onnx_array(self, weights: Arrays, name: str) -> NDArray[np.float32]:
        """W, R or B as the ONNX operator wants it: directions first, gates in its own order."""
        parts = {"W": ("weight_input",), "R": ("weight_state",), "B": ("bias_input", "bias_state")}[name]
        order = ONNX_GATES[self.cell]
        found = []
        for direction in self.directions:
            gates = [np.split(weights[f"{direction}.{part}"], len(order)) for part in parts]
            found.append(np.concatenate([by_gate[gate] for by_gate in gates for gate in order]))
        return np.stack(found)


def interval_states(
    weights: Mapping[str, torch.Tensor],
    direction: str,
    low: torch.Tensor,
    high: torch.Tensor,
    real: torch.Tensor,
    order: range,
) -> list[Box]:
    """Low and high ends [batch, units] of h after each word, in this order; padding leaves the state as it is."""
    import torch

    inner, state, bias_input, bias_state = (weights[f"{direction}.{part}"] for part in PARTS)
    units = state.shape[1]
    zero = low.new_zeros(len(low), units)
    h, c = (zero, zero), (zero, zero)
    found = []
    for place in order:
        middle = (low[:, place] + high[:, place]) @ inner.T / 2 + (h[0] + h[1]) @ state.T / 2 + bias_input + bias_state
        reach = (high[:, place] - low[:, place]) @ inner.abs().T / 2 + (h[1] - h[0]) @ state.abs().T / 2
        gates = [torch.split(end, units, dim=1) for end in (middle - reach, middle + reach)]
        i, f, o = (tuple(torch.sigmoid(end[gate]) for end in gates) for gate in (0, 1, 3))
        g = tuple(torch.tanh(end[2]) for end in gates)
        kept, new = product(f, c), product(i, g)
        memory = (kept[0] + new[0], kept[1] + new[1])
        shown = product(o, (torch.tanh(memory[0]), torch.tanh(memory[1])))
        here = real[:, place, None]
        h = (torch.where(here, shown[0], h[0]), torch.where(here, shown[1], h[1]))
        c = (torch.where(here, memory[0], c[0]), torch.where(here, memory[1], c[1]))
        found.append(h)
    return found


def product(a: tuple[torch.Tensor, ...], b: tuple[torch.Tensor, ...]) -> Box:
    """Ends of x y, x between the ends of a and y between those of b."""
    import torch

    corners = torch.stack([x * y for x in a for y in b])
    return corners.amin(dim=0), corners.amax(dim=0)


@dataclass(frozen=True)
class Lstm(Recurrent):
    has_boxes: ClassVar[bool] = True
    cell = "LSTM"
    directions = ("forward",)


@dataclass(frozen=True)
class BiLstm(Recurrent):
    has_boxes: ClassVar[bool] = True
    cell = "LSTM"
    directions = ("forward", "backward")


@dataclass(frozen=True)
class Gru(Recurrent):
    cell = "GRU"
    directions = ("forward",)


@dataclass(frozen=True)
class BiGru(Recurrent):
    cell = "GRU"
    directions = ("forward", "backward")
