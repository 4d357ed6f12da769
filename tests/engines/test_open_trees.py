"""A search that is stopped keeps what it has done: counted exactly, accepted by the checker, and gone on with."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_sentences, loaded, query_of, won_by
from random_networks import tiny, tiny_networks
from settling import CLASSES, DEEP, JOINT, Long, Looks, case, checked_by, expect_truth, nodes_of, settle, statement_of

from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.evaluation import logits
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.pools import next_swaps
from swapproof.encodings.query import Query
from swapproof.encodings.word_options import option_counts
from swapproof.proofs import check
from swapproof.proofs.check import check_certificate
from swapproof.proofs.lower import read_model
from swapproof.proofs.onnx_file import Unusable
from swapproof.proofs.writing.certificate import (
    Count,
    Enumerate,
    Joint,
    Node,
    Open,
    Slopes,
    Words,
    encode_tree,
    write_certificate,
)
from swapproof.proofs.writing.tree_reader import decode_tree
from swapproof.verifier.engines import attempt, proof_tree, word_search
from swapproof.verifier.engines.attempt import FAST, SMALL, Effort
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.open_leaves import listed_in, of_rivals
from swapproof.verifier.interval import Cover
from swapproof.verifier.ladder import open_part
from swapproof.verifier.ladder.climbing import climb
from swapproof.verifier.ladder.open_part import counted
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.text_verdict import Known, Verdict
from swapproof.verifier.screening.form.sentence_census import MOST_ENUMERATED

JOINT_AT_ONCE = Effort(before_joint=-1)
EFFORTS = (FAST, SMALL, JOINT_AT_ONCE, Effort(before_joint=-1, patience=0), Effort(before_joint=-1, refine=True))


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few regions between two looks, parts searched anew early, last swaps bounded, nothing enumerated to save time."""
    monkeypatch.setattr(word_search, "BATCH", 2)
    monkeypatch.setattr(word_search, "REGIONS", 4)
    monkeypatch.setattr(word_search, "ANEW", 2)
    monkeypatch.setattr(word_search, "SHARE", 0.0)
    monkeypatch.setattr(word_search, "MANY", 0)
    monkeypatch.setattr(word_search, "WIDE", 2)
    monkeypatch.setattr(word_search, "SPARED", -1)
    monkeypatch.setattr(next_swaps, "FEW", 0)
    monkeypatch.setattr(proof_tree, "LEAF", 3)


def interrupted(query: Query, replay: Replay, model: Model, effort: Effort, looks: int, known: Known | None) -> Verdict:
    engine = Exact(effort=effort)
    return climb(query, replay, (engine,), Looks(left=looks), checked_by(model, query), known)


def known_of(verdict: Verdict, query: Query) -> Known:
    """What the store and the certificate keep of a verdict; the tree as bytes and back."""
    interval, cover = verdict.interval, verdict.interval.cover
    if cover is not None:
        sizes = option_counts(query.space)
        again = decode_tree(encode_tree(cover.tree, sizes, query.rivals), sizes, query.rivals)
        cover = replace(cover, tree=again)
    witness = None if interval.high_evidence is None else query.space.sentence(interval.high_evidence.swaps)
    return Known(interval.low, interval.low_evidence, witness, cover, verdict.engine)


def accepts(count: Count, query: Query, model: Model) -> bool:
    """The checker of certificates, about a count; it refuses by raising."""
    data = model.path.read_bytes()
    verdict = check_certificate(write_certificate(statement_of(query, data, count=count)), read_model(data))
    return verdict.count is not None and verdict.count.robust == count.robust


def really_robust(query: Query, swaps: int) -> tuple[int, int]:
    """Sentences with at most so many swaps that keep the label over the reals, and all of them."""
    sentences = list(all_sentences(query.space, swaps))
    found = logits(query.network, np.array(sentences, dtype=np.int64))
    lead = (found[:, [query.label]] - found[:, list(query.rivals)]).min(axis=1)
    kept = lead > 1e-6
    for row in np.flatnonzero(abs(lead) <= 1e-6):
        kept[row] = won_by(exact_logits(query.network, sentences[row])[0]) == query.label
    return int(kept.sum()), len(sentences)


