"""Figures of measures and comparisons: what they draw follows from the numbers, and names of users are escaped."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest

from swapproof.verifier.pages.sheets.plots import (
    Series,
    density,
    drawn_bars,
    drawn_histogram,
    drawn_intervals,
    drawn_lines,
    drawn_violins,
    quantile,
)


def test_the_density_of_shares_has_its_mass_between_0_and_1() -> None:
    for values in ([1.0] * 20, [0.0, 1.0], [0.2, 0.4, 0.9]):
        heights = density(sorted(values))
        total = sum((a + b) / 2 for a, b in itertools.pairwise(heights)) / (len(heights) - 1)
        assert total > 0
        assert max(heights) == heights[-1] or values != [1.0] * 20


def test_quartiles_are_values_that_are_there() -> None:
    assert [quantile([1, 2, 3, 4], share) for share in (0.25, 0.5, 0.75, 1.0)] == [2, 3, 4, 4]


@pytest.mark.parametrize(
    "drawn",
    [
        drawn_lines("<a>", [Series("<b>", ((0, 0.1, 0.2), (3, 0.3, 0.3)))], "c & d"),
        drawn_lines("nothing", [], "x"),
        drawn_histogram("<a>", [0.0, 0.5, 1.0], "c & d"),
        drawn_bars("<a>", [("<b>", 3)], "c & d"),
        drawn_bars("nothing", [], "x"),
        drawn_violins("<a>", [("<b>", [0.5, 0.5]), ("none", [])], "c & d"),
        drawn_intervals("<a>", [("<b>" * 20, -0.3, -0.2, 0.1, 0.4)], "c & d"),
        drawn_intervals("nothing moved", [("x", 0.0, 0.0, 0.0, 0.0)], "x"),
    ],
)
def test_every_figure_is_well_formed_and_has_a_name(drawn: str) -> None:
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root.get("aria-label")


def test_a_histogram_counts_every_value_once() -> None:
    values = [0.0, 0.04, 0.05, 0.999, 1.0]
    root = ElementTree.fromstring(drawn_histogram("t", values, "x"))
    titles = [title.text or "" for rect in root.iter("rect") for title in rect.iter("title")]
    assert sum(int(title.rpartition(" ")[2]) for title in titles) == len(values)
    assert titles[0] == "0: 2"
    assert titles[-1] == "0.95: 2"


def test_an_interval_is_coloured_by_what_is_sure() -> None:
    rows = [("up", 0.1, 0.2, 0.2, 0.3), ("down", -0.3, -0.2, -0.2, -0.1), ("open", -0.1, 0.0, 0.0, 0.1)]
    root = ElementTree.fromstring(drawn_intervals("t", rows, "x"))
    assert [group.get("class") for group in root.iter("g")] == ["better", "worse", "unsure"]
