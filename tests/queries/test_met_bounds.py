"""Bounds that are met exactly, or missed by less than floats can tell, and boxes without any float: exact arithmetic
decides them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats
from numeric_twins import Twins

from swapproof.proofs import check_box
from swapproof.verifier.queries.answering import QueryVerdict, Verifier

BOX = "(assert (>= X_0 -1))(assert (<= X_0 1))(assert (>= X_1 0))(assert (<= X_1 1))"
POINT = "(assert (= X_0 0.5))(assert (= X_1 0.25))"
NAMES = "".join(f"(declare-const {name} Real)" for name in ("X_0", "X_1", "Y_0", "Y_1"))
UNSAT = {
    "the greatest value": BOX + "(assert (> Y_0 1))",
    "with inputs": BOX + "(assert (> (- Y_0 X_0 X_0) 1.0))",
    "on a side that is left out": "(assert (< X_0 1))" + BOX + "(assert (>= Y_0 1))",
    "missed by 1e-32": BOX + "(assert (>= Y_0 1.00000000000000000000000000000001))",
    "at a point": POINT + "(assert (> Y_1 0.25))",
    "in one case of two": BOX + "(assert (or (> Y_0 1) (< Y_0 -1)))",
}
SAT = {
    "met": BOX + "(assert (>= Y_0 1))",
    "at a point": POINT + "(assert (>= Y_1 0.25))",
    "behind a bound that is met": BOX + "(assert (or (> Y_0 1) (> Y_1 0.75)))",
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y_0 = x_0, through neurons, and y_1 = relu(x_0 - x_1)."""
    g = Builder()
    first = g.constant(np.array([[1, -1, 1], [0, 0, -1]], dtype=np.float32))
    second = g.constant(np.array([[1, 0], [-1, 0], [0, 1]], dtype=np.float32))
    g.node("MatMul", [g.call("Relu", g.call("MatMul", "X", first)), second], ["Y"])
    path = tmp_path / "from" / "model.onnx"
    path.parent.mkdir()
    onnx.save(g.proto([floats("X", 1, 2)], [floats("Y", 1, 2)]), path)
    return path


def asked(model: Path, facts: str, proof: Path | None = None) -> QueryVerdict:
    query = model.with_name("q.vnnlib")
    query.write_text(NAMES + facts)
    return Verifier().verify(query, model, 20.0, proof)


@pytest.mark.parametrize("facts", UNSAT.values(), ids=UNSAT)
def test_a_bound_that_no_input_passes_is_unsat_and_both_checkers_accept_it(
    model: Path, tmp_path: Path, facts: str
) -> None:
    assert asked(model, facts).answer == "unsat"
    proof = tmp_path / "proof" / "certificate.json"
    assert asked(model, facts, proof).answer == "unsat"
    check_box.check_file(proof)
    twins = Twins()
    try:
        assert twins.javascript(proof.parent, proof.read_bytes())[0] == 0
    finally:
        twins.close()


@pytest.mark.parametrize("facts", SAT.values(), ids=SAT)
def test_a_bound_that_an_input_meets_is_not(model: Path, tmp_path: Path, facts: str) -> None:
    for proof in (None, tmp_path / "proof" / "certificate.json"):
        assert asked(model, facts, proof).answer == "sat"


TENTH = "(assert (= X_0 0.1))(assert (>= X_1 0))(assert (<= X_1 1))"
"""No float32 number is a tenth."""


@pytest.mark.parametrize(
    ("facts", "answer", "said"),
    [
        ("(assert (>= Y_0 0.05))", "unknown", ["no float32 number lies between the bounds of X_0"]),
        ("", "unknown", ["over the reals an input satisfies the query, so it is not `unsat` either"]),
        ("(assert (>= Y_0 0.2))", "unsat", ["no input can be replayed, so this is not `sat`"]),
    ],
)
def test_a_box_without_any_float_is_said_and_costs_no_time(
    model: Path, facts: str, answer: str, said: list[str]
) -> None:
    verdict = asked(model, TENTH + facts)
    assert verdict.answer == answer
    assert verdict.seconds < 10
    assert len(verdict.remarks) == 1
    assert all(words in verdict.remarks[0] for words in said)


def test_a_case_without_any_float_hides_no_witness_of_another(model: Path) -> None:
    other = "(assert (or (= X_0 0.1) (= X_0 0.25)))(assert (>= X_1 0))(assert (<= X_1 1))(assert (>= Y_0 0.05))"
    verdict = asked(model, other)
    assert verdict.answer == "sat"
    assert verdict.remarks == ()


def test_a_time_out_before_the_limit_says_what_the_rest_is_kept_for(model: Path, tmp_path: Path) -> None:
    facts = BOX + "(assert (>= Y_0 0.99))(assert (<= Y_0 0.99))"
    query = model.with_name("q.vnnlib")
    query.write_text(NAMES + facts)
    verdict = Verifier().verify(query, model, 1.0, tmp_path / "proof" / "certificate.json")
    assert verdict.answer == "timed-out"
    assert verdict.seconds < 1.0
    assert "the rest is for checking a certificate" in verdict.remarks[-1]