def goes_on(query: Query, replay: Replay, model: Model, effort: Effort, looks: int) -> tuple[Verdict, list[Cover]]:
    """Stopped again and again, each time with a little more time than before, until nothing is left open."""
    known: Known | None = None
    covers: list[Cover] = []
    for more in count():
        verdict = interrupted(query, replay, model, effort, looks + looks * more // 4 + more, known)
        assert verdict.contradiction is None
        if verdict.status != "open" or "over the reals" in str(verdict.reason):
            return verdict, covers
        if verdict.interval.cover is not None:
            covers.append(verdict.interval.cover)
        known = known_of(verdict, query)
    raise AssertionError


@cases(60)
@given(st.data())
def test_the_interval_is_that_of_a_search_left_in_peace_and_every_count_is_true(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks())
    with TemporaryDirectory() as folder:
        model, query, replay = case(data, sample, folder)
        effort, looks = data.draw(st.sampled_from(EFFORTS)), data.draw(st.integers(1, 40))
        verdict, covers = goes_on(query, replay, model, effort, looks)
        peaceful = settle(query, replay, Exact(effort=effort), check=checked_by(model, query))
        expect_truth(verdict, query, replay)
        assert verdict.status == peaceful.status
        if verdict.status != "ambiguous":
            assert (verdict.interval.low, verdict.interval.high) == (peaceful.interval.low, peaceful.interval.high)
        for cover in covers:
            part = counted(cover, query.space)
            if part is not None:
                robust, total = really_robust(query, cover.swaps)
                assert part.total == total
                assert 0 < part.robust <= robust
                with suppress(Unusable):  # the model is beyond the checker
                    assert accepts(replace(part, level="real"), query, model)


@pytest.mark.parametrize(
    ("text", "effort"),
    [*((JOINT, effort) for effort in EFFORTS[1:]), (DEEP, FAST), (DEEP, SMALL), (CLASSES, FAST)],
)
def test_stopped_anywhere_the_same_interval_comes_of_it(text: Long, effort: Effort, tmp_path: Path) -> None:
    model, query, replay = text.made(tmp_path)
    expected = settle(query, replay, Exact(effort=effort), check=checked_by(model, query)).interval
    verdict, covers = goes_on(query, replay, model, effort, 20)
    assert (verdict.interval.low, verdict.interval.high) == (expected.low, expected.high)
    assert covers
    if text is JOINT:
        assert any(isinstance(node, Joint) for cover in covers for node in nodes_of(cover.tree))
    parts = [part for part in (counted(cover, query.space) for cover in covers) if part is not None]
    assert parts
    for part in sorted(parts, key=lambda part: part.robust)[-1:]:
        robust, total = really_robust(query, part.swaps)
        assert part.total == total
        assert 0 < part.robust <= robust
        assert accepts(part, query, model)


@pytest.mark.parametrize("small", [False, True])
def test_a_region_without_positions_left_needs_no_search_of_its_own(small: bool, tmp_path: Path) -> None:
    """All words decided, and more swaps left than there is anything to swap: one sentence, which was evaluated."""
    model, replay = loaded(tiny("mlp", 15634, small=small), tmp_path)
    query = query_of(model, ((0,), (0,), (0, 1), (0, 1), (0, 2)), 0)
    for looks in range(1, 12):
        verdict, _ = goes_on(query, replay, model, Effort(before_joint=-1, patience=0), looks)
        expect_truth(verdict, query, replay)


def test_what_is_kept_is_not_searched_again(tmp_path: Path) -> None:
    """Going on costs about what was missing, not what the whole search costs."""
    model, query, replay = JOINT.made(tmp_path)
    clock, engine, check = Looks(left=1_000_000), Exact(effort=JOINT_AT_ONCE), checked_by(model, query)
    whole = climb(query, replay, (engine,), clock, check)
    stopped = interrupted(query, replay, model, JOINT_AT_ONCE, (1_000_000 - clock.left) * 4 // 5, None)
    assert stopped.interval.cover is not None
    rest = interrupted(query, replay, model, JOINT_AT_ONCE, 1_000_000, known_of(stopped, query))
    assert (rest.interval.low, rest.interval.high) == (whole.interval.low, whole.interval.high)
    assert rest.evaluations < whole.evaluations / 2


@pytest.mark.parametrize(("text", "effort"), [(JOINT, JOINT_AT_ONCE), (DEEP, FAST)])
def test_sentences_listed_are_those_that_end_in_such_a_leaf(text: Long, effort: Effort, tmp_path: Path) -> None:
    model, query, replay = text.made(tmp_path)
    covers = goes_on(query, replay, model, effort, 20)[1]
    places = Places.of(Differences.of(query))
    for cover in covers[::4]:
        (tree,) = of_rivals(cover.tree, query.rivals).values()
        ends = [leaf_of(tree, query, sentence) for sentence in all_sentences(query.space, cover.swaps)]
        assert listed_in(tree, places, cover.swaps) == sum(isinstance(leaf, Enumerate) for leaf in ends)
    assert any(isinstance(node, Enumerate) for cover in covers[::4] for node in nodes_of(cover.tree))


def test_the_search_stops_listing_where_the_checkers_do() -> None:
    said = re.findall(r"self\.enumerated <= ([\d_]+)", Path(check.__file__).read_text(encoding="utf-8"))
    assert {attempt.MOST_LISTED} == {MOST_ENUMERATED} == {int(number) for number in said}


def leaf_of(tree: Node, query: Query, sentence: tuple[int, ...]) -> Node:
    while isinstance(tree, Words | Joint | Slopes):
        if isinstance(tree, Words):
            position = query.space.swappable[tree.word]
            option = query.space.choices[position].index(sentence[position])
            tree = tree.left if option in tree.left_options else tree.right
        else:
            tree = tree.inner
    return tree


def test_a_count_is_cut_to_the_leaves_that_dispose_of_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, query, replay = DEEP.made(tmp_path)
    covers = goes_on(query, replay, model, FAST, 20)[1]
    cover = max(covers, key=lambda cover: len(nodes_of(cover.tree)))
    sizes: list[tuple[int, int]] = []
    for most in (1, 4, 10_000):
        monkeypatch.setattr(open_part, "MOST_LEAVES", most)
        part = counted(cover, query.space)
        assert part is not None
        assert accepts(part, query, model)
        sizes.append((len(nodes_of(part.tree)), part.robust))
    assert sizes == sorted(sizes)
    assert sizes[0][0] < sizes[-1][0]
    assert sizes[0][1] < sizes[-1][1]


def test_of_a_large_tree_only_the_large_regions_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, query, replay = DEEP.made(tmp_path)
    covers = goes_on(query, replay, model, FAST, 20)[1]
    cover = max(covers, key=lambda cover: len(nodes_of(cover.tree)))
    every = counted(cover, query.space)
    monkeypatch.setattr(open_part, "MOST_NODES", len(nodes_of(cover.tree)) // 2)
    some = counted(cover, query.space)
    assert every is not None
    assert some is not None
    assert 0 < some.robust < every.robust
    assert accepts(some, query, model)


def test_open_leaves_are_no_proof(tmp_path: Path) -> None:
    _, query, _ = JOINT.made(tmp_path)
    assert counted(Cover(1, Open(), "real"), query.space) is None
