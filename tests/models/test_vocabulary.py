"""Vocabularies: texts become ids and spans as the file and the task say, and bad files are refused in one line."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.models.encoded import Pattern, Split, spans_of
from swapproof.models.errors import BadInput, EmptyText, Unsupported
from swapproof.models.vocabulary import (
    Encoded,
    TokenizerVocabulary,
    Vocabulary,
    WordVocabulary,
    read_vocabulary,
)
from swapproof.models.vocabulary_files import TokenizerFile, read_vocabulary_file

WORDS = ["<pad>", "<unk>", "good", "film", "it's", ".", "i̇", "film."]


def words(**options: Any) -> WordVocabulary:
    return WordVocabulary("v.json", {word: index for index, word in enumerate(WORDS)}, **options)


def split_text(text: str, split: Split) -> list[str]:
    return [text[start:end] for start, end in spans_of(text, split)]


def saved(folder: Path, content: object, name: str = "vocabulary.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_a_text_keeps_words_ids_and_spans_together() -> None:
    """Two words, one of them unknown, padded on the right."""
    assert words().encode("good  movie", 4) == Encoded(
        text="good  movie",
        words=("good", "movie"),
        spans=((0, 4), (6, 11)),
        tokens=(2, 1, 0, 0),
        places=((0, 1), (1, 1)),
        cut=0,
        unknown=(1,),
        whole=((0, 4), (6, 11)),
    )


def test_a_longer_text_is_cut_and_counted() -> None:
    encoded = words().encode("good film good film", 3)
    assert (encoded.tokens, encoded.words, encoded.cut) == ((2, 3, 2), ("good", "film", "good"), 1)


def test_no_length_means_no_padding_and_no_cut() -> None:
    assert words().encode("good film").tokens == (2, 3)


def test_split_whitespace_leaves_marks_on_words_and_split_words_sets_them_apart() -> None:
    text = "It's 5-star (great)! l’été_x"
    assert split_text(text, "whitespace") == ["It's", "5-star", "(great)!", "l’été_x"]
    assert split_text(text, "words") == ["It's", "5", "-", "star", "(", "great", ")", "!", "l’été", "_", "x"]


@given(st.text())
def test_whitespace_words_are_those_of_str_split(text: str) -> None:
    assert split_text(text, "whitespace") == text.split()


@given(st.text(), st.sampled_from(["whitespace", "words"]), st.booleans(), st.integers(1, 5) | st.none())
def test_spans_give_the_words_in_order_and_all_else_is_white_space(
    text: str, split: Any, lowercase: bool, length: int | None
) -> None:
    """With nothing cut, the characters outside the spans are white space; tokens have the asked length."""
    vocabulary = words(split=split, lowercase=lowercase)
    if not text.split():
        with pytest.raises(EmptyText):
            vocabulary.encode(text, length)
        return
    encoded = vocabulary.encode(text, length)
    assert [text[start:end] for start, end in encoded.spans] == list(encoded.words)
    assert len(encoded.words) == len(encoded.places) == len(split_text(text, split)) - encoded.cut
    assert len(encoded.tokens) == (length or len(encoded.words))
    if not encoded.cut:
        ends = [0, *(end for _, end in encoded.spans)]
        starts = [*(start for start, _ in encoded.spans), len(text)]
        assert all(not text[end:start].strip() for end, start in zip(ends, starts, strict=True))


def test_lower_casing_is_for_look_up_only_and_only_when_asked() -> None:
    assert words(lowercase=True).encode("GOOD Film").tokens == (2, 3)
    assert words(lowercase=True).encode("GOOD Film").words == ("GOOD", "Film")
    assert words().encode("GOOD Film").unknown == (0, 1)


def test_a_letter_that_grows_in_lower_case_does_not_move_the_spans() -> None:
    encoded = words(lowercase=True).encode("İ İ good")
    assert encoded.tokens == (6, 6, 2)
    assert encoded.spans == ((0, 1), (2, 3), (4, 8))


def test_words_spelt_like_reserved_tokens_count_as_unknown_and_keep_their_ids() -> None:
    encoded = words().encode("<pad> good <unk>")
    assert (encoded.tokens, encoded.unknown) == ((0, 2, 1), (0, 2))


@pytest.mark.parametrize("word", ["<pad>", "<unk>", "movie", "Good", "", " ", "good film"])
def test_tokens_of_is_none_for_what_cannot_replace_a_word(word: str) -> None:
    assert words().tokens_of(word) is None


def test_tokens_of_reads_a_replacement_as_encode_would() -> None:
    assert words(lowercase=True).tokens_of("Good") == (2,)
    assert words().tokens_of("film.") == (7,)
    assert words(split="words").tokens_of("film.") is None  # two words there


@pytest.mark.parametrize(("text", "reason"), [("", "the text is empty"), (" \n", "the text has no words")])
def test_an_empty_text_is_refused_as_such(text: str, reason: str) -> None:
    with pytest.raises(EmptyText, match=reason):
        words().encode(text, 3)


def test_an_unknown_word_needs_the_unknown_token() -> None:
    vocabulary = words(unknown="[UNK]")
    assert vocabulary.encode("good film").tokens == (2, 3)
    with pytest.raises(BadInput, match=r"v\.json: does not know 'movie', and has no unknown token '\[UNK\]'"):
        vocabulary.encode("good movie")


def test_a_short_text_needs_the_padding_token() -> None:
    vocabulary = words(pad="[PAD]")
    assert vocabulary.encode("good film", 2).tokens == (2, 3)
    with pytest.raises(BadInput, match=r"no padding token '\[PAD\]', which a text of 1 words needs"):
        vocabulary.encode("good", 2)


def test_padding_and_the_unknown_token_may_be_ids_without_a_name(tmp_path: Path) -> None:
    """As Keras numbers words: from 1 on, 0 being padding. They are no replacements, and count as rows of the model."""
    path = saved(tmp_path, {"good": 2, "film": 3})
    vocabulary = read_vocabulary(path, pad=0, unknown=4)
    assert isinstance(vocabulary, WordVocabulary)
    encoded = vocabulary.encode("good movie", 4)
    assert (encoded.tokens, encoded.unknown) == ((2, 4, 0, 0), (1,))
    assert vocabulary.size == 5
    assert read_vocabulary(path, pad=2).tokens_of("good") is None
    assert read_vocabulary(path).encode("good film", 2).tokens == (2, 3)  # nothing is missing
    with pytest.raises(BadInput, match=r"no padding token '<pad>', .*: name one that it has, or an id, as pad = 0"):
        read_vocabulary(path).encode("good film", 3)
    for wrong in (-1, True):
        with pytest.raises(BadInput, match=r"pad is .*: it can be a token or an id"):
            read_vocabulary(path, pad=wrong)
    with pytest.raises(BadInput, match="by name"):
        read_vocabulary(saved(tmp_path, {"model": {}, "added_tokens": []}), pad=0)


def test_a_length_below_one_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        words().encode("good", 0)


def test_a_list_and_a_map_are_told_apart_by_content(tmp_path: Path) -> None:
    listed = read_vocabulary(saved(tmp_path, ["<pad>", "<unk>", "good"]))
    mapped = read_vocabulary(saved(tmp_path, {"good": 7, "model": 2, "added_tokens": 3}))
    assert (listed.size, listed.tokens_of("good")) == (3, (2,))
    assert (mapped.size, mapped.tokens_of("good"), mapped.tokens_of("model")) == (8, (7,), (2,))


def test_a_byte_order_mark_is_not_part_of_the_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_bytes(b'\xef\xbb\xbf["a", "b"]')
    assert read_vocabulary(path).size == 2


REFUSED: list[tuple[str, bytes, str]] = [
    ("repeated word", b'["a", "b", "a"]', "entry 2 repeats 'a', which is entry 0"),
    ("number for a word", b'["a", 5]', "entry 1 is 5, which is not a word"),
    ("null for a word", b'["a", null]', "entry 1 is null, which is not a word"),
    ("half a character", b'["a", "\\ud800"]', "entry 1 holds half a surrogate pair"),
    ("boolean id", b'{"a": true}', "'a' has the id true, which is not an integer"),
    ("fractional id", b'{"a": 1.0}', "'a' has the id 1.0, which is not an integer"),
    ("string id", b'{"a": "1"}', "'a' has the id \"1\", which is not an integer"),
    ("negative id", b'{"a": -1}', "'a' has the negative id -1"),
    ("shared id", b'{"a": 1, "b": 1}', "'a' and 'b' share the id 1"),
    ("word twice in a map", b'{"a": 1, "b": 2, "a": 3}', "'a' is there twice"),
    ("no words", b"[]", "holds no words"),
    ("no words in a map", b"{}", "holds no words"),
    ("neither list nor map", b'"good"', "neither a list of words"),
    ("broken JSON", b'["a",\n"b"', "line 2: not JSON"),
    ("endless number", b'{"a": 1' + b"0" * 5000 + b"}", "not JSON"),
    ("deep nesting", b"[" * 100_000, "nested too deep"),
    ("not UTF-8", b'["a",\n"\xff"]', "line 2: not UTF-8"),
    ("broken tokenizer", b'{"model": {}}', "not a tokenizer.json that `tokenizers` can read"),
    ("tokenizer without model", b'{"added_tokens": []}', "not a tokenizer.json that `tokenizers` can read"),
]


@pytest.mark.parametrize(("content", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_bad_vocabulary_is_refused_in_one_line_naming_the_file(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(BadInput) as refusal:
        read_vocabulary(path)
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert reason in message
    assert "\n" not in message


def test_a_file_that_is_not_there_or_not_a_file_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path, reason in ((tmp_path / "none", "no such file"), (tmp_path, "a directory"), (loop, "cannot be read")):
        with pytest.raises(BadInput, match=reason):
            read_vocabulary(path)


def test_an_unknown_way_of_splitting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it can be 'whitespace' or 'words'"):
        read_vocabulary(saved(tmp_path, ["a"]), split="letters")  # type: ignore[arg-type]


@given(
    st.lists(st.sampled_from([*WORDS, "Good", "x", "(a-b)", "x."]), min_size=1),
    st.sampled_from(["whitespace", "words"]),
    st.data(),
)
def test_a_swap_of_tokens_is_the_swap_of_the_words(chosen: list[str], split: Any, data: st.DataObject) -> None:
    """Writing a replacement into the text and encoding again changes exactly the token at its place."""
    assert check_swap(words(lowercase=True, split=split), " ".join(chosen), ["film", "It's", "."], data) == 3


def check_swap(vocabulary: Vocabulary, text: str, replacements: list[str], data: st.DataObject) -> int:
    """How many replacements were tried, at a place where a word stands: marks may touch words, and a word put in place
    of a mark would merge with its neighbour."""
    before = vocabulary.encode(text)
    swappable = [index for index, word in enumerate(before.words) if any(map(str.isalnum, word))]
    if not swappable:
        return len(replacements)
    index = data.draw(st.sampled_from(swappable))
    first, count = before.places[index]
    start, end = before.spans[index]
    checked = 0
    for word in replacements:
        tokens = vocabulary.tokens_of(word)
        if tokens is not None:
            after = vocabulary.encode(text[:start] + word + text[end:])
            assert after.tokens == (*before.tokens[:first], *tokens, *before.tokens[first + count :])
            checked += 1
    return checked


# --- tokenizer.json ---------------------------------------------------------------------------------------------

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "film", "##s", "a", ".", "(", ")", "fine", "it", "i", "##̇"]


def wordpiece(**fixed: Any) -> str:
    """A small BERT-like tokenizer.json: lower-cases, splits at white space and punctuation, adds [CLS] and [SEP]."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: index for index, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = tokenizers.normalizers.Lowercase() if fixed.pop("lower", True) else None
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(PIECES[:4])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    if "padding" in fixed:
        tokenizer.enable_padding(pad_id=0, pad_token="[PAD]", **fixed["padding"])
    if "truncation" in fixed:
        tokenizer.enable_truncation(**fixed["truncation"])
    return str(tokenizer.to_str())


