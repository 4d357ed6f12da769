"""How far margins of a text, with any word at one position, can be off: by our rounding and by the deployed model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.one_word import OneWord
from swapproof.encodings.bounds.swap_differences import DOUBLE
from swapproof.encodings.network import Embedding, Network
from swapproof.encodings.rounding.float_errors import margin_errors, rounding_errors
from swapproof.encodings.rounding.magnitudes import magnitudes

from ...ladder.truth import GUARD, SINGLE

Array = NDArray[Any]

ALIKE = 32
"""Texts of about as many positions bounded as one, by the greatest magnitudes that any of them has."""
AT_ONCE = 64
"""Rows of such magnitudes carried through the network together."""
CARE = 4.0
"""Margins here are summed in another order than `Differences.margins` does, a few terms more."""


@dataclass(frozen=True, eq=False)
class Rounding:
    """[texts, rivals]: margins as computed here are off by at most `own`; the deployed model's by `deployed`."""

    own: Array
    deployed: Array

    @classmethod
    def of(cls, errors: Sequence[tuple[Array, Array]], which: Array) -> Rounding:
        own, deployed = (np.array(column) for column in zip(*errors, strict=True))
        return cls(own[which], deployed[which])


class MarginErrors:
    """Of texts of one length and label, for a word of coordinates within `reach` at any of their positions."""

    def __init__(
        self,
        one_word: OneWord,
        texts: Array,
        positions: Sequence[tuple[int, ...]],
        cuts: Array,
        reach: Array,
        label: int,
        rivals: Sequence[int],
    ) -> None:
        """`texts` [n, length] of tokens; `cuts` [n, width] theirs."""
        self.one_word, self.texts, self.cuts = one_word, texts, cuts
        self.reach, self.label, self.rivals = reach, label, list(rivals)
        order = np.argsort([len(some) for some in positions], kind="stable")
        self.block = np.empty(len(order), dtype=np.int64)
        self.block[order] = np.arange(len(order)) // ALIKE
        self.members = [order[first : first + ALIKE] for first in range(0, len(order), ALIKE)]
        self.known: dict[tuple[int, int], tuple[Array, Array]] = {}
        self.greatest = [self.greatest_of(some) for some in self.members]

    def greatest_of(self, texts: Array) -> tuple[dict[int, Array], Array]:
        """Absolute values of the embeddings and of the cut, the greatest of any of these texts."""
        network, embedded = self.one_word.network, {}
        for index in self.one_word.embeddings:
            layer = network.nodes[index].layer
            if isinstance(layer, Embedding):
                rows = np.asarray(layer.table[self.texts[texts][:, layer.positions]], dtype=np.float64)
                embedded[index] = np.abs(rows).max(axis=0)
        return embedded, np.abs(self.cuts[texts]).max(axis=0)

    def at(self, position: int, numbers: Array, slope: Array) -> Rounding:
        """Of these texts; `slope` is J_p."""
        blocks, which = np.unique(self.block[numbers], return_inverse=True)
        new = [block for block in blocks.tolist() if (position, block) not in self.known]
        for first in range(0, len(new), AT_ONCE):
            some = new[first : first + AT_ONCE]
            found = self.errors(position, some, 2.0 * (self.reach @ np.abs(slope)))
            for row, block in enumerate(some):
                self.known[position, block] = found.own[row], found.deployed[row]
        return Rounding.of([self.known[position, block] for block in blocks.tolist()], which)

    def deployed(self, position: int, text: int) -> Array:
        """[rivals]: the deployed model's, of a text that `at` was asked about."""
        return self.known[position, int(self.block[text])][1]

    def errors(self, position: int, blocks: Sequence[int], moved: Array) -> Rounding:
        network = self.one_word.network
        cut = np.array([self.greatest[block][1] for block in blocks]) + moved
        embedded, start = {}, 0
        for index, width in zip(self.one_word.embeddings, self.one_word.widths, strict=True):
            layer = network.nodes[index].layer
            if isinstance(layer, Embedding):
                array = np.array([self.greatest[block][0][index] for block in blocks])
                array[:, layer.positions == position] = self.reach[start : start + width]
                embedded[index] = array
            start += width
        # J is a difference of two values computed in float64; a word's coordinates multiply its error.
        double = GUARD * DOUBLE * (1.0 + self.reach.sum()) * (cut + 1.0)
        # Float32 rounds the cut, J_p, the coordinates, their products and the sums of all: 3 + dimensions at most.
        single = (4 + len(self.reach)) * SINGLE * cut
        own = network.split_cut(single + double)
        return self.through(network, magnitudes(network, embedded, network.split_cut(cut)), own)

    def through(self, network: Network, sizes: dict[int, Array], own: dict[int, Array]) -> Rounding:
        last, label = len(network.nodes) - 1, self.label
        errors = rounding_errors(network, sizes, SINGLE, own)[last][:, 0, :]
        logits = sizes[last][:, 0, :] + errors
        both = errors + errors[:, [label]] + SINGLE * (logits + logits[:, [label]])
        return Rounding(CARE * both[:, self.rivals], margin_errors(network, sizes, label)[:, self.rivals])
