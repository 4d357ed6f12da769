"""The simple prover of the PDP paper: every sentence with one swap, with two, ... until one breaks or time is up.

What it finds holds for the model as it answered here. No number is bounded: each sentence of the claim was evaluated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.answers.score_rows import Unreachable
from swapproof.models.deployed.classifier import NoAnswer
from swapproof.models.deployed.decision import NO_CLASS

from .asking import Asking
from .cheap_attack import dangerous
from .sentence_order import SentenceOrder

BLOCK_SECONDS = 0.5
"""About how long the model is asked at once."""
FIRST, FEWEST, MOST = 64, 16, 8192
"""Sentences of the first block, and of any."""

KEEP_SECONDS = 10.0
"""A killed process has lost about as much of a text."""

Row = NDArray[Any]


@dataclass(frozen=True)
class Partly:
    """Of the sentences with exactly so many swaps, in this order, the first `evaluated` keep the label."""

    swaps: int
    order: SentenceOrder
    evaluated: int
    total: int


@dataclass(eq=False)
class Found:
    """What is known of one text. Every sentence with at most `harmless` swaps keeps its label; -1: not even the text.

    `witness` is the option of every word in a sentence that another class wins.
    """

    predicted: int = NO_CLASS
    harmless: int = -1
    witness: Row | None = None
    engine: str = "replay"
    least: float = float("inf")
    """The least margin met among the sentences that keep the label."""
    partly: Partly | None = None
    reason: str | None = None
    ambiguous: bool = False
    order: SentenceOrder | None = field(default=None, repr=False)
    block: int = FIRST
    keep: Callable[[Found], None] | None = field(default=None, repr=False)
    """Is told what is known so far, every KEEP_SECONDS once the sentences with one swap are done."""
    kept: float = field(default_factory=time.monotonic, repr=False)

    @property
    def high(self) -> int | None:
        return None if self.witness is None else int(np.count_nonzero(self.witness))


class Unsteady(Exception):
    """An answer that is another one when the same sentence is asked about otherwise."""


@dataclass(frozen=True)
class Ways:
    """`attacks` find sentences first; the cheap attack and the enumeration follow, each if it is wanted."""

    attacks: Callable[[Asking, float], Iterable[tuple[str, Row]]] = lambda asking, until: ()
    cheap: bool = True
    enumerates: bool = True


def prove(
    asking: Asking,
    until: float,
    known: Found | None = None,
    keep: Callable[[Found], None] | None = None,
    ways: Ways | None = None,
) -> Found:
    """`until`: in seconds of time.monotonic(); `known`: what an earlier try found, to go on from there."""
    found = Found(keep=keep)
    try:
        climb(asking, until, known, found, Ways() if ways is None else ways)
    except Unreachable as error:  # no sentence's fault: the text is tried again when the run is gone on with
        raise BadInput(f"{error}; what is finished stays, and the same command goes on from there") from None
    except NoAnswer as error:
        found.reason = f"the model cannot answer: {error}"
    except Unsteady as error:
        found.reason, found.ambiguous = str(error), True
    return found


def climb(asking: Asking, until: float, known: Found | None, found: Found, ways: Ways) -> None:
    answers, margins = asking.judged(asking.original)
    found.predicted = int(answers[0])
    if found.predicted != asking.label:
        take(asking, asking.original[0], found)
        return
    found.harmless, found.least = 0, float(margins[0])
    order = SentenceOrder.of_text(asking.text.options)
    if known is not None and known.harmless >= 0:
        found.harmless, found.least = known.harmless, min(found.least, known.least)
        if known.witness is not None:
            take(asking, known.witness, found, known.engine)
    for name, row in ways.attacks(asking, until):
        take(asking, row, found, name)
    if not (ways.enumerates or ways.cheap):
        found.order, found.reason = order, "only attacks were asked for, and they prove nothing"
        return
    if known is None or known.order is None:
        order = singles(asking, order, until, found)
        if ways.cheap and found.reason is None and found.harmless == 1:
            for rows in dangerous(asking, order):
                take(asking, rows[0], found, "greedy")
    else:
        order = known.order
    found.order = order
    if not ways.enumerates:
        found.reason = found.reason or "only attacks were asked for, and they prove nothing"
    while found.reason is None and found.harmless + 1 < (found.high or len(order.counts)):
        swaps = found.harmless + 1
        before = known.partly if known is not None else None
        begun = before.evaluated if before is not None and before.swaps == swaps else 0
        sweep(asking, order, swaps, begun, until, found)


def singles(asking: Asking, order: SentenceOrder, until: float, found: Found) -> SentenceOrder:
    """Every sentence with one swap; the order by what these did."""
    if len(order.counts) == 1:
        return order
    margins = list(sweep(asking, order, 1, 0, until, found))
    return order.by_danger(np.concatenate(margins)) if found.harmless == 1 else order


def sweep(asking: Asking, order: SentenceOrder, swaps: int, begun: int, until: float, found: Found) -> list[Row]:
    """Evaluate the sentences with so many swaps from number `begun` on, until one breaks. Returns their margins."""
    total, done = order.counts[swaps], begun
    margins: list[Row] = []
    for numbers in blocks(done, total, found):
        if time.monotonic() >= until:
            found.partly = Partly(swaps, order, done, total)
            found.reason = f"out of time among the sentences with {counted(swaps)}: {done:,} of {total:,} evaluated"
            return margins
        rows, started = order.rows(swaps, numbers), time.monotonic()
        answers, margin = asking.judged(rows)
        spent = time.monotonic() - started
        broken = np.flatnonzero(answers != asking.label)
        if len(broken):
            worst = broken[np.argmin(np.where(np.isnan(margin[broken]), np.inf, margin[broken]))]
            take(asking, rows[worst], found, "simple")
            return margins
        margins.append(margin)
        found.least = min(found.least, float(margin.min()))
        done = numbers.stop
        if swaps > 1 and found.keep is not None and time.monotonic() - found.kept >= KEEP_SECONDS:
            found.partly = Partly(swaps, order, done, total)
            found.keep(found)
            found.partly, found.kept = None, time.monotonic()
        found.block = next_block(found.block, spent)
    found.harmless = swaps
    return margins


def next_block(block: int, spent: float) -> int:
    """How many sentences to ask about next, after so many took so long."""
    return int(np.clip(block * BLOCK_SECONDS / max(spent, 1e-9), FEWEST, min(MOST, 4 * block)))


def blocks(start: int, total: int, found: Found) -> Iterator[range]:
    """Of a size that grows or shrinks with the time that the blocks before took."""
    while start < total:
        stop = min(total, start + found.block)
        yield range(start, stop)
        start = stop


def take(asking: Asking, row: Row, found: Found, engine: str = "replay") -> None:
    """A sentence that should break: believed when it does so spelt out, alone and among others."""
    swaps = int(np.count_nonzero(row))
    if found.high is not None and swaps >= found.high:
        return
    if asking.answer(row) in (asking.label, NO_CLASS):
        sentence = f"a sentence with {counted(swaps)}"
        if asking.judged(row[None])[0][0] == NO_CLASS:
            met = f"the model's scores for {sentence} hold NaN, so that no class wins"
        else:
            met = f"the model's answer to {sentence} depends on what it is asked beside"
        raise Unsteady(f"{met}: {asking.text.moved(row)[:80]!r}")
    found.witness, found.engine = np.array(row, dtype=np.int32), engine


def counted(swaps: int) -> str:
    return "1 swap" if swaps == 1 else f"{swaps} swaps"
