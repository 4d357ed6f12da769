"""Lower lines of maxima that count swaps, in float64: within their errors of the page's, and nothing at the border."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from fractions import Fraction
from math import nextafter
from pathlib import Path

import exact_recipe as exact
import numpy as np
from counted_regions import Drawn, drawn, read, table_of, with_bias
from proof_cases import Case, statement
from screened_regions import recipe_of
from screening_cases import same_or_nothing, within

from swapproof.encodings.network import Affine, Maximum, Network
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.screening import Screen
from swapproof.verifier.screening.numbers.equal_elements import names_at_cut


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
    assert len(doubtful) > 200
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
