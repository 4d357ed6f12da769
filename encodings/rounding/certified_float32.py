"""How far any float32 evaluation can be from the reals, as certificates define it (proofs/FORMAT.md, section 8).

Layer by layer of the canonical network: A >= |x|, e >= |float32 result - x|, and n, the roundings of a sum. For
z = sum w_k x_k + b with K terms that are not identically zero, n = K + 3 + N, N the n of those with |w_k| = 1 together
and the greatest n of the others, and
T = sum |w_k| (A_k + e_k) + |b|,

    A = sum |w_k| A_k + |b|        e = sum |w_k| e_k + n (257 / 2**32) T + 2**-64

where no weight, bias, T and, of the terms that count, no A_k + e_k is above 2**40. All numbers here are enlarged by a
share of 2**-20 and by 2**-63 (where they are not plainly zero): more than the rounding of this float64 arithmetic and
of the checker's, upward to multiples of 2**-64. So they are never less than the checker's, and hardly more.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..canonical import canonical_of
from ..canonical_layers import PADDING, Bends, Greatest, Lookup, Rows, Step
from ..network import Floats, Indices, Network
from ..space import SwapSpace
from .magnitudes import greatest

SHARE = 257.0 / 2**32
STEP = 2.0**-63
SLOP = 1.0 + 2.0**-20
HEAVIEST = 2.0**40
MOST_ROUNDINGS = 65_280
GRID = 2
"""Lists times weights may be so many times the rows made of them, for all to be computed in one product."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """[batch, elements] each, of the canonical network; infinite errors where a number is beyond the format's."""

    magnitude: Floats
    error: Floats
    roundings: Floats

    def of(self, row: int) -> Sizes:
        """One of the batch."""
        return Sizes(self.magnitude[row : row + 1], self.error[row : row + 1], self.roundings[row : row + 1])


