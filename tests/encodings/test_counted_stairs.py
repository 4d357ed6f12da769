"""Lower bounds of maxima that count swaps, as FORMAT section 7 has them over fractions, against every sentence."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import exact_recipe as exact
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import Maker, sentences

from swapproof.encodings.network import Maximum, Network
from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.space import SwapSpace

LENGTH = 5


def model(m: Maker) -> bytes:
    """A convolution; then in any order rectifiers, leaky ones, constants, pools over few; and a pool over what is left."""
    draw, filters, width = m.rng, m.rng.randint(1, 2), m.rng.randint(1, 3)
    x = m.call("Transpose", m.embed(2), perm=[0, 2, 1])
    pads = [draw.randint(0, 1), draw.randint(0, 1)]
    x = m.call("Conv", x, m.weights(filters, 2, width), m.weights(filters), kernel_shape=[width], pads=pads)
    for _ in range(draw.randint(0, 3)):
        step = draw.choice(("relu", "leaky", "constants", "pool", "top"))
        if step == "relu":
            x = m.call("Relu", x)
        elif step == "leaky":
            x = m.call("LeakyRelu", x, alpha=draw.choice((0.25, 0.5)))
        elif step == "constants":
            x = m.call("Concat", x, m.weights(1, filters, 1), axis=2)
        elif step == "pool":
            x = m.call("MaxPool", x, kernel_shape=[2], strides=[1], pads=[1, 0])
        else:
            x = m.call("Concat", x, m.call("ReduceMax", x, axes=[2], keepdims=1), axis=2)
    top = m.call("ReduceMax", x, axes=[2], keepdims=0)
    if draw.random() < 0.5:
        top = m.call("LeakyRelu", top, alpha=draw.choice((0.0, 0.25)))
    return m.model(m.gemm(top, filters, 2), 2)


def drawn(seed: int) -> tuple[Network, tuple[tuple[int, ...], ...], exact.Region]:
    """Few numbers, so that roots are often equal; forced words, and words that lack options."""
    rng = random.Random(seed)
    data = model(Maker(rng, LENGTH, rng.choice((0.25, 0.25, 1.0, 0.3, 3e-9))))
    tokens = rng.sample(range(7), rng.randint(3, 7))
    choices = tuple(tuple(rng.sample(tokens, rng.randint(1, 3))) for _ in range(LENGTH))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        network = network_for(open_model(path), SwapSpace(choices))
    masks = [(1 << len(options)) - 1 for options in choices]
    masks = [rng.randint(1, mask) if rng.random() < 0.3 else mask for mask in masks]
    k = sum(not mask & 1 for mask in masks) + rng.choice((0, 1, 1, 2, 2, 3))
    values = {
        (n, i): 128 * rng.choice((0, 1, 2, 3, 7)) + rng.choice((0, 1, 20, 64))
        for n, node in enumerate(network.nodes)
        if isinstance(node.layer, Maximum)
        for i in range(node.size)
        if rng.random() < 0.9
    }
    return network, choices, exact.Region(masks, k, {}, (), values)


@cases(300)
@given(st.integers(0, 10**9))
def test_the_page_s_lines_bound_every_sentence(seed: int) -> None:
    """Element by element: the low bound, v_1 less what the swaps take, beta and what they add; then the margin."""
    network, choices, region = drawn(seed)
    recipe = exact.Recipe(network, choices, region)
    margin = recipe.margin(0, 1)
    maxima = sorted(region.heights)
    windows = {(n, i): window_of(recipe, n, i) for n, i in maxima}
    below = {(n, i): recipe.lowered(n, i, max(low for low, _ in windows[n, i])) for n, i in maxima}
    above = {(n, i): recipe.counted(n, i, max(high for _, high in windows[n, i])) for n, i in maxima}
    for sentence in sentences(choices, region.k):
        picks = [options.index(token) for options, token in zip(choices, sentence, strict=True)]
        if not all(mask >> pick & 1 for mask, pick in zip(region.masks, picks, strict=True)):
            continue
        known = exact.values(network, sentence)
        assert margin <= known[len(network.nodes) - 1][0] - known[len(network.nodes) - 1][1]
        for n, i in maxima:
            y = known[n][i]
            assert recipe.bounds(n)[i][0] <= y <= recipe.bounds(n)[i][1]
            low, falls = below[n, i]
            high, gains = above[n, i]
            assert low - moved(recipe, region, picks, falls) <= y <= high + moved(recipe, region, picks, gains)


def window_of(recipe: exact.Recipe, n: int, i: int) -> list[tuple[Fraction, Fraction]]:
    width = len(recipe.inputs(n)) // recipe.network.nodes[n].size
    return recipe.inputs(n)[i * width : (i + 1) * width]


def moved(recipe: exact.Recipe, region: exact.Region, picks: list[int], gains: exact.Gains) -> Fraction:
    """What the swaps of free words add together."""
    total = Fraction(0)
    for place, (pick, mask) in enumerate(zip(picks, region.masks, strict=True)):
        if pick and mask & 1:
            allowed = [choice for choice in range(1, mask.bit_length()) if mask >> choice & 1]
            total += gains[place][allowed.index(pick)]
    return total
