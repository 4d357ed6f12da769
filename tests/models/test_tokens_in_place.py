"""What may stand in a text is what a tokenizer reads there as that one token, whatever else is swapped."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cases import cases
from command_runs import results
from graph_builder import Builder, floats, tokens
from hypothesis import given
from hypothesis import strategies as st

from swapproof.models.plain_words import PlainWords
from swapproof.models.subwords import TokenizerVocabulary
from swapproof.models.tokens_in_place import NORMALISERS, SPACE, SPLITTING, fitting, product_of
from swapproof.models.vocabulary import WordVocabulary
from swapproof.verifier.cli import main

tokenizers = pytest.importorskip("tokenizers")
N, P, M = tokenizers.normalizers, tokenizers.pre_tokenizers, tokenizers.models
WHITE = [chr(code) for code in range(0x3001) if re.match(f"[{SPACE}]", chr(code))]
WORDS = ("[PAD]", "[UNK]", "old", "new", "york", "is", "great", "salt", "and", "pepper", "&", ",", "&,", "newyork")


def word_level(words: tuple[str, ...] = WORDS) -> Any:
    return tokenizers.Tokenizer(M.WordLevel({word: id for id, word in enumerate(words)}, unk_token="[UNK]"))


def added() -> Any:
    """An added token of two words."""
    made = word_level()
    made.pre_tokenizer = P.Whitespace()
    made.add_tokens([tokenizers.AddedToken("new york", normalized=True)])
    return made


def unigram() -> Any:
    """SentencePiece that does not split at spaces."""
    pieces = [("<unk>", 0.0), ("[PAD]", -20.0), *((f"▁{word}", -5.0) for word in WORDS[2:7]), ("▁new▁york", -6.0)]
    made = tokenizers.Tokenizer(M.Unigram(pieces, unk_id=0))
    made.pre_tokenizer = P.Metaspace(split=False)
    return made


def replaced() -> Any:
    """A normaliser that reads two words as one."""
    made = word_level()
    made.normalizer, made.pre_tokenizer = N.Replace("new york", "newyork"), P.Whitespace()
    return made


def marks() -> Any:
    """Neighbouring marks are one piece."""
    made = word_level()
    made.pre_tokenizer = P.Whitespace()
    return made


def write_task(folder: Path, tokenizer: Any, text: str, swaps: dict[str, list[str]], frozen: Any = None) -> Path:
    """A classifier for which what is joined is negative, everything else positive."""
    folder.mkdir()
    tokenizer.save(str(folder / "vocabulary.json"))
    table = np.zeros((tokenizer.get_vocab_size(), 2), dtype=np.float32)
    table[:, 1] = 0.1
    joined = [id for word, id in tokenizer.get_vocab().items() if word.replace("▁", " ").strip() in JOINED]
    table[joined, 0] = 9
    b = Builder()
    b.node("ReduceSum", [b.call("Gather", b.constant(table), "tokens"), b.wholes(1)], ["logits"], keepdims=0)
    onnx.save(b.proto([tokens("batch", 6)], [floats("logits", "batch", 2)]), folder / "model.onnx")
    (folder / "data.jsonl").write_text(json.dumps({"text": text, "label": "pos"}) + "\n")
    (folder / "swaps.json").write_text(json.dumps(swaps) if frozen is None else json.dumps(frozen) + "\n")
    path = folder / "task.toml"
    path.write_text(
        '[model]\nonnx = "model.onnx"\nvocabulary = "vocabulary.json"\nlength = 6\npad = "[PAD]"\n'
        'labels = ["neg", "pos"]\n[data]\nfile = "data.jsonl"\n[swaps]\n'
        f'{"file" if frozen is None else "frozen"} = "swaps.json"\n'
    )
    return path


JOINED = ("new york", "newyork", "&,")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (added, "the added token 'new york' holds white space"),
        (unigram, "its pre-tokeniser Metaspace may keep words together"),
        (replaced, "its normaliser Replace may change white space"),
    ],
)
@pytest.mark.parametrize("frozen", [False, True])
def test_a_tokenizer_that_joins_neighbours_is_not_read(
    make: Callable[[], Any], reason: str, frozen: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each was once certified with ids that it does not give for the swapped sentence. Run, it is fooled by that."""
    space = {"id": 0, "choices": [["old", "new"], ["york"], ["is"], ["great"]]} if frozen else None
    task = write_task(tmp_path / "task", make(), "old york is great", {"old": ["new"]}, space)
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    (line,) = results(tmp_path / "run")
    assert (line["status"], line["level"], line["min_swaps"]["high"]) == ("exact", "replay", 1)
    assert line["witness"]["sentence"] == "new york is great"
    shutil.rmtree(tmp_path / "run")
    capsys.readouterr()
    task.write_text(task.read_text().replace("[model]", '[model]\nroad = "read"'))
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err.strip()
    assert reason in told
    assert "\n" not in told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("frozen", [False, True])
