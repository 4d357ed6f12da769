"""Branch and bound over boxes and ReLU phases, many regions at a time: a witness, a proof that there is none, or time.

A region is refuted when an atom, or a weighted sum of atoms, is above 0 on all of it. What is not refuted is shrunk by
what its bounds say, its corners are tried, and it is halved along an input or at a neuron's zero. Where a bound is
within its own rounding of 0, floats decide nothing: a record has a leaf there, which must be checked exactly.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from swapproof.encodings.bounds.normal_form import handed_back
from swapproof.encodings.bounds.relaxation import chord_slope
from swapproof.encodings.network import Floats, Indices

from . import ascent
from .ascent import Ascended, Multipliers, ascended, first_multipliers
from .attack import descent, worst
from .query_bounds import Bounded, InputRegions, QueryBounds, Truths, contracted, joined, sharpened
from .question import Question
from .search_tree import NARROWEST, SLOPES, TreeRecord, short

if TYPE_CHECKING:
    from .input_witness import Deployed, InputWitness

Answer = Literal["sat", "unsat", "unknown", "timed-out"]
Way = Literal["inputs", "phases"]

CELLS = 400_000
"""Numbers in one array of coefficients, which should stay in the cache: decides how many regions are taken at a time.
"""
FINEST = 2.0**-44
"""Boxes narrower than this part of the whole are not halved: rounding decides there."""
PROMISING, NEAR = 8, 1e-4
"""Corners tried per round, and how far above 0 their worst atom may be for them to be replayed."""
LOOKS = 12
"""Times a region of a single-layer network is bounded, what the bounds say of its neurons being used each time."""
GAINING = 0.97
"""Bounded again only when that has made the upper lines cheaper by this factor."""
NARROW = 0.8
"""An input is narrow once its width is this part of what it was."""
REFINING = 4
"""Steps of descent from each of those corners."""


@dataclass(frozen=True)
class SearchOutcome:
    answer: Answer
    witness: InputWitness | None = None
    regions: int = 0
    detail: str = ""
    record: TreeRecord | None = None
    near: bool = False
    """Whether exact arithmetic may decide what floats did not."""


@dataclass(eq=False)
class Block:
    """Regions with the multipliers they were bounded with, and where each is to be split.

    `place` counts the inputs, then the neurons layer after layer.
    """

    regions: InputRegions
    multipliers: Multipliers
    place: Indices
    low: Floats

    def take(self, index: Indices | slice) -> Block:
        return Block(self.regions.take(index), self.multipliers.take(index), self.place[index], self.low[index])


def together(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    return Block(
        joined([block.regions for block in blocks]),
        ascent.joined([block.multipliers for block in blocks]),
        np.concatenate([block.place for block in blocks]),
        np.concatenate([block.low for block in blocks]),
    )


@dataclass(eq=False)
class QuerySearch:
    """`way`: what is split first; `steps` of ascent for each region."""

    question: Question
    deployed: Deployed
    bounds: QueryBounds
    way: Way
    steps: int
    until: float
    """In seconds of time.monotonic()."""
    record: TreeRecord | None = None
    """Where the tree is written down; then nothing is done that a certificate cannot say."""
    planes: bool = True
    """Whether signs that neurons have beyond the plane of a cut may count in the record of a single layer."""
    exactly: bool = False
    """Whether exact arithmetic may be asked later: a region that needs it becomes a leaf, without a record the end."""
    near: bool = False
    witness: InputWitness | None = None
    regions: int = 0
    unresolved: int = 0
    pending: list[Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        widths = self.bounds.stack.widths
        self.starts = np.concatenate([[0], np.cumsum(widths)])
        self.strict = np.array([atom.strict for atom in self.question.case.atoms], dtype=np.bool_)
        self.absolute = [layer.absolute() for layer in self.bounds.stack.layers]
        self.batch = int(np.clip(CELLS // (2 * max(widths) ** 2 + 1), 2, 256)) if self.bounds.depth > 1 else 256

    @property
    def plain(self) -> bool:
        """Of a record: that cuts only move ends, their planes being given up, and stand where they move them far.

        Each makes the checker bound all neurons, and keep those bounds. A neuron of which it knows the sign by a plane
        alone is worth less to bounds of the whole box than one that it believes to be open.
        """
        return self.record is not None and (self.bounds.depth > 1 or not self.planes)

    def run(self) -> SearchOutcome:
        root = self.bounds.whole.take(slice(None))
        if self.plain:
            root.kept_least = [np.full_like(low, -np.inf) for low in root.least]
            root.kept_greatest = [np.full_like(high, np.inf) for high in root.greatest]
        lines = self.bounds.all_lines(root)
        self.examine(root, first_multipliers(root, lines, len(self.question.atoms)))
        while self.pending and self.witness is None and not (self.near and self.record is None):
            if time.monotonic() > self.until:
                return SearchOutcome(
                    "timed-out", None, self.regions, f"{sum(len(b.low) for b in self.pending)} regions open"
                )
            block = self.next_block()
            children = self.halves(block)
            kept = np.flatnonzero(~children.empty())
            both = np.concatenate([np.arange(len(block.low))] * 2)
            self.note_crossed(children, block.multipliers.take(both))
            if len(kept):
                twice = both[kept]
                children = children.take(kept)
                self.bounds.refresh(children)
                self.examine(children, block.multipliers.take(twice))
        if self.witness is not None:
            return SearchOutcome("sat", self.witness, self.regions)
        if self.unresolved or (self.near and self.record is None):
            detail = f"{self.unresolved} regions too small to halve"
            return SearchOutcome("unknown", None, self.regions, detail, near=self.near)
        return SearchOutcome("unsat", None, self.regions, record=self.record, near=self.near)

    def next_block(self) -> Block:
        taken, count = [], 0
        while self.pending and count < self.batch:
            block = self.pending.pop()
            room = self.batch - count
            if len(block.low) > room:
                self.pending.append(block.take(slice(0, len(block.low) - room)))
                block = block.take(slice(len(block.low) - room, None))
            taken.append(block)
            count += len(block.low)
        return together(taken)

    def examine(self, regions: InputRegions, multipliers: Multipliers) -> None:
        """Refute, shrink, try corners; what is left waits, the least promising refutation last, to be next."""
        self.regions += len(regions)
        self.note_crossed(regions, multipliers)
        alive = np.flatnonzero(~regions.empty())
        if not len(alive):
            return
        regions, multipliers = regions.take(alive), multipliers.take(alive)
        atoms = self.question.atoms
        if len(atoms) > 1:  # each atom by itself first
            found = self.bounds.least(atoms, regions, self.bounds.all_lines(regions))
            held = (found.low > 0) | self.asked_exactly(found.low, found.rounding, self.strict)
            alone = np.asarray(held.any(axis=1))
            if self.record is not None:
                self.record.alone(regions.take(alone), np.where(held, found.low, -np.inf)[alone].argmax(axis=1))
            alive = np.flatnonzero(~alone)
            if not len(alive):
                return
            regions, multipliers = regions.take(alive), multipliers.take(alive)
            rows = self.shrunk(regions, Bounded(found.low[alive], found.coefficients[alive]))
            if self.record is not None:
                self.record.cut_alone(regions.take(rows), forget=self.plain)
        looks = LOOKS if self.bounds.depth == 1 and not self.plain else 1
        for look in range(1, looks + 1):
            if self.record is not None and look > 1:
                self.record.renew(regions)
            parts = 0.0 if self.record is None else SLOPES
            best = ascended(self.bounds, atoms, regions, multipliers, self.steps, parts)
            strict = (best.multipliers.weights * self.strict).sum(axis=1) > 0
            done = np.asarray((best.low > 0) | regions.empty())
            done |= self.asked_exactly(best.low, best.rounding, strict & ~done)
            if self.record is not None:
                self.record.refuted(regions.take(done), best.take(done))
            alive = np.flatnonzero(~done)
            if not len(alive):
                return
            regions, best = regions.take(alive), best.take(alive)
            if look == 1:
                self.try_corners(best.corners)
                if self.witness is not None:
                    return
            if self.record is not None and not self.plain:
                self.record.cut(regions, best)
            before = self.slack(regions, best)
            if self.bounds.depth:
                self.sharpen(regions, best)
            again = self.slack(regions, best) < GAINING * before if look < looks else np.zeros(len(best.low), bool)
            self.wait(regions.take(~again), best.take(~again))
            regions, multipliers = regions.take(again), best.multipliers.take(again)
            if not len(regions):
                return

    def asked_exactly(self, low: Floats, rounding: Floats | float, able: Truths) -> Truths:
        """Which of these bounds exact arithmetic may find to refute, being within their own rounding of 0."""
        near = np.asarray((low <= 0) & (low + 2 * rounding >= 0) & able & self.exactly)
        self.near |= bool(near.any())
        if self.record is None:
            return np.zeros_like(near)
        self.record.near |= self.near
        return near

    def note_crossed(self, regions: InputRegions, multipliers: Multipliers) -> None:
        """In the record, of the regions whose bounds crossed."""
        empty = regions.empty()
        if self.record is not None and empty.any():
            self.record.crossed(regions.take(empty), multipliers.take(empty))

    def slack(self, regions: InputRegions, best: Ascended) -> Floats:
        """[n]: what all upper lines cost together."""
        return np.asarray(np.maximum(self.scores(regions, best), 0.0).sum(axis=1))

    def wait(self, regions: InputRegions, best: Ascended) -> None:
        if not len(regions):
            return
        place, small = self.choose(regions, best)
        small |= self.linear(regions, best)
        if self.record is not None:
            self.record.renew(regions.take(regions.empty()))  # what crosses was found after the last cut
            self.record.refuted(regions.take(regions.empty()), best.take(regions.empty()))
        small &= ~regions.empty()
        asked = self.asked_exactly(best.low, best.rounding, small)
        if self.record is not None:
            self.record.refuted(regions.take(asked), best.take(asked))
        self.unresolved += int((small & ~asked).sum())
        alive = np.flatnonzero(~small & ~regions.empty())
        order = alive[np.argsort(-best.low[alive], kind="stable")]
        if len(order):
            self.pending.append(Block(regions, best.multipliers, place, best.low).take(order))

    def linear(self, regions: InputRegions, best: Ascended) -> Truths:
        """Whether a single atom bends nowhere in the region, and is least within its own rounding of 0: halves of the
        region would only repeat that."""
        near = np.asarray((best.low + 2 * best.rounding >= 0) & (len(self.question.atoms) == 1))
        if near.any():
            near &= self.scores(regions, best).max(axis=1, initial=-1.0) < 0
        return near

    def try_corners(self, corners: Floats) -> None:
        value = worst(self.question, corners)
        x = corners[np.argsort(value, kind="stable")[:PROMISING]]
        low, high = self.question.low, self.question.high
        for step in range(REFINING + 1):
            value, slope = descent(self.question, x)
            order = np.argsort(value, kind="stable")
            if value[order[0]] <= NEAR:
                for place in order[:2]:
                    self.witness = self.witness or self.deployed.witness(self.question.case, x[place])
                if self.witness is not None:
                    return
            x = np.clip(x - (high - low) * 0.05 * 0.5**step * np.sign(slope), low, high)

    def sharpen(self, regions: InputRegions, best: Ascended) -> None:
        """Neurons of the first layer, where the atoms' weighted sum can be <= 0, and inputs; in a plain record these
        alone."""
        bounded = Bounded(best.low[:, None], best.coefficients[:, None, :])
        if self.plain and self.record is not None:
            rows = self.shrunk(regions, bounded)
            self.record.cut(regions.take(rows), best.take(rows), forget=True)
            return
        regions.least[0], regions.greatest[0] = regions.least[0].copy(), regions.greatest[0].copy()
        sharpened(self.bounds, regions, best.low, best.coefficients, np.flatnonzero((best.given[0] < 0).any(axis=0)))
        contracted(regions, bounded)

    def shrunk(self, regions: InputRegions, bounded: Bounded) -> Truths:
        """Contracts them; in a plain record those that become narrow by it, and keeps their bounds. [n]: which."""
        low, high = regions.low, regions.high
        contracted(regions, bounded)
        if not self.plain:
            return np.ones(len(low), dtype=np.bool_)
        rows = np.asarray((regions.high - regions.low < NARROW * (high - low)).any(axis=1))
        regions.low = np.where(rows[:, None], regions.low, low)
        regions.high = np.where(rows[:, None], regions.high, high)
        regions.keep(rows)
        return rows

    def choose(self, regions: InputRegions, best: Ascended) -> tuple[Indices, Truths]:
        """[n]: where to split each region, and whether it is too small for that."""
        width = regions.high - regions.low
        whole = np.maximum(self.question.high - self.question.low, np.finfo(np.float64).tiny)
        inputs = (self.reach(regions, best) + 1e-300) * width
        finest = FINEST * whole if self.record is None else np.maximum(FINEST * whole, NARROWEST)
        inputs = np.where(width <= finest, -1.0, inputs)
        dimension = inputs.argmax(axis=1)
        small = inputs[np.arange(len(inputs)), dimension] < 0
        if self.way == "inputs" or not self.bounds.depth:
            return dimension, small
        flat = self.scores(regions, best)
        if self.record is not None:
            flat = np.where(self.record.named, flat, -1.0)
        neuron = flat.argmax(axis=1)
        splits = flat[np.arange(len(flat)), neuron] > 0
        return np.where(splits, neuron + self.starts[1], dimension), np.where(splits, False, small)

    def reach(self, regions: InputRegions, best: Ascended) -> Floats:
        """[n, inputs]: how fast the atoms' weighted sum moves with each input where no two paths of it cancel, open
        neurons passing on what their upper lines do.

        Coefficients of a bound would name an input whose effects cancel in it, and little is left open there.
        """
        weights = best.multipliers.weights

        def through(i: int, given: Floats | None) -> Floats | None:
            low, high = regions.least[i - 1], regions.greatest[i - 1]
            return None if given is None else given * chord_slope(0.0, low, high)

        handed = {j: np.abs(weights @ w) for j, w in self.question.atoms.weights.items()}
        found = handed_back(self.absolute, handed, through)
        return np.zeros_like(regions.low) if found is None else found

    def scores(self, regions: InputRegions, best: Ascended) -> Floats:
        """[n, neurons]: what the upper lines of open neurons cost at most; -1 for the others."""
        if not self.bounds.depth:
            return np.zeros((len(regions), 0))
        scores = []
        for layer, given in enumerate(best.given):
            low, high = regions.least[layer], regions.greatest[layer]
            is_open = (low < 0) & (high > 0)
            raised = np.where(is_open, chord_slope(0.0, low, high) * -low, 0.0)
            cost = np.maximum(-given, 0.0) * raised
            scores.append(np.where(is_open, cost + 1e-9 * np.minimum(-low, high), -1.0))
        return np.concatenate(scores, axis=1)

    def halves(self, block: Block) -> InputRegions:
        """Both halves of every region, all first ones before all second ones."""
        first, second = block.regions.take(slice(None)), block.regions.take(slice(None))
        if self.plain:
            first.fall_back()
            second.fall_back()
        first.nodes, second.nodes = first.nodes.copy(), second.nodes.copy()
        rows = np.flatnonzero(block.place < self.starts[1])
        if len(rows):
            places = block.place[rows]
            first.high, second.low = first.high.copy(), second.low.copy()
            low, high = first.low[rows, places], first.high[rows, places]
            middle = np.clip(low + (high - low) / 2, low, high) if self.record is None else short(low, high)
            first.high[rows, places] = middle
            second.low[rows, places] = middle
            if self.record is not None:
                first.nodes[rows], second.nodes[rows] = self.record.halved(first.nodes[rows], places, middle)
        for layer in range(self.bounds.depth):
            start, end = self.starts[layer + 1], self.starts[layer + 2]
            rows = np.flatnonzero((block.place >= start) & (block.place < end))
            if not len(rows):
                continue
            places = block.place[rows] - start
            if self.record is not None:
                first.nodes[rows], second.nodes[rows] = self.record.decided(first.nodes[rows], layer, places)
            for half, phase in ((first, -1), (second, 1)):
                half.phases[layer] = half.phases[layer].copy()
                half.phases[layer][rows, places] = phase
                if self.plain:  # phases count once bounds are found
                    continue
                if phase < 0:
                    half.greatest[layer] = half.greatest[layer].copy()
                    half.greatest[layer][rows, places] = 0.0
                else:
                    half.least[layer] = half.least[layer].copy()
                    half.least[layer][rows, places] = 0.0
                if layer == 0 and self.record is None:
                    self.shrink(half, rows, places, phase)
        return joined([first, second])

    def shrink(self, half: InputRegions, rows: Indices, places: Indices, phase: int) -> None:
        """A decided neuron of the first layer says something linear of the inputs: -phase * z <= 0."""
        layer = self.bounds.stack.layers[0]
        weight, bias = -phase * layer.weights[0][places], -phase * layer.bias[places]
        low, high = half.low[rows], half.high[rows]
        least = bias + (np.where(weight >= 0, low, high) * weight).sum(axis=1) - 2 * self.bounds.errors[1][places]
        part = half.take(rows)
        contracted(part, Bounded(least[:, None], weight[:, None, :]))
        half.low, half.high = half.low.copy(), half.high.copy()
        half.low[rows], half.high[rows] = part.low, part.high
