"""Networks of words divided by a norm: what is screened holds the intervals of check.py, by sentences and by boxes."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.regions.arithmetic import Ends
from swapproof.encodings.regions.assignments import Choices
from swapproof.encodings.regions.box_runs import Remembered
from swapproof.encodings.regions.boxes import boxed
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.regions.region import Question
from swapproof.encodings.sequences.sentence_margins import margins_of
from swapproof.encodings.space import SwapSpace
from swapproof.models.word_network import CountedNorm, Layer, VectorNorm, WordNetwork
from swapproof.proofs import check, lower
from swapproof.proofs.smooth_leaves import Boxes

ROWS, LABEL = 12, 0
KINDS = ("linear", "ReLUs", "counted", "counted, ReLUs")


def made(kind: str, seed: int) -> WordNetwork:
    rng = np.random.default_rng(seed)
    if kind.startswith("counted"):
        rows = np.concatenate([rng.normal(size=(ROWS, 3)), rng.random((ROWS, 1)), np.eye(ROWS, 1)], axis=1)
        start = np.array([0, 0, 0, 0, -1.0])
        norm = CountedNorm(rng.normal(size=3), np.concatenate([rng.normal(size=(3, 1)), rng.random((1, 1))]), 0.01)
        layers: tuple[Layer, ...] = ((rng.normal(size=(3, 3)), rng.normal(size=3)),) if kind.endswith("ReLUs") else ()
        return WordNetwork(rows, start, layers, rectified=bool(layers), norm=norm)
    rows = np.concatenate([rng.normal(size=(ROWS, 5)), np.full((ROWS, 1), float(np.float32(1e-32)))], axis=1)
    sizes = (5, 4, 3) if kind == "ReLUs" else (5, 3)
    layers = tuple((rng.normal(size=(after, before)), rng.normal(size=after)) for before, after in pairwise(sizes))
    return WordNetwork(rows, np.zeros(6), layers, norm=VectorNorm())


def both(kind: str, seed: int, folder: Path) -> tuple[check.Space, Question]:
    """The same text, seen by the checker and by us."""
    rng = np.random.default_rng(seed)
    network = made(kind, seed)
    path = folder / f"{kind}-{seed}.onnx"
    network.to_onnx(path)
    choices = [tuple(rng.permutation(ROWS)[: rng.integers(1, 4)].tolist()) for _ in range(5)]
    choices[0], choices[1] = (0, 1, 2), (3, 4)
    text = [own[0] for own in choices]
    words: list[Any] = [[place, [[token] for token in own]] for place, own in enumerate(choices) if len(own) > 1]
    found = lower.read_model(path.read_bytes()).lower([["words", text]], words)
    space = check.Space(check.Network(found.data, found.numbers, found.no_float32), words, LABEL, text)
    query = Query.of(network_of(open_model(path), 5, choices), SwapSpace.of(choices), LABEL)
    return space, question_of(query)


def margin(rules: Any, store: Any, rival: int, q: int) -> tuple[Fraction, Fraction]:
    """The ends of a margin, as `certain` sees them."""
    found = rules.margin(LABEL, rival)
    lows, highs = (found.pick(column) for column in store.columns[:2])
    ends = [found.constant << q, found.constant << q]
    for c, low, high in zip(found.coefficients, lows, highs, strict=True):
        ends = [ends[0] + min(c * low, c * high), ends[1] + max(c * low, c * high)]
    return Fraction(ends[0], found.scale << q), Fraction(ends[1], found.scale << q)


@pytest.mark.parametrize("kind", KINDS)
def test_ends_hold_the_checkers_intervals_of_every_sentence(kind: str, tmp_path: Path) -> None:
    for seed in range(4):
        space, question = both(kind, seed, tmp_path)
        for q in (16, 32, 50):
            enumeration = space.enumeration(q, False)
            choices = question.whole(2)
            made, ends = margins_of(question, choices, Ends(2.0**-q))
            for row, (low, high) in zip(made.rows, ends, strict=True):
                options = [0] * len(question.tokens)
                for swap in row[row >= 0]:
                    options[choices.word_of[swap]] = int(choices.option_of[swap])
                enumeration.fill(options)
                for rival, own_low, own_high in zip((1, 2), low, high, strict=True):
                    least, greatest = margin(enumeration.intervals, enumeration.store, rival, q)
                    assert Fraction(float(own_low)) <= least
                    assert Fraction(float(own_high)) >= greatest
                    assert q < 50 or own_high - own_low < 1e-8


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), seed=st.integers(0, 5))
def test_boxes_are_the_checkers(
    kind: str, data: st.DataObject, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Below them, and no more than rounding: the checker would not accept what is far above."""
    space, question = both(kind, seed, tmp_path_factory.mktemp("models"))
    options = tuple(
        tuple(sorted(data.draw(st.sets(st.integers(0, len(tokens) - 1), min_size=1)))) for tokens in question.tokens
    )
    choices = Choices(options, data.draw(st.integers(0, 3)))
    if len(choices.forced) > choices.swaps:
        return
    rules, masks = space.ruled(40, False), [sum(1 << o for o in own) for own in options]
    with np.errstate(invalid="ignore"):
        own = boxed(choices, Remembered(question, (), Ends(2.0**-40))).margins[choices.swaps]
    try:
        store = Boxes(rules, masks, choices.swaps, []).stores[-1]
    except check.Refused:
        assert not (own > -1e9).all()
        return
    for rival, low in zip((1, 2), own, strict=True):
        least, _ = margin(rules, store, rival, 40)
        if np.isfinite(low):  # near 0 the root takes more room here than there
            assert Fraction(float(low)) <= least
            assert float(least) - low < 1e-4
