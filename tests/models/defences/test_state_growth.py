"""Growth per step against interval arithmetic and cells made by hand; cells against onnxruntime."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from swapproof.models.defences.state_growth import (
    FEWEST_WORDS,
    Cell,
    Step,
    drawn_vectors,
    growth_of,
    growth_per_step,
    gru_step,
    lstm_step,
    meaning,
    read_states,
    recurrent_cells,
    relative_swap_size,
)

Kind = Literal["LSTM", "GRU"]
Numbers = NDArray[np.float64]
Interval = tuple[Numbers, Numbers]
TINY = 1e-7


def cell_of(kind: Kind, seed: int, units: int = 3, inputs: int = 2, *, before: bool = True) -> Cell:
    generator = np.random.default_rng(seed)
    rows = units * (4 if kind == "LSTM" else 3)
    sizes = ((rows, inputs), (rows, units), (rows,), (rows,))
    W, R, bias, state_bias = (generator.normal(size=size) for size in sizes)
    return Cell(kind, W, R, bias, state_bias, linear_before_reset=before)


def sigmoid(values: Numbers) -> Numbers:
    result: Numbers = 1.0 / (1.0 + np.exp(-values))
    return result


def linear(matrix: Numbers, bias: Numbers, h: Interval) -> Interval:
    middle, radius = (h[0] + h[1]) / 2, (h[1] - h[0]) / 2
    return matrix @ middle + bias - np.abs(matrix) @ radius, matrix @ middle + bias + np.abs(matrix) @ radius


def increasing(function: Any, values: Interval) -> Interval:
    return function(values[0]), function(values[1])


def hull(function: Any, *values: Interval) -> Interval:
    """Of a function that is linear in each argument: its least and greatest value lie at corners."""
    corners = [function(*chosen) for chosen in product(*values)]
    return np.min(corners, axis=0), np.max(corners, axis=0)


def boxed_step(cell: Cell, x: Numbers, h: Interval, c: Interval) -> tuple[Interval, Interval]:
    """One word in interval arithmetic, each gate's interval by itself."""
    parts = 4 if cell.kind == "LSTM" else 3
    W, R, b, d = (np.split(part, parts) for part in (cell.W, cell.R, cell.bias, cell.state_bias))
    gates = [linear(R[part], W[part] @ x + b[part] + d[part], h) for part in range(parts)]
    if cell.kind == "LSTM":
        i, o, f = (increasing(sigmoid, gate) for gate in gates[:3])
        c = hull(lambda i, f, g, c: f * c + i * g, i, f, increasing(np.tanh, gates[3]), c)
        return hull(lambda o, bounded: o * bounded, o, increasing(np.tanh, c)), c
    z, r = (increasing(sigmoid, gate) for gate in gates[:2])
    if cell.linear_before_reset:
        inner = linear(R[2], d[2], h)
        total = hull(lambda r, inner: W[2] @ x + b[2] + r * inner, r, inner)
    else:
        total = linear(R[2], W[2] @ x + b[2] + d[2], hull(lambda r, h: r * h, r, h))
    return hull(lambda z, n, h: (1 - z) * n + z * h, z, increasing(np.tanh, total), h), c


