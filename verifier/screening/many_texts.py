"""Many texts of one network decided together: proofs of one linear leaf over the whole space, and witnesses.

The arithmetic is that of one text (sets, screen, witness), with a row for each; facts that are sure are noted in the
texts, and whatever is not goes the way of one text. For networks where every position moves every element of the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Unsupported
from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Network
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.certified_float32 import claims_of

from .form.tree_leaves import LINEAR, Leaf, Settings
from .form.unsure import Unsure
from .numbers.float64_rounding import GRID, SLOP, TINY, Array, Floats, growth
from .numbers.kernels import Kernels
from .numbers.margins import Recipe
from .numbers.swap_moves import originals, parts_of
from .numbers.values_beyond_cut import evaluation_errors, magnitudes
from .screened_text import Text

Indices = NDArray[np.int64]
Level = Literal["real", "float32"]
LEVELS: tuple[Level, ...] = ("real", "float32")
AT_ONCE = 1 << 21
"""Numbers of a table of all swaps of a block of texts: bounds memory."""


@dataclass(frozen=True)
class Asked:
    """Of one text: the swaps of a proof that is one linear leaf, and a witness; None for none."""

    swaps: int | None
    witness: tuple[tuple[int, int], ...] | None


def decide(texts: Sequence[Text], asked: Sequence[Asked]) -> None:
    """Begin with these texts of one network, and note what of that is sure."""
    network = texts[0].network
    rows = max(1, max(text.query.space.candidates for text in texts))
    step = max(1, AT_ONCE // (rows * max(network.nodes[index].size for index in network.linear)))
    for start in range(0, len(texts), step):
        some = texts[start : start + step]
        started = originals(network, [text.query.space for text in some])
        claims = claims_of(network)
        sizes = None if claims is None else claims.whole([text.query.space for text in some])
        for row, (text, own) in enumerate(zip(some, started, strict=True)):
            text.started, text.whole = own, None if sizes is None else sizes.of(row)
        table = Table.of(some[0].agreed.kernels, some)
        if table is not None:
            needed = np.array([text.claimable for text in some])
            for name in (note_proofs, note_witnesses):
                name(table, asked[start : start + step], needed)


@dataclass(frozen=True, eq=False)
class Table:
    """All swaps of some texts: places are pairs of a text and a position that can be swapped, in this order."""

    texts: Sequence[Text]
    base: Floats
    base_error: Floats
    rows: Floats
    """[swaps, width], by place."""
    starts: Indices
    """[places + 1]: the first swap of each."""
    firsts: Indices
    """[texts + 1]: the first place of each."""
    row_errors: Floats
    """[places, width]."""

    @classmethod
    def of(cls, kernels: Kernels, texts: Sequence[Text]) -> Table | None:
        """None where some position does not move all of the cut, or nothing can be swapped."""
        spaces = [text.query.space for text in texts]
        places = [(space.choices[p], p) for space in spaces for p in space.swappable]
        begun = [text.started for text in texts if text.started is not None]
        base, base_error = np.array([own for own, _ in begun]), np.array([error for _, error in begun])
        width = base.shape[1]
        by_position: dict[int, list[int]] = {}
        for place, (_, position) in enumerate(places):
            by_position.setdefault(position, []).append(place)
        if not places or any(len(kernels.at(position).touched) != width for position in by_position):
            return None
        counts = np.array([len(options) - 1 for options, _ in places], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)])
        rows, errors = np.empty((int(starts[-1]), width)), np.empty((len(places), width))
        for position, own in by_position.items():
            kernel, some = kernels.at(position), counts[own]
            looked = kernels.looked_up(position, np.concatenate([places[place][0] for place in own]))
            begins = np.cumsum(some + 1) - (some + 1)
            steps = looked - np.repeat(looked[begins], some + 1, axis=0)
            others = np.delete(np.arange(len(looked)), begins)
            widest = np.maximum.reduceat(np.abs(steps), begins, axis=0)
            errors[own] = (kernel.share * (widest @ kernel.gross) + TINY) * SLOP
            at = np.concatenate([np.arange(starts[place], starts[place + 1]) for place in own])
            rows[at] = steps[others] @ kernel.matrix
        firsts = np.concatenate([[0], np.cumsum([len(space.swappable) for space in spaces])]).astype(np.int64)
        return cls(texts, base, base_error, rows, starts, firsts, errors)

    @property
    def query(self) -> Query:
        """Of the first text: its network is that of all."""
        return self.texts[0].query

    @cached_property
    def reaches(self) -> tuple[Floats, Floats]:
        """[places, width] each: how far swaps can lower and raise an element."""
        begins = self.starts[:-1]
        return np.maximum.reduceat(-self.rows, begins, axis=0), np.maximum.reduceat(self.rows, begins, axis=0)

    @cached_property
    def padded(self) -> Indices:
        """[texts, most places of one]: the places of each text, the number of all where it has fewer."""
        counts = np.diff(self.firsts)
        numbers = np.arange(max(int(counts.max()), 1))
        return np.where(numbers < counts[:, None], self.firsts[:-1, None] + numbers, len(self.starts) - 1)

    def ranked(self, per_place: Floats) -> Floats:
        """[texts, most places, width]: each text's own, greatest first, 0 for those below."""
        laid = np.concatenate([np.maximum(per_place, 0.0), np.zeros((1, per_place.shape[1]))])[self.padded]
        return np.sort(laid, axis=1)[:, ::-1]

    @cached_property
    def farthest(self) -> tuple[Floats, Floats]:
        """How far swaps can take an element either way, and how far that is from the reals, ranked."""
        return self.ranked(np.maximum(*self.reaches)), self.ranked(self.row_errors)

    def gross(self, k: Indices, share: Array) -> Floats:
        """As for one text (moves), [texts, width]; `share` is [texts, 1]."""
        reach, spread = (sum_of_first(ranked, k) for ranked in self.farthest)
        return np.asarray((self.base_error + spread + share * (np.abs(self.base) + reach) + TINY) * SLOP)

    def errors(self, k: Indices) -> Floats:
        return (self.gross(k, growth(2.0 * k + 128)[:, None]) + 2 * GRID) * SLOP

    def index(self, text: int, position: int, token: int) -> int:
        """The number of a swap."""
        space = self.texts[text].query.space
        place = int(self.firsts[text]) + space.swappable.index(position)
        return int(self.starts[place]) + space.choices[position].index(token) - 1


