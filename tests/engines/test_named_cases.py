"""Cases that go wrong easily, each by itself: the engines say what enumeration says, and the checker accepts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import MLP, save
from oracles import query_of
from settling import DEEP, checked_by, expect_truth, settle

from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import DOUBLE, Differences
from swapproof.encodings.onnx_files.onnx_reading import Model, open_model
from swapproof.encodings.query import Query
from swapproof.proofs.writing.certificate import Open
from swapproof.verifier.engines import attempt
from swapproof.verifier.engines.attempt import FAST, SMALL, Attempt, Effort
from swapproof.verifier.engines.enumeration import Enumeration
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.greedy import Greedy
from swapproof.verifier.engines.protocol import Bound, Budget, Engine
from swapproof.verifier.ladder.climbing import climb
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.text_verdict import Verdict

ENGINES: tuple[Engine, ...] = (
    Exact(),
    Exact(joint=False),
    Exact(effort=SMALL),
    Exact(effort=Effort(before_joint=-1)),
    Enumeration(),
)
Case = tuple[Model, Query, Replay]


def votes(folder: Path, table: list[float], choices: tuple[tuple[int, ...], ...], label: int, border: float) -> Case:
    """logits = (border, sum of the words' values) for label 0, the other way round for label 1.

    Small whole numbers: nothing is ever rounded.
    """
    out = [[0.0, 1.0]] if label == 0 else [[1.0, 0.0]]
    weights = {
        "table": [[value] for value in table],
        "w1": [[1.0]] * len(choices),
        "b1": [0.0],
        "w2": out,
        "b2": [border, 0.0] if label == 0 else [0.0, border],
    }
    model = open_model(save(folder, MLP, weights, length=len(choices)))
    return model, query_of(model, choices, label), Replay.open(model)


def settled(case: Case, engine: Engine) -> Verdict:
    model, query, replay = case
    verdict = settle(query, replay, engine, check=checked_by(model, query))
    expect_truth(verdict, query, replay)
    assert verdict.status not in ("ambiguous", "open")
    return verdict


@pytest.mark.parametrize("engine", ENGINES, ids=["exact", "linear", "small", "joint", "enumerate"])
class TestEveryEngine:
    def test_a_margin_of_exactly_zero_goes_to_the_lower_class(self, engine: Engine, tmp_path: Path) -> None:
        """Three words worth 1 each against 3: equal logits, and class 0 wins whether it is the label or not."""
        for label, least in ((0, None), (1, 3)):
            case = votes(tmp_path, [0.0, 1.0], ((0, 1),) * 3, label, 3.0)
            verdict = settled(case, engine)
            assert verdict.interval.high == least
            assert verdict.interval.low == (4 if least is None else least)

    def test_the_text_itself_on_the_border(self, engine: Engine, tmp_path: Path) -> None:
        """No swap is needed where the tie is already lost."""
        assert settled(votes(tmp_path, [1.0, 2.0], ((0, 1),), 1, 1.0), engine).status == "already_wrong"
        assert settled(votes(tmp_path, [1.0, 2.0], ((0, 1),), 0, 1.0), engine).interval.high == 1

    def test_two_candidates_that_do_the_same(self, engine: Engine, tmp_path: Path) -> None:
        case = votes(tmp_path, [0.0, 1.0, 1.0, 1.0], ((0, 1, 2, 3),) * 4, 0, 2.0)
        assert settled(case, engine).interval.high == 3

    def test_candidates_that_equal_the_original(self, engine: Engine, tmp_path: Path) -> None:
        """They swap without changing a number: no help to the adversary, however many."""
        case = votes(tmp_path, [0.0, 0.0, 0.0], ((0, 1, 2),) * 4, 0, 0.0)
        assert settled(case, engine).status == "unbreakable"
        case = votes(tmp_path, [0.0, 0.0, 1.0], ((0, 1), (0, 1), (0, 1, 2), (0, 2)), 0, 1.0)
        assert settled(case, engine).interval.high == 2

    def test_swaps_that_gain_nothing_are_not_counted(self, engine: Engine, tmp_path: Path) -> None:
        """Positions whose only candidates lower the rival."""
        case = votes(tmp_path, [2.0, 1.0, 3.0], ((0, 1), (0, 1), (0, 2), (0, 2)), 0, 9.0)
        assert settled(case, engine).interval.high == 2

    def test_positions_that_must_not_move(self, engine: Engine, tmp_path: Path) -> None:
        case = votes(tmp_path, [0.0, 1.0, 2.0], ((0,), (0, 1), (2,), (0, 1), (0,)), 0, 3.0)
        verdict = settled(case, engine)
        assert verdict.interval.high == 2
        assert verdict.interval.high_evidence is not None
        assert {position for position, _ in verdict.interval.high_evidence.swaps} == {1, 3}

    def test_nothing_may_move(self, engine: Engine, tmp_path: Path) -> None:
        verdict = settled(votes(tmp_path, [0.0, 1.0], ((0,), (0,)), 0, 0.0), engine)
        assert (verdict.status, verdict.interval.low) == ("unbreakable", 1)


@pytest.mark.parametrize("beyond", [0, 1, 50])
@pytest.mark.parametrize("effort", [FAST, SMALL, Effort(before_joint=-1)])
def test_more_swaps_than_positions_are_as_many_as_positions(beyond: int, effort: Effort, tmp_path: Path) -> None:
    """The proof is found, says unbreakable, and the checker accepts it for that number of swaps."""
    model, query, _ = votes(tmp_path, [0.0, 1.0, -1.0], ((0, 1, 2),) * 4, 0, 4.0)
    differences = Differences.of(query)
    places = Places.of(differences)
    errors = differences.evaluation_errors(places.count, DOUBLE)
    k = places.count + beyond
    tree = Attempt(query, places, errors, k, "real", Budget(), effort=effort).run()
    assert checked_by(model, query)(Bound(k + 1, tree, "real")) is None
    assert checked_by(model, query)(Bound(k + 1, Open(), "real")) is not None


def test_greedy_is_not_stopped_by_swaps_that_gain_nothing(tmp_path: Path) -> None:
    """The hardest swap lowers the margin strictly, so the attack ends; it is no proof, so nothing is claimed."""
    _, query, replay = votes(tmp_path, [0.0, 0.0, -1.0], ((0, 1, 2),) * 3, 0, 1.0)
    verdict = climb(query, replay, (Greedy(),), Budget(), lambda bound: None)
    assert (verdict.status, verdict.interval.low, verdict.interval.high) == ("open", 0, None)


def test_a_search_without_memory_keeps_what_it_has_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, query, replay = DEEP.made(tmp_path)
    whole = settle(query, replay, Exact(), check=checked_by(model, query)).interval
    monkeypatch.setattr(attempt, "MOST_RECORDS", 12)
    verdict = climb(query, replay, (Exact(),), Budget(), checked_by(model, query))
    assert verdict.status == "open"
    assert "out of memory" in str(verdict.reason)
    assert verdict.interval.cover is not None
    assert verdict.interval.low < whole.low
    again = climb(query, replay, (Exact(), Enumeration()), Budget(), checked_by(model, query))
    assert (again.interval.low, again.interval.high) == (whole.low, whole.high)


TREE = """
import hashlib, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from oracles import loaded, query_of
from settling import paper_network, settle
from swapproof.proofs.writing.certificate import encode_tree
from swapproof.verifier.engines.exact_engine import Exact
for source, positions, hidden, second in ((16, 40, 96, 0), (10, 32, 64, 24)):
    sample = paper_network(source, "Relu", 2, positions, hidden, second, spread=16.0)
    model, replay = loaded(sample, Path(sys.argv[2]))
    choices = tuple(tuple((first + step) % 8 for step in range(4)) for first in range(sample.length))
    label = int(replay.answers(np.array([[row[0] for row in choices]]))[0])
    query = query_of(model, choices, label)
    proof = settle(query, replay, Exact()).interval.low_evidence
    tree = encode_tree(proof.tree, [len(row) for row in choices], query.rivals)
    print(len(tree), hashlib.sha256(tree).hexdigest())
"""


def test_the_tree_is_the_same_whatever_the_number_of_threads(tmp_path: Path) -> None:
    """On matrices large enough that linear algebra is spread over threads when it may."""
    found = []
    for threads in ("1", "4"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        command = [sys.executable, "-c", TREE, str(Path(__file__).parents[1] / "support"), str(tmp_path)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        found.append(done.stdout)
    assert min(int(line.split()[0]) for line in found[0].splitlines()) > 1000
    assert len(set(found)) == 1
