"""Models made so that float64, or a reading of the file, says what check.py refuses: nothing of it is screened."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from handmade import node, save
from proof_cases import Case, statement
from screening_cases import same_or_nothing

from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.screening import Screen

EMBEDDED = [node("Gather", "table tokens", "embedded"), node("Flatten", "embedded", "flat")]


def screened(path: Path, choices: tuple[tuple[int, ...], ...], tree: c.Node, swaps: int = 1) -> bool:
    """Whether the screening decides about this proof of class 0 over the reals, which check.py refuses."""
    data = path.read_bytes()
    model = read_model(data)
    case = Case(data, choices, 0, 2)
    written = c.write_certificate(statement(case, lower=c.Lower(swaps, "real", tree)))
    with pytest.raises(check.Refused, match=r"does not hold|not safe"):
        check.check_certificate(written, model)
    return same_or_nothing(Screen(open_model(path), model, None), written)


@pytest.mark.parametrize("leaf", [c.Linear(), c.Enumerate()])
def test_a_table_that_rounds_in_one_row_only(leaf: c.Node, tmp_path: Path) -> None:
    """1 - 2**-60 is 1 in float32 and in float64, and 2**70 times the difference decides."""
    rows, odd = 4000, random.Random(0).randrange(1, 4000)
    change = np.zeros((rows, 2))
    change[odd, 0] = -(2.0**-60)
    last = [[2.0**70, 0], [-(2.0**70), 0], [0, 0], [0, 0]]
    weights = {"ones": np.ones((rows, 2)), "change": change, "w": last, "b": [1, 0]}
    nodes = [node("Add", "ones change", "table"), *EMBEDDED, node("Gemm", "flat w b", "logits")]
    assert not screened(save(tmp_path, nodes, weights, length=2), ((0, odd), (0,)), leaf)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_tiny_bounds_that_are_rounded_to_the_grid(order: tuple[int, ...], tmp_path: Path) -> None:
    """Pre-activations of 2**-120 have bounds of 2**-64, which weights that nearly cancel meet."""
    weights = {
        "table": [[0], [1], [-1]],
        "w1": [[1, -1], [0, 0]],
        "w2": [[2.0**-120], [-(2.0**-120)]],
        "w3": [np.array([2.0**127, -(2.0**73) * (1 - 2.0**-10), -(2.0**127)])[list(order)]],
        "w4": [[1, 0], [1, 0], [1, 0]],
        "b": [4, 0],
    }
    nodes = [
        *EMBEDDED,
        *[node("MatMul", "flat w1", "x1"), node("Relu", "x1", "y1"), node("MatMul", "y1 w2", "x2")],
        *[node("Relu", "x2", "y2"), node("MatMul", "y2 w3", "x3"), node("Gemm", "x3 w4 b", "logits")],
    ]
    assert not screened(save(tmp_path, nodes, weights, length=2), ((0, 1, 2), (0,)), c.Linear())


def test_a_doubtful_maximum_over_a_joint_group(tmp_path: Path) -> None:
    """A leaky rectifier that is surely off has, in a joint group, values beyond its own."""
    table = np.zeros((3, 6))
    table[1, :2] = 2, 0.8125 * 2.0**-50
    table[2] = [8, *[-0.875 * 2.0**-52] * 4, -6]
    first = np.zeros((12, 2))
    first[:6, 0], first[6:, 1] = -1, 1
    weights = {"table": table, "w1": first, "b1": [-2, -6], "w2": [[-1, 0]], "b2": [0.5, 0]}
    nodes = [
        *EMBEDDED,
        *[node("Gemm", "flat w1 b1", "x"), node("LeakyRelu", "x", "y", alpha=0.25)],
        *[node("ReduceMax", "y", "top", axes=[1], keepdims=1), node("Gemm", "top w2 b2", "logits")],
    ]
    tree = c.Joint(((2, {0: 64}),), c.Linear())
    assert not screened(save(tmp_path, nodes, weights, length=2), ((0, 1), (0, 2)), tree, swaps=2)
