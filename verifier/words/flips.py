"""A[text, word]: whether some single replacement by the word changes the text's answer, for every word at once.

For every position the vocabulary's words are one table of values at the cut. With one hidden layer, boxes of words are
first bounded as a whole; other networks, and boxes that stay undecided, are evaluated word by word in float32. What is
inside the rounding error is decided by exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.evaluation import values
from swapproof.encodings.incremental import DOUBLE
from swapproof.encodings.magnitudes import magnitudes
from swapproof.encodings.network import Embedding, Network
from swapproof.encodings.one_word import OneWord, Tail
from swapproof.encodings.query import Query
from swapproof.encodings.rounding import SLOP, margin_errors, rounding_errors
from swapproof.encodings.shallow import is_shallow
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_boxes import Boxes

from ..counting.judging import GUARD
from ..engines.truth import SINGLE, exactly_beaten
from .box_bounds import BoxBounds, Form, shallow_form

Array = NDArray[Any]

FEW_DIMENSIONS = 4
"""Boxes of words shrink only in so many dimensions."""
SMALL = 16
"""Words in the smallest boxes."""
PAIRS = 1 << 9
"""Pairs of text and box bounded together, and words evaluated together with all hidden neurons."""
CELLS = 1 << 17
"""Numbers in one block of values at the cut."""
CLOSE = 256
"""Sentences decided in float64 together."""
CARE = 4.0
"""Margins here are summed in another order than `Differences.margins` does, a few terms more."""


@dataclass(frozen=True)
class Subject:
    """A text that the model answers correctly: its tokens, where they can be replaced, and its gold class."""

    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    label: int


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
    """Of all: boxes bounded, sentences evaluated in float32, sentences decided by exact arithmetic."""


@dataclass(frozen=True, eq=False)
class Rounding:
    """[texts, rivals]: margins as computed here are off by at most `own`; the deployed model's by `deployed`."""

    own: Array
    deployed: Array


