"""Linear bounds of the search are those of the checker, to rounding: in regions with swaps made, with heights and
stairs."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import Case, Maker, convolution, limits, make_case, plane, repeated, space_of

from swapproof.encodings.bounds.linear_bounds import NO_HEIGHT, Heights, LinearBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.network import Rectifier
from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.pools.counted_swaps import counts_swaps
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check

KINDS = (convolution, plane, limits, repeated)


def query_of(case: Case) -> Query:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(case.data)
        space = SwapSpace.of(case.choices)
        return Query(network_for(open_model(path), space), space, case.label, case.rivals)


def drawn_heights(query: Query, rng: random.Random) -> Heights:
    found = {}
    for index, node in enumerate(query.network.nodes):
        if counts_swaps(query.network, index) and index in canonical_of(query.network).layer_of and rng.random() < 0.8:
            bend = isinstance(node.layer, Rectifier)
            some = [rng.choice((0, 16, 64)) + 128 * (rng.choice((0, 0, 1, 2, 3, 7)) + bend) for _ in range(node.size)]
            found[index] = np.array([NO_HEIGHT if bend and rng.random() < 0.5 else value for value in some])
    return found


@cases(150)
@given(st.sampled_from(KINDS), st.integers(0, 10**6))
def test_bounds_are_those_of_the_checker(kind: Callable[[Maker, int], bytes], seed: int) -> None:
    rng = random.Random(seed)
    case = make_case(kind, seed)
    space, query = space_of(case), query_of(case)
    differences = Differences.of(query)
    places = Places.of(differences)
    if not places.count:
        return
    places = places.reordered(np.array(rng.sample(range(places.count), places.count), dtype=np.int64))
    heights = drawn_heights(query, rng)
    start = rng.randint(0, places.count)
    made = {place: rng.randrange(int(places.there[place].sum())) for place in range(start) if rng.random() < 0.4}
    left = rng.randint(0, 3)
    masks, state = list(space.masks), places.base.copy()
    for place in range(start):
        position = int(places.positions[place])
        masks[position] = 1
        if place in made:
            swap = int(places.swaps[place, made[place]])
            masks[position] = 1 << case.choices[position].index(int(differences.tokens[swap]))
            state += differences.rows[swap]
    first = {index: space.network.layers[layer].start for index, layer in canonical_of(query.network).layer_of.items()}
    table = {
        first[index] + element: value
        for index, values in heights.items()
        for element, value in enumerate(values.tolist())
        if value != NO_HEIGHT
    }
    words = space.sentences(left + len(made), tuple(masks))
    region = check.Region(tuple(masks), case.rivals, 0, table)
    low, below = space.margin(case.label, case.rivals[0], words, space.bounds(words, table), region)
    bounds = LinearBounds(places, 0, max(1, left + len(made)), heights)
    ours = bounds.low(state[None], np.array([start]), np.array([left]))[0]
    told = float(Fraction(low, below << check.GRID))
    assert ours <= told + 1e-6 * (1 + abs(told))
    if kind is convolution:  # in the others windows may read an element twice
        assert ours == pytest.approx(told, rel=1e-6, abs=1e-6)
