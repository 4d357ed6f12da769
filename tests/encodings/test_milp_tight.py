"""Our integer program: every encoding has the network's value, and every option the same answer as enumeration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_sentences, loaded, query_of
from random_networks import Sample, networks, swap_spaces, tiny, tiny_networks

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.evaluation import logits, values
from swapproof.encodings.programs.integer_program import Exclusive, Indicator, Program, Row, Variable
from swapproof.encodings.programs.program_reduction import reduced
from swapproof.encodings.programs.textbook_program import TOLERANCE
from swapproof.encodings.programs.tight_program import Tight, tight
from swapproof.encodings.programs.tight_rows import Options
from swapproof.encodings.query import Query
from swapproof.encodings.solvers.solver_answer import Stop
from swapproof.encodings.solvers.solver_table import GUROBI, HIGHS, SCIP, Solver

NEAR = 1e-4
SENTENCES = 30
PLAIN = Options(probing=False, domination=False, cuts=False, one_sided=False, start=False)


@st.composite
def options(draw: st.DrawFn) -> Options:
    flags = {
        name: draw(st.booleans())
        for name in ("inputs", "one_sided", "probing", "domination", "cuts", "start", "together")
    }
    return Options(
        objective=draw(st.sampled_from(["margin", "swaps"])),
        relu=draw(st.sampled_from(["big_m", "indicator", "exclusive"])),
        maximum=draw(st.sampled_from(["k_way", "pairwise"])),
        **flags,
    )


def drawn(data: Any, sample: Sample) -> tuple[Query, int]:
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
    return query, data.draw(st.integers(0, len(query.space.swappable)))


def sentences(query: Query, k: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(list(all_sentences(query.space, k)), dtype=np.int64)


def margins(query: Query, rivals: tuple[int, ...], k: int) -> tuple[Any, Any]:
    """Every sentence of at most k swaps: its least margin against these rivals, and how many swaps it has."""
    rows = sentences(query, k)
    found = logits(query.network, rows)
    against = [found[:, query.label] - found[:, query.rivals[rival]] for rival in rivals]
    return np.min(against, axis=0), (rows != np.array(query.space.original)).sum(axis=1)


def expect_enumeration(written: Tight, solver: Solver, rivals: tuple[int, ...], k: int) -> None:
    """The least margin (if anything is left to ask), or the fewest swaps."""
    query = written.query
    least, swaps = margins(query, rivals, k)
    if written.settled:
        assert least.min() > 0
        return
    outcome = solver.here(written.program, 20.0)
    if written.options.objective == "margin":
        assert outcome.status == "optimal"
        assert outcome.objective is not None
        # Removed swaps may only cost what no witness needs.
        if least.min() <= 0:
            assert outcome.objective == pytest.approx(least.min(), abs=NEAR, rel=NEAR)
        else:
            assert outcome.objective > -NEAR
        return
    sure, possible = swaps[least <= -NEAR], swaps[least <= NEAR]
    if outcome.status == "infeasible":
        assert not len(sure)
        return
    assert outcome.objective is not None
    assert possible.min(initial=k + 1) - NEAR <= outcome.objective <= sure.min(initial=k + 1) + NEAR


class TestEncoding:
    @given(st.data(), tiny_networks(), options())
    @cases(80)
    def test_the_network_satisfies_the_rows_and_the_rows_give_its_margins(
        self, data: Any, sample: Sample, chosen: Options
    ) -> None:
        query, k = drawn(data, sample)
        written = tight(Differences.of(query), range(len(query.rivals)), k, chosen)
        for tokens in list(all_sentences(query.space, k))[:SENTENCES]:
            if written.holds(tokens) and not written.settled:
                assert written.get_error(tokens) < 1e-8

    @given(st.data(), networks(heads=False, kinds=False))
    @cases(40)
    def test_every_operator_is_encoded(self, data: Any, sample: Sample) -> None:
        query, k = drawn(data, sample)
        chosen = replace(data.draw(options()), objective="margin", probing=False, domination=False)
        written = tight(Differences.of(query), range(len(query.rivals)), k, chosen)
        for tokens in list(all_sentences(query.space, k))[:SENTENCES]:
            if not written.settled:
                size = 1.0 + np.abs(written.assignment(tokens)).max(initial=0.0)
                assert written.get_error(tokens) < 1e-8 * size

    @given(st.data(), tiny_networks(), options())
    @cases(30)
    def test_with_the_words_fixed_the_least_margin_is_the_networks(
        self, data: Any, sample: Sample, chosen: Options
    ) -> None:
        """A side that a one-sided encoding leaves free never pays."""
        chosen = replace(chosen, objective="margin", probing=False, domination=False)
        query, k = drawn(data, sample)
        written = tight(Differences.of(query), range(len(query.rivals)), k, chosen)
        if written.settled:
            return
        tokens = data.draw(st.sampled_from(list(all_sentences(query.space, k))))
        made = set(query.space.swaps_of(tokens))
        variables = tuple(
            replace(one, low=float(one.index in made), high=float(one.index in made)) if one.kind == "swap" else one
            for one in written.program.variables
        )
        solver = HIGHS if chosen.relu == "big_m" else SCIP
        outcome = solver.here(replace(written.program, variables=variables, start=None), 20.0)
        found = logits(query.network, np.array([tokens]))[0]
        true = min(found[query.label] - found[query.rivals[rival]] for rival in written.rivals)
        assert outcome.objective == pytest.approx(true, abs=NEAR, rel=NEAR)

    @given(st.data(), tiny_networks(), options())
    @cases(60)
    def test_every_option_finds_what_enumeration_finds(self, data: Any, sample: Sample, chosen: Options) -> None:
        query, k = drawn(data, sample)
        solver = data.draw(st.sampled_from([HIGHS, SCIP, GUROBI] if chosen.relu == "big_m" else [SCIP, GUROBI]))
        groups = [tuple(range(len(query.rivals)))] if chosen.together else [(r,) for r in range(len(query.rivals))]
        for rivals in groups:
            known = [tuple(row) for row in sentences(query, k)[:3].tolist()]
            expect_enumeration(tight(Differences.of(query), rivals, k, chosen, known), solver, rivals, k)

    def test_names_say_what_variables_are(self) -> None:
        sample = tiny("mlp", 5)
        with TemporaryDirectory() as folder:
            query = query_of(loaded(sample, Path(folder))[0], ((0, 1), *[(2,)] * (sample.length - 1)), 0)
        program = tight(Differences.of(query), [0], 1, PLAIN).program
        names = {one.name for one in program.variables}
        assert "swap[0,1]" in names
        assert 'swap[0,"fine"]' in {one.name for one in program.spelt({(0, 1): "fine"}).variables}
        assert {name.split("[")[0] for name in names} <= {"swap", "input", "relu", "active"}

    def test_a_start_is_a_solution(self) -> None:
        sample = tiny("deep", 7)
        choices = tuple((p % sample.vocabulary, (p + 1) % sample.vocabulary) for p in range(sample.length))
        with TemporaryDirectory() as folder:
            query = query_of(loaded(sample, Path(folder))[0], choices, 0)
        tokens = [query.space.original, *all_sentences(query.space, 2)]
        program = tight(Differences.of(query), [0], 2, replace(PLAIN, start=True), tokens).program
        assert program.start is not None
        assert program.violation(program.start) < 1e-8


class TestReduction:
    @given(st.data(), tiny_networks(shapes=("mlp", "mean", "deep", "cnn", "residual")), st.booleans(), st.booleans())
    @cases(100)
    def test_what_is_left_breaks_the_text_if_anything_does(
        self, data: Any, sample: Sample, probing: bool, domination: bool
    ) -> None:
        query, k = drawn(data, sample)
        for rival in range(len(query.rivals)):
            found = reduced(Differences.of(query), (rival,), k, TOLERANCE, probing=probing, domination=domination)
            least, _ = margins(query, (rival,), k)
            assert found.margins[0] <= least.min() + 1e-9 or least.min() > TOLERANCE
            left = set(zip(found.differences.positions.tolist(), found.differences.tokens.tolist(), strict=True))
            rows = [t for t in all_sentences(query.space, k) if set(query.space.swaps_of(t)) <= left]
            found_logits = logits(query.network, np.array(rows))
            kept = (found_logits[:, query.label] - found_logits[:, query.rivals[rival]]).min()
            if least.min() <= TOLERANCE:
                assert kept == pytest.approx(least.min(), abs=1e-9)
            removed = found.removed
            assert len(left) + sum(removed.values()) == query.space.candidates

    @given(st.data(), tiny_networks())
    @cases(60)
    def test_the_bounds_of_neurons_hold_for_what_is_left(self, data: Any, sample: Sample) -> None:
        query, k = drawn(data, sample)
        found = reduced(Differences.of(query), (0,), k, TOLERANCE)
        left = set(zip(found.differences.positions.tolist(), found.differences.tokens.tolist(), strict=True))
        rows = [t for t in all_sentences(query.space, k) if set(query.space.swaps_of(t)) <= left]
        reached = values(query.network, np.array(rows), wanted=list(found.elements))
        for node, (low, high) in found.elements.items():
            flat = reached[node].reshape(len(rows), -1)
            assert (flat >= low - 1e-9).all()
            assert (flat <= high + 1e-9).all()


X, Y, A = (Variable(name, (), 0.0, 10.0, cost=cost) for name, cost in (("x", -1.0), ("y", -1.0), ("a", 0.0)))


class TestSpecialRows:
    @pytest.mark.parametrize("solver", [GUROBI, SCIP], ids=lambda solver: solver.name)
    @pytest.mark.parametrize("value", [True, False])
    def test_an_indicator_holds_only_under_its_condition(self, solver: Solver, value: bool) -> None:
        """Either x <= 3, or a has the other value."""
        row = Row("if", np.array([0]), np.ones(1), -np.inf, 3.0)
        for a in (0.0, 1.0):
            variables = (X, replace(A, low=a, high=a, binary=True))
            outcome = solver.here(Program(variables, (), (Indicator(1, value, row),), offset=0.5), 10.0)
            assert outcome.objective == pytest.approx(0.5 - (3.0 if bool(a) == value else 10.0))

    @pytest.mark.parametrize("solver", [GUROBI, SCIP], ids=lambda solver: solver.name)
    def test_of_exclusive_variables_one_is_above_zero(self, solver: Solver) -> None:
        outcome = solver.here(Program((X, Y), (), (), (Exclusive("either", (0, 1)),)), 10.0)
        assert outcome.objective == pytest.approx(-10.0)

    def test_highs_says_what_it_cannot_read(self) -> None:
        outcome = HIGHS.here(Program((X, Y), (), (), (Exclusive("either", (0, 1)),)), 10.0)
        assert outcome.status == "unavailable"
        assert "big-M" in outcome.detail

    def test_violations_of_special_rows_are_seen(self) -> None:
        row = Row("if", np.array([0]), np.ones(1), -np.inf, 3.0)
        program = Program((X, replace(A, binary=True)), (), (Indicator(1, True, row),), (Exclusive("e", (0, 1)),))
        assert program.violation(np.array([5.0, 1.0])) == pytest.approx(2.0)
        assert program.violation(np.array([3.0, 1.0])) == pytest.approx(1.0)
        assert program.violation(np.array([3.0, 0.0])) == 0.0


def knapsack(items: int = 30) -> Program:
    weights = np.random.default_rng(1).integers(10, 60, size=items).astype(float)
    variables = tuple(Variable("item", (i,), 0.0, 1.0, True, -float(w) - i % 3) for i, w in enumerate(weights))
    return Program(variables, (Row("weight", np.arange(items), weights, -np.inf, float(weights.sum() // 2)),))


class TestStopping:
    @pytest.mark.parametrize("solver", [GUROBI, SCIP, HIGHS], ids=lambda solver: solver.name)
    def test_a_solution_that_is_good_enough_ends_it(self, solver: Solver) -> None:
        best = solver.here(knapsack(), 20.0)
        assert best.objective is not None
        outcome = solver.here(knapsack(), 20.0, stop=Stop(found=best.objective / 2))
        assert outcome.objective is not None
        assert outcome.objective <= best.objective / 2
        assert outcome.status in ("stopped", "optimal")

    @pytest.mark.parametrize("solver", [GUROBI, SCIP, HIGHS], ids=lambda solver: solver.name)
    def test_a_bound_that_is_good_enough_ends_it(self, solver: Solver) -> None:
        best = solver.here(knapsack(), 20.0)
        assert best.objective is not None
        outcome = solver.here(knapsack(), 20.0, stop=Stop(bound=2 * best.objective))
        assert outcome.above(2 * best.objective)
        assert outcome.status in ("stopped", "optimal")

    @pytest.mark.parametrize("solver", [GUROBI, SCIP, HIGHS], ids=lambda solver: solver.name)
    def test_a_start_is_used(self, solver: Solver) -> None:
        """Without time to find another."""
        program = knapsack()
        start = np.zeros(len(program.variables))
        start[0] = 1.0
        outcome = solver.here(replace(program, start=start), 20.0, stop=Stop(found=program.objective(start)))
        assert outcome.objective is not None
        assert outcome.objective <= program.objective(start)
