"""The page of every command but certify, in a headless Chromium: searched, sorted, filtered, opened, linked to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import CHROMIUM, Browser
from report_rows import made_lines

from swapproof.verifier.pages.sheets.plots import Series, drawn_intervals, drawn_lines, drawn_violins
from swapproof.verifier.pages.sheets.sheet import Card, Column, Figure, Grid, Part, Row, Rows, Sheet, sheet_page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")

READY = "document.documentElement.dataset.ready === '1'"
IDS = "[...document.querySelectorAll('#texts > tbody > tr:not(.detail)')].map((row) => +row.id.slice(4))"
LINES = made_lines(1000, seed=2)[0]
HOSTILE = "<script>alert(1)</script>"


def each() -> Iterator[Row]:
    for line in LINES:
        swaps = () if line["witness"] is None else line["witness"]["swaps"]
        high = line["min_swaps"]["high"]
        cells = (line["id"], line["status"], "never" if high is None else high, line["seconds"], line["text"])
        yield cells, [("What fools it", line["text"], swaps)] if swaps else []


def sheet() -> Sheet:
    figures = (
        Figure("Lines", drawn_lines("Lines", [Series("a", ((0, 0.5, 0.6), (1, 0.2, 0.4)))], "swaps", steps=True), "d."),
        Figure("Violins", drawn_violins("Violins", [("r = 1", [0.1, 0.9, 1.0]), ("none", [])], "PR"), "d."),
        Figure("Intervals", drawn_intervals("Intervals", [(HOSTILE, -0.1, 0.0, 0.01, 0.2)], "points"), "d."),
    )
    columns = (
        Column("text", "number"),
        Column("status", "choice"),
        Column("swaps", "number"),
        Column("seconds", "number"),
        Column("what is said", "text"),
    )
    return Sheet(
        HOSTILE,
        "lead",
        "neutral",
        f"A claim about {HOSTILE}.",
        cards=(Card("1", "one", "meaning"),),
        parts=(Part("Figures", figures, (Grid("Numbers", ("a", "b"), (("x", "1"),), "d."),)),),
        rows=Rows("As made.", columns, len(LINES), each, "d."),
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sheet") / "page.html"
    path.write_bytes(b"".join(sheet_page(sheet()).written()))
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser.begun(tmp_path_factory.mktemp("profile")) as browser:
        browser.resize(1280, 900)
        yield browser


def show(browser: Browser, page: Path, place: str = "") -> None:
    browser.open("about:blank")
    browser.open(page.as_uri() + place, READY)


def ids(browser: Browser) -> list[int]:
    found: list[int] = browser.value(IDS)
    return found


def test_it_shows_all_without_a_fault_a_request_or_a_strange_script(browser: Browser, page: Path) -> None:
    browser.requests.clear()
    show(browser, page)
    assert ids(browser) == list(range(50))
    assert browser.text("shown") == "1,000 texts"
    assert {address for address in browser.requests if address != "about:blank"} == {page.as_uri()}
    assert browser.faults == []
    assert browser.value("document.querySelectorAll('svg').length") == 3
    assert browser.value("document.querySelector('h1').textContent") == HOSTILE
    assert sheet_page(sheet()).is_at(page)


def test_rows_are_sorted_filtered_and_searched(browser: Browser, page: Path) -> None:
    show(browser, page)
    browser.click("[data-column=seconds] button")
    browser.click("[data-column=seconds] button")
    slowest = sorted(LINES, key=lambda line: (-line["seconds"], line["id"]))
    assert ids(browser) == [line["id"] for line in slowest[:50]]
    assert browser.value("document.querySelector('[data-column=seconds]').getAttribute('aria-sort')") == "descending"
    browser.click("[data-column=swaps] button")
    some = [line["min_swaps"]["high"] for line in LINES if line["id"] in ids(browser)]
    assert None not in some
    browser.value(
        "(() => { const select = document.querySelector('[data-filter=status]'); select.value = 'open'; "
        "select.dispatchEvent(new Event('input')); })()"
    )
    opened = {line["id"] for line in LINES if line["status"] == "open"}
    assert set(ids(browser)) <= opened
    assert browser.text("shown") == f"{len(opened)} of 1,000 texts"
    word = next(line for line in LINES if line["status"] == "open" and line["witness"])["witness"]["swaps"][0]["to"]
    browser.press("/")
    browser.type(word.upper())
    assert browser.value("document.querySelectorAll('.chip').length") == 2
    assert ids(browser)
    address = browser.value("location.href")
    show(browser, page, "#" + address.split("#")[1])
    assert set(ids(browser)) <= opened


def test_a_row_opens_to_its_swaps_and_can_be_linked_to(browser: Browser, page: Path) -> None:
    line = next(line for line in LINES[500:] if line["witness"])
    show(browser, page, f"#row-{line['id']}")
    swap = line["witness"]["swaps"][0]
    assert browser.value("document.querySelector('tr.detail ins').textContent") == swap["to"]
    assert browser.value("document.querySelector('tr.detail del').textContent") == swap["from"]
    browser.value(f"document.querySelector('#row-{line['id']} .toggle').focus()")
    browser.press("Enter", "\r")
    assert browser.value("document.querySelector('tr.detail')") is None


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1000, True)])
def test_nothing_lies_beside_the_screen(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.resize(width, 844, dark=dark)
    try:
        show(browser, page)
        assert browser.value("document.documentElement.scrollWidth") <= width
    finally:
        browser.resize(1280, 900)


def test_readers_who_hear_the_page_are_told_what_is_what(browser: Browser, page: Path) -> None:
    show(browser, page)
    assert browser.value("[...document.querySelectorAll('table')].every((one) => one.caption)")
    assert browser.value("document.querySelectorAll('thead th:not([scope])').length") == 0
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "combobox", "searchbox", "link")
    controls = [node for node in tree if node.get("role", {}).get("value") in roles]
    assert [node for node in controls if not node.get("name", {}).get("value")] == []
