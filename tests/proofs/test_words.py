"""Words over several positions, and models of several inputs; the judge is onnxruntime."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import VARIANTS, Prover, WideCase, network_sha256, numbers_of, space_of, statement, wide_case

from swapproof.proofs import check, lower
from swapproof.proofs.writing import certificate as c

variants = st.sampled_from(VARIANTS)
seeds = st.integers(0, 10**6)


def verdict(case: WideCase, **parts: object) -> check.Verdict:
    return check.check_certificate(c.write_certificate(statement(case, **parts)), lower.read_model(case.data))


def beaten(case: WideCase, picks: tuple[int, ...]) -> bool:
    return int(np.argmax(case.logits(picks))) != case.label


def min_swaps(case: WideCase) -> tuple[int, tuple[int, ...]]:
    """One more than there are words, if no sentence changes the answer."""
    everything = sorted(case.sentences(len(case.words)), key=lambda picks: len(picks) - picks.count(0))
    for picks in everything:
        if beaten(case, picks):
            return len(picks) - picks.count(0), picks
    return len(case.words) + 1, ()


@cases(40)
@given(variants, seeds)
def test_an_option_adds_the_same_by_its_effect_as_by_evaluation(variant: str, seed: int) -> None:
    """Swaps added one by one to the original give the numbers of the sentence, at all of its positions."""
    case = wide_case(variant, seed)
    space = space_of(case)
    for picks in case.sentences(len(case.words)):
        moved = space.base
        for i, option in enumerate(picks):
            moved = space.swapped(moved, i, option)
        numbers = numbers_of(space.network, case.text(picks))
        assert moved == [numbers[i] for i in space.network.cut]


@cases(40)
@given(variants, seeds)
def test_the_exact_minimum_is_provable_and_no_more(variant: str, seed: int) -> None:
    """Proof of k swaps, witness of k + 1, and neither for one swap more or less."""
    case, rng = wide_case(variant, seed), random.Random(seed)
    least, picks = min_swaps(case)
    tree = Prover(case, least - 1, "real", rng).prove()
    assert tree is not None
    swaps = tuple((i, option) for i, option in enumerate(picks) if option)
    upper = c.Upper(swaps, ("real",)) if picks else None
    found = verdict(case, lower=c.Lower(least - 1, "real", tree), upper=upper)
    assert (found.low, found.high) == (least, len(swaps) if picks else None)
    if picks:
        assert Prover(case, least, "real", rng).prove() is None
        with pytest.raises(check.Refused):
            verdict(case, lower=c.Lower(least, "real", tree))


@cases(40)
@given(variants, seeds)
def test_every_sentence_is_a_witness_exactly_if_it_changes_the_answer(variant: str, seed: int) -> None:
    """And a count by enumeration counts these."""
    case = wide_case(variant, seed)
    lost = 0
    for picks in case.sentences(len(case.words)):
        swaps = tuple((i, option) for i, option in enumerate(picks) if option)
        if beaten(case, picks):
            lost += 1
            assert verdict(case, upper=c.Upper(swaps, ("real",))).high == len(swaps)
        else:
            with pytest.raises(check.Refused, match="changes nothing"):
                verdict(case, upper=c.Upper(swaps, ("real",)))
    total = len(list(case.sentences(len(case.words))))
    part = c.Count(len(case.words), "real", c.Enumerate(), total - lost, lost, total)
    assert verdict(case, count=part).count == (len(case.words), "real", total - lost, lost, total)


@cases(30)
@given(variants, seeds)
def test_a_region_with_more_forced_words_than_swaps_holds_no_sentence(variant: str, seed: int) -> None:
    """Every leaf holds there, linear, broken and enumerate, and counts nothing; with one swap more it does not."""
    case = wide_case(variant, seed)
    free = [i for i, word in enumerate(case.words) if len(word.options) > 1]
    if len(free) < 2:
        return
    least, _ = min_swaps(case)
    rival = case.rivals[0]
    for swaps, leaf in ((0, c.Linear()), (1, c.Linear()), (1, c.Enumerate()), (1, c.Broken(rival)), (1, c.Open())):
        tree: c.Node = leaf
        for i in free[: swaps + 1]:
            tree = c.Words(i, frozenset([0]), c.Enumerate(), tree)
        lost = [beaten(case, picks) for picks in case.sentences(swaps)]
        part = c.Count(swaps, "real", tree, lost.count(False), lost.count(True), len(lost))
        assert verdict(case, count=part).count is not None
        if not isinstance(leaf, c.Broken | c.Open) and least > swaps:
            assert verdict(case, lower=c.Lower(swaps, "real", tree)).low == swaps + 1


def test_the_network_of_another_text_or_model_is_refused() -> None:
    """The mask is part of the network; the integers of words are not; nor is what another model computes."""
    case = wide_case("a mask", 1)
    tree = c.Lower(0, "real", c.Enumerate())
    assert verdict(case, lower=tree).low == 1
    mask = c.Input("constant", (1, 1, 0, 0, 0))
    others = [network_sha256(case.data, (case.inputs[0], mask), ())]
    others += [wide.network for wide in map(statement, (wide_case("a mask", 2), wide_case("one input", 1)))]
    assert network_sha256(case.data, (replace(case.inputs[0], integers=(0,) * 5), case.inputs[1]), ()) == (
        statement(case).network
    )
    for other in others:
        assert other != statement(case).network
        with pytest.raises(check.Refused, match="another network"):
            verdict(case, lower=tree, network=other)
