"""spaces.jsonl is written whole or not at all, and read back as written or refused by line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.errors import BadInput
from swapproof.models.vocabulary import WordVocabulary
from swapproof.verifier.synonyms.filters import MaxPerWord
from swapproof.verifier.synonyms.freezing import CUT, Freezing, freeze
from swapproof.verifier.synonyms.graph import graph_of
from swapproof.verifier.synonyms.spaces_file import read_spaces

KNOWN = ("<pad>", "<unk>", "the", "film", "movie", "good", "fine", "café")
VOCABULARY = WordVocabulary("v", {word: index for index, word in enumerate(KNOWN)}, lowercase=True)
GRAPH = graph_of({"film": ["movie"], "good": ["fine", "café"]})
ENCODED = [(0, VOCABULARY.encode("Good film", 4)), (1, VOCABULARY.encode("the film zzz", 4))]


def write_spaces(path: Path, freezing: Freezing) -> str:
    """Its SHA-256."""
    content = "".join(f"{text.line}\n" for text in freezing.texts).encode()
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def test_the_file_has_one_line_per_text_in_the_documented_form(tmp_path: Path) -> None:
    freezing = freeze(ENCODED, VOCABULARY, GRAPH)
    digest = write_spaces(tmp_path / "spaces.jsonl", freezing)
    content = (tmp_path / "spaces.jsonl").read_bytes()
    assert content.decode().splitlines() == [
        '{"id": 0, "choices": [["good", "fine", "café"], ["film", "movie"]]}',
        '{"id": 1, "choices": [["the"], ["film", "movie"], ["zzz"]]}',
    ]
    assert digest == freezing.digest == hashlib.sha256(content).hexdigest()
    assert list(tmp_path.iterdir()) == [tmp_path / "spaces.jsonl"]


@given(
    st.lists(st.lists(st.sampled_from([*KNOWN, "zzz", "ligne\u2028"]), min_size=1, max_size=7), max_size=4),
    st.integers(1, 3),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], most: int
) -> None:
    path = tmp_path_factory.mktemp("spaces") / "spaces.jsonl"
    encoded = [(3 * index, VOCABULARY.encode(" ".join(words), 5)) for index, words in enumerate(texts)]
    freezing = freeze(encoded, VOCABULARY, GRAPH, [MaxPerWord(most)])
    write_spaces(path, freezing)
    again = read_spaces(path, encoded, VOCABULARY)
    assert again.texts == freezing.texts
    assert again.digest == freezing.digest
    assert again.fixed == freezing.fixed


def test_candidates_that_do_not_fit_are_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "spaces.jsonl"
    path.write_text(
        '{"id": 1, "choices": [["the"], ["film", "movie", "MOVIE", "kino", "film"], ["zzz", "good"]]}\n'
        "\n"
        '{"id": 0, "choices": [["GOOD", "fine"], ["film"]]}\n'
    )
    freezing = read_spaces(path, ENCODED, VOCABULARY)
    assert [text.id for text in freezing.texts] == [0, 1]
    assert freezing.texts[0].words == (("good", "fine"), ("film",))
    assert freezing.texts[1].words == (("the",), ("film", "movie"), ("zzz",))
    assert freezing.texts[1].space.choices == ((2,), (3, 4), (1,), (0,))
    assert freezing.dropped == {
        ("film", "MOVIE", "same token"): 1,
        ("film", "kino", "not in vocabulary"): 1,
        ("film", "film", "same token"): 1,
        ("zzz", "good", "unknown word"): 1,
    }
    assert freezing.considered == 6
    assert freezing.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_lists_of_words_that_do_not_fit_the_model_are_read_past(tmp_path: Path) -> None:
    path = tmp_path / "spaces.jsonl"
    path.write_text('{"id": 0, "choices": [["good", "fine"], ["film", "movie"], ["the"]]}\n')
    freezing = read_spaces(path, [(0, VOCABULARY.encode("good film the", 2))], VOCABULARY)
    assert freezing.texts[0].space.choices == ((5, 6), (3, 4))
    assert freezing.fixed[CUT] == 1


GOOD = '{"id": 0, "choices": [["good"], ["film"]]}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON"),
        ('{"id": 1, "id": 1, "choices": []}', "line 2: not JSON: a key appears twice"),
        ("[]", "line 2: not an object with exactly"),
        ('{"id": 1}', "line 2: not an object with exactly"),
        ('{"id": 1, "choices": [], "more": 1}', "line 2: not an object with exactly"),
        ('{"id": true, "choices": []}', "line 2: the id true is not an integer"),
        ('{"id": "1", "choices": []}', "line 2: the id .1. is not an integer"),
        ('{"id": 1, "choices": ["the", "film", "zzz"]}', "not a list of non-empty lists"),
        ('{"id": 1, "choices": [["the"], [], ["zzz"]]}', "not a list of non-empty lists"),
        ('{"id": 1, "choices": [["the"], ["film", 3], ["zzz"]]}', "not a list of non-empty lists"),
        ('{"id": 1, "choices": [["the"], ["film", "\\ud800"], ["zzz"]]}', "not a list of non-empty lists"),
        ('{"id": 1, "choices": [["the"], ["film"]]}', "line 2: choices for 2 words, and the text has 3"),
        ('{"id": 1, "choices": [["the"], ["movie", "film"], ["zzz"]]}', 'word 1 begins with "movie", and the text has'),
        ('{"id": 5, "choices": []}', "line 2: id 5 is none of the 2 texts"),
        (GOOD, "line 2: a second line for the text with id 0"),
        ("", "no line for the text with id 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "spaces.jsonl"
    path.write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(BadInput, match=message) as refusal:
        read_spaces(path, ENCODED, VOCABULARY)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "spaces.jsonl"
    path.write_bytes(GOOD.encode() + b'\n{"id": 1, "choices": [["\xff"]]}\n')
    with pytest.raises(BadInput, match="line 2: not UTF-8"):
        read_spaces(path, ENCODED, VOCABULARY)


def test_a_partial_run_skips_the_lines_of_other_texts(tmp_path: Path) -> None:
    freezing = freeze(ENCODED, VOCABULARY, GRAPH)
    write_spaces(tmp_path / "spaces.jsonl", freezing)
    first = read_spaces(tmp_path / "spaces.jsonl", ENCODED[:1], VOCABULARY, partial=True)
    assert first.texts == freezing.texts[:1]
    assert first.digest == freezing.digest  # of the whole file: the same attack surface


def test_a_missing_file_and_two_texts_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_spaces(tmp_path / "absent.jsonl", ENCODED, VOCABULARY)
    with pytest.raises(BadInput, match="share an id"):
        read_spaces(tmp_path / "absent.jsonl", [ENCODED[0], ENCODED[0]], VOCABULARY)
    with pytest.raises(BadInput, match="share an id"):
        freeze([ENCODED[0], ENCODED[0]], VOCABULARY, GRAPH)


def test_equal_choices_are_one_object_after_reading(tmp_path: Path) -> None:
    encoded = [(index, ENCODED[0][1]) for index in range(50)]
    write_spaces(tmp_path / "s.jsonl", freeze(encoded, VOCABULARY, GRAPH))
    texts = read_spaces(tmp_path / "s.jsonl", encoded, VOCABULARY).texts
    assert len({id(text.words[0]) for text in texts}) == 1
    assert len({id(text.space.choices[0]) for text in texts}) == 1
    assert json.loads(texts[0].line)["id"] == 0
