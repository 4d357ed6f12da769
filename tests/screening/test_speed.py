"""Screening is much faster than the exact checker."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from proof_cases import Case, Maker, statement

from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.screening import Screen

LENGTH, WIDTH, HIDDEN, SWAPS = 24, 8, 24, 3


def seconds_of(work: Callable[[], object]) -> float:
    """Of this process's own time, so that a busy machine does not matter."""
    started = time.process_time()
    work()
    return time.process_time() - started


def test_a_proof_of_many_leaves_is_screened_several_times_faster_than_checked(tmp_path: Path) -> None:
    """All pairs of swapped positions are told apart; a bias makes every leaf hold. (Real proofs: 40 to 180 times.)"""
    m = Maker(random.Random(1), LENGTH)
    generator = np.random.default_rng(1)

    def numbers(*shape: int) -> str:
        return m.constant(generator.normal(size=shape).astype(np.float32))

    flat = m.call("Flatten", m.call("Gather", numbers(50, WIDTH), "tokens"))
    hidden = m.call("Relu", m.call("Gemm", flat, numbers(LENGTH * WIDTH, HIDDEN), numbers(HIDDEN)))
    bias = m.constant(np.array([1000.0, 0.0], dtype=np.float32))
    data = m.model(m.call("Gemm", hidden, numbers(HIDDEN, 2), bias), 2)
    choices = tuple(tuple(range(position, position + 5)) for position in range(LENGTH))
    case = Case(data, choices, 0, 2)

    def tree(position: int, left: int) -> c.Node:
        if left == 0 or position == LENGTH:
            return c.Linear()
        return c.Words(position, frozenset({0}), tree(position + 1, left), tree(position + 1, left - 1))

    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    certificate = c.write_certificate(statement(case, lower=c.Lower(SWAPS, "float32", tree(0, SWAPS - 1))))
    top, checked = json.loads(certificate), read_model(data)
    screen = Screen(open_model(path), checked, None)
    screen.agreed(SwapSpace(choices))  # both have read the model
    screened = seconds_of(lambda: screen.verdict(top, 60.0))
    assert screen.verdict(top, 60.0) is not None, screen.reasons
    exact = seconds_of(lambda: check.check_certificate(certificate, checked))
    assert exact > 4 * screened
