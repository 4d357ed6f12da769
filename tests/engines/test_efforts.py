"""However much is spent on a smaller proof: the same interval, and a proof that the checker accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper
from oracles import loaded, query_of
from random_networks import Sample, tiny, tiny_networks
from settling import case, checked_by, expect_truth, nodes_of, paper_network, settle

from swapproof.encodings.bounds.linear_bounds import LinearBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.pools import next_swaps
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.writing.certificate import Enumerate, Joint, Linear, Node, Slopes, Words
from swapproof.verifier.engines import attempt, proof_tree, word_search
from swapproof.verifier.engines.attempt import FAST, SMALL, Effort, Unclaimable
from swapproof.verifier.engines.enumeration import Enumeration
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.proof_tree import Planter, tree_of
from swapproof.verifier.engines.word_search import Record
from swapproof.verifier.ladder.replay import Replay

EFFORTS = (FAST, SMALL, Effort(before_joint=-1, patience=0), Effort(before_joint=-1, patience=0, refine=True))


@pytest.fixture
def eager() -> Iterator[None]:
    """Parts searched anew from one swap on, groups tried however far the bound is, nothing enumerated to save time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_search, "ANEW", 1)
        patch.setattr(word_search, "SHARE", 0.0)
        patch.setattr(word_search, "SPARED", -1)
        patch.setattr(word_search, "WIDE", 2)
        patch.setattr(attempt, "HOPELESS", float("inf"))
        patch.setattr(attempt, "REFINED_STAGES", ((2, 12),))
        patch.setattr(proof_tree, "LEAF", 1)
        patch.setattr(next_swaps, "FEW", 0)
        yield


@cases(50)
@given(st.data())
def test_every_effort_finds_what_enumeration_finds(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks())
    with TemporaryDirectory() as folder:
        model, query, replay = case(data, sample, folder)
        engine = Exact(effort=data.draw(st.sampled_from(EFFORTS)))
        expect_truth(settle(query, replay, engine, check=checked_by(model, query)), query, replay)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("second", [0, 6])
def test_parts_searched_anew_prove_the_same(second: int, tmp_path: Path) -> None:
    kinds: set[type[Node]] = set()
    for source in range(2):
        sample = paper_network(source, "Relu", 2 + source % 2, positions=7, second=second)
        model, query, replay = labelled(sample, tmp_path)
        expected = settle(query, replay, Enumeration()).interval
        for effort in EFFORTS:
            interval = settle(query, replay, Exact(effort=effort), check=checked_by(model, query)).interval
            assert (interval.low, interval.high) == (expected.low, expected.high)
            assert interval.low_evidence is not None
            kinds |= {type(node) for node in nodes_of(interval.low_evidence.tree)}
    assert {Words, Linear, Joint, Slopes} <= kinds


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("source", [9, 14, 20])
def test_a_part_that_needs_no_groups_unsets_those_above_it(source: int, tmp_path: Path) -> None:
    """They would cost it what only unstable neurons are worth: such proofs were once refused."""
    model, query, replay = labelled(paper_network(source, "Relu", 2, positions=7), tmp_path)
    engine = Exact(effort=Effort(before_joint=-1, patience=0))
    expect_truth(settle(query, replay, engine, check=checked_by(model, query)), query, replay)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(("source", "classes", "positions"), [(262152, 2, 6), (5756, 3, 7)])
def test_a_grouped_neuron_whose_coefficient_turns_has_the_usual_slope(
    source: int, classes: int, positions: int, tmp_path: Path
) -> None:
    """No slope of its own is written for it, so none may count: such proofs were once refused."""
    spread = 4.0 if source == 262152 else 6.0
    sample = paper_network(source, "Relu", classes, positions, hidden=6, second=5, spread=spread)
    model, query, replay = labelled(sample, tmp_path)
    expect_truth(settle(query, replay, Exact(effort=SMALL), check=checked_by(model, query)), query, replay)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("shape", ["residual", "cnn", "maximum", "mean"])
def test_parts_of_any_network_are_searched_anew(shape: str, tmp_path: Path) -> None:
    for source in range(3):
        sample = tiny(shape, source, classes=2 + source % 3)
        model, query, replay = labelled(sample, tmp_path)
        for effort in EFFORTS:
            expect_truth(settle(query, replay, Exact(effort=effort), check=checked_by(model, query)), query, replay)


