"""The mixed-integer program of a question means the question."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numeric_models import SHAPES, numeric

from swapproof.encodings.bounds.normal_form import stack_of
from swapproof.encodings.onnx_files.numeric_input import numeric_network, open_numeric
from swapproof.encodings.vnnlib.linear_property import Atom, Case
from swapproof.verifier.queries.attack import attack, worst
from swapproof.verifier.queries.last_resort import last_resort
from swapproof.verifier.queries.query_bounds import QueryBounds
from swapproof.verifier.queries.question import Question

NEAR = 1e-5


@pytest.mark.parametrize("kind", SHAPES)
def test_its_optimum_is_the_least_worst_atom(kind: str, tmp_path: Path) -> None:
    """Reached by its own solution, not above what descent finds, and not below what the bounds allow."""
    for source in range(2):
        stack = stack_of(numeric_network(open_numeric(numeric(kind, source).save(tmp_path))))
        half = (Fraction(1, 2),) * stack.inputs
        points = np.random.default_rng(source).uniform(-0.5, 0.5, size=(500, stack.inputs))
        level = Fraction(float(stack.values(points)[1][:, 0].min())) - 1
        atom = Atom({}, {0: Fraction(1)}, -level)
        question = Question.of(stack, Case(tuple(-bound for bound in half), half, (atom,)))
        bounds = QueryBounds(stack, question.low, question.high)
        outcome, point = last_resort(question, bounds, 30.0)
        assert outcome.status == "optimal"
        assert outcome.objective is not None
        assert point is not None
        found = worst(question, attack(question, np.random.default_rng(0))).min()
        whole = bounds.least(question.atoms, bounds.whole, bounds.all_lines(bounds.whole)).low[0, 0]
        if outcome.objective > 0:
            assert worst(question, point[None])[0] == pytest.approx(outcome.objective, abs=NEAR)
        assert whole - NEAR <= outcome.objective <= found + NEAR
