"""Intervals of section 15 hold every value of every element: of each sentence, and of each number of swaps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import mpmath
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from plain_intervals import Plain
from smooth_cases import CURVES
from smooth_values import float32_values, steps_of
from swapped_spaces import MADE, RECURRENT, exact, kernel_possible, region_of, space_of, text_of

from swapproof.proofs import check
from swapproof.proofs.exact_network import Affine
from swapproof.proofs.smooth_leaves import Boxes, Enumeration, Segment

ROUNDING = mpmath.mpf(2) ** -90
"""Of mpmath, with 200 bits, in units of at most 2**-48."""


def within(store: Any, start: int, stop: int, values: Sequence[Any], q: int) -> bool:
    lows, highs = [column[start:stop] for column in store.columns[:2]]
    with mpmath.workprec(200):
        scaled = [mpmath.ldexp(x, q) for x in values[start:stop]]
        return all(low - ROUNDING <= x <= high + ROUNDING for low, x, high in zip(lows, scaled, highs, strict=True))


@pytest.mark.parametrize("name", MADE)
def test_intervals_of_a_sentence_hold_its_values(name: str) -> None:
    """At every precision, and at level kernel those of float32 runtimes too; blocks are shared between sentences."""
    for seed in range(2):
        space = space_of(name, seed)
        if not space.network.smooth:
            return
        sentences = region_of(space.masks, 4)
        rng = random.Random(seed)
        for q, kernel in ((16, False), (24, False), (48, False), (24, True), (40, True)):
            if kernel and not kernel_possible(space):
                continue
            enumeration, refused = space.enumeration(q, kernel), ""
            for options in rng.sample(sentences, 8):
                try:
                    enumeration.fill(options)
                except check.Refused as error:
                    refused = str(error)
                    break
                values = [exact(name, seed, options)]
                if kernel:
                    values += [float32_values(space.network, text_of(space, options), rng) for _ in range(3)]
                for block in space.blocks.found:
                    # What is kept of blocks that read a block stands for it.
                    if enumeration.held[block.number] == tuple(options[i] for i in block.order):
                        for each in values:
                            assert within(enumeration.store, block.start, block.stop, each, q)
            assert not refused or (q < 48 and "at precision" in refused)


@pytest.mark.parametrize("name", MADE)
def test_intervals_are_those_of_the_page_to_the_unit(name: str) -> None:
    """All columns, at both levels, by fractions element by element; sizes where a layer adds elements up."""
    space = space_of(name, 0)
    rng = random.Random(7)
    for q, kernel in ((17, False), (40, False), (19, True), (40, True)):
        if not space.network.smooth or (kernel and not kernel_possible(space)):
            continue
        enumeration, plain = Enumeration(space.ruled(q, kernel)), Plain(space, q, kernel)
        options = rng.choice(region_of(space.masks, 4))
        try:
            enumeration.fill(options)
        except check.Refused:
            assert q < 20
            continue
        expected = list(zip(*plain.intervals(text_of(space, options)), strict=True))
        for block in space.blocks.found:
            sized = block.summed or not block.layer.depth or isinstance(block.layer, Affine)
            for at, (own, wanted) in enumerate(zip(enumeration.store.columns, expected, strict=False)):
                assert (at == 2 and not sized) or own[block.start : block.stop] == list(
                    wanted[block.start : block.stop]
                )


@settings(max_examples=120, deadline=None)
@given(data=st.data(), name=st.sampled_from([*MADE, *RECURRENT * 3]), seed=st.integers(0, 1))
def test_boxes_hold_the_values_of_all_sentences(data: st.DataObject, name: str, seed: int) -> None:
    """B_j of every element, with whatever options a region has left, segments that follow the words, and any others."""
    space = space_of(name, seed)
    if not space.network.smooth:
        return
    masks = tuple(data.draw(st.integers(1, mask)) for mask in space.masks)
    swaps = data.draw(st.integers(0, 4))
    kernel = kernel_possible(space) and data.draw(st.booleans())
    q = data.draw(st.sampled_from((16, 24, 40)))
    count = len(space.network.layers)
    kind = data.draw(st.sampled_from(("none", "steps", "steps", "any")))
    segments: list[Segment] = []
    if kind == "steps":
        segments = [Segment(*each) for each in steps_of(space)]
    elif kind == "any":
        ends = sorted(data.draw(st.sets(st.integers(1, count - 1), max_size=4)))
        for first, stop in itertools.pairwise([0, *ends, count]):
            word = data.draw(st.integers(-1, len(space.words) - 1))
            if word >= 0:
                segments.append(Segment(first, stop - first, word))
    sentences = region_of(masks, swaps)
    if not sentences:
        assert space.sentences(swaps, masks).empty
        return
    boxes, refused = None, ""
    try:
        boxes = Boxes(space.ruled(q, kernel), masks, swaps, segments)
    except check.Refused as error:
        refused = str(error)
    if boxes is None:
        event(f"{kind} refused")
        natural = kind == "steps" and name in ("LSTM", "LSTM last", "GRU", "GRU reset last")
        assert "at precision" in refused or (kind != "none" and not natural and "segment" in refused)
        return
    event(f"{kind} computed")
    moving = sum(1 << i for i, mask in enumerate(masks) if mask != 1)
    ends, rng = space.blocks.ends, random.Random(0)
    for options in random.Random(1).sample(sentences, min(12, len(sentences))):
        values = [exact(name, seed, options)]
        if kernel:
            values.append(float32_values(space.network, text_of(space, options), rng))
        swapped = sum(1 << i for i, option in enumerate(options) if option)
        for block in space.blocks.found:
            for j, store in enumerate(boxes.stores):
                if (swapped & block.words & moving).bit_count() <= j:
                    if block.number in ends or not segments:
                        assert store.stamps[block.number] is not None
                    for each in values if store.stamps[block.number] is not None else []:
                        assert within(store, block.start, block.stop, each, q)


@pytest.mark.parametrize("name", CURVES)
def test_what_is_affine_in_the_words_takes_its_extremes_over_the_region(name: str) -> None:
    """Not one unit further, also where a region has left a word that it depends on nothing but the original."""
    space, q, swaps = space_of(name, 0), 40, 2
    if not space.network.smooth:
        return
    rng = random.Random(3)
    drawn = [tuple(rng.choice((1, mask, rng.randint(1, mask))) for mask in space.masks) for _ in range(6)]
    for masks in [(1, *space.masks[1:-1], 1), (*space.masks[:2], 1, 1), *drawn]:
        moving = sum(1 << i for i, mask in enumerate(masks) if mask != 1)
        boxes = Boxes(space.ruled(q, False), masks, swaps, [])
        every = region_of(masks, len(masks))
        for block in space.blocks.found:
            if block.layer.depth:
                continue
            for j, store in enumerate(boxes.stores):
                own = [i for i in block.order if moving >> i & 1]
                reached = [exact(name, 0, options) for options in every if sum(options[i] > 0 for i in own) <= j]
                if not reached:
                    assert store.stamps[block.number] is None
                    continue
                for i in range(block.start, block.stop):
                    with mpmath.workprec(200):
                        scaled = [mpmath.ldexp(values[i], q) for values in reached]
                        assert store.columns[0][i] == int(mpmath.floor(min(scaled) + ROUNDING))
                        assert store.columns[1][i] == int(mpmath.ceil(max(scaled) - ROUNDING))