@given(st.sampled_from(["LSTM", "GRU"]), st.integers(0, 10_000), st.booleans())
def test_small_boxes_widen_as_interval_arithmetic_says(kind: Kind, seed: int, before: bool) -> None:
    """The half-widths after a word are those of the interval, to first order."""
    cell = cell_of(kind, seed, before=before)
    generator = np.random.default_rng(seed + 1)
    x, h, c = generator.normal(size=2), np.tanh(generator.normal(size=3)), generator.normal(size=3)
    a, b = generator.uniform(0.1, 1.0, size=(2, 3))
    step = (lstm_step if kind == "LSTM" else gru_step)(cell, x, Step(h, c, a, b))
    (low, high), (c_low, c_high) = boxed_step(cell, x, (h - TINY * a, h + TINY * a), (c - TINY * b, c + TINY * b))
    np.testing.assert_allclose((high + low) / 2, step.h, atol=1e-6)
    np.testing.assert_allclose((high - low) / 2 / TINY, step.h_width, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose((c_high - c_low) / 2 / TINY, step.c_width, rtol=1e-4, atol=1e-6)


WORDS = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize("slope", [0.25, 0.97, 1.0, 1.97])
def test_a_state_that_is_multiplied_by_a_number_grows_by_that_number(slope: float) -> None:
    """A GRU that always takes h' = tanh(slope h) and stays at 0, whose derivative is the slope."""
    open_and_reset = np.array([-60.0, 60.0, 0.0])
    R = np.array([[0.0], [0.0], [slope]])
    cell = Cell("GRU", np.zeros((3, 2)), R, open_and_reset, np.zeros(3))
    assert growth_per_step([cell], WORDS) == pytest.approx(slope)


def test_boxes_turn_into_larger_boxes_where_vectors_only_turn() -> None:
    """A rotation by 45 degrees keeps every length, and a box needs sides sqrt(2) times as long each time."""
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    R = np.concatenate([np.zeros((4, 2)), turn])
    cell = Cell("GRU", np.zeros((6, 2)), R, np.repeat([-60.0, 60.0, 0.0], 2), np.zeros(6))
    assert growth_of(cell, WORDS) == pytest.approx(np.sqrt(2.0))


@pytest.mark.parametrize("forget", [0.2, 0.5, 0.9])
def test_a_cell_without_recurrence_grows_by_what_it_keeps(forget: float) -> None:
    bias = np.array([0.3, 0.1, np.log(forget / (1 - forget)), 0.0])
    cell = Cell("LSTM", np.zeros((4, 2)), np.zeros((4, 1)), bias, np.zeros(4))
    assert growth_of(cell, WORDS) == pytest.approx(forget)


def test_the_largest_of_the_cells_counts_and_a_reversed_one_reads_backwards() -> None:
    from dataclasses import replace

    first, second = (cell_of("LSTM", seed) for seed in (1, 2))
    growths = [growth_of(cell, WORDS) for cell in (first, second)]
    assert growth_per_step([first, second], WORDS) == max(growths) != min(growths)
    assert growth_of(replace(first, reversed=True), WORDS) == growth_of(first, WORDS[::-1]) != growths[0]


def test_a_box_that_vanishes_or_explodes_is_no_error() -> None:
    keeps_nothing = Cell("GRU", np.zeros((3, 2)), np.zeros((3, 1)), np.array([-2000.0, 0.0, 0.0]), np.zeros(3))
    assert growth_of(keeps_nothing, WORDS) == 0.0
    wild = cell_of("LSTM", 3, units=40)
    huge = Cell("LSTM", wild.W, 1e6 * wild.R, wild.bias, wild.state_bias)
    assert np.isfinite(growth_of(huge, np.tile(WORDS, (20, 1))))


def test_too_few_words_are_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        growth_per_step([cell_of("GRU", 1)], WORDS[: FEWEST_WORDS - 1])


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("kind", "before"), [("LSTM", False), ("GRU", False), ("GRU", True)])
def test_cells_read_from_a_graph_have_the_states_of_onnxruntime(kind: Kind, before: bool, direction: str) -> None:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    cells = [cell_of(kind, seed, before=before) for seed in range(2 if direction == "bidirectional" else 1)]
    arrays = {
        "W": np.stack([cell.W for cell in cells]),
        "R": np.stack([cell.R for cell in cells]),
        "B": np.stack([np.concatenate([cell.bias, cell.state_bias]) for cell in cells]),
    }
    asked: dict[str, Any] = {"hidden_size": 3, "direction": direction} | ({"linear_before_reset": 1} if before else {})
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "W", "R", "B"], ["", "h"], **asked)],
        "cell",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 1, 2])],
        [helper.make_tensor_value_info("h", TensorProto.FLOAT, [len(cells), 1, 3])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    states = session.run(None, {"x": WORDS[:4, None].astype(np.float32)})[0][:, 0]
    read = recurrent_cells(model)
    assert [cell.reversed for cell in read] == {
        "forward": [False],
        "reverse": [True],
        "bidirectional": [False, True],
    }[direction]
    words = WORDS[:4].astype(np.float32)
    for cell, state in zip(read, states, strict=True):
        np.testing.assert_allclose(read_states([cell], words)[0 if cell.reversed else -1], state, atol=1e-5)
    assert read_states(read, words).shape == (4, 3 * len(cells))
    for unusual in ("clip", "activations"):
        changed = onnx.ModelProto.FromString(model.SerializeToString())
        value = 3.0 if unusual == "clip" else ["Sigmoid"] * (6 if kind == "LSTM" else 4)
        changed.graph.node[0].attribute.append(helper.make_attribute(unusual, value))
        assert recurrent_cells(changed) == ()


def test_words_drawn_from_a_table_are_the_same_each_time_and_no_padding() -> None:
    table = np.concatenate([np.zeros((1, 2)), WORDS])
    drawn = drawn_vectors(table)
    assert len(drawn) >= FEWEST_WORDS
    assert {tuple(row) for row in drawn} == {tuple(row) for row in WORDS}
    np.testing.assert_array_equal(drawn, drawn_vectors(table))


def test_vectors_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"reads vectors of 2 numbers, not an array \[60, 3\]"):
        growth_per_step([cell_of("GRU", 1)], np.zeros((60, 3)))


def test_the_swap_size_is_the_median_over_pairs() -> None:
    table = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [0.0, 5.0], [6.0, 8.0]])
    assert relative_swap_size(table, np.array([[1, 2]])) == 0.0
    assert relative_swap_size(table, np.array([[1, 4], [4, 1], [1, 2]])) == 0.5
    assert relative_swap_size(table, np.array([[0, 1], [1, 4]])) == 1.0
    with pytest.raises(ValueError, match="no word"):
        relative_swap_size(table, np.array([[0, 1]]))


def test_both_numbers_decide_what_is_said() -> None:
    said = [meaning(1.97, 1.3), meaning(1.2, 0.1), meaning(0.97, 1.4), meaning(0.97, 0.1)]
    assert len(set(said)) == 4
    assert "only enumeration" in said[0]
    assert meaning(1.3, 1.3) == meaning(1.5, 0.1) == said[0]
    assert meaning(0.97, None) == said[3]
    assert "any length" in said[3]
