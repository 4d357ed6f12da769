"""Searches over all texts of a run at once decide and count as text by text."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_runs import results
from convolved_models import write_convolved
from tiny import SYNONYMS, WORDS, write_task

from swapproof.verifier.attacks.attack_goals import Goal
from swapproof.verifier.attacks.attack_limits import Limits
from swapproof.verifier.attacks.attack_run import AttackOptions, ahead, attack, prepared
from swapproof.verifier.attacks.searches.beam_search import Beam
from swapproof.verifier.attacks.searches.importance_search import ByImportance
from swapproof.verifier.attacks.sentence_answers import unknown_spelt
from swapproof.verifier.attacks.together import searched_together
from swapproof.verifier.attacks.together.found_together import best_of, ranges
from swapproof.verifier.attacks.together.searched_together import together
from swapproof.verifier.attacks.together.several_texts import several_texts
from swapproof.verifier.runs.life import begun
from swapproof.verifier.runs.run_folder import Run
from swapproof.verifier.runs.store import Store
from swapproof.verifier.tasks.task import read_task

METHODS = ["textfooler", "pwws", "greedy", "beam"]


def drawn_rows(texts: int) -> list[tuple[str, str]]:
    """Words at random, some more than the model reads, and some not in its vocabulary."""
    draw = random.Random(3)
    words = [*WORDS[2:], "unheard", *SYNONYMS]
    made = (" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(texts))
    return [(text, draw.choice(["positive", "negative"])) for text in dict.fromkeys(made)]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("together") / "task", drawn_rows(90), model_split="whitespace")


@pytest.fixture(scope="module")
def convolved_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_convolved(tmp_path_factory.mktemp("convolved") / "task", drawn_rows(90))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("asked", [(None, None), (0, None), (None, "0.4")])
def test_they_decide_and_count_as_text_by_text(
    method: str, asked: tuple[int | None, str | None], task: Path, tmp_path: Path
) -> None:
    as_text_by_text(task, tmp_path / "run", method, asked)


@pytest.mark.parametrize("method", METHODS)
def test_of_convolutions_too(method: str, convolved_task: Path, tmp_path: Path) -> None:
    as_text_by_text(convolved_task, tmp_path / "run", method, (None, None))


def as_text_by_text(task: Path, run: Path, method: str, asked: tuple[int | None, str | None]) -> None:
    target, rho = asked
    options = AttackOptions(limits=Limits(rho_max=rho))
    plan, work = prepared(Run(run), read_task(task), method, Goal(target), options)
    with begun(plan, resume=True):
        work = ahead(plan, work)
        assert len(work.searched) > 30
        at_once, alone = work.open(), replace(work, searched={}).open()
        found = 0
        for text in plan.inputs.texts:
            one, other = (plain(station.settle(text).line) for station in (at_once, alone))
            assert one == other
            found += one["min_swaps"]["high"] not in (None, 0)
    assert found > 10


def plain(line: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != "seconds"}


def test_what_depends_on_more_than_the_number_of_swaps_is_searched_alone(task: Path, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    for limits in (Limits(queries=9), Limits(k_max=2, q_max=True)):
        plan, work = prepared(run, read_task(task), "beam", Goal(), AttackOptions(limits=limits))
        assert ahead(plan, work) is work
    assert together(Beam(None)) is None
    assert together(ByImportance("delete", undo=True)) is None
    assert together(ByImportance("gradient")) is None


def test_marks_read_apart_do_not_split_the_unknown_word(tmp_path: Path) -> None:
    """PWWS puts one unknown token in a word's place; `<unk>` in a text would be three words of this model."""
    task = read_task(write_task(tmp_path / "task", drawn_rows(60), model_split="words"))
    for method in METHODS:
        plan, work = prepared(Run(tmp_path / method), task, method, Goal(), AttackOptions())
        with begun(plan, resume=True):
            work = ahead(plan, work)
            assert len(work.searched) > 20
            if method != "pwws":
                continue
            assert unknown_spelt(plan.inputs.vocabulary) == "unk"
            at_once, alone = work.open(), replace(work, searched={}).open()
            for text in plan.inputs.texts:
                assert plain(at_once.settle(text).line) == plain(alone.settle(text).line)


def test_what_was_searched_is_kept_and_not_searched_again(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while texts are attacked: the search before is in the run's store, and the same is found with it."""
    run, calls = tmp_path / "run", list[int]()
    monkeypatch.setattr(searched_together, "blocks", lambda texts, table: ([one] for one in texts))

    def killed(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("swapproof.verifier.attacks.attack_run.settle", killed)
        with pytest.raises(KeyboardInterrupt):
            attack(task, run, "beam")

    def counted(table: Any, block: Any, *rest: Any) -> Any:
        calls.append(len(block))
        return several_texts(table, block, *rest)

    monkeypatch.setattr(searched_together, "several_texts", counted)
    again = attack(task, run, "beam").folder
    assert not calls
    fresh = attack(task, tmp_path / "fresh", "beam").folder
    assert len(calls) > 30
    assert [plain(line) for line in results(again)] == [plain(line) for line in results(fresh)]
    calls.clear()
    assert attack(task, again, "beam").exit_code == 0
    assert not calls


def test_a_kill_between_two_blocks_costs_one_of_them(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, work = prepared(Run(tmp_path / "run"), read_task(task), "beam", Goal(), AttackOptions())
    monkeypatch.setattr(searched_together, "blocks", lambda texts, table: ([one] for one in texts))
    calls = list[int]()

    def stopped(table: Any, block: Any, *rest: Any) -> Any:
        if len(calls) == 10:
            calls.append(0)
            raise KeyboardInterrupt
        calls.append(1)
        return several_texts(table, block, *rest)

    monkeypatch.setattr(searched_together, "several_texts", stopped)
    with begun(plan, resume=True):
        with pytest.raises(KeyboardInterrupt):
            ahead(plan, work)
        calls[:] = [0] * 11
        whole = ahead(plan, work)
        assert len(calls) - 11 == len(plan.inputs.texts) - 10
        with Store.open(plan.run.store) as store:
            store.forget(text.id for text in plan.inputs.texts)
        assert {id: one.swaps for id, one in ahead(plan, work).searched.items()} == {
            id: one.swaps for id, one in whole.searched.items()
        }


def test_the_best_of_each_group_are_the_first_of_equal_ones() -> None:
    groups, scores = np.array([0, 0, 0, 2, 2]), np.array([1.0, 3.0, 3.0, -np.inf, -1.0])
    assert best_of(groups, scores).tolist() == [1, 4]
    assert best_of(groups, scores, 2).tolist() == [1, 2, 4, 3]
    assert [one.tolist() for one in ranges(np.array([3, 7, 1]), np.array([5, 7, 2]))] == [[3, 4, 1], [0, 0, 2]]
