"""How long the sentences of a data set would take, said before the first is evaluated for its own sake."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from swapproof.encodings.sentence_counts import counts
from swapproof.models.deployed.classifier import Classifier, NoAnswer
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.errors import BadInput

from ..pages.progress import LONGEST as LONGEST
from ..pages.progress import duration as duration
from .sentence_order import SentenceOrder
from .simple_prover import FIRST, MOST

TRIED, SIZES = 8, (16, 96)
"""Texts that are timed, short ones and long ones, and sentences of each that are asked together."""
PATIENCE = 5.0
"""Seconds that timing may take, once two texts are timed."""
RADII = 4


@dataclass(frozen=True)
class Estimate:
    """`sentences[r]` have exactly r + 1 swaps, over all texts, and take about `seconds[r]`; `most` is what all texts
    take that are given no more than their time each."""

    sentences: tuple[int, ...]
    seconds: tuple[float, ...]
    most: float

    @property
    def lines(self) -> Iterator[str]:
        for place, (number, seconds) in enumerate(zip(self.sentences, self.seconds, strict=True), start=1):
            swaps = "1 swap" if place == 1 else f"{place} swaps"
            yield f"with {swaps}: {large(number)} sentences, about {duration(seconds)}"


@dataclass(frozen=True)
class Cost:
    """Of a text, in seconds: `first` to prepare it, `request` for each time the model is asked, `each` sentence."""

    first: float
    request: float
    each: float

    def of(self, sentences: int) -> float:
        """Of those with equally many swaps: the blocks that are asked together grow."""
        requests, block, left = sentences // MOST, FIRST, sentences % MOST
        while left > 0:
            requests, left, block = requests + 1, left - block, 4 * block
        return requests * self.request + sentences * self.each


def estimated(
    classifier: Classifier,
    texts: Sequence[SwapText],
    right: Sequence[bool] = (),
    *,
    jobs: int = 1,
    limit: float | None = None,
) -> Estimate | None:
    """By the time that some sentences of a few texts take; None where nothing can move or the model does not answer.

    `right`: whether the model answers the first texts rightly: those that it gets wrong are not worked on, and of the
    texts behind them as large a share is expected to be. `jobs`: texts that are worked on at a time; `limit`: seconds
    for a text.
    """
    share = sum(right) / len(right) if right else 1.0
    parted = [(text, float(right[place]) if place < len(right) else share) for place, text in enumerate(texts)]
    weighed = [(text, weight) for text, weight in parted if text.swappable and weight]
    moving = sorted((text for text, _ in weighed), key=lambda text: len(text.text))
    timed = sorted(timings(classifier, moving), key=lambda found: found[0])
    if not timed:
        return None
    lengths = [length for length, _ in timed]
    parts = np.array([[cost.first, cost.request, cost.each] for _, cost in timed]).T
    sentences, seconds, most = [0.0] * RADII, [0.0] * RADII, 0.0
    for text, weight in weighed:
        cost = Cost(*(float(np.interp(len(text.text), lengths, part)) for part in parts))
        sizes = [len(text.options[word]) for word in text.swappable]
        by_swaps = counts([size - 1 for size in sizes], RADII)
        for radius, number in enumerate(by_swaps[1 : RADII + 1]):
            sentences[radius] += weight * number
            seconds[radius] += weight * min(LONGEST, cost.of(number) + (0.0 if radius else cost.first)) / jobs
        everything = min(LONGEST, cost.first + min(10**18, math.prod(sizes)) * cost.each)
        most += weight * (everything if limit is None else min(limit, everything)) / jobs
    last = max(place for place, number in enumerate(sentences, start=1) if number)
    return Estimate(tuple(map(round, sentences[:last])), tuple(seconds[:last]), most)


def timings(classifier: Classifier, moving: Sequence[SwapText]) -> Iterator[tuple[int, Cost]]:
    """(length, cost) of some texts, the shortest and the longest first."""
    if not moving:
        return
    places = np.unique(np.linspace(0, len(moving) - 1, TRIED).round().astype(int)).tolist()
    until, number = time.monotonic() + PATIENCE, 0
    for place in dict.fromkeys([places[0], places[-1], *places]):
        if number >= 2 and time.monotonic() >= until:
            return
        try:
            cost = timing(classifier, moving[place])
        except (BadInput, NoAnswer):
            continue  # whoever asks about these sentences for their own sake says it
        number += 1
        yield len(moving[place].text), cost


def timing(classifier: Classifier, text: SwapText) -> Cost:
    order = SentenceOrder.of_text(text.options)
    swaps = min(2, len(order.counts) - 1)
    started = time.monotonic()
    variants = classifier.variants(text)
    variants.scores(order.rows(swaps, range(1)))
    first, spent = time.monotonic() - started, list[float]()
    for size in SIZES:
        rows = order.rows(swaps, np.linspace(0, order.counts[swaps] - 1, size).astype(int))
        started = time.monotonic()
        variants.scores(rows)
        spent.append(time.monotonic() - started)
        if spent[-1] >= PATIENCE / TRIED:
            break
    (few, least), (many, most) = [(0, 0.0), *zip(SIZES, spent, strict=False)][-2:]
    each = (most - least) / (many - few)
    each = each if each >= 0 else most / many  # a small batch may happen to take longer than a large one
    return Cost(first, max(0.0, most - many * each), each)


def large(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"{number:.1e}"
