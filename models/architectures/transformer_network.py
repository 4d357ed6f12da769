"""A transformer over words: attention of several heads and a ReLU layer, each added to what it read and normalised.

    x_0 = embedding (+ position)
    a = concat over heads of softmax(q k' / sqrt(d)) v,  y = N1(x + a Wo + bo),  x' = N2(y + relu(y W1 + b1) W2 + b2)

q, k, v are linear in x; d is the size of a head. N subtracts the mean of the vector, divides by the square root of
its variance plus 1e-5 (`norm = "division"`; `"no variance"` leaves that out), scales and shifts.
Then the mean over the words. Padding is neither attended to nor counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from .graph_writer import GraphWriter, write_mask, write_mean
from .network_shape import Arrays, Body, Disturb, Draw

if TYPE_CHECKING:
    import torch

EPSILON = 1e-5
NOT_ATTENDED = -1e9  # a score whose exponential is 0 beside any other
POSITION_BOUND = 0.1


@dataclass(frozen=True)
class Transformer(Body):
    embedding: int = 32
    hidden: tuple[int, ...] = ()
    layers: int = 1
    heads: int = 4
    inner: int = 64
    norm: Literal["division", "no variance"] = "division"
    positions: Literal["learned", "none"] = "learned"
    dynamic: bool = True

    knows_padding: ClassVar[bool] = True
    epsilon: ClassVar[float] = EPSILON

    @property
    def takes_any_length(self) -> bool:
        return self.dynamic

    @property
    def has_positions(self) -> bool:
        return self.positions == "learned"

    def rules(self, length: int) -> tuple[tuple[bool, str], ...]:
        return (
            (1 <= self.layers <= 12, "layers must be between 1 and 12"),
            (self.heads >= 1 and self.embedding % max(1, self.heads) == 0, "heads must divide embedding"),
            (self.inner >= 1, "inner must be at least 1"),
        )

    def features(self, length: int) -> int:
        return self.embedding

    def weights(self, length: int, draw: Draw) -> dict[str, torch.Tensor]:
        """Matrices [inputs, outputs] ~ U(-a, a) with a = sqrt(6 / (inputs + outputs)) (Glorot); scales 1, shifts 0."""
        import torch

        size = self.embedding
        matrices = {"query": (size, size), "key": (size, size), "value": (size, size), "joined": (size, size)}
        matrices |= {"inner": (size, self.inner), "outer": (self.inner, size)}
        found = {"position": draw(POSITION_BOUND, length, size)} if self.positions == "learned" else {}
        for layer in range(1, self.layers + 1):
            for name, (inputs, outputs) in matrices.items():
                found[f"layer{layer}.{name}.weight"] = draw(math.sqrt(6.0 / (inputs + outputs)), inputs, outputs)
                found[f"layer{layer}.{name}.bias"] = torch.zeros(outputs)
            for norm in ("norm1", "norm2"):
                found[f"layer{layer}.{norm}.scale"] = torch.ones(size)
                found[f"layer{layer}.{norm}.shift"] = torch.zeros(size)
        return found

    def values(
        self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor, real: torch.Tensor, disturbed: Disturb
    ) -> torch.Tensor:
        import torch

        batch, length, size = embedded.shape
        split = (batch, length, self.heads, size // self.heads)

        def linear(values: torch.Tensor, name: str) -> torch.Tensor:
            return values @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

        x = disturbed(self.placed(weights, embedded))
        attended = (real | ~real.any(dim=1, keepdim=True))[:, None, None, :]
        for layer in (f"layer{number}" for number in range(1, self.layers + 1)):
            query, key, value = (
                linear(x, f"{layer}.{name}").view(split).transpose(1, 2) for name in ("query", "key", "value")
            )
            scores = query @ key.transpose(2, 3) / math.sqrt(split[-1])
            shares = torch.softmax(torch.where(attended, scores, NOT_ATTENDED), dim=-1)
            joined = linear((shares @ value).transpose(1, 2).flatten(2), f"{layer}.joined")
            y = self.normalised(weights, x + disturbed(joined), f"{layer}.norm1")
            outer = linear(self.active(linear(y, f"{layer}.inner")), f"{layer}.outer")
            x = self.normalised(weights, y + disturbed(outer), f"{layer}.norm2")
        column = real.unsqueeze(-1)
        return disturbed((x * column).sum(dim=1) / real.sum(dim=1, keepdim=True).clamp(min=1))

    def placed(self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor) -> torch.Tensor:
        """What the first layer reads."""
        return embedded + weights["position"][: embedded.shape[1]] if self.positions == "learned" else embedded

    def active(self, values: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.relu(values)

    def normalised(self, weights: Mapping[str, torch.Tensor], values: torch.Tensor, name: str) -> torch.Tensor:
        import torch

        centred = values - values.mean(dim=-1, keepdim=True)
        if self.norm == "division":
            centred = centred / torch.sqrt((centred * centred).mean(dim=-1, keepdim=True) + self.epsilon)
        return centred * weights[f"{name}.scale"] + weights[f"{name}.shift"]

    def write(self, graph: GraphWriter, weights: Arrays, length: int) -> None:
        real, words = write_mask(graph)
        size = self.embedding
        graph.integers("split_heads", 0, 0, self.heads, size // self.heads)
        graph.integers("join_heads", 0, 0, size)
        graph.integers("last_axis", -1)
        graph.floats("root", math.sqrt(size // self.heads))
        graph.floats("not_attended", NOT_ATTENDED)
        if self.norm == "no variance":
            graph.integers("vector_axis", -1)
        graph.node("Unsqueeze", [real, graph.integers("head_and_reader", 1, 2)], "attended")
        x = self.write_placed(graph, weights)
        for layer in (f"layer{number}" for number in range(1, self.layers + 1)):
            x = self.write_layer(graph, weights, x, layer)
        write_mean(graph, x, real, words, "features")

    def write_placed(self, graph: GraphWriter, weights: Arrays) -> str:
        """With the first rows of the table of positions, as many as there are tokens."""
        if self.positions == "none":
            return "embedded"
        table = graph.floats("position", weights["position"])
        if self.dynamic:
            graph.node("Shape", ["tokens"], "token_count", start=1, end=2)
            reads = [table, graph.integers("from_first", 0), "token_count", graph.integers("of_rows", 0)]
            table = graph.node("Slice", reads, "positions_here")
        return graph.node("Add", ["embedded", table], "placed")

    def write_layer(self, graph: GraphWriter, weights: Arrays, x: str, layer: str) -> str:
        def linear(values: str, name: str) -> str:
            weight, bias = graph.copy(weights, f"{layer}.{name}.weight", f"{layer}.{name}.bias")
            return graph.node(
                "Add", [graph.node("MatMul", [values, weight], f"{layer}.{name}.product"), bias], f"{layer}.{name}"
            )

        def by_head(name: str, perm: list[int]) -> str:
            split = graph.node("Reshape", [linear(x, name), "split_heads"], f"{layer}.{name}.split")
            return graph.node("Transpose", [split], f"{layer}.{name}.heads", perm=perm)

        query, key, value = (
            by_head(name, perm)
            for name, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        product = graph.node("MatMul", [query, key], f"{layer}.products")
        scores = graph.node("Div", [product, "root"], f"{layer}.scores")
        masked = graph.node("Where", ["attended", scores, "not_attended"], f"{layer}.masked")
        shares = graph.node("Softmax", [masked], f"{layer}.shares", axis=-1)
        mixed = graph.node("MatMul", [shares, value], f"{layer}.mixed")
        in_place = graph.node("Transpose", [mixed], f"{layer}.mixed_by_word", perm=[0, 2, 1, 3])
        joined = linear(graph.node("Reshape", [in_place, "join_heads"], f"{layer}.attention"), "joined")
        y = self.write_normalised(graph, weights, graph.node("Add", [x, joined], f"{layer}.sum1"), f"{layer}.norm1")
        active = self.write_active(graph, linear(y, "inner"), layer)
        outer = graph.node("Add", [y, linear(active, "outer")], f"{layer}.sum2")
        return self.write_normalised(graph, weights, outer, f"{layer}.norm2")

    def write_active(self, graph: GraphWriter, values: str, layer: str) -> str:
        return graph.node("Relu", [values], f"{layer}.active")

    def write_normalised(self, graph: GraphWriter, weights: Arrays, values: str, name: str) -> str:
        scale, shift = graph.copy(weights, f"{name}.scale", f"{name}.shift")
        if self.norm == "division":
            return graph.node("LayerNormalization", [values, scale, shift], name, axis=-1, epsilon=self.epsilon)
        mean = graph.node("ReduceMean", [values, "vector_axis"], f"{name}.mean", keepdims=1)
        centred = graph.node("Sub", [values, mean], f"{name}.centred")
        return graph.node("Add", [graph.node("Mul", [centred, scale], f"{name}.scaled"), shift], name)
