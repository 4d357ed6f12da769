"""The roots of what counts swaps in the order of FORMAT section 7: ascending by their number among elements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.canonical_layers import Bends, Greatest
from swapproof.encodings.network import Constant, Maximum, Network, Rearrangement, Rectifier

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Found:
    """Of n elements: columns and numbers [n, most] of their roots, -1 for none, but for constants."""

    columns: Indices
    numbers: Indices


@lru_cache(maxsize=16)
def ordered_roots(network: Network, index: int) -> Indices:
    """Of a node that counts swaps: the columns [E, most] in the cut of all that are no constants, each once, and -1
    where an element has fewer. A constant is never above the greatest l of a window, nor that of a rectifier."""
    elements = np.arange(network.nodes[index].size)
    found = Reader(network).below(index, elements, elements + Reader(network).starts[index])
    order = np.argsort(np.where(found.numbers < 0, np.iinfo(np.int64).max, found.numbers), axis=1, kind="stable")
    columns, numbers = (np.take_along_axis(part, order, axis=1) for part in (found.columns, found.numbers))
    columns[:, 1:][numbers[:, 1:] == numbers[:, :-1]] = -1
    return np.asarray(columns)


class Reader:
    """Goes from elements of a node back to their roots, beside the canonical network, which numbers them."""

    def __init__(self, network: Network) -> None:
        canonical = canonical_of(network)
        if canonical.form is None:
            raise ValueError("no canonical network")
        sizes = [len(canonical.form.constants), *(step.size for step in canonical.form.steps)]
        first = np.cumsum(sizes).tolist()
        self.network = network
        self.steps: dict[int, Any] = {n: canonical.form.steps[layer] for n, layer in canonical.layer_of.items()}
        self.starts: dict[int, int] = {n: first[layer] for n, layer in canonical.layer_of.items()}

    def below(self, n: int, elements: Indices, numbers: Indices) -> Found:
        """Of elements of a node that have these numbers."""
        node = self.network.nodes[n]
        if n in self.network.cut_parts:
            columns = elements + self.network.cut_parts[n].start
            return Found(columns[:, None], numbers[:, None])
        match node.layer:
            case Constant():
                nothing = np.empty((len(elements), 0), dtype=np.int64)
                return Found(nothing, nothing)
            case Rearrangement(order):
                return self.picked(n, order.reshape(-1)[elements], numbers)
            case Rectifier():
                return self.below(node.inputs[0], elements, read_by(self.steps[n])[numbers - self.starts[n]])
            case Maximum():
                width = self.network.nodes[node.inputs[0]].size // node.size
                inside = (elements[:, None] * width + np.arange(width)).reshape(-1)
                found = self.below(node.inputs[0], inside, read_by(self.steps[n])[numbers - self.starts[n]].reshape(-1))
                return Found(found.columns.reshape(len(elements), -1), found.numbers.reshape(len(elements), -1))
            case _:
                raise ValueError(f"node {n} does not count swaps")

    def picked(self, n: int, order: Indices, numbers: Indices) -> Found:
        """From the inputs of a rearrangement, laid end to end."""
        sources = self.network.nodes[n].inputs
        ends = np.cumsum([self.network.nodes[source].size for source in sources])
        which = np.searchsorted(ends, order, side="right")
        parts: list[tuple[Indices, Found]] = []
        for number, source in enumerate(sources):
            rows = np.flatnonzero(which == number)
            inside = order[rows] - ends[number] + self.network.nodes[source].size
            parts += [(rows, self.below(source, inside, numbers[rows]))] if len(rows) else []
        most = max((found.columns.shape[1] for _, found in parts), default=0)
        columns, own = (np.full((len(order), most), -1, dtype=np.int64) for _ in range(2))
        for rows, found in parts:
            columns[rows, : found.columns.shape[1]] = found.columns
            own[rows, : found.numbers.shape[1]] = found.numbers
        return Found(columns, own)


def read_by(step: Any) -> Indices:
    match step:
        case Bends(_, read):
            return read
        case Greatest(windows):
            return windows
    raise ValueError("neither a rectifier nor a maximum")
