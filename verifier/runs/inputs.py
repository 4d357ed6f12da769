"""Everything a task names, read and checked: texts as the model reads them, gold labels, frozen spaces."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.models.encoded import Encoded
from swapproof.models.errors import BadInput as BadText
from swapproof.models.readers import label_index, read_rows
from swapproof.models.vocabulary import Vocabulary, read_vocabulary

from ..synonyms.embeddings import nearest_words, read_matrix, read_vectors
from ..synonyms.filters import Antonyms, Filter, MaxPerWord, StopWords
from ..synonyms.freezing import Freezing, FrozenText, freeze
from ..synonyms.graph import Graph, symmetric
from ..synonyms.part_of_speech import same_part_of_speech
from ..synonyms.similarity import sentence_similarity
from ..synonyms.sources import Source, raw_wordnet, read_antonyms, read_table, read_text
from ..synonyms.spaces_file import read_spaces
from ..synonyms.stop_words import STOP_WORDS
from .run_folder import MOST_TEXTS, sha256
from .task import SwapsSection, Task


@dataclass(frozen=True)
class Text:
    """One row of the data: its number, its gold class, how the model reads it, and what may be swapped in it."""

    id: int
    label: int
    encoded: Encoded
    frozen: FrozenText


@dataclass(frozen=True)
class Inputs:
    """`texts` in the order of the data; `freezing` counts what was left out of their spaces; `table` what the synonym
    source dropped on reading; `digest` is the SHA-256 of ids, texts and labels."""

    texts: tuple[Text, ...]
    labels: tuple[str, ...]
    vocabulary: Vocabulary
    freezing: Freezing
    source: str
    table: dict[str, int]
    vocabulary_sha256: str
    digest: str

    @property
    def cut(self) -> int:
        """Texts longer than the model's input."""
        return sum(text.encoded.cut > 0 for text in self.texts)

    @property
    def unknown(self) -> int:
        """Words that the vocabulary does not know, over all texts."""
        return sum(len(text.encoded.unknown) for text in self.texts)


def read_inputs(task: Task, length: int | None, limit: int | None = None) -> Inputs:
    """The first `limit` texts of a task, for a model that reads `length` tokens (None: any number)."""
    if task.data.context is not None:
        raise Unsupported(
            f"[data] context = {task.data.context!r}: pairs of texts are not supported, only single texts"
        )
    model = task.model
    vocabulary_sha256 = sha256(model.vocabulary)
    vocabulary = read_vocabulary(
        model.vocabulary, pad=model.pad, unknown=model.unknown, lowercase=model.lowercase, split=model.split
    )
    limits = [most for most in (limit, task.data.limit) if most is not None]
    rows = read_rows(task.data.file, text=task.data.text, label=task.data.label, limit=min(limits) if limits else None)
    if len(rows) > MOST_TEXTS:
        raise Unsupported(f"{task.data.file}: {len(rows):,} texts; a run holds {MOST_TEXTS:,}: set [data] limit")
    encoded: list[tuple[int, Encoded]] = []
    labels: list[int] = []
    digest = hashlib.sha256()
    for row in rows:
        if row.label is None:
            raise BadInput(f"{row.where}: has no label")
        label = label_index(row.label, model.labels, row.where)
        try:
            encoded.append((row.id, vocabulary.encode(row.text, length)))
        except BadText as error:
            raise BadInput(f"{row.where}: {error}") from error
        labels.append(label)
        digest.update(json.dumps([row.id, row.text, label]).encode() + b"\n")
    source, table, freezing = frozen_spaces(task.swaps, encoded, vocabulary, partial=bool(limits))
    texts = tuple(
        Text(id, label, text, frozen) for (id, text), label, frozen in zip(encoded, labels, freezing.texts, strict=True)
    )
    return Inputs(texts, model.labels, vocabulary, freezing, source, table, vocabulary_sha256, digest.hexdigest())


def frozen_spaces(
    swaps: SwapsSection, encoded: Sequence[tuple[int, Encoded]], vocabulary: Vocabulary, *, partial: bool
) -> tuple[str, dict[str, int], Freezing]:
    """The name of the source, what was dropped on reading it, and the spaces."""
    if swaps.frozen is not None:
        freezing = read_spaces(swaps.frozen, encoded, vocabulary, swap_unknown=swaps.swap_unknown, partial=partial)
        return swaps.frozen.name, {}, freezing
    source = source_of(swaps, encoded)
    graph: Graph = symmetric(source.graph) if swaps.symmetric else source.graph
    filters = list(filters_of(swaps))
    freezing = freeze(encoded, vocabulary, graph, filters, swap_unknown=swaps.swap_unknown)
    return source.name, dict(source.dropped), freezing


def source_of(swaps: SwapsSection, encoded: Sequence[tuple[int, Encoded]]) -> Source:
    match swaps.source:
        case "table":
            return read_table(required(swaps.file, "file"))
        case "wordnet":
            return raw_wordnet()
        case "embeddings":
            vectors = required(swaps.embeddings, "embeddings")
            embeddings = read_vectors(vectors) if swaps.words is None else read_matrix(vectors, swaps.words)
            words = sorted({word.lower() for _, text in encoded for word in text.words})
            cosine = 0.0 if swaps.cosine is None else swaps.cosine
            return nearest_words(embeddings, words, threshold=cosine, at_most=swaps.max_per_word)


def filters_of(swaps: SwapsSection) -> Iterator[Filter]:
    if isinstance(swaps.stop_words, Path):
        yield StopWords(frozenset(read_text(swaps.stop_words).lower().split()))
    elif swaps.stop_words:
        yield StopWords(STOP_WORDS)
    if swaps.antonyms:
        yield Antonyms(frozenset().union(*(read_antonyms(path) for path in swaps.antonyms)))
    if swaps.same_part_of_speech:
        yield same_part_of_speech()
    if swaps.sentence_similarity is not None:
        yield sentence_similarity(swaps.sentence_similarity)
    yield MaxPerWord(swaps.max_per_word)


def required(path: Path | None, key: str) -> Path:
    if path is None:
        raise BadInput(f"[swaps] {key} is missing")
    return path


def text_lines(inputs: Inputs) -> Iterator[bytes]:
    """Of texts.jsonl."""
    for text in inputs.texts:
        line = {"id": text.id, "text": text.encoded.text, "label": inputs.labels[text.label]}
        yield f"{json.dumps(line, ensure_ascii=False)}\n".encode()
