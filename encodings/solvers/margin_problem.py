"""A query as plain data for solvers that bound margins: the network with the rows of words that a text can hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import values
from ..network import Embedding, Floats, Network
from ..query import Query
from ..space import SwapSpace


@dataclass(frozen=True, eq=False)
class Swaps:
    """What a word can add at one position: [options, elements] differences, at these elements of all embedded words."""

    elements: NDArray[np.int64]
    differences: Floats


@dataclass(frozen=True, eq=False)
class MarginProblem:
    """For k = `first`, `first` + 1, ... `last` swaps: how small can logit[label] - logit[rival] be, over all rivals?

    The answer's solution holds a lower bound for one k after the other, up to the first that is not positive.
    """

    network: Network
    space: SwapSpace
    label: int
    rivals: tuple[int, ...]
    first: int
    last: int

    @classmethod
    def of(cls, query: Query, first: int, last: int) -> MarginProblem:
        """The same query, its tokens numbered anew: a vocabulary is large, and the words of one text are few."""
        tokens = np.unique([token for options in query.space.choices for token in options])
        number = {token: new for new, token in enumerate(tokens.tolist())}
        choices = tuple(tuple(number[token] for token in options) for options in query.space.choices)
        nodes = tuple(
            replace(node, layer=replace(node.layer, table=np.asarray(node.layer.table[tokens], dtype=np.float64)))
            if isinstance(node.layer, Embedding)
            else node
            for node in query.network.nodes
        )
        network = replace(query.network, nodes=nodes, vocabulary_size=len(tokens), choices=None)
        return cls(network, replace(query.space, choices=choices), query.label, query.rivals, first, last)

    @property
    def size(self) -> str:
        return f"{len(self.network.nodes)} layers, {self.space.candidates} swaps"

    @cached_property
    def embeddings(self) -> tuple[int, ...]:
        """The nodes that hold embedded words. Flattened and end to end, these are `words`."""
        return tuple(index for index, node in enumerate(self.network.nodes) if isinstance(node.layer, Embedding))

    @cached_property
    def words(self) -> Floats:
        """Of the text itself."""
        found = self.values_of(self.space.original)
        return np.concatenate([found[index].reshape(-1) for index in self.embeddings])

    def values_of(self, sentence: tuple[int, ...]) -> dict[int, NDArray[Any]]:
        return values(self.network, np.array([sentence], dtype=np.int64), wanted=self.embeddings)

    @cached_property
    def swaps(self) -> tuple[Swaps, ...]:
        """For every position that has an alternative."""
        layers = [self.network.nodes[index].layer for index in self.embeddings]
        tables = [np.asarray(layer.table) for layer in layers if isinstance(layer, Embedding)]
        owners = [
            np.repeat(layer.positions.reshape(-1), table.shape[1])
            for layer, table in zip(layers, tables, strict=True)
            if isinstance(layer, Embedding)
        ]
        owner, found = np.concatenate(owners), []
        for position in self.space.swappable:
            first, *others = self.space.choices[position]
            parts = [
                np.tile(table[others] - table[first], int((own == position).sum()) // table.shape[1])
                for table, own in zip(tables, owners, strict=True)
            ]
            found.append(Swaps(np.flatnonzero(owner == position), np.concatenate(parts, axis=1)))
        return tuple(found)
