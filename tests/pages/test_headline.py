"""The sentence of the banner: never more than was found, and never called proved when it was only evaluated."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_rows import ABOUT, facts, made_lines

from swapproof.verifier.pages.headline import down, headline, up
from swapproof.verifier.pages.page import banner
from swapproof.verifier.runs.run_summary import summarise, summary_from


def lines_with(*ends: tuple[str, int, int | None], level: str = "float32") -> list[dict[str, Any]]:
    lines, _ = made_lines(len(ends), seed=3)
    return [
        line | {"status": status, "min_swaps": {"low": low, "high": high}, "level": level,
                "predicted": 1 - line["label"] if status == "already_wrong" else line["label"]}
        for line, (status, low, high) in zip(lines, ends, strict=True)
    ]  # fmt: skip


def sentence(lines: list[dict[str, Any]], radius: int | None = None) -> str:
    found = headline(summarise(lines, radius))
    assert found is not None
    return found.sentence


def test_it_claims_a_share_with_its_ground_its_interval_and_the_weakest() -> None:
    lines = lines_with(("exact", 3, 3), ("exact", 1, 1), ("unbreakable", 9, None), ("already_wrong", 0, 0))
    assert sentence(lines) == (
        "50.0 % of the 4 texts keep the right answer under any 2 swaps, proved; "
        "95 % interval for the population 6 to 94 %; the weakest text falls to 1 swap"
    )


def test_it_speaks_of_the_swaps_that_were_asked_for() -> None:
    lines = lines_with(("exact", 3, 3), ("exact", 2, 2), ("exact", 2, 2))
    assert "33.3 % of the 3 texts keep the right answer under any 2 swaps" in sentence(lines)
    assert "100.0 % of the 3 texts keep the right answer under any 1 swap," in sentence(lines, 1)
    assert sentence(lines, 7).startswith("0.0 % of the 3 texts keep the right answer under any 7 swaps; ")
    assert sentence(lines).endswith("the weakest 2 texts fall to 2 swaps")


def test_where_no_text_withstands_two_swaps_it_speaks_of_one() -> None:
    assert "under any 1 swap," in sentence(lines_with(("exact", 2, 2)))


def test_open_texts_make_it_a_range() -> None:
    found = sentence(lines_with(("open", 1, None), ("exact", 5, 5)))
    assert found.startswith("Between 50.0 % and 100.0 % of the 2 texts keep")
    assert found.endswith("the weakest text falls to 5 swaps")


@pytest.mark.parametrize(
    ("level", "ground"),
    [
        ("float32", ", proved;"),
        ("real", ", proved over real arithmetic;"),
        ("kernel", ", proved within stated errors of the runtime's functions (kernel);"),
        ("replay", ", evaluated in full, not proved;"),
    ],
)
def test_a_weaker_level_is_not_shown_as_a_stronger_one(level: str, ground: str) -> None:
    assert f"2 swaps{ground}" in sentence(lines_with(("exact", 4, 4), level=level))


def test_several_levels_have_their_shares() -> None:
    lines = lines_with(("exact", 4, 4)) + lines_with(("exact", 4, 4), level="replay")
    assert "(50.0 % evaluated in full, not proved, 50.0 % proved)" in sentence(lines) or (
        "(50.0 % proved, 50.0 % evaluated in full, not proved)" in sentence(lines)
    )


def test_runs_that_did_not_check_or_say_little_claim_nothing() -> None:
    lines = lines_with(("exact", 4, 4))
    assert headline(summarise([])) is None
    assert headline(summarise([lines[0] | {"contradiction": "refused"}])) is None
    idle = summarise([lines[0] | {"candidates": 0}])
    assert idle["vacuous"]
    assert headline(idle) is None
    assert banner(idle) == "incomplete"


@given(st.integers(1, 60), st.integers(0, 10**6), st.integers(0, 4))
def test_it_follows_from_the_lines_by_counting(texts: int, seed: int, radius: int) -> None:
    lines, _ = made_lines(texts, seed)
    random.Random(seed).shuffle(lines)
    summary = summary_from(lines, facts(texts) | {"radius": str(radius)})
    found = headline(summary)
    if summary["vacuous"]:
        assert found is None
        return
    assert found is not None
    ends = [(line["status"], *line["min_swaps"].values()) for line in lines]
    held = sum(status == "unbreakable" or (status != "ambiguous" and low > found.radius) for status, low, _ in ends)
    unbroken = sum(high is None or high > found.radius for _, _, high in ends)
    assert (round(found.low * texts), round(found.high * texts)) == (held, unbroken)
    assert found.population[0] <= Fraction(held, texts) <= Fraction(unbroken, texts) <= found.population[1]
    highs = [high for status, _, high in ends if high]
    assert found.weakest == ((min(highs), highs.count(min(highs))) if highs else None)


@given(st.integers(0, 10**6))
def test_percentages_are_rounded_to_the_safe_side(millionths: int) -> None:
    share = millionths / 10**6
    exact = Fraction(millionths, 10**6) * 100
    assert Fraction(down(share)) <= exact <= Fraction(up(share))
    assert Fraction(up(share)) - Fraction(down(share)) <= Fraction(1, 10)


def test_the_made_up_runs_say_what_a_run_says() -> None:
    assert set(ABOUT) <= set(summary_from([], facts(0)))