@dataclass(eq=False)
class Search:
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
    def cuts(self) -> Array:
        """[texts, width]."""
        return self.one_word.cuts(np.array([subject.tokens for subject in self.subjects], dtype=np.int64))

    def run(self) -> Flips:
        """All positions, all words."""
        at: dict[int, list[int]] = {}
        for number, subject in enumerate(self.subjects):
            for position in subject.positions:
                at.setdefault(position, []).append(number)
        self.boxes = Boxes.of(self.coordinates, SMALL if self.by_boxes else len(self.words))
        self.sorted = self.coordinates[self.boxes.order]
        margins = [shallow_form(self.query, rival) for rival in range(len(self.query.rivals))] if self.shallow else []
        flipped = np.zeros_like(self.result.flipped)
        self.edges = np.zeros((len(self.subjects), len(self.words) + 1), dtype=np.int32)
        for position, texts in sorted(at.items()):
            self.result.sentences += len(texts) * len(self.words)
            numbers = np.array(texts)
            slope = self.one_word.slope(position)
            own = self.one_word.rows(np.array([self.subjects[n].tokens[position] for n in texts]))
            origin = self.cuts[numbers] - own @ slope
            rounding = self.rounding(position, numbers, slope)
            if self.shallow:
                for rival, form in enumerate(margins):
                    self.shallow_position(position, numbers, origin, slope, form, rival, rounding, flipped)
            else:
                self.plain_position(position, numbers, origin, slope, rounding, flipped)
            self.advance(len(texts))
        flipped |= np.cumsum(self.edges, axis=1, dtype=np.int32)[:, :-1] > 0
        self.settle_close(flipped)
        self.result.unsure = {
            (text, int(self.boxes.order[word])) for text, word in self.doubtful if not flipped[text, word]
        }
        for (text, word), won in self.doubtful.items():
            flipped[text, word] |= won
        self.result.flipped[:, self.boxes.order] = flipped
        return self.result

    @cached_property
    def shallow(self) -> bool:
        return is_shallow(self.network)

    @property
    def by_boxes(self) -> bool:
        return self.shallow and self.one_word.dimensions <= FEW_DIMENSIONS

    @cached_property
    def reach(self) -> Array:
        """[dimensions]: the greatest coordinate of any word that stands anywhere."""
        tokens = {token for subject in self.subjects for token in subject.tokens}
        others = np.abs(self.one_word.rows(np.array(sorted(tokens)))).max(axis=0)
        return np.asarray(np.maximum(np.abs(self.coordinates).max(axis=0, initial=0.0), others))

    def rounding(self, position: int, numbers: Array, slope: Array) -> Rounding:
        """How far margins of these texts, with any word at this position, can be off."""
        network = self.network
        tokens = np.array([self.subjects[number].tokens for number in numbers.tolist()])
        embedded, start = {}, 0
        for index, width in zip(self.one_word.embeddings, self.one_word.widths, strict=True):
            layer = network.nodes[index].layer
            if isinstance(layer, Embedding):
                array = np.abs(np.asarray(layer.table[tokens[:, layer.positions]], dtype=np.float64))
                array[:, layer.positions == position] = self.reach[start : start + width]
                embedded[index] = array
            start += width
        moved = 2.0 * (self.reach @ np.abs(slope))
        cut, at_cut, own, first = np.abs(self.cuts[numbers]) + moved, {}, {}, 0
        # J is a difference of two values computed in float64; a word's coordinates multiply its error.
        double = GUARD * DOUBLE * (1.0 + self.reach.sum()) * (cut + 1.0)
        for index in network.cut:
            node = network.nodes[index]
            part = slice(first, first + node.size)
            at_cut[index] = cut[:, part].reshape(-1, *node.shape)
            own[index] = (4 * SINGLE * cut + double)[:, part].reshape(-1, *node.shape)
            first += node.size
        sizes = magnitudes(network, embedded, at_cut)
        last, label, rivals = len(network.nodes) - 1, self.label, list(self.query.rivals)
        errors = rounding_errors(network, sizes, SINGLE, own)[last][:, 0, :]
        logits = sizes[last][:, 0, :] + errors
        both = errors + errors[:, [label]] + SINGLE * (logits + logits[:, [label]])
        return Rounding(CARE * both[:, rivals], margin_errors(network, sizes, label)[:, rivals])

    # ---- networks with one hidden layer

    def shallow_position(
        self,
        position: int,
        numbers: Array,
        origin: Array,
        slope: Array,
        form: Form,
        rival: int,
        rounding: Rounding,
        flipped: NDArray[np.bool_],
    ) -> None:
        states = form.states(origin).astype(np.float32)
        steps = slope @ form.matrix
        table = (self.sorted @ steps).astype(np.float32)
        bounds = BoxBounds(self.boxes, steps, form.weights)
        # A bound adds more terms than an evaluation.
        guards = (rounding.deployed + GUARD * rounding.own)[:, rival].astype(np.float32)
        reach = (rounding.deployed + rounding.own)[:, rival].astype(np.float32)
        texts, boxes = np.arange(len(numbers)), np.zeros(len(numbers), dtype=np.int64)
        while len(texts):
            some = parts(len(texts), PAIRS)
            signs = np.concatenate([bounds.signs(states[texts[p]], boxes[p], guards[texts[p]]) for p in some])
            self.result.bounded += len(texts)
            flips = signs < 0
            # Boxes of one level start at different words, so no element is met twice here.
            self.edges[numbers[texts[flips]], self.boxes.start[boxes[flips]]] += 1
            self.edges[numbers[texts[flips]], self.boxes.stop[boxes[flips]]] -= 1
            opened = signs == 0
            texts, boxes = texts[opened], boxes[opened]
            first = self.boxes.first[boxes]
            last = first < 0
            self.evaluate(position, numbers, states, table, form, rival, reach, texts[last], boxes[last], flipped)
            texts = np.repeat(texts[~last], 4)
            boxes = (first[~last, None] + np.arange(4)).reshape(-1)
            filled = self.boxes.start[boxes] < self.boxes.stop[boxes]
            texts, boxes = texts[filled], boxes[filled]

    def evaluate(
        self,
        position: int,
        numbers: Array,
        states: Array,
        table: Array,
        form: Form,
        rival: int,
        reach: Array,
        texts: Array,
        boxes: Array,
        flipped: NDArray[np.bool_],
    ) -> None:
        """Every word of these boxes."""
        if not len(texts):
            return
        weights = form.weights.astype(np.float32)
        widest = int((self.boxes.stop[boxes] - self.boxes.start[boxes]).max())
        step = max(1, CELLS // (states.shape[1] * min(widest, PAIRS)))
        for block in parts(len(texts), step):
            for offset in range(0, widest, PAIRS):
                start, stop = self.boxes.start[boxes[block]] + offset, self.boxes.stop[boxes[block]]
                words = start[:, None] + np.arange(min(PAIRS, widest - offset))
                there = words < stop[:, None]
                words = np.minimum(words, (stop - 1)[:, None])
                values = states[texts[block], None, :] + table[words]
                margins = np.maximum(values[..., :-1], np.float32(0)) @ weights + values[..., -1]
                self.result.evaluated += int(there.sum())
                self.decide(position, numbers[texts[block]], words, there, margins, reach[texts[block]], rival, flipped)

    # ---- all others

    def plain_position(
        self,
        position: int,
        numbers: Array,
        origin: Array,
        slope: Array,
        rounding: Rounding,
        flipped: NDArray[np.bool_],
    ) -> None:
        columns = np.flatnonzero((slope != 0).any(axis=0))
        table = (self.sorted @ slope[:, columns]).astype(np.float32)
        step = max(1, CELLS // max(1, len(columns)))
        label, rivals = self.label, list(self.query.rivals)
        reaches = (rounding.deployed + rounding.own).astype(np.float32)
        for number, start, far in zip(numbers.tolist(), origin, reaches, strict=True):
            tail = Tail(self.network, self.cuts[number].astype(np.float32), columns)
            here = start[columns].astype(np.float32)
            for block in parts(len(self.words), step):
                words = np.arange(block.start, min(block.stop, len(self.words)))
                words = words[~flipped[number, words]]
                if not len(words):
                    continue
                logits = tail.logits(here + table[words])
                self.result.evaluated += len(words)
                for rival, other in enumerate(rivals):
                    margins = logits[:, label] - logits[:, other]
                    there = np.ones((1, len(words)), dtype=bool)
                    one = np.array([number])
                    reach = far[rival : rival + 1]
                    self.decide(position, one, words[None], there, margins[None], reach, rival, flipped)

    def decide(
        self,
        position: int,
        texts: Array,
        words: Array,
        there: Array,
        margins: Array,
        reach: Array,
        rival: int,
        flipped: NDArray[np.bool_],
    ) -> None:
        """Margins [texts, words] against one rival: certain ones are noted, the others decided exactly."""
        far = reach[:, None]
        row, column = np.nonzero(there & (margins < -far))
        flipped[texts[row], words[row, column]] = True
        row, column = np.nonzero(there & ~(margins > far) & ~(margins < -far))
        for text, word in zip(texts[row].tolist(), words[row, column].tolist(), strict=True):
            self.close.append((text, position, word, rival))

    def settle_close(self, flipped: NDArray[np.bool_]) -> None:
        """The sentences whose float32 margin says too little: float64 and their own rounding errors, then exactly."""
        for block in parts(len(self.close), CLOSE):
            close = [one for one in self.close[block] if not flipped[one[0], one[2]]]
            if not close:
                continue
            tokens = np.array([self.subjects[text].tokens for text, _, _, _ in close], dtype=np.int64)
            words = self.words[self.boxes.order[[word for _, _, word, _ in close]]]
            tokens[np.arange(len(close)), [position for _, position, _, _ in close]] = words
            margins, own, deployed = self.own_margins(tokens)
            for number, (text, _, word, rival) in enumerate(close):
                margin, error, far = (float(array[number, rival]) for array in (margins, own, deployed))
                if abs(margin) > error:
                    won = margin < 0
                else:
                    alone = replace(self.query, rivals=(self.query.rivals[rival],))
                    won, plain = exactly_beaten(alone, tuple(tokens[number].tolist()))
                    self.result.exactly += 1
                    far = 0.0 if plain else far
                if abs(margin) > error + far or (far == 0.0):
                    flipped[text, word] |= won
                else:
                    self.doubtful[text, word] = self.doubtful.get((text, word), False) or won

    def own_margins(self, tokens: Array) -> tuple[Array, Array, Array]:
        """[n, rivals] each, of these sentences: margins in float64, their errors, and those of the deployed model."""
        found = values(self.network, tokens)
        sizes = {index: np.abs(array) * SLOP for index, array in found.items()}
        label, rivals, last = self.label, list(self.query.rivals), len(self.network.nodes) - 1
        logits = found[last][:, 0, :]
        errors = 2.0 * margin_errors(self.network, sizes, label, DOUBLE) + DOUBLE * np.abs(logits).max()
        deployed = margin_errors(self.network, sizes, label)
        return (logits[:, [label]] - logits)[:, rivals], errors[:, rivals], deployed[:, rivals]


def parts(count: int, size: int) -> list[slice]:
    return [slice(first, first + size) for first in range(0, count, size)]