def sum_of_first(ranked: Floats, k: Indices) -> Floats:
    """[texts, width]: the sums of each text's k greatest."""
    return np.asarray((ranked * (np.arange(ranked.shape[1]) < k[:, None])[:, :, None]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Roots:
    """The whole space of each text with its number of swaps, as regions that are bounded together."""

    table: Table
    k: Indices

    @property
    def leaves(self) -> list[Leaf]:
        return [Leaf(LINEAR, 0, (), (), Settings(), int(k)) for k in self.k]

    @property
    def settings(self) -> dict[Settings, list[int]]:
        """No multipliers are set."""
        return {}

    @property
    def network(self) -> Network:
        return self.table.query.network

    @cached_property
    def parts(self) -> dict[int, slice]:
        return parts_of(self.network)

    @cached_property
    def errors(self) -> Floats:
        return self.table.errors(self.k)

    @cached_property
    def weight(self) -> Floats:
        return self.table.gross(self.k, growth(self.table.base.shape[1] + 2.0 * self.k + 128)[:, None])

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        falls, rises = (sum_of_first(self.table.ranked(side), self.k) for side in self.table.reaches)
        return self.table.base - falls, self.table.base + rises

    def least(self, coefficients: Floats) -> Floats:
        """[B, R]: the minimum over each region of functions [B, R, width] of the cut."""
        table = self.table
        total = (coefficients @ table.base[:, :, None])[..., 0]
        for text, k in enumerate(self.k):
            first, last = table.firsts[text : text + 2]
            if not k or first == last:
                continue
            begins, end = table.starts[first:last], table.starts[last]
            falls = -(coefficients[text] @ table.rows[begins[0] : end].T)
            falls = np.maximum(np.maximum.reduceat(falls, begins - begins[0], axis=1), 0.0)
            if k < falls.shape[1]:
                falls = np.partition(falls, falls.shape[1] - k, axis=1)[:, falls.shape[1] - k :]
            total[text] -= falls.sum(axis=1)
        return np.asarray(total)


def note_proofs(table: Table, asked: Sequence[Asked], needed: Floats) -> None:
    """`needed` [texts, classes] is E_whole from above."""
    k = np.array([0 if each.swaps is None else each.swaps for each in asked], dtype=np.int64)
    roots = Roots(table, k)
    low, high = roots.ends
    reach = np.maximum(np.abs(low), np.abs(high)) + roots.errors
    network = roots.network
    try:
        sizes = magnitudes(network, {index: reach[:, part] for index, part in roots.parts.items()})
        recipe = Recipe(roots, sizes)
        labels = np.array([text.query.label for text in table.texts])
        sure = {level: np.ones(len(asked), dtype=np.bool_) for level in LEVELS}
        for step in range(1, network.classes):
            others = (labels + step) % network.classes
            number, error = recipe.margin(labels, others)
            asked_for = zip(table.texts, others.tolist(), strict=True)
            among = np.array([other in text.query.rivals for text, other in asked_for])
            sure["real"] &= (number - error > 0) | ~among
            sure["float32"] &= (number - error > needed[np.arange(len(others)), others]) | ~among
    except (Unsure, Unsupported):
        return
    for row, (text, each) in enumerate(zip(table.texts, asked, strict=True)):
        if each.swaps is not None:
            text.proved.update((each.swaps, level) for level in levels_of(text, needed[row]) if sure[level][row])


def note_witnesses(table: Table, asked: Sequence[Asked], needed: Floats) -> None:
    vectors = table.base.copy()
    for row, each in enumerate(asked):
        for position, token in each.witness or ():
            vectors[row] += table.rows[table.index(row, position, token)]
    network, parts = table.query.network, parts_of(table.query.network)
    error = table.errors(np.array([len(each.witness or ()) for each in asked], dtype=np.int64))
    far = {index: error[:, part] for index, part in parts.items()}
    try:
        sizes = magnitudes(network, {index: np.abs(vectors[:, part]) + far[index] for index, part in parts.items()})
    except (Unsure, Unsupported):
        return
    last = len(network.nodes) - 1
    errors = evaluation_errors(network, far, sizes)[last]
    given = {index: vectors[:, part].reshape(-1, *network.nodes[index].shape) for index, part in parts.items()}
    logits = values(network, given=given)[last][:, 0]
    for row, (text, each) in enumerate(zip(table.texts, asked, strict=True)):
        if each.witness is None:
            continue
        label, rivals = text.query.label, list(text.query.rivals)
        wins = logits[row, rivals] - logits[row, label]
        wins = wins - 4 * np.spacing(np.abs(wins)) - errors[row, rivals] - errors[row, label]
        enough = {"real": np.zeros(len(rivals)), "float32": needed[row, rivals]}
        levels = levels_of(text, needed[row])
        text.shown.update((each.witness, level) for level in levels if (wins > enough[level]).any())


def levels_of(text: Text, needed: Floats) -> tuple[Level, ...]:
    """What can be noted of this text."""
    able = np.isfinite(needed[list(text.query.rivals)]).all()
    return LEVELS if able else ("real",)
