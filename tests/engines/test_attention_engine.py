"""The engine `attention` says what enumeration says, and the screening accepts what it proves, but nothing more."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from attending_networks import LENGTH, Shape, transformer, two_layers
from smooth_cases import cell, model, session

from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.regions import region_search
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.writing.certificate import Attention, Precision, encode_tree
from swapproof.proofs.writing.tree_reader import preorder
from swapproof.verifier.attending.quick_bound import TooLoose
from swapproof.verifier.engines import attention_engine
from swapproof.verifier.engines.attention_engine import ATTENTION
from swapproof.verifier.engines.protocol import Bound, Budget, Sentence, Stopped
from swapproof.verifier.interval import Interval
from swapproof.verifier.screening.exact_leaf import checked_network, quick_leaf_of
from swapproof.verifier.screening.form.unsure import Unsure
from swapproof.verifier.screening.smooth_proofs import screen_smooth

CHOICES = ((1, 3, 5), (2,), (4, 0), (6, 8, 2), (3, 7))


def query_of(data: bytes, folder: Path) -> Query:
    """Of the class that the model gives."""
    path = folder / "model.onnx"
    path.write_bytes(data)
    space = SwapSpace(CHOICES)
    scores = session(data).run(None, {"tokens": [space.original]})[0][0]
    label = int(np.argmax(scores))
    return Query(network_for(open_model(path), space, smooth=True), space, label, (1 - label,))


def least_swaps(query: Query, data: bytes) -> int | None:
    found = []
    run = session(data)
    for tokens in itertools.product(*CHOICES):
        scores = run.run(None, {"tokens": [tokens]})[0][0]
        if int(np.argmax(scores)) != query.label:
            found.append(sum(a != b[0] for a, b in zip(tokens, CHOICES, strict=True)))
    return min(found, default=None)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_it_finds_the_least_swaps_and_its_proofs_are_accepted(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regions are bounded by the leaf, and split, for few sentences are not evaluated."""
    monkeypatch.setattr(region_search, "FEW", 2)
    monkeypatch.setattr(attention_engine, "FEW", 2)
    monkeypatch.setattr(attention_engine, "SPLITS", 1000)
    monkeypatch.setattr(attention_engine, "EXACT_SPLITS", 1000)
    data = transformer(Shape(size=0.3, first=seed % 2 == 0), seed)
    query = query_of(data, tmp_path)
    sizes = [len(own) for own in question_of(query).tokens]
    low, high, attended = 0, None, 0
    findings = ATTENTION.narrow(query, Interval(len(sizes) + 1), Budget(time.monotonic() + 60))
    answer = None
    while True:
        try:
            finding = findings.send(answer) if answer is not None else next(findings)
        except StopIteration:
            break
        if isinstance(finding, Bound):
            tree = encode_tree(finding.tree, sizes, query.rivals)
            screen_smooth(query, tree, sizes, finding.low - 1, finding.level, time.monotonic() + 60)
            attended += sum(isinstance(node, Attention) for node in preorder(finding.tree))
            low = finding.low
        if isinstance(finding, Sentence):
            high = sum(a != b for a, b in zip(finding.tokens, query.space.original, strict=True))
        answer = Interval(len(sizes) + 1, low, high)
    assert attended
    least = least_swaps(query, data)
    assert (high, low) == (least, least if least is not None else len(sizes) + 1)


def test_what_is_too_loose_in_float64_is_not_asked_of_the_exact_leaf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes a hundred times as long to say nothing either: sentences are evaluated."""
    monkeypatch.setattr(attention_engine, "leaf_of", None)
    query = query_of(transformer(Shape(size=3.0), 0), tmp_path)
    whole = question_of(query).whole(3)
    with pytest.raises(TooLoose):
        quick_leaf_of(query, checked_network(query.network)).bound(whole.options, 3, query.rivals[0])
    findings = ATTENTION.narrow(query, Interval(LENGTH + 1), Budget(time.monotonic() + 60))
    assert isinstance(next(findings), Bound)


def test_it_looks_at_nothing_but_attention(tmp_path: Path) -> None:
    query = query_of(model(cell("LSTM", "forward", 0, "B"), 1, classes=2), tmp_path)
    assert list(ATTENTION.narrow(query, Interval(LENGTH), Budget())) == [
        Stopped("this network does not attend: `boxes` and `sequence` are for it")
    ]


def test_of_two_layers_it_says_what_would_work(tmp_path: Path) -> None:
    query = query_of(two_layers(1), tmp_path)
    (found,) = ATTENTION.narrow(query, Interval(LENGTH), Budget())
    assert isinstance(found, Stopped)
    assert found.reason.startswith("2 layers attend one after the other: bounds are for one")
    assert found.reason.endswith("`sequence`")


def test_the_screening_leaves_what_the_leaf_does_not_show(tmp_path: Path) -> None:
    data = transformer(Shape(size=2.0), 1)
    query = query_of(data, tmp_path)
    sizes = [len(own) for own in question_of(query).tokens]
    wrong = Query(query.network, query.space, query.rivals[0], (query.label,))
    tree = encode_tree(Precision(32, Attention()), sizes, wrong.rivals)
    for level in ("real", "kernel"):
        with pytest.raises(Unsure):
            screen_smooth(wrong, tree, sizes, 1, level, time.monotonic() + 60)
