"""The simple prover beside plain enumeration, on classifiers without any structure that it could rely on."""

from __future__ import annotations

import time

import numpy as np
import pytest
from asked_functions import FirstOfBatch, Function, Refusing, by_hash, fewest_swaps, spaced
from hypothesis import given, settings
from hypothesis import strategies as st

from swapproof.models.deployed.classifier import Classifier
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.verifier.replaying import simple_prover
from swapproof.verifier.replaying.asking import Asking
from swapproof.verifier.replaying.sentence_order import SentenceOrder
from swapproof.verifier.replaying.simple_prover import Found, prove
from swapproof.verifier.replaying.transcript import known_from, statement_of, transcript_of

NEVER = float("inf")
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=6)
OPTIONS = SIZES.map(
    lambda sizes: [
        [f"w{place}", *(f"w{place}o{option}" for option in range(1, size))] for place, size in enumerate(sizes)
    ]
)


def asked(classifier: Classifier, text: SwapText, label: int = 1, until: float = NEVER) -> Found:
    return prove(Asking(classifier, Decision(2), text, label), until)


@given(OPTIONS, st.integers(0, 10**6), st.sampled_from([0.5, 0.8, 0.97, 0.999]))
@settings(max_examples=150, deadline=None)
def test_the_least_number_of_swaps_is_that_of_enumeration(options: list[list[str]], salt: int, share: float) -> None:
    classifier, text = Function(lambda sentence: by_hash(sentence, salt, share)), spaced(options)
    found, least = asked(classifier, text), fewest_swaps(classifier, text, 1)
    assert found.high == least
    if least is None:
        assert found.harmless == len(text.swappable)
        assert found.witness is None
    elif least > 0:
        assert found.harmless == least - 1
        assert found.witness is not None
        assert classifier.scores([text.sentence(found.witness)]).argmax() == 0


@given(OPTIONS, st.integers(0, 3))
def test_every_sentence_with_so_many_swaps_comes_once_and_the_most_dangerous_word_first(
    options: list[list[str]], swaps: int
) -> None:
    order = SentenceOrder.of_text(options)
    if swaps >= len(order.counts):
        return
    if swaps == 1:
        order = order.by_danger(np.arange(order.counts[1], 0.0, -1.0))
    rows = order.rows(swaps, range(order.counts[swaps]))
    assert len({tuple(row) for row in rows.tolist()}) == order.counts[swaps] == len(rows)
    assert (np.count_nonzero(rows, axis=1) == swaps).all()
    if swaps == 1:
        assert int(rows[0].argmax()) == order.ranked[0][0]
        assert int(rows[0].max()) == order.ranked[0][1][-1]


def test_sentences_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the cheap attack and for witnesses."""
    monkeypatch.setattr(simple_prover, "dangerous", lambda asking, order: iter(()))
    classifier, text = Function(lambda sentence: [0.0, 1.0]), spaced([["a", "b", "c"]] * 5)
    assert asked(classifier, text).harmless == 5
    assert classifier.asked == 3**5


def test_out_of_time_says_how_many_were_evaluated_and_a_later_try_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = spaced([["a", "b", "c"]] * 6)
    whole = Function(lambda sentence: [0.0, 1.0])
    looks = iter([0.0] * 40 + [1.0] * 10_000)
    monkeypatch.setattr(simple_prover, "MOST", 16)
    monkeypatch.setattr(time, "monotonic", lambda: next(looks))
    first = asked(whole, text, until=0.5)
    monkeypatch.setattr(time, "monotonic", time.perf_counter)
    assert first.partly is not None
    assert first.reason is not None
    assert 1 <= first.harmless < 6
    assert first.partly.swaps == first.harmless + 1
    assert 0 < first.partly.evaluated < first.partly.total
    transcript = transcript_of(statement_of(0, whole.identity, Decision(2), text, 1), text, first)
    assert transcript is not None
    later = Function(lambda sentence: [0.0, 1.0])
    found = prove(Asking(later, Decision(2), text, 1), NEVER, known_from(transcript, text))
    assert found.harmless == 6
    below = sum(first.partly.order.counts[: first.partly.swaps])
    assert later.asked == 1 + 3**6 - below - first.partly.evaluated


def test_an_answer_that_depends_on_its_batch_is_no_witness_and_no_proof() -> None:
    found = asked(FirstOfBatch(lambda sentence: [0.0, 1.0]), spaced([["a", "b", "c"]] * 3))
    assert found.ambiguous
    assert found.witness is None
    assert "depends on what it is asked beside" in str(found.reason)


def test_a_score_that_is_no_number_ends_the_claim() -> None:
    found = asked(
        Function(lambda sentence: [0.0, float("nan") if "c" in sentence else 1.0]), spaced([["a", "b", "c"]] * 2)
    )
    assert found.ambiguous
    assert "hold NaN, so that no class wins" in str(found.reason)


def test_a_sentence_that_cannot_be_answered_leaves_the_text_open() -> None:
    found = asked(Refusing(lambda sentence: [0.0, 1.0], word="c"), spaced([["a", "b"], ["b", "c"]]))
    assert (found.harmless, found.witness, found.ambiguous) == (0, None, False)
    assert found.reason == "the model cannot answer: the word 'c'"


def test_a_text_that_is_answered_wrongly_needs_no_swap() -> None:
    found = asked(Function(lambda sentence: [1.0, 0.0]), spaced([["a", "b"]]))
    assert (found.high, found.harmless) == (0, -1)


def test_what_is_kept_of_a_text_leaves_only_the_rest_to_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may be killed at any block."""
    monkeypatch.setattr(simple_prover, "KEEP_SECONDS", 0.0)
    monkeypatch.setattr(simple_prover, "MOST", 16)
    monkeypatch.setattr(simple_prover, "dangerous", lambda asking, order: iter(()))
    text, whole = spaced([["a", "b", "c"]] * 5), Function(lambda sentence: [0.0, 1.0])
    statement = statement_of(0, whole.identity, Decision(2), text, 1)
    kept: list[tuple[int, dict[str, object] | None]] = []
    prove(
        Asking(whole, Decision(2), text, 1),
        NEVER,
        None,
        lambda found: kept.append((whole.asked, transcript_of(statement, text, found))),
    )
    assert whole.asked == 3**5
    assert len(kept) > 5
    for asked_before, transcript in kept:
        assert transcript is not None
        later = Function(lambda sentence: [0.0, 1.0])
        found = prove(Asking(later, Decision(2), text, 1), NEVER, known_from(transcript, text))
        assert found.harmless == 5
        assert later.asked == 1 + 3**5 - asked_before  # the text itself is asked about again


@given(OPTIONS)
def test_sentences_with_one_swap_are_those_of_the_order_of_all(options: list[list[str]]) -> None:
    order = SentenceOrder.of_text(options)
    if len(order.counts) > 1:
        last = order.omega(1).total - 1
        numbers = range(order.counts[1])
        np.testing.assert_array_equal(order.rows(1, numbers), order.up_to(1, [last - number for number in numbers]))
