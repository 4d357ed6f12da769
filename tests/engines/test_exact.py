"""The exact engine says what enumeration says, and the checker accepts what it says."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import assert_fits_deployed, least_swaps_deployed, least_swaps_over_reals, loaded, query_of
from random_networks import networks, tiny, tiny_networks
from settling import all_choices, case, checked_by, expect_truth, nodes_of, paper_network, settle

from swapproof.encodings.query import Query
from swapproof.proofs.writing.certificate import Joint, Words, encode_tree
from swapproof.verifier.engines.attempt import Effort
from swapproof.verifier.engines.enumeration import Enumeration
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.greedy import Greedy
from swapproof.verifier.engines.protocol import Bound, Budget, Finding, Stopped
from swapproof.verifier.interval import Interval, Proof

JOINT_AT_ONCE = Effort(before_joint=-1)


@given(st.data())
def test_the_interval_is_what_enumeration_finds_and_every_proof_is_accepted(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks())
    with TemporaryDirectory() as folder:
        model, query, replay = case(data, sample, folder)
        engines = data.draw(st.sampled_from([(Exact(),), (Greedy(), Exact())]))
        verdict = settle(query, replay, *engines, check=checked_by(model, query))
        expect_truth(verdict, query, replay)


@given(st.data())
def test_joint_bounds_find_the_same_interval_and_their_proofs_are_accepted(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks(shapes=("mlp", "mean")))
    with TemporaryDirectory() as folder:
        model, query, replay = case(data, sample, folder)
        verdict = settle(query, replay, Exact(effort=JOINT_AT_ONCE), check=checked_by(model, query))
        expect_truth(verdict, query, replay)


@given(st.data())
def test_integer_networks_are_settled_over_the_reals_ties_included(data: st.DataObject) -> None:
    """Small whole numbers round nowhere, so a tie is a tie everywhere and goes to the lower class."""
    sample = data.draw(tiny_networks(weights="small", shapes=("mlp", "deep", "residual", "maximum")))
    with TemporaryDirectory() as folder:
        model, query, replay = case(data, sample, folder)
        verdict = settle(query, replay, Exact(), check=checked_by(model, query))
        real = least_swaps_over_reals(query)
    assert (verdict.interval.low, verdict.interval.high) == (verdict.interval.ceiling if real is None else real, real)


@given(st.data())
def test_every_operator_is_bounded_as_onnxruntime_evaluates_it(data: st.DataObject) -> None:
    sample = data.draw(networks())
    with TemporaryDirectory() as folder:
        _, query, replay = case(data, sample, folder, most_choices=2)
        verdict = settle(query, replay, Exact())
        deployed = least_swaps_deployed(query, replay)
    assert_fits_deployed(verdict, deployed)


@given(st.data())
def test_exact_and_enumeration_agree_on_larger_spaces(data: st.DataObject) -> None:
    sample = tiny(data.draw(st.sampled_from(["mlp", "cnn", "deep"])), data.draw(st.integers(0, 10_000)))
    with TemporaryDirectory() as folder:
        _, query, replay = case(data, sample, folder, most_choices=sample.vocabulary)
        one, other = settle(query, replay, Exact()), settle(query, replay, Enumeration(10**6))
    if "ambiguous" not in (one.status, other.status) and one.level == other.level:
        assert (one.interval.low, one.interval.high) == (other.interval.low, other.interval.high)


def test_the_same_query_gives_the_same_tree(tmp_path: Path) -> None:
    sample = tiny("deep", 4)
    model, replay = loaded(sample, tmp_path)
    choices = all_choices(sample)
    query = query_of(model, choices, int(replay.answers(np.array([[row[0] for row in choices]]))[0]))
    sizes = [len(row) for row in choices]
    trees = []
    for _ in range(2):
        proof = settle(query, replay, Exact()).interval.low_evidence
        assert proof is not None
        trees.append(encode_tree(proof.tree, sizes, query.rivals))
    assert trees[0] == trees[1]


def test_positions_that_must_not_move_are_never_split(tmp_path: Path) -> None:
    sample = tiny("mlp", 8)
    model, replay = loaded(sample, tmp_path)
    choices = tuple(row if place % 2 else row[:1] for place, row in enumerate(all_choices(sample)))
    query = query_of(model, choices, int(replay.answers(np.array([[row[0] for row in choices]]))[0]))
    proof = settle(query, replay, Exact()).interval.low_evidence
    assert proof is not None
    words = {node.word for node in nodes_of(proof.tree) if isinstance(node, Words)}
    assert words <= set(range(len(query.space.swappable)))
    assert all(query.space.swappable[word] % 2 == 1 for word in words)


def test_a_text_without_swaps_is_proved_unbreakable(tmp_path: Path) -> None:
    sample = tiny("mlp", 3)
    model, replay = loaded(sample, tmp_path)
    choices = tuple((0,) for _ in range(sample.length))
    query = query_of(model, choices, int(replay.answers(np.zeros((1, sample.length), dtype=np.int64))[0]))
    verdict = settle(query, replay, Exact(), check=checked_by(model, query))
    assert verdict.status == "unbreakable"
    assert verdict.interval.low == 1


def findings_of(query: Query, interval: Interval, budget: Budget) -> list[Finding]:
    """What the engine says when every bound is believed and no sentence replays."""
    found: list[Finding] = []
    steps = Exact().narrow(query, interval, budget)
    finding = next(steps, None)
    while finding is not None:
        found.append(finding)
        if isinstance(finding, Bound):
            interval = interval.raised(finding.low, Proof(finding.tree, finding.level, "exact"))
        try:
            finding = steps.send(interval)
        except StopIteration:
            finding = None
    return found


def test_a_spent_budget_leaves_the_interval_reached_with_the_reason(tmp_path: Path) -> None:
    reasons = []
    for source in range(12):
        sample = tiny("deep", source)
        model, replay = loaded(sample, tmp_path)
        choices = all_choices(sample)
        query = query_of(model, choices, int(replay.answers(np.array([[row[0] for row in choices]]))[0]))
        interval = Interval(ceiling=sample.length + 1, low=1, high=sample.length)
        findings = findings_of(query, interval, Budget(deadline=time.monotonic() - 1))
        reasons += [finding.reason for finding in findings if isinstance(finding, Stopped)]
        assert all(isinstance(finding, Bound | Stopped) for finding in findings)
    assert reasons
    assert all("out of time at" in reason for reason in reasons)


def test_a_sentence_that_does_not_replay_stops_the_engine_with_the_reason(tmp_path: Path) -> None:
    stopped = 0
    for source in range(6):
        sample = tiny("mlp", source)
        model, replay = loaded(sample, tmp_path)
        choices = tuple(row[:3] for row in all_choices(sample))
        query = query_of(model, choices, int(replay.answers(np.array([[row[0] for row in choices]]))[0]))
        findings = findings_of(query, Interval(ceiling=sample.length + 1), Budget())
        if least_swaps_over_reals(query) is not None:
            assert isinstance(findings[-1], Stopped)
            assert "over the reals" in findings[-1].reason
            stopped += 1
    assert stopped


@pytest.mark.parametrize(("operator", "classes"), [("Relu", 2), ("Relu", 4), ("LeakyRelu", 3)])
def test_searches_agree_and_their_proofs_are_accepted(operator: str, classes: int, tmp_path: Path) -> None:
    """With linear bounds, with joint bounds (forced at once, or after a first look), and by enumeration."""
    joint, splits = 0, 0
    for source in range(8):
        sample = paper_network(source, operator, classes)
        model, replay = loaded(sample, tmp_path)
        choices = tuple(tuple((first + step) % 8 for step in range(3)) for first in range(sample.length))
        label = int(replay.answers(np.array([[row[0] for row in choices]]))[0])
        query = query_of(model, choices, label)
        expected = settle(query, replay, Enumeration()).interval
        for engine in (Exact(joint=False), Exact(), Exact(effort=JOINT_AT_ONCE)):
            interval = settle(query, replay, engine, check=checked_by(model, query)).interval
            assert (interval.low, interval.high) == (expected.low, expected.high)
            assert interval.low_evidence is not None
            nodes = nodes_of(interval.low_evidence.tree)
            joint += any(isinstance(node, Joint) for node in nodes)
            splits += any(isinstance(node, Words) for node in nodes)
    assert joint
    assert splits
