"""The page of measurements says what is kept beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from swapproof.verifier.cli import main
from swapproof.verifier.commands.benches.bench_page import FOLDER, TABLE, bench_page

PAGE = Path(__file__).parents[2] / "verifier" / "MEASUREMENTS.md"


def test_every_table_of_the_page_is_what_is_kept_beside_it() -> None:
    text = PAGE.read_text("utf-8")
    assert bench_page(PAGE) == text
    tables = len(re.findall(r"^\|---", text, re.MULTILINE))
    named = [found[1] for found in TABLE.finditer(text)]
    assert tables == len(named) == len(set(named)) > 0
    assert {path.stem for path in (PAGE.parent / FOLDER).iterdir()} == set(named)


def test_a_table_follows_its_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- table speed -->\n| old |\n\nafter\n")
    (tmp_path / FOLDER).mkdir()
    kept = tmp_path / FOLDER / "speed.json"
    kept.write_text(json.dumps({"columns": ["what", "figure"], "rows": [["one", "1 s"], ["two", ""]]}))
    assert main(["bench", "page", str(page)]) == 0
    expected = "before\n\n<!-- table speed -->\n| what | figure |\n|---|---|\n| one | 1 s |\n| two | |\n\nafter\n"
    assert capsys.readouterr().out == expected
    assert main(["bench", "page", str(page), "--write"]) == 0
    assert page.read_text() == expected == bench_page(page)
    kept.write_text('{"columns": ["what"], "rows": [["one", "two"]]}')
    with pytest.raises(ValueError, match=r"speed\.json: no results of a table"):
        bench_page(page)
    kept.unlink()
    with pytest.raises(ValueError, match=r"speed\.json"):
        bench_page(page)
