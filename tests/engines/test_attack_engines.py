"""Attacks as engines: they give high ends that stand, prove nothing, keep to their time, and need no other engine."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cases import cases
from command_runs import results
from hypothesis import given
from hypothesis import strategies as st
from oracles import least_swaps_deployed
from random_networks import tiny_networks
from settling import Looks, case, settle
from smooth_models import lstm
from tiny import LENGTH, WORDS, write_task

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.verifier.cli import main
from swapproof.verifier.engines.attack_engines import ATTACKS
from swapproof.verifier.engines.engine_table import engines_named
from swapproof.verifier.engines.protocol import Sentence
from swapproof.verifier.interval import Interval


@cases(25)
@given(st.data())
def test_a_high_end_is_a_sentence_that_fools_the_deployed_model(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks())
    engine = data.draw(st.sampled_from(ATTACKS))
    with TemporaryDirectory() as folder:
        _, query, replay = case(data, sample, folder)
        verdict = settle(query, replay, engine)
        least = least_swaps_deployed(query, replay)
        high = verdict.interval.high
        assert high is None or (least is not None and high >= least)
        if high:
            assert verdict.engine == engine.name
            assert verdict.interval.high_evidence is not None
            assert len(verdict.interval.high_evidence.swaps) == high
        assert verdict.interval.low == 0
        again = settle(query, replay, engine)
        assert again.interval.high_evidence == verdict.interval.high_evidence


@cases(12)
@given(st.data())
def test_only_sentences_with_fewer_swaps_are_looked_for(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks())
    with TemporaryDirectory() as folder:
        _, query, _ = case(data, sample, folder)
        interval = Interval(ceiling=len(query.space.swappable) + 1, high=2)
        for finding in data.draw(st.sampled_from(ATTACKS)).narrow(query, interval, Looks(left=1000)):
            assert isinstance(finding, Sentence)
            assert len(query.space.swaps_of(finding.tokens)) <= 1


@cases(12)
@given(st.data())
def test_an_attack_ends_when_its_time_is_up(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks())
    with TemporaryDirectory() as folder:
        _, query, _ = case(data, sample, folder)
        budget = Looks(left=data.draw(st.integers(0, 2)))
        list(data.draw(st.sampled_from(ATTACKS)).narrow(query, Interval(len(query.space.swappable) + 1), budget))
        assert budget.left >= -1


def test_engines_are_named_and_what_is_none_says_why() -> None:
    assert [engine.name for engine in engines_named("pdp,exact,mcts")] == ["pdp", "exact", "mcts"]
    assert [engine.name for engine in engines_named("hotflip,boxes", smooth=True)] == ["hotflip", "boxes"]
    with pytest.raises(Unsupported, match="pwws asks about more than the sentences of the space: `swapproof attack`"):
        engines_named("pwws")
    with pytest.raises(Unsupported, match=r"for piecewise linear networks; for smooth ones there are .*pdp"):
        engines_named("pdp,exact", smooth=True)
    with pytest.raises(BadInput, match="did you mean local"):
        engines_named("locall")


def test_a_run_says_which_attack_closed_a_text_and_is_accepted(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    assert main(["certify", str(task), "--engines", "pdp,exact", "--out", str(tmp_path / "run")]) == 0
    assert main(["certify", str(task), "--out", str(tmp_path / "usual")]) == 0
    found, usual = results(tmp_path / "run"), results(tmp_path / "usual")
    assert [line["min_swaps"] for line in found] == [line["min_swaps"] for line in usual]
    assert {step["engine"] for line in found for step in line.get("history", ())} == {"pdp", "exact"}
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_attacks_give_high_ends_of_smooth_networks(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    lstm(tmp_path / "task", len(WORDS), LENGTH, seed=4)
    options = ["--engines", "random,hotflip,sequence", "--out", str(tmp_path / "run")]
    assert main(["certify", str(task), *options]) == 0
    lines = [line for line in results(tmp_path / "run") if "history" in line]
    highs = [(step["engine"], step["high"]) for line in lines for step in line["history"] if step["high"] is not None]
    assert {"random", "hotflip"} & {engine for engine, _ in highs}
    assert all(line["status"] in ("exact", "unbreakable") for line in lines)
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0