def bert(
    pad: str | None = "[PAD]", lowercase: bool = False, cut: int | None = None, **fixed: Any
) -> TokenizerVocabulary:
    return TokenizerVocabulary("t.json", wordpiece(**fixed), pad=pad, lowercase=lowercase, cut=cut)


def test_a_word_of_several_tokens_keeps_them_at_one_place() -> None:
    assert bert().encode("Good films.", 8) == Encoded(
        text="Good films.",
        words=("Good", "films", "."),
        spans=((0, 4), (5, 10), (10, 11)),
        tokens=(2, 4, 5, 6, 8, 3, 0, 0),
        places=((1, 1), (2, 2), (4, 1)),
        cut=0,
        unknown=(),
        whole=((0, 4), (5, 10), (10, 11)),
    )


def test_characters_outside_the_basic_plane_do_not_move_the_spans() -> None:
    encoded = bert().encode("😀 é good")
    assert encoded.words == ("😀", "é", "good")
    assert encoded.unknown == (0, 1)


def test_a_word_that_the_cut_goes_through_is_a_word_no_longer() -> None:
    encoded = bert().encode("good films good", 4)
    assert encoded.tokens == (2, 4, 5, 3)
    assert (encoded.words, encoded.places, encoded.cut) == (("good",), ((1, 1),), 2)


