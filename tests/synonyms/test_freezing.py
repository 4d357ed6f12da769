"""A frozen space holds exactly the candidates that fit and pass, and everything else is counted under its reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.models.encoded import Pattern
from swapproof.models.plain_words import PlainWords
from swapproof.models.vocabulary import Vocabulary, WordVocabulary, read_vocabulary
from swapproof.verifier.synonyms.filters import Antonyms, Filter, MaxPerWord, StopWords
from swapproof.verifier.synonyms.freezing import CUT, PADDING, UNKNOWN_WORD, WORD_OF_SEVERAL_TOKENS, Freezing, freeze
from swapproof.verifier.synonyms.graph import graph_of, neighbours
from swapproof.verifier.synonyms.part_of_speech import SamePartOfSpeech
from swapproof.verifier.synonyms.sources import read_antonyms, read_table

SHARED = Path(__file__).parents[3] / "shared" / "data"
KNOWN = ("<pad>", "<unk>", "the", "film", "movie", "good", "fine", "great", "bad", "picture")
VOCABULARY = WordVocabulary("v", {word: index for index, word in enumerate(KNOWN)}, lowercase=True)
GRAPH = graph_of(
    {
        "film": ["movie", "flick", "picture"],
        "good": ["great", "bad", "fine"],
        "the": ["movie"],
        "weird": ["good"],
    }
)
ANTONYMS = Antonyms(frozenset({frozenset(("good", "bad"))}))


def frozen(text: str, vocabulary: Vocabulary = VOCABULARY, length: int | None = 6, **options: bool) -> Freezing:
    filters: list[Filter] = [MaxPerWord(2), ANTONYMS, StopWords()]
    return freeze([(7, vocabulary.encode(text, length))], vocabulary, GRAPH, filters, **options)


def test_choices_and_tokens_run_in_parallel_with_the_original_first() -> None:
    freezing = frozen("The good film")
    (text,) = freezing.texts
    assert text.id == 7
    assert text.words == (("the",), ("good", "great", "fine"), ("film", "movie", "picture"))
    assert text.space.choices == ((2,), (5, 7, 6), (3, 4, 9), (0,), (0,), (0,))


def test_every_removal_is_counted_under_its_reason() -> None:
    freezing = frozen("The good film film weird zzz beyond")
    assert {reason: times for reason, times in freezing.removed.items() if times} == {
        "unknown word": 1,
        "not in vocabulary": 2,
        "stop word": 1,
        "antonym": 1,
    }
    assert freezing.dropped["film", "flick", "not in vocabulary"] == 2
    assert {what: times for what, times in freezing.fixed.items() if times} == {CUT: 1, UNKNOWN_WORD: 2}
    assert freezing.considered == freezing.candidates + sum(freezing.removed.values()) == 11


def test_entries_that_no_text_reaches_are_not_said_to_be_missing() -> None:
    """Two words, and a word too short for the pattern: both stand in the vocabulary."""
    ids = {word: index for index, word in enumerate((*KNOWN, "new york", "x"))}
    vocabulary = WordVocabulary("v", ids, split=Pattern(r"\b\w\w+\b"))
    encoded = [(0, vocabulary.encode("good film", 2))]
    found = freeze(encoded, vocabulary, graph_of({"film": ["x", "new york", "york", "movie"]}), [])
    assert found.texts[0].words == (("good",), ("film", "movie"))
    assert {candidate: reason for _, candidate, reason in found.dropped} == {
        "x": "not one word as texts are split",
        "new york": "not one word as texts are split",
        "york": "not in vocabulary",
    }


def test_padding_is_counted_and_does_not_move() -> None:
    freezing = frozen("good")
    assert freezing.fixed[PADDING] == 5
    assert all(len(options) == 1 for options in freezing.texts[0].space.choices[1:])


def test_unknown_words_move_only_when_asked() -> None:
    assert frozen("weird").texts[0].words == (("weird",),)
    freezing = frozen("weird", swap_unknown=True)
    assert freezing.texts[0].words == (("weird", "good"),)
    assert freezing.texts[0].space.choices[0] == (1, 5)


def test_a_vocabulary_that_keeps_case_keeps_the_spelling_of_text_and_table() -> None:
    cased = WordVocabulary("v", {"<pad>": 0, "<unk>": 1, "Good": 2, "great": 3, "fine": 4})
    (text,) = frozen("Good", cased).texts
    assert text.words == (("Good", "great", "fine"),)
    assert text.space.choices[0] == (2, 3, 4)


def test_candidates_that_are_one_once_they_have_the_capitals_of_the_word_count_once() -> None:
    words = PlainWords()
    found = freeze([(0, words.encode("Good"))], words, graph_of({"good": ["fine", "Fine", "x y", "X y"]}), [])
    assert found.texts[0].words == (("Good", "Fine"),)
    assert found.dropped == {("good", "X y", "not one word as texts are split"): 1}
    assert found.considered == 2


def test_subwords_words_of_several_tokens_stay_and_candidates_of_several_tokens_go(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "fi", "##ne", "great", "fil", "##m", "movie", "bad"]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(wordpiece(pieces)))
    vocabulary = read_vocabulary(path)
    freezing = freeze([(0, vocabulary.encode("good film", 8))], vocabulary, GRAPH, [ANTONYMS])
    (text,) = freezing.texts
    assert text.words == (("good", "great"), ("film",))
    assert text.space.choices == ((2,), (4, 7), (8,), (9,), (3,), (0,), (0,), (0,))
    assert freezing.dropped == {
        ("good", "fine", "several tokens"): 1,
        ("good", "bad", "antonym"): 1,
        ("film", "movie", WORD_OF_SEVERAL_TOKENS): 1,
        ("film", "flick", WORD_OF_SEVERAL_TOKENS): 1,
        ("film", "picture", WORD_OF_SEVERAL_TOKENS): 1,
    }
    assert freezing.fixed == {WORD_OF_SEVERAL_TOKENS: 1, CUT: 0, PADDING: 5}


def wordpiece(pieces: Sequence[str]) -> dict[str, object]:
    special = [
        {
            "id": index,
            "content": pieces[index],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index in range(4)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": {
            "strategy": {"Fixed": 8},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": special,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]},
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: index for index, piece in enumerate(pieces)},
        },
    }


def test_a_filter_in_context_decides_at_every_position_before_the_cap() -> None:
    def first_word_is_odd(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [[f"{word}!" if index == 0 else "same" for index, word in enumerate(words)] for words in sentences]

    encoded = [(0, VOCABULARY.encode("good good", None))]
    filters: list[Filter] = [MaxPerWord(1), SamePartOfSpeech(first_word_is_odd), ANTONYMS]
    freezing = freeze(encoded, VOCABULARY, GRAPH, filters)
    assert freezing.texts[0].words == (("good",), ("good", "great"))
    assert freezing.removed["other part of speech"] == 2
    assert freezing.removed["beyond max_per_word"] == 1
    assert freezing.removed["antonym"] == 2
    assert freezing.considered == freezing.candidates + sum(freezing.removed.values())


WORDS = st.lists(st.sampled_from(["the", "film", "movie", "good", "fine", "great", "bad", "zzz", "weird"]), min_size=1)
TABLE = st.dictionaries(
    st.sampled_from(["film", "good", "bad", "weird", "the"]),
    st.lists(st.sampled_from([*KNOWN, "zzz", "two words", "Good", ""]), max_size=6),
)


@given(WORDS, TABLE, st.integers(1, 4), st.integers(1, 8), st.booleans())
def test_spaces_agree_with_the_definition_and_no_candidate_is_lost(
    words: list[str], table: dict[str, list[str]], most: int, length: int, swap_unknown: bool
) -> None:
    graph = graph_of(table)
    encoded = VOCABULARY.encode(" ".join(words), length)
    freezing = freeze([(0, encoded)], VOCABULARY, graph, [ANTONYMS, MaxPerWord(most)], swap_unknown=swap_unknown)
    (text,) = freezing.texts
    assert text.space.original == encoded.tokens
    assert freezing.considered == freezing.candidates + sum(freezing.removed.values())
    for index, options in enumerate(text.words):
        word = words[index]
        assert options[0] == word
        place = encoded.places[index][0]
        assert len(options) == len(text.space.choices[place])
        expected: list[str] = []
        seen = {encoded.tokens[place]}
        for candidate in neighbours(graph, word):
            tokens = VOCABULARY.tokens_of(candidate)
            if tokens is None or len(tokens) != 1 or tokens[0] in seen:
                continue
            seen.add(tokens[0])
            if {word, candidate.lower()} != {"good", "bad"}:
                expected.append(candidate)
        movable = swap_unknown or index not in encoded.unknown
        assert list(options[1:]) == (expected[:most] if movable else [])
        for candidate, token in zip(options[1:], text.space.choices[place][1:], strict=True):
            assert VOCABULARY.tokens_of(candidate) == (token,)


def test_freezing_twice_gives_one_digest_and_another_filter_another() -> None:
    encoded = [(0, VOCABULARY.encode("good film", 4))]
    first = freeze(encoded, VOCABULARY, GRAPH, [MaxPerWord(2)])
    assert freeze(encoded, VOCABULARY, GRAPH, [MaxPerWord(2)]).digest == first.digest
    assert freeze(encoded, VOCABULARY, GRAPH, [MaxPerWord(1)]).digest != first.digest


def test_the_summary_says_what_each_filter_removed() -> None:
    assert frozen("the good film zzz").summary("counter-fitted table") == (
        "counter-fitted table: 7 candidates in 1 texts",
        "removed, word of several tokens: 0",
        "removed, unknown word: 0",
        "removed, punctuation touching a word: 0",
        "removed, not in vocabulary: 1",
        "removed, not one word as texts are split: 0",
        "removed, several tokens: 0",
        "removed, same token: 0",
        "removed, stop word: 1",
        "removed, antonym: 1",
        "removed, beyond max_per_word: 0",
        "kept: 4",
        "does not move, unknown word: 1",
        "does not move, padding or special token: 2",
    )


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")
def test_a_real_table_gives_spaces_for_real_sentences() -> None:
    lines = (SHARED / "sst2" / "dev.tsv").read_text().splitlines()[1:201]
    texts = [line.split("\t", 1)[1] for line in lines]
    vocabulary = WordVocabulary(
        "v", {word: index for index, word in enumerate(dict.fromkeys(["<pad>", "<unk>", *" ".join(texts).split()]))}
    )
    antonyms = read_antonyms(SHARED / "synonyms" / "wordnet_antonyms.txt")
    graph = read_table(SHARED / "synonyms" / "counterfitted_neighbors.json").graph
    encoded = [(index, vocabulary.encode(text, 60)) for index, text in enumerate(texts)]
    freezing = freeze(encoded, vocabulary, graph, [StopWords(), Antonyms(antonyms), MaxPerWord(8)])
    assert freezing.candidates > 500
    assert freezing.considered == freezing.candidates + sum(freezing.removed.values())
    film = next(options for text in freezing.texts for options in text.words if options[0] == "film")
    assert film[1] == "movie"


def test_a_mark_that_touches_a_word_does_not_move() -> None:
    """Replacing "(" in "(film" by a word would give one longer word, which is another token."""
    known = ("<pad>", "<unk>", "(", "film", "and", "&")
    vocabulary = WordVocabulary("v", {word: index for index, word in enumerate(known)}, split="words")
    graph = graph_of({"(": ["and"], "&": ["and"]})
    freezing = freeze([(0, vocabulary.encode("(film & film", 6))], vocabulary, graph)
    assert freezing.texts[0].words == (("(",), ("film",), ("&", "and"), ("film",))
    assert freezing.removed["punctuation touching a word"] == 1
