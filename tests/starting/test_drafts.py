"""A task file says what was meant, whatever the words are, and its comments are comments."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from swapproof.verifier.starting.drafts import Draft, from_folder

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES: Any = st.one_of(
    WORDS,
    st.booleans(),
    st.integers(0, 10**6),
    st.lists(WORDS, min_size=1, max_size=4),
    st.dictionaries(WORDS, WORDS, min_size=1, max_size=4),
)


@given(VALUES, WORDS, st.booleans())
def test_values_are_read_back_and_reasons_are_not(value: Any, reason: str, live: bool) -> None:
    draft = Draft()
    draft.set("model", "labels", value, reason, live=live)
    draft.set("data", "text", "content", reason)
    read = tomllib.loads(draft.text([reason], Path.cwd()))
    assert read.get("model", {}) == ({"labels": value} if live else {})
    assert read["data"] == {"text": "content"}


def test_paths_are_relative_where_that_says_less() -> None:
    assert from_folder(Path("/a/b/data.csv"), Path("/a/b")) == "data.csv"
    assert from_folder(Path("/a/b/data.csv"), Path("/a/b/tasks")) == "../data.csv"
    assert from_folder(Path("/a/b/data.csv"), Path("/c/d/e/f")) == "/a/b/data.csv"
    draft = Draft()
    draft.set("data", "file", Path("/a/b/data.csv"), "")
    assert tomllib.loads(draft.text([], None))["data"]["file"] == "/a/b/data.csv"


def test_keys_stand_in_the_order_of_the_sections() -> None:
    draft = Draft()
    for key in ("labels", "vocabulary", "onnx"):
        draft.set("model", key, "x", "why")
    lines = [line.split(" = ")[0] for line in draft.text([], None).splitlines() if " = " in line]
    assert lines == ["onnx", "vocabulary", "labels"]
