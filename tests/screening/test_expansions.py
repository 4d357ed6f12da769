"""The leaf `expansion` in float64: never above what check.py finds, near it, and what engines prove with it holds."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from leaf_bounds import Asked, asked
from smooth_cases import LENGTH, ROWS, cell, model

from swapproof.encodings.expansions.chains import chains_of
from swapproof.encodings.expansions.expanded import BITS, expanded
from swapproof.encodings.expansions.multipliers import Unfit
from swapproof.proofs import check
from swapproof.proofs.expansion.expansion_leaf import Chain, Expansion
from swapproof.proofs.writing import certificate
from swapproof.verifier.engines.expansion_engine import BOXES
from swapproof.verifier.engines.protocol import Bound, Budget
from swapproof.verifier.interval import Interval
from swapproof.verifier.screening.form.unsure import Unsure
from swapproof.verifier.screening.smooth_proofs import Screened

MADE = {
    "LSTM": cell("LSTM", "bidirectional", 0),
    "LSTM last": cell("LSTM", "reverse", 1, "B"),
    "LSTM stacked": cell("LSTM", "forward", 0, "B", stacked=2),
    "GRU": cell("GRU", "bidirectional", 0, "BS"),
    "GRU reset last": cell("GRU", "forward", 1, "BI", linear_before_reset=1),
}
SWAPPED = (0, 1, 3)
"""Positions of words, of three options each. (The LSTM in both directions reads three positions of one text only.)"""
CLASSES = 3


@lru_cache(16)
def about(name: str, seed: int, size: float = 0.5) -> Asked:
    drawn = random.Random(seed)
    text = [drawn.randrange(ROWS) for _ in range(LENGTH)]
    others = {at: drawn.sample([token for token in range(ROWS) if token != text[at]], 2) for at in SWAPPED}
    words = [[at, [[text[at]], *([token] for token in others[at])]] for at in SWAPPED]
    with tempfile.TemporaryDirectory() as folder:
        return asked(model(MADE[name], seed, CLASSES, size), Path(folder), text, words, 0, CLASSES)


def some_options(drawn: random.Random) -> list[tuple[int, ...]]:
    """All of a word's, some with the original, or one other."""
    ways: Sequence[tuple[int, ...]] = ((0, 1, 2), (0, 1, 2), (0, 2), (0,), (1,))
    return [drawn.choice(ways) for _ in SWAPPED]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(MADE)), st.integers(0, 3), st.integers(0, 3), st.booleans(), st.integers(0, 10**6))
def test_it_is_never_above_what_check_finds_and_near_it(
    name: str, seed: int, swaps: int, kernel: bool, draw: int
) -> None:
    drawn, given_text = random.Random(draw), about(name, seed)
    options, reach = some_options(drawn), drawn.choice((0, 1, 5))
    choices = given_text.choices(options, swaps)
    if not choices.count():
        return
    chains = chains_of(given_text.question) if drawn.random() < 0.9 else ()
    try:
        found = expanded(given_text.question, choices, chains, reach, given_text.ends(BITS, kernel)).margins[-1]
    except Unfit as error:
        event(str(error))
        return
    own = [Chain(each.first, each.layers, int(each.descending)) for each in chains]
    masks = [sum(1 << option for option in each) for each in options]
    leaf = Expansion(given_text.space.ruled(BITS, kernel), masks, swaps, reach, own)
    for below, (above, unit) in zip(found, leaf.margins(given_text.rivals), strict=True):
        exact = above / unit
        assert below <= exact
        assert exact - below < (1e-3 if kernel else 1e-6) * (1 + abs(exact))


def test_a_swap_alone_is_exact_and_the_worst_one_is_named() -> None:
    given_text = about("LSTM", 1)
    question = given_text.question
    found = expanded(question, question.whole(1), chains_of(question), 9, given_text.ends(BITS, False))
    own = given_text.screened_sentences(question.whole(1), BITS, False)
    least = min(own, key=lambda options: own[options].min())
    assert abs(found.margins[1].min() - own[least].min()) < 1e-6
    assert [*found.worst] == [(word, option) for word, option in enumerate(least) if option]


def found_by_engine(given_text: Asked) -> tuple[int, certificate.Node, str] | None:
    """The greatest number of swaps that the engine proves, and its proof."""
    query, interval, best = given_text.query, Interval(ceiling=len(SWAPPED) + 1), None
    steps = BOXES.narrow(query, interval, Budget(time.monotonic() + 60))
    finding = next(steps, None)
    while finding is not None:
        if isinstance(finding, Bound):
            best = finding.low - 1, finding.tree, finding.level
            interval = Interval(ceiling=interval.ceiling, low=finding.low, high=interval.high)
        try:
            finding = steps.send(interval)
        except StopIteration:
            finding = None
    return best


def test_engines_prove_with_it_what_boxes_do_not_and_checkers_accept_it() -> None:
    expansions = 0
    for seed in range(12):
        given_text = about("LSTM last", seed, 0.4)
        best = found_by_engine(given_text)
        if best is None or "Expansion(" not in str(best[1]):
            continue
        swaps, root, level = best
        expansions += 1
        sizes = [3 for _ in SWAPPED]
        tree = certificate.encode_tree(root, sizes, given_text.rivals)
        check.Tree(given_text.space, tree, given_text.rivals, swaps, level).check()
        own = given_text.screened_sentences(given_text.question.whole(swaps), BITS, False)
        assert min(ends.min() for ends in own.values()) > 0
        screened = Screened(given_text.query, given_text.question, level, time.monotonic() + 60)
        screened.check(root, given_text.question.whole(swaps))
        every = given_text.screened_sentences(given_text.question.whole(len(SWAPPED)), BITS, False)
        if min(ends.min() for ends in every.values()) < 0:
            with pytest.raises(Unsure):
                screened.check(root, given_text.question.whole(len(SWAPPED)))
    assert expansions


@pytest.mark.parametrize(
    ("leaf", "bits", "said"),
    [
        (certificate.Expansion(3), 32, "at a precision of 32 bits"),
        (certificate.Expansion(3, (certificate.Chain(0, 10**4),)), 48, "not in order"),
        (certificate.Expansion(3, (certificate.Chain(0, 3, True),)), 48, "a chain|a leaf"),
    ],
)
def test_what_is_not_screened_is_left_to_check(leaf: certificate.Expansion, bits: int, said: str) -> None:
    given_text = about("LSTM last", 0)
    screened = Screened(given_text.query, given_text.question, "real", time.monotonic() + 60)
    with pytest.raises(Unsure, match=said):
        screened.check(certificate.Precision(bits, leaf), given_text.question.whole(2))
