"""The normal form is the network, and its bounds hold at every point of every region, to the last bit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric_models import SHAPES, Numeric, numeric, numeric_models

from swapproof.encodings.bounds.normal_form import Functions, Stack, applied, fixed, identity, stack_of, total
from swapproof.encodings.network import Floats
from swapproof.encodings.onnx_files.numeric_input import numeric_network, open_numeric
from swapproof.encodings.vnnlib.linear_property import Atom, Case
from swapproof.verifier.queries.ascent import ascended, first_multipliers
from swapproof.verifier.queries.query_bounds import Bounded, InputRegions, QueryBounds, contracted, sharpened
from swapproof.verifier.queries.question import Question, floor_float


def stacked(sample: Numeric) -> Stack:
    with TemporaryDirectory() as folder:
        return stack_of(numeric_network(open_numeric(sample.save(Path(folder)))))


def box_of(size: int, source: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(source)
    ends = np.sort(random.normal(size=(2, size)), axis=0)
    return ends[0], ends[1]


def inside(low: Floats, high: Floats, count: int, source: int) -> Floats:
    random = np.random.default_rng(source)
    points = low + (high - low) * random.random((count, len(low)))
    corners = np.where(random.random((count, len(low))) < 0.5, low, high)
    return np.concatenate([np.clip(points, low, high), corners])


def exact_values(rows: Functions, known: list[list[Fraction]]) -> list[Fraction]:
    found = []
    for row in range(len(rows)):
        total = Fraction(float(rows.bias[row]))
        for j, weight in rows.weights.items():
            total += sum((Fraction(float(w)) * h for w, h in zip(weight[row], known[j], strict=True)), Fraction(0))
        found.append(total)
    return found


@given(sample=numeric_models(), source=st.integers(0, 1000))
@settings(max_examples=40)
def test_the_normal_form_answers_as_onnxruntime(sample: Numeric, source: int) -> None:
    import onnxruntime

    stack = stacked(sample)
    session = onnxruntime.InferenceSession(sample.model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(source).normal(size=(5, stack.inputs)).astype(np.float32)
    ours = stack.values(x.astype(np.float64))[1]
    for row in range(len(x)):
        (theirs,) = session.run(None, {"X": x[row].reshape(sample.shape)})
        assert np.allclose(ours[row], theirs.reshape(-1), rtol=1e-4, atol=1e-4)


@given(sample=numeric_models(), source=st.integers(0, 1000))
@settings(max_examples=40)
def test_bounds_hold_everywhere_in_the_box(sample: Numeric, source: int) -> None:
    """Of every neuron's input at the root and of outputs, in all of a few sub-boxes too."""
    stack = stacked(sample)
    low, high = box_of(stack.inputs, source)
    bounds = QueryBounds(stack, low, high)
    parts = np.sort(inside(low, high, 3, source)[:6].reshape(2, 3, -1), axis=0)
    regions = InputRegions(
        parts[0],
        parts[1],
        [np.repeat(part, 3, axis=0) for part in bounds.whole.least],
        [np.repeat(part, 3, axis=0) for part in bounds.whole.greatest],
        [np.repeat(part, 3, axis=0) for part in bounds.whole.phases],
    )
    bounds.refresh(regions)
    found = bounds.least(stack.output, regions, bounds.all_lines(regions))
    rises = ascended(
        bounds, stack.output, regions, first_multipliers(regions, bounds.all_lines(regions), len(stack.output)), 6
    )
    for region in range(3):
        points = inside(parts[0][region], parts[1][region], 40, source)
        inputs, outputs = stack.values(points)
        for layer, z in enumerate(inputs):
            assert (regions.least[layer][region] <= z + 1e-12).all()
            assert (regions.greatest[layer][region] >= z - 1e-12).all()
        assert (found.low[region] <= outputs + 1e-12).all()
        weights = rises.multipliers.weights[region]
        assert (weights >= 0).all()
        assert rises.low[region] <= (outputs @ weights).min() + 1e-12


