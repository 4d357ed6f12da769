"""The leaf `expansion` is never above the least margin of a region, and is refused where it says too much."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import mpmath
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from smooth_values import chains_of, float32_values
from swapped_spaces import MADE, RECURRENT, exact, kernel_possible, region_of, space_of, text_of

from swapproof.proofs import check, exact_network
from swapproof.proofs.expansion.expansion_costs import Weights
from swapproof.proofs.expansion.expansion_leaf import Chain, Expansion


def some_masks(space: check.Space, rng: random.Random) -> tuple[int, ...]:
    """Words as they are, without some options, or swapped."""
    masks = []
    for mask in space.masks:
        kept = mask & (rng.getrandbits(8) | 1) if rng.random() < 0.3 else mask
        masks.append(1 << rng.randrange(mask.bit_length()) if rng.random() < 0.25 else kept)
    return tuple(masks)


def some_chains(space: check.Space, rng: random.Random) -> tuple[Chain, ...]:
    """Those of the network, or any others."""
    if rng.random() < 0.7:
        return tuple(Chain(*each) for each in chains_of(space))
    found, free, layers = [], 0, len(space.network.layers)
    while free < layers and rng.random() < 0.8:
        first = rng.randrange(free, layers)
        free = rng.randrange(first, layers) + 1
        found.append(Chain(first, free - first, rng.randrange(2)))
    return tuple(found)


def least_of(name: str, seed: int, masks: Sequence[int], swaps: int, rival: int, floats: random.Random | None) -> Any:
    """Of the margins in all sentences of a region, over the reals or in float32."""
    space, margins = space_of(name, seed), []
    for options in region_of(masks, swaps):
        rows = [exact(name, seed, options)]
        if floats:
            rows += [float32_values(space.network, text_of(space, options), floats) for _ in range(3)]
        margins += [values[space.network.logits[0]] - values[space.network.logits[rival]] for values in rows]
    return min(margins, default=mpmath.inf)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*MADE]), st.integers(0, 2), st.integers(0, 3), st.booleans(), st.integers(0, 10**6))
def test_the_bound_is_not_above_the_least_margin(name: str, seed: int, swaps: int, kernel: bool, draw: int) -> None:
    rng, space = random.Random(draw), space_of(name, seed)
    if not space.network.smooth or (kernel and not kernel_possible(space)):
        return
    masks, q, reach = some_masks(space, rng), rng.choice((16, 20, 32, 48)), rng.choice((0, 1, 2, 9))
    if sum(not mask & 1 for mask in masks) > swaps:
        return
    try:
        leaf = Expansion(space.ruled(q, kernel), masks, swaps, reach, some_chains(space, rng))
        margins = leaf.margins((1, 2))
    except check.Refused as error:
        event(str(error)[:40])
        return
    event(f"bounded, of a recurrent network {name in RECURRENT}")
    with mpmath.workprec(200):
        for rival, (above, below) in zip((1, 2), margins, strict=True):
            least = least_of(name, seed, masks, swaps, rival, rng if kernel else None)
            assert mpmath.mpf(above) / below <= least + mpmath.mpf(2) ** -90


@pytest.mark.parametrize("kernel", [False, True])
def test_a_margin_one_unit_short_is_refused(kernel: bool) -> None:
    """The label's bias is moved so that the bound is nothing, and one unit of it more or less; over the reals a bound
    of nothing is enough against a later class."""
    space = space_of("LSTM last", 1)
    rules = space.ruled(32, kernel)
    chains = tuple(Chain(*each) for each in chains_of(space))
    above, below = Expansion(rules, space.masks, 2, 1, chains).margins((1,))[0]
    margin = rules.margin(0, 1)
    for rest, proved in ((1, True), (0, not kernel), (-1, False)):
        moved = margin._replace(
            constant=margin.constant * below - above * margin.scale + rest,
            scale=margin.scale * below,
            coefficients=[c * below for c in margin.coefficients],
        )
        rules.margins[0, 1] = moved
        assert Expansion(rules, space.masks, 2, 1, chains).proved((1,)) == proved
    rules.margins[0, 1] = margin


def added_by_readers(leaf: Expansion, rival: int) -> tuple[list[Fraction], list[Fraction]]:
    """mu of every element, and the sum of the magnitudes of what was added to it, one by one."""
    rests, network, scale = leaf.rests, leaf.intervals.network, 1 << leaf.intervals.q
    count = len(network.owner)
    mu, sizes = [Fraction(0)] * count, [Fraction(0)] * count

    def add(i: int, x: Fraction) -> None:
        mu[i] += x
        sizes[i] += abs(x)

    margin = leaf.intervals.margin(leaf.space.label, rival)
    for i, c in zip(margin.pick([*range(count)]), margin.coefficients, strict=True):
        add(i, Fraction(c * scale, margin.scale))
    for block in reversed(leaf.blocks):
        layer: Any = block.layer
        for i in range(block.start, block.stop) if layer.depth else []:
            own, at = mu[i].__floor__(), i - layer.start
            match layer:
                case exact_network.Affine():
                    elements, weights = layer.lists[layer.pairs[at][0]], layer.weights[layer.pairs[at][1]]
                    for k, w in zip(elements, weights, strict=True):
                        add(k, Fraction(own * w, layer.size_scale))
                case exact_network.Product():
                    a, b = layer.firsts[at], layer.seconds[at]
                    add(a, Fraction(own * rests.center[b], scale))
                    add(b, Fraction(own * rests.center[a], scale))
                case exact_network.Curve():
                    slope, _ = rests.lines(block)[i - block.start]
                    add(layer.sources[at], Fraction(own * slope, scale))
                case _:
                    raise AssertionError("a network of another kind")
    return mu, sizes


@pytest.mark.parametrize("name", ["GRU", "GRU reset last", "LSTM last"])
def test_what_each_reader_adds_counts_apart(name: str) -> None:
    """A sum that several layers read may have another float32 value in each, though their multipliers cancel."""
    space = space_of(name, 1)
    leaf = Expansion(space.ruled(32, True), space.masks, 2, 1, tuple(Chain(*each) for each in chains_of(space)))
    weights = Weights(leaf.rests, space.label, 1)
    mu, sizes = added_by_readers(leaf, 1)
    assert [Fraction(x, weights.scale) for x in weights.mu] == mu
    assert [weights.charged(i) for i in range(len(sizes))] == [ceil(x) for x in sizes]
    assert any(size > 2 * abs(x) + 1 for x, size in zip(mu, sizes, strict=True))
