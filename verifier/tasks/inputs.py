"""Everything a task names, read and checked: texts as the model reads them, gold labels, frozen spaces."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.model_ports import POSITIONS, TOKENS
from swapproof.models.deployed.swapped_text import Fields, SwapText
from swapproof.models.encoded import Encoded, check_length
from swapproof.models.plain_words import PlainWords
from swapproof.models.tokens_in_place import product_of
from swapproof.models.vocabulary import TokenizerVocabulary, Vocabulary, read_vocabulary

from ..runs.run_folder import MOST_TEXTS, sha256
from ..synonyms.embeddings import nearest_words, read_matrix, read_vectors
from ..synonyms.filters import Antonyms, Filter, MaxPerWord, StopWords
from ..synonyms.freezing import Freezing, FrozenText, digest_of, freeze
from ..synonyms.graph import Graph, symmetric
from ..synonyms.part_of_speech import same_part_of_speech
from ..synonyms.rejected_pairs import Rejected, read_rejected
from ..synonyms.similarity import sentence_similarity
from ..synonyms.sources import Source, raw_wordnet, read_antonyms, read_text
from ..synonyms.spaces_file import read_spaces
from ..synonyms.stop_words import STOP_WORDS
from ..synonyms.synonym_tables import read_synonyms
from .given_rows import rows_and_end
from .sections import DataSection, SwapsSection
from .task import Task


@dataclass(frozen=True)
class Text:
    """One text of a run: its number there, its gold class, how the model reads it, and what may be swapped in it.

    `fields` are the texts that the model is given, of which that at `moving` is this one.
    """

    id: int
    label: int
    encoded: Encoded
    frozen: FrozenText
    fields: Fields = ()
    moving: int = 0
    answer: int | None = None
    """The class that the deployed system answered, where the data say it."""

    @property
    def swaps(self) -> SwapText:
        """The text as the deployed model is given it, with the words that may stand in it."""
        return SwapText(self.fields or (self.encoded.text,), self.moving, self.encoded.spans, self.frozen.words)

    @property
    def context(self) -> str | None:
        """The other text of a pair."""
        return next((field for place, field in enumerate(self.fields) if place != self.moving), None)


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
    skipped: int = 0
    """Rows of the data that could not be used."""
    defects: tuple[str, ...] = ()
    """Why not, of the first of them."""
    ended: bool = False
    """Of a shard: rows that had been counted were skipped, and no text is left for the shards behind it."""
    short: str = ""
    """What to say of rows that end behind the last text."""
    vocabulary_content: bytes | None = None
    """Of the vocabulary.json of a run, where it is not the file of the task."""

    @property
    def cut(self) -> int:
        """Texts longer than the model's input."""
        return sum(text.encoded.cut > 0 for text in self.texts)

    @property
    def unknown(self) -> int:
        """Words that the vocabulary does not know, over all texts."""
        return sum(len(text.encoded.unknown) for text in self.texts)


def read_inputs(task: Task, length: int | None, limit: int | None = None, roles: Sequence[str] = (TOKENS,)) -> Inputs:
    """The first `limit` texts of a task, as tokens for a network that reads `length` of them (None: any number).

    `roles` of the model's inputs, in the order of its file: each text has the constants for those beside the tokens.
    """
    if task.data.context is not None:
        raise Unsupported(f"[data] context = {task.data.context!r}: models of pairs of texts are run, and not read")
    path = task.model.vocabulary
    if path is None:
        raise Unsupported("[model] vocabulary is missing: without it no text becomes tokens")
    vocabulary = vocabulary_of(task, path)
    joined = product_of(vocabulary)
    if joined is not None:
        raise Unsupported(f'{path}: this tokenizer joins neighbours ({joined}): run the model instead, road = "run"')
    if isinstance(vocabulary, TokenizerVocabulary) and vocabulary.skips_padding and POSITIONS in roles:
        raise Unsupported(
            f'{path}: models of this tokenizer count positions from the padding on, as RoBERTa: run it, road = "run"'
        )
    own = None if isinstance(vocabulary, PlainWords) else vocabulary.self_contained
    digest = sha256(path) if own is None else hashlib.sha256(own).hexdigest()
    return replace(inputs_of(task, vocabulary, digest, length, limit, roles), vocabulary_content=own)


def vocabulary_of(task: Task, path: Path) -> Vocabulary:
    """The vocabulary in this file, read as the task says."""
    model = task.model
    return read_vocabulary(
        path,
        pad=model.pad,
        unknown=model.unknown,
        lowercase=model.lowercase,
        split=model.split,
        pad_side=model.pad_side,
        cut_side=model.cut_side,
        cut=model.length,
    )


def read_plain(task: Task, limit: int | None = None) -> Inputs:
    """The same as words that the deployed model turns into whatever it reads."""
    words = PlainWords(task.model.split or "words")
    return inputs_of(task, words, words.sha256, None, limit)


