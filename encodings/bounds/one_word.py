"""Sentences that differ from a text in one word: the cut as an affine function of that word's embedding.

Everything up to the cut is affine in the embedded words, so with the word w at position p

    cut(text with w at p) = cut(text) + (E[w] - E[x_p]) J_p

where E [words, dimensions] holds the rows of all tables that read the word, side by side, and J_p [dimensions, width]
is the same for all texts of one length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import Batch, add_up, rectify, values
from ..network import (
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Floats,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from ..walk import Kind, Meaning

Array = NDArray[Any]
AT_ONCE = 64
"""Evaluations of the linear part together: bounds memory."""


@dataclass(frozen=True, eq=False)
class OneWord:
    """A network as a function of one word; `rows(tokens)` are the coordinates of words, `slope(p)` is J_p."""

    network: Network

    @cached_property
    def embeddings(self) -> tuple[int, ...]:
        """The embedding layers that the cut depends on."""
        return tuple(i for i, node in enumerate(self.network.nodes) if isinstance(node.layer, Embedding))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        return tuple(self.network.nodes[index].shape[-1] for index in self.embeddings)

    @property
    def dimensions(self) -> int:
        return sum(self.widths)

    def rows(self, tokens: Array) -> Floats:
        """[words, dimensions]."""
        parts = []
        for index in self.embeddings:
            layer = self.network.nodes[index].layer
            if isinstance(layer, Embedding):
                parts.append(np.asarray(layer.table[tokens], dtype=np.float64))
        return np.concatenate(parts, axis=1)

    def slope(self, position: int) -> Floats:
        """[dimensions, width]: what one unit of every coordinate of the word at this position adds to the cut."""
        blocks = [range(first, min(first + AT_ONCE, self.dimensions)) for first in range(0, self.dimensions, AT_ONCE)]
        return np.concatenate([np.zeros((0, self.width)), *(self.slope_part(position, block) for block in blocks)])

    def slope_part(self, position: int, coordinates: range) -> Floats:
        given, start = {}, 0
        for index, width in zip(self.embeddings, self.widths, strict=True):
            node = self.network.nodes[index]
            array = np.zeros((len(coordinates) + 1, *node.shape))
            if isinstance(node.layer, Embedding):
                here = np.flatnonzero(node.layer.positions.reshape(-1) == position)
                flat = array.reshape(len(array), -1, width)
                for row, coordinate in enumerate(coordinates):
                    if start <= coordinate < start + width:
                        flat[row, here, coordinate - start] = 1.0
            given[index], start = array, start + width
        rows = self.network.join_cut(values(self.network, given=given, wanted=self.network.cut))
        return np.asarray(rows[:-1] - rows[-1])

    @property
    def width(self) -> int:
        return self.network.cut_width

    def cuts(self, sentences: Array) -> Floats:
        """[texts, width]."""
        found = [
            self.network.join_cut(values(self.network, sentences[first : first + AT_ONCE], wanted=self.network.cut))
            for first in range(0, len(sentences), AT_ONCE)
        ]
        return np.concatenate([np.zeros((0, self.width)), *found])


Turn = tuple[slice | Array, Array | None]
"""Columns, and the different windows that own them, or None for every window in its order."""


def turns(owners: Array, windows: int) -> list[Turn]:
    """Columns owned by `owners`, ascending, so that each turn has at most one column of every window."""
    counts = np.bincount(owners, minlength=windows)
    most = int(counts.max(initial=0))
    if (counts == most).all():
        return [(slice(turn, None, most), None) for turn in range(most)]
    place = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]
    return [(np.flatnonzero(place == turn), owners[place == turn]) for turn in range(most)]


class Tail:
    """The layers after the cut, for cuts that differ from one given cut in a few columns only.

    What reads only unchanged elements is computed once; the others are followed element by element as far as
    rectifiers, maxima and whatever only moves or adds elements. From there on whole vectors are computed. The numbers
    are those of a plain evaluation.
    """

    def __init__(self, network: Network, cut: Array, columns: Array) -> None:
        self.network = network
        self.dtype = cut.dtype.type
        base = values(network, given=network.split_cut(cut[None]), dtype=self.dtype)
        self.base = {index: array.reshape(-1) for index, array in base.items()}
        self.changing: dict[int, Array] = {}
        """Node -> its elements that may differ, for the nodes followed element by element."""
        self.sources: dict[int, Array] = {}
        """Cut node -> which of `columns` its changing elements are."""
        for index, part in network.cut_parts.items():
            inside = np.flatnonzero((columns >= part.start) & (columns < part.stop))
            self.changing[index] = columns[inside] - part.start
            self.sources[index] = inside
        self.steps: list[int] = []
        self.windows: dict[int, tuple[Array, list[Turn]]] = {}
        for index in sorted(self.base):
            if index not in self.changing:
                self.follow(index)
        self.dense = {index for index in self.base if index not in self.changing}

    def follow(self, index: int) -> None:
        node = self.network.nodes[index]
        if any(source not in self.changing for source in node.inputs if self.network.nodes[source].inputs):
            return
        for source in node.inputs:
            if source not in self.changing:  # a constant
                self.changing[source] = self.sources[source] = np.zeros(0, dtype=np.int64)
        changes = CHANGES.rules.get(type(node.layer))
        if changes is not None:
            inputs = [self.changing[source] for source in node.inputs]
            self.changing[index] = changes(self, node.layer, inputs, self.network.places[index])
            self.steps.append(index)

    def same_elements(self, layer: Rectifier | Scaling, inputs: list[Array], at: At) -> Array:
        return inputs[0]

    def moved_elements(self, layer: Rearrangement, inputs: list[Array], at: At) -> Array:
        laid = self.network.laid(at.node)
        changed = np.concatenate([part + where.start for part, where in zip(inputs, laid, strict=True)])
        return np.flatnonzero(np.isin(layer.index.reshape(-1), changed))

    def all_elements(self, layer: Sum, inputs: list[Array], at: At) -> Array:
        return np.unique(np.concatenate(inputs))

    def windows_of(self, layer: Maximum, inputs: list[Array], at: At) -> Array:
        return np.unique(inputs[0] // self.network.nodes[at.node.inputs[0]].shape[-1])

    def logits(self, cut: Array) -> Array:
        """[n, classes] from the values [n, columns] of the columns that differ."""
        count = len(cut)
        batch, everything = Batch(count, dtype=self.dtype), np.arange(cut.shape[1])
        known = {
            index: cut if np.array_equal(which, everything) else cut[:, which] for index, which in self.sources.items()
        }
        for index in self.steps:
            at = self.network.places[index]
            known[index] = ELEMENTS.rule(at.node)(self, at.node.layer, known, at, batch)
        last = len(self.network.nodes) - 1
        given = {}
        for index, found in known.items():
            if index == last or any(reader in self.dense for reader in self.network.readers[index]):
                whole = np.repeat(self.base[index][None], count, axis=0)
                whole[:, self.changing[index]] = found
                given[index] = whole.reshape(count, *self.network.nodes[index].shape)
        if last in given:
            return given[last].reshape(count, -1)
        return values(self.network, given=given, dtype=self.dtype)[last].reshape(count, -1)

    def rectify(self, layer: Rectifier, known: dict[int, Array], at: At, batch: Batch) -> Array:
        return rectify(batch, layer, [known[at.node.inputs[0]]], at)

    def scale(self, layer: Scaling, known: dict[int, Array], at: At, batch: Batch) -> Array:
        factor, divisor, more = (
            np.asarray(part, dtype=self.dtype).reshape(-1)[self.changing[at.index]]
            for part in (layer.multiply, layer.divide, layer.add)
        )
        return np.asarray(known[at.node.inputs[0]] * factor / divisor + more)

    def rearrange(self, layer: Rearrangement, known: dict[int, Array], at: At, batch: Batch) -> Array:
        whole = np.concatenate([self.patched(source, known, batch.size) for source in at.node.inputs], axis=1)
        return np.take(whole, layer.index.reshape(-1)[self.changing[at.index]], axis=1)

    def add_up(self, layer: Sum, known: dict[int, Array], at: At, batch: Batch) -> Array:
        elements = self.changing[at.index]
        return add_up(batch, layer, [self.patched(one, known, batch.size)[:, elements] for one in at.node.inputs], at)

    def take_greatest(self, layer: Maximum, known: dict[int, Array], at: At, batch: Batch) -> Array:
        """The greatest of what does not change, computed once, and of what does."""
        (source,), index = at.node.inputs, at.index
        width, elements = self.network.nodes[source].shape[-1], self.changing[index]
        if index not in self.windows:
            still = self.base[source].copy()
            still[self.changing[source]] = -np.inf
            owners = np.searchsorted(elements, self.changing[source] // width)
            self.windows[index] = still.reshape(-1, width)[elements].max(axis=1), turns(owners, len(elements))
        rest, order = self.windows[index]
        found = known.get(source)
        total = np.repeat(rest[None], batch.size, axis=0)
        if found is not None:
            # The changing elements of one window are few: the first of all windows, then the second, ...
            for columns, mine in order:
                if mine is None:
                    np.maximum(total, found[:, columns], out=total)
                else:
                    total[:, mine] = np.maximum(total[:, mine], found[:, columns])
        return total

    def patched(self, source: int, known: dict[int, Array], count: int) -> Array:
        whole = np.repeat(self.base[source][None], count, axis=0)
        if source in known:
            whole[:, self.changing[source]] = known[source]
        return whole


WHOLE: Mapping[Kind, str] = dict.fromkeys(
    (Embedding, Constant, Affine, *SMOOTH), "from here on whole vectors are computed"
)
CHANGES: Meaning[Array] = Meaning(
    "account of which elements change",
    {
        Rearrangement: Tail.moved_elements,
        Scaling: Tail.same_elements,
        Sum: Tail.all_elements,
        Rectifier: Tail.same_elements,
        Maximum: Tail.windows_of,
    },
    WHOLE,
)
"""What it has no rule for is not refused here: whole vectors are computed, if these have a value."""
ELEMENTS: Meaning[Array] = Meaning(
    "value of single elements",
    {
        Rearrangement: Tail.rearrange,
        Scaling: Tail.scale,
        Sum: Tail.add_up,
        Rectifier: Tail.rectify,
        Maximum: Tail.take_greatest,
    },
    WHOLE,
)
