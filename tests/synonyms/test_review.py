"""The review table reads well: what it offers for the commonest words of film reviews is what a reader would accept."""

from __future__ import annotations

import pytest

from swapproof.encodings.errors import Unsupported
from swapproof.verifier.synonyms import review
from swapproof.verifier.synonyms.embeddings import read_glove
from swapproof.verifier.synonyms.inflections import inflections, one_word_in_two_forms
from swapproof.verifier.synonyms.judged_pairs import ACCEPTED, REFUSED
from swapproof.verifier.synonyms.review import review_table
from swapproof.verifier.synonyms.sources import open_english_wordnet
from swapproof.verifier.synonyms.stop_words import STOP_WORDS

COMMON = ("film", "movie", "boring", "great", "awful", "story")


@pytest.fixture(scope="module")
def table() -> dict[str, list[str]]:
    try:
        open_english_wordnet()
        read_glove()
    except Unsupported as missing:
        pytest.skip(str(missing))
    return review_table(open_english_wordnet().frequencies, at_most=1000)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("film", {"movie", "flick", "picture"}),
        ("movie", {"film", "flick", "picture"}),
        ("films", {"movies", "pictures"}),
        ("story", {"tale", "narrative"}),
        ("boring", {"dull", "tedious", "tiresome", "slow"}),
        ("dull", {"boring", "tedious", "tiresome"}),
        ("funny", {"amusing", "comical", "comic"}),
        ("wonderful", {"marvelous", "terrific", "fantastic", "phenomenal", "tremendous", "wondrous"}),
        ("brilliant", {"superb", "splendid", "magnificent"}),
        ("weak", {"feeble"}),
        ("great", {"outstanding"}),
        ("hate", {"detest"}),
        ("good", set()),
        ("bad", set()),
        ("plot", set()),
        ("actor", set()),
        ("charming", set()),
    ],
)
def test_a_common_word_gets_what_a_reader_accepts(table: dict[str, list[str]], word: str, expected: set[str]) -> None:
    assert set(table.get(word, ())) == expected


@pytest.mark.parametrize(
    ("word", "wrong"),
    [
        ("great", "enceinte big large old heavy capital"),
        ("good", "just well right full near dear bad"),
        ("bad", "big tough sorry good"),
        ("awful", "amazing awesome awfully"),
        ("terrible", "tremendous terribly"),
        ("love", "bed bang know hate"),
        ("plot", "game patch diagram"),
        ("story", "floor level report lie fib"),
        ("fresh", "new wise smart"),
        ("hate", "hatred"),
        ("actor", "player doer worker"),
        ("charming", "wizard witching"),
        ("dull", "stunned dense dumb"),
    ],
)
def test_what_wordnet_lists_and_a_reader_refuses_is_left_out(
    table: dict[str, list[str]], word: str, wrong: str
) -> None:
    assert set(wrong.split()).isdisjoint(table.get(word, ()))


def test_the_table_is_symmetric_and_free_of_grammar_antonyms_and_forms_of_one_word(table: dict[str, list[str]]) -> None:
    antonyms = open_english_wordnet().antonyms
    for word, candidates in table.items():
        assert word not in STOP_WORDS
        assert len(set(candidates)) == len(candidates)
        for other in candidates:
            assert other.isalpha()
            assert word in table[other]
            assert other not in STOP_WORDS
            assert frozenset((word, other)) not in antonyms | REFUSED
            assert not one_word_in_two_forms(word, other)


def test_candidates_can_be_kept_within_a_vocabulary_and_cut_to_the_nearest(table: dict[str, list[str]]) -> None:
    assert review_table(["film", "film", "unheard"], among=["film", "movie"]) == {"film": ["movie"]}
    assert review_table(["awful"], at_most=2) == {"awful": table["awful"][:2]}
    assert review_table(COMMON) == review_table(COMMON)


def test_judged_pairs_are_pairs_and_no_pair_is_judged_twice() -> None:
    assert {len(pair) for pair in ACCEPTED | REFUSED} == {2}
    assert not ACCEPTED & REFUSED


def test_every_judged_pair_decides_something(table: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry without effect would be a misspelling or a leftover."""
    for pair in ACCEPTED:
        word, other = sorted(pair)
        assert other in table[word]
    monkeypatch.setattr(review, "ACCEPTED", frozenset())
    monkeypatch.setattr(review, "REFUSED", frozenset())
    review._pairs.cache_clear()
    unjudged = review_table(table.keys() | {word for pair in REFUSED for word in pair}, at_most=1000)
    review._pairs.cache_clear()
    for pair in ACCEPTED | REFUSED:
        word, other = sorted(pair)
        assert (other in unjudged.get(word, ())) == (pair in REFUSED), pair


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("film", ("films", "filmed", "filming")),
        ("story", ("stories", "storied", "storying")),
        ("play", ("plays", "played", "playing")),
        ("move", ("moves", "moved", "moving")),
        ("lie", ("lies", "lied", "lying")),
        ("stop", ("stops", "stopped", "stopping")),
        ("visit", ("visits", "visited", "visiting")),
        ("watch", ("watches", "watched", "watching")),
        ("show", ("shows", "showed", "showing")),
    ],
)
def test_regular_forms_are_spelt_as_in_english(word: str, expected: tuple[str, str, str]) -> None:
    assert tuple(spellings[0] for spellings in inflections(word)) == expected


def test_forms_of_one_word_are_told_from_two_words() -> None:
    assert one_word_in_two_forms("move", "moving")
    assert one_word_in_two_forms("bad", "badly")
    assert one_word_in_two_forms("fresh", "refreshing") is False
    assert not one_word_in_two_forms("film", "flick")
    assert not one_word_in_two_forms("terrible", "terrific")
