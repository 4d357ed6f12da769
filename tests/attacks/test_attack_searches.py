"""Every search beside enumeration, on networks small enough for it."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from attacked_networks import TinyNetwork, attacked, least_swaps, sentences, spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from swapproof.models.deployed.decision import Decision
from swapproof.verifier.attacks.attacked_text import Attacked, Spent
from swapproof.verifier.attacks.recipes import RECIPES
from swapproof.verifier.attacks.searches.beam_search import Beam
from swapproof.verifier.attacks.searches.importance_search import ByImportance, ranked
from swapproof.verifier.attacks.searches.local_search import LocalSearch
from swapproof.verifier.attacks.searches.pdp_search import Pdp
from swapproof.verifier.attacks.searches.search_protocol import Search
from swapproof.verifier.attacks.searches.tree_search import TreeSearch

SEARCHES = {name: recipe.search for name, recipe in RECIPES.items()}
SEARCHES |= {"undone": ByImportance("delete", undo=True), "by chance": ByImportance("random")}
FEW = settings(max_examples=12, deadline=None)


def run(search: Search, state: Attacked) -> Attacked:
    with suppress(Spent):
        search.run(state)
    return state


@pytest.mark.parametrize("name", SEARCHES)
@FEW
@given(spaces, st.integers(0, 10_000), st.integers(2, 3), st.booleans())
def test_a_search_finds_only_what_is_there(
    name: str, options: tuple[int, ...], seed: int, classes: int, targeted: bool
) -> None:
    network = TinyNetwork.drawn(seed, options, classes)
    target = (network.label + 1) % classes if targeted else None
    least = least_swaps(network, options, target)
    state = run(SEARCHES[name], attacked(network, options, target))
    for swaps, (_, row) in state.found.items():
        answer = int(network.answered(row[None])[0].argmax())
        assert answer != network.label if target is None else answer == target
        assert np.count_nonzero(row) == swaps
        assert least is not None
        assert swaps >= least
    assert state.evaluations <= state.requests


@FEW
@given(spaces, st.integers(0, 10_000), st.integers(2, 3), st.booleans())
def test_a_beam_that_keeps_everything_finds_the_fewest_swaps(
    options: tuple[int, ...], seed: int, classes: int, targeted: bool
) -> None:
    network = TinyNetwork.drawn(seed, options, classes)
    target = (network.label + 1) % classes if targeted else None
    assert run(Beam(None), attacked(network, options, target)).fewest == least_swaps(network, options, target)


@pytest.mark.parametrize("search", [Pdp(), Beam(4), LocalSearch(), TreeSearch(), Beam(1)])
@FEW
@given(spaces, st.integers(0, 10_000))
def test_one_swap_that_is_enough_is_never_missed(search: Search, options: tuple[int, ...], seed: int) -> None:
    """These searches look at every single swap."""
    network = TinyNetwork.drawn(seed, options, 2)
    if least_swaps(network, options, None) == 1:
        assert run(search, attacked(network, options)).fewest == 1


@FEW
@given(spaces, st.integers(0, 10_000))
def test_pdp_that_forgets_nothing_finds_a_sentence_wherever_there_is_one(options: tuple[int, ...], seed: int) -> None:
    network = TinyNetwork.drawn(seed, options, 3)
    found = run(Pdp(kept=1280), attacked(network, options)).fewest
    assert (found is None) == (least_swaps(network, options, None) is None)


@pytest.mark.parametrize("name", SEARCHES)
@FEW
@given(spaces, st.integers(0, 10_000), st.integers(0, 3), st.integers(0, 60), st.integers(2, 5))
def test_no_limit_is_broken(
    name: str, options: tuple[int, ...], seed: int, most: int, requests: int, divisor: int
) -> None:
    """Of swaps, of requests, and of a check on sentences, here that the sum of their options is no multiple."""
    network = TinyNetwork.drawn(seed, options, 2)
    state = attacked(
        network,
        options,
        most_swaps=most,
        most_requests=requests,
        checks=(lambda rows: rows.sum(axis=1) % divisor != 1,),
    )
    run(SEARCHES[name], state)
    assert state.requests <= requests
    for swaps, (_, row) in state.found.items():
        assert swaps <= most
        assert row.sum() % divisor != 1


@pytest.mark.parametrize("name", SEARCHES)
@FEW
@given(spaces, st.integers(0, 10_000))
def test_the_same_seed_asks_the_same(name: str, options: tuple[int, ...], seed: int) -> None:
    network = TinyNetwork.drawn(seed, options, 2)
    one, two = (run(SEARCHES[name], attacked(network, options, seed=7)) for _ in range(2))
    assert (one.requests, list(one.known)) == (two.requests, list(two.known))


def added(worth: list[list[float]], bar: float) -> TinyNetwork:
    """The label's logit is the sum of what the options are worth, the other's is the bar; a missing word is worth 0."""
    rows = np.zeros((len(worth), max(map(len, worth)), 2))
    for word, options in enumerate(worth):
        rows[word, : len(options), 0] = options
    rows[:, :, 1] = bar / len(worth)
    return TinyNetwork(rows, np.eye(2), np.array([0.0, bar / len(worth)]), Decision(2))


WORTH = [[5.0], [2.0, 1.5, 1.9], [0.5, -1.0], [0.0, -0.01]]
OPTIONS = (1, 3, 2, 2)
"""The text is worth 7.5 and loses below 6.2: word 1 matters most where it stands, and word 2 has the swap that breaks
the text alone."""


def test_words_are_ranked_by_what_they_do_when_they_are_missing() -> None:
    assert ranked(attacked(added(WORTH, 6.2), OPTIONS), "unknown") == [1, 2, 3]


def test_greedy_by_importance_takes_the_decisions_of_its_definition() -> None:
    state = attacked(added(WORTH, 6.2), OPTIONS)
    ByImportance("unknown").run(state)
    # The text, three words taken away, the two options of word 1, of which the first stays; then word 2 breaks it.
    assert state.best.tolist() == [0, 1, 1, 0]
    assert state.requests == 1 + 3 + 2 + 1


def test_undoing_drops_the_swap_that_was_not_needed() -> None:
    state = attacked(added(WORTH, 6.2), OPTIONS)
    ByImportance("unknown", undo=True).run(state)
    assert state.best.tolist() == [0, 0, 1, 0]


def test_saliency_weighs_a_word_by_its_best_swap() -> None:
    """Shares without words 1, 2, 3: .67, .31, .21; gains .10, .34, .00."""
    state = attacked(added(WORTH, 6.2), OPTIONS)
    assert ranked(state, "saliency") == [2, 1, 3]
    state = attacked(added(WORTH, 6.2), OPTIONS)
    ByImportance("saliency").run(state)
    assert state.best.tolist() == [0, 0, 1, 0]
    assert state.requests == 1 + 3 + (1 + 4) + 1


def test_a_gradient_ranks_by_what_the_best_swap_adds() -> None:
    state = attacked(added(WORTH, 6.2), OPTIONS)
    assert ranked(state, "gradient") == [2, 1, 3]
    assert (state.requests, state.gradients) == (0, 1)


def test_what_the_model_answers_nan_is_counted_and_never_gone_on_from() -> None:
    network = TinyNetwork.drawn(3, (2, 3, 2), 2)
    network.rows[1, 1] = np.nan
    state = run(Beam(None), attacked(network, (2, 3, 2)))
    nan = sum(row[1] == 1 for row in sentences((2, 3, 2)))
    assert state.silent <= nan
    assert all(row[1] != 1 for _, row in state.found.values())


def test_requests_are_counted_before_the_cache() -> None:
    state = attacked(TinyNetwork.drawn(1, (2, 2), 2), (2, 2))
    rows = sentences((2, 2))
    state.ask(rows)
    state.ask(rows)
    assert (state.requests, state.evaluations) == (8, 4)
