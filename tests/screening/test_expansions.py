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

from swapproof.encodings.expansions.expanded import BITS, expanded
from swapproof.encodings.expansions.multipliers import Unfit
from swapproof.encodings.expansions.ordered_chains import chains_of
from swapproof.proofs import check
from swapproof.proofs.expansion.expansion_leaf import Chain, Expansion
from swapproof.proofs.writing import certificate
from swapproof.proofs.writing.tree_reader import preorder
from swapproof.verifier.engines import expansion_engine
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


@settings(max_examples=25, deadline=None)
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
        assert exact - below < (0.1 if kernel else 1e-6) * (1 + abs(exact))


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
    steps = expansion_engine.BOXES.narrow(query, interval, Budget(time.monotonic() + 60))
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


@pytest.mark.parametrize(
    ("name", "seed", "size"), [("LSTM last", 0, 1.0), ("LSTM", 4, 0.7), ("LSTM stacked", 6, 1.0), ("GRU", 5, 0.4)]
)
def test_engines_prove_with_it_and_with_words_split_what_checkers_accept(
    name: str, seed: int, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no sentences are evaluated, however few there are."""
    monkeypatch.setattr(expansion_engine, "FEW", 1)
    monkeypatch.setattr(expansion_engine.Expanding, "few", 1)
    given_text = about(name, seed, size)
    best = found_by_engine(given_text)
    assert best is not None
    swaps, root, level = best
    assert {"Words", "Expansion"} <= {type(node).__name__ for node in preorder(root)}
    tree = certificate.encode_tree(root, [3 for _ in SWAPPED], given_text.rivals)
    check.Tree(given_text.space, tree, given_text.rivals, swaps, level).check()
    whole = given_text.question.whole(swaps)
    assert min(ends.min() for ends in given_text.screened_sentences(whole, BITS, False).values()) > 0
    screened = Screened(given_text.query, given_text.question, level, time.monotonic() + 60)
    screened.check(root, whole)


def test_a_false_claim_is_not_screened() -> None:
    """One swap more than breaks the text, by the whole region at once."""
    given_text = about("GRU", 2, 1.0)
    question = given_text.question
    every = given_text.screened_sentences(question.whole(len(SWAPPED)), BITS, False)
    fewest = min(sum(map(bool, options)) for options, ends in every.items() if ends.min() < 0)
    chains = [certificate.Chain(each.first, each.layers, each.descending) for each in chains_of(question)]
    leaf = certificate.Precision(BITS, certificate.Expansion(9, tuple(chains)))
    screened = Screened(given_text.query, question, "real", time.monotonic() + 60)
    with pytest.raises(Unsure, match="a leaf of expansion"):
        screened.check(leaf, question.whole(fewest))


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
