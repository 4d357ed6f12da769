"""Enumeration visits every sentence once and never misjudges one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_sentences, assert_fits_deployed, least_swaps_deployed, least_swaps_over_reals, loaded, query_of
from random_networks import TINY, networks, swap_spaces, tiny, tiny_networks

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.query import Query
from swapproof.verifier.engines.combinations import Tables
from swapproof.verifier.engines.enumeration import Enumeration
from swapproof.verifier.engines.greedy import Greedy
from swapproof.verifier.engines.protocol import Budget, Engine
from swapproof.verifier.ladder.climbing import climb
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.text_verdict import Verdict


def settle(query: Query, replay: Replay, *engines: Engine) -> Verdict:
    verdict = climb(query, replay, engines, Budget(), lambda bound: None)
    assert verdict.contradiction is None
    return verdict


@given(st.data())
def test_the_interval_is_what_plain_enumeration_finds(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks())
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, replay = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
        verdict = settle(query, replay, *data.draw(st.sampled_from([(Enumeration(),), (Greedy(), Enumeration())])))
        real, deployed = least_swaps_over_reals(query), least_swaps_deployed(query, replay)
    interval = verdict.interval
    if verdict.status == "ambiguous":
        assert interval.low <= (deployed if deployed is not None else interval.ceiling)
        return
    assert interval.high == deployed
    assert interval.low == (interval.ceiling if deployed is None else deployed)
    witness = interval.high_evidence
    if witness is not None and witness.real is False:  # rounding alone lets that sentence break the text
        assert real is None or real > len(witness.swaps)
    elif verdict.level == "float32":
        assert real == deployed
    assert verdict.status == {None: "unbreakable", 0: "already_wrong"}.get(deployed, "exact")


@given(st.data())
def test_integer_networks_are_settled_over_the_reals_ties_included(data: st.DataObject) -> None:
    """Small whole numbers round nowhere, so a tie is a tie everywhere and goes to the lower class."""
    sample = data.draw(tiny_networks(weights="small", shapes=("mlp", "deep", "residual", "maximum")))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, replay = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
        verdict = settle(query, replay, Enumeration())
        real = least_swaps_over_reals(query)
    assert verdict.status != "ambiguous"
    assert (verdict.interval.low, verdict.interval.high) == (verdict.interval.ceiling if real is None else real, real)


@given(st.data())
def test_every_operator_is_swept_as_onnxruntime_evaluates_it(data: st.DataObject) -> None:
    sample = data.draw(networks())
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary, most_choices=2))
    with TemporaryDirectory() as folder:
        model, replay = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
        verdict = settle(query, replay, Enumeration())
        deployed = least_swaps_deployed(query, replay)
    assert_fits_deployed(verdict, deployed)


@given(st.data())
def test_blocks_hold_every_sentence_once(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(TINY))
    sample = tiny(shape, data.draw(st.integers(0, 1000)))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary, most_choices=4))
    room = data.draw(st.sampled_from([1, 40, 1 << 17]))
    tables_fit = data.draw(st.sampled_from([0, 60, 1 << 23]))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("swapproof.verifier.engines.combinations.BLOCK_CELLS", room)
        patch.setattr("swapproof.verifier.engines.combinations.TABLE_CELLS", tables_fit)
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, 0)
        differences = Differences.of(query)
        found: Counter[tuple[int, ...]] = Counter()
        for size in range(len(query.space.swappable) + 1):
            for block in Tables(differences).blocks(size):
                swaps = block.swaps(np.arange(len(block.cut)))
                assert swaps.shape == (len(block.cut), size)
                expected = differences.base + differences.rows[swaps].sum(axis=1)
                np.testing.assert_allclose(block.cut, expected, rtol=1e-4, atol=1e-4)
                found.update(differences.sentence(row) for row in swaps.tolist())
    assert found == Counter(all_sentences(query.space, query.space.length))


def test_a_space_beyond_the_stated_size_is_left_open_with_the_reason(tmp_path: Path) -> None:
    sample = tiny("mlp", 3)
    model, replay = loaded(sample, tmp_path)
    choices = tuple(tuple(range(sample.vocabulary)) for _ in range(sample.length))
    original = np.array([[row[0] for row in choices]])
    query = query_of(model, choices, int(replay.answers(original)[0]))
    verdict = settle(query, replay, Enumeration(most=1))
    assert verdict.status == "open"
    assert verdict.reason is not None
    assert "at most 1 are enumerated" in verdict.reason
    assert verdict.interval.low == 1


def test_a_spent_budget_leaves_the_interval_reached(tmp_path: Path) -> None:
    sample = tiny("mlp", 3)
    model, replay = loaded(sample, tmp_path)
    choices = tuple(tuple(range(sample.vocabulary)) for _ in range(sample.length))
    original = np.array([[row[0] for row in choices]])
    query = query_of(model, choices, int(replay.answers(original)[0]))
    verdict = climb(query, replay, (Enumeration(),), Budget(deadline=0.0), lambda bound: None)
    assert (verdict.status, verdict.reason, verdict.interval.low) == ("open", "out of time", 0)
