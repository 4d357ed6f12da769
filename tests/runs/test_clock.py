"""`--seconds` is the time of a text as a whole: search, checks of proofs, and what is sampled in the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import write_task

from swapproof.proofs.check import Unusable
from swapproof.verifier.counting.measuring_text import Measuring
from swapproof.verifier.counting.whole_runs.measuring_runs import measure_pr
from swapproof.verifier.ladder import run_certificates as evidence
from swapproof.verifier.ladder.run_certificates import Checker
from swapproof.verifier.ladder.settling import Settling
from swapproof.verifier.roads import certify
from swapproof.verifier.runs.work import Settled
from swapproof.verifier.screening import Unsure

SECONDS = 1.0
MOST = 1.2 * SECONDS + 1.0
"""A fifth more, and a second for a busy machine; without the bound it would be five times as much."""


class SlowScreen:
    """Takes all the time it is given, and settles nothing."""

    def __init__(self) -> None:
        self.given: list[float] = []

    def agreed(self, space: object) -> None:
        raise Unsure("the network is read by proofs/lower.py alone")

    def verdict(self, data: object, seconds: float) -> None:
        self.given.append(seconds)
        time.sleep(min(seconds, 20.0))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Checkers that never come to an end before their time does; the seconds that proofs/check.py was given."""
    given: list[float] = []
    opened = Checker.open

    def unscreened(*arguments: Any) -> Checker:
        return replace(opened(*arguments), screen=None)

    def check(data: bytes, model: object, vocabulary: object, seconds: float) -> None:
        given.append(seconds)
        time.sleep(min(seconds, 20.0))
        raise Unusable("the time is over")

    monkeypatch.setattr(Checker, "open", unscreened)
    monkeypatch.setattr(evidence, "check_certificate", check)
    return given


def timed(monkeypatch: pytest.MonkeyPatch, kind: Any) -> list[float]:
    """The seconds that each text took."""
    spent: list[float] = []
    settle: Callable[..., Settled] = kind.settle

    def settled(self: Any, station: Any, text: Any) -> Settled:
        started = time.monotonic()
        found = settle(self, station, text)
        spent.append(time.monotonic() - started)
        return found

    monkeypatch.setattr(kind, "settle", settled)
    return spent


def test_certify_bounds_search_and_check_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: list[float]
) -> None:
    """It gave a proof five times as long again. What was not checked is not claimed, and is no contradiction."""
    spent = timed(monkeypatch, Settling)
    outcome = certify(write_task(tmp_path / "task"), tmp_path / "run", limit=2, seconds=SECONDS)
    assert outcome.summary["contradictions"] == 0
    assert outcome.summary["open"] == 2
    assert slow
    assert max(spent) <= MOST
    text = (tmp_path / "run" / "results.jsonl").read_text()
    assert "swaps are harmless could not be checked in" in text


def test_measure_bounds_count_check_and_sample_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: list[float]
) -> None:
    spent = timed(monkeypatch, Measuring)
    outcome = measure_pr(write_task(tmp_path / "task"), tmp_path / "run", 1, limit=2, seconds=SECONDS)
    assert outcome.summary["sampled"] == 2
    assert outcome.summary["contradictions"] == 0
    assert slow
    assert max(spent) <= MOST
    assert "sentences with 1 swaps could not be checked in" in (tmp_path / "run" / "results.jsonl").read_text()


@pytest.mark.parametrize("work", ["certify", "measure"])
def test_both_checkers_together_have_the_time_once(
    work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: list[float]
) -> None:
    """What the screening takes is missing to proofs/check.py: `measure` gave each the whole."""
    screen, opened = SlowScreen(), Checker.open

    def screened(*arguments: Any) -> Checker:
        return replace(opened(*arguments), screen=screen)  # type: ignore[arg-type]

    monkeypatch.setattr(Checker, "open", screened)
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    if work == "certify":
        certify(task, run, limit=1, seconds=SECONDS)
    else:
        measure_pr(task, run, 1, limit=1, seconds=SECONDS)
    assert screen.given[0] > SECONDS / 2
    assert max(slow) < 0.1


def test_the_network_is_read_before_the_clock_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: list[float]
) -> None:
    """What all texts of a length share is no time of the first of them."""
    read: list[float] = []
    prepare = Checker.prepare

    def slowly(self: Checker, choices: Any) -> None:
        time.sleep(SECONDS / 2)
        prepare(self, choices)
        read.append(time.monotonic())

    monkeypatch.setattr(Checker, "prepare", slowly)
    certify(write_task(tmp_path / "task"), tmp_path / "run", limit=2, seconds=SECONDS)
    assert len(read) == 1
    assert slow[0] > 0.6 * SECONDS
