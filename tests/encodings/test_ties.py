"""Classes that always tie are found by their weights, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handmade import MLP, node, save

from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.network import Floats
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.ties import always_tied
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.protocol import Bound, Budget
from swapproof.verifier.interval import Interval

BEFORE = MLP[:4]
ENDS = {
    "one layer": [node("Gemm", "hidden w2 b2", "logits")],
    "a bias of its own": [node("MatMul", "hidden w2", "product"), node("Add", "product b2", "logits")],
    "layers after it": [
        node("Gemm", "hidden w2 b2", "first"),
        node("Relu", "first", "kept"),
        node("Add", "first kept", "logits"),
    ],
}


def query(folder: Path, out: Floats, bias: list[float], end: Sequence[Any]) -> Query:
    rng = np.random.default_rng(0)
    weights = {"table": rng.normal(size=(9, 2)), "w1": rng.normal(size=(12, 3)), "b1": np.full(3, 9.0), "w2": out}
    path = save(folder, [*BEFORE, *end], {**weights, "b2": np.array(bias)}, length=6, classes=len(bias))
    return Query.of(read_network(path), SwapSpace(tuple((i, i + 1, i + 2) for i in range(6))), 0)


@pytest.mark.parametrize("end", ENDS)
def test_equal_columns_and_biases_tie(end: str, tmp_path: Path) -> None:
    """Classes 0 and 1 are equal, 2 has another bias and 3 another weight."""
    out = np.repeat(np.random.default_rng(1).normal(size=(3, 1)), 4, axis=1)
    out[:, 3] += 1
    network = query(tmp_path, out, [0.5, 0.5, 1.0, 0.5], ENDS[end]).network
    assert always_tied(network, 0, 1)
    assert not always_tied(network, 0, 2)
    assert not always_tied(network, 1, 3)
    z, _ = exact_logits(network, [0, 1, 2, 3, 4, 5])
    assert z[0] == z[1]
    assert z[0] not in (z[2], z[3])


def test_a_classifier_of_equal_logits_is_settled_at_once(tmp_path: Path) -> None:
    """The first class wins every tie: one linear leaf over the reals, whatever the number of swaps."""
    asked = query(tmp_path, np.ones((3, 2)), [0.25, 0.25], ENDS["one layer"])
    found = list(Exact().narrow(asked, Interval(7), Budget()))
    assert [(bound.low, bound.level) for bound in found if isinstance(bound, Bound)] == [(7, "real")]
    assert len(found) == 1
