"""VNN-LIB files: what they say is what is read, and what cannot be read is named with its line."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.vnnlib.linear_property import Atom, Case, Property, Tensor
from swapproof.encodings.vnnlib.vnnlib_reading import parsed, read_vnnlib
from swapproof.encodings.vnnlib.vnnlib_writing import vnnlib_text

OLD = """; two inputs, two outputs
(declare-const X_0 Real)
(declare-const X_1 Real)
(declare-const Y_0 Real)
(declare-const Y_1 Real)
(assert (<= X_0 0.1)) (assert (>= X_0 -1e-1))
(assert (<= X_1 2))
(assert (>= X_1 .5))
"""
NEW = """(vnnlib-version <2.0>)
(declare-network N
  (declare-input X float32 [1,2])
  (declare-output Y float32 [1,2]))
(assert (and (<= X[0,0] 0.1) (>= X[0,0] -0.1)))
(assert (<= X[0, 1] 2.0))
(assert (>= X[0,1] 0.5))
"""


def case(*atoms: Atom) -> Case:
    return Case((Fraction(-1, 10), Fraction(1, 2)), (Fraction(1, 10), Fraction(2)), atoms)


def atom(outputs: dict[int, int], constant: int | Fraction = 0, *, strict: bool = False, line: int = 9) -> Atom:
    return Atom({}, {k: Fraction(v) for k, v in outputs.items()}, Fraction(constant), strict, line)


def test_bounds_are_rationals_exactly_as_written() -> None:
    assert parsed(OLD + "(assert (<= Y_0 Y_1))").cases == (case(atom({0: 1, 1: -1})),)


def test_version_2_says_the_same_in_its_own_words() -> None:
    property = parsed(NEW + "(assert (<= Y[0,0] Y[0,1]))")
    assert property.version == 2
    assert property.network == "N"
    assert property.cases[0].low == case().low
    assert property.cases[0].atoms[0].outputs == {0: 1, 1: -1}


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        ("(>= Y_0 1)", [atom({0: -1}, 1)]),
        ("(< Y_0 1)", [atom({0: 1}, -1, strict=True)]),
        ("(> Y_0 Y_1)", [atom({0: -1, 1: 1}, strict=True)]),
        ("(== Y_0 3)", [atom({0: 1}, -3), atom({0: -1}, 3)]),
        ("(<= (+ (* 2 Y_0) (- Y_1) 3) (* Y_1 4))", [atom({0: 2, 1: -5}, 3)]),
        ("(<= (- 5 Y_0 Y_1) 0.25)", [atom({0: -1, 1: -1}, Fraction(19, 4))]),
    ],
)
def test_comparisons_and_arithmetic(text: str, atoms: list[Atom]) -> None:
    assert parsed(f"{OLD}(assert {text})").cases == (case(*atoms),)


def test_disjunctions_of_boxes_and_of_outputs_multiply() -> None:
    property = parsed(
        OLD + "(assert (or (and (<= X_0 0) (>= Y_0 1)) (>= X_0 0.05) (>= X_0 7)))(assert (or (<= Y_1 0) (>= Y_1 2)))"
    )
    assert len(property.cases) == 4  # the third box is empty
    assert {(c.low[0], c.high[0]) for c in property.cases} == {
        (Fraction(-1, 10), Fraction(0)),
        (Fraction(1, 20), Fraction(1, 10)),
    }


def test_a_strict_bound_of_an_input_is_kept_as_an_atom() -> None:
    (only,) = parsed(OLD + "(assert (< X_0 0.05))").cases
    assert only.high[0] == Fraction(1, 20)
    assert [one.strict for one in only.atoms] == [True]


def test_contradictions_leave_no_case() -> None:
    assert parsed(OLD + "(assert (>= X_0 3))").cases == ()
    assert parsed(OLD + "(assert (>= 1 3))").cases == ()


def test_outputs_that_contradict_themselves_are_no_case() -> None:
    apart = "".join(f"(assert (or (>= Y_0 {n}) (<= Y_0 -{n})))" for n in range(2, 42))
    assert len(parsed(OLD + apart).cases) == 2
    assert len(parsed(OLD + "(assert (or (< Y_0 1) (>= Y_1 3)))(assert (>= Y_0 1))").cases) == 1


def test_commands_that_claim_nothing_are_passed_over() -> None:
    assert parsed(OLD + "(check-sat)(get-model)(get-value (X_0))(exit)") == parsed(OLD)


REFUSED = [
    (OLD + "(assert (<= Y_0 Y_7))", "line 9: Y_7 is not declared"),
    (OLD + "(assert (<= Y_0))", "line 9: <= compares two terms, not 1"),
    (OLD + "(assert (<= (* Y_0 Y_1) 0))", "line 9: a product of two variables"),
    (OLD + "(assert (=> (<= Y_0 0) (<= Y_1 0)))", "line 9: => in a formula"),
    (OLD + "(assert (<= (relu Y_0) 0))", "line 9: relu in a term"),
    (OLD + "(assert (<= Y_0 0)", "line 9: a parenthesis that is never closed"),
    (OLD + "(assert (<= Y_0 0)))", "line 9: a closing parenthesis without an opening one"),
    (OLD + "\n\nhello", "line 11: 'hello' outside parentheses"),
    (OLD + "(maximize Y_0)", "line 9: maximize"),
    (OLD + "(declare-const Z_0 Real)", "line 9: Z_0: inputs are X_0"),
    (OLD + "(declare-const X_0 Real)", "line 9: X_0 is declared twice"),
    (OLD + "(declare-const X_2 Int)", "line 9: X_2 is Int"),
    (OLD + "(declare-const X_2 Real)", "line 2: X_2 has no lower bound"),
    (OLD + "(assert (<= Y_0 1e99999))", "line 9: 1e99999"),
    (OLD + "(assert (or))", "line 9: an empty or"),
    (OLD.replace("X_1", "X_3"), "X_1 is not declared"),
    (NEW + "(assert (<= Y[0,2] 1.0))", "line 8: Y[0,2]: Y has shape [1, 2]"),
    (NEW + "(assert (<= Y[0] 1.0))", "line 8: Y[0]: Y has shape [1, 2]"),
    (NEW + "(assert (<= Y[0,a] 1.0))", "line 8: [0,a]: whole numbers"),
    (NEW + "(declare-network M (declare-input A Real [1]) (declare-output B Real [1]))", "line 8: a second network"),
    (NEW.replace("float32 [1,2]))", "int8 [1,2]))"), "line 4: Y is int8"),
    (NEW.replace("declare-output", "declare-hidden"), "line 4: declare-hidden"),
    (NEW.replace("2.0>", "3.0>"), "line 1: vnnlib-version <3.0>"),
    (NEW.replace("[1,2]))", "[1,0]))"), "line 4: Y has sizes [1, 0]"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_read_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises((ValueError, NotImplementedError)) as error:
        parsed(text, "q.vnnlib")
    assert str(error.value).startswith("q.vnnlib")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_disjunctions_that_explode_are_refused_before_they_are_expanded() -> None:
    text = OLD + "\n".join(["(assert (or (<= Y_0 0) (<= Y_1 0)))"] * 64)
    with pytest.raises(NotImplementedError, match="more than 100000 cases"):
        parsed(text)


def test_a_missing_file_and_a_file_that_is_no_text_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file"):
        read_vnnlib(tmp_path / "none.vnnlib")
    (tmp_path / "bytes.vnnlib").write_bytes(b"(assert\n\xff)")
    with pytest.raises(ValueError, match="line 2: not UTF-8"):
        read_vnnlib(tmp_path / "bytes.vnnlib")


SIMPLE = """; a remark
(declare-const X_0 Real)
(declare-const Y_0 Real)
(declare-const Y_1 Real)
(assert (>= X_0 -0.5))
(assert (<= X_0 2.0))
(assert (or
  (and (<= X_0 0.0) (<= Y_0 Y_1))
  (and (>= X_0 1.0) (< (+ (* 2.0 Y_1) 0.25) Y_0))
))
"""


def test_a_written_file_is_what_it_should_be() -> None:
    first = Case((Fraction(-1, 2),), (Fraction(0),), (atom({0: 1, 1: -1}),))
    second = Case((Fraction(1),), (Fraction(2),), (atom({0: -1, 1: 2}, Fraction(1, 4), strict=True),))
    tensors = Tensor("X", "Real", (1,), numbered=True), Tensor("Y", "Real", (2,), numbered=True)
    assert vnnlib_text(Property(1, "", *tensors, (first, second)), ["a remark"]) == SIMPLE


NUMBERS = st.floats(-1e6, 1e6).map(Fraction)


def exclude_each_other(below: Atom, above: Atom) -> bool:
    """y <= p and y >= q of the same output, with p < q, or p = q and one of them strict."""
    if len(below.outputs) != 1 or below.outputs.keys() != above.outputs.keys():
        return False
    ((over,), (under,)) = below.outputs.values(), above.outputs.values()
    p, q = -below.constant / over, -above.constant / under
    return over > 0 > under and (p < q or (p == q and (below.strict or above.strict)))


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS).map(sorted), min_size=1, max_size=4),
    st.lists(st.tuples(st.dictionaries(st.integers(0, 2), NUMBERS.filter(bool), min_size=1), NUMBERS, st.booleans())),
    st.sampled_from([1, 2]),
)
def test_what_is_written_is_read_back_exactly(
    box: list[list[Fraction]], atoms: list[tuple[dict[int, Fraction], Fraction, bool]], version: int
) -> None:
    made = tuple(Atom({}, outputs, constant, strict) for outputs, constant, strict in atoms)
    (low, high) = zip(*box, strict=True)
    inputs = Tensor("X", "Real", (len(box),), 0, version == 1)
    property = Property(version, "N", inputs, Tensor("Y", "Real", (3,), 0, version == 1), (Case(low, high, made),))
    cases = parsed(vnnlib_text(property)).cases
    if any(exclude_each_other(one, other) for one in made for other in made):
        assert cases == ()
        return
    (back,) = cases
    assert (back.low, back.high) == (low, high)
    found = {(tuple(sorted(one.outputs.items())), one.constant, one.strict) for one in back.atoms}
    assert found == {(tuple(sorted(one.outputs.items())), one.constant, one.strict) for one in made}


@pytest.mark.parametrize("suite", ["safenlp_2024", "acasxu_2023", "sat_relu", "cersyve"])
def test_public_queries_are_read(suite: str, shared_data: Path) -> None:
    paths = sorted((shared_data / "vnncomp" / suite / "vnnlib").rglob("*.vnnlib"))
    assert paths
    for path in paths:
        property = read_vnnlib(path)
        assert property.version == 1
        assert all(len(case.low) == property.inputs.size for case in property.cases)
        assert all(case.atoms for case in property.cases)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OLD + "(assert (<= Y_0 \u0663))", "line 9: \u0663 is not declared"),
        (OLD + "(assert (<= Y_\u0660 1))", "line 9: Y_\u0660 is not declared"),
        (NEW + "(assert (<= Y[0,\u0661] 1.0))", "whole numbers"),
        (f"(declare-const X_{'9' * 5000} Real)", "more than 18 digits"),
        (NEW.replace("[1,2]))", f"[1,{'9' * 5000}]))"), "more than 18 digits"),
        (OLD.replace("(<= X_0 0.1)", "(<= (* 1e-400 X_0) 1)"), "upper bound is beyond"),
    ],
)
def test_digits_are_ascii_and_not_thousands(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        parsed(text, "q.vnnlib")
    assert len(str(error.value)) < 200