def test_a_mark_that_joins_its_neighbour_does_not_stand_there(frozen: bool, tmp_path: Path) -> None:
    """salt and, pepper: & would be read with the comma. It is counted, and stands where it stands alone."""
    space = {"id": 0, "choices": [["salt"], ["and", "&"], [","], ["pepper", "york"]]} if frozen else None
    swaps = {"and": ["&"], "pepper": ["york"]}
    task = write_task(tmp_path / "task", marks(), "salt and, pepper", swaps, space)
    run = tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run)]) == 0
    (line,) = results(run)
    assert (line["candidates"], line["status"]) == (1, "unbreakable")
    removed = json.loads((run / "summary.json").read_bytes())["swaps"]["removed"]
    assert removed["changes its neighbours' tokens"] == 1
    assert main(["check", str(run)]) == 0
    text = "salt and pepper"
    vocabulary = TokenizerVocabulary("t", marks().to_str())
    encoded = vocabulary.encode(text)
    options = {1: (("&", 10), ("york", 4))}
    assert fitting(vocabulary, encoded, options) == options


def test_words_have_no_neighbours_in_a_list_of_words() -> None:
    assert product_of(WordVocabulary("v", {"a": 0})) is None
    assert product_of(PlainWords()) is None


def bert(**options: Any) -> Any:
    made = word_level()
    made.normalizer, made.pre_tokenizer = N.BertNormalizer(), P.BertPreTokenizer()
    for name, value in options.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"normalizer": None}, None),
        ({"normalizer": N.Sequence([N.NFKC(), N.Lowercase(), N.Replace("’", "'"), N.Strip()])}, None),
        ({"pre_tokenizer": P.Sequence([P.Whitespace(), P.Digits(), P.Punctuation()])}, None),
        ({"pre_tokenizer": P.ByteLevel()}, None),
        ({"pre_tokenizer": P.Metaspace()}, None),
        ({"normalizer": N.Replace(tokenizers.Regex(" +"), " ")}, "Replace"),
        ({"normalizer": N.Prepend("▁")}, "Prepend"),
        ({"pre_tokenizer": P.ByteLevel(use_regex=False)}, "ByteLevel"),
        ({"pre_tokenizer": P.Split(" ", "isolated")}, "Split"),
        ({"pre_tokenizer": P.Sequence([P.Punctuation(), P.WhitespaceSplit()])}, "Punctuation"),
        ({"pre_tokenizer": P.Sequence([P.Whitespace(), P.Split("a", "isolated")])}, "Split"),
        ({"pre_tokenizer": None}, "no pre-tokeniser"),
        ({"model": M.BPE(dropout=0.1)}, "by chance"),
    ],
)
def test_the_parts_of_a_tokenizer_say_whether_it_is_local(changes: dict[str, Any], reason: str | None) -> None:
    said = product_of(TokenizerVocabulary("t", bert(**changes).to_str()))
    assert said is None if reason is None else said is not None and reason in said


@pytest.mark.parametrize(
    "token", [{"content": "a b"}, {"content": "a", "rstrip": True}, {"content": "a", "lstrip": True}]
)
def test_added_tokens_that_take_white_space_join(token: dict[str, Any]) -> None:
    made = bert()
    made.add_tokens([tokenizers.AddedToken(**token)])
    said = product_of(TokenizerVocabulary("t", made.to_str()))
    assert said is not None
    assert "added token" in said


