"""The canonical network computes what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import pytest
from proof_cases import KINDS, exact_logits, logits, make_case, numbers_of, sentences, space_of


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", range(4))
def test_every_operator_evaluates_as_onnxruntime_does(kind: object, seed: int) -> None:
    """On every sentence of a space, over the reals; heads are compared through what they do to the logits."""
    case = make_case(kind, seed)  # type: ignore[arg-type]
    space = space_of(case)
    network = space.network
    found = list(sentences(case.choices, 4))
    expected = logits(case.data, found).astype(np.float64)
    for sentence, row in zip(found, expected, strict=True):
        numbers = numbers_of(network, sentence)
        values = np.array([float(x) for x in exact_logits(network, sentence)])
        if kind.__name__ == "convolution":  # type: ignore[attr-defined]
            values = np.exp(values - values.max())
            values /= values.sum()
        if kind.__name__ == "oddities":  # type: ignore[attr-defined]
            values = values - values.max() - np.log(np.exp(values - values.max()).sum())
        np.testing.assert_allclose(values, row, rtol=1e-5, atol=1e-5)
        # Swaps added one by one to the original give the same numbers as the sentence evaluated afresh.
        moved = space.base
        for i, (options, token) in enumerate(zip(case.choices, sentence, strict=True)):
            moved = space.swapped(moved, i, options.index(token))
        assert moved == [numbers[i] for i in network.cut]
