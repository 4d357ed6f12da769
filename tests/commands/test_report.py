"""The report: numbers that follow from the lines, whatever is open; a page that says what the run says, escaped."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from itertools import chain, combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_rows import rows_in
from rich.cells import cell_len
from rich.console import Console
from tiny import ROWS, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.gates.known_ends import Short, mmws
from swapproof.verifier.pages.figures import bars_of, scale_top
from swapproof.verifier.pages.page import chosen_radii, ends, interval, page
from swapproof.verifier.pages.run_tables import print_summary, rows_table
from swapproof.verifier.roads import certify
from swapproof.verifier.runs.results import pieces
from swapproof.verifier.runs.run_folder import Run
from swapproof.verifier.runs.run_summary import STAGE, summarise, summary_from
from swapproof.verifier.runs.store import Store

Capture = pytest.CaptureFixture[str]


WORDS = 9


def line(id: int, status: str, low: int, high: int | None) -> dict[str, Any]:
    """A line of results.jsonl with these ends."""
    return {
        "id": id,
        "text": "a good film",
        "label": 1,
        "predicted": 0 if status == "already_wrong" else 1,
        "positions": WORDS,
        "candidates": 5,
        "cut": 0,
        "unknown": 0,
        "min_swaps": {"low": low, "high": high},
        "status": status,
        "level": "float32",
        "witness": None,
        "certificate": None,
        "engine": "enumerate",
        "seconds": 0.5,
        "evaluations": 10,
        "requests": 2,
    }


exact_lines = st.integers(1, 9).map(lambda low: ("exact", low, low))
open_lines = st.tuples(st.integers(0, 9), st.integers(1, 5)).map(lambda pair: ("open", pair[0], sum(pair)))
unbounded_lines = st.integers(0, 9).map(lambda low: ("open", low, None))
other_lines = st.sampled_from([("already_wrong", 0, 0), ("unbreakable", 4, None), ("ambiguous", 0, 3)])
line_lists = st.lists(exact_lines | open_lines | unbounded_lines | other_lines, max_size=7)


def shorts(lines: list[tuple[str, int, int | None]]) -> list[Short]:
    return [Short(id, *one, WORDS) for id, one in enumerate(lines)]


class TestSummary:
    @given(line_lists)
    def test_the_ends_of_mmws_are_the_least_and_the_greatest_mean_that_the_open_texts_can_make(
        self, lines: list[tuple[str, int, int | None]]
    ) -> None:
        """An open text without a witness may turn out unbreakable and then does not count, or break at its last word:
        every such case is tried."""
        found = mmws(shorts(lines))
        certain = [(low, high) for status, low, high in lines if status in ("exact", "open") and high is not None]
        doubtful = [(low, WORDS) for status, low, high in lines if status == "open" and high is None]
        subsets = chain.from_iterable(combinations(doubtful, size) for size in range(len(doubtful) + 1))
        cases = [all_ for some in subsets if (all_ := [*certain, *some])]
        lows, highs = [[sum(pair[end] for pair in all_) / len(all_) for all_ in cases] for end in (0, 1)]
        assert found["low"] == (pytest.approx(min(lows), abs=1e-6) if cases else None)
        assert found["high"] == (pytest.approx(max(highs), abs=1e-6) if cases else None)
        assert found["texts"] == len(certain)

    @given(line_lists)
    def test_every_interval_of_the_summary_is_one(self, lines: list[tuple[str, int, int | None]]) -> None:
        summary = summarise([line(id, *one) for id, one in enumerate(lines)])
        low, high = summary["mmws"]["low"], summary["mmws"]["high"]
        assert low is None or high is None or low <= high
        shares = [(both["low"], both["high"]) for both in summary["accuracy_under_attack"].values()]
        assert all(0 <= low <= high <= 1 for low, high in shares)
        assert shares == sorted(shares, reverse=True)
        assert list(summary["certified_accuracy"].values()) == [low for low, _ in shares]

    def test_exact_texts_make_an_exact_mean(self) -> None:
        lines = [line(0, "exact", 2, 2), line(1, "exact", 5, 5), line(2, "unbreakable", 4, None)]
        lines.append(line(3, "already_wrong", 0, 0))
        summary = summarise(lines)
        assert (summary["mmws"]["low"], summary["mmws"]["high"]) == (3.5, 3.5)
        assert summary["accuracy"] == 0.75
        assert summary["certified_accuracy"] == {"1": 0.75, "2": 0.5, "3": 0.5, "4": 0.5, "5": 0.25}

    def test_a_contradiction_overrides_every_other_verdict(self) -> None:
        lines = [line(0, "exact", 2, 2), line(1, "open", 0, None) | {"contradiction": "a proof is refused"}]
        for radius in (None, 1, 3):
            assert summarise(lines, radius)["verdict"]["exit_code"] == 4

    @pytest.mark.parametrize(
        ("lines", "radius", "code"),
        [
            ([("exact", 3, 3)], 2, 0),
            ([("exact", 3, 3)], 3, 1),
            ([("open", 3, None)], 2, 0),
            ([("open", 3, None)], 3, 3),
            ([("open", 1, 3)], 3, 1),
            ([("open", 1, 3)], 2, 3),
            ([("open", 1, 3), ("exact", 2, 2)], 2, 1),
            ([("unbreakable", 4, None)], 100, 0),
            ([("already_wrong", 0, 0)], 0, 3),
            ([("already_wrong", 0, 0), ("exact", 2, 2)], 1, 0),
            ([("already_wrong", 0, 0), ("exact", 2, 2)], 2, 1),
            ([("ambiguous", 0, None)], 0, 3),
            ([("open", 0, None), ("ambiguous", 0, None), ("already_wrong", 0, 0)], None, 0),
            ([], 1, 3),
        ],
    )
    def test_the_verdict_follows_from_the_radius(self, lines: list[Any], radius: int | None, code: int) -> None:
        summary = summarise([line(id, *one) for id, one in enumerate(lines)], radius)
        assert summary["verdict"]["exit_code"] == code

    def test_texts_that_are_not_settled_leave_the_run_incomplete_unless_it_is_already_violated(self) -> None:
        lines = [line(0, "exact", 2, 2)]
        assert summarise(lines, None, expected=2)["verdict"]["exit_code"] == 3
        assert summarise(lines, 1, expected=2)["verdict"]["exit_code"] == 3
        assert summarise(lines, 2, expected=2)["verdict"]["exit_code"] == 1


class TestShowing:
    def test_an_interval_whose_ends_meet_is_a_number(self) -> None:
        assert interval({"low": 3, "high": 3}) == "3"
        assert interval({"low": 2, "high": 5}) == "[2, 5]"
        assert interval({"low": 2, "high": None}) == "[2, ?]"
        assert interval({"low": None, "high": None}) == "none"
        assert interval({"low": 1.5, "high": 2.25}) == "[1.500, 2.250]"
        assert ends(line(0, "unbreakable", 4, None)) == "never"

    def test_pieces_are_the_text_and_the_sentence(self) -> None:
        text = "A good, good film"
        swaps = [
            {"position": 2, "to": "fine", "characters": [8, 12]},
            {"position": 1, "to": "great", "characters": [2, 6]},
        ]
        found = list(pieces(text, swaps))
        assert "".join(piece.before for piece in found) == text
        assert "".join(piece.after for piece in found) == "A great, fine film"
        assert [piece.after for piece in found if piece.swapped] == ["great", "fine"]

    @pytest.mark.parametrize("width", [64, 80, 99, 100, 120, 200])
    def test_the_table_fills_the_terminal_and_cuts_only_the_text(self, width: int) -> None:
        texts = ["good " * 100, "w" * 2000, "\N{CLAPPER BOARD}" * 90, "هذا فيلم " * 40, "short"]
        lines = [line(10**id, "already_wrong", 0, 0) | {"text": text} for id, text in enumerate(texts)]
        console = Console(width=width, file=io.StringIO())
        console.print(rows_table(lines, len(lines), width))
        assert isinstance(console.file, io.StringIO)
        _, *shown = console.file.getvalue().splitlines()
        assert {cell_len(row) for row in shown} == {width}
        for one, row in zip(lines, shown[3:-1], strict=True):
            assert [cell.strip() for cell in row.split("│")[1:4]] == [str(one["id"]), "0", "already wrong"]
            assert "0.500" in row
            assert row.endswith("… │") == (one["text"] != "short")

    def test_every_text_is_in_one_bar_of_the_histogram(self) -> None:
        lines = [line(0, "exact", 2, 2), line(1, "open", 1, None), line(2, "ambiguous", 0, 3)]
        lines += [line(3, "already_wrong", 0, 0), line(4, "unbreakable", 4, None)]
        bars = list(bars_of(summarise(lines)))
        assert [(bar.name, bar.total) for bar in bars] == [("0", 1), ("1", 1), ("2", 1), ("never", 1), ("ambiguous", 1)]

    def test_radii_at_which_nothing_changes_are_left_out_but_the_one_asked_for(self) -> None:
        summary = summarise([line(0, "exact", 2, 2), line(1, "exact", 6, 6)], 4)
        assert [radius for radius, _, _ in chosen_radii(summary)] == [1, 2, 4, 6]

    @given(st.integers(1, 10**6))
    def test_the_axis_has_four_whole_steps_and_is_well_filled(self, largest: int) -> None:
        top = scale_top(largest)
        assert top >= largest
        assert top % 4 == 0
        assert top <= 4 or top < 2.6 * largest


class Page(HTMLParser):
    """The ids, links and tags of a page, which must be well formed."""

    VOID = frozenset({"meta", "input", "br", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.resources: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        if found.get("id"):
            self.ids.add(str(found["id"]))
        if tag == "a":
            self.links.append(str(found["href"]))
        self.resources += [str(found[name]) for name in ("src", "xlink:href") if name in found]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class TestPage:
    def page(self, run: Path) -> tuple[str, Page]:
        text = (run / "report.html").read_text(encoding="utf-8")
        return text, Page(text)

    def test_it_needs_nothing_else_and_every_link_leads_somewhere(self, tmp_path: Path) -> None:
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        text, page = self.page(run)
        assert page.resources == []
        assert "://" not in text
        assert len(page.links) > len(ROWS)
        for link in page.links:
            if link.startswith("#"):
                assert link[1:].split("?")[0] in page.ids
            else:
                assert (run / link).is_file()

    def test_what_is_evaluated_in_full_is_not_shown_as_proved(self, tmp_path: Path) -> None:
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        with Store.open(Run(run).store, readonly=True) as store:
            facts, proved = store.facts(), list(store.results(STAGE))
        replayed = [line | {"level": "replay"} for line in proved]
        for lines, evaluated in ((proved, False), (replayed, True)):
            summary = summary_from(lines, facts)
            text = b"".join(page(summary, facts, lines).written()).decode()
            said = [
                ">of it evaluated in full<",
                "evaluated in full, not proved;",
                "it is not proved, every sentence with",
            ]
            assert [one in text for one in said] == [evaluated] * 3
            assert ("under any 2 swaps, proved;" in text) == (not evaluated)
            assert ("proved unbreakable" in text) == (not evaluated)
            console = Console(width=100, file=io.StringIO())
            print_summary(run, summary, console)
            assert isinstance(console.file, io.StringIO)
            assert ("evaluated in full" in console.file.getvalue().split("Certified:")[0]) == evaluated

    def test_it_holds_every_line_as_it_is_and_what_its_words_can_be_swapped_for(self, tmp_path: Path) -> None:
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        _, options, rows = rows_in(self.page(run)[0])
        assert options is not None
        lines = {one["id"]: one for one in map(json.loads, (run / "results.jsonl").read_text().splitlines())}
        assert {line["id"]: line for line, _ in rows} == lines
        spaces = {one["id"]: one["choices"] for one in map(json.loads, (run / "spaces.jsonl").read_text().splitlines())}
        for line, places in rows:
            movable = [(place, found) for place, found in enumerate(spaces[line["id"]]) if len(found) > 1]
            assert [(place, options[number]) for place, number in places] == movable

    def test_figures_are_well_formed_svg(self, tmp_path: Path) -> None:
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        figures = re.findall(r"<svg.*?</svg>", self.page(run)[0], flags=re.DOTALL)
        assert len(figures) == 3
        histogram, *_ = map(ElementTree.fromstring, figures)
        bars = [bar.findtext("title") for bar in histogram.iter("rect")]
        assert bars == ["1: 2 texts", "2: 1 texts", "3: 1 texts", "never: 4 texts"]

    def test_what_users_wrote_is_escaped(self, tmp_path: Path, capsys: Capture) -> None:
        """Texts, labels and file names are data: neither HTML nor the markup of the terminal's tables."""
        evil = "<script>alert(1)</script> [bold]good[/bold] {{ 7 * 7 }} good"
        rows = [(evil, "<b>yes</b>"), ("awful", "no & no")]
        task = write_task(tmp_path / "task", rows, model_labels=["no & no", "<b>yes</b>"])
        run = certify(task, tmp_path / "run&").folder
        text, page = self.page(run)
        assert page.tags.count("script") == 2
        assert "alert(1)" not in text
        assert evil in [line["text"] for line, _ in rows_in(text)[2]]
        assert "&lt;b&gt;yes&lt;/b&gt;" in text
        assert main(["report", str(run)]) == 0
        assert "<script>alert(1)</script> [bold]good" in capsys.readouterr().out

    def test_texts_already_wrong_come_last_and_open_ones_say_why(self, tmp_path: Path) -> None:
        rows = [("awful", "negative"), ("awful", "positive"), ("a good film", "positive")]
        run = certify(write_task(tmp_path / "task", rows), tmp_path / "run", engines="greedy").folder
        _, _, shown = rows_in(self.page(run)[0])
        assert [line["status"] for line, _ in shown] == ["open", "open", "already_wrong"]
        for line, _ in shown:
            assert ("reason" in line) == (line["status"] == "open")

    def test_it_is_rebuilt_from_the_store_alone(self, tmp_path: Path, capsys: Capture) -> None:
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        before = (run / "report.html").read_bytes()
        for name in ("report.html", "results.jsonl", "summary.json", "task.toml"):
            (run / name).unlink()
        assert main(["report", str(run)]) == 0
        assert (run / "report.html").read_bytes() == before
        out = capsys.readouterr().out
        assert "all 8 texts ended in a checked interval" in out
        assert out.splitlines()[-1] == str(run / "report.html")

    def test_a_run_killed_while_it_began_is_reported_as_unfinished(self, tmp_path: Path, capsys: Capture) -> None:
        """The radius is stored after all else, so a kill just before leaves a store without it."""
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
            store.execute("DELETE FROM results")
            store.execute("DELETE FROM facts WHERE name = 'radius'")
        assert main(["report", str(run)]) == 3
        assert "8 of 8 texts are not settled yet" in capsys.readouterr().out

    def test_every_table_prints_its_definitions(self, tmp_path: Path, capsys: Capture) -> None:
        run = certify(write_task(tmp_path / "task"), tmp_path / "run").folder
        assert main(["report", str(run)]) == 0
        out = " ".join(capsys.readouterr().out.split())
        for definition in ("[low, high]: low is proved", "MMWS: mean of min_swaps over", "Certified: texts robust"):
            assert definition in out
