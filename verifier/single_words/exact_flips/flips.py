"""A[text, word]: whether some single replacement by the word changes the text's answer, for every word at once.

With one hidden layer, boxes of words are bounded as a whole, and most words of small boxes by a linear bound. Other
networks, and the words that are left, are evaluated in float32. What is inside the rounding error is decided in float64
or by exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.one_word import OneWord
from swapproof.encodings.bounds.shallow_margin import is_shallow
from swapproof.encodings.bounds.swap_differences import DOUBLE
from swapproof.encodings.evaluation import values
from swapproof.encodings.exact_evaluation import exactly_beaten
from swapproof.encodings.network import Network
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.float_errors import SLOP, margin_errors
from swapproof.encodings.space import SwapSpace

from ...ladder.truth import GUARD
from ..subject import Subject
from .blocks import parts
from .margin_errors import MarginErrors
from .margin_form import shallow_form
from .pooled_bounds import Pooled
from .tail_search import TailSearch
from .word_box_bounds import BoxBounds
from .word_box_search import BoxSearch, Sheet
from .word_boxes import Boxes

Array = NDArray[Any]

FEW_DIMENSIONS = 16
"""Boxes of words shrink only in so many dimensions,"""
FEWER_DIMENSIONS = 4
"""and pay with several hidden layers only in so many."""
SMALL = 64
"""Words in the smallest boxes."""
STATES = 1 << 22
"""Numbers in the states of the texts that go through the boxes together."""
CLOSE = 256
"""Sentences decided in float64 together."""


@dataclass(eq=False)
class Flips:
    """`flipped` [texts, words] over the reals; `unsure` holds the pairs that rounding may decide otherwise."""

    flipped: NDArray[np.bool_]
    unsure: set[tuple[int, int]]
    sentences: int = 0
    """Single replacements covered."""
    bounded: int = 0
    evaluated: int = 0
    exactly: int = 0
    """Of all: boxes bounded (at one position each), sentences evaluated in float32, and decided exactly."""


@dataclass(eq=False)
class FlipSearch:
    """Fills A for texts of one label and one length."""

    network: Network
    words: NDArray[np.int64]
    """[V]: their tokens."""
    subjects: Sequence[Subject]
    label: int
    advance: Callable[[int], None] = lambda number: None
    result: Flips = field(init=False)

    def __post_init__(self) -> None:
        shape = (len(self.subjects), len(self.words))
        self.result = Flips(np.zeros(shape, dtype=bool), set())
        self.doubtful: dict[tuple[int, int], bool] = {}
        self.close: list[tuple[int, int, int, int]] = []
        """Text, position, word and rival of sentences that float32 does not decide."""

    @cached_property
    def one_word(self) -> OneWord:
        return OneWord(self.network)

    @cached_property
    def coordinates(self) -> Array:
        """[V, dimensions]."""
        return self.one_word.rows(self.words)

    @cached_property
    def query(self) -> Query:
        """Of one of the texts: the label against every other class."""
        return Query.of(self.network, SwapSpace(tuple((t,) for t in self.subjects[0].tokens)), self.label)

    @cached_property
    def texts(self) -> NDArray[np.int64]:
        """[texts, length]: their tokens."""
        return np.array([subject.tokens for subject in self.subjects], dtype=np.int64)

    @cached_property
    def cuts(self) -> Array:
        """[texts, width]."""
        return self.one_word.cuts(self.texts)

    def run(self) -> Flips:
        """All positions, all words."""
        self.flipped = self.result.flipped
        if is_shallow(self.network):
            self.by_boxes()
        else:
            self.by_tails()
        self.settle_close()
        self.result.sentences = sum(len(subject.positions) for subject in self.subjects) * len(self.words)
        self.result.unsure = {pair for pair in self.doubtful if not self.flipped[pair]}
        for pair, won in self.doubtful.items():
            self.flipped[pair] |= won
        return self.result

    def at_positions(self, numbers: Sequence[int]) -> list[tuple[int, NDArray[np.int64]]]:
        """Every position, and the texts of these that have it."""
        at: dict[int, list[int]] = {}
        for number in numbers:
            for position in self.subjects[number].positions:
                at.setdefault(position, []).append(number)
        return [(position, np.array(texts)) for position, texts in sorted(at.items())]

    @cached_property
    def errors(self) -> MarginErrors:
        places = [subject.positions for subject in self.subjects]
        return MarginErrors(self.one_word, self.texts, places, self.cuts, self.reach, self.label, self.query.rivals)

    @cached_property
    def reach(self) -> Array:
        """[dimensions]: the greatest coordinate of any word that stands anywhere."""
        others = np.abs(self.one_word.rows(np.unique(self.texts))).max(axis=0)
        return np.asarray(np.maximum(np.abs(self.coordinates).max(axis=0, initial=0.0), others))

    def origin(self, position: int, numbers: Array, slope: Array) -> Array:
        """[n, width]: the cut of texts with a word of coordinates 0 at the position."""
        return np.asarray(self.cuts[numbers] - self.one_word.rows(self.texts[numbers, position]) @ slope)

    # ---- networks with one hidden layer

    def by_boxes(self) -> None:
        """As many texts at a time as fit in memory."""
        forms = [shallow_form(self.query, rival) for rival in range(len(self.query.rivals))]
        few = self.one_word.dimensions <= FEW_DIMENSIONS
        boxes = Boxes.of(self.coordinates, SMALL if few else max(1, len(self.words)))
        slopes = {position: self.one_word.slope(position) for position, _ in self.at_positions(range(len(self.texts)))}
        numbers = sum(len(form.weights) + 1 for form in forms) * max(1, len(slopes))
        for part in parts(len(self.texts), max(1, STATES // numbers)):
            first, sheets = part.start, []
            at = self.at_positions(range(len(self.texts))[part])
            for position, texts in at:
                slope = slopes[position]
                origin, rounding = self.origin(position, texts, slope), self.errors.at(position, texts, slope)
                # A bound adds more terms than an evaluation.
                guards = (rounding.deployed + GUARD * rounding.own).astype(np.float32)
                reach = (rounding.deployed + rounding.own).astype(np.float32)
                for rival, form in enumerate(forms):
                    states = form.states(origin).astype(np.float32)
                    bounds = BoxBounds(boxes, slope @ form.matrix, form)
                    one = guards[:, rival], reach[:, rival]
                    sheets.append(Sheet(position, rival, texts - first, states, *one, bounds))

            def decide(position: int, rival: int, texts: Array, *found: Array, first: int = first) -> None:
                self.decide(position, rival, texts + first, *found)

            search = BoxSearch(boxes, self.coordinates, sheets, self.flipped[part], decide)
            search.run()
            self.result.bounded += search.bounded
            self.result.evaluated += search.evaluated
            self.advance(sum(len(texts) for _, texts in at))

    # ---- all others

    def by_tails(self) -> None:
        few = self.one_word.dimensions <= FEWER_DIMENSIONS
        boxes = Boxes.of(self.coordinates, SMALL) if few else None
        pooled = None if few else Pooled.of(self.network, self.label, self.query.rivals)
        search = TailSearch(
            self.network, self.coordinates, boxes, pooled, self.label, self.query.rivals, self.flipped, self.decide
        )
        for position, texts in self.at_positions(range(len(self.texts))):
            slope = self.one_word.slope(position)
            rounding = self.errors.at(position, texts, slope)
            origin = self.origin(position, texts, slope)
            far, guards = rounding.deployed + rounding.own, rounding.deployed + GUARD * rounding.own
            search.at(position, texts, self.cuts[texts], origin, slope, far, guards)
            self.advance(len(texts))
        self.result.bounded, self.result.evaluated = search.bounded, search.evaluated

    def decide(self, position: int, rival: int, texts: Array, words: Array, margins: Array, reach: Array) -> None:
        """Margins [n] against one rival: certain ones are noted, the others kept to be decided more closely."""
        flips = margins < -reach
        self.flipped[texts[flips], words[flips]] = True
        close = ~(margins > reach) & ~flips
        for text, word in zip(texts[close].tolist(), words[close].tolist(), strict=True):
            self.close.append((text, position, word, rival))

    def settle_close(self) -> None:
        """The sentences whose float32 margin says too little: float64, then their own rounding errors, then exactly."""
        for block in parts(len(self.close), CLOSE):
            close = [one for one in self.close[block] if not self.flipped[one[0], one[2]]]
            close = self.unclear(close) if close else close
            if not close:
                continue
            tokens = self.sentences(close)
            margins, own, deployed = self.own_margins(tokens)
            for number, (text, _, word, rival) in enumerate(close):
                margin, error, far = (float(array[number, rival]) for array in (margins, own, deployed))
                if abs(margin) > error:
                    won = margin < 0
                else:
                    won, plain = exactly_beaten(self.query, tokens[number].tolist(), [self.query.rivals[rival]])
                    self.result.exactly += 1
                    far = 0.0 if plain else far
                if abs(margin) > error + far or (far == 0.0):
                    self.flipped[text, word] |= won
                else:
                    self.doubtful[text, word] = self.doubtful.get((text, word), False) or won

    def sentences(self, close: Sequence[tuple[int, int, int, int]]) -> NDArray[np.int64]:
        """[n, length]: their tokens."""
        texts, positions, words, _ = np.array(close).T
        tokens = self.texts[texts]
        tokens[np.arange(len(close)), positions] = self.words[words]
        return np.asarray(tokens)

    def unclear(self, close: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
        """Notes what float64 shows to be beyond the deployed model's error, whatever the word; returns the others.

        That error holds for every evaluation in the model's floats; one in float64 is off by the ratio of the units of
        it, and twice that where the constants are rounded too.
        """
        logits = values(self.network, self.sentences(close))[len(self.network.nodes) - 1][:, 0, :]
        deployed = np.array([self.errors.deployed(position, text) for text, position, _, _ in close])
        certain = deployed * (1.0 + 4.0 * DOUBLE / self.network.unit)
        left = []
        for number, one in enumerate(close):
            text, _, word, rival = one
            margin = logits[number, self.label] - logits[number, self.query.rivals[rival]]
            if not abs(margin) > certain[number, rival]:
                left.append(one)
            elif margin < 0:
                self.flipped[text, word] = True
        return left

    def own_margins(self, tokens: Array) -> tuple[Array, Array, Array]:
        """[n, rivals] each, of these sentences: margins in float64, their errors, and those of the deployed model."""
        found = values(self.network, tokens)
        sizes = {index: np.abs(array) * SLOP for index, array in found.items()}
        label, rivals, last = self.label, list(self.query.rivals), len(self.network.nodes) - 1
        logits = found[last][:, 0, :]
        errors = 2.0 * margin_errors(self.network, sizes, label, DOUBLE) + DOUBLE * np.abs(logits).max()
        deployed = margin_errors(self.network, sizes, label)
        return (logits[:, [label]] - logits)[:, rivals], errors[:, rivals], deployed[:, rivals]
