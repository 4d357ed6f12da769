"""Which elements of the cut are the same number in a text for certain, whatever float64 makes of them: equal phrases.

Two elements have one name only if the same operation makes them of inputs with the same names, and numbers of the table
have one name only if they are one number of it. So equal names are equal numbers; nothing is said of other elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import (
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from swapproof.encodings.walk import Meaning, forward, gather

Names = NDArray[np.int64]


@dataclass(eq=False)
class Naming:
    """Of one text; names are not used again by other nodes."""

    tokens: Names
    used: int = 0

    def look_up(self, layer: Embedding, inputs: Sequence[Names], at: At) -> Names:
        width = layer.table.shape[1]
        found: Names = self.tokens[layer.positions.reshape(-1)][:, None] * width + np.arange(width)
        return found.reshape(1, *at.node.shape)

    def hold(self, layer: Constant, inputs: Sequence[Names], at: At) -> Names:
        return distinct(layer.value.reshape(1, -1)).reshape(1, *at.node.shape)

    def rearrange(self, layer: Rearrangement, inputs: Sequence[Names], at: At) -> Names:
        return gather(layer, inputs)

    def multiply(self, layer: Affine, inputs: Sequence[Names], at: At) -> Names:
        terms, outputs = layer.weight.shape
        blocks: dict[bytes, int] = {}
        rows = [blocks.setdefault(row.tobytes(), len(blocks)) for row in inputs[0].reshape(-1, terms)]
        found: Names = np.array(rows, dtype=np.int64)[:, None] * outputs + np.arange(outputs)
        return found.reshape(1, *at.node.shape)

    def scale(self, layer: Scaling, inputs: Sequence[Names], at: At) -> Names:
        numbers = [np.broadcast_to(part, at.node.shape) for part in (layer.multiply, layer.divide, layer.add)]
        return distinct(np.stack([inputs[0].reshape(-1), *(part.reshape(-1) for part in numbers)])).reshape(
            1, *at.node.shape
        )

    def add_up(self, layer: Sum, inputs: Sequence[Names], at: At) -> Names:
        return distinct(np.stack([x.reshape(-1) for x in inputs])).reshape(1, *at.node.shape)

    def finish(self, at: At, found: Names) -> Names:
        if isinstance(at.node.layer, Rearrangement):
            return found
        named = found + self.used
        self.used = int(named.max(initial=self.used)) + 1
        return named


def distinct(columns: NDArray[Any]) -> Names:
    """Of every column [m, n] the number it has among those that are different."""
    return np.unique(columns, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


NAMES: Meaning[Names] = Meaning(
    "name of elements",
    {
        Embedding: Naming.look_up,
        Constant: Naming.hold,
        Rearrangement: Naming.rearrange,
        Affine: Naming.multiply,
        Scaling: Naming.scale,
        Sum: Naming.add_up,
    },
    dict.fromkeys((Rectifier, Maximum, *SMOOTH), "it is not affine"),
)


def names_at_cut(network: Network, tokens: Sequence[int]) -> Names:
    """[width]: of a text."""
    naming = Naming(np.array(tokens, dtype=np.int64))
    known = forward(network, NAMES, naming, wanted=network.cut, finish=naming.finish)
    found = [known[index].reshape(-1) for index in network.cut]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
