"""Rows in a page: however they are deflated the page is the same, and no other rows make it so."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_rows import rows_in

from swapproof.encodings.errors import BadInput
from swapproof.verifier.pages.packed_rows import Choices, Page, kept_once, packed, read_choices, rows_of

HEAD, TAIL = b'<p>\n<script id="packed" type="text/plain">', b"</script>\n</p>\n"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
HOLDING = [b"[1]\n", b"[2]\n"]


def page_of(rows: list[bytes]) -> Page:
    return Page(HEAD, lambda: iter(rows), TAIL)


def is_page(tmp_path: Path, data: bytes, rows: list[bytes] = HOLDING) -> bool:
    path = tmp_path / "page.html"
    path.write_bytes(data)
    return page_of(rows).is_at(path)


def around(packed: bytes) -> bytes:
    return HEAD + base64.b64encode(packed) + TAIL


@given(st.lists(st.tuples(texts, st.lists(st.lists(texts, min_size=1, max_size=3), max_size=4)), max_size=5))
def test_rows_come_out_as_they_went_in(known: list[tuple[str, list[list[str]]]]) -> None:
    lines: list[dict[str, Any]] = [{"id": id, "text": text} for id, (text, _) in enumerate(known)]
    choices = kept_once((id, spaces) for id, (_, spaces) in enumerate(known))
    data = b"".join(page_of(list(rows_of({"labels": []}, lines, choices))).written())
    about, options, rows = rows_in(data.decode())
    assert about == {"labels": []}
    assert [line for line, _ in rows] == lines
    assert options is not None
    for (_, spaces), (_, places) in zip(known, rows, strict=True):
        assert [(at, options[number]) for at, number in places] == [
            (at, found) for at, found in enumerate(spaces) if len(found) > 1
        ]


def test_long_rows_are_packed_in_blocks_that_make_one_text(tmp_path: Path) -> None:
    rows = [f"{number * number}\n".encode() for number in range(60_000)]
    page = page_of(rows)
    assert len(list(packed(rows))) > 2
    (tmp_path / "page.html").write_bytes(b"".join(page.written()))
    assert page.is_at(tmp_path / "page.html")


@pytest.mark.parametrize("level", [0, 1, 6, 9])
def test_another_deflater_makes_the_same_page(tmp_path: Path, level: int) -> None:
    assert is_page(tmp_path, around(zlib.compress(b"".join(HOLDING), level)))


def other_pages() -> Iterator[tuple[str, bytes]]:
    good = zlib.compress(b"".join(HOLDING))
    whole = around(good)
    yield "other rows", around(zlib.compress(b"[1]\n[3]\n"))
    yield "a row more", around(zlib.compress(b"[1]\n[2]\n[3]\n"))
    yield "a row less", around(zlib.compress(b"[1]\n"))
    yield "something behind the rows", around(good + b"x")
    yield "a second stream", around(good + good)
    yield "a stream that does not end", around(good[:-5])
    yield "no stream", around(b"nothing of the kind")
    yield "a wrong checksum", around(good[:-1] + bytes([good[-1] ^ 1]))
    yield "no rows at all", HEAD + TAIL
    yield "a bomb", around(zlib.compress(b"0" * 50_000_000))
    yield "another head", whole.replace(b"<p>", b"<q>")
    yield "another tail", whole.replace(b"</p>", b"</q>")
    yield "something behind it", whole + b"\n"
    yield "nothing", b""
    yield "half of it", whole[: len(whole) // 2]
    yield "what is no base64", whole.replace(base64.b64encode(good), base64.b64encode(good)[:-1] + b"\n")
    yield "markup among the rows", whole.replace(base64.b64encode(good), b"</script><b>" + base64.b64encode(good)[12:])


OTHERS = dict(other_pages())


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_page_is_another_page(tmp_path: Path, name: str) -> None:
    assert not is_page(tmp_path, OTHERS[name])


def test_options_are_kept_once() -> None:
    found = kept_once([(0, [["good", "fine"], ["film"], ["good", "fine"]]), (7, [["good", "fine"]])])
    assert found == Choices(('["good","fine"]',), {0: "[[0,0],[2,0]]", 7: "[[0,0]]"})


def test_what_is_too_much_for_a_page_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swapproof.verifier.pages.packed_rows.MOST_CANDIDATES", 30)
    assert kept_once([(0, [["good", "fine"]])]) is not None
    assert kept_once([(0, [["good", "fine"]]), (1, [["bad", "awful"]])]) is None
    assert list(rows_of({}, [{"id": 0}], None)) == [b"[{},null]\n", b'[{"id":0},null]\n']


@pytest.mark.parametrize("text", ["{", "[]", "1", '{"id": 0}', '{"id": 0, "choices": 1}', '{"id": "x", "choices": []}'])
def test_a_file_that_is_none_of_spaces_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "spaces.jsonl").write_text(text + "\n")
    with pytest.raises(BadInput, match="not a file of frozen spaces"):
        read_choices(tmp_path / "spaces.jsonl")
    assert read_choices(tmp_path / "none.jsonl") is None


def test_a_place_without_a_line_in_the_file_has_no_options() -> None:
    found = kept_once([(0, [["good", "fine"]])])
    rows = [json.loads(row) for row in rows_of({}, [{"id": 1}], found)]
    assert rows[1] == [{"id": 1}, None]
