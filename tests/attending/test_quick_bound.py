"""The bound in float64 is never above the exact leaf's, nor above what any sentence has, and mostly next to it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from attending_networks import Shape, sentences_of, shapes, space_of, transformer
from graph_builder import Builder
from hypothesis import given, settings
from hypothesis import strategies as st
from smooth_cases import CURVES, model

from swapproof.proofs import check
from swapproof.verifier.attending.cell_moves import CellMoves
from swapproof.verifier.attending.quick_bound import BITS, QuickLeaf, Unfit

ROUNDING = 1e-9
"""Of float64 evaluation, times the magnitude and 1."""


def options_of(masks: list[int]) -> tuple[tuple[int, ...], ...]:
    return tuple([tuple([o for o in range(mask.bit_length()) if mask >> o & 1]) for mask in masks])


def some_masks(space: check.Space, rng: random.Random) -> list[int]:
    found = []
    for mask in space.masks:
        kept = [o for o in range(mask.bit_length()) if rng.random() < 0.8] or [0]
        found.append(sum(1 << o for o in kept) if rng.random() < 0.5 else mask)
    return found


def compare(space: check.Space, masks: list[int], swaps: int) -> float | None:
    """By how much the exact bound is better; None where there is none, or it is refused, or left to the exact leaf."""
    if sum(not mask & 1 for mask in masks) > swaps:
        return None
    try:
        found = QuickLeaf(space).bound(options_of(masks), swaps, 1).least
    except Unfit:
        return None
    least = min(
        float(values[space.network.logits[0]] - values[space.network.logits[1]])
        for _, values in sentences_of(space, masks, swaps)
    )
    assert found <= least + ROUNDING * (1 + abs(least))
    leaf = space.attention(BITS)
    try:
        above, below = leaf.margin(leaf.view(masks, swaps), 1)
    except check.Refused:
        assert not found > 0
        return None
    exact = float(above / below)
    assert found <= exact + ROUNDING * (1 + abs(exact))
    return exact - found


@settings(max_examples=25)
@given(shapes, st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 3), st.booleans())
def test_it_is_never_above_the_exact_leaf_nor_the_truth(
    shape: Shape, seed: int, words: int, swaps: int, repeated: bool
) -> None:
    rng = random.Random(seed)
    space = space_of(transformer(shape, seed), rng, words, repeated)
    compare(space, some_masks(space, rng), swaps)


def test_of_a_transformer_it_is_next_to_the_exact_leaf() -> None:
    lost = []
    for seed in range(5):
        rng = random.Random(seed)
        low = -1e9 if seed == 3 else float(np.finfo(np.float32).min)
        space = space_of(transformer(Shape(size=0.3, first=seed % 2 == 0, masked=seed // 3, low=low), seed), rng, 4)
        lost += [compare(space, list(space.masks), swaps) for swaps in (1, 2)]
    found = [each for each in lost if each is not None]
    assert len(found) == len(lost)
    assert np.median(found) < 1e-4


@pytest.mark.parametrize("name", ["Softmax of columns", "attention", "LayerNormalization", "Div of two", "Mul of two"])
def test_of_other_networks_too(name: str) -> None:
    for seed in range(2):
        rng = random.Random(seed)
        space = space_of(model(CURVES[name], seed, size=0.4), rng, 3)
        compare(space, some_masks(space, rng), 2)


@given(st.integers(0, 10**6), st.integers(0, 4))
def test_least_and_beside_are_those_of_all_sets_of_moves(seed: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    options = [tuple(range(1 + int(rng.integers(0, 3)))) for _ in range(4)]
    free = frozenset(w for w in range(4) if rng.random() < 0.3)
    fixed = int(rng.integers(-1, 4))
    moves = CellMoves(options, free, [room], [fixed])
    gains = np.round(rng.normal(size=(1, len(moves))), 1)
    sets: list[tuple[int, ...]] = [()]
    for w, own in enumerate(options):
        if w != fixed:
            sets += [(*each, at) for each in sets for at, (v, _) in enumerate(moves.moves) if v == w]
        assert len(own) <= 3
    sets = [s for s in sets if sum(moves.moves[at][0] not in free for at in s) <= room]
    totals = {s: sum(gains[0, at] for at in s) for s in sets}
    assert abs(moves.least(gains)[0] - min(totals.values())) < ROUNDING
    beside = moves.beside(gains)[0]
    for at in range(len(moves)):
        with_it = [total - gains[0, at] for s, total in totals.items() if at in s]
        if with_it:
            assert abs(beside[at] - min(with_it)) < ROUNDING


def crossed(seed: int, size: float) -> bytes:
    """exp(s - m) over the sum of exp(s - m'), m and m' the greatest of windows that begin with the same element."""

    def made(b: Builder, x: str, rng: Any) -> str:
        scores = b.call("MatMul", x, b.constant((size * rng.normal(size=(4, 4))).astype(np.float32)))

        def gathered(*places: int) -> str:
            return b.call("Gather", scores, b.constant(np.array(places)), axis=1)

        def power(places: tuple[int, ...], *window: int) -> str:
            top = b.call("ReduceMax", gathered(*window), b.wholes(1), keepdims=1)
            return b.call("Exp", b.call("Sub", gathered(*places), top))

        below = b.call("ReduceSum", power((0, 1, 3), 0, 1, 3), b.wholes(1), keepdims=1)
        return b.call("Div", power((0,), 0, 1, 2), below)

    return model(made, seed, classes=2, size=0.3)


@pytest.mark.parametrize(("seed", "size"), [(31, 3.0), (35, 6.0), (64, 3.0), (75, 1.0)])
def test_powers_of_two_windows_have_two_shifts(seed: int, size: float) -> None:
    rng = random.Random(seed)
    space = space_of(crossed(seed, size), rng, 4)
    compare(space, list(space.masks), 1)


def steep(power: int, seed: int) -> bytes:
    """2**power (tanh(a) - tanh(b)), where a is nearly b."""

    def made(b: Builder, x: str, rng: Any) -> str:
        into = rng.normal(size=(4, 4)).astype(np.float32)
        into[:, 1] = into[:, 0]
        beside = np.array([0, 2.0 ** (8 - power), 0, 0], np.float32)
        bent = b.call("Tanh", b.call("Add", b.call("MatMul", x, b.constant(into)), b.constant(beside)))
        out = np.zeros((4, 4), np.float32)
        out[0, 0], out[1, 0], out[2, 1], out[3, 2] = 2.0**power, -(2.0**power), 1, 1
        return b.call("ReduceMean", b.call("MatMul", bent, b.constant(out)), b.wholes(1), keepdims=1)

    return model(made, seed, classes=2, size=0.3)


@pytest.mark.parametrize("power", [35, 40, 44])
def test_what_cancels_is_counted(power: int) -> None:
    """The exact leaf at these bits loses up to 0.6 here, float64 up to 0.001: the bound must lose as much."""
    for seed in range(3):
        rng = random.Random(seed)
        space = space_of(steep(power, seed), rng, 2)
        masks = list(space.masks)
        found = QuickLeaf(space).bound(options_of(masks), 1, 1).least
        leaf = space.attention(BITS)
        above, below = leaf.margin(leaf.view(masks, 1), 1)
        assert found <= above / below
