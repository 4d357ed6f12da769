"""Sentences of a swap space evaluated from their differences: one vector per swap, added before the nonlinear layers.

Everything up to the first nonlinear layer is affine in the chosen words, so the value at the cut of a sentence is

    z = base + sum of difference[s] over its swaps s

and only the layers after the cut are computed for each sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import values
from ..network import Embedding, Floats
from ..pools.first_maxima import beyond_cut
from ..query import Query
from ..rounding.float_errors import SLOP, margin_errors, rounding_errors
from ..rounding.magnitudes import greatest, magnitudes

Array = NDArray[Any]
CHUNK = 64
"""Single-swap sentences whose linear part is computed at once: bounds memory on wide convolutions."""
DOUBLE = 2.0**-53


@dataclass(frozen=True, eq=False)
class Differences:
    """A query laid out for evaluation by differences; swaps are numbered by position, then by order of choice."""

    query: Query
    positions: NDArray[np.int64]
    tokens: NDArray[np.int64]
    base: Floats
    """[width]: the cut of the original sentence."""
    rows: Floats
    """[swaps, width]: what each swap adds to the cut."""

    @staticmethod
    @lru_cache(maxsize=1)
    def of(query: Query) -> Differences:
        """Computed once for the several engines that look at one query."""
        return Differences.uncached(query)

    @classmethod
    def uncached(cls, query: Query) -> Differences:
        positions, tokens = query.space.single_swaps()
        original = np.array(query.space.original, dtype=np.int64)
        base = at_cut(query, original[None])[0]
        rows = np.empty((len(positions), len(base)))
        for start in range(0, len(positions), CHUNK):
            part = slice(start, start + CHUNK)
            sentences = np.repeat(original[None], len(positions[part]), axis=0)
            sentences[np.arange(len(sentences)), positions[part]] = tokens[part]
            rows[part] = at_cut(query, sentences) - base
        return cls(query, positions, tokens, base, rows)

    @property
    def width(self) -> int:
        return len(self.base)

    @property
    def parts(self) -> dict[int, slice]:
        """Cut node -> its part of the width."""
        return self.query.network.cut_parts

    def numbers(self, tokens: tuple[int, ...]) -> NDArray[np.int64]:
        """Of the swaps that make this sentence."""
        numbers = [
            np.flatnonzero((self.positions == position) & (self.tokens == token))
            for position, token in self.query.space.swaps_of(tokens)
        ]
        return np.concatenate([np.empty(0, dtype=np.int64), *numbers])

    def sentence(self, swaps: Iterable[int]) -> tuple[int, ...]:
        """Token ids after these swaps, by their numbers."""
        return self.query.space.sentence((int(self.positions[s]), int(self.tokens[s])) for s in swaps)

    def margins(self, cut: Array) -> Array:
        """[batch, rivals] of logit[label] - logit[rival], from [batch, width] values of the cut, in their precision."""
        network = self.query.network
        logits = values(network, given=beyond_cut(network, cut), dtype=cut.dtype.type)[len(network.nodes) - 1][:, 0, :]
        return np.asarray(logits[:, [self.query.label]] - logits[:, list(self.query.rivals)])

    @cached_property
    def doubt(self) -> Floats:
        """[rivals]: over the whole space, a real margin above this keeps its sign in the deployed model.

        Unlike the bound of certificates it knows the model's head and the fusions of runtimes.
        """
        return self.for_rivals(margin_errors(self.query.network, self.magnitudes, self.query.label))

    @cached_property
    def magnitudes(self) -> dict[int, Array]:
        """Node -> the greatest |value| over the space, from above."""
        network, tables = self.query.network, dict[int, Array]()
        for index, node in enumerate(network.nodes):
            if isinstance(node.layer, Embedding):
                tables[index] = greatest(node.layer.table, [self.query.space])[:, node.layer.positions]
        return {index: array[0] for index, array in magnitudes(network, tables, {}).items()}

    def for_rivals(self, classes: Array) -> Floats:
        return np.asarray(classes[..., list(self.query.rivals)], dtype=np.float64)

    @cached_property
    def errors_at_cut(self) -> Floats:
        """[width]: how far a float64 evaluation of the cut can be from the real one, anywhere in the space."""
        errors = rounding_errors(self.query.network, self.magnitudes, DOUBLE)
        return np.asarray(self.query.network.join_cut({index: error[None] for index, error in errors.items()})[0])

    def evaluation_errors(self, swaps: int, unit: float) -> Floats:
        """[rivals]: how far `margins` can be from the real margins, for `swaps` swaps and floats of this unit.

        Rounding the base and the differences and adding them costs each value at the cut at most
        (swaps + 2) u (|base| + sum |difference|), beside the float64 error in base and differences themselves.
        """
        network, last = self.query.network, len(self.query.network.nodes) - 1
        linear = self.errors_at_cut
        travelled = np.abs(self.base) + swaps * np.abs(self.rows).max(axis=0, initial=0.0)
        own = (2 * swaps + 1) * linear + (swaps + 1) * DOUBLE * travelled
        at_cut_errors = ((swaps + 2) * unit * (travelled + own) + own) * SLOP
        errors = rounding_errors(network, self.magnitudes, unit, network.split_cut(at_cut_errors))[last][0]
        logits = self.magnitudes[last][0] + errors
        label = self.query.label
        both = errors + errors[label] + unit * (logits + logits[label])
        return self.for_rivals(both * SLOP)


def at_cut(query: Query, sentences: NDArray[np.int64]) -> Floats:
    """[batch, width]: the cut of these sentences, flattened and side by side."""
    return np.asarray(query.network.join_cut(values(query.network, sentences, wanted=query.network.cut)))
