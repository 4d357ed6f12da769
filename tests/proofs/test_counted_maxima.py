"""Maxima and rectifiers that count swaps, bounded from both sides: against every sentence, and FORMAT section 7 over
fractions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import exact_recipe as exact
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import (
    Case,
    Maker,
    convolution,
    exact_logits,
    limits,
    make_case,
    masked,
    plane,
    repeated,
    residual,
    sentences,
    space_of,
    tangled,
    two_layers,
    windows,
)

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check

KINDS = (convolution, plane, windows, limits, masked, repeated, two_layers, residual, tangled)


def network_of(case: Case) -> Network:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(case.data)
        return network_for(open_model(path), SwapSpace.of(case.choices))


@cases(200)
@given(st.sampled_from(KINDS), st.integers(0, 10**6))
def test_heights_bound_every_sentence_and_are_what_the_page_says(
    kind: Callable[[Maker, int], bytes], seed: int
) -> None:
    """In random regions: forced words, words that lack options, all heights and stairs, with slopes beside them."""
    case = make_case(kind, seed)
    rng = random.Random(seed)
    if rng.random() < 0.5:  # numbers that the grid has to round
        case = replace(case, data=kind(Maker(random.Random(seed), 4, 3e-9), case.classes))
    space = space_of(case)
    network, k = space.network, rng.randint(0, 4)
    masks = tuple(rng.randint(1, mask) if rng.random() < 0.4 else mask for mask in space.masks)
    words = space.sentences(k, masks)
    if words.empty:
        return
    maxima, bends = (
        [
            i
            for layer in network.nonlinear
            if isinstance(layer, kind)
            for i in range(layer.start, layer.start + layer.size)
        ]
        for kind in (check.Maximum, check.Rectifier)
    )
    share = rng.choice((0.1, 0.5, 0.9))
    counting = [i for i in (*maxima, *bends) if space.counted.may(i) and rng.random() < (0.9 if i in maxima else share)]
    heights = {i: rng.choice((0, 1, 16, 63, 64)) + 128 * (rng.choice((0, 1, 2, 3, 7)) + (i in bends)) for i in counting}
    slopes = {i: rng.randint(0, 64) for i in bends if rng.random() < 0.5}
    region = check.Region(masks, case.rivals, 0, {**slopes, **heights})
    rival = case.rivals[-1]
    low, below = space.margin(case.label, rival, words, space.bounds(words, region.slopes), region)
    found = Fraction(low, below << check.GRID)
    for sentence in sentences(case.choices, k):
        picks = [options.index(token) for options, token in zip(case.choices, sentence, strict=True)]
        if all(mask >> pick & 1 for mask, pick in zip(masks, picks, strict=True)):
            z = exact_logits(network, sentence)
            assert found <= z[case.label] - z[rival]
    ours = network_of(case)
    layers = {layer: node for node, layer in canonical_of(ours).layer_of.items()}
    starts = {layer.start: layers[at] for at, layer in enumerate(network.layers) if at in layers}

    def named(values: dict[int, int]) -> dict[tuple[int, int], int]:
        owners = {i: network.owner[i] for i in values}
        return {(starts[owners[i].start], i - owners[i].start): value for i, value in values.items()}

    told = exact.Region(masks, k, named(slopes), (), named(heights))
    recipe = exact.Recipe(ours, case.choices, told)
    assert found == recipe.margin(case.label, rival)
    may = {i for i in (*maxima, *bends) if space.counted.may(i)}
    assert may == {i for i in (*maxima, *bends) if recipe.counts_swaps(*next(iter(named({i: 0}))))}
