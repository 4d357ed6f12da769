"""Vocabularies and tokenizers that lie beside a model, and whether they fit its embedding table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadInput
from ..vocabulary import TokenizerVocabulary, Vocabulary, WordVocabulary, read_vocabulary

NAMED = ("tokenizer.json", "vocab.txt", "vocabulary.json", "vocab.json", "word_index.json")
"""The likelier first."""
MAYBE = re.compile(r"vocab|token|word|dictionary", re.IGNORECASE)
NEVER = re.compile(r"config|special_tokens|added_tokens|merges|synonym|task", re.IGNORECASE)
PADS = ("<pad>", "[PAD]", "<PAD>", "[pad]", "_PAD_", "PAD", "pad", "")
"""Those without brackets are words too: only one of the first ids is taken for it."""
FIRST_IDS = 4
UNKNOWNS = ("<unk>", "[UNK]", "<UNK>", "[unk]", "<oov>", "<OOV>", "OOV", "_UNK_", "UNK", "unk")


@dataclass(frozen=True)
class TokenFile:
    path: Path
    vocabulary: Vocabulary
    reason: str

    @property
    def is_tokenizer(self) -> bool:
        return isinstance(self.vocabulary, TokenizerVocabulary)


def token_files(folder: Path, stem: str) -> list[Path]:
    """What may be a vocabulary in this folder, the likelier first; `stem`: the model's name without its ending."""
    known = [folder / name for name in NAMED if (folder / name).is_file()]
    others = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in (".json", ".txt") and path not in known and path.is_file()
        if (MAYBE.search(path.stem) or path.stem == stem) and not NEVER.search(path.stem)
    )
    return known + others


def vocabulary_beside(model: Path, rows: int | None) -> TokenFile:
    """The vocabulary of a model whose embedding table has so many rows; a line that says what would do, where none or
    several fit."""
    above = [model.parent.parent] if model.parent.name == "onnx" else []  # as optimum exports folders
    paths = [path for folder in (model.parent, *above) for path in token_files(folder, model.stem)]
    read: list[TokenFile] = []
    refused: list[str] = []
    for path in paths:
        try:
            read.append(TokenFile(path, read_vocabulary(path), ""))
        except BadInput as error:
            refused.append(str(error))
    if not read:
        met = f" ({refused[0]})" if refused else ""
        raise BadInput(
            f"{model}: no vocabulary lies beside it{met}: put tokenizer.json, vocab.txt or a list of words as "
            "vocabulary.json there, or say where it is: --set vocabulary=FILE"
        )
    fitting = [file for file in read if rows is None or fits(file.vocabulary, rows)]
    if not fitting:
        raise misfit(read[0], rows or 0, model)
    exact = [file for file in fitting if file.vocabulary.size == rows]
    best = exact or fitting
    tokenizers = [file for file in best if file.is_tokenizer]
    if len(best) > 1 and len(tokenizers) != 1 and best[0].path.name not in NAMED:
        names = ", ".join(file.path.name for file in best)
        raise BadInput(f"{model}: {names} may all be its vocabulary: say which: --set vocabulary={best[0].path}")
    chosen = (tokenizers or best)[0]
    return TokenFile(chosen.path, chosen.vocabulary, fit(chosen, rows))


def fit(file: TokenFile, rows: int | None) -> str:
    size = file.vocabulary.size
    what = f"beside the model; {size:,} {'tokens' if file.is_tokenizer else 'words'}"
    if rows is None:
        return what
    if size == rows:
        return f"{what}, as many as the embedding table has rows"
    if size > rows:
        return f"{what}, of which the embedding table has the first {rows - 1:,}, as num_words of Keras cuts them"
    return f"{what}; {rows - size:,} of the {rows:,} rows of the embedding table have none"


def misfit(file: TokenFile, rows: int, model: Path) -> BadInput:
    size = file.vocabulary.size
    return BadInput(
        f"{file.path}: has ids up to {size - 1:,}, and the embedding table of {model.name} has {rows:,} rows: it is of "
        "another model; say where the right one is: --set vocabulary=FILE"
    )


def fits(vocabulary: Vocabulary, rows: int) -> bool:
    """Every id has a row; or the words are counted from 1, the most frequent first, and cut as Keras does."""
    return vocabulary.size <= rows or counted_from_one(vocabulary)


def counted_from_one(vocabulary: Vocabulary) -> bool:
    found = sorted(ids_of(vocabulary).values())
    return bool(found) and found == list(range(1, len(found) + 1))


def ids_of(vocabulary: Vocabulary) -> dict[str, int]:
    return dict(vocabulary.ids) if isinstance(vocabulary, WordVocabulary) else {}


def named_among(names: Sequence[str], ids: dict[str, int]) -> str | None:
    return next(
        (name for name in names if name in ids and (name[:1] in ("<", "[", "_") or ids[name] < FIRST_IDS)), None
    )
