"""Claims about smooth networks: what is true is proved by enumeration, what is false by no leaf and no precision."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smooth_cases import CURVES, cell
from smooth_certificates import Case, made, steps
from smooth_values import EXACT, values_of

from swapproof.proofs import check, lower
from swapproof.proofs.writing import certificate as c
from swapproof.proofs.writing.certificate import Attention, Boxes, Enumerate, Open, Precision, Rivals, Words

MADE = {
    "LSTM": cell("LSTM", "bidirectional", 0),
    "LSTM last": cell("LSTM", "forward", 1, "B"),
    "GRU": cell("GRU", "reverse", 1, "BS"),
    "RNN": cell("RNN", "bidirectional", 0, ""),
    "attention": CURVES["attention"],
    "Gelu": CURVES["Gelu"],
}


@lru_cache(16)
def drops(name: str, seed: int, size: float) -> tuple[Case, dict[tuple[int, ...], Any]]:
    """A case, and the least margin of the label in every sentence, by mpmath."""
    case = made(MADE[name], seed, size)
    network, found = case.network, {}
    for options in case.sentences(4):
        text = list(case.text)
        for (start, given_options), option in zip(case.words, options, strict=True):
            text[start : start + len(given_options[option])] = given_options[option]
        with mpmath.workprec(120):
            values = values_of(network, text, EXACT, mpmath.mpf)
            logits = [values[i] for i in network.logits]
            found[options] = min(logits[case.label] - z for each, z in enumerate(logits) if each != case.label)
    return case, found


def verdict(case: Case, **claims: Any) -> check.Verdict | None:
    data = c.write_certificate(case.statement(**claims))
    try:
        return check.check_certificate(data, lower.read_model(case.data))
    except check.Refused:
        return None


names, seeds, sizes = st.sampled_from(list(MADE)), st.integers(0, 2), st.sampled_from((0.3, 1.0))


@settings(max_examples=40, deadline=None)
@given(names, seeds, sizes, st.sampled_from((16, 24, 48, 64)), st.integers(0, 3), st.data())
def test_no_leaf_proves_what_is_false(
    name: str, seed: int, size: float, q: int, swaps: int, data: st.DataObject
) -> None:
    """Accepted, no sentence breaks it; enumerated at 48 bits and more, what is true is accepted."""
    case, found = drops(name, seed, size)
    true = all(drop > 0 for options, drop in found.items() if sum(map(bool, options)) <= swaps)
    leaves: list[c.Node] = [
        Enumerate(),
        Boxes(),
        Boxes(steps(case)),
        Words(0, frozenset({0}), Boxes(steps(case)), Enumerate()),
        Attention(),
        Words(0, frozenset({0}), Attention(), Attention()),
    ]
    leaves.append(Rivals(frozenset({min(r for r in range(3) if r != case.label)}), Enumerate(), Boxes()))
    leaf = data.draw(st.sampled_from(range(len(leaves))))
    accepted = verdict(case, lower=c.Lower(swaps, "real", Precision(q, leaves[leaf]))) is not None
    assert true or not accepted
    if leaf == 0 and q >= 48:
        assert accepted == true


@settings(max_examples=15, deadline=None)
@given(names, seeds)
def test_counts_and_witnesses_are_those_of_all_sentences(name: str, seed: int) -> None:
    case, found = drops(name, seed, 1.0)
    here = {options: drop for options, drop in found.items() if sum(map(bool, options)) <= 2}
    kept = [drop for options, drop in here.items() if not options[0]]
    robust, broken = sum(drop > 0 for drop in kept), sum(drop < 0 for drop in kept)
    tree = Precision(48, Words(0, frozenset({0}), Enumerate(), Open()))
    assert verdict(case, count=c.Count(2, "real", tree, robust, broken, len(here)))
    for off in ((1, 0, 0), (0, 1, 0), (-1, 1, 0), (0, 0, 1)):
        wrong = [max(0, each + d) for each, d in zip((robust, broken, len(here)), off, strict=True)]
        if wrong != [robust, broken, len(here)]:
            assert verdict(case, count=c.Count(2, "real", tree, *wrong)) is None
    for options, drop in list(found.items())[::5]:
        swaps = tuple((i, option) for i, option in enumerate(options) if option)
        assert (verdict(case, upper=c.Upper(swaps, ("real",))) is not None) == (drop < 0)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_at_level_kernel_a_claim_needs_more(name: str) -> None:
    """The sentence says so; what kernel proves real proves too."""
    proved = 0
    for seed in range(6):
        case = made(MADE[name], seed, 0.3)
        kernel = verdict(case, lower=c.Lower(2, "kernel", Precision(30, Enumerate())))
        if kernel:
            assert "(kernel)" in kernel.sentence
            assert verdict(case, lower=c.Lower(2, "real", Precision(30, Enumerate())))
            proved += 1
    assert proved


def test_what_one_precision_cannot_prove_a_finer_one_may() -> None:
    """Trees with precision nodes of their own; the nearest above a leaf counts."""
    case, found = drops("LSTM", 0, 1.0)
    swaps = min([sum(map(bool, options)) for options, drop in found.items() if drop < 0], default=5) - 1
    tree: c.Node = Precision(16, Precision(64, Enumerate()))
    data = c.write_certificate(case.statement(lower=c.Lower(max(swaps, 0), "real", tree)))
    assert json.loads(data)["lower"]["recipe"] == "smooth-1"
    assert (verdict(case, lower=c.Lower(max(swaps, 0), "real", tree)) is not None) == (swaps >= 0)