@pytest.mark.parametrize("kind", SHAPES)
def test_at_a_single_point_the_bounds_hold_over_the_rationals(kind: str) -> None:
    """A box of one point leaves no room but that for rounding: exact arithmetic lies between the bounds."""
    for source in range(20):
        stack = stacked(numeric(kind, source))
        point = np.random.default_rng(source).normal(size=stack.inputs)
        bounds = QueryBounds(stack, point, point)
        known = [[Fraction(float(value)) for value in point]]
        for layer, rows in enumerate(stack.layers):
            exact = exact_values(rows, known)
            for neuron, value in enumerate(exact):
                assert Fraction(float(bounds.whole.least[layer][0, neuron])) <= value
                assert Fraction(float(bounds.whole.greatest[layer][0, neuron])) >= value
            known.append([max(value, Fraction(0)) for value in exact])
        found = bounds.least(stack.output, bounds.whole, bounds.all_lines(bounds.whole)).low[0]
        for row, value in enumerate(exact_values(stack.output, known)):
            assert Fraction(float(found[row])) <= value


@given(sample=numeric_models(("dense", "deep", "residual")), source=st.integers(0, 1000))
@settings(max_examples=40)
def test_shrinking_loses_no_point_where_the_function_is_at_most_0(sample: Numeric, source: int) -> None:
    """Neither the box nor the bounds of the first layer."""
    stack = stacked(sample)
    low, high = box_of(stack.inputs, source)
    bounds = QueryBounds(stack, low, high)
    points = inside(low, high, 200, source)
    inputs, outputs = stack.values(points)
    level = np.quantile(outputs[:, 0], 0.3)
    first = stack.output.taken(np.array([0])).shifted(np.array([-level]))
    regions = bounds.whole.take(slice(None))
    best = ascended(bounds, first, regions, first_multipliers(regions, bounds.all_lines(regions), 1), 5)
    if stack.layers:
        regions.least[0], regions.greatest[0] = regions.least[0].copy(), regions.greatest[0].copy()
        sharpened(bounds, regions, best.low, best.coefficients, np.arange(len(stack.layers[0])))
    contracted(regions, Bounded(best.low[:, None], best.coefficients[:, None, :]))
    at_most_0 = applied(first, [points, *(np.maximum(z, 0.0) for z in inputs)])[:, 0] <= -1e-9
    kept = points[at_most_0]
    assert (regions.low[0] <= kept).all()
    assert (regions.high[0] >= kept).all()
    assert (regions.least[0][0] <= inputs[0][at_most_0]).all()
    assert (regions.greatest[0][0] >= inputs[0][at_most_0]).all()


def test_a_first_layer_that_does_not_move_is_not_sharpened() -> None:
    """As of a maximum over words whose first ones are fixed: the radius of the last word ended with a KeyError."""
    one = identity(0, 1)
    stack = Stack(1, (fixed(np.array([1.0])), one), total([one, identity(2, 1)], (1, -1)), (1, 2))
    bounds = QueryBounds(stack, np.array([-1.0]), np.array([2.0]))
    sharpened(bounds, bounds.whole, np.array([-1.0]), np.array([[1.0]]), np.array([0]))
    assert bounds.whole.least[0] <= 1 <= bounds.whole.greatest[0]


@given(st.fractions(-10, 10))
def test_bounds_of_a_box_are_rounded_outwards(number: Fraction) -> None:
    found = floor_float(number)
    assert Fraction(found) <= number < Fraction(float(np.nextafter(found, np.inf)))


def test_an_atom_may_mix_inputs_and_outputs() -> None:
    stack = stacked(numeric("dense", 3))
    atom = Atom({0: Fraction(1, 2)}, {0: Fraction(-3)}, Fraction(1, 4))
    case = Case((Fraction(0),) * stack.inputs, (Fraction(1),) * stack.inputs, (atom,))
    question = Question.of(stack, case)
    x = inside(question.low, question.high, 5, 0)
    inputs, outputs = stack.values(x)
    found = applied(question.atoms, [x, *(np.maximum(z, 0.0) for z in inputs)])[:, 0]
    assert found == pytest.approx(0.5 * x[:, 0] - 3 * outputs[:, 0] + 0.25)
