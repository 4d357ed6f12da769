"""The page of attacks: its figures count what the lines say, and nothing that users wrote is taken for markup."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tiny import write_task

from swapproof.verifier.attacks.attack_comparison import compared
from swapproof.verifier.cli import main
from swapproof.verifier.pages.attack_figures import by_requests, by_swaps, curves, scatter, style
from swapproof.verifier.pages.printing.attack_printing import AGAINST_EXACT
from swapproof.verifier.pages.sheets.attacked_sheet import claim_of


def line(high: int | None, requests: int, *, wrong: bool = False) -> dict[str, Any]:
    return {"status": "already_wrong" if wrong else "open", "min_swaps": {"high": high}, "requests": requests}


LINES = [line(1, 5), line(3, 50), line(3, 20), line(None, 99), line(0, 0, wrong=True)]


def test_success_rises_with_what_is_spent() -> None:
    assert by_swaps(LINES, 4) == [(1.0, 0.25), (3.0, 0.75)]
    assert by_requests(LINES, 4) == [(5.0, 0.25), (20.0, 0.5), (50.0, 0.75)]


def test_a_scatter_has_a_dot_for_every_pair_and_says_its_texts() -> None:
    drawn = ElementTree.fromstring(scatter("<a>", "b & c", [(1, 1), (1, 1), (2, 4)]))
    titles = [one.text for one in drawn.iter("title")]
    assert "<a> 1, b & c 1: 2 texts" in titles
    assert "<a> 2, b & c 4: 1 texts" in titles
    radii = sorted(float(circle.attrib["r"]) for circle in drawn.iter("circle"))
    assert radii[1] == pytest.approx(radii[0] * 2**0.5, abs=0.1)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_curves_stay_in_their_frame(logarithmic: bool) -> None:
    many = [(float(x), x / 5000) for x in range(1, 5001)]
    lines = {"one": by_requests(LINES, 4), "many": many, "nothing": []}
    drawn = ElementTree.fromstring(curves("t", "below", lines, logarithmic=logarithmic))
    found = [one.attrib["points"] for one in drawn.iter("polyline")]
    assert len(found) == 3
    for points in found:
        corners = [tuple(map(float, corner.split(","))) for corner in points.split()]
        assert all(0 <= x <= 480 and 0 <= y <= 230 for x, y in corners)
        assert corners == sorted(corners, key=lambda corner: (corner[0], -corner[1]))
        assert len(corners) < 400


def test_lines_are_told_apart() -> None:
    assert len({style(number) for number in range(24)}) == 24


def test_a_comparison_leaves_one_page_that_loads_nothing(tmp_path: Path) -> None:
    task, out = write_task(tmp_path / "task"), tmp_path / "out"
    assert main(["certify", str(task), "--out", str(tmp_path / "exact")]) == 0
    options = ["--compare", "beam,random", "--exact", str(tmp_path / "exact"), "--out", str(out)]
    assert main(["attack", str(task), *options]) == 0
    page = (out / "report.html").read_text()
    assert page.count("<figure>") == 5
    assert "Swaps: beam against exact minimum" in page
    assert not re.search(r"src=|url\(|@import|https?://", page.replace("#texts", ""))
    assert main(["attack", str(task), *options]) == 0
    assert (out / "report.html").read_text() == page


def test_a_tie_is_called_one() -> None:
    def claim(*broken: int) -> str:
        methods = [{"method": f"m{place}", "succ": succ, "win": succ} for place, succ in enumerate(broken)]
        return claim_of({"methods": methods, "texts": 60, "breakable": 39})

    assert claim(39, 39) == "The attacks tie: each breaks 39 of 60 texts."
    assert claim(38, 38) == "The attacks tie: each breaks 38 of 60 texts; some attack breaks 39."
    assert claim(38, 39) == "m1 breaks 39 of 60 texts; some attack breaks 39."


def test_the_legend_explains_only_the_columns_that_are_shown() -> None:
    lines = [{**line(1, 5), "id": 0, "positions": 3, "evaluations": 5, "seconds": 0.1}]
    alone, known = (compared({"beam": lines}, exact) for exact in ({}, {0: 1}))
    for name in AGAINST_EXACT:
        assert name.lower() not in alone["definition"].lower()
        assert name.lower() in known["definition"].lower()


def test_one_run_has_a_page_that_check_does_not_mind(tmp_path: Path) -> None:
    task, out = write_task(tmp_path / "task"), tmp_path / "out"
    assert main(["attack", str(task), "--method", "beam", "--out", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert page.count("<figure>") == 2
    assert "<h1>What does beam break?</h1>" in page
    assert main(["check", str(out), "--quiet"]) == 0
