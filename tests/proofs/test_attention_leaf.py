"""The leaf `attention` holds every value of every element in every sentence, and is refused where it says too much."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import pytest
from attending_networks import Shape, sentences_of, shapes, space_of, transformer
from hypothesis import given, settings
from hypothesis import strategies as st
from smooth_cases import CURVES, model

from swapproof.proofs import check
from swapproof.proofs.attention_leaf import Attention, Form, View

Q = 32
SLACK = 1e-9
"""Of float64, times the magnitude and 1; mpmath has none that counts."""


def hold(view: View, rows: Sequence[tuple[tuple[int, ...], list[Any]]], slack: Any) -> None:
    """Ranges and forms."""
    forms = {i: form for i, form in view.meanings.items() if isinstance(form, Form)}
    bounds = {i: view.bounded(form, view.beyond(form.coefficients)) for i, form in forms.items()}
    for chosen, values in rows:
        places = [own.index(option) for own, option in zip(view.options, chosen, strict=True)]
        made = [view.places[word, place] for word, place in enumerate(places) if place]
        found = [(i, *ends, Q) for i, ends in view.ranges.items()]
        for i, bound in bounds.items():
            low, high = [sum([ends[at] for at in made]) for ends in (bound.lows, bound.highs)]
            found.append((i, bound.low + low, bound.high + high, 2 * Q))
        for i, low, high, bits in found:
            more = slack * (1 + abs(values[i]))
            one = 1 << bits
            ends = (low / one, high / one) if slack == SLACK else (mpmath.mpf(low) / one, mpmath.mpf(high) / one)
            assert ends[0] - more <= values[i] <= ends[1] + more


def compare(space: check.Space, rng: random.Random, swaps: int, exact: bool = False) -> bool:
    """Whether there was something to compare."""
    masks = []
    for mask in space.masks:
        kept = [o for o in range(mask.bit_length()) if rng.random() < 0.85] or [0]
        masks.append(sum(1 << o for o in kept) if rng.random() < 0.4 else mask)
    if sum(not mask & 1 for mask in masks) > swaps:
        return False
    leaf = Attention(space.ruled(Q, False))
    view = leaf.view(masks, swaps)
    try:
        above, below = leaf.margin(view, 1)
    except check.Refused:
        return False
    with mpmath.workprec(150):
        slack = mpmath.mpf(2) ** -90 if exact else SLACK
        rows = sentences_of(space, masks, swaps, exact)
        least = min(values[space.network.logits[0]] - values[space.network.logits[1]] for _, values in rows)
        assert mpmath.mpf(above) / below <= least + slack * (1 + abs(least))
        hold(view, rows, slack)
        for (word, place), inner in view.inner.items():
            hold(inner, [row for row in rows if row[0][word] == view.options[word][place]], slack)
    return True


@settings(max_examples=12)
@given(shapes, st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_every_element_lies_where_the_leaf_says(
    shape: Shape, seed: int, words: int, swaps: int, repeated: bool
) -> None:
    rng = random.Random(seed)
    compare(space_of(transformer(shape, seed), rng, words, repeated), rng, swaps)


@pytest.mark.parametrize("seed", [3, 4])
def test_the_same_in_numbers_of_150_bits(seed: int) -> None:
    space = space_of(transformer(Shape(heads=1, first=seed == 4, curve="Gelu"), seed), random.Random(seed), 2)
    assert compare(space, random.Random(0), 2, exact=True)


@pytest.mark.parametrize("name", ["Softmax of columns", "attention", "LayerNormalization", "Div of two", "Mul of two"])
def test_other_networks_are_bounded_or_refused(name: str) -> None:
    for seed in range(2):
        rng = random.Random(seed)
        compare(space_of(model(CURVES[name], seed, size=0.4), rng, 3), rng, 2)


def test_one_swap_is_exact() -> None:
    """Of a transformer without maximum or layers behind its pooling, what one swap does is what the leaf says."""
    for seed in range(3):
        space = space_of(transformer(Shape(first=seed % 2 == 0), seed), random.Random(seed), 4)
        leaf = Attention(space.ruled(Q, False))
        above, below = leaf.margin(leaf.view(space.masks, 1), 1)
        rows = sentences_of(space, space.masks, 1)
        least = min(float(values[space.network.logits[0]] - values[space.network.logits[1]]) for _, values in rows)
        assert abs(above / below - least) < 1e-4


def tree_of(space: check.Space, swaps: int, level: str = "real", tree: bytes = b"\x19") -> Callable[[], None]:
    return check.Tree(space, tree, [1], swaps, level).check


def test_a_margin_one_unit_short_is_refused() -> None:
    """The label's bias is moved so that the bound is nothing, and one unit of it less."""
    space = space_of(transformer(Shape(size=0.3), 5), random.Random(5), 3)
    leaf = space.attention(Q)
    above, below = leaf.margin(leaf.view(space.masks, 2), 1)
    margin = leaf.intervals.margin(0, 1)
    unit = below // margin.scale
    for rest, proved in ((0, True), (1, True), (-1, False)):
        # A constant of the margin is whole in units of 1 / scale: the rest is taken from the bound itself.
        moved = margin._replace(constant=margin.constant * unit - above + rest, scale=margin.scale * unit)
        moved = moved._replace(coefficients=[c * unit for c in margin.coefficients])
        leaf.intervals.margins[0, 1] = moved
        low, _ = leaf.margin(leaf.view(space.masks, 2), 1)
        assert (low >= 0) == proved
        check_tree = tree_of(space, 2)
        if proved:
            check_tree()
        else:
            with pytest.raises(check.Refused, match="an attention leaf does not hold"):
                check_tree()
        leaf.intervals.margins[0, 1] = margin


def test_it_is_refused_at_another_level_and_in_other_networks() -> None:
    space = space_of(transformer(Shape(), 1), random.Random(1), 2)
    with pytest.raises(check.Refused, match="level"):
        tree_of(space, 1, "kernel")()
    plain = space_of(model(lambda b, x, _: b.call("Relu", x), 0), random.Random(1), 2)
    with pytest.raises(check.Refused, match="tree byte 25"):
        tree_of(plain, 1)()
