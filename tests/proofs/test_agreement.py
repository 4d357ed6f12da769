"""The checker's own reader and evaluation against the other ones, on random networks; its verdicts against enumeration.

`encodings` reads the same ONNX files with other code and also evaluates them exactly.
"""

from __future__ import annotations

import random
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cases import cases, drawn_seed
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import (
    Case,
    Prover,
    exact_answer,
    exact_logits,
    network_of,
    numbers_of,
    one_sentence,
    sentences,
    space_of,
    statement,
)
from proof_cases import read as read_exactly
from random_networks import Sample, assembled, networks, swap_spaces, tiny_networks
from random_steps import ANYWHERE, ENDS, FEATURES, SEQUENCE, WINDOWED

from swapproof.encodings import evaluation
from swapproof.encodings import exact_evaluation as exact
from swapproof.encodings.onnx_files import onnx_reading as reading
from swapproof.encodings.rounding.certified_float32 import claims_of
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check, lower
from swapproof.proofs.exact_network import over, scale_of
from swapproof.proofs.writing import certificate as c

BEFORE, AFTER = sorted({**ANYWHERE, **WINDOWED, **SEQUENCE}), sorted({**ANYWHERE, **FEATURES})


def read(sample: Sample) -> check.Network | None:
    """The network, or None when the model is outside the format."""
    try:
        return network_of(sample.model.SerializeToString(), sample.length)
    except check.Unusable:
        return None


@cases(150)
@given(networks(heads=False, half=True))
def test_random_networks_are_evaluated_alike(sample: Sample) -> None:
    """Exactly the same rational logits; what is computed from constants is rounded there, at worst to half."""
    network = read(sample)
    if network is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        other = reading.read_network(sample.save(Path(folder)), sample.length)
    for sentence in sample.sentences(3, sample.random_source % 1000).tolist():
        ours, (theirs, _) = exact_logits(network, sentence), exact.exact_logits(other, sentence)
        if other.inexact or "folded" in sample.steps:
            assert [float(z) for z in ours] == pytest.approx([float(z) for z in theirs], rel=1e-2, abs=1e-2)
        else:
            assert ours == theirs


@cases(100)
@given(networks(heads=False, kinds=False))
def test_no_float32_bound_elsewhere_is_below_the_bound_of_the_checker(sample: Sample) -> None:
    """What the engines take for certain at float32 is certain to the checker: over the space, and for each sentence."""
    network, rng = read(sample), random.Random(sample.random_source)
    if network is None or "constants" in network.no_float32:
        return
    with tempfile.TemporaryDirectory() as folder:
        other = reading.read_network(sample.save(Path(folder)), sample.length)
    choices = [rng.sample(range(sample.vocabulary), rng.randint(1, 2)) for _ in range(sample.length)]
    data = sample.model.SerializeToString()
    space = space_of(Case(data, tuple(map(tuple, choices)), 0, sample.classes))
    same = SwapSpace(tuple(map(tuple, choices)))
    claims = claims_of(other)
    if claims is None:
        return
    everywhere = claims.whole([same])
    claimed = claims.margin_errors(everywhere, 0)[0]
    try:
        rounding = space.rounding
    except check.Refused:
        assert np.isinf(claimed).all()
        return
    sentence = [rng.choice(options) for options in choices]
    found = claims.of_sentences(everywhere, evaluation.values(other, np.array([sentence])))
    local, exactly = claims.margin_errors(found, 0)[0], numbers_of(network, sentence)
    theirs = rounding.of_logits(network.later, one_sentence(network, exactly))
    for rival in range(1, sample.classes):
        whole = rounding.between(rounding.whole, 0, rival)
        assert whole <= claimed[rival] * 2.0**check.GRID
        smaller = min(whole, rounding.between(theirs, 0, rival))
        assert smaller <= min(local[rival], claimed[rival]) * 2.0**check.GRID


def test_most_networks_that_are_read_elsewhere_are_read_here() -> None:
    """Of random mixtures of all operators: the format leaves out reflecting pads, casts that round, and little else."""
    rng = random.Random(drawn_seed())
    seeds = [rng.randrange(2**32) for _ in range(100)]
    found = 0
    for seed in seeds:
        steps = (*rng.choices(BEFORE, k=rng.randint(0, 5)), rng.choice(sorted(ENDS)), *rng.choices(AFTER, k=2))
        found += read(assembled(steps, seed, opset=rng.randint(13, 22))) is not None
    assert found >= 70, seeds


@st.composite
def tiny_cases(draw: st.DrawFn) -> Case:
    sample = draw(tiny_networks())
    choices = draw(swap_spaces(sample.length, sample.vocabulary))
    data = sample.model.SerializeToString()
    z = exact_logits(network_of(data, sample.length), [options[0] for options in choices])
    return Case(data, choices, z.index(max(z)), sample.classes)


def accepted(case: Case, model: lower.Model, **parts: object) -> bool:
    try:
        check.check_certificate(c.write_certificate(statement(case, **parts)), model)
    except check.Refused:
        return False
    return True


@cases(60)
@given(tiny_cases(), st.integers(0, 2**32 - 1))
def test_the_minimum_is_provable_and_no_more(case: Case, seed: int) -> None:
    """Up to the least number of swaps that changes the answer over the reals, a proof is found and accepted."""
    model = lower.read_model(case.data)
    network, length, rng = read_exactly(case), len(case.choices), random.Random(seed)
    lost = [s for s in sentences(case.choices, length) if exact_answer(network, case, s)]
    swaps = [sum(t != o[0] for t, o in zip(s, case.choices, strict=True)) for s in lost]
    least = min(swaps, default=length + 1)
    tree = Prover(case, least - 1, "real", rng).prove()
    assert tree is not None
    assert accepted(case, model, lower=c.Lower(least - 1, "real", tree))
    assert not lost or Prover(case, least, "real", rng).prove() is None
    assert not lost or not accepted(case, model, lower=c.Lower(least, "real", tree))
    sure = Prover(case, least, "float32", rng).prove()
    assert not lost or sure is None


@cases(60)
@given(tiny_cases(), st.integers(0, 2**32 - 1), st.sampled_from(["real", "float32"]), st.integers(0, 4))
def test_a_count_says_no_more_than_is_true(case: Case, seed: int, level: c.Level, k: int) -> None:
    """Robust and broken of a random tree with leaves of every kind, against enumeration over the reals."""
    model = lower.read_model(case.data)
    network = read_exactly(case)
    prover = Prover(case, k, level, random.Random(seed), counting=True)
    tree, robust, broken = prover.count(prover.tree.root)
    lost = [exact_answer(network, case, sentence) for sentence in sentences(case.choices, k)]
    assert robust <= lost.count(False)
    assert broken <= lost.count(True)
    assert accepted(case, model, count=c.Count(k, level, tree, robust, broken, len(lost)))
    assert not accepted(case, model, count=c.Count(k, level, tree, robust + 1, broken, len(lost)))
    whole = c.Count(k, "real", c.Enumerate(), lost.count(False), lost.count(True), len(lost))
    assert accepted(case, model, count=whole)


def test_a_fraction_is_kept_where_a_float_would_round() -> None:
    """1/3 three times is 1."""
    assert scale_of([Fraction(1, 3)] * 3) == 3
    assert over([Fraction(1, 3)] * 3, 3) == [1, 1, 1]
