"""`verify --proof` where there are maxima: the search bounds them more closely than a checker, and a tree is grown."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats, model_of

from swapproof.proofs import check, check_box
from swapproof.verifier.queries.answering import Verifier

LEFT = [[0, 1, -3, 0], [-2, 0, -1, 1], [1, -2, 2, 0], [0, -3, 1, 0]]
RIGHT = [[-1, 0, -1, 0], [1, 1, 0, -1], [0, -1, -1, 1], [-1, 0, -1, -1]]
SUM, HALF = "(+ (* -2.0 X_0) X_1 X_2 Y_0)", "(>= 0.8408203125 (+ (* 2.0 X_3) (* -0.5 Y_0)))"
FACTS = {
    "one is strict": ("(< -0.443359375 X_1)", HALF, f"(<= {SUM} -10.1650390625)"),
    "five": (
        "(<= -0.443359375 X_1)",
        HALF,
        f"(< {SUM} -10.1650390625)",
        "(>= -3.669921875 Y_0)",
        "(> (+ (* -1.0 X_2) (* X_3 -2.0) Y_0) -4.09765625)",
    ),
}
BOX = ((0.375, 2.0), (-0.5, 1.25), (-0.625, 0.125), (-0.875, -0.625))


def least_of_two(folder: Path) -> Path:
    """Y = the sum of two of min(X A + a, X B + b), less 1."""
    g = Builder()

    def number(values: object) -> str:
        return g.constant(np.array(values, dtype=np.float32))

    first = g.call("Gemm", "X", number(LEFT), number([-1, 0, 0, -2]))
    second = g.call("Gemm", "X", number(RIGHT), number([0, 0, 1, 0]))
    g.call("Gemm", g.call("Min", first, second), number([[1], [0], [0], [1]]), number([-1]))
    g.nodes[-1].output[0] = "Y"
    path = folder / "model.onnx"
    onnx.save(model_of(g.nodes, g.initializers, [floats("X", 1, 4)], [floats("Y", 1, 1)]), path)
    return path


def proved(folder: Path, facts: tuple[str, ...]) -> Path:
    lines = ["(declare-const Y_0 Real)", *(f"(declare-const X_{i} Real)" for i in range(4))]
    lines += [f"(assert (and (>= X_{i} {low}) (<= X_{i} {high})))" for i, (low, high) in enumerate(BOX)]
    (folder / "q.vnnlib").write_text("\n".join([*lines, *(f"(assert {fact})" for fact in facts)]))
    proof = folder / "proof" / "certificate.json"
    verdict = Verifier().verify(folder / "q.vnnlib", least_of_two(folder), 30.0, proof)
    assert verdict.answer == "unsat"
    return proof


@pytest.mark.parametrize("facts", FACTS.values(), ids=FACTS)
def test_an_unsat_about_maxima_has_a_certificate(facts: tuple[str, ...], tmp_path: Path) -> None:
    assert check_box.check_file(proved(tmp_path, facts)).cases == 1


def test_no_flipped_bit_of_a_tree_proves_what_is_false(tmp_path: Path) -> None:
    """What is true it may still prove: by other weights, say. `Y_0 <= -3` has answers."""
    top, [case] = check_box.read_certificate(proved(tmp_path, FACTS["one is strict"]).read_bytes())
    model = check_box.read_model((tmp_path / "model.onnx").read_bytes())
    false = [check_box.Constraint({0: Fraction(1)}, {}, Fraction(-3), False)] * len(case.constraints)

    def accepted(constraints: list[check_box.Constraint], flipped: int) -> bool:
        data = bytearray(case.tree)
        data[flipped // 8] ^= 1 << flipped % 8
        cases = [replace(case, constraints=constraints, tree=bytes(data))]
        try:
            check_box.check_claims(top, cases, model, time.monotonic() + 60)
        except check.Refused:
            return False
        return True

    flips = range(0, 8 * len(case.tree), 3)
    assert any(accepted(case.constraints, flipped) for flipped in flips)
    assert not any(accepted(false, flipped) for flipped in flips)