def test_special_tokens_written_in_a_text_are_unknown_words() -> None:
    encoded = bert().encode("good [SEP] film")
    assert (encoded.words, encoded.unknown, encoded.tokens) == (("good", "[SEP]", "film"), (1,), (2, 4, 3, 5, 3))


def test_the_files_own_padding_and_truncation_hold_when_no_length_is_given() -> None:
    vocabulary = bert(pad=None, padding={"length": 6}, truncation={"max_length": 7})
    assert vocabulary.encode("good").tokens == (2, 4, 3, 0, 0, 0)
    assert vocabulary.encode("good good good good good good").cut == 1
    assert bert(pad=None).encode("good").tokens == (2, 4, 3)


def test_a_length_overrides_the_files_padding_and_truncation_but_not_their_sides() -> None:
    vocabulary = bert(
        pad=None,
        cut=4,
        padding={"length": 9, "direction": "left"},
        truncation={"max_length": 3, "direction": "left"},
    )
    assert vocabulary.encode("good", 4).tokens == (0, 2, 4, 3)
    assert vocabulary.encode("good", 4).places == ((2, 1),)
    assert vocabulary.encode("a good film", 4).words == ("good", "film")


def test_texts_are_cut_where_the_file_says_though_the_model_reads_more() -> None:
    """Of a task that says no length: the model's own is what shorter texts are padded to."""
    vocabulary = bert(truncation={"max_length": 3})
    assert vocabulary.encode("a good film", 5).tokens == (2, 7, 3, 0, 0)
    assert vocabulary.encode("a good film", 5).cut == 2


