"""Regions lent to copies of the process: the same tree, counts and answer as on one core, whatever becomes of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from settling import DEEP, JOINT, Long

from swapproof.encodings.word_options import option_counts
from swapproof.proofs.writing.certificate import encode_tree
from swapproof.verifier.engines import attempt, exact_engine, proof_tree, word_search
from swapproof.verifier.engines.attempt import FAST, Attempt, Effort
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.protocol import Budget
from swapproof.verifier.ladder.climbing import climb
from swapproof.verifier.process_copy import COPIES, CORES, ProcessCopy

pytestmark = pytest.mark.skipif(not COPIES, reason="processes are not copied here")

ANEW = Effort(before_joint=-1, patience=0)
LONG = ((JOINT, ANEW), (DEEP, FAST))


@pytest.fixture(autouse=True)
def lent_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module, name, value in (
        (word_search, "BATCH", 2),
        (word_search, "ANEW", 2),
        (word_search, "SHARE", 0.0),
        (word_search, "LENT_FROM", 10),
        (exact_engine, "DIRECT", 0),
        (proof_tree, "LEAF", 3),
    ):
        monkeypatch.setattr(module, name, value)
    yield
    CORES.may_use(1)
    assert not CORES.take()


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[ProcessCopy[Any]]:
    """Those that were begun."""
    begun: list[ProcessCopy[Any]] = []
    begin = ProcessCopy.begin

    def beginning(work: Callable[[], Any]) -> ProcessCopy[Any]:
        begun.append(begin(work))
        return begun[-1]

    monkeypatch.setattr(ProcessCopy, "begin", beginning)
    return begun


def answer(text: Long, effort: Effort, folder: Path, cores: int) -> tuple[Any, ...]:
    """All that one can see of it."""
    _, query, replay = text.made(folder)
    CORES.may_use(cores)
    budget = Budget()
    verdict = climb(query, replay, [Exact(effort=effort)], budget, lambda bound: None)
    evidence, cover = verdict.interval.low_evidence, verdict.interval.cover
    trees = [one.tree for one in (evidence, cover) if one is not None]
    sizes = option_counts(query.space)
    witness = verdict.interval.high_evidence
    ends = (verdict.interval.low, verdict.interval.high, witness, verdict.reason, budget.evaluations)
    return (*ends, [encode_tree(tree, sizes, query.rivals) for tree in trees])


@pytest.mark.parametrize(("text", "effort"), LONG)
def test_as_many_cores_as_there_are_give_the_same(
    text: Long, effort: Effort, tmp_path: Path, copies: list[ProcessCopy[Any]]
) -> None:
    expected = answer(text, effort, tmp_path, 1)
    assert not copies
    for cores in (2, 3):
        assert answer(text, effort, tmp_path, cores) == expected
    assert copies
    assert all(copy.pipe.closed for copy in copies)


def test_what_a_copy_that_died_had_is_searched_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answer(DEEP, FAST, tmp_path, 1)
    monkeypatch.setattr(Attempt, "found", lambda *given: os._exit(9))
    assert answer(DEEP, FAST, tmp_path, 2) == expected


def test_a_limit_is_met_in_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: list[ProcessCopy[Any]]
) -> None:
    monkeypatch.setattr(attempt, "MOST_RECORDS", 40)
    expected = answer(DEEP, FAST, tmp_path, 1)
    assert "out of memory" in expected[3]
    assert answer(DEEP, FAST, tmp_path, 2) == expected
    assert copies
