"""Data files: every kind gives the same rows, only as many as asked, and a broken row is named by its line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.models.errors import BadInput, BrokenRows, Unsupported
from swapproof.models.readers import Defect, Row, label_index, read_rows, scan_rows

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the development data is not here")

TEXTS = ['a "quoted, fine film', "no\u2028break, ’really’", "plain"]
LABELS = [1, 0, 1]


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def tsv(rows: list[tuple[Any, ...]]) -> bytes:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()


def as_csv(rows: list[tuple[Any, ...]]) -> bytes:
    stream = io.StringIO()
    csv.writer(stream).writerows(rows)
    return stream.getvalue().encode()


def jsonl(rows: list[tuple[Any, ...]]) -> bytes:
    header, *rest = rows
    return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rest).encode()


def as_json(rows: list[tuple[Any, ...]]) -> bytes:
    header, *rest = rows
    return json.dumps([dict(zip(header, row, strict=True)) for row in rest], indent=1).encode()


def parquet(rows: list[tuple[Any, ...]]) -> bytes:
    arrow = pytest.importorskip("pyarrow")
    tables = pytest.importorskip("pyarrow.parquet")
    header, *rest = rows
    stream = io.BytesIO()
    tables.write_table(arrow.Table.from_pylist([dict(zip(header, row, strict=True)) for row in rest]), stream)
    return stream.getvalue()


WRITERS = {
    ".tsv": tsv,
    ".tsv.gz": tsv,
    ".csv": as_csv,
    ".csv.gz": as_csv,
    ".json": as_json,
    ".json.gz": as_json,
    ".jsonl": jsonl,
    ".jsonl.gz": jsonl,
    ".parquet": parquet,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_kind_of_file_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    table = [
        ("label", "extra", "text", "premise"),
        *((label, "x", text, "so") for label, text in zip(LABELS, TEXTS, strict=True)),
    ]
    path = written(tmp_path, "data" + suffix, WRITERS[suffix](table))
    rows = read_rows(path, text="text", label="label", context="premise")
    assert [(row.id, row.text, row.context) for row in rows] == [
        (index, text, "so") for index, text in enumerate(TEXTS)
    ]
    assert [label_index(row.label or 0, ["bad", "good"], row.where) for row in rows] == LABELS
    assert read_rows(path, text="text", limit=2) == [Row(row.id, row.text, None, None, row.where) for row in rows[:2]]


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_missing_column_is_named_beside_those_there_are(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path, "data" + suffix, WRITERS[suffix]([("label", "sentence"), (1, "good")]))
    with pytest.raises(BadInput, match=r"no column 'content': there are 'label', 'sentence'"):
        read_rows(path, text="content", label="label")


EMPTY = {".jsonl": b"", ".json": b"[]"}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_without_rows_is_refused(tmp_path: Path, suffix: str) -> None:
    if suffix == ".parquet":
        arrow, tables = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        path = tmp_path / "data.parquet"
        tables.write_table(arrow.table({"text": arrow.array([], arrow.string())}), path)
    else:
        path = written(tmp_path, "data" + suffix, EMPTY.get(suffix.removesuffix(".gz"), b"text\n"))
    with pytest.raises(BadInput, match="has no rows"):
        read_rows(path, text="text")


LATE = b"text\tlabel\ngood\t1\nbad"  # broken after the first row


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", LATE),
        ("a.tsv.gz", LATE),
        ("a.csv", LATE.replace(b"\t", b",")),
        ("a.jsonl", b'{"text": "good", "label": 1}\n{'),
    ],
)
def test_a_limit_reads_no_further_than_it_must(tmp_path: Path, name: str, content: bytes) -> None:
    """A broken second row is not met when one row is asked for."""
    path = written(tmp_path, name, content)
    assert [row.text for row in read_rows(path, text="text", label="label", limit=1)] == ["good"]
    with pytest.raises(BadInput, match=r"line [23]"):
        read_rows(path, text="text", label="label", limit=2)


BROKEN: list[tuple[str, str, bytes, str]] = [
    ("too few fields", "a.tsv", b"text\tlabel\ngood\t1\nbad\n", "line 3: 1 fields, where the header has 2"),
    ("too many fields", "a.tsv", b"text\tlabel\ngood\t1\t1\n", "line 2: 3 fields, where the header has 2"),
    ("too few csv fields", "a.csv", b'text,label\n"good\nfilm",1\nbad\n', "line 4: 1 fields, where the header has 2"),
    ("open quote", "a.csv", b'text,label\n"good",1\n"bad,0\n', "line 3: broken row"),
    ("text after a quote", "a.csv", b'text,label\n"good"x,1\n', "line 2: broken row"),
    ("too long a csv field", "a.csv", b"text,label\n" + b"a" * 200_000 + b",1\n", "line 2: broken row"),
    ("blank line", "a.tsv", b"text\tlabel\n\ngood\t1\n", "line 2: a blank line between rows"),
    ("blank csv line", "a.csv", b"text,label\n\ngood,1\n", "line 2: a blank line between rows"),
    ("blank json line", "a.jsonl", b'\n{"text": "a", "label": 1}\n', "line 1: a blank line between rows"),
    ("no header", "a.tsv", b"\n", "line 1: no header"),
    ("column twice", "a.tsv", b"text\ttext\tlabel\na\tb\t1\n", "more than one column 'text'"),
    ("not UTF-8", "a.tsv", b"text\tlabel\ngood\t1\nb\xff\t0\n", "line 3: not UTF-8"),
    ("NUL byte", "a.csv", b"text,label\ngo\0od,1\n", "line 2: holds a NUL byte"),
    ("escaped NUL", "a.jsonl", b'{"text": "a\\u0000", "label": 1}', "line 1: text holds a NUL character"),
    ("half a character", "a.jsonl", b'{"text": "\\ud83d", "label": 1}', "line 1: text holds half a surrogate pair"),
    ("a key twice", "a.jsonl", b'{"text": "a", "text": "b", "label": 1}', "line 1: not JSON (the key 'text' is there"),
    ("broken JSON", "a.jsonl", b'{"text": "a", "label": 1}\n{"text": \n', "line 2: not JSON"),
    ("deep JSON", "a.jsonl", b"[" * 100_000, "line 1: not JSON"),
    ("endless number", "a.jsonl", b'{"text": "a", "label": ' + b"1" * 5000 + b"}", "line 1: not JSON"),
    ("not an object", "a.jsonl", b"[1, 2]", "line 1: not a JSON object but [1, 2]"),
    ("missing key", "a.jsonl", b'{"text": "a", "label": 1}\n{"text": "a"}', "line 2: no column 'label'"),
    ("text is a number", "a.jsonl", b'{"text": 5, "label": 1}', "line 1: text is 5, not a text"),
    ("text is null", "a.jsonl", b'{"text": null, "label": 1}', "line 1: text is null, not a text"),
    ("label is a boolean", "a.jsonl", b'{"text": "a", "label": true}', "line 1: label is true, neither"),
    ("label is a fraction", "a.jsonl", b'{"text": "a", "label": 0.5}', "line 1: label is 0.5, neither"),
    ("label is null", "a.jsonl", b'{"text": "a", "label": null}', "line 1: label is null, neither"),
    ("not parquet", "a.parquet", b"PAR1 but not really", "not a parquet file"),
    ("empty parquet", "a.parquet", b"", "not a parquet file"),
]


@pytest.mark.parametrize(("name", "content", "reason"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_file_is_refused_in_one_line_naming_file_and_line(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = written(tmp_path, name, content)
    with pytest.raises(BadInput) as refusal:
        read_rows(path, text="text", label="label")
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert reason in message
    assert "\n" not in message


def test_a_broken_gzip_is_named_by_the_line_reached(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"text": "good"}\n' * 100_000)
    cut, false = tmp_path / "cut.jsonl.gz", tmp_path / "false.jsonl.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    false.write_bytes(b'{"text": "good"}\n')
    with pytest.raises(BadInput, match=r"cut\.jsonl\.gz line \d+: broken gzip"):
        read_rows(cut, text="text")
    with pytest.raises(BadInput, match=r"false\.jsonl\.gz line 1: broken gzip"):
        read_rows(false, text="text")
    assert len(read_rows(cut, text="text", limit=5)) == 5


def test_a_null_in_parquet_is_named_by_its_row(tmp_path: Path) -> None:
    path = written(tmp_path, "a.parquet", parquet([("text",), ("good",), (None,)]))
    with pytest.raises(BadInput, match=r"row 1 \(counted from 0\): text is null, not a text"):
        read_rows(path, text="text")
    assert len(read_rows(path, text="text", limit=1)) == 1


def test_a_quotation_mark_opens_nothing_in_a_tab_separated_file(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", b'text\tlabel\n"open\t1\nb"c""\t0\n"d"\t1\n')
    assert [row.text for row in read_rows(path, text="text", label="label")] == ['"open', 'b"c""', '"d"']


def test_line_ends_and_a_byte_order_mark_are_no_text(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", b"\xef\xbb\xbftext\tlabel\r\ngood\t1\r\n\r\n")
    assert [(row.text, row.label) for row in read_rows(path, text="text", label="label")] == [("good", "1")]


def test_a_file_that_is_not_there_or_not_readable_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop.tsv"
    loop.symlink_to(loop)
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    for path, reason in ((tmp_path / "none.jsonl", "no such file"), (folder, "a directory"), (loop, "cannot be read")):
        with pytest.raises(BadInput, match=reason):
            read_rows(path, text="text")
    pytest.importorskip("pyarrow")
    with pytest.raises(BadInput, match="no such file"):
        read_rows(tmp_path / "none.parquet", text="text")


def test_an_unknown_kind_of_file_names_those_that_work(tmp_path: Path) -> None:
    for name in ("a.txt", "a", "a.parquet.gz", "a.gz"):
        with pytest.raises(Unsupported, match=r"\.tsv, \.tsv\.gz, \.csv"):
            read_rows(written(tmp_path, name, b""), text="text")


def test_a_limit_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="at least 1"):
        read_rows(tmp_path / "a.tsv", text="text", limit=0)


def test_without_pyarrow_a_parquet_file_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "a.parquet", b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unsupported, match=r"pip install pyarrow"):
        read_rows(path, text="text")


def test_a_label_is_a_name_or_an_index() -> None:
    assert [label_index(value, ["negative", "positive"]) for value in (1, "1", "positive", 0, "0")] == [1, 1, 1, 0, 0]


def test_names_win_over_indices_when_classes_are_named_by_numbers() -> None:
    assert [label_index(value, ["1", "2", "3"]) for value in (1, "1", 3, "3")] == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("value", "index"),
    [("1.0", 1), (" 1", 1), ("0.00", 0), ("Positive", 1), (" NEGATIVE ", 0), ("positive", 1), ("1", 1), (0, 0)],
)
def test_spaces_capitals_and_decimals_of_a_whole_number_do_not_matter(value: str | int, index: int) -> None:
    assert label_index(value, ["negative", "positive"]) == index


def test_what_could_be_two_classes_is_none() -> None:
    assert label_index("a", ["A", "a"]) == 1
    with pytest.raises(BadInput, match="outside the classes"):
        label_index(" a", ["A", "a"])


def test_an_index_is_no_label_where_names_are_numbers() -> None:
    """0 to 2 of classes named 1 to 3 would else be read as 1, 1, 2."""
    assert [label_index(value, ["1", "2", "3"]) for value in ("1.0", 3)] == [0, 2]
    with pytest.raises(BadInput, match=r"label '0' is outside the classes: '1', '2', '3'; say"):
        label_index("0", ["1", "2", "3"])


def test_a_map_says_what_stands_in_the_data_and_nothing_else_does() -> None:
    spelt = {"-1": "negative", "1": "positive", "pos": "positive"}
    found = [label_index(value, ["negative", "positive"], "", spelt) for value in (-1, "1", "1.0", " Pos", "-1.0")]
    assert found == [0, 1, 1, 1, 0]
    for value in ("positive", 0, "0"):
        with pytest.raises(BadInput, match=r"label .* is not in the map \[model\] labels: '-1', '1', 'pos'"):
            label_index(value, ["negative", "positive"], "", spelt)


@pytest.mark.parametrize(
    ("value", "names", "shown"),
    [
        ("-1", ["bad", "good"], '{ "-1" = "bad", "1" = "good" }'),
        (2, ["bad", "good"], '{ "1" = "bad", "2" = "good" }'),
        ("5", ["a", "b", "c", "d", "e"], '{ "1" = "a", "2" = "b", "3" = "c", "4" = "d", "5" = "e" }'),
        ("pos", ["bad", "good"], '{ "pos" = "bad", "1" = "good" }'),
    ],
)
def test_a_label_outside_the_classes_shows_the_map_to_write(value: str | int, names: list[str], shown: str) -> None:
    with pytest.raises(BadInput) as refusal:
        label_index(value, names)
    assert str(refusal.value).endswith(f"labels = {shown}")
    assert tomllib.loads(str(refusal.value).split("in the data: ")[1])["labels"]


def test_a_long_label_is_no_key_of_a_map_to_write() -> None:
    with pytest.raises(BadInput, match=r"it has 5000 characters: is it a label\?$"):
        label_index("9" * 5000, ["negative", "positive"])


def test_a_number_too_long_for_python_is_told_without_its_advice(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text('{"text": "a film", "label": ' + "1" * 6000 + "}\n")
    with pytest.raises(BadInput, match="value has 6000 digits") as refusal:
        read_rows(path, text="text", label="label")
    assert "sys." not in str(refusal.value)


@pytest.mark.parametrize("value", [2, -1, "2", "-1", "posit", "", "+1", "01", "1.5", "1.", "١", True, "1" * 5000])
def test_a_label_outside_the_classes_is_refused_naming_the_line(value: Any) -> None:
    with pytest.raises(
        BadInput, match=r"dev\.tsv line 7: label .* outside the classes: 'negative', 'positive', or 0 to 1"
    ):
        label_index(value, ["negative", "positive"], "dev.tsv line 7")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=1))
def test_any_text_survives_csv_and_jsonl(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("rows")
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("text", "label"), *((text, "x") for text in texts)])
    for name, content in (
        ("a.csv", stream.getvalue().encode()),
        ("a.jsonl", jsonl([("text",), *((text,) for text in texts)])),
    ):
        assert [row.text for row in read_rows(written(folder, name, content), text="text")] == texts


@pytest.mark.parametrize("delimiter", [";", "|", "\t", ","])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_the_delimiter_is_the_one_by_which_the_header_names_the_columns(
    tmp_path: Path, name: str, delimiter: str
) -> None:
    content = f"id{delimiter}text{delimiter}label\n1{delimiter}so good{delimiter}1\n".encode()
    rows = read_rows(written(tmp_path, name, content), text="text", label="label")
    assert [(row.text, row.label) for row in rows] == [("so good", "1")]


def test_a_delimiter_that_is_said_is_used(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", b"text~label\ngood, very~1\n")
    with pytest.raises(BadInput, match="no column 'text': there are 'text~label'"):
        read_rows(path, text="text", label="label")
    assert read_rows(path, text="text", label="label", delimiter="~")[0].text == "good, very"
    with pytest.raises(BadInput, match="a delimiter has no effect here"):
        read_rows(tmp_path / "a.jsonl", text="text", delimiter="~")


def test_the_first_ten_defects_are_listed_one_a_line(tmp_path: Path) -> None:
    rows = "".join(f"text {n}\t1\n" if n % 2 else "x\n" for n in range(60))
    path = written(tmp_path, "a.tsv", f"text\tlabel\n{rows}".encode())
    with pytest.raises(BrokenRows) as refusal:
        read_rows(path, text="text", label="label")
    assert [line.split(":")[0] for line in refusal.value.lines] == [f"{path} line {2 + 2 * n}" for n in range(10)]
    with pytest.raises(BrokenRows) as refusal:
        read_rows(path, text="text", label="label", limit=5)
    assert len(refusal.value.lines) == 3


def test_what_ends_a_file_is_listed_after_its_defects(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", b'text,label\nbad\ngood,1\n"open,1\n')
    with pytest.raises(BrokenRows) as refusal:
        read_rows(path, text="text", label="label")
    assert ["line 2: 1 fields" in refusal.value.lines[0], "line 4: broken row" in refusal.value.lines[1]] == [True] * 2


def test_rows_after_a_defect_are_whole(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", b'{"text": "a"}\n{"text"\n\xff\n[]\n\n{"text": "b"}\n')
    found = list(scan_rows(path, text="text"))
    assert [one.text for one in found if isinstance(one, Row)] == ["a", "b"]
    assert [one.what.removeprefix(str(path)).split(":")[0] for one in found if isinstance(one, Defect)] == [
        f" line {number}" for number in (2, 3, 4, 5)
    ]


def test_a_json_line_that_breaks_off_is_named_by_its_last_column(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"line 2: not JSON \(Expecting value, column 10\)"):
        read_rows(written(tmp_path, "a.jsonl", b'{"text": "a"}\n{"text": \n'), text="text")


def test_the_answer_of_the_deployed_system_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", b'{"text": "a", "label": 1, "said": 0.0}\n')
    assert read_rows(path, text="text", label="label", answer="said")[0].answer == 0


@needs_data
def test_sst2_imdb_and_snli_are_read_as_they_are() -> None:
    sst2 = read_rows(DATA / "sst2" / "dev.tsv", text="content", label="label")
    assert len(sst2) == 872
    assert {label_index(row.label or "", ["negative", "positive"], row.where) for row in sst2} == {0, 1}
    imdb = read_rows(DATA / "imdb" / "train.jsonl.gz", text="text", label="label", limit=50)
    assert len(imdb) == 50
    assert all(isinstance(row.label, int) for row in imdb)
    snli = read_rows(DATA / "snli" / "dev.tsv", text="hypothesis", label="label", context="premise")
    assert len(snli) == 9842
    assert {row.label for row in snli} == {"0", "1", "2"}
    assert all(row.context for row in snli)
    assert len(read_rows(DATA / "mr" / "mr_all.tsv", text="sentence", label="label")) == 10_662
