"""What a sweep over float32 inputs finds is what is there: peaks, falls, values outside, bounds that do not hold."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.rounding.kernel_errors import KERNEL_ERRORS
from swapproof.verifier.kernels.kernel_functions import (
    FUNCTIONS,
    Function,
    erf,
    function_named,
    run,
    session_of_operator,
    tanh,
)
from swapproof.verifier.kernels.kernel_samples import GATES, drawn, gate_values, gates, short_pieces
from swapproof.verifier.kernels.kernel_sweep import (
    FINITE,
    NORMAL,
    PART,
    Measured,
    measured,
    parts,
    pattern,
    patterns,
    sweep,
    unit_of,
)

TANH, EXP, RECIPROCAL = (function_named(name) for name in ("tanh", "exp", "reciprocal"))


def true_values(function: Function, inputs: Any) -> Any:
    with np.errstate(all="ignore"):
        return function.reference(inputs.astype(np.float64)).astype(np.float32)


def floats_from(size: float, count: int, sign: int = 0) -> Any:
    return (np.arange(count, dtype=np.uint32) + np.uint32(pattern(size) + sign)).view(np.float32)


class TestReferences:
    @pytest.mark.parametrize(("ours", "theirs"), [(erf, math.erf), (tanh, math.tanh)])
    def test_they_are_as_exact_as_float64(self, ours: Any, theirs: Any) -> None:
        """A block of floats is all large, all small, or neither: each way is one of its own."""
        generator = np.random.default_rng(1)
        for block in (
            generator.uniform(-7, 7, 20_000),
            np.exp2(generator.uniform(-40, 3, 20_000)),
            np.exp2(generator.uniform(-140, -28, 2_000)),
            generator.uniform(20.5, 1e30, 2_000),
            -generator.uniform(5.9, 6.1, 2_000),
        ):
            found, expected = ours(block), np.array([theirs(x) for x in block.tolist()])
            assert (np.abs(found - expected) <= 2.0**-51 * np.abs(expected)).all()

    def test_a_sigmoid_is_that_of_tanh(self) -> None:
        x = np.random.default_rng(2).uniform(-30, 30, 10_000)
        assert np.abs(function_named("sigmoid").reference(x) - (0.5 + 0.5 * np.tanh(x / 2))).max() < 2.0**-51


class TestMeasured:
    @given(st.data())
    @cases(80)
    def test_what_is_skipped_could_not_be_a_peak(self, data: Any) -> None:
        """Blocks one after the other, against the same looked at one by one; errors are put in anywhere."""
        function = data.draw(st.sampled_from(FUNCTIONS))
        generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        sizes = st.sampled_from([2.0**-140, 2.0**-126, 1e-30, 2.0**-27, 0.3, 1.0, 3.0, 8.9, 20.0, 80.0])
        total, all_inputs, all_found = Measured(), [], []
        for _ in range(data.draw(st.integers(1, 4))):
            inputs = floats_from(max(data.draw(sizes), function.stated.least), 64)
            found = true_values(function, inputs)
            for place in generator.integers(0, 64, data.draw(st.integers(0, 3))).tolist():
                with np.errstate(over="ignore"):
                    found[place] *= np.float32(1 + generator.normal() * 1e-6)
            total = measured(function, found, inputs, None, total)
            all_inputs.append(inputs)
            all_found.append(found)
        inputs, found = np.concatenate(all_inputs), np.concatenate(all_found).astype(np.float64)
        true = function.reference(inputs.astype(np.float64))
        apart, size = np.abs(found - true), np.abs(true)
        normal = size >= NORMAL
        assert total.inputs == len(inputs)
        assert total.absolute.value == apart.max()
        assert total.relative.value == (apart[normal] / size[normal]).max(initial=0)
        assert total.ulp.value == (apart[normal] / unit_of(size[normal])).max(initial=0)
        stated = function.stated
        assert total.exceeded == (apart > float(stated.relative) * size + float(stated.absolute)).sum()
        outside = np.maximum(found - function.most, function.least - found).max()
        assert total.outside.value == max(outside, 0.0)

    def test_one_bad_value_is_found_and_named(self) -> None:
        inputs = floats_from(0.5, 1000)
        found = true_values(TANH, inputs)
        assert measured(TANH, found, inputs).exceeded == 0
        found[400] += np.float32(6e-7)
        one = measured(TANH, found, inputs)
        assert (one.exceeded, one.exceeded_at, one.absolute.at) == (1, float(inputs[400]), float(inputs[400]))
        assert one.times_fallen == 1
        assert one.falls.at == float(inputs[401])

    def test_no_number_is_the_worst_error(self) -> None:
        inputs = floats_from(0.5, 10)
        found = true_values(TANH, inputs)
        found[3] = np.nan
        one = measured(TANH, found, inputs)
        assert one.exceeded == 1
        assert one.absolute.value == math.inf

    def test_a_value_beyond_one_is_outside(self) -> None:
        inputs = floats_from(30.0, 10)
        found = np.ones(10, dtype=np.float32)
        found[7] = np.nextafter(np.float32(1), np.float32(2))
        assert measured(TANH, found, inputs).outside.value == 2.0**-23

    @pytest.mark.parametrize("sign", [0, 1 << 31])
    @pytest.mark.parametrize("function", [TANH, EXP, RECIPROCAL], ids=lambda one: one.name)
    def test_falls_are_counted_in_the_direction_of_the_inputs(self, function: Function, sign: int) -> None:
        """Negative inputs run downwards; a reciprocal falls where others rise; two blocks are joined by a value."""
        inputs = floats_from(0.75, 200, sign)
        found = np.sort(true_values(function, inputs).copy())
        if function.rises == bool(sign):
            found = found[::-1].copy()
        assert measured(function, found, inputs).times_fallen == 0
        turned = measured(function, found[::-1].copy(), inputs)
        assert turned.times_fallen == (np.diff(found) != 0).sum()
        second = measured(function, found[100:], inputs[100:], float(found[-1]))
        assert second.times_fallen == int(found[-1] != found[100])


class TestSweep:
    def test_every_finite_float_is_an_input_once(self) -> None:
        for function in FUNCTIONS:
            inputs = sum(-(-(stop - start) // every) for _, start, stop, every, _ in parts(function, 1))
            assert inputs == sum(stop - start for start, stop in patterns(function))
        assert patterns(TANH) == [(0, FINITE), (1 << 31, (1 << 31) + FINITE)]
        (_, stop), _ = patterns(EXP)
        last, beyond = np.array([stop - 1, stop], dtype=np.uint32).view(np.float32).astype(np.float64)
        assert math.exp(last) < float(np.finfo(np.float32).max) < math.exp(beyond)
        assert PART % 64 == 0

    @pytest.mark.parametrize("every", [1, 64])
    def test_parts_say_what_the_whole_says(self, every: int) -> None:
        start = pattern(8.3)
        whole = sweep(TANH, start, start + 40_000 * every, every)
        cut = start + 17_024 * every
        first, second = sweep(TANH, start, cut, every), sweep(TANH, cut, start + 40_000 * every, every, joined=True)
        assert first.or_(second) == whole
        assert whole.inputs == 40_000

    @pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.name)
    @pytest.mark.parametrize("size", [2.0**-126, 2.0**-20, 0.9, 5.2, 15.9])
    def test_the_installed_runtime_keeps_the_stated_bounds_here(self, function: Function, size: float) -> None:
        start = pattern(max(size, function.stated.least))
        assert sweep(function, start, start + 200_000, 1).exceeded == 0

    def test_gates_inside_an_lstm_keep_the_bounds_of_their_functions(self) -> None:
        found = gates(1 << 14)
        assert found.keys() == set(GATES)
        assert all(one.exceeded == 0 and one.inputs == 1 << 14 for one in found.values())

    @pytest.mark.parametrize("gate", GATES)
    def test_a_gate_is_seen_alone(self, gate: str) -> None:
        """Its values are those of the function, and not of a product with another gate."""
        inputs = drawn(1 << 12)
        alone = run(session_of_operator("Tanh" if gate == "cell" else "Sigmoid"), {"x0": inputs})
        bound = 2 * float(KERNEL_ERRORS["tanh"].absolute)
        assert np.abs(gate_values(gate, inputs).astype(np.float64) - alone).max() <= bound

    def test_short_pieces_cover_all_lengths_end_to_end(self) -> None:
        pieces = short_pieces(200)
        assert {length for _, length in pieces} == set(range(1, 16))
        assert all(first + length == second for (first, length), (second, _) in pairwise(pieces))