def test_white_space_stays_white_and_splits() -> None:
    """Through every normaliser and at every pre-tokeniser that counts as local."""
    assert len(WHITE) > 15
    normalisers = {name: getattr(N, name)() for name in NORMALISERS}
    splitting = [getattr(P, name)() for name in SPLITTING]
    for white in WHITE:
        for around in ("a{}b", "1{}2", "!{}!", "a{}!"):
            text = around.format(white)
            for normaliser in normalisers.values():
                left, right = re.split(r"\s+", normaliser.normalize_str(text))
                assert (left, right) == (text[0], text[-1])
            for one in splitting:
                pieces = [span for _, span in one.pre_tokenize_str(text)]
                assert not any(start == 0 and end == 3 for start, end in pieces)
    pieces = P.Metaspace().pre_tokenize_str("a b")
    assert len(pieces) == 2


LETTERS = "aé5&,'"
SEVERAL = ("[UNK]", *("".join(each) for n in (1, 2) for each in itertools.product(LETTERS, repeat=n)))
BYTES = P.ByteLevel.alphabet()


def tokenizers_of(chosen: random.Random) -> Any:
    """Of local parts, with every string of one or two letters as a token."""
    kind = chosen.choice(["bert", "whitespace", "marks", "digits", "bytes", "meta"])
    if kind == "bytes":
        made = tokenizers.Tokenizer(M.BPE({piece: id for id, piece in enumerate(sorted(BYTES))}, []))
        made.pre_tokenizer = P.ByteLevel(add_prefix_space=chosen.random() < 0.5)
        return made
    if kind == "meta":
        made = tokenizers.Tokenizer(
            M.Unigram([("[UNK]", 0.0), *((f"▁{word}", -3.0) for word in SEVERAL[1:])], unk_id=0)
        )
        made.pre_tokenizer = P.Metaspace()
        return made
    made = word_level(SEVERAL)
    made.pre_tokenizer = {
        "bert": P.BertPreTokenizer(),
        "whitespace": P.WhitespaceSplit(),
        "marks": P.Whitespace(),
        "digits": P.Sequence([P.Whitespace(), P.Digits(True)]),
    }[kind]
    made.normalizer = chosen.choice([None, N.BertNormalizer(strip_accents=False), N.NFC(), N.NFKD(), N.Lowercase()])
    return made


@cases(150)
@given(st.integers(0, 2**32 - 1))
def test_every_sentence_of_what_fits_is_read_as_its_tokens(seed: int) -> None:
    """Random texts, marks and accents between words, words that touch; all swaps at random together."""
    chosen = random.Random(seed)
    vocabulary = TokenizerVocabulary("t", tokenizers_of(chosen).to_str(), lowercase=chosen.random() < 0.3)
    assert product_of(vocabulary) is None
    white = [" ", " ", " ", "  ", "\t", "\u00a0", "", "", "\u0301", "\x1c", "\u200b"]
    text = "".join(chosen.choice(white) + "".join(chosen.choices(LETTERS, k=chosen.randint(1, 2))) for _ in range(6))
    encoded = vocabulary.encode(text)
    options = {}
    for index, (_, count) in enumerate(encoded.places):
        candidates = ["".join(chosen.choices(LETTERS, k=chosen.randint(1, 2))) for _ in range(3)]
        found = {word: vocabulary.tokens_of(word) for word in candidates}
        own = tuple((word, ids[0]) for word, ids in found.items() if ids and len(ids) == 1)
        options.update({index: own} if count == 1 and own else {})
    kept = fitting(vocabulary, encoded, options)
    for _ in range(20):
        ids, sentence = list(vocabulary.encode(text).tokens), text
        for index in sorted(kept, reverse=True):
            start, end = encoded.spans[index]
            swap = chosen.choice([None, *kept[index]])
            if swap is not None:
                sentence, ids[encoded.places[index][0]] = sentence[:start] + swap[0] + sentence[end:], swap[1]
        assert list(vocabulary.encode(sentence).tokens) == ids