def test_padding_without_a_padding_token_is_refused() -> None:
    with pytest.raises(BadInput, match="names no padding token"):
        bert(pad=None).encode("good", 8)
    with pytest.raises(BadInput, match="has no padding token '<pad>'"):
        bert(pad="<pad>").encode("good", 8)


def test_a_length_that_special_tokens_fill_is_refused() -> None:
    with pytest.raises(BadInput, match="adds 2 special tokens"):
        bert().encode("good", 2)


def test_an_empty_text_is_refused_by_a_tokenizer_too() -> None:
    with pytest.raises(EmptyText):
        bert().encode("  ", 8)


def test_the_size_of_a_tokenizer_counts_every_id() -> None:
    assert bert().size == len(PIECES)


def test_replacements_may_take_several_tokens_and_must_be_one_known_word() -> None:
    vocabulary = bert()
    assert vocabulary.tokens_of("Films") == (5, 6)
    for word in ("xyz", "[SEP]", "[PAD]", "good film", "good.", "", " good"):
        assert vocabulary.tokens_of(word) is None


def test_the_task_can_lower_case_before_a_tokenizer_and_spans_stay() -> None:
    encoded = bert(lower=False, lowercase=True).encode("İ GOOD FilmS")
    assert encoded.words == ("İ", "GOOD", "FilmS")
    assert encoded.spans == ((0, 1), (2, 6), (7, 12))
    assert encoded.tokens == (2, 13, 14, 4, 5, 6, 3)
    assert bert(lower=False).encode("GOOD").unknown == (0,)


