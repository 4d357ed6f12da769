"""Bounds of maxima and rectifiers that count swaps, by FORMAT section 7 over fractions, against every sentence."""

from __future__ import annotations

from fractions import Fraction

import exact_recipe as exact
from cases import cases
from counted_regions import drawn
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import sentences

from swapproof.encodings.network import Rectifier


@cases(300)
@given(st.integers(0, 10**9))
def test_the_page_s_lines_bound_every_sentence(seed: int) -> None:
    """Element by element: the low bound, v_1 less what the swaps take, beta and what they add; then the margin."""
    found = drawn(seed)
    network, choices, region = found.network, found.choices, found.region
    recipe = exact.Recipe(network, choices, region)
    margin = recipe.margin(0, 1)
    counting = sorted(region.heights)
    ends = {(n, i): ends_of(recipe, n, i) for n, i in counting}
    below = {(n, i): recipe.lowered(n, i, ends[n, i][0]) for n, i in counting}
    above = {(n, i): recipe.counted(n, i, ends[n, i][1]) for n, i in counting}
    for sentence in sentences(choices, region.k):
        picks = [options.index(token) for options, token in zip(choices, sentence, strict=True)]
        if not all(mask >> pick & 1 for mask, pick in zip(region.masks, picks, strict=True)):
            continue
        known = exact.values(network, sentence)
        assert margin <= known[len(network.nodes) - 1][0] - known[len(network.nodes) - 1][1]
        for n, i in counting:
            y = known[n][i]
            assert recipe.bounds(n)[i][0] <= y <= recipe.bounds(n)[i][1]
            low, falls = below[n, i]
            high, gains = above[n, i]
            assert low - moved(recipe, region, picks, falls) <= y <= high + moved(recipe, region, picks, gains)


def ends_of(recipe: exact.Recipe, n: int, i: int) -> tuple[Fraction, Fraction]:
    """Before stairs are looked at."""
    layer, size = recipe.network.nodes[n].layer, recipe.network.nodes[n].size
    alpha = Fraction(layer.slope) if isinstance(layer, Rectifier) else Fraction(1)
    width = len(recipe.inputs(n)) // size
    low, high = (max(each) for each in zip(*recipe.inputs(n)[i * width : (i + 1) * width], strict=True))
    return max(low, alpha * low), max(high, alpha * high)


def moved(recipe: exact.Recipe, region: exact.Region, picks: list[int], gains: exact.Gains) -> Fraction:
    """What the swaps of free words add together."""
    total = Fraction(0)
    for place, (pick, mask) in enumerate(zip(picks, region.masks, strict=True)):
        if pick and mask & 1:
            allowed = [choice for choice in range(1, mask.bit_length()) if mask >> choice & 1]
            total += gains[place][allowed.index(pick)]
    return total
