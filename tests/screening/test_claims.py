"""The rounding bound of level float32 in float64 is never below the exact one, and hardly above it."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import KINDS, VOCABULARY, Case, Maker, lowered, numbers_of, space_of
from random_networks import networks, swap_spaces

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.evaluation import values
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.rounding.certified_float32 import claims_of
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check

Choices = tuple[tuple[int, ...], ...]


def assert_above(path: Path, choices: Choices, tokens: tuple[int, ...]) -> bool:
    """Whether both readings are the same network; then no bound is below the checker's, of the space or a sentence."""
    case = Case(path.read_bytes(), choices, 0, 2)
    try:
        network = network_of(open_model(path), len(choices), choices)
        theirs = lowered(case.data, case.inputs, case.words)
    except (BadInput, Unsupported, check.Refused, check.Unusable):
        return False
    if canonical_of(network).sha256 != theirs.sha256:
        return False
    claims = claims_of(network)
    assert (claims is None) == bool(theirs.no_float32)
    if claims is None:
        return True
    whole, space = claims.whole([SwapSpace(choices)]), space_of(case)
    found = claims.margin_errors(whole, 0)[0]
    try:
        rounding = space.rounding
    except check.Refused:
        assert np.isinf(found).all()
        return True
    own = claims.margin_errors(claims.of_sentences(whole, values(network, np.array([tokens]))), 0)[0]
    exactly = numbers_of(space.network, tokens)

    def exact(layer: check.Layer) -> list[check.Bounds]:
        return [check.grid(exactly[i], space.network.owner[i].scale) for i in check.sources_of(layer)]

    for ours, errors in ((found, rounding.whole), (own, rounding.of_logits(space.network.later, exact))):
        for rival in range(1, network.classes):
            least = Fraction(rounding.between(errors, 0, rival), 2**64)
            assert np.isinf(ours[rival]) or least <= Fraction(float(ours[rival])) <= least * 8 + Fraction(1, 2**50)
    return True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_bound_is_not_below_the_exact_one(kind: Any, tmp_path: Path) -> None:
    """On every kind of model, with weights of ordinary and of very small size."""
    alike = 0
    for seed, scale in enumerate((0.25, 0.3, 2.0**-30, 2.0**20)):
        chosen = random.Random(seed)
        path = tmp_path / f"{seed}.onnx"
        path.write_bytes(kind(Maker(chosen, 4, scale), 3))
        choices = tuple(tuple(chosen.sample(range(VOCABULARY), chosen.randint(1, 3))) for _ in range(4))
        alike += assert_above(path, choices, tuple(map(chosen.choice, choices)))
    assert alike or kind.__name__ in ("algebra", "masked")


@given(data=st.data(), sample=networks(kinds=False))
def test_also_for_any_mixture_of_operators(data: st.DataObject, sample: Any) -> None:
    """Those that both readers take."""
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    tokens = tuple(data.draw(st.sampled_from(options)) for options in choices)
    with TemporaryDirectory() as folder:
        assert_above(sample.save(Path(folder)), choices, tokens)
