"""Scores under masks of a lowest number: read as they are, as if hidden; a line that is masked whole is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graph_builder import Builder
from leaf_bounds import Asked, asked
from onnx import numpy_helper
from smooth_cases import LENGTH, WIDTH, cell, model

from swapproof.proofs import check
from swapproof.proofs.attention_leaf import Attention
from swapproof.verifier.attending.quick_bound import QuickLeaf

Q, UNIT = 48, Fraction(1, 2**48)
LOWEST = float(np.finfo(np.float32).min)
HIDDEN = np.array([[0, 0, 0, 1, 1]] * LENGTH)
LATER = np.triu(np.ones((LENGTH, LENGTH)), 1)
LINE = np.array([[0, 0, 0, 1, 1]] * 2 + [[1] * 5] + [[0, 0, 0, 1, 1]] * 2)
WORDS = [[0, [[1], [2], [5]]], [1, [[3], [4]]], [2, [[6], [7]]]]
CHOICES = [(0, 1, 2), (0, 1), (0, 1)]


def made(tmp_path: Path, where: Any, low: float, more: str = "") -> Asked:
    """One head; `more` is an operator that reads the masked scores too."""

    def attention(b: Builder, x: str, rng: Any) -> str:
        q, k, v = [b.call("MatMul", x, b.constant(rng.normal(size=(WIDTH, 3)).astype(np.float32))) for _ in range(3)]
        added = np.zeros((LENGTH, LENGTH), dtype=np.float32)
        added[np.array(where) > 0] = low
        scores = b.call("Add", b.call("MatMul", q, b.call("Transpose", k, perm=[0, 2, 1])), b.constant(added))
        mixed = b.call("MatMul", b.call("Softmax", scores), v)
        return b.call("Concat", mixed, b.call(more, scores), axis=2) if more else mixed

    return asked(model(attention, 5, 2, 0.4), tmp_path, [1, 3, 6, 0, 0], WORDS, 0, 2)


def test_they_are_bounded_as_if_they_were_not_there(tmp_path: Path) -> None:
    for where in (HIDDEN, LATER):
        here, hidden = [made(tmp_path, where, low) for low in (LOWEST, -np.inf)]
        whole = here.choices(CHOICES, 2)
        for options, (screened,) in here.screened_sentences(whole, Q, False).items():
            (exact,), (same,) = [each.checked_sentence(options, Q, False) or [] for each in (here, hidden)]
            assert abs(exact - same) < 2**12 * UNIT
            assert exact - 2**24 * UNIT < Fraction(screened) <= exact
        (box,), (same,) = [each.checked_boxes(whole, Q, False, []) or [] for each in (here, hidden)]
        assert abs(box - same) < 2**20 * UNIT
        assert here.bounded(whole, Q, False, [])[0] <= box
        bounds = []
        for each in (here, hidden):
            leaf = Attention(each.space.ruled(Q, False))
            bounds.append(Fraction(*leaf.margin(leaf.view(each.space.masks, 2), 1)))
        assert abs(bounds[0] - bounds[1]) < 2**20 * UNIT
        quick = QuickLeaf(here.space).bound(tuple(CHOICES), 2, 1).least
        assert bounds[0] - Fraction(1, 1000) < quick <= bounds[0]


@pytest.mark.parametrize(
    ("where", "low", "more"), [(LINE, LOWEST, ""), (LINE, -(2.0**41), ""), (HIDDEN, LOWEST, "Tanh")]
)
def test_whole_lines_and_what_else_reads_them_are_refused(tmp_path: Path, where: Any, low: float, more: str) -> None:
    """float32 rounds away what is added to such a number; over the reals it decides."""
    here = made(tmp_path, where, low, more)
    whole = here.choices(CHOICES, 1)
    assert here.checked_sentence((0, 0, 0), Q, False) is None
    assert np.isnan(np.array([*here.screened_sentences(whole, Q, False).values()])).all()
    assert here.checked_boxes(whole, Q, False, []) is None
    assert not here.screened_boxes(whole, Q, False, [])
    leaf = Attention(here.space.ruled(Q, False))
    view = leaf.view(here.space.masks, 1)
    with pytest.raises(check.Refused, match=r"masked whole|2\*\*40 or more"):
        leaf.margin(view, 1)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_low_rows_of_gates_are_no_such_elements(kind: str, tmp_path: Path) -> None:
    """A sigmoid reads them: of minus infinity it would be 0."""
    proto = onnx.load_model_from_string(model(cell(kind, "forward", 0, "B"), 3, 2))
    for tensor in proto.graph.initializer:
        if len(tensor.dims) == 2 and tensor.dims[0] == 1:
            low = np.full(tensor.dims, -1e13, dtype=np.float32)
            tensor.CopyFrom(numpy_helper.from_array(low, tensor.name))
    here = asked(proto.SerializeToString(), tmp_path, [1, 3, 6, 0, 0], WORDS, 0, 2)
    whole = here.choices(CHOICES, 1)
    assert here.checked_sentence((0, 0, 0), Q, False) is None
    assert np.isnan(np.array([*here.screened_sentences(whole, Q, False).values()])).all()
    assert here.checked_boxes(whole, Q, False, here.own_segments()) is None
    assert not here.screened_boxes(whole, Q, False, here.own_segments())


def test_the_level_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(check.Refused, match="Softmax"):
        made(tmp_path, HIDDEN, LOWEST).space.ruled(Q, True)