def test_a_swap_of_pieces_is_the_swap_of_the_words() -> None:
    """The same for words of several tokens."""
    vocabulary = bert()

    @given(st.lists(st.sampled_from(["good", "films", "(a)", "it.", "xyz", "i"]), min_size=1, max_size=6), st.data())
    def check(chosen: list[str], data: st.DataObject) -> None:
        assert check_swap(vocabulary, " ".join(chosen), ["films", "fine"], data) == 2

    check()


def test_a_word_level_tokenizer_reads_whole_words() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "good": 1, ".": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    encoded = TokenizerVocabulary("t.json", tokenizer.to_str()).encode("good film.")
    assert (encoded.words, encoded.tokens, encoded.unknown) == (("good", "film", "."), (1, 0, 2), (1,))


def test_an_unknown_word_without_an_unknown_token_is_refused_by_a_tokenizer_too() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"good": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    with pytest.raises(BadInput, match=r"t\.json: cannot encode 'good film'"):
        TokenizerVocabulary("t.json", tokenizer.to_str()).encode("good film")


def unigram(tokenizers: Any) -> Any:
    pieces = [("<unk>", 0.0), ("▁good", -1.0), ("▁film", -1.0), ("s", -2.0), ("▁", -3.0), ("a", -4.0)]
    return tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))


def test_the_space_in_front_of_a_piece_is_not_part_of_the_word() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = unigram(tokenizers)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    encoded = TokenizerVocabulary("t.json", tokenizer.to_str()).encode("good films a x")
    assert encoded.words == ("good", "films", "a", "x")
    assert encoded.places == ((0, 1), (1, 2), (3, 2), (5, 2))
    assert encoded.unknown == (3,)


def test_a_tokenizer_that_does_not_split_is_divided_at_white_space() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = unigram(tokenizers)
    normalizers = tokenizers.normalizers
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    encoded = TokenizerVocabulary("t.json", tokenizer.to_str()).encode("good films a good")
    assert encoded.words == ("good", "films", "a", "good")
    assert encoded.places == ((0, 1), (1, 2), (3, 2), (5, 1))


