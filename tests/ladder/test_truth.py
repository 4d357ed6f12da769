"""One sentence judged by error bounds, of the whole space first: what is called certain is so, exactly and deployed."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from cases import cases
from handmade import MLP, node, save
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_sentences, loaded, query_of
from random_networks import Sample, swap_spaces, tiny_networks

from swapproof.encodings.exact_evaluation import exactly_beaten
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.ladder.truth import beaten, firm_within


@given(st.data(), tiny_networks())
@cases(60)
def test_the_winner_is_the_exact_one_and_agreement_is_that_of_the_deployed_model(data: Any, sample: Sample) -> None:
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    label = data.draw(st.integers(0, sample.classes - 1))
    with TemporaryDirectory() as folder:
        model, replay = loaded(sample, Path(folder))
        query = query_of(model, choices, label)
        for tokens in list(all_sentences(query.space, len(choices)))[:40]:
            won, agreed = beaten(query, tokens)
            assert won == exactly_beaten(query, tokens)[0]
            if agreed:
                assert won == (int(replay.answers(np.array([tokens], dtype=np.int64))[0]) != label)


@pytest.mark.parametrize("label", [0, 1])
def test_no_error_bound_settles_a_tie(tmp_path: Path, label: int) -> None:
    """Both logits are equal on every sentence: the first class wins, and rounding may say otherwise."""
    rng = np.random.default_rng(0)
    weights = {"table": rng.normal(size=(9, 2)), "w1": rng.normal(size=(12, 3)), "b1": np.full(3, 9.0)}
    path = save(
        tmp_path,
        [*MLP[:4], node("Gemm", "hidden w2 b2", "logits")],
        {**weights, "w2": np.ones((3, 2)), "b2": np.full(2, 0.25)},
        length=6,
        classes=2,
    )
    query = Query.of(read_network(path), SwapSpace(tuple((i, i + 1, i + 2) for i in range(6))), label)
    for tokens in (query.space.original, (1, 1, 4, 3, 4, 7)):
        assert beaten(query, tokens) == (label == 1, False)


@given(st.data(), tiny_networks())
@cases(60)
def test_what_bounds_call_firm_no_sentence_breaks(data: Any, sample: Sample) -> None:
    """Neither over the reals nor as deployed; each sentence by itself."""
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    label = data.draw(st.integers(0, sample.classes - 1))
    with TemporaryDirectory() as folder:
        model, replay = loaded(sample, Path(folder))
        query = query_of(model, choices, label)
        swaps = data.draw(st.integers(0, max(1, len(query.space.swappable))))
        if firm_within(query, swaps):
            sentences = list(all_sentences(query.space, swaps))
            assert (replay.answers(np.array(sentences, dtype=np.int64)) == label).all()
            assert not any(beaten(query, tokens)[0] for tokens in sentences)
            assert all(beaten(query, tokens)[1] for tokens in sentences)
