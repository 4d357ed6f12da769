"""Outside solvers on the ladder: all agree with enumeration; what they claim is recorded, and lies are found out."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import tiny as tiny_task
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_sentences, assert_fits_deployed, least_swaps_deployed, least_swaps_over_reals, loaded, query_of
from random_networks import Sample, networks, swap_spaces, tiny, tiny_networks

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.errors import BadInput
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.formulas.formula import Formula
from swapproof.encodings.formulas.query_formula import formula, parts
from swapproof.encodings.programs.integer_program import Program, Row, Variable
from swapproof.encodings.programs.tight_program import BEST, tight
from swapproof.encodings.query import Query
from swapproof.encodings.solvers.solver_answer import Clock, Found, Limits, Outcome
from swapproof.encodings.solvers.solver_process import Apart
from swapproof.encodings.solvers.solver_table import GUROBI, HIGHS, MILP_SOLVERS, SCIP, Z3, Solver
from swapproof.verifier.cli import main
from swapproof.verifier.engines.engine_table import engines_named
from swapproof.verifier.engines.enumeration import Enumeration
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.outside.milp_solvers import Milp
from swapproof.verifier.engines.outside.smt_solver import Smt
from swapproof.verifier.engines.outside.solver_asking import Here
from swapproof.verifier.engines.protocol import Budget, Claimed, Engine
from swapproof.verifier.ladder.climbing import climb
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.text_verdict import Verdict
from swapproof.verifier.roads import certify

ENGINES: tuple[Milp | Smt, ...] = (
    *(Milp(solver, apart=False) for solver in MILP_SOLVERS),
    *(Milp(solver, options=replace(BEST, objective="swaps"), apart=False) for solver in MILP_SOLVERS),
    Milp(HIGHS, options=replace(BEST, together=True), apart=False),
    Smt(apart=False),
    Smt(apart=False, fewest=True),
)


def chosen_of(query: Query, problem: Formula, tokens: tuple[int, ...]) -> set[int]:
    """Numbers of the swaps that make this sentence."""
    done = set(query.space.swaps_of(tokens))
    return {number for number, swap in enumerate(problem.swaps) if swap in done}


def settled(query: Query, replay: Replay, *engines: Engine, seconds: float = 60.0) -> Verdict:
    budget = Budget(time.monotonic() + seconds)
    return climb(query, replay, engines, budget, lambda bound: None)


def drawn(data: Any, sample: Sample, folder: str) -> tuple[Query, Replay]:
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    model, replay = loaded(sample, Path(folder))
    label = int(replay.answers(np.array([[options[0] for options in choices]]))[0])
    return query_of(model, choices, label), replay


class TestAgreement:
    @pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: f"{engine.name} {type(engine).__name__}")
    @given(data=st.data(), sample=tiny_networks(weights="normal"))
    @cases(8)
    def test_every_solver_finds_what_enumeration_finds(self, engine: Milp | Smt, data: Any, sample: Sample) -> None:
        with TemporaryDirectory() as folder:
            query, replay = drawn(data, sample, folder)
            verdict = settled(query, replay, engine)
            deployed, real = least_swaps_deployed(query, replay), least_swaps_over_reals(query)
            assert verdict.contradiction is None
            if verdict.status == "ambiguous" or real != deployed:
                return
            expected = verdict.interval.ceiling if deployed is None else deployed
            assert verdict.interval.high == deployed
            # That the text itself is right was replayed: nobody claims it.
            assert max([1, *(claim.low for claim in verdict.claims)]) == max(1, expected)

    @given(st.data(), tiny_networks(weights="small"))
    @cases(20)
    def test_ties_are_decided_exactly_by_exact_rationals(self, data: Any, sample: Sample) -> None:
        with TemporaryDirectory() as folder:
            query, replay = drawn(data, sample, folder)
            verdict = settled(query, replay, Smt(apart=False))
            real = least_swaps_over_reals(query)
            assert verdict.contradiction is None
            if verdict.status != "ambiguous" and real == least_swaps_deployed(query, replay):
                # Of two sentences with as many swaps, it may have found the tie that onnxruntime rounds the other way.
                assert verdict.interval.high in (None, real)
                expected = verdict.interval.ceiling if real is None else real
                assert max([1, *(claim.low for claim in verdict.claims)]) == max(1, expected)

    @given(st.data(), tiny_networks(weights="small"))
    @cases(20)
    def test_ties_are_no_contradiction_for_solvers_with_tolerances(self, data: Any, sample: Sample) -> None:
        with TemporaryDirectory() as folder:
            query, replay = drawn(data, sample, folder)
            engine = data.draw(st.sampled_from(ENGINES[:3]))
            verdict = settled(query, replay, engine, Exact())
            assert verdict.contradiction is None
            assert_fits_deployed(verdict, least_swaps_deployed(query, replay))

    @given(st.data(), tiny_networks(weights="normal"))
    @cases(10)
    def test_a_claim_becomes_a_proof_by_the_exact_engine(self, data: Any, sample: Sample) -> None:
        with TemporaryDirectory() as folder:
            query, replay = drawn(data, sample, folder)
            verdict = settled(query, replay, Milp(HIGHS, prover=Exact(), apart=False))
            alone = settled(query, replay, Enumeration())
            assert (verdict.status, verdict.interval.low, verdict.interval.high) == (
                alone.status,
                alone.interval.low,
                alone.interval.high,
            )


class TestFormula:
    @given(st.data(), st.one_of(tiny_networks(), networks(heads=False)))
    @cases(60)
    def test_with_the_words_fixed_the_formula_has_the_networks_answer(self, data: Any, sample: Sample) -> None:
        """Exactly: over the rationals, ties included."""
        with TemporaryDirectory() as folder:
            query, _ = drawn(data, sample, folder)
        query = Query.of(query.network, query.space, data.draw(st.integers(0, sample.classes - 1)))
        k = data.draw(st.integers(0, len(query.space.swappable)))
        problem = formula(query, k)
        for tokens in list(all_sentences(query.space, k))[:12]:
            found = exact_logits(query.network, tokens)[0]
            own = found[query.label]
            won = any(found[r] > own or (found[r] == own and r < query.label) for r in query.rivals)
            if problem.settled:
                assert not won
            else:
                assert problem.broken(chosen_of(query, problem, tokens)) == won

    @given(st.data(), tiny_networks())
    @cases(30)
    def test_the_parts_of_a_question_cover_it(self, data: Any, sample: Sample) -> None:
        """Every sentence with at least one swap is in exactly one part."""
        with TemporaryDirectory() as folder:
            query, _ = drawn(data, sample, folder)
        k = data.draw(st.integers(2, 4))
        counted: dict[tuple[int, ...], int] = {}
        for problem in parts(query, k):
            allowed = {*problem.made, *problem.swaps}
            for tokens in all_sentences(query.space, k):
                swaps = set(query.space.swaps_of(tokens))
                if set(problem.made) <= swaps <= allowed and len(swaps) <= problem.k + 1:
                    counted[tokens] = counted.get(tokens, 0) + 1
        expected = [tokens for tokens in all_sentences(query.space, k) if tokens != query.space.original]
        assert counted == dict.fromkeys(expected, 1)


def lying(found: Found) -> Solver:
    """A solver that says the same of every program."""

    def ask(program: Any, limits: Limits, clock: Clock) -> Found:
        return found

    return Solver("liar", "none", ask)


RAW = replace(BEST, probing=False, domination=False)
"""Without what would settle small texts before any solver is asked."""


@pytest.fixture
def breakable(tmp_path: Path) -> tuple[Query, Replay]:
    """A text that three swaps break and no two, which bounds do not show."""
    sample = tiny("deep", 173)
    words = range(min(4, sample.vocabulary // 2))
    choices = tuple(tuple((p + 2 * word) % sample.vocabulary for word in words) for p in range(sample.length))
    model, replay = loaded(sample, tmp_path)
    label = int(replay.answers(np.array([[options[0] for options in choices]]))[0])
    query = query_of(model, choices, label)
    assert not tight(Differences.of(query), range(len(query.rivals)), 2, RAW).settled
    assert least_swaps_deployed(query, replay) == 3
    return query, replay


class TestLies:
    def test_a_false_claim_meets_the_witness_of_another_engine(self, breakable: tuple[Query, Replay]) -> None:
        query, replay = breakable

        @dataclass(frozen=True)
        class Liar:
            name: str = "liar"

            def narrow(self, query: Query, interval: Any, budget: Budget) -> Any:
                yield Claimed(4, "liar")

        verdict = settled(query, replay, Liar(), Enumeration())
        assert verdict.contradiction is not None
        assert "claims" in verdict.contradiction
        assert verdict.dispute is not None
        assert verdict.dispute["claim"]["by"] == "liar"
        assert verdict.dispute["witness"]["margin"] < 0

    def test_a_claim_raises_no_interval(self, breakable: tuple[Query, Replay]) -> None:
        query, replay = breakable
        verdict = settled(query, replay, Milp(HIGHS, options=RAW, apart=False))
        assert verdict.interval.high == 3
        assert verdict.interval.low <= 1
        assert verdict.status == "open"
        assert [claim.low for claim in verdict.claims if claim.by == "highs"] == [3]
        assert "claimed by highs: 2 swaps are harmless (not proved)" in (verdict.reason or "")

    def test_a_sentence_that_does_not_break_the_network_is_disputed(self, breakable: tuple[Query, Replay]) -> None:
        """Its solution, all zeros, is the text itself."""
        query, replay = breakable

        def ask(program: Any, limits: Limits, clock: Clock) -> Found:
            return Found("stopped", objective=-1.0, bound=-2.0, solution=np.zeros(len(program.variables)))

        liar = Milp(Solver("liar", "none", ask), options=RAW, apart=False)
        verdict = settled(query, replay, liar)
        assert verdict.contradiction is not None
        assert "does not break the network" in verdict.contradiction
        assert verdict.dispute is not None
        assert verdict.dispute["solver"]["swaps"] == []
        assert len(verdict.dispute["evaluation"]["logits"]) == query.network.classes

    @pytest.mark.parametrize("status", ["time", "memory", "error", "unavailable", "infeasible"])
    def test_what_a_solver_does_not_say_is_a_reason(self, breakable: tuple[Query, Replay], status: Any) -> None:
        query, replay = breakable
        engine = Milp(lying(Found(status, detail="so it is")), options=RAW, apart=False)
        verdict = settled(query, replay, engine)
        assert verdict.contradiction is None
        assert verdict.status == "open"
        assert {claim.by for claim in verdict.claims} <= {"bounds"}
        assert "liar" in (verdict.reason or "")

    def test_a_text_too_large_for_a_licence_goes_to_the_next_solver(self, breakable: tuple[Query, Replay]) -> None:
        query, replay = breakable
        small = replace(GUROBI, name="small", ask=lying(Found("size", detail="too large")).ask, most=None)
        verdict = settled(query, replay, Milp(small, (HIGHS,), options=RAW, apart=False))
        claim = verdict.claims[-1]
        assert (claim.by, claim.low) == ("highs", 3)
        assert "small: too large" in claim.detail

    def test_the_run_folder_keeps_both_sides_and_the_exit_code_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @dataclass(frozen=True)
        class Liar:
            name: str = "liar"

            def narrow(self, query: Query, interval: Any, budget: Budget) -> Any:
                yield Claimed(interval.ceiling, "liar", "made up")

        monkeypatch.setattr("swapproof.verifier.ladder.settling.engines_named", lambda names: (Liar(), Exact()))
        task = tiny_task.write_task(tmp_path / "task", [("a good film", "positive")])
        outcome = certify(task, tmp_path / "run")
        assert outcome.exit_code == 4
        (line,) = [json.loads(one) for one in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
        assert "liar claims" in line["contradiction"]
        assert line["dispute"]["claim"]["by"] == "liar"
        assert line["dispute"]["witness"]["swaps"]


class TestSelection:
    @pytest.mark.parametrize("name", ["gurobi", "scip", "highs", "z3"])
    def test_solvers_are_engines_by_name(self, name: str) -> None:
        assert [engine.name for engine in engines_named(f"greedy,{name},exact")] == ["greedy", name, "exact"]

    def test_no_solver_is_asked_unless_named(self) -> None:
        assert [engine.name for engine in engines_named(None)] == ["greedy", "exact", "enumerate"]

    def test_a_wrong_name_is_told_the_right_one(self) -> None:
        with pytest.raises(BadInput, match="did you mean gurobi"):
            engines_named("gurobbi")

    def test_certify_with_a_solver_records_its_claims(self, tmp_path: Path) -> None:
        task = tiny_task.write_task(tmp_path / "task", [("a good film", "positive")])
        run = tmp_path / "run"
        assert main(["certify", str(task), "--out", str(run), "--engines", "greedy,highs"]) == 0
        (line,) = [json.loads(one) for one in (run / "results.jsonl").read_text().splitlines()]
        assert line["status"] in ("exact", "unbreakable")
        assert line["certificate"]
        assert all(claim["by"] in ("highs", "bounds") for claim in line.get("claims", ()))


class TestChildren:
    def test_a_child_answers_one_problem_after_the_other(self) -> None:
        program = Program(
            (Variable("x", (0,), 0.0, 1.0, True, 1.0),), (Row("r", np.array([0]), np.ones(1), 0.5, np.inf),)
        )
        with Apart("highs") as child:
            first, second = (child.solve(program, Limits(10.0)) for _ in range(2))
            assert child.process is not None
            pid = child.process.pid
        assert (first.objective, second.objective) == (1.0, 1.0)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    def test_a_child_that_grows_too_large_is_killed(self) -> None:
        """Even an idle solver holds more than this."""
        with Apart("z3") as child:
            outcome = child.solve(Formula((), 0, (), ()), Limits(10.0, megabytes=1.0))
            assert outcome.status == "memory"
            assert "MB" in outcome.detail
            assert child.process is None

    def test_after_a_death_the_next_problem_gets_a_new_child(self) -> None:
        program = Program((Variable("x", (0,), 0.0, 1.0, True, 1.0),), ())
        with Apart("highs") as child:
            child.solve(program, Limits(10.0))
            assert child.process is not None
            child.process.send_signal(signal.SIGKILL)
            child.process.wait()
            assert child.solve(program, Limits(10.0)).status == "optimal"

    def test_here_is_the_same_as_apart(self, breakable: tuple[Query, Replay]) -> None:
        query, replay = breakable
        for solver in (SCIP, Z3):
            engines: Sequence[Any] = (
                [Smt(apart=apart) for apart in (True, False)]
                if solver is Z3
                else [Milp(solver, apart=apart) for apart in (True, False)]
            )
            first, second = (settled(query, replay, engine) for engine in engines)
            assert [claim.low for claim in first.claims] == [claim.low for claim in second.claims]

    def test_an_outcome_is_above_what_it_bounds(self) -> None:
        assert Outcome("stopped", bound=1.0).above(0.5)
        assert not Outcome("stopped", bound=0.5).above(0.5)
        assert Outcome("infeasible").above(0.0)
        assert Here(HIGHS).solve(Program((), ()), Limits(1.0)).status == "optimal"
