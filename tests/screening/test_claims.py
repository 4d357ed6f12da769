"""The rounding bound of level float32 in float64 is never below the exact one."""

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
from proof_cases import KINDS, VOCABULARY, Maker
from random_networks import networks, swap_spaces

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check
from swapproof.verifier.screening.form.coverage import covered
from swapproof.verifier.screening.form.unsure import Unsure
from swapproof.verifier.screening.numbers import float32_claims as claims
from swapproof.verifier.screening.screen import Text


def assert_above(path: Path, choices: tuple[tuple[int, ...], ...]) -> bool:
    """Whether the model is screened at level float32; then the bound against every class is not below the checker's."""
    model = open_model(path)
    try:
        network = network_of(model, len(choices), choices)
        checked = check.read_model(path.read_bytes()).network(len(choices), choices)
        found = covered(model, network, checked)
    except (BadInput, Unsupported, Unsure, check.Refused, check.Unusable):
        return False
    if not found.float32:
        return False
    space = check.Space(checked, [list(options) for options in choices], 0)
    query = Query.of(found.kernels.network, SwapSpace(choices), 0)
    ours = claims.margin_errors(Text(query, found).whole, 0)[0]
    try:
        space.prepare_float32()
    except check.Refused:
        assert np.isinf(ours).all()
        return True
    for rival in range(1, network.classes):
        theirs = Fraction(space.error(space.whole, rival), 2**64)
        assert np.isinf(ours[rival]) or theirs <= Fraction(float(ours[rival])) <= theirs * 8 + Fraction(1, 2**50)
    return True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_bound_of_the_whole_space_is_not_below_the_exact_one(kind: Any, tmp_path: Path) -> None:
    """On every kind of model, with weights of ordinary and of very small size."""
    for seed, scale in enumerate((0.25, 0.3, 2.0**-30, 2.0**20)):
        chosen = random.Random(seed)
        path = tmp_path / f"{seed}.onnx"
        path.write_bytes(kind(Maker(chosen, 4, scale), 3))
        choices = tuple(tuple(chosen.sample(range(VOCABULARY), chosen.randint(1, 3))) for _ in range(4))
        try:
            assert_above(path, choices)
        except (BadInput, Unsupported):
            continue


@given(data=st.data(), sample=networks(kinds=False))
def test_also_for_any_mixture_of_operators(data: st.DataObject, sample: Any) -> None:
    """Those that are screened at level float32."""
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        assert_above(sample.save(Path(folder)), choices)