@dataclass(frozen=True)
class Ends:
    """Of what a nonlinear layer reads, [batch, read]: l from below and u from above."""

    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of an affine layer whose lists have one length."""

    rows: Indices
    lists: Indices
    """[lists, K], or [rows, K] where every row has its own."""
    weights: Floats
    """|w|: [weights, K], or [rows, K]."""
    pick: tuple[Indices, Indices] | None
    """The list and the weights of each row; None where every row has its own."""
    biases: Floats
    """[rows]: |b|"""

    @classmethod
    def all_of(cls, layer: Rows) -> list[Block]:
        lengths = np.array([len(sequence) for sequence in layer.weights], dtype=np.int64)
        absolute = [np.abs(sequence.astype(np.float64)) for sequence in layer.weights]
        biases = np.abs(layer.bias.astype(np.float64))
        found = []
        for length in np.unique(lengths[layer.weights_of]).tolist():
            rows = np.flatnonzero(lengths[layer.weights_of] == length)
            used, list_of = np.unique(layer.list_of[rows], return_inverse=True)
            kinds, weights_of = np.unique(layer.weights_of[rows], return_inverse=True)
            lists = layer.lists[used][:, :length]
            weights = np.array([absolute[kind] for kind in kinds.tolist()]).reshape(len(kinds), length)
            if len(used) * len(kinds) <= GRID * len(rows):
                found.append(cls(rows, lists, weights, (list_of, weights_of), biases[rows]))
            else:
                found.append(cls(rows, lists[list_of], weights[weights_of], None, biases[rows]))
        return found

    def sums(self, parts: Floats) -> Floats:
        """[..., rows] of sum |w_k| x_k, from [..., lists, K]."""
        return self.placed(parts, self.weights)

    def counts(self, live: NDArray[np.bool_]) -> Floats:
        """[..., rows]: how many terms count."""
        if self.weights.all():
            return self.per_row(live.sum(axis=-1).astype(np.float64))
        return self.placed(live.astype(np.float64), (self.weights != 0).astype(np.float64))

    def joined(self, inner: Floats) -> Floats:
        """[..., rows]: at least N, of n [..., lists, K]: with weights of 1 they add up, else the greatest counts."""
        if not inner.any():
            return self.per_row(np.zeros(inner.shape[:-1]))
        plain = self.weights == 1.0
        others = ((self.weights != 0) & ~plain).any(axis=-1)
        if self.pick is not None:
            others = others[self.pick[1]]
        longest = self.per_row(inner.max(axis=-1, initial=0.0))
        return np.asarray(self.placed(inner, plain.astype(np.float64)) + np.where(others, longest, 0.0))

    def placed(self, parts: Floats, weights: Floats) -> Floats:
        if self.pick is None:
            return np.asarray((parts * weights).sum(axis=-1))
        return np.asarray((parts @ weights.T)[..., self.pick[0], self.pick[1]])

    def per_row(self, parts: Floats) -> Floats:
        """[..., rows] from [..., lists]."""
        return parts if self.pick is None else parts[..., self.pick[0]]

    @property
    def heaviest(self) -> float:
        return max(float(self.weights.max(initial=0.0)), float(self.biases.max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class Layer:
    """One of the canonical network; `reads` is the node of the network that a nonlinear one reads."""

    step: Step
    first: int
    reads: int | None
    is_affine: bool
    """In the words: no nonlinear layer before it."""
    blocks: tuple[Block, ...]

    @property
    def part(self) -> slice:
        return slice(self.first, self.first + self.step.size)


@dataclass(frozen=True, eq=False)
class Claims:
    """A network of which claims at level float32 are possible."""

    layers: tuple[Layer, ...]
    constants: Floats
    logits: Indices

    @property
    def size(self) -> int:
        return len(self.constants) + sum(layer.step.size for layer in self.layers)

    @np.errstate(invalid="ignore", over="ignore")
    def whole(self, spaces: Sequence[SwapSpace]) -> Sizes:
        """Over all choices, with a row for each space."""
        sizes = Sizes(*(np.zeros((len(spaces), self.size)) for _ in range(3)))
        count = len(self.constants)
        sizes.magnitude[:, :count] = enlarged(np.abs(self.constants))
        for layer in self.layers:
            match layer.step:
                case Lookup(table, positions):
                    found = greatest(table, spaces)[:, positions]
                    sizes.magnitude[:, layer.part] = enlarged(found.reshape(len(spaces), -1))
                case Bends(_, read) | Greatest(read):
                    reach = sizes.magnitude[:, read.reshape(-1)]
                    ends = Ends(-reach, reach.copy())
                    fixed = read.reshape(-1) < count
                    for side in (ends.low, ends.high):
                        side[:, fixed] = self.constants[read.reshape(-1)[fixed]]
                    bend(layer, sizes, ends)
                case _:
                    add_up(layer, sizes)
        return checked(sizes)

    @np.errstate(invalid="ignore", over="ignore")
    def of_sentences(
        self, whole: Sizes, values: Mapping[int, Floats], far: Mapping[int, Floats] | None = None
    ) -> Sizes:
        """For each sentence alone, `whole` being of one space: from the `values` [batch, ...] of nodes that nonlinear
        ones read, known up to `far`; layers that are affine in the words keep the sizes of the whole space."""
        batch = max((len(values[layer.reads]) for layer in self.layers if layer.reads is not None), default=1)
        parts = (whole.magnitude, whole.error, whole.roundings)
        sizes = Sizes(*(np.repeat(array, batch, axis=0) for array in parts))
        for layer in self.layers:
            if layer.reads is not None:
                x = values[layer.reads].reshape(batch, -1)
                slack = STEP + (0.0 if far is None else far[layer.reads].reshape(1, -1))
                bend(layer, sizes, Ends(x - slack, x + slack))
            elif not layer.is_affine:
                add_up(layer, sizes)
        return checked(sizes)

    def margin_errors(self, sizes: Sizes, label: int) -> Floats:
        """[batch, classes]: a real margin z_label - z_class above this keeps its sign in every float32 evaluation."""
        error = sizes.error[:, self.logits]
        found = (error + error[:, label : label + 1]) * SLOP + STEP
        return np.asarray(np.where(np.isnan(found), np.inf, found))


KEPT: weakref.WeakKeyDictionary[Network, Claims | None] = weakref.WeakKeyDictionary()
"""As long as their networks are."""


def claims_of(network: Network) -> Claims | None:
    """None where nothing can be claimed."""
    if network not in KEPT:
        KEPT[network] = made(network)
    return KEPT[network]


def made(network: Network) -> Claims | None:
    canonical = canonical_of(network)
    if canonical.form is None or not canonical.float32 or network.is_smooth:
        return None
    reads = {layer: network.nodes[node].inputs[0] for node, layer in canonical.layer_of.items()}
    first, layers = len(canonical.form.constants), list[Layer]()
    bent = [np.zeros(first, dtype=np.bool_)]
    for number, step in enumerate(canonical.form.steps):
        before = np.concatenate(bent)
        match step:
            case Rows(lists):
                is_affine = not before[lists[lists != PADDING]].any()
            case _:
                is_affine = isinstance(step, Lookup)
        blocks = tuple(Block.all_of(step)) if isinstance(step, Rows) else ()
        layers.append(Layer(step, first, reads.get(number), is_affine, blocks))
        bent.append(np.full(step.size, not is_affine))
        first += step.size
    return Claims(tuple(layers), canonical.form.constants.astype(np.float64), canonical.form.logits)


def enlarged(array: NDArray[Any]) -> Floats:
    return np.asarray(np.where(array == 0, 0.0, array * SLOP + STEP))


def add_up(layer: Layer, sizes: Sizes) -> None:
    """An affine layer."""
    for block in layer.blocks:
        magnitude, error, inner = (array[:, block.lists] for array in (sizes.magnitude, sizes.error, sizes.roundings))
        reach = magnitude + error
        live = reach > 0
        n = block.counts(live) + 3 + block.joined(np.where(live, inner, 0.0))
        exact, carried = block.sums(np.stack([magnitude, error]))
        total = (exact + carried + block.biases) * SLOP
        fits = (n <= MOST_ROUNDINGS) & (total < HEAVIEST) & (block.heaviest < HEAVIEST)
        fits &= block.per_row(reach.max(axis=-1, initial=0.0)) < HEAVIEST
        at = layer.first + block.rows
        sizes.magnitude[:, at] = enlarged(exact + block.biases)
        sizes.error[:, at] = np.where(fits, (carried + n * SHARE * total) * SLOP + STEP, np.inf)
        sizes.roundings[:, at] = n


def bend(layer: Layer, sizes: Sizes, ends: Ends) -> None:
    """A nonlinear layer, from the ends of what it reads."""
    match layer.step:
        case Bends(0.0, read):
            error = sizes.error[:, read]
            sizes.magnitude[:, layer.part] = enlarged(np.maximum(ends.high, 0.0))
            sizes.error[:, layer.part] = np.where(ends.high + error <= 0, 0.0, error)
        case Bends(_, read):
            error, reach = sizes.error[:, read], np.maximum(-ends.low, ends.high)
            grown = (error + 4 * SHARE * (reach + error)) * SLOP + STEP
            sizes.magnitude[:, layer.part] = enlarged(reach)
            sizes.error[:, layer.part] = np.where(reach + error < HEAVIEST, grown, np.inf)
        case Greatest(windows):
            low, high = (side.reshape(len(side), *windows.shape) for side in (ends.low, ends.high))
            sizes.magnitude[:, layer.part] = enlarged(np.maximum(-low.max(axis=-1), high.max(axis=-1)))
            sizes.error[:, layer.part] = sizes.error[:, windows].max(axis=-1)


def checked(sizes: Sizes) -> Sizes:
    """One number beyond the format's leaves no claim at all."""
    within = np.isfinite(sizes.magnitude + sizes.error).all(axis=1, keepdims=True)
    return Sizes(sizes.magnitude, np.where(within, sizes.error, np.inf), sizes.roundings)