def test_replacements_whose_ids_depend_on_the_space_before_them_are_refused() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    letters = {letter: index for index, letter in enumerate(["Ġ", "g", "o", "d", "(", ")", "a"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(letters, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    vocabulary = TokenizerVocabulary("t.json", tokenizer.to_str())
    assert vocabulary.encode("do  good").words == ("do", "good")
    assert vocabulary.tokens_of("good") is None


def test_a_tokenizer_file_is_recognised_and_splits_by_itself(tmp_path: Path) -> None:
    path = saved(tmp_path, wordpiece(), "tokenizer.json")
    vocabulary = read_vocabulary(path, pad="[PAD]")
    assert isinstance(vocabulary, TokenizerVocabulary)
    assert vocabulary.encode("good", 4).tokens == (2, 4, 3, 0)
    with pytest.raises(BadInput, match="a tokenizer splits texts itself"):
        read_vocabulary(path, split="words")


def test_without_the_tokenizers_package_a_tokenizer_file_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, wordpiece())
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(Unsupported, match=r"pip install tokenizers"):
        read_vocabulary(path)


def test_vocabularies_travel_between_processes() -> None:
    for vocabulary in (words(), bert()):
        before = vocabulary.encode("good film", 8)
        assert pickle.loads(pickle.dumps(vocabulary)).encode("good film", 8) == before


# --- what stands beside a tokenizer, and other files --------------------------------------------------------------


def test_a_regular_expression_says_what_words_are() -> None:
    """Where it has a group, the group is the word."""
    assert split_text("a 5-star film, it's", Pattern(r"\b\w\w+\b")) == ["star", "film", "it"]
    assert split_text("a=b c=d", Pattern(r"(\w)=")) == ["a", "c"]
    for pattern, reason in (("(", "no regular expression"), ("(a)(b)", "2 groups"), ("a*", "matches the empty text")):
        with pytest.raises(BadInput, match=reason):
            Pattern(pattern)


def test_padding_on_the_left_moves_the_places_of_the_words() -> None:
    encoded = words(pad_side="left").encode("good film", 4)
    assert (encoded.tokens, encoded.places) == ((0, 0, 2, 3), ((2, 1), (3, 1)))
    with pytest.raises(BadInput, match='does not say where: set cut_side = "left"'):
        words(pad_side="left").encode("good film good", 2)
    cut = words(pad_side="left", cut_side="left").encode("good film it's", 2)
    assert (cut.tokens, cut.words, cut.cut) == ((3, 4), ("film", "it's"), 1)


def test_one_word_a_line_is_its_line(tmp_path: Path) -> None:
    """An empty line is an id without a word."""
    path = saved(tmp_path, "<pad>\r\n<unk>\r\n\r\ngood\r\n", "words.txt")
    assert read_vocabulary(path).encode("good film").tokens == (3, 1)
    for content, reason in (("a 1\n", "line 1: holds 2 words"), ("a\nb\na", "line 3: repeats 'a' of line 1")):
        with pytest.raises(BadInput, match=reason):
            read_vocabulary(saved(tmp_path, content, "words.txt"))


def test_the_configuration_beside_a_tokenizer_names_its_padding(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    path = saved(tmp_path, wordpiece(), "tokenizer.json")
    with pytest.raises(BadInput, match="names no padding token"):
        read_vocabulary(path).encode("good", 4)
    saved(tmp_path, {"pad_token": "[PAD]", "padding_side": "left", "truncation_side": "left"}, "tokenizer_config.json")
    assert read_vocabulary(path).encode("good", 4).tokens == (0, 2, 4, 3)
    assert read_vocabulary(path, pad_side="right").encode("good", 4).tokens == (2, 4, 3, 0)
    assert read_vocabulary(path).encode("good film a", 4).words == ("film", "a")
    assert read_vocabulary(path, cut_side="right").encode("good film a", 4).words == ("good", "film")
    saved(tmp_path, {"padding_side": "middle"}, "tokenizer_config.json")
    with pytest.raises(BadInput, match='padding_side is "middle": it can be left or right'):
        read_vocabulary(path)


def test_where_the_files_of_a_tokenizer_differ_is_said(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_str(wordpiece())
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    path = saved(tmp_path, tokenizer.to_str(), "tokenizer.json")
    saved(tmp_path, {"do_lower_case": False}, "tokenizer_config.json")
    file = read_vocabulary_file(path)
    assert isinstance(file, TokenizerFile)
    assert file.remarks == (
        "tokenizer.json lower-cases, and tokenizer_config.json says do_lower_case = false: read as tokenizer.json says",
    )


def test_without_a_configuration_capitals_in_vocab_txt_say_whether_it_lower_cases(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    lines = [*PIECES[:4], "good", "film"]
    for more, tokens in (([], (2, 4, 3)), (["The"], (2, 1, 3))):
        path = saved(tmp_path, "\n".join([*lines, *more]), "vocab.txt")
        assert read_vocabulary(path).encode("GOOD").tokens == tokens
        file = read_vocabulary_file(path)
        assert isinstance(file, TokenizerFile)
        assert "capitals" in file.remarks[0]
