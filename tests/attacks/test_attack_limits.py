"""Limits: how they are rounded, what they forbid, and that similarity is to the original text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from attacked_networks import TinyNetwork, attacked, sentences
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.verifier.attacks.attack_goals import Goal
from swapproof.verifier.attacks.attack_limits import FluentEnough, Limits, Natural, NearEnough
from swapproof.verifier.attacks.searches.beam_search import Beam
from swapproof.verifier.attacks.searches.plain_searches import SingleWords
from swapproof.verifier.attacks.typing_errors import typing_errors

WORDS = ("a", "good", "film", "fine", "bad", "movie")
TEXT = SwapText(("a good film",), 0, ((0, 1), (2, 6), (7, 11)), (("a",), ("good", "fine", "bad"), ("film", "movie")))


def bag(texts: Sequence[str]) -> NDArray[np.float64]:
    """How often each word stands there, as a vector of length 1."""
    counts = np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=np.float64)
    return np.asarray(counts / np.linalg.norm(counts, axis=1, keepdims=True))


def test_shares_of_words_are_exact() -> None:
    """0.3 x 10 in floats is below or above 3, as it happens."""
    assert [Limits(rho_max="0.3").most_swaps(words) for words in (9, 10, 11)] == [2, 3, 3]
    assert [Limits(rho_max="0.3", rho_up=True).most_swaps(words) for words in (9, 10, 11)] == [3, 3, 4]
    assert Limits(k_max=50, q_max=True).most_requests(7) == 350
    assert Limits(k_max=50).most_requests(7) is None


@pytest.mark.parametrize("share", ["-0.1", "1.01", "much", "1/0", "", "1e-999999999", "1e-9_9_9_9_9_9_9", "0" * 101])
def test_a_share_that_is_none_is_refused(share: str) -> None:
    with pytest.raises(BadInput, match="a share from 0 to 1"):
        Limits(rho_max=share)


def test_similarity_is_angular_and_to_the_original() -> None:
    """One word of three swapped: cosine 2/3; two: 1/3."""
    near = NearEnough(bag, TEXT, 0.7)
    rows = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0], [0, 1, 1]], dtype=np.int32)
    angles = [1.0, *(1 - np.arccos(cosine) / np.pi for cosine in (2 / 3, 2 / 3, 1 / 3))]
    assert near.similarities(rows) == pytest.approx(angles)
    assert near(rows).tolist() == [True, True, True, False]


def test_of_several_successes_sp_attack_keeps_the_most_natural() -> None:
    """3 cos - 20 ppl(x')/ppl(x), of those above 0.8."""
    text = SwapText(("a good film a good film",), 0, ((0, 1), (2, 6)), (("a",), ("good", "fine", "bad", "movie")))

    def perplexities(texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([5.0 + 4 * ("fine" in one) + 2 * ("bad" in one) + ("movie" in one) for one in texts])

    choice = Natural(NearEnough(bag, text, 0.0), FluentEnough(perplexities, text, None))
    rows = np.array([[0, 1], [0, 2], [0, 3]], dtype=np.int32)
    cosines = choice.cosines(rows)
    assert cosines == pytest.approx([10 / np.sqrt(120)] * 3)
    assert choice.worth(rows) == pytest.approx(3 * cosines - 20 * np.array([9, 7, 6]) / 5)
    state = attacked(added_for_natural(), (1, 4), checks=[choice.allows], worth=choice.worth)
    SingleWords(50).run(state)
    assert state.best.tolist() == [0, 3]


def added_for_natural() -> TinyNetwork:
    """Every swap of the second word breaks the text, the first of them with the best score."""
    rows = np.zeros((2, 4, 2))
    rows[1] = [[2.0, 1.0], [0.0, 1.0], [0.2, 1.0], [0.4, 1.0]]
    return TinyNetwork(rows, np.eye(2), np.zeros(2), Decision(2))


def test_a_search_reports_no_sentence_that_is_too_far() -> None:
    network = TinyNetwork.drawn(5, (1, 3, 2), 2)
    wanted = NearEnough(bag, TEXT, 0.7)
    free, near = attacked(network, (1, 3, 2)), attacked(network, (1, 3, 2), checks=(wanted,))
    for state in (free, near):
        Beam(None).run(state)
    assert all(wanted(row[None])[0] for _, row in near.found.values())


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=3), st.integers(0, 2), st.booleans())
def test_scores_order_sentences_as_shares_do_and_say_who_wins(logits: list[float], label: int, targeted: bool) -> None:
    goal = Goal(label if targeted else None)
    judged = goal.judge(np.array([logits]), Decision(3), label)
    shares = np.exp(np.array(logits) - max(logits))
    shares /= shares.sum()
    expected = shares[label] if targeted else 1 - shares[label]
    assert judged.shares[0] == pytest.approx(expected, abs=1e-9)
    assert judged.won[0] == ((int(np.argmax(logits)) == label) == targeted)


def test_probabilities_and_thresholds_are_judged_as_the_deployed_code_does() -> None:
    probabilities = np.array([[0.2, 0.3, 0.5], [0.5, 0.5, 0.0]])
    judged = Goal().judge(probabilities, Decision(3, "probabilities"), 2)
    assert judged.shares == pytest.approx([0.5, 1.0])
    assert judged.won.tolist() == [False, True]
    single = Goal().judge(np.array([[0.69], [0.71], [np.nan]]), Decision(2, "sigmoid", 0.7), 0)
    assert single.won.tolist() == [False, True, False]
    assert single.scores[0] < single.scores[1]
    assert single.silent.tolist() == [False, False, True]


@pytest.mark.parametrize("word", ["good", "a", "it", "don't", ",", "42", "excellent"])
def test_a_typing_error_is_another_spelling_and_each_is_listed_once(word: str) -> None:
    found = typing_errors(word)
    assert len(set(found)) == len(found)
    assert word not in found
    assert all(abs(len(one) - len(word)) <= 1 and one.strip() for one in found)
    assert bool(found) == (len(word) > 1)
    if len(word) > 3:
        plain = [one for one in found if one.isascii()]
        assert all(one[0] == word[0] and one[-1] == word[-1] for one in plain)


def test_every_sentence_of_a_small_space_is_counted_once() -> None:
    state = attacked(TinyNetwork.drawn(2, (2, 3, 2), 2), (2, 3, 2))
    assert len(state.alternatives) == 4
    rows = state.extensions(state.original)
    assert sorted(map(tuple, rows.tolist())) == sorted(
        tuple(row) for row in sentences((2, 3, 2)).tolist() if np.count_nonzero(row) == 1
    )
    assert len(state.removals(np.array([1, 2, 0], dtype=np.int32))) == 2
