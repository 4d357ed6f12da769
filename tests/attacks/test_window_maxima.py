"""Maxima over windows that are kept for swaps are those of the sentences themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from convolved_models import Kernel, convolved
from numpy.typing import NDArray
from tiny import SENTIMENT

from swapproof.encodings.evaluation import logits
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.verifier.attacks.together.position_rows import PositionRows
from swapproof.verifier.attacks.together.position_table import PositionTable
from swapproof.verifier.attacks.together.window_maxima import WindowTable

Array = NDArray[Any]
LENGTH, WORDS, TEXTS, PAD, UNKNOWN = 14, 8, 6, 0, 1
KERNELS: dict[str, list[Kernel]] = {
    "one width": [(3, 1, 1, 0)],
    "three widths": [(1, 1, 1, 0), (2, 1, 1, 1), (4, 1, 1, 2)],
    "strides": [(3, 2, 1, 0), (2, 3, 1, 0)],
    "dilated": [(3, 1, 2, 0)],
}


def read(folder: Path, kernels: list[Kernel], *, leaky: bool = False) -> Network:
    onnx.save(convolved(LENGTH, kernels, leaky=leaky), folder / "model.onnx")
    return read_network(folder / "model.onnx")


def table_of(network: Network) -> WindowTable:
    rows = PositionRows.of(network, 1 << 20)
    assert rows is not None
    found = WindowTable.of(rows)
    assert found is not None
    return found


@pytest.mark.parametrize("leaky", [False, True])
@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS.keys())
@pytest.mark.parametrize("words", [WORDS, LENGTH])
def test_sentences_are_answered_as_from_their_tokens(
    kernels: list[Kernel], leaky: bool, words: int, tmp_path: Path
) -> None:
    network, draw = read(tmp_path, kernels, leaky=leaky), np.random.default_rng(1)
    tokens = draw.integers(0, len(SENTIMENT), size=(TEXTS, words + 1))
    tokens[:, -1] = PAD
    whole = np.full((TEXTS, LENGTH), PAD)
    whole[:, :words] = tokens[:, :-1]
    laid = table_of(network).texts(tokens)
    np.testing.assert_allclose(laid.logits(laid.states), logits(network, whole), atol=1e-12)

    members, places = (part.reshape(-1) for part in np.meshgrid(np.arange(TEXTS), np.arange(words)))
    others = draw.integers(0, len(SENTIMENT), size=len(places))
    moves = laid.moves(places, members, others)
    once = whole[members]
    once[np.arange(len(places)), places] = others
    expected = logits(network, once)
    np.testing.assert_allclose(laid.logits_swapped(laid.states, members, places, moves), expected, atol=1e-12)
    states = laid.swapped(laid.states[members], places, moves)
    np.testing.assert_allclose(laid.logits(states), expected, atol=1e-12)

    blank = whole[members]
    blank[np.arange(len(places)), places] = UNKNOWN
    got = laid.logits_without("unknown", places, members, UNKNOWN)
    np.testing.assert_allclose(got, logits(network, blank), atol=1e-12)
    shorter = np.stack([[*np.delete(whole[m], p), PAD] for m, p in zip(members, places, strict=True)])
    got = laid.logits_without("delete", places, members, None)
    np.testing.assert_allclose(got, logits(network, shorter), atol=1e-12)


def test_a_convolution_takes_no_more_evaluations_than_a_window_has_words(tmp_path: Path) -> None:
    rows = PositionRows.of(read(tmp_path, KERNELS["one width"]), 1 << 20)
    assert rows is not None
    assert rows.shown.shape[:2] == (3, 3)
    assert PositionRows.of(read(tmp_path, KERNELS["one width"]), 8) is None


def test_a_maximum_of_few_windows_has_one_table_for_its_positions(tmp_path: Path) -> None:
    rows = PositionRows.of(read(tmp_path, [(10, 1, 1, 0)]), 1 << 20)
    assert rows is not None
    assert WindowTable.of(rows) is None
    assert PositionTable.of(rows) is not None
