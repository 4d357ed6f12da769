"""Networks that are formulas: what is said of inputs and neurons holds, and the search answers as enumeration."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from formula_networks import Formula, formulas
from hypothesis import given, settings
from hypothesis import strategies as st

from swapproof.proofs import check_box
from swapproof.verifier.queries.answering import Loaded, Verifier
from swapproof.verifier.queries.choice_search import search_choices
from swapproof.verifier.queries.input_choices import Choices, Shape, choices
from swapproof.verifier.queries.query_bounds import QueryBounds
from swapproof.verifier.queries.question import Question

SECONDS = 30.0


def asked(folder: Path, formula: Formula) -> tuple[Question, QueryBounds, Loaded, Choices | None]:
    (folder / "q.vnnlib").write_text(formula.query())
    property, loaded = Verifier().read(folder / "q.vnnlib", formula.network().save(folder))
    question = Question.of(loaded.stack, property.cases[0])
    bounds = QueryBounds(loaded.stack, question.low, question.high)
    return question, bounds, loaded, choices(question, bounds)


@given(formula=formulas())
@settings(max_examples=60)
def test_the_search_answers_as_enumeration_of_all_ends(formula: Formula) -> None:
    """Every sat with a witness that onnxruntime confirmed, every input a choice."""
    with TemporaryDirectory() as name:
        question, bounds, loaded, found = asked(Path(name), formula)
        if found is None:  # no row can be broken, or one always is
            return
        assert found.inputs.tolist() == list(range(len(question.low)))
        outcome = search_choices(question, found, bounds, loaded.deployed, time.monotonic() + SECONDS, None)
        assert outcome.answer == ("sat" if formula.has_answer() else "unsat")


@given(formula=formulas())
@settings(max_examples=20)
def test_a_formula_without_answer_is_certified(formula: Formula) -> None:
    """By input splits alone: the checker knows nothing of formulas."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "q.vnnlib").write_text(formula.query())
        model = formula.network().save(folder)
        proof = folder / "proof" / "certificate.json"
        verdict = Verifier().verify(folder / "q.vnnlib", model, SECONDS, proof)
        assert verdict.answer == ("sat" if formula.has_answer() else "unsat")
        assert proof.exists() == (verdict.answer == "unsat")
        if proof.exists():
            assert check_box.check_file(proof).cases == 1


def test_clauses_without_answer_make_one_leaf_for_each_conflict(tmp_path: Path) -> None:
    """All eight clauses of three variables: four conflicts, each one leaf with all that is forced."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    formula = Formula(signs, (signs > 0).sum(axis=1) - 1.0, np.array([[0.0] * 3, [1.0] * 3]))
    (tmp_path / "q.vnnlib").write_text(formula.query())
    proof = tmp_path / "proof.json"
    assert Verifier().verify(tmp_path / "q.vnnlib", formula.network().save(tmp_path), SECONDS, proof).answer == "unsat"
    assert check_box.check_file(proof).leaves == 4


@given(st.data())
@settings(max_examples=60)
def test_a_shape_is_above_its_level_in_the_gap_and_outside_its_ends(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    count = data.draw(st.integers(0, 5))
    v, w, b = random.normal(size=(3, count))
    a, spare = float(random.normal()), data.draw(st.sampled_from([0.0, 0.01, 0.3]))
    shape = Shape(-1.0, 2.0, a, v, w, b)
    x = np.sort(np.concatenate([random.uniform(-1, 2, 3000), shape.points]))
    values = a * x + np.maximum(np.outer(x, w) + b, 0.0) @ v
    low_enough = x[values <= values.min() + spare]
    low, high = shape.ends(spare)
    assert (low_enough >= low - 1e-12).all()
    assert (low_enough <= high + 1e-12).all()
    gap = shape.gap(spare)
    if gap is not None:
        left, right, inside = gap
        assert left < inside < right
        assert ((low_enough <= left) | (low_enough >= right)).all()


@given(formula=formulas(), source=st.integers(0, 1000), level=st.sampled_from([0.0, 0.02, 0.2]))
@settings(max_examples=40)
def test_no_point_that_meets_the_atoms_lies_in_a_gap_or_breaks_a_row(
    formula: Formula, source: int, level: float
) -> None:
    """Also where atoms leave room, so that inputs need only lie near their ends."""
    random = np.random.default_rng(source)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "q.vnnlib").write_text(formula.query().replace("Y_1 0.0", f"Y_1 {level}").replace("Y_0 0.0", "Y_0 1"))
        property, loaded = Verifier().read(folder / "q.vnnlib", formula.network().save(folder))
    question = Question.of(loaded.stack, property.cases[0])
    bounds = QueryBounds(loaded.stack, question.low, question.high)
    found = choices(question, bounds)
    if found is None:
        return
    ends = np.where(random.random((4000, len(question.low))) < 0.5, question.low, question.high)
    x = np.clip(ends + random.normal(size=ends.shape) * level * random.random((4000, 1)), question.low, question.high)
    y = loaded.stack.values(x)[1]
    x = x[(y[:, 0] <= 1) & (y[:, 1] <= level)]
    on_left, on_right = x[:, found.inputs] <= found.left, x[:, found.inputs] >= found.right
    assert (on_left | on_right).all()
    sums = found.base + on_left @ found.lefts.T + on_right @ found.rights.T
    assert (sums <= 0).all()


def test_where_rows_do_not_say_all_the_other_searches_go_on(tmp_path: Path) -> None:
    """At (1, 0) each row is broken by 0.2, which Y_0 <= 0.3 lets pass, and both together are not."""
    rows = np.array([[1.0, 1.0], [1.0, -1.0]])
    formula = Formula(rows, np.array([0.8, 0.8]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    text = formula.query().replace("Y_0 0.0", "Y_0 0.3").replace(">= X_0 0.0", ">= X_0 0.75")
    (tmp_path / "q.vnnlib").write_text(text)
    model = formula.network().save(tmp_path)
    assert Verifier().verify(tmp_path / "q.vnnlib", model, SECONDS).answer == "unsat"
    (tmp_path / "q.vnnlib").write_text(text.replace("Y_0 0.3", "Y_0 0.5"))
    assert Verifier().verify(tmp_path / "q.vnnlib", model, SECONDS).answer == "sat"
