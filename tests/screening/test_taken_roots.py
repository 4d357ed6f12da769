"""Lower lines of maxima that count swaps, in float64: within their errors of the page's, and nothing at the border."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from dataclasses import replace
from fractions import Fraction
from math import nextafter
from pathlib import Path

import exact_recipe as exact
import numpy as np
import pytest
from counted_regions import Drawn, drawn, read, table_of, with_bias
from proof_cases import Case, Maker, statement
from screened_regions import recipe_of
from screening_cases import same_or_nothing, within
from tree_bytes import leb128

from swapproof.encodings.network import Affine, Maximum, Network
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.screening import Screen, Unsure
from swapproof.verifier.screening.form.tree_leaves import Named, Reader
from swapproof.verifier.screening.numbers.equal_elements import names_at_cut
from swapproof.verifier.screening.numbers.margins import Recipe


def bound(found: Drawn, network: Network) -> tuple[float, float]:
    """The margin of the first class over its region, and the error."""
    query = Query.of(network, SwapSpace(found.choices), 0)
    (number,), (error,) = recipe_of(query, [found.region], np.float64).margin(0, 1)
    return float(number), float(error)


def test_lower_lines_lie_within_their_errors_and_roots_are_hardly_ever_in_doubt() -> None:
    """With stairs, forced words and equal phrases: of numbers of all sizes the recipe's choice of roots is known, but
    where a forced swap makes two phrases equal."""
    doubtful = []
    for seed in range(160):
        found = drawn(seed)
        query = Query.of(found.network, SwapSpace(found.choices), 0)
        recipe = recipe_of(query, [found.region], np.float64)
        truth = exact.Recipe(found.network, found.choices, found.region)
        for winner, loser in ((0, 1), (1, 0)):
            (number,), (error,) = recipe.margin(winner, loser)
            assert within(number, truth.margin(winner, loser), error)
        for index, node in enumerate(found.network.nodes):
            if isinstance(node.layer, Maximum):
                bounds = recipe.bounds(index)
                for i, (low, high) in enumerate(truth.bounds(index)):
                    assert within(bounds.low[0, i], low, bounds.low_error[0, i])
                    assert within(bounds.high[0, i], high, bounds.high_error[0, i])
        if seed % 2:
            doubtful += [error > 1e-6 for taken in recipe.taken.values() for error in taken.error]
    assert len(doubtful) > 150
    assert sum(doubtful) <= 2


def test_where_a_bias_lets_the_float_margin_hold_the_page_s_margin_holds() -> None:
    """The final bias is halved in on the border from both sides; just below the exact border nothing holds."""
    close = 0
    for seed in range(1, 60, 2):
        found = drawn(seed)
        last = len(found.network.nodes) - 1
        layer = found.network.nodes[last].layer
        assert isinstance(layer, Affine)
        border = Fraction(float(layer.bias[0])) - exact.Recipe(found.network, found.choices, found.region).margin(0, 1)

        def holds(bias: float, found: Drawn = found, layer: Affine = layer, last: int = last) -> bool:
            moved = replace(layer, bias=np.array([bias, layer.bias[1]]))
            nodes = (*found.network.nodes[:last], replace(found.network.nodes[last], layer=moved))
            number, error = bound(found, replace(found.network, nodes=nodes))
            return number - error > 0

        low, high = float(border), float(border) + 1.0
        low = low if Fraction(low) <= border else nextafter(low, -np.inf)
        assert not holds(low)
        if not holds(high):
            continue
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        assert Fraction(high) > border
        close += Fraction(high) - border < Fraction(1, 10**9)
    assert close >= 15


TINY = 2.0**-58
TABLE = np.array(
    [
        [0, 0, 0, 0],
        [0, 4, 0, 0],
        [4, 0, TINY, 0],
        [0, 0, 0, 1],
        [0, 0, TINY, 0],
        [-4, 0, 0, 0],
        [-1, 0, 0, 0],
        [1, 0, 0, 0],
    ],
    np.float32,
)
"""What stands for each token: two numbers, one that float64 loses beside them, and whether it counts."""


def beyond_float64(
    windows: list[list[int]], choices: tuple[tuple[int, ...], ...], masks: list[int], k: int, second: float = 1
) -> tuple[Recipe, exact.Recipe, int]:
    """The margin max(sums over these windows, 2) - 4 + twice the number of tokens that count, with seven stairs.

    In the second place of a window the second number of a token has the weight `second`.
    """
    m = Maker(random.Random(0), len(choices))
    x = m.call("Gather", m.constant(TABLE), "tokens")
    laid = m.call("Gather", x, m.constant(np.array(windows).reshape(-1)), axis=1)
    rows = m.call("Reshape", laid, m.constant([1, len(windows), 4 * len(windows[0])]))
    weights = np.array([[1], [1], [1], [0], [1], [second], [1], [0]], np.float32)
    sums = m.call("Squeeze", m.call("MatMul", rows, m.constant(weights)), m.constant([2]))
    two = m.call("Concat", sums, m.constant(np.full((1, 1), 2, np.float32)), axis=1)
    counted = m.call("ReduceSum", x, m.constant([1]), keepdims=0)
    both = m.call("Concat", m.call("ReduceMax", two, axes=[1]), counted, axis=1)
    ends = np.array([[1, 0], [0, 0], [0, 0], [0, 0], [2, 0]], np.float32), np.array([-4 + 2.0**-10, 0], np.float32)
    network = read(m.model(m.call("Gemm", both, *map(m.constant, ends)), 2), choices)
    top = next(n for n, node in enumerate(network.nodes) if isinstance(node.layer, Maximum))
    region = exact.Region(masks, k, {}, (), {(top, 0): 64 + 7 * 128})
    recipe = recipe_of(Query.of(network, SwapSpace(choices), 0), [region], np.float64)
    return recipe, exact.Recipe(network, choices, region), top


@pytest.mark.parametrize(
    ("choices", "masks", "k"),
    [
        (((1, 0), (0,), (2, 3), (0,)), [3, 1, 3, 1], 2),
        (((0,), (1, 0), (0, 4), (1, 3)), [1, 3, 2, 3], 3),  # a forced swap takes one of two equal phrases up
    ],
)
def test_an_order_of_roots_that_float64_does_not_see(
    choices: tuple[tuple[int, ...], ...], masks: list[int], k: int
) -> None:
    """The second root comes first, by less than a rounding: the other way round the margin would hold."""
    recipe, truth, _ = beyond_float64([[0, 1], [2, 3]], choices, masks, k)
    (number,), (error,) = recipe.margin(0, 1)
    assert truth.margin(0, 1) < -1
    assert within(number, truth.margin(0, 1), error)
    assert number - error < 0


def test_a_word_that_lowers_a_root_by_less_than_float64_sees() -> None:
    """It lowers both roots, so that only one is taken, and l is the constant."""
    recipe, truth, top = beyond_float64([[0, 1], [0, 2]], ((2, 1), (0, 5), (6, 5)), [3, 3, 3], 1)
    found = recipe.bounds(top)
    assert truth.bounds(top)[0][0] == 2
    assert within(found.low[0, 0], 2, found.low_error[0, 0])


def test_a_word_that_may_take_the_last_root_away() -> None:
    """It lowers the first root, and the next by less than float64 sees: l is not what that one is, but the constant."""
    recipe, truth, top = beyond_float64([[1, 0], [0, 2]], ((2, 1), (7,), (0, 5)), [3, 1, 3], 1, 0)
    found = recipe.bounds(top)
    assert truth.bounds(top)[0][0] == 2
    assert within(found.low[0, 0], 2, found.low_error[0, 0])


def test_of_equal_phrases_the_first_comes_first() -> None:
    """As the page has it: what makes no difference to float64 is known nevertheless."""
    choices = ((0,), (1, 0), (0,), (1, 3))
    recipe, truth, _ = beyond_float64([[0, 1], [2, 3]], choices, [1, 3, 1, 3], 2)
    (number,), (error,) = recipe.margin(0, 1)
    assert truth.margin(0, 1) > 0
    assert number - error > 0


def test_what_is_screened_is_accepted_by_check_py_at_the_border(tmp_path: Path) -> None:
    """The least bias of float32 with which the page proves a text is enough for both, the next below for neither."""
    decided = 0
    for seed in range(1, 60, 2):
        found = drawn(seed, whole=True)
        if not found.region.heights:
            continue
        bias = found.network.nodes[-1].layer.bias[0]  # type: ignore[union-attr]
        margin = exact.Recipe(found.network, found.choices, found.region).margin(0, 1)
        border = np.float32(Fraction(float(bias)) - margin)
        for number in (np.nextafter(border, np.float32(-np.inf)), border, np.nextafter(border, np.float32(np.inf))):
            case = Case(with_bias(found.data, float(number)), found.choices, 0, 2)
            truth = exact.Recipe(read(case.data, found.choices), found.choices, found.region).margin(0, 1) >= 0
            written = certificate(case, found)
            model = read_model(case.data)
            path = tmp_path / "model.onnx"
            path.write_bytes(case.data)
            try:
                check.check_certificate(written, model)
                accepted = True
            except check.Refused:
                accepted = False
            assert accepted == truth
            screen = Screen(open_model(path), model, None)
            if accepted:
                decided += same_or_nothing(screen, written)
            else:
                assert screen.verdict(json.loads(written), 60.0) is None
    assert decided >= 15


def certificate(case: Case, found: Drawn) -> bytes:
    value = json.loads(c.write_certificate(statement(case, lower=c.Lower(found.region.k, "real", c.Linear()))))
    value["lower"]["tree"] = b64encode(table_of(found) + b"\1").decode()
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("is_rectifier", "counts", "value", "read"),
    [
        (False, True, 7 * 128 + 64, True),
        (False, True, 8 * 128, False),
        (False, True, 65 + 128, False),
        (True, True, 64, True),
        (True, True, 65, False),
        (True, True, 128, True),
        (True, True, 8 * 128 + 64, True),
        (True, True, 9 * 128, False),
        (True, True, 65 + 128, False),
        (True, False, 64, True),
        (True, False, 128, False),
    ],
)
def test_tables_hold_at_most_seven_stairs_of_what_counts_swaps(
    is_rectifier: bool, counts: bool, value: int, read: bool
) -> None:
    """As check.py has it: what is out of range is left to it."""
    tree = bytes([8, 1, 3, 1, 0]) + leb128(value) + b"\1"
    reader = Reader(tree, [2], [1], {3: Named(5, 1, is_rectifier, True, counts)}, 1)
    try:
        (leaf,) = reader.leaves()
    except Unsure:
        assert not read
    else:
        assert read
        assert leaf.settings.slopes == {(5, 0): value}
        assert reader.heights == (value >= 128)


def test_the_last_value_set_of_an_element_counts() -> None:
    """A slope below a height, and a height below a slope; the others stay what they are."""
    first = bytes([8, 1, 3, 3, 0]) + leb128(128 + 16) + b"\1\40\1" + leb128(256)
    second = bytes([8, 1, 3, 2, 0, 16, 1]) + leb128(320)
    (leaf,) = Reader(first + second + b"\1", [2], [1], {3: Named(5, 3, True, True, True)}, 1).leaves()
    assert leaf.settings.slopes == {(5, 0): 16, (5, 1): 320, (5, 2): 256}


def test_joint_groups_have_slopes_only() -> None:
    tree = bytes([10, 1, 3, 1, 0]) + leb128(128) + b"\1"
    with pytest.raises(Unsure):
        Reader(tree, [2], [1], {3: Named(5, 1, True, True, True)}, 1).leaves()


def test_equal_names_are_equal_numbers() -> None:
    """And equal phrases have equal names."""
    shared = 0
    for seed in range(60):
        found = drawn(seed)
        original = [options[0] for options in found.choices]
        names = names_at_cut(found.network, original)
        values = exact.values(found.network, original, found.network.cut)
        numbers = [number for index in found.network.cut for number in values[index]]
        known: dict[int, Fraction] = {}
        for name, number in zip(names.tolist(), numbers, strict=True):
            assert known.setdefault(name, number) == number
        shared += len(known) < len(numbers)
    assert shared > 10
