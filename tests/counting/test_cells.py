"""Counts by cells equal plain enumeration over the reals, whatever is settled by bounds and whatever one by one."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
import tiny as tiny_task
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from oracles import all_sentences, loaded, query_of, won_by
from random_networks import networks, swap_spaces, tiny, tiny_networks

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.omega import Omega
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.query import Query
from swapproof.verifier.counting.cells import Partition, Tally
from swapproof.verifier.counting.sampling import (
    compact,
    numbered,
    remainders,
    sampled,
    sampled_open,
    swap_numbers,
)
from swapproof.verifier.counting.stopping import Stop
from swapproof.verifier.engines.protocol import Budget
from swapproof.verifier.ladder.replay import Replay

SOURCE = 8
"""Of the random weights of a network whose sentences are half robust, half broken."""
SMALL = "swapproof.verifier.counting.cells.SMALL"
FIXED = Stop(4096, Fraction(1, 20))


def counted_plainly(query: Query, radius: int) -> tuple[int, int]:
    """Robust and broken sentences, by exact arithmetic on each."""
    robust = [
        won_by(exact_logits(query.network, tokens)[0]) == query.label for tokens in all_sentences(query.space, radius)
    ]
    return sum(robust), len(robust) - sum(robust)


@cases(60)
@given(st.data())
def test_counts_are_those_of_exact_enumeration(data: st.DataObject) -> None:
    """Ties included; cells as small as one sentence, so that bounds settle much."""
    sample = data.draw(tiny_networks())
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary, most_choices=3))
    radius = data.draw(st.integers(0, sample.length + 1))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(SMALL, data.draw(st.sampled_from([1, 5, 256])))
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
        partition = Partition(query, radius)
        partition.run(Budget())
        tally = partition.tally()
        robust, broken = counted_plainly(query, radius)
    assert (tally.robust, tally.broken, tally.open) == (robust, broken, 0)
    assert tally.total == Omega(query.space, radius).total


@cases(50)
@given(st.data())
def test_every_operator_is_counted_alike(data: st.DataObject) -> None:
    sample = data.draw(networks())
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary, most_choices=2))
    radius = data.draw(st.integers(0, 3))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(SMALL, data.draw(st.sampled_from([1, 256])))
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
        partition = Partition(query, radius)
        partition.run(Budget())
        tally = partition.tally()
        assert (tally.robust, tally.broken) == counted_plainly(query, radius)


def wide(folder: Path) -> Query:
    """A text of which some sentences are robust and some broken."""
    sample = tiny("mlp", SOURCE)
    model, replay = loaded(sample, folder)
    choices = tuple(tuple(range(sample.vocabulary)) for _ in range(sample.length))
    original = np.array([[row[0] for row in choices]])
    return query_of(model, choices, int(replay.answers(original)[0]))


def test_a_stopped_count_brackets_the_truth_and_leaves_the_rest_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SMALL, 1)
    monkeypatch.setattr("swapproof.verifier.counting.cells.PARTS", 1)
    query = wide(tmp_path)
    whole = Partition(query, 3)
    whole.run(Budget())
    exact = whole.tally()
    steps = 0
    partition = Partition(query, 3, most=1)
    partition.settle([partition.root])
    while partition.waiting and steps < 30:
        steps += 1
        before = partition.tally()
        parent = partition.waiting.pop(0)[2]
        partition.settle(partition.split(parent))
        after = partition.tally()
        assert after.total == exact.total
        assert before.robust <= after.robust <= exact.robust
        assert before.broken <= after.broken <= exact.broken
    assert steps > 3


def test_no_time_leaves_everything_open(tmp_path: Path) -> None:
    partition = Partition(wide(tmp_path), 3)
    partition.run(Budget(deadline=0.0))
    tally = partition.tally()
    assert tally.total == partition.root.count


@cases(40)
@given(st.data())
def test_numbers_of_open_cells_name_their_sentences(data: st.DataObject) -> None:
    """All open cells together hold every sentence once, whatever was split."""
    sample = tiny("mlp", data.draw(st.integers(0, 50)))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary, most_choices=3))
    radius = data.draw(st.integers(0, 4))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, 0)
        partition = Partition(query, radius)
        for _ in range(data.draw(st.integers(0, 4))):
            divisible = [
                cell
                for cell in partition.cells()
                if cell.kind == "open" and cell.start < partition.places.count and cell.left
            ]
            if not divisible:
                break
            partition.split(data.draw(st.sampled_from(divisible)))
        found = []
        for cell in remainders(partition):
            omega = cell.omega(query.space)
            for made in omega.choices(np.arange(omega.total)):
                numbers = swap_numbers(partition.differences, cell.free)
                swaps = compact(numbers, made[None], omega.most)[0]
                found.append(partition.differences.sentence([*swaps[swaps >= 0].tolist(), *cell.path]))
        assert sorted(found) == sorted(all_sentences(query.space, radius))
        total, made_by = numbered(partition.jury, remainders(partition))
        again = [partition.differences.sentence(row[row >= 0].tolist()) for row in made_by(np.arange(total))]
        assert again == found, "leaf by leaf"


@cases(20)
@given(st.data())
def test_a_sample_of_everything_agrees_with_the_count(data: st.DataObject) -> None:
    """Drawn a few thousand times, the share of robust samples is near the counted one."""
    sample = data.draw(tiny_networks(weights="small", shapes=("mlp", "deep", "residual")))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary, most_choices=3))
    radius = data.draw(st.integers(0, 4))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
        robust, broken = counted_plainly(query, radius)
        partition = Partition(query, radius)
        wholly = sampled(Differences.of(query), radius, bytes(32), FIXED, Budget(), listing=False)
        listed = sampled(Differences.of(query), radius, bytes(32), FIXED, Budget())
        in_cells = sampled_open(partition.jury, remainders(partition), bytes(32), FIXED, Budget())
    if robust + broken <= 4096:
        assert (listed.drawn, listed.stopped, listed.robust) == (robust + broken, "all", robust)
    for found in (wholly, in_cells):
        assert (found.drawn, found.stopped) == (4096, "number")
        assert found.ambiguous == 0  # small whole numbers round nowhere
        assert found.robust / 4096 == pytest.approx(robust / (robust + broken), abs=0.05)  # 6 standard deviations


def test_a_sample_out_of_time_is_no_sample(tmp_path: Path) -> None:
    found = sampled(Differences.of(wide(tmp_path)), 3, bytes(32), FIXED, Budget(deadline=0.0), listing=False)
    assert not found.complete
    assert found.stopped == "time"


@pytest.mark.parametrize("exponent", [-8, -24, -30])
def test_sentences_that_a_final_softmax_decides_are_all_counted_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exponent: int
) -> None:
    """Logits that differ by next to nothing give equal probabilities in float32: the label's rival may then win.

    Such a model cannot carry a claim at level float32, and whole cells are settled by bounds nevertheless.
    """
    monkeypatch.setattr(SMALL, 1)
    proto = tiny_task.model()
    for tensor in proto.graph.initializer:
        if tensor.name in ("w2", "b2"):
            tensor.CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(2.0**exponent), tensor.name)
            )
    proto.graph.node[-1].output[0] = "scores"
    proto.graph.node.append(helper.make_node("Softmax", ["scores"], ["logits"], axis=-1))
    onnx.save(proto, tmp_path / "model.onnx")
    model = open_model(tmp_path / "model.onnx")
    choices = tuple(tuple(range(2, 10)) if position < 4 else (2,) for position in range(tiny_task.LENGTH))
    query = query_of(model, choices, 1)
    partition = Partition(query, 3)
    partition.run(Budget())
    tally = partition.tally()
    sentences = np.array(list(all_sentences(query.space, 3)))
    real = np.array([won_by(exact_logits(query.network, tuple(tokens))[0]) for tokens in sentences.tolist()])
    deployed = Replay.open(model).answers(sentences)
    differing = int(((real == 1) != (deployed == 1)).sum())
    assert (tally.robust, tally.broken) == ((real == 1).sum(), (real != 1).sum())
    assert not partition.jury.certifiable
    assert differing <= tally.infirm
    assert (differing > 0) == (exponent < -8)
    assert (tally.infirm == tally.total) == (exponent < -8)
    assert any(cell.kind in ("robust", "broken") for cell in partition.cells()) == (exponent == -8)


def test_tallies_add_up() -> None:
    assert Tally(3, 4, 5).total == 12
