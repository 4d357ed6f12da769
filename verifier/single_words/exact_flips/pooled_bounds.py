"""Networks with a maximum over time: which words cannot change an answer at a position, by one bound for many words.

There the rest of the network reads features f[c] = max(rest[c], x[k] for k of c), where only a few elements x of the
cut depend on the word, x[k] = T[word, k] + h[k], and one hidden layer follows:

    margin(f) = sum over j of w[j] relu(y[j]) + constant,  y = W f + b

With d[c] = f[c] - rest[c] >= 0 and, for a block of words, d <= D, each y[j] lies between y0[j] + the negative part and
y0[j] + the positive part of W[j] D. Relu is bounded there by its tangent at y0 or its chord, which makes

    margin >= value + sum over c of g[c] d[c] >= value + sum over k with g < 0 of g[c of k] max(0, x[k] - rest[c of k])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.relaxation import chord_slope
from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Affine, Constant, Maximum, Network, Node, Rearrangement, Rectifier, Scaling

Array = NDArray[Any]

LEAST, BLOCK = 256, 1024
"""Words bounded together: few of the most dangerous, then twice as many, up to so many."""
ROUNDED = 2.0**-22
"""Relative: what T loses in float32, at most, and more."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """The features of a network, and what is behind them."""

    network: Network
    features: int
    """The node that they are."""
    owner: NDArray[np.int64]
    """[width]: which feature each element of the cut is an argument of, or -1."""
    matrix: Array
    """W, [features, neurons]."""
    bias: Array
    weights: Array
    """[rivals, neurons]: w."""
    constants: Array
    """[rivals]."""

    @classmethod
    def of(cls, network: Network, label: int, rivals: Sequence[int]) -> Pooled | None:
        """None for a network of another form."""
        found = behind(network)
        if found is None:
            return None
        features, hidden = found
        owner = owners(network, features)
        if owner is None:
            return None
        (before,) = network.nodes[hidden].inputs
        size, neurons = network.nodes[features].size, network.nodes[hidden].size
        rows = np.concatenate([np.zeros((1, size)), np.eye(size)]).reshape(-1, *network.nodes[features].shape)
        y = values(network, given={features: rows}, wanted=(before,))[before].reshape(len(rows), -1)
        units = np.concatenate([np.zeros((1, neurons)), np.eye(neurons)]).reshape(-1, *network.nodes[hidden].shape)
        last = len(network.nodes) - 1
        logits = values(network, given={hidden: units})[last].reshape(len(units), -1)
        margins = logits[:, [label]] - logits[:, list(rivals)]
        return cls(network, features, owner, y[1:] - y[0], y[0], (margins[1:] - margins[0]).T.copy(), margins[0].copy())

    def without(self, cuts: Array, columns: Array) -> Array:
        """[n, features]: of cuts [n, width], these columns left out of every maximum."""
        cuts = cuts.copy()
        cuts[:, columns] = -np.inf
        given = self.network.split_cut(cuts)
        found = values(self.network, given=given, wanted=(self.features,))[self.features]
        return np.asarray(found.reshape(len(cuts), -1))

    def lower(self, rest: Array, most: Array) -> tuple[Array, Array]:
        """value [blocks, rivals] and g [blocks, rivals, features] for d between 0 and `most` [blocks, features]."""
        center = rest @ self.matrix + self.bias
        high = center + most @ np.maximum(self.matrix, 0.0)
        low = center + most @ np.minimum(self.matrix, 0.0)
        tangent = np.broadcast_to(center > 0, high.shape).astype(np.float64)
        chord = chord_slope(0.0, low, high)
        above = np.where((low < 0) & (high > 0), -chord * low, 0.0)  # the chord at 0, less 0
        falling = (self.weights < 0)[None]
        slopes = np.where(falling, chord[:, None], tangent[:, None])
        at_center = np.where(falling, (chord * center + above)[:, None], np.maximum(center, 0.0))
        value = (at_center * self.weights).sum(axis=2) + self.constants
        return value, (slopes * self.weights) @ self.matrix.T


def behind(network: Network) -> tuple[int, int] | None:
    """The features and the one rectifier that follows them, if the end of the network is a chain of such layers."""
    index, hidden = len(network.nodes) - 1, None
    while True:
        node = network.nodes[index]
        match node.layer:
            case Affine() | Scaling():
                pass
            case Rectifier(slope) if slope == 0 and hidden is None:
                hidden = index
            case Rearrangement() if len(node.inputs) == 1:
                pass
            case _:
                return None if hidden is None else (index, hidden)
        (index,) = node.inputs
        if index in network.linear:
            return None


def owners(network: Network, features: int) -> NDArray[np.int64] | None:
    """Which feature each element of the cut is an argument of, if nothing but maxima stands between."""
    where: dict[int, NDArray[np.int64]] = {}
    width = network.cut_width
    for index, part in network.cut_parts.items():
        where[index] = np.full(width, -1, dtype=np.int64)
        where[index][part] = np.arange(part.stop - part.start)
    for index in range(features + 1):
        node = network.nodes[index]
        sources = [source for source in node.inputs if source in where]
        if index in where or not sources:
            continue
        others = [source for source in node.inputs if source not in where]
        if any(not isinstance(network.nodes[source].layer, Constant) for source in others):
            continue
        match node.layer:
            case Rectifier(slope) if slope == 0:
                where[index] = where[sources[0]]
            case Maximum():
                length = network.nodes[sources[0]].shape[-1]
                where[index] = np.where(where[sources[0]] < 0, -1, where[sources[0]] // length)
            case Rearrangement(order):
                moved = placed(network, node, where, order.reshape(-1), width)
                if moved is None:
                    return None
                where[index] = moved
            case _:
                return None
    return where.get(features)


def placed(
    network: Network,
    node: Node,
    where: dict[int, NDArray[np.int64]],
    order: NDArray[np.int64],
    width: int,
) -> NDArray[np.int64] | None:
    """Where elements of the cut are in what a rearrangement gives; None if some element is there twice."""
    laid = network.laid(node)
    if len(np.unique(order)) < len(order):
        return None
    target = np.full(laid[-1].stop, -1, dtype=np.int64)
    target[order] = np.arange(len(order))
    found = np.full(width, -1, dtype=np.int64)
    for source, part in zip(node.inputs, laid, strict=True):
        if source in where:
            here = where[source] >= 0
            found[here] = target[part.start + where[source][here]]
    return found


class WordScreen:
    """All words at one position, or at any other where they do the same, in blocks, the dangerous ones first."""

    def __init__(self, table: Array, owner: NDArray[np.int64], pooled: Pooled) -> None:
        """`table` [V, columns]: T; `owner` [columns]: the features that these are arguments of."""
        self.owners, self.pooled = owner, pooled
        used = np.flatnonzero(owner >= 0)
        self.used = used[np.lexsort((owner[used], turn_of(owner[used])))]
        self.owner = owner[self.used]
        own = table[:, self.used].astype(np.float32)
        # With every second neuron awake, about: what the word does to the margin wherever it is the greatest.
        effect = (pooled.weights.mean(axis=0) @ pooled.matrix.T)[self.owner]
        self.order = np.argsort(np.maximum(own, 0.0) @ effect, kind="stable")
        self.rows = np.ascontiguousarray(own[self.order].T)
        """[columns, V], in this order of words."""
        self.blocks = blocks_of(len(own))
        greatest = np.array([self.rows[:, block].max(axis=1) for block in self.blocks], dtype=np.float64)
        self.greatest = greatest + ROUNDED * np.abs(greatest)
        turn = np.sort(turn_of(owner[used]))
        self.turns = [slice(*np.searchsorted(turn, (number, number + 1))) for number in np.unique(turn)]
        """Columns that are at most one of every feature."""
        self.matrix, self.weights = pooled.matrix.astype(np.float32), pooled.weights.T.astype(np.float32)

    def open_words(self, rest: Array, here: Array, guards: Array) -> NDArray[np.int64]:
        """Places in the order of words that may change the answer of a text with this `rest` and h [columns].

        A bound decides against a rival if it is beyond the rival's guard.
        """
        theta = rest[self.owner] - here[self.used]
        excess = np.maximum(self.greatest - theta, 0.0)
        most = np.zeros((len(self.blocks), len(rest)))
        for turn in self.turns:
            most[:, self.owner[turn]] = np.maximum(most[:, self.owner[turn]], excess[:, turn])
        values, gradients = self.pooled.lower(rest, most)
        slopes = np.minimum(gradients, 0.0)[:, :, self.owner]
        settled = values + (slopes * excess[:, None]).sum(axis=2) > guards
        small, found = theta.astype(np.float32)[:, None], []
        for number in np.flatnonzero(~settled.all(axis=1)).tolist():
            block = self.blocks[number]
            opened = np.zeros(block.stop - block.start, dtype=bool)
            for rival in np.flatnonzero(~settled[number]).tolist():
                which = np.flatnonzero((slopes[number, rival] < 0) & (excess[number] > 0))
                beyond = self.rows[which, block]
                beyond -= small[which]
                np.maximum(beyond, np.float32(0), out=beyond)
                bounds = slopes[number, rival, which].astype(np.float32) @ beyond
                opened |= ~(bounds > np.float32(guards[rival] - values[number, rival]))
            found.append(block.start + np.flatnonzero(opened))
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def margins(self, rest: Array, here: Array, places: NDArray[np.int64]) -> Array:
        """[n, rivals], with the words at these places of the order."""
        base = (rest @ self.pooled.matrix + self.pooled.bias).astype(np.float32)
        theta = (rest[self.owner] - here[self.used]).astype(np.float32)[:, None]
        changing, constants, found = np.unique(self.owner), self.pooled.constants.astype(np.float32), []
        for first in range(0, len(places), BLOCK):
            some = places[first : first + BLOCK]
            beyond = np.zeros((len(changing), len(some)), dtype=np.float32)
            for turn in self.turns:
                x = np.take(self.rows[turn], some, axis=1)
                x -= theta[turn]
                if len(x) == len(beyond):
                    np.maximum(beyond, x, out=beyond)
                else:
                    which = np.searchsorted(changing, self.owner[turn])
                    beyond[which] = np.maximum(beyond[which], x)
            y = beyond.T @ self.matrix[changing]
            y += base
            np.maximum(y, np.float32(0), out=y)
            found.append(y @ self.weights + constants)
        return np.concatenate(found)


def blocks_of(words: int) -> list[slice]:
    found, first, size = [], 0, LEAST
    while first < words:
        found.append(slice(first, min(first + size, words)))
        first, size = first + size, min(2 * size, BLOCK)
    return found


def turn_of(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many elements of the same feature come before each."""
    order = np.argsort(owner, kind="stable")
    firsts = np.searchsorted(owner[order], owner[order])
    found = np.empty(len(owner), dtype=np.int64)
    found[order] = np.arange(len(owner)) - firsts
    return found
