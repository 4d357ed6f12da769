"""The ladder believes nothing it has not replayed or checked."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from handmade import MLP, node, save
from hypothesis import given
from hypothesis import strategies as st
from oracles import loaded, query_of
from random_networks import swap_spaces, tiny_networks

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.query import Query
from swapproof.encodings.solvers.solver_table import HIGHS
from swapproof.proofs.writing.certificate import Enumerate, Linear
from swapproof.verifier.engines import NAMES
from swapproof.verifier.engines.attack_engines import ATTACKS
from swapproof.verifier.engines.engine_table import ENGINES, OUTSIDE, SMALL_PROOFS, SMOOTH, engines_named
from swapproof.verifier.engines.enumeration import Enumeration
from swapproof.verifier.engines.greedy import Greedy
from swapproof.verifier.engines.outside.milp_solvers import Milp
from swapproof.verifier.engines.protocol import (
    Bound,
    Budget,
    Doubtful,
    Finding,
    Findings,
    Sentence,
    Stopped,
    Unchecked,
    shared,
)
from swapproof.verifier.interval import Interval, Proof, Witness
from swapproof.verifier.ladder.climbing import climb
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.text_verdict import Known


@dataclass(frozen=True)
class Says:
    """An engine that says what it is told to, true or not."""

    findings: tuple[Finding, ...]
    name: str = "says"

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        for finding in self.findings:  # noqa: UP028 (`yield from` would send the interval to the tuple)
            yield finding


@pytest.fixture
def breakable(tmp_path: Path) -> tuple[Query, Replay]:
    """A text that two swaps break and none alone: logits (sum of 0, 0, 0 against 1.5) with words worth 0 or 1."""
    weights = {
        "table": [[0.0], [1.0], [0.5]],
        "w1": [[1.0]] * 3,
        "b1": [0.0],
        "w2": [[0.0, 1.0]],
        "b2": [1.5, 0.0],
    }
    model = open_model(save(tmp_path, MLP, weights, length=3))
    return query_of(model, ((0, 1), (0, 1, 2), (0, 2)), 0), Replay.open(model)


def accepted(bound: Bound) -> str | None:
    return None


def test_a_sentence_that_does_not_break_the_model_is_not_believed(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    single = query.space.sentence([(0, 1)])
    verdict = climb(query, replay, (Says((Sentence(single),)),), Budget(), accepted)
    assert verdict.interval.high is None


def test_doubtful_sentences_are_replayed_in_a_batch(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    least = climb(query, replay, (Enumeration(),), Budget(), accepted).interval
    assert least.high_evidence is not None
    rows = np.array([query.space.original, query.space.sentence(least.high_evidence.swaps)])
    verdict = climb(query, replay, (Says((Doubtful(rows),)),), Budget(), accepted)
    assert verdict.interval.high == least.high


def test_a_refused_proof_raises_nothing_and_is_a_contradiction(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    bound = Bound(2, Enumerate(), "float32")
    verdict = climb(query, replay, (Says((bound,)),), Budget(), lambda bound: "leaf 0 fails")
    assert verdict.interval.low == 0
    assert verdict.contradiction is not None
    assert "leaf 0 fails" in verdict.contradiction


def test_the_next_engine_may_settle_what_the_refused_one_did_not(breakable: tuple[Query, Replay]) -> None:
    """The verdict stands on what was accepted; the refusal and the proof stay with it, and the engine is left."""
    query, replay = breakable
    lie, late = Bound(3, Linear(), "float32"), Bound(1, Enumerate(), "float32")
    asked: list[Bound] = []

    def only_lists(bound: Bound) -> str | None:
        asked.append(bound)
        return None if isinstance(bound.tree, Enumerate) else "leaf 0 fails"

    verdict = climb(query, replay, (Says((lie, late)), Enumeration()), Budget(), only_lists)
    assert (verdict.status, verdict.interval.low, verdict.interval.high) == ("exact", 2, 2)
    assert verdict.contradiction is not None
    assert "leaf 0 fails" in verdict.contradiction
    assert [type(bound.tree) for bound in verdict.refused] == [Linear]
    assert late not in asked


@dataclass(frozen=True)
class Lingers:
    """Finds nothing in whatever time it is given, and remembers when that ends."""

    ends: list[float]
    name: str = "lingers"

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        self.ends.append(budget.deadline)
        yield from ()


def test_time_is_kept_for_enumerating_a_space_that_is_small_enough(breakable: tuple[Query, Replay]) -> None:
    """An engine before it that uses up its time leaves the text open no more."""
    query, replay = breakable
    now, ends, later = Interval(ceiling=4), list[float](), time.monotonic() + 1000
    needed = Enumeration().needs(query, now)
    assert 0.25 < needed < 0.3
    for engine in (Enumeration(), Enumeration(most=1), Milp(HIGHS)):
        climb(query, replay, (Lingers(ends), engine), Budget(later), accepted)
    assert ends[:2] == [later - needed, later]
    assert later - 500 <= ends[2] < later - 400
    soon = Budget(time.monotonic() + needed)
    assert shared(soon, [Enumeration()], query, now) is soon
    assert shared(Budget(), [Enumeration()], query, now).deadline == float("inf")


def test_where_evidence_contradicts_evidence_no_engine_is_asked_on(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    lie, truth = Bound(4, Enumerate(), "float32"), Sentence(query.space.sentence([(0, 1), (1, 1)]))
    verdict = climb(query, replay, (Says((lie, truth)), Says((Stopped("never asked"),))), Budget(), accepted)
    assert verdict.contradiction is not None
    assert "never asked" not in str(verdict.reason)


def test_a_known_witness_is_replayed_and_a_known_proof_is_not_asked_for_again(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    broken, whole = query.space.sentence([(0, 1), (1, 1)]), query.space.original
    proof = Proof(Enumerate(), "float32", "exact")

    def never(bound: Bound) -> str | None:
        raise AssertionError

    for witness, high in ((broken, 2), (whole, None)):
        verdict = climb(query, replay, (), Budget(), never, Known(2, proof, witness, None, "exact"))
        assert (verdict.interval.low, verdict.interval.high) == (2, high)
    assert verdict.interval.low_evidence is proof


def test_a_proof_that_cannot_be_checked_in_time_raises_nothing(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable

    def too_long(bound: Bound) -> str | None:
        raise Unchecked("no time")

    verdict = climb(query, replay, (Says((Bound(2, Enumerate(), "float32"),)),), Budget(), too_long)
    assert (verdict.interval.low, verdict.contradiction, verdict.reason) == (0, None, "says: no time")


def test_a_claim_refused_at_float32_is_tried_over_the_reals(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable

    def only_real(bound: Bound) -> str | None:
        return None if bound.level == "real" else "rounding"

    verdict = climb(query, replay, (Says((Bound(2, Enumerate(), "float32"),)),), Budget(), only_real)
    assert (verdict.interval.low, verdict.interval.low_float32, verdict.contradiction) == (2, 0, None)


def test_a_witness_below_a_proved_end_is_a_contradiction(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    least = climb(query, replay, (Enumeration(),), Budget(), accepted).interval
    assert least.high is not None
    assert least.high_evidence is not None
    lie = Bound(least.high + 1, Enumerate(), "float32")
    truth = Sentence(query.space.sentence(least.high_evidence.swaps))
    verdict = climb(query, replay, (Says((lie, truth)),), Budget(), accepted)
    assert verdict.contradiction is not None
    assert "fools onnxruntime" in verdict.contradiction


def test_a_witness_below_an_end_proved_over_the_reals_only_is_ambiguous(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    least = climb(query, replay, (Enumeration(),), Budget(), accepted).interval
    assert least.high is not None
    assert least.high_evidence is not None
    real = Bound(least.high + 1, Enumerate(), "real")
    truth = Sentence(query.space.sentence(least.high_evidence.swaps))
    verdict = climb(query, replay, (Says((Bound(1, Enumerate(), "float32"), real, truth)),), Budget(), accepted)
    assert verdict.status == "ambiguous"
    assert (verdict.interval.low, verdict.interval.high) == (1, least.high)


@pytest.mark.parametrize("engines", ["greedy,exact", "exact,enumerate", "exact"])
def test_what_only_the_reals_settle_is_looked_through_for_what_rounding_decides(engines: str, tmp_path: Path) -> None:
    """2**27 and 2**27 + 3 are one float32 number: over the reals no swap breaks the text, in onnxruntime one does."""
    table = [[0, 0], [2**27, 2**27], [0, 3]]
    nodes = [
        node("Constant", "", "axes", value_ints=[1]),
        node("Gather", "table tokens", "embedded"),
        node("ReduceSum", "embedded axes", "logits", keepdims=0),
    ]
    model = open_model(save(tmp_path, nodes, {"table": table}, length=2))
    query = query_of(model, ((0, 1), (2,)), 1)
    verdict = climb(query, Replay.open(model), engines_named(engines), Budget(), accepted)
    assert (verdict.status, verdict.interval.high) == ("ambiguous", 1)
    assert verdict.interval.low <= 1


def test_reasons_of_engines_that_gave_up_are_kept(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    engines = (Says((Stopped("no room"),), "first"), Says((Stopped("no time"),), "second"))
    verdict = climb(query, replay, engines, Budget(), accepted)
    assert (verdict.status, verdict.reason) == ("open", "first: no room; second: no time")


def test_a_text_already_wrong_needs_no_engine(breakable: tuple[Query, Replay]) -> None:
    query, replay = breakable
    wrong = Query.of(query.network, query.space, 1 - query.label if query.label < 2 else 0)
    verdict = climb(wrong, replay, (Greedy(), Enumeration()), Budget(), accepted)
    assert verdict.status == "already_wrong"
    assert (verdict.interval.low, verdict.interval.high, verdict.engine) == (0, 0, "replay")


@given(st.data())
def test_greedy_finds_no_witness_better_than_the_best(data: st.DataObject) -> None:
    from tempfile import TemporaryDirectory

    sample = data.draw(tiny_networks())
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, replay = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
        greedy = climb(query, replay, (Greedy(),), Budget(), accepted)
        best = climb(query, replay, (Enumeration(),), Budget(), accepted)
    if greedy.interval.high is not None and best.status != "ambiguous":
        assert best.interval.high is not None
        assert greedy.interval.high >= best.interval.high


def cancelling(folder: Path) -> Path:
    """logits = ((a + 2**24) - 2**24, 0.5): over the reals a = 0.75 wins for class 0, in float32 it rounds to 0 or 1."""
    weights = {
        "table": [[0.75], [4.0]],
        "w1": [[1.0, 1.0]],
        "b1": [2.0**24, 0.0],
        "w2": [[1.0, 0.0], [0.0, 0.0]],
        "b2": [-(2.0**24), 0.5],
    }
    return save(folder, MLP, weights, length=1)


def test_a_margin_lost_to_cancellation_is_ambiguous(tmp_path: Path) -> None:
    model = open_model(cancelling(tmp_path))
    query = query_of(model, ((0, 1),), 0)
    verdict = climb(query, Replay.open(model), (Greedy(), Enumeration()), Budget(), accepted)
    assert verdict.status == "ambiguous"
    assert verdict.interval.low_float32 == 0


def test_engines_are_named_and_misspellings_get_the_nearest_name() -> None:
    assert [engine.name for engine in engines_named("enumerate, greedy")] == ["enumerate", "greedy"]
    with pytest.raises(BadInput, match="did you mean greedy"):
        engines_named("gredy")
    with pytest.raises(BadInput, match="no engine is named"):
        engines_named(" , ")


@pytest.mark.parametrize(
    ("name", "module", "distribution"), [("gurobi", "gurobipy", "gurobipy"), ("z3", "z3", "z3-solver")]
)
def test_an_engine_that_is_not_installed_says_what_to_install(
    name: str, module: str, distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Unsupported, match=f"{distribution}, which is not installed: pip install {distribution}$"):
        engines_named(f"greedy,{name}")
    assert engines_named("greedy,highs")


def test_narrowing_never_widens() -> None:
    interval = Interval(ceiling=5)
    assert interval.raised(3, Proof(Enumerate(), "real", "e")).raised(2, Proof(Enumerate(), "real", "e")).low == 3
    witness = Witness(((0, 1), (1, 1)), True, "e")
    lowered = interval.lowered(witness)
    assert lowered.lowered(Witness(((0, 1), (1, 1), (2, 1)), True, "e")) is lowered
    assert interval.raised(9, Proof(Enumerate(), "float32", "e")).low == 5


def test_the_names_of_the_engines_are_known_without_them() -> None:
    every = (*ENGINES, *SMOOTH, *OUTSIDE, *SMALL_PROOFS.values(), *ATTACKS)
    assert tuple(engine.name for engine in every) == NAMES


@pytest.mark.parametrize(("names", "said"), [("exact,exact", "exact is named twice"), ("exact,", "ends in a comma")])
def test_engines_are_named_once(names: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        engines_named(names)
