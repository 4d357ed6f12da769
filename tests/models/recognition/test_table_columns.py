"""Columns are known by their names, by what they hold, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from swapproof.models.errors import BadInput
from swapproof.models.recognition.data_sample import sample_of
from swapproof.models.recognition.table_columns import Columns, columns_of

LONG = "this is quite a long text"


def columns(tmp_path: Path, header: str, *rows: str, name: str = "data.csv", **given: str) -> Columns:
    (tmp_path / name).write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return columns_of(sample_of(tmp_path / name, 50), given)


@pytest.mark.parametrize(
    ("header", "row", "text", "label"),
    [
        ("label,sentence", "{n},{t}", "sentence", "label"),
        ("id,review,sentiment", "9{i},{t},{n}", "review", "sentiment"),
        ("Text,Class", "{t},{n}", "Text", "Class"),
        ("what_was_said,verdict", "{t},{n}", "what_was_said", "verdict"),
        ("id,title,text,label", "{i},a short one,{t},{n}", "text", "label"),
        ("split,label,sentence", "dev,{n},{t}", "sentence", "label"),
        ("label_text,label,text", "n{n},{n},{t}", "text", "label"),
    ],
)
def test_one_reading_is_found(tmp_path: Path, header: str, row: str, text: str, label: str) -> None:
    rows = [row.format(n=number % 2, i=number, t=f"{LONG} {number}") for number in range(20)]
    found = columns(tmp_path, header, *rows)
    assert (found.text.name, found.label.name) == (text, label)


def test_known_pairs_are_pairs(tmp_path: Path) -> None:
    found = columns(tmp_path, "sentence1,sentence2,gold_label", *[f"{LONG},{LONG} too,{n % 3}" for n in range(20)])
    assert found.context is not None
    assert (found.context.name, found.text.name, found.label.name) == ("sentence1", "sentence2", "gold_label")


@pytest.mark.parametrize(
    ("header", "rows", "said"),
    [
        ("one,two,label", [f"{LONG},{LONG} too,{n % 2}" for n in range(20)], "'one', 'two' all hold texts"),
        ("text,a,b", [f"{LONG},{n % 2},{n % 3}" for n in range(20)], "'a', 'b' could all hold the labels"),
        ("text,number", [f"{LONG},{n}" for n in range(20)], "no column of labels beside 'text'"),
        ("text,label", [f"{LONG},ham" for n in range(20)], "'label' has one label in every row (ham): take data of"),
        ("label,number", [f"{n % 2},{n}" for n in range(20)], "no column of texts"),
        ("label,text", [f"{LONG} {n},{n % 2}" for n in range(20)], "their names are swapped"),
        (f"{LONG},0", [f"{LONG} {n},{n % 2}" for n in range(20)], "line 1: "),
        ("text,text", [f"{LONG},{n % 2}" for n in range(20)], "more than one column 'text'"),
        ("text,label", [], "has no rows"),
    ],
)
def test_what_cannot_be_told_is_said_in_one_line(tmp_path: Path, header: str, rows: list[str], said: str) -> None:
    with pytest.raises(BadInput) as met:
        columns(tmp_path, header, *rows)
    assert said in str(met.value)
    assert "\n" not in str(met.value)


def test_a_row_that_cannot_be_read_is_named_where_no_columns_fit(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"one label in every row .*; a row cannot be read: .*data\.jsonl line 2"):
        columns(tmp_path, '{"text": "a", "label": 1}', "not json", name="data.jsonl")


def test_what_is_said_is_taken(tmp_path: Path) -> None:
    rows = [f"{LONG},{LONG} too,{n % 2}" for n in range(20)]
    found = columns(tmp_path, "one,two,label", *rows, text="two", context="one")
    assert (found.text.name, found.context and found.context.name) == ("two", "one")
    with pytest.raises(BadInput, match="no column 'three': there are 'one', 'two', 'label'"):
        columns(tmp_path, "one,two,label", *rows, text="three")


def test_a_column_of_answers_has_the_classes_of_the_labels(tmp_path: Path) -> None:
    found = columns(tmp_path, "text,label,answer", *[f"{LONG},{n % 2},{n % 3 % 2}" for n in range(20)])
    assert found.answer is not None
    assert columns(tmp_path, "text,label,answer", *[f"{LONG},{n % 2},word{n}" for n in range(20)]).answer is None


def test_all_rows_are_counted_and_some_kept_from_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("text,label\n" + "".join(f"{LONG} {n},{'yes' if n > 900 else 'no'}\n" for n in range(1000)))
    sample = sample_of(path, 100)
    assert (sample.count, len(sample.rows)) == (1000, 100)
    assert dict(sample.column("label").spellings or {}) == {"no": 901, "yes": 99}
    assert {row["label"] for row in sample.rows} == {"no", "yes"}
    assert sample == sample_of(path, 100)