def inputs_of(
    task: Task,
    vocabulary: Vocabulary,
    sha256: str,
    length: int | None,
    limit: int | None,
    roles: Sequence[str] = (TOKENS,),
) -> Inputs:
    model, data = task.model, task.data
    check_length(length)
    rows, defects, ended = rows_and_end(data, model, lambda text: vocabulary.encode(text, length), limit)
    if len(rows) > MOST_TEXTS:
        raise Unsupported(f"{data.file}: {len(rows):,} texts; a run holds {MOST_TEXTS:,}: set [data] limit")
    # Frozen spaces know a text by its row in the data; the texts of a run are numbered from 0.
    encoded = [(given.row.id, one) for given, one in rows]
    partial = bool(limit or data.limit or data.sample or data.rows or defects.number)
    source, table, freezing = frozen_spaces(task.swaps, encoded, vocabulary, partial=partial)
    freezing = numbered(freezing)
    texts: list[Text] = []
    for (given, text), frozen in zip(rows, freezing.texts, strict=True):
        own = (given.row.text,)
        other = () if given.row.context is None else (given.row.context,)
        fields = (*other, *own) if data.moving else (*own, *other)
        frozen = beside(frozen, text, roles)
        texts.append(Text(frozen.id, given.label, text, frozen, fields, data.moving, given.answer))
    lines = tuple(line.replace(str(data.file), data.file.name) for line in defects.lines)
    return Inputs(
        tuple(texts),
        model.labels,
        vocabulary,
        freezing,
        source,
        table,
        sha256,
        texts_digest(texts),
        defects.number,
        lines,
        ended=ended,
        short=short_of(data, len(rows), limit),
    )


def short_of(data: DataSection, texts: int, limit: int | None) -> str:
    """Shards know how many rows there are."""
    if data.rows is None or data.shard_of is not None:
        return ""
    begin, end = data.rows
    asked = min(most for most in (end, data.limit, None if limit is None else begin + limit) if most is not None)
    if begin + texts >= asked:
        return ""
    return f"{data.file}: [data] rows end at {end}, and there are {begin + texts} texts: {texts} in this run"


def texts_digest(texts: Iterable[Text]) -> str:
    """SHA-256 of numbers, texts, classes, contexts and answers."""
    return digest_of_rows((text.id, text.encoded.text, text.label, text.context, text.answer) for text in texts)


def digest_of_rows(rows: Iterable[tuple[int, str, int, str | None, int | None]]) -> str:
    digest = hashlib.sha256()
    for id, text, label, context, answer in rows:
        about: list[Any] = [id, text, label]
        about += [] if context is None else [context]
        about += [] if answer is None else [{"answer": answer}]
        digest.update(json.dumps(about).encode() + b"\n")
    return digest.hexdigest()


def numbered(freezing: Freezing) -> Freezing:
    """The same of texts that are numbered from 0, as a run writes them."""
    if all(text.id == number for number, text in enumerate(freezing.texts)):
        return freezing
    texts = tuple(replace(text, id=number) for number, text in enumerate(freezing.texts))
    return replace(freezing, texts=texts, digest=digest_of(texts))


def beside(frozen: FrozenText, text: Encoded, roles: Sequence[str]) -> FrozenText:
    """With what the model's other inputs are given of this text."""
    if len(roles) == 1:
        return frozen
    place = roles.index(TOKENS)
    before, after = (tuple(text.constants[role] for role in some) for some in (roles[:place], roles[place + 1 :]))
    return replace(frozen, space=replace(frozen.space, before=before, after=after))


def frozen_spaces(
    swaps: SwapsSection, encoded: Sequence[tuple[int, Encoded]], vocabulary: Vocabulary, *, partial: bool
) -> tuple[str, dict[str, int], Freezing]:
    """The name of the source, what was dropped on reading it, and the spaces."""
    if swaps.frozen is not None:
        freezing = read_spaces(
            swaps.frozen,
            encoded,
            vocabulary,
            swap_unknown=swaps.swap_unknown,
            partial=partial,
            rejected=None if swaps.rejected is None else Rejected(read_rejected(swaps.rejected)),
        )
        return swaps.frozen.name, {}, freezing
    source = source_of(swaps, encoded)
    graph: Graph = symmetric(source.graph) if swaps.symmetric else source.graph
    filters = list(filters_of(swaps))
    freezing = freeze(encoded, vocabulary, graph, filters, swap_unknown=swaps.swap_unknown)
    return source.name, dict(source.dropped), freezing


def source_of(swaps: SwapsSection, encoded: Sequence[tuple[int, Encoded]]) -> Source:
    match swaps.source:
        case "table":
            return read_synonyms(required(swaps.file, "file"))
        case "wordnet":
            return raw_wordnet()
        case "embeddings":
            vectors = required(swaps.embeddings, "embeddings")
            embeddings = read_vectors(vectors) if swaps.words is None else read_matrix(vectors, swaps.words)
            words = sorted({word.lower() for _, text in encoded for word in text.words})
            cosine = 0.0 if swaps.cosine is None else swaps.cosine
            return nearest_words(embeddings, words, threshold=cosine, at_most=swaps.max_per_word)


def filters_of(swaps: SwapsSection) -> Iterator[Filter]:
    if swaps.rejected is not None:
        yield Rejected(read_rejected(swaps.rejected))
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
        line |= {} if text.context is None else {"context": text.context}
        line |= {} if text.answer is None else {"answer": inputs.labels[text.answer]}
        yield f"{json.dumps(line, ensure_ascii=False)}\n".encode()
