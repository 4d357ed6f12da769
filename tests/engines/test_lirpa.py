"""auto_LiRPA in a process of its own: no sentence contradicts a bound, and what is wrong in it is refused or mended.

Bounds are compared with enumeration in float64, on random networks of every kind of layer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import tiny as tiny_task
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_sentences, least_swaps_deployed
from random_networks import Sample, networks, tiny_networks
from random_smooth import PARTS, VOCABULARY, Maker, smooth_network
from settling import case

from swapproof.encodings.evaluation import logits
from swapproof.encodings.network import Affine, Network
from swapproof.encodings.query import Query
from swapproof.encodings.solvers.ask_lirpa import CLEAR
from swapproof.encodings.solvers.margin_problem import MarginProblem
from swapproof.encodings.solvers.solver_answer import Limits, Outcome
from swapproof.encodings.solvers.solver_process import Apart
from swapproof.encodings.solvers.solver_table import LIRPA_SOLVERS, SOLVERS, Solver
from swapproof.encodings.solvers.torch_rules import TORCH
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.walk import KINDS
from swapproof.verifier.cli import main
from swapproof.verifier.engines.engine_table import engines_named
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.outside.margin_bounds import MarginBounds
from swapproof.verifier.engines.protocol import Budget, Claimed
from swapproof.verifier.interval import Interval
from swapproof.verifier.ladder.climbing import climb

ROOT = Path(__file__).parents[2]
CROWN: Solver = LIRPA_SOLVERS[1]
ROUNDED = 1e-9
"""What float64 may be off by here, in parts of the margin."""


@pytest.fixture(scope="module")
def children() -> Iterator[dict[str, Apart]]:
    """One process for each method: loading torch takes seconds."""
    found = {solver.name: Apart(solver.name) for solver in LIRPA_SOLVERS}
    yield found
    for child in found.values():
        child.end()


def least_margins(query: Query) -> list[float]:
    """For k = 0, 1, ...: the least margin over all sentences of at most k swaps."""
    found = []
    for k in range(len(query.space.swappable) + 1):
        values = logits(query.network, np.array(list(all_sentences(query.space, k)), dtype=np.int64))
        found.append(float((values[:, [query.label]] - values[:, list(query.rivals)]).min()))
    return found


def asked(child: Apart, query: Query) -> Outcome:
    return child.solve(MarginProblem.of(query, 1, len(query.space.swappable)), Limits(60.0))


def expect_sound(outcome: Outcome, query: Query) -> None:
    assert outcome.status == "optimal", outcome.detail
    assert outcome.solution is not None
    least = least_margins(query)[1:]
    for bound, true in zip(outcome.solution.tolist(), least, strict=False):
        assert bound <= true + ROUNDED * (1 + abs(true))
    assert all(bound > 0 for bound in outcome.solution[:-1])


def smooth_query(network: Network, source: int) -> Query | None:
    random = np.random.default_rng(source)
    choices = [random.permutation(VOCABULARY)[: random.integers(1, 4)].tolist() for _ in range(network.length)]
    space = SwapSpace.of(choices)
    values = logits(network, np.array([space.original]))[0]
    return Query.of(network, space, int(values.argmax())) if space.swappable else None


class TestBounds:
    @pytest.mark.parametrize("solver", LIRPA_SOLVERS, ids=lambda one: one.name)
    @given(data=st.data(), sample=st.one_of(tiny_networks(), networks(heads=False, kinds=False)))
    @cases(12)
    def test_no_sentence_is_below_a_bound(
        self, children: dict[str, Apart], solver: Solver, data: Any, sample: Sample
    ) -> None:
        with TemporaryDirectory() as folder:
            _, query, _ = case(data, sample, folder)
            if query.space.swappable:
                expect_sound(asked(children[solver.name], query), query)

    @pytest.mark.parametrize("solver", LIRPA_SOLVERS, ids=lambda one: one.name)
    @given(parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=3), source=st.integers(0, 2**32 - 1))
    @cases(12)
    def test_no_sentence_is_below_a_bound_of_a_smooth_network(
        self, children: dict[str, Apart], solver: Solver, parts: list[str], source: int
    ) -> None:
        """What is refused says why: a root or a reciprocal of what may be negative, or bounds that overflow."""
        query = smooth_query(smooth_network(tuple(parts), source), source)
        if query is None:
            return
        outcome = asked(children[solver.name], query)
        if outcome.status == "error":
            assert "it must be positive" in outcome.detail or "finite" in outcome.detail
        else:
            expect_sound(outcome, query)

    @pytest.mark.parametrize("part", PARTS)
    def test_every_part_is_bounded(self, children: dict[str, Apart], part: str) -> None:
        """Of a network that is not too wild: every function is one that it takes."""
        outcomes = []
        for source in range(3):
            query = smooth_query(smooth_network((part,), source), source)
            if query is not None:
                outcomes.append(asked(children["lirpa-crown"], query))
                if outcomes[-1].status == "optimal":
                    expect_sound(outcomes[-1], query)
        assert "optimal" in {one.status for one in outcomes}, [one.detail for one in outcomes]

    @given(st.integers(0, 2**32 - 1))
    @cases(10)
    def test_of_an_affine_network_backward_bounds_are_the_margins(
        self, children: dict[str, Apart], source: int
    ) -> None:
        """So the perturbation is minimised exactly: over options, words, and numbers of swaps."""
        maker = Maker(np.random.default_rng(source))
        at = maker.words(int(maker.random.integers(2, 6)), 3)
        maker.affine(at, 3)
        query = smooth_query(Network(tuple(maker.nodes), maker.nodes[0].shape[1], VOCABULARY), source)
        if query is None:
            return
        found = asked(children["lirpa-crown"], query).solution
        assert found is not None
        clear = CLEAR * max(1.0, float(np.abs(logits(query.network, np.array([query.space.original]))).max()))
        expected = least_margins(query)[1 : len(found) + 1]
        assert np.abs(found + clear - expected).max() < ROUNDED

    def test_a_tie_is_not_cleared(self, children: dict[str, Apart]) -> None:
        """Both logits are the same function: the margin is 0, whatever rounding makes of it."""
        maker = Maker(np.random.default_rng(3))
        at = maker.words(3, 2)
        weight = np.repeat(maker.random.normal(size=(6, 1)), 2, axis=1)
        maker.add(Affine(weight, np.full(2, 0.1)), at, width=2)
        network = Network(tuple(maker.nodes), 3, VOCABULARY)
        query = Query.of(network, SwapSpace.of([(0, 1), (2, 3), (4,)]), 0)
        for child in children.values():
            outcome = asked(child, query)
            assert outcome.bound is None
            assert outcome.solution is not None
            assert outcome.solution.tolist()[0] < 0


class TestClaims:
    @given(st.data(), tiny_networks(weights="normal"))
    @cases(6)
    def test_a_claim_raises_no_interval_and_is_true(self, data: Any, sample: Sample) -> None:
        with TemporaryDirectory() as folder:
            _, query, replay = case(data, sample, folder)
            verdict = climb(query, replay, [MarginBounds(CROWN)], Budget(time.monotonic() + 60), lambda bound: None)
            if verdict.status in ("ambiguous", "already_wrong") or not query.space.swappable:
                return
            deployed = least_swaps_deployed(query, replay)
            assert verdict.contradiction is None
            assert verdict.interval.low <= 1
            assert all(
                claim.low <= (verdict.interval.ceiling if deployed is None else deployed) for claim in verdict.claims
            )
            assert all(claim.by == "lirpa-crown" and "auto_LiRPA 0." in claim.detail for claim in verdict.claims)

    def test_what_is_claimed_is_tried_to_be_proved(self, tmp_path: Path) -> None:
        task = tiny_task.write_task(tmp_path / "task", [("a good film", "positive"), ("awful", "negative")])
        run = tmp_path / "run"
        assert main(["certify", str(task), "--out", str(run), "--engines", "lirpa-crown"]) == 0
        lines = [json.loads(one) for one in (run / "results.jsonl").read_text().splitlines()]
        claimed = [line for line in lines if line.get("claims")]
        assert {claim["by"] for line in claimed for claim in line["claims"]} == {"lirpa-crown"}
        assert all(line["status"] in ("exact", "unbreakable") and line["certificate"] for line in claimed)

    def test_swaps_settled_before_are_not_asked_again(self) -> None:
        query = smooth_query(smooth_network(("tanh",), 5), 5)
        assert query is not None
        closed = Interval(ceiling=2, low=2)
        assert list(MarginBounds(CROWN).narrow(query, closed, Budget())) == []

    def test_no_proof_is_tried_of_what_is_not_claimed(self) -> None:
        class Never:
            name = "never"

            def narrow(self, query: Query, interval: Interval, budget: Budget) -> Any:
                raise AssertionError("asked to prove nothing")

        query = smooth_query(smooth_network(("exp", "square"), 11), 11)
        assert query is not None
        wrong = Query.of(query.network, query.space, (query.label + 1) % query.network.classes)
        findings = list(MarginBounds(CROWN, prover=Never()).narrow(wrong, Interval(ceiling=9), Budget()))
        assert not [one for one in findings if isinstance(one, Claimed)]


@pytest.fixture(scope="module")
def faults() -> dict[str, Any]:
    script = str(ROOT / "tests" / "support" / "lirpa_faults.py")
    run = subprocess.run([sys.executable, "-W", "ignore", script], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


class TestFaults:
    """Each is of auto_LiRPA 0.3 as it is; `lirpa_mending` says what is done about it."""

    @pytest.mark.parametrize("name", ["gather", "sqrt", "reciprocal", "tanh", "softmax"])
    def test_the_library_alone_is_contradicted(self, faults: dict[str, Any], name: str) -> None:
        (low, high), (least, most) = faults[name]["library"], faults[name]["true"]
        assert low > least + 1e-3 or high < most - 1e-3

    @pytest.mark.parametrize("name", ["gather", "sqrt", "tanh"])
    def test_what_is_mended_is_sound(self, faults: dict[str, Any], name: str) -> None:
        (low, high), (least, most) = faults[name]["ours"], faults[name]["true"]
        assert low <= least
        assert high >= most

    @pytest.mark.parametrize(
        ("name", "why"),
        [("reciprocal", "it must be positive"), ("softmax", "its softmax is not sound")],
    )
    def test_what_is_not_mended_is_refused_by_name(self, faults: dict[str, Any], name: str, why: str) -> None:
        assert why in faults[name]["ours"]

    def test_the_score_box_of_a_softmax_is_not_claimed(self, children: dict[str, Apart]) -> None:
        """Scores in [-40, 0] x [-35, -34]: auto_LiRPA's softmax says that the second share stays below 0.0018.

        Share 0 less share 1 is near 1 at the text, and near -1 after the one swap to (-40, -34).
        """
        maker = Maker(np.random.default_rng(0))
        at = maker.words(2, 1)
        maker.softmax(at)
        table = np.array([[0.0], [-40.0], [-35.0], [-34.0], *[[0.0]] * 4])
        words, *others = maker.nodes
        embedding = type(words.layer)(table, np.arange(2)[None])  # type: ignore[call-arg, arg-type]
        network = Network((type(words)(embedding, (), (1, 2, 1), "words", 0), *others), 2, VOCABULARY)
        query = Query.of(network, SwapSpace.of([(0, 1), (2, 3)]), 0)
        least = least_margins(query)
        assert least[0] > 0.99
        assert least[1] < -0.9
        for child in children.values():
            expect_sound(asked(child, query), query)


class TestHouse:
    def test_every_kind_of_layer_has_an_operation(self) -> None:
        assert set(TORCH.rules) == set(KINDS)

    @pytest.mark.parametrize("solver", LIRPA_SOLVERS, ids=lambda one: one.name)
    def test_it_is_an_engine_only_when_named(self, solver: Solver) -> None:
        assert solver in SOLVERS
        assert [engine.name for engine in engines_named(f"greedy,{solver.name}")] == ["greedy", solver.name]
        assert solver.name not in {engine.name for engine in engines_named(None)}
        assert solver.install == "pip install --no-deps auto-LiRPA"

    def test_torch_is_loaded_in_the_child_only(self) -> None:
        code = (
            "import sys, swapproof.verifier.engines, swapproof.encodings.solvers.ask_lirpa as a\n"
            "print(*({name.split('.')[0] for name in sys.modules} & {'torch', 'auto_LiRPA'}))"
        )
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert run.stdout.split() == []

    def test_a_problem_holds_the_words_of_its_text_only(self) -> None:
        query = smooth_query(smooth_network(("tanh", "gate"), 7), 7)
        assert query is not None
        problem = MarginProblem.of(query, 1, 1)
        number = dict(zip(sorted({*np.concatenate(query.space.choices).tolist()}), range(VOCABULARY), strict=False))
        assert problem.network.vocabulary_size == len(number)
        for tokens in list(product(*query.space.choices))[:20]:
            own = logits(problem.network, np.array([[number[token] for token in tokens]]))
            assert np.array_equal(own, logits(query.network, np.array([tokens])))

    def test_the_exact_engine_tries_to_prove_its_claims(self) -> None:
        engines = {engine.name: engine for engine in engines_named("lirpa-ibp,lirpa-crown,lirpa-alpha")}
        assert all(isinstance(one, MarginBounds) and isinstance(one.prover, Exact) for one in engines.values())
