"""What is true of a small classifier is provable and accepted; what is false is refused. The judge is onnxruntime."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import (
    KINDS,
    REAL,
    Case,
    Maker,
    Prover,
    exact_answer,
    logits,
    make_case,
    min_swaps,
    numbers_of,
    read,
    sentences,
    space_of,
    statement,
    witness,
)

from swapproof.proofs import check, lower
from swapproof.proofs.writing import certificate as c

NO_FLOAT32 = "no float32 claim is possible"
kinds = st.sampled_from(KINDS)
seeds = st.integers(0, 10**6)


def verdict(case: Case, **parts: object) -> check.Verdict:
    return check.check_certificate(c.write_certificate(statement(case, **parts)), lower.read_model(case.data))


@cases(150)
@given(kinds, seeds)
def test_the_exact_minimum_is_provable_at_both_ends(kind: Callable[[Maker, int], bytes], seed: int) -> None:
    """Proof of k swaps, witness of k + 1: accepted together, and min_swaps is said."""
    case = make_case(kind, seed)
    least, sentence = min_swaps(case)
    k = 4 if least is None else least - 1
    tree = Prover(case, k, "real", random.Random(seed)).prove()
    assert tree is not None
    upper = None if least is None else c.Upper(witness(case, sentence), ("real", "replay"))
    found = verdict(case, lower=c.Lower(k, "real", tree), upper=upper)
    assert (found.low, found.high) == (k + 1, least)
    assert ("min_swaps" in found.sentence) == (least is not None)


@cases(100)
@given(kinds, seeds)
def test_no_tree_proves_a_false_claim(kind: Callable[[Maker, int], bytes], seed: int) -> None:
    """Neither a search of trees for one swap too many, nor the true tree under the false claim."""
    case = make_case(kind, seed)
    least, _ = min_swaps(case)
    if least is None:
        return
    rng = random.Random(seed)
    assert Prover(case, least, "real", rng).prove() is None
    tree = Prover(case, least - 1, "real", rng).prove()
    assert tree is not None
    for level in ("real", "float32"):
        with pytest.raises(check.Refused):
            verdict(case, lower=c.Lower(least, level, tree))


@cases(100)
@given(kinds, seeds)
def test_a_float32_claim_holds_over_the_reals_and_within_every_margin(
    kind: Callable[[Maker, int], bytes], seed: int
) -> None:
    """A float32 proof exists only where every margin is strictly positive; heads and computed constants refuse."""
    case = make_case(kind, seed)
    least, _ = min_swaps(case)
    k = 4 if least is None else least - 1
    rng = random.Random(seed)
    if kind.__name__ in REAL:
        with pytest.raises(check.Refused, match=NO_FLOAT32):
            Prover(case, k, "float32", rng)
        return
    tree = Prover(case, k, "float32", rng).prove()
    rows = logits(case.data, list(sentences(case.choices, k)))
    margin = min(row[case.label] - row[r] for row in rows for r in case.rivals)
    if tree is not None:
        assert margin > 0
        assert verdict(case, lower=c.Lower(k, "float32", tree)).level == "float32"
    else:
        assert margin < 2.0**-14


@cases(60)
@given(kinds, seeds, st.integers(0, 4), st.sampled_from(["real", "float32"]))
def test_counts_are_exact_where_leaves_close_and_open_elsewhere(
    kind: Callable[[Maker, int], bytes], seed: int, k: int, level: c.Level
) -> None:
    """Word splits with leaves of every kind, against all sentences: the numbers of the tree, and no others."""
    case = make_case(kind, seed)
    rng = random.Random(seed)
    if level == "float32" and kind.__name__ in REAL:
        return
    prover = Prover(case, k, level, rng, counting=True)
    network = prover.tree.space.network
    tree, robust, broken = prover.count(prover.tree.root)
    everything = list(sentences(case.choices, k))
    lost = sum(exact_answer(network, case, sentence) for sentence in everything)
    assert robust <= len(everything) - lost
    assert broken <= lost
    part = c.Count(k, level, tree, robust, broken, len(everything))
    found = verdict(case, count=part)
    assert found.count == (k, level, robust, broken, len(everything))
    for wrong in ("robust", "broken", "total"):
        with pytest.raises(check.Refused, match=wrong):
            verdict(case, count=replace(part, **{wrong: getattr(part, wrong) + 1}))


@cases(60)
@given(kinds, seeds, st.integers(0, 4))
def test_an_enumerated_count_is_the_count(kind: Callable[[Maker, int], bytes], seed: int, k: int) -> None:
    """One `enumerate` leaf: exactly the robust and the broken sentences, the judge is exact evaluation."""
    case = make_case(kind, seed)
    network = read(case)
    lost = [exact_answer(network, case, sentence) for sentence in sentences(case.choices, k)]
    part = c.Count(k, "real", c.Enumerate(), lost.count(False), lost.count(True), len(lost))
    assert verdict(case, count=part).count == (k, "real", lost.count(False), lost.count(True), len(lost))


@cases(60)
@given(kinds, seeds, st.sampled_from(["real", "float32"]))
def test_no_broken_leaf_holds_where_a_sentence_is_robust(
    kind: Callable[[Maker, int], bytes], seed: int, level: c.Level
) -> None:
    """A broken leaf over everything with at most k swaps is accepted only if every such sentence is broken."""
    case = make_case(kind, seed)
    network = read(case)
    for label in range(case.classes):
        other = replace(case, label=label)
        for k in (0, 1, 4):
            lost = [exact_answer(network, other, sentence) for sentence in sentences(case.choices, k)]
            for rival in other.rivals:
                part = c.Count(k, level, c.Broken(rival), 0, len(lost), len(lost))
                try:
                    verdict(other, count=part)
                except check.Refused:
                    continue
                assert all(lost)


@cases(100)
@given(kinds, seeds)
def test_a_witness_is_believed_only_if_it_changes_the_answer(kind: Callable[[Maker, int], bytes], seed: int) -> None:
    """Every sentence of the space as a witness: accepted at `real` exactly when onnxruntime answers otherwise."""
    case = make_case(kind, seed)
    if kind.__name__ in ("convolution", "oddities"):
        return
    found = list(sentences(case.choices, 4))
    for sentence, row in zip(found, logits(case.data, found), strict=True):
        upper = c.Upper(witness(case, sentence), ("real",))
        if int(row.argmax()) != case.label:
            assert verdict(case, upper=upper).high == len(upper.swaps)
        else:
            with pytest.raises(check.Refused, match="changes nothing"):
                verdict(case, upper=upper)


@cases(60)
@given(kinds, seeds)
def test_bounds_of_a_region_hold_for_each_of_its_sentences(kind: Callable[[Maker, int], bytes], seed: int) -> None:
    """The recipe against the pre-activations of every sentence, with word splits in force."""
    case = make_case(kind, seed)
    rng = random.Random(seed)
    prover = Prover(case, rng.randint(0, 4), "real", rng)
    space, network = prover.tree.space, prover.tree.space.network
    region = prover.tree.root
    for _ in range(rng.randint(0, 4)):
        able = [i for i, mask in enumerate(region.masks) if mask.bit_count() > 1]
        if not able:
            break
        i = rng.choice(able)
        option = rng.choice([b for b in range(9) if region.masks[i] >> b & 1])
        region = rng.choice(prover.children(region, c.Words(i, frozenset([option]), c.Open(), c.Open())))
    words = prover.tree.sentences(region)
    if words.empty:
        return
    bounds = space.bounds(words)
    for sentence in sentences(case.choices, prover.swaps):
        chosen = [options.index(token) for options, token in zip(case.choices, sentence, strict=True)]
        if not all(mask >> choice & 1 for mask, choice in zip(region.masks, chosen, strict=True)):
            continue
        values = numbers_of(network, sentence)
        for layer in network.nonlinear:
            for (low, high), i in zip(bounds.inputs[layer], layer.sources, strict=True):
                scale = network.owner[i].scale
                assert low * scale <= values[i] << check.GRID <= high * scale


@cases(150)
@given(kinds, seeds)
def test_joint_groups_and_bounds_of_words_reach_exactly_what_some_sentence_does(
    kind: Callable[[Maker, int], bytes], seed: int
) -> None:
    """Over random options and numbers of swaps; elements may stand in a group several times."""
    case, rng = make_case(kind, seed, most=4), random.Random(seed)
    space, swaps = space_of(case), rng.randint(0, 4)
    network = space.network
    masks = tuple([rng.choice((mask, rng.randint(1, mask))) for mask in space.masks])
    words = space.sentences(swaps, masks)
    cuts = []
    for sentence in sentences(case.choices, swaps):
        chosen = [options.index(token) for options, token in zip(case.choices, sentence, strict=True)]
        if all(mask >> choice & 1 for mask, choice in zip(masks, chosen, strict=True)):
            values = numbers_of(network, sentence)
            cuts.append([values[i] for i in network.cut])
    assert words.empty == (not cuts)
    assert words.count() == len(cuts)
    if words.empty:
        return
    slots = rng.choices(range(len(network.cut)), k=3)
    ends = [sorted(rng.choices(range(-9, 10), k=2)) for _ in range(rng.randint(1, 6))]
    members = [(rng.choice(slots), off, on) for off, on in ends]
    greatest = max(sum(max(off * cut[slot], on * cut[slot]) for slot, off, on in members) for cut in cuts)
    assert space.joint_rise(words, members) == greatest
    for slot, scale in enumerate(space.scales):
        numbers = [cut[slot] for cut in cuts]
        assert words.element(slot) == (check.grid(min(numbers), scale)[0], check.grid(max(numbers), scale)[1])
