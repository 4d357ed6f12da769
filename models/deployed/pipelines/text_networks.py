"""One network for given texts, of pipelines that need more than sums over words.

Where a token counts less the second time (binary, sublinear_tf), what it is worth is a function of a whole number: the
network adds up how often it stands in a text, for the tokens that some sentence may repeat, and bends at 1, 2, ...

Where a text x is divided by its L2 norm and an intercept b is added, the answer is the sign of w.x + b |x|. The square
of |x| is a sum over words, once more up to repetitions. Its root is enclosed by straight pieces from both sides, so
close that hardly a sentence lies between. The network has one logit more, `undecided`, which wins there. With more
classes, or ReLUs, the network takes the root itself, and multiplies each intercept by it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ...word_network import Array, CountedNorm, ReadTexts, WordNetwork
from ..swapped_text import SwapText
from .pipeline_reading import Reading
from .word_counts import spelt

MOST_REPEATED = 64
"""Tokens whose repetitions the network minds: those that the most texts repeat."""
RATIO = 17 / 16
"""Of the squares between which the root is straight: it is known up to 0.012 %."""
DOWN = 1 - 2.0**-40
"""Less than the root, and not by rounding alone."""


def network_of(reading: Reading, spellings: Sequence[str], texts: Sequence[SwapText]) -> ReadTexts:
    misfits = [reading.uncountable(text) for text in texts]
    if reading.flat is None and reading.normed is None:
        return ReadTexts(reading.network(spellings), tuple(misfits), undecided=False)
    repeated = [_most(reading, text) if misfit is None else {} for text, misfit in zip(texts, misfits, strict=True)]
    repeated = [{column: times for column, times in most.items() if times > 1} for most in repeated]
    asked = Counter(column for most in repeated for column in most)
    minded = [column for column, _ in sorted(asked.items(), key=lambda item: (-item[1], item[0]))[:MOST_REPEATED]]
    highest: Counter[int] = Counter()
    for place, most in enumerate(repeated):
        if not set(most) <= set(minded):
            misfits[place] = f"repeats words that few texts repeat, and the network minds {MOST_REPEATED}"
        else:
            highest |= Counter(most)
    fitting = [text for text, misfit in zip(texts, misfits, strict=True) if misfit is None]
    bends = [(column, times) for column in minded if column in highest for times in range(1, highest[column])]
    return ReadTexts(_network(reading, spellings, fitting, bends), tuple(misfits), undecided=reading.enclosed)


def _most(reading: Reading, text: SwapText) -> Counter[int]:
    """How often each token may stand in a sentence."""
    total: Counter[int] = Counter()
    for options in spelt(text):
        most: Counter[int] = Counter()
        for option in options:
            most |= Counter(reading.counts.columns_of(option))
        total += most
    return total


def _network(
    reading: Reading, spellings: Sequence[str], texts: Sequence[SwapText], bends: Sequence[tuple[int, int]]
) -> WordNetwork:
    """Sums first: what the words add were no token repeated, the square of the norm, and for each bend how often its
    token stands there, less where it bends."""
    groups = reading.groups(spellings)
    columns = sorted({column for group in groups for column in group})
    place = {column: number for number, column in enumerate(columns)}
    counts = reading.counts.matrix(groups)[:, columns]
    effects, bias = reading.effects(columns), reading.head.bias
    if reading.normed is not None and not reading.enclosed:
        return _divided(reading, texts, counts, place, bends)
    if reading.normed is not None:
        effects = effects[:, 1:] - effects[:, :1]
    least = _power(max((_bound(reading, text, place, np.abs(effects)) for text in texts), default=1.0))
    shift = np.full(effects.shape[1], least)  # makes every sum positive, so that a Relu leaves it as it is
    corrections = np.array([_bend(reading, times) * effects[place[column]] for column, times in bends])
    if reading.normed is not None:
        squares = reading.squares(columns)[:, None]
        effects, shift = np.concatenate([effects, squares], axis=1), np.append(shift, 0.0)
        more = [_bend(reading, times, power=2) * squares[place[column]] for column, times in bends]
        corrections = np.concatenate([corrections.reshape(-1, 1), np.array(more).reshape(-1, 1)], axis=1)
    if not bends and reading.normed is None:
        return WordNetwork(np.asarray(counts @ effects), bias, reading.head.layers, rectified=bool(reading.head.layers))
    copies = counts[:, [place[column] for column, _ in bends]].toarray()
    rows = np.concatenate([counts @ effects, copies], axis=1)
    start = np.concatenate([shift, [-float(times) for _, times in bends]])
    sums = np.concatenate([np.eye(effects.shape[1]), corrections.T], axis=1)
    if reading.normed is None:
        return WordNetwork(rows, start, ((sums, bias - shift), *reading.head.layers), rectified=True)
    highest = max((_bound(reading, text, place, squares, repeated=True) for text in texts), default=1.0)
    kinks, pieces = _root(float(squares.min(initial=1.0)), 2 * highest, float(bias[1] - bias[0]))
    whole = np.array([-0.5, 0.5, 0.0])
    layers = (
        (sums[[0] + [1] * len(kinks)], np.concatenate([[0.0], -kinks])),
        (np.concatenate([whole[:, None], pieces[:, 1:]], axis=1), pieces[:, 0] - least * whole),
    )
    return WordNetwork(rows, start, layers, rectified=True)


def _divided(
    reading: Reading, texts: Sequence[SwapText], counts: Any, place: dict[int, int], bends: Sequence[tuple[int, int]]
) -> WordNetwork:
    """The same sums, and the root is taken."""
    effects, squares, bias = reading.effects([*place]), reading.squares([*place]), reading.head.bias
    copies = counts[:, [place[column] for column, _ in bends]].toarray()
    rows = np.concatenate([counts @ effects, (counts @ squares)[:, None], copies], axis=1)
    start = np.concatenate([np.zeros(len(bias) + 1), [-float(times) for _, times in bends]])
    changes = [_bend(reading, times) * effects[place[column]] for column, times in bends]
    more = [_bend(reading, times, power=2) * squares[place[column]] for column, times in bends]
    corrections = np.concatenate([np.array(changes).reshape(-1, len(bias)), np.array(more).reshape(-1, 1)], axis=1)
    least = 0.0
    if any(
        all(any(not reading.counts.columns_of(one) for one in options) for options in spelt(text)) for text in texts
    ):
        least = float(squares[squares > 0].min(initial=1.0)) * DOWN
    norm = CountedNorm(bias, corrections.T, least)
    return WordNetwork(rows, start, reading.head.layers, rectified=bool(reading.head.layers), norm=norm)


def _bend(reading: Reading, times: int, power: int = 1) -> float:
    """By how much what another token of its kind adds changes after so many, in parts of what the first adds."""
    before, here, after = (reading.worth(number) ** power for number in (times - 1, times, times + 1))
    return after - 2 * here + before


def _bound(reading: Reading, text: SwapText, place: dict[int, int], sizes: Array, *, repeated: bool = False) -> float:
    """Of the sums over any sentence, from the sizes of what tokens add; `repeated`: a token adds them times its number
    squared."""
    if repeated:
        return float(sum(times**2 * sizes[place[column]].max() for column, times in _most(reading, text).items()))
    total = 0.0
    for options in spelt(text):
        columns = [[place[column] for column in reading.counts.columns_of(option)] for option in options]
        total += max((float(sizes[own].sum(axis=0).max()) for own in columns if own), default=0.0)
    return total


def _power(number: float) -> float:
    """The next power of 2, and some room for rounding: it is added and taken away without any."""
    return 2.0 ** (math.frexp(max(number, 1.0))[1] + 1)


def _root(lowest: float, highest: float, factor: float) -> tuple[Array, Array]:
    """Kinks q and, for the logits of two classes and of `undecided`, a constant and numbers for max(0, Q - q), whose
    sums enclose factor times the root of Q, for all Q from lowest to highest. At 0 they have the sign of the factor:
    a text that counts nothing is not divided, and the intercept answers."""
    count = math.ceil(math.log(max(highest / lowest, 1.0)) / math.log(RATIO)) + 2
    kinks: Array = lowest * DOWN * np.power(RATIO, np.arange(count, dtype=np.float64))
    heights = np.sqrt(kinks) * DOWN
    slopes = np.diff(heights) / np.diff(kinks)
    pieces = np.concatenate([heights[:1], slopes[:1], np.diff(slopes)])
    excess = ((RATIO**0.25 + RATIO**-0.25) / 2 - 1) * 1.01
    middle, half = factor * (1 + excess / 2) * pieces, abs(factor) * excess / 2 * pieces
    _prove(kinks[:-1], middle, half, factor, lowest, highest)
    return kinks[:-1], np.stack([-middle / 2, middle / 2, half / 2])


def _prove(kinks: Array, middle: Array, half: Array, factor: float, lowest: float, highest: float) -> None:
    """That middle - half < factor * root < middle + half in every piece from lowest to highest, over the rationals.

    Said of |factor|: a line below the root at both ends of a piece is below it between, since the root is concave; a
    line a + bQ is above it everywhere if 4ab > factor^2.
    """
    square = Fraction(factor) ** 2
    sizes = [Fraction(float(number)) * (1 if factor > 0 else -1) for number in middle]
    margins = [Fraction(float(number)) for number in half]
    starts = [Fraction(float(kink)) for kink in kinks]
    ends = [*starts[1:], max(starts[-1], Fraction(highest))]
    if starts[0] > lowest:
        raise ArithmeticError("the pieces begin too late")
    for sign in (-1, 1):
        constant, *bends = [size + sign * margin for size, margin in zip(sizes, margins, strict=True)]
        slope, offset = Fraction(0), constant
        if offset <= 0:
            raise ArithmeticError("a text that counts nothing has no answer")
        for start, end, bend in zip(starts, ends, bends, strict=True):
            slope, offset = slope + bend, offset - bend * start
            heights = [offset + slope * at for at in (start, end)]
            if sign < 0 and any(h < 0 or h**2 >= square * at for h, at in zip(heights, (start, end), strict=True)):
                raise ArithmeticError("the pieces below the root are not below it")
            if sign > 0 and not (offset > 0 and slope > 0 and 4 * offset * slope > square):
                raise ArithmeticError("the pieces above the root are not above it")
