"""What is true of a small classifier is provable and accepted; what is false is refused. The judge is onnxruntime."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proof_cases import KINDS, Case, Maker, Prover, logits, make_case, min_swaps, sentences, statement

from swapproof.proofs import certificate as c
from swapproof.proofs import check

kinds = st.sampled_from(KINDS)
seeds = st.integers(0, 10**6)


def verdict(case: Case, **parts: object) -> check.Verdict:
    return check.check_certificate(c.write_certificate(statement(case, **parts)), check.read_model(case.data))


def witness(case: Case, sentence: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    pairs = enumerate(zip(sentence, case.choices, strict=True))
    return tuple((p, token) for p, (token, options) in pairs if token != options[0])


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
@given(kinds, seeds)
def test_a_float32_claim_holds_over_the_reals_and_within_every_margin(
    kind: Callable[[Maker, int], bytes], seed: int
) -> None:
    """A float32 proof exists only where every margin is strictly positive; heads and computed constants refuse."""
    case = make_case(kind, seed)
    least, _ = min_swaps(case)
    k = 4 if least is None else least - 1
    rng = random.Random(seed)
    if kind.__name__ in ("convolution", "oddities", "normalised"):
        with pytest.raises(check.Refused, match=r"ends in|computes"):
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


@settings(max_examples=60, deadline=None)
@given(kinds, seeds, st.integers(0, 4))
def test_open_trees_count_what_they_cover(kind: Callable[[Maker, int], bytes], seed: int, k: int) -> None:
    """Every leaf of word and budget splits left open at random: covered and total are exact, anything else refused."""
    case = make_case(kind, seed)
    rng = random.Random(seed)
    prover = Prover(case, k, "real", rng)
    covered = 0

    def build(region: check.Region) -> c.Node:
        nonlocal covered
        words = prover.tree.space.words(region.masks, region.groups)
        if words.empty:
            return c.Empty()
        if region.depth < 4 and rng.random() < 0.7:
            able = [i for i, mask in enumerate(region.masks) if mask.bit_count() > 1]
            if able:
                i = rng.choice(able)
                option = next(b for b in range(99) if region.masks[i] >> b & 1)
                node = c.Words(prover.tree.space.positions[i], frozenset([option]), c.Open(), c.Open())
                left, right = prover.children(region, node)
                return c.Words(node.position, node.left_choices, build(left), build(right))
        if rng.random() < 0.5 and prover.holds(prover.tree.enumerate, region):
            covered += words.sentences()
            return c.Enumerate()
        return c.Open()

    tree = build(prover.tree.root)
    total = sum(1 for _ in sentences(case.choices, k))
    assert verdict(case, open=c.OpenPart(k, "real", tree, covered, total)).low == 0
    with pytest.raises(check.Refused, match="covered"):
        verdict(case, open=c.OpenPart(k, "real", tree, covered + 1, total))
    with pytest.raises(check.Refused, match="total"):
        verdict(case, open=c.OpenPart(k, "real", tree, covered, total + 1))


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=60, deadline=None)
@given(kinds, seeds)
def test_bounds_of_a_region_hold_for_each_of_its_sentences(kind: Callable[[Maker, int], bytes], seed: int) -> None:
    """The recipe against the pre-activations of every sentence, with word, budget and phase splits in force."""
    case = make_case(kind, seed)
    rng = random.Random(seed)
    prover = Prover(case, rng.randint(0, 4), "real", rng)
    space, network = prover.tree.space, prover.tree.space.network
    region = prover.tree.root
    for _ in range(rng.randint(0, 4)):
        able = [i for i, mask in enumerate(region.masks) if mask.bit_count() > 1]
        node: c.Node
        if able and rng.random() < 0.5:
            i = rng.choice(able)
            option = rng.choice([b for b in range(9) if region.masks[i] >> b & 1])
            node = c.Words(space.positions[i], frozenset([option]), c.Open(), c.Open())
        elif prover.relus:
            origin, n, size = rng.choice(prover.relus)
            element = rng.randrange(size)
            if (n, element) in region.phases:
                continue
            node = c.Phase(origin, element, c.Open(), c.Open())
        else:
            continue
        region = rng.choice(prover.children(region, node))
    words = space.words(region.masks, region.groups)
    if words.empty:
        return
    bounds = space.bounds(words, region.phases)
    for sentence in sentences(case.choices, prover.tree.swaps):
        chosen = [case.choices[p].index(sentence[p]) for p in space.positions]
        if not all(mask >> choice & 1 for mask, choice in zip(region.masks, chosen, strict=True)):
            continue
        values = network.evaluate(network.evaluate_cut(sentence))
        inputs = {n: (values[layer.inputs[0]], network.layers[layer.inputs[0]].scale) for n, layer in network.nonlinear}
        if any(inputs[n][0][i] * sign < 0 for (n, i), sign in region.phases.items()):
            continue
        assert bounds is not None
        for n, (numbers, scale) in inputs.items():
            for (low, high), number in zip(bounds.inputs[n], numbers, strict=True):
                assert low * scale <= number << check.GRID <= high * scale
