"""Whatever is evaluated is the tokenisation of the whole swapped text, put together from pieces or spelt out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deployed_models import APART, TOKENS, echo, every_row, kinds, masked_sum, opened, swaps, wordpiece
from hypothesis import example, given
from hypothesis import strategies as st

from swapproof.models.deployed.onnx_classifier import OnnxClassifier, OnnxVariants
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.deployed.tokenising.subword_rows import SubwordRows
from swapproof.models.deployed.tokenising.token_rows import TokenRows
from swapproof.models.encoded import Pattern
from swapproof.models.vocabulary_files import TokenizerFile, read_vocabulary_file

pytest.importorskip("tokenizers")

ODD = [
    "",
    " ",
    "\x1c",
    "\u200b",
    "\u00a0",
    "\u0301",
    "Σ",
    "ΑΣ",
    "´",
    "ﬁ",
    "İ",
    "ς",
    "中",
    "☃",
    "\U0001f600",
    "\x00",
    "\u2028",
]
PARTS = [
    *("new", "york", "good", "film", "salt", "and", "a", "b", "aab", "café", "cafe\u0301", "50", "5", "films", "it's"),
    *("&", ",", "!", "...", "<x>", "a&b", "[MASK]", "<mask>", "<s>", "##s", "▁", "Ġ", "xyzzy", "New York", *ODD),
]


@st.composite
def texts(draw: st.DrawFn) -> SwapText:
    """Words of odd parts, some beside each other without white space, some of which can be swapped."""
    text, spans, options = draw(st.sampled_from(["", " ", "\n"])), [], []
    for _ in range(draw(st.integers(1, 5))):
        word = "".join(draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=2)))
        moves = bool(word) and draw(st.booleans())
        if moves:
            spans.append((len(text), len(text) + len(word)))
            options.append((word, *draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=2))))
        text += word + draw(st.sampled_from([" ", " ", " ", "  ", "\n", "\t", ""]))
    return SwapText((text,), 0, tuple(spans), tuple(options))


def lists(rows: TokenRows) -> list[list[int]]:
    return [rows.row(index)[0].tolist() for index in range(len(rows))]


def variants(classifier: OnnxClassifier, text: SwapText) -> OnnxVariants:
    """Put together from pieces at once, where they can be."""
    found = classifier.variants(text)
    assert isinstance(found, OnnxVariants)
    found.asked = 1_000_000
    return found


KINDS = kinds()
MASKS = SwapText(("new\nnew ",), 0, ((0, 3), (4, 7)), (("new", "<mask>"), ("new", "<mask>")))
"""A token that takes the white space before it, twice."""


def test_tokenizers_are_known_to_read_word_by_word_by_their_parts_alone(tmp_path: Path) -> None:
    known = {name for name, made in KINDS.items() if subwords(tmp_path, made).separators}
    assert known == APART


def subwords(folder: Path, tokenizer: Any) -> SubwordRows:
    path = folder / "tokenizer.json"
    path.write_text(tokenizer.to_str(), encoding="utf-8")
    file = read_vocabulary_file(path)
    assert isinstance(file, TokenizerFile)
    return SubwordRows(path, file)


@pytest.mark.parametrize(
    ("name", "lowercase"), [*((name, False) for name in sorted(KINDS)), ("words", True), ("bytes", True)]
)
def test_sentences_from_pieces_have_the_ids_of_the_sentences_spelt_out(
    tmp_path: Path, name: str, lowercase: bool
) -> None:
    classifier = opened(tmp_path, echo(TOKENS), KINDS[name], lowercase=lowercase)
    assert classifier.tokeniser is not None
    together = 0

    @given(texts())
    @example(MASKS)
    def check(text: SwapText) -> None:
        nonlocal together
        rows = every_row(text)
        found = variants(classifier, text)
        spelt = [text.sentence(row)[0] for row in rows.tolist()]
        whole = KINDS[name].encode_batch([sentence.lower() if lowercase else sentence for sentence in spelt])
        assert lists(found.tokens(rows)[0]) == [encoding.ids for encoding in whole]
        together += found.layout is not None and found.pieces is not None and len(rows) > 1

    check()
    assert (together > 5) == (name in APART)


@pytest.mark.parametrize(
    "split", ["whitespace", "words", Pattern(r"\b\w\w+\b"), Pattern(r"[^ \t!,]+"), Pattern(r"\S+ ?")]
)
@pytest.mark.parametrize("unknown", ["<unk>", ""])
def test_plain_words_from_pieces_have_the_ids_of_the_sentences_spelt_out(
    tmp_path: Path, split: Any, unknown: str
) -> None:
    """Cut on the left, and unknown words left out or not."""
    words = ["<pad>", "<unk>", "new", "york", "good", "a", "b", "&", ",", "&,", "i̇", "it's", "new york", "good ", "fi"]
    said = {"split": split, "unknown": unknown, "length": 3, "cut_side": "left", "lowercase": True}
    classifier = opened(tmp_path, echo(TOKENS), words, **said)
    assert classifier.tokeniser is not None

    @given(texts())
    def check(text: SwapText) -> None:
        rows = every_row(text)
        assert classifier.tokeniser is not None
        spelt = classifier.tokeniser.rows([text.sentence(row) for row in rows.tolist()])
        assert lists(variants(classifier, text).tokens(rows)[0]) == lists(spelt)

    check()


@pytest.mark.parametrize(
    ("name", "text", "options", "joined", "deployed"),
    [
        ("added words", "old york good", (["new"],), "new york", ["new york", "good"]),
        ("unsplit", "old york good", (["new"],), "▁new▁york", ["▁new▁york", "▁good"]),
        ("replace", "old york good", (["new"],), "newyork", ["newyork", "good"]),
        ("words", "salt and, b", ([], ["&"]), "&,", ["[UNK]", "&,", "b"]),
    ],
)
def test_a_swap_that_joins_its_neighbour_is_answered_as_the_deployed_pipeline_answers_it(
    tmp_path: Path, name: str, text: str, options: Any, joined: str, deployed: list[str]
) -> None:
    """An added token of two words, Unigram without splitting, a Replace normaliser, neighbouring punctuation."""
    tokenizer = KINDS[name] if name != "unsplit" else whole_unigram()
    table = np.zeros((tokenizer.get_vocab_size(), 2))
    table[:, 1] = 0.125
    table[tokenizer.token_to_id(joined), 0] = 9.0
    classifier = opened(tmp_path, masked_sum(table), tokenizer, pad="[PAD]", length=6)
    swapped = swaps(text, *options)
    row = np.array([[len(word) - 1 for word in swapped.options]], dtype=np.int32)
    sentence = swapped.sentence(row[0].tolist())
    assert tokenizer.encode(sentence[0]).tokens == deployed
    expected = table[tokenizer.encode(sentence[0]).ids].sum(axis=0)
    assert expected[0] == 9.0
    for scores in (classifier.variants(swapped).scores(row), classifier.scores([sentence])):
        np.testing.assert_array_equal(scores[0], expected)
    original = classifier.variants(swapped).scores(np.zeros_like(row))
    assert original[0, 0] == 0.0


def whole_unigram() -> Any:
    """Like SentencePiece's without splitting at spaces."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["old", "new", "york", "good"]
    pieces = [("<unk>", 0.0), ("[PAD]", -20.0), *(("▁" + word, -5.0) for word in words), ("▁new▁york", -6.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    return tokenizer


def test_sentences_that_are_cut_are_the_deployed_ones(tmp_path: Path) -> None:
    """Some of them fit, and some do not."""
    tokenizer = wordpiece(truncation={"max_length": 6}, padding={"pad_id": 0})
    classifier = opened(tmp_path, echo(TOKENS), tokenizer)
    text = swaps("good new york a", ["films", "filmsa"], [], ["it's"])
    rows = every_row(text)
    whole = tokenizer.encode_batch([text.sentence(row)[0] for row in rows.tolist()])
    assert {len(encoding.ids) for encoding in whole} == {6}
    assert lists(variants(classifier, text).tokens(rows)[0]) == [encoding.ids for encoding in whole]


@pytest.mark.parametrize("moving", [0, 1])
def test_joined_pairs_from_pieces_have_ids_and_types_of_the_pairs_spelt_out(tmp_path: Path, moving: int) -> None:
    inputs = [(name, TOKENS[0][1], TOKENS[0][2]) for name in ("input_ids", "token_type_ids")]
    tokenizer = wordpiece()
    classifier = opened(tmp_path, echo(inputs), tokenizer, fields=2)
    text = swaps("good film a", ["films", "new"], ["b"], other="it's new", moving=moving)
    rows = every_row(text)
    found = variants(classifier, text)
    tokens = found.tokens(rows)[0]
    whole = [tokenizer.encode(*text.sentence(row)) for row in rows.tolist()]
    assert found.pieces is not None
    for index, encoding in enumerate(whole):
        assert tokens.row(index).tolist() == [encoding.ids, encoding.type_ids]


def test_few_sentences_are_spelt_out_and_many_are_put_together(tmp_path: Path) -> None:
    classifier = opened(tmp_path, echo(TOKENS), wordpiece())
    found = classifier.variants(swaps("good film", ["a", "b"], ["a"]))
    assert isinstance(found, OnnxVariants)
    assert found.layout is not None
    assert len(found.layout.rows) == 4
    rows = np.zeros((3, 2), dtype=np.int32)
    first = found.scores(rows)
    assert "pieces" not in vars(found)
    np.testing.assert_array_equal(found.scores(rows), first)
    assert "pieces" in vars(found)