@pytest.mark.usefixtures("eager")
@cases(30)
@given(st.data())
def test_sentences_evaluated_together_are_those_that_one_swap_makes(data: st.DataObject) -> None:
    """However swaps overlap; and what is listed of them is what the checker finds."""
    with TemporaryDirectory() as folder:
        model, query, replay = case(data, data.draw(tiny_networks(shapes=("cnn", "maximum"))), folder)
        bounds = LinearBounds(Places.of(Differences.of(query)), 0, len(query.space.swappable))
        places, following = bounds.places, bounds.following
        for start in range(places.count if following is not None else 0):
            assert following is not None
            made, states = np.zeros((1, places.count)), places.base[None].copy()
            for place in range(start):
                if data.draw(st.booleans()):
                    made[0, place] = 1
                    following.move(states, np.array([0]), np.array([place]), np.array([0]))
            swaps = slice(following.starts[start], None)
            rows = places.rows[following.place[swaps], following.choice[swaps]]
            np.testing.assert_allclose(
                following.margins(states, made, np.arange(start, places.count))[0],
                bounds.margins(states + rows),
                rtol=1e-9,
                atol=1e-9,
            )
        expect_truth(settle(query, replay, Exact(), check=checked_by(model, query)), query, replay)


def labelled(sample: Sample, folder: Path) -> tuple[Model, Query, Replay]:
    """Three choices a position, and the label the model gives."""
    model, replay = loaded(sample, folder)
    choices = tuple(tuple((first + step) % sample.vocabulary for step in range(3)) for first in range(sample.length))
    label = int(replay.answers(np.array([[row[0] for row in choices]]))[0])
    return model, query_of(model, choices, label), replay


def test_choices_that_change_nothing_or_do_the_same_are_no_obstacle(tmp_path: Path) -> None:
    """Duplicated rows of the embedding: one candidate equal to the original, two equal to each other."""
    for source in range(3):
        sample = paper_network(source, "Relu", 2, positions=4)
        table = next(one for one in sample.model.graph.initializer if one.name == "table")
        rows = numpy_helper.to_array(table).copy()
        rows[1], rows[3] = rows[0], rows[2]
        table.CopyFrom(numpy_helper.from_array(rows, table.name))
        model, replay = loaded(sample, tmp_path)
        choices = tuple((0, 1, 2, 3) for _ in range(sample.length))
        label = int(replay.answers(np.array([[row[0] for row in choices]]))[0])
        query = query_of(model, choices, label)
        for effort in EFFORTS:
            verdict = settle(query, replay, Exact(effort=effort), check=checked_by(model, query))
            expect_truth(verdict, query, replay)


def test_regions_of_few_sentences_are_enumerated_and_counted_rightly() -> None:
    space = SwapSpace(((0, 1, 2), (0, 3), (0, 4, 5, 6), (0, 7)))
    positions, tokens = space.single_swaps()
    rows = np.ones((len(positions), 1))
    differences = Differences(None, positions, tokens, np.zeros(1), rows)  # type: ignore[arg-type]
    places = Places.of(differences)
    planter = Planter(places, 3)
    for start in range(5):
        rest = SwapSpace(space.choices[start:] or ((0,),))
        for left in range(4):
            assert planter.counts[start][left] == sum(rest.counts()[: left + 1])
    closed: dict[int, dict[tuple[int, ...], Record | None]] = {
        place: {(choice,): None for choice in range(int(places.there[place].sum()))} for place in range(4)
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof_tree, "LEAF", 1000)
        assert isinstance(tree_of(Record(0, 4, 3, closed, expanded=True), places), Enumerate)
        patch.setattr(proof_tree, "LEAF", 1)
        assert isinstance(tree_of(Record(0, 4, 3, closed, expanded=True), places), Words)


def test_one_sentence_within_rounding_leaves_smaller_numbers_of_swaps_at_float32(tmp_path: Path) -> None:
    """The level falls from the swaps of that sentence on, and only there."""
    asked: list[tuple[int, str]] = []
    run = attempt.Attempt.run

    def doubtful_from_two(self: attempt.Attempt, kept: Node | None = None) -> Node:
        asked.append((self.k, self.level))
        if self.k >= 2 and self.level == "float32":
            raise Unclaimable(2)
        return run(self, kept)

    levels = set()
    for source in range(6):
        sample = paper_network(source, "Relu", 2, positions=7)
        model, query, replay = labelled(sample, tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(attempt.Attempt, "run", doubtful_from_two)
            verdict = settle(query, replay, Exact(), check=checked_by(model, query))
        interval = verdict.interval
        if interval.low > 2 and any(k >= 2 for k, _ in asked):
            levels.add((interval.low_float32 >= 2, verdict.level))
    assert all(level == "float32" for k, level in asked if k < 2)
    assert any(level == "real" for k, level in asked if k >= 2)
    assert levels <= {(True, "real"), (True, "float32")}


def test_the_small_effort_has_a_name_of_its_own() -> None:
    assert (Exact().name, Exact(effort=SMALL).name) == ("exact", "exact-small")


def test_wide_networks_have_groups_nearly_as_large_as_others() -> None:
    """Groups of four closed a text of 512 units with 51,543 leaves, groups of seven with 9,775."""
    sizes = [attempt.group_size(neurons, 256) for neurons in (30, 64, 128, 268, 600, 10_000)]
    assert sizes == [8, 8, 8, 8, 7, 4]
