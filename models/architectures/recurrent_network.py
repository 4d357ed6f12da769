"""LSTM or GRU in one or both directions, then the mean, the maximum or the last state over the words of a text.

With sigmoid s and product *, W, R, b of each gate, and a state h (and c) that begins at zero:

    LSTM    i, f, o = s(W x + R h + b)    g = tanh(W x + R h + b)    c' = f * c + i * g    h' = o * tanh(c')
    GRU     r, z = s(W x + R h + b)    n = tanh(W x + b + r * (R h + b'))    h' = (1 - z) * n + z * h

Padding comes after the words and is never read: the number of words is the length of the sequence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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

        words = real.sum(dim=1).clamp(min=1)
        read = disturbed(embedded)
        found = []
        for direction in self.directions:
            sequence = read if direction == "forward" else turned(read, words)
            states = self.states(sequence, [weights[f"{direction}.{part}"] for part in PARTS])
            if self.pooling == "last":
                found.append(states[torch.arange(len(states)), words - 1])
            else:
                found.append(states if direction == "forward" else turned(states, words))
        joined = torch.cat(found, dim=-1)
        if self.pooling == "last":
            return disturbed(joined)
        joined = joined * (torch.arange(real.shape[1]) < words.unsqueeze(1)).unsqueeze(-1)
        column = real.unsqueeze(-1)
        if self.pooling == "max":
            return disturbed(torch.where(column, joined, BELOW_EVERY_STATE).amax(dim=1))
        return disturbed((joined * column).sum(dim=1) / words.unsqueeze(-1))

    def states(self, sequence: torch.Tensor, flat: list[torch.Tensor]) -> torch.Tensor:
        """[batch, length, units] after each word, padding read like words. Packed sequences, which leave padding out,
        take torch's path of one operation after the other: three to five times as long."""
        import torch

        zero = sequence.new_zeros(1, len(sequence), self.units)
        found: torch.Tensor
        if self.cell == "LSTM":
            found, _, _ = torch.lstm(sequence, [zero, zero], flat, True, 1, 0.0, True, False, True)
        else:
            found, _ = torch.gru(sequence, zero, flat, True, 1, 0.0, True, False, True)
        return found

    def box(
        self, weights: Mapping[str, torch.Tensor], low: torch.Tensor, high: torch.Tensor, real: torch.Tensor
    ) -> Box | None:
        """Intervals of an LSTM's states, word by word: sigmoid and tanh rise, products have their ends at corners."""
        import torch

        if self.cell != "LSTM":
            return None
        least, most = interval_states(weights, self.directions, low, high, real)
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


def turned(values: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """[batch, length, numbers] with the words of every text in reverse, padding where it was."""
    import torch

    place = torch.arange(values.shape[1])
    source = words.unsqueeze(1) - 1 - place
    source = torch.where(source >= 0, source, place)
    return values.gather(1, source.unsqueeze(-1).expand(-1, -1, values.shape[2]))


def interval_states(
    weights: Mapping[str, torch.Tensor],
    directions: Sequence[str],
    low: torch.Tensor,
    high: torch.Tensor,
    real: torch.Tensor,
) -> Box:
    """Low and high ends [batch, length, directions * units] of h after each word; padding leaves the state as it is.

    The directions go side by side, and what the gates read of the words is one product for all of them.
    """
    import torch

    def read(direction: str, values: torch.Tensor) -> torch.Tensor:
        return values if direction == "forward" else values.flip(1)

    middles, reaches, matrices = [], [], []
    for direction in directions:
        inner, state, bias_input, bias_state = (weights[f"{direction}.{part}"] for part in PARTS)
        middles.append(read(direction, (low + high) / 2 @ inner.T + (bias_input + bias_state)))
        reaches.append(read(direction, (high - low) / 2 @ inner.abs().T))
        matrices.append(state.T)
    matrix = torch.stack(matrices)
    size = matrix.abs()
    by_word = zip(
        torch.stack(middles).unbind(2),
        torch.stack(reaches).unbind(2),
        torch.stack([read(direction, real.unsqueeze(-1)) for direction in directions]).unbind(2),
        strict=True,
    )
    zero = low.new_zeros(len(directions), len(low), matrix.shape[1])
    h, c = (zero, zero), (zero, zero)
    lows, highs = [], []
    for middle, reach, here in by_word:
        middle = torch.baddbmm(middle, (h[0] + h[1]) / 2, matrix)
        reach = torch.baddbmm(reach, (h[1] - h[0]) / 2, size)
        gates = [end.chunk(4, dim=2) for end in (middle - reach, middle + reach)]
        i, f, o = (tuple(torch.sigmoid(end[gate]) for end in gates) for gate in (0, 1, 3))
        g = tuple(torch.tanh(end[2]) for end in gates)
        kept, new = product(f, c), product(i, g)
        memory = (kept[0] + new[0], kept[1] + new[1])
        shown = product(o, (torch.tanh(memory[0]), torch.tanh(memory[1])))
        h = (torch.where(here, shown[0], h[0]), torch.where(here, shown[1], h[1]))
        c = (torch.where(here, memory[0], c[0]), torch.where(here, memory[1], c[1]))
        lows.append(h[0])
        highs.append(h[1])

    def by_text(states: list[torch.Tensor]) -> torch.Tensor:
        found = torch.stack(states, dim=2)
        return torch.cat([read(direction, one) for direction, one in zip(directions, found, strict=True)], dim=2)

    return by_text(lows), by_text(highs)


def product(share: tuple[torch.Tensor, ...], values: tuple[torch.Tensor, ...]) -> Box:
    """Ends of x y, x >= 0 between the ends of `share` and y between those of `values`."""
    import torch

    low, high = values
    return torch.where(low < 0, share[1], share[0]) * low, torch.where(high < 0, share[0], share[1]) * high


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
