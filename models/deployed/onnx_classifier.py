"""An ONNX model as it is deployed: whole sentences through its tokenizer into onnxruntime, its scores out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, one_line
from ..vocabulary import WordVocabulary, vocabulary_of
from ..vocabulary_files import TokenizerFile, read_vocabulary_file
from .classifier import Deployment, Identity, NoAnswer, Rows, Scores, SpeltOut, TooLong, Variants
from .opening.file_facts import OnnxFile, copy_of, look_at
from .opening.onnx_signature import Signature, scores_of, signature_of
from .opening.onnx_trial import tried
from .opening.rows_apart import RowsApart
from .swapped_text import Fields, SwapText
from .tokenising.sentence_batches import SMALL, Batching
from .tokenising.sentence_pieces import Layout, Pieces, layout_of, pieces_apart, pieces_of
from .tokenising.subword_rows import SubwordRows
from .tokenising.token_rows import Ids, Limit, Padding, Tokeniser, TokenRows
from .tokenising.word_rows import WordRows

BLOCK = 8_192
"""Sentences whose tokens are in memory at once."""
OF_TOKENS = ("vocabulary", "length", "pad", "pad_side", "cut_side", "unknown", "lowercase")
"""What a task says of tokens."""
BEYOND = re.compile(r"idx=(-?\d+) must be within the inclusive range \[-?\d+,(\d+)\]")


def open_onnx(deployment: Deployment) -> OnnxClassifier:
    """Checked on a few texts: how sentences may stand together in a batch is found out."""
    path = Path(deployment.source)
    file = look_at(path)
    session = _session(path, deployment.threads)
    try:
        signature = signature_of(session.get_inputs(), session.get_outputs(), deployment.inputs, deployment.output)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    if signature.streams not in (1, deployment.fields):
        raise BadInput(
            f"{path}: reads {signature.streams} texts, and the task gives {deployment.fields}: set [data] context"
        )
    if signature.reads_text and signature.streams != deployment.fields:
        raise BadInput(f"{path}: reads one string, and the task gives {deployment.fields} texts")
    if signature.reads_text and (idle := [key for key in OF_TOKENS if getattr(deployment, key) not in (None, False)]):
        raise BadInput(f"{path}: reads texts as strings: leave out [model] {', '.join(idle)}")
    if deployment.length is not None and signature.length not in (None, deployment.length):
        raise BadInput(f"{path}: reads {signature.length} tokens, and [model] length is {deployment.length}")
    tokeniser = None if signature.reads_text else _tokeniser(deployment, file, signature)
    batching = Batching(
        alone=file.dynamic, fixed=signature.batch, small=file.multiplied < SMALL, cores=deployment.threads
    )
    apart = RowsApart(path, signature.output)
    classifier = OnnxClassifier(deployment, file, session, signature, tokeniser, batching, apart)
    return tried(classifier)


def _session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # what goes wrong is raised, and said in one line
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base class
        raise BadInput(f"{path}: onnxruntime does not load this model ({one_line(error)})") from None


def _tokeniser(deployment: Deployment, file: OnnxFile, signature: Signature) -> Tokeniser:
    path = deployment.vocabulary
    if path is None:
        raise BadInput("[model] vocabulary is missing: without it no text becomes tokens")
    tables = [file.tables.get(given.name) for given in signature.inputs if given.role == "tokens"]
    table = min((rows for rows in tables if rows is not None), default=None)
    read = read_vocabulary_file(path)
    vocabulary = vocabulary_of(
        read,
        str(path),
        pad=deployment.pad,
        unknown=deployment.unknown,
        lowercase=deployment.lowercase,
        split=deployment.split,
        pad_side=deployment.pad_side,
        cut_side=deployment.cut_side,
    )
    if isinstance(read, TokenizerFile):
        return SubwordRows(
            path,
            replace(read, pad_side=deployment.pad_side or read.pad_side, cut_side=deployment.cut_side or read.cut_side),
            length=deployment.length,
            fixed=signature.length,
            pad=None if deployment.pad is None else str(deployment.pad),
            lowercase=deployment.lowercase,
            fields=1 if signature.streams > 1 else deployment.fields,
            table=table,
            types="types" in signature.roles,
        )
    assert isinstance(vocabulary, WordVocabulary)
    limit = Limit(at=deployment.length)
    if deployment.length is None and signature.length is not None:
        why = f"the model reads {signature.length}; set length = {signature.length} to cut longer texts"
        limit = Limit(most=signature.length, why=why)
    chosen = deployment.unknown is not None or read.unknown is not None
    return WordRows(vocabulary, deployment.length or signature.length, limit, table, chosen)


@dataclass(frozen=True, eq=False)
class OnnxClassifier:
    """An onnxruntime session with the tokenizer before it."""

    deployment: Deployment
    file: OnnxFile
    session: Any
    signature: Signature
    tokeniser: Tokeniser | None
    batching: Batching
    apart: RowsApart
    columns: int = 0
    met: tuple[str, ...] = ()
    """What a few texts showed."""

    @cached_property
    def identity(self) -> Identity:
        import onnxruntime

        file, copies = self.file, tuple(self.file.copies)
        facts: dict[str, str | int] = {
            "opset": file.opset,
            "inputs": ", ".join(
                f"{given.name} {given.dtype}{'' if given.name == given.role else f' ({given.role})'}"
                for given in self.signature.inputs
            ),
            "output": self.signature.output,
            "parameters": file.parameters,
            "weights": "quantised" if file.quantised else "float16" if file.half else "float32",
            "onnxruntime": onnxruntime.__version__,
        }
        if isinstance(self.tokeniser, SubwordRows):
            import tokenizers

            facts["tokenizers"] = tokenizers.__version__
        vocabulary = () if self.tokeniser is None else self.tokeniser.files
        remarks = () if self.tokeniser is None else self.tokeniser.remarks
        return Identity(
            kind="onnx",
            name=file.path.name,
            files=(*copies, *(copy_of(name, path) for name, path in vocabulary)),
            facts=facts,
            remarks=(*remarks, *self.met),
            keys={"onnx": copies[0].name, **({"vocabulary": vocabulary[0][0]} if vocabulary else {})},
        )

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        blocks = [sentences[start : start + BLOCK] for start in range(0, len(sentences), BLOCK)]
        return self.stacked([self._block(block) for block in blocks])

    def variants(self, text: SwapText) -> Variants:
        return SpeltOut(self, text) if self.tokeniser is None else OnnxVariants(self, self.tokeniser, text)

    def unknown(self, sentences: Sequence[Fields]) -> tuple[int, int]:
        """Of how many words or tokens of these the tokenizer knows nothing, and how many there are."""
        if self.tokeniser is None:
            return 0, 0
        parts = [self.tokeniser.unknown_in(self.part(sentences, k)) for k in range(self.signature.streams)]
        return sum(part for part, _ in parts), sum(total for _, total in parts)

    def stacked(self, parts: Sequence[Scores]) -> Scores:
        columns = {self.columns or part.shape[1] for part in parts} | {part.shape[1] for part in parts}
        if len(columns) > 1:
            raise BadInput(
                f"{self.file.path}: output {self.signature.output} answers {min(columns)} scores for one text and "
                f"{max(columns)} for another: one for every class is needed"
            )
        return np.concatenate(parts) if parts else np.empty((0, self.columns))

    def _block(self, sentences: Sequence[Fields]) -> Scores:
        if self.tokeniser is None:
            return self._of_texts(sentences)
        return self.of_tokens([self.tokeniser.rows(self.part(sentences, k)) for k in range(self.signature.streams)])

    def part(self, sentences: Sequence[Fields], stream: int) -> Sequence[Fields]:
        """What one of the model's token inputs reads of them."""
        return sentences if self.signature.streams == 1 else [(fields[stream],) for fields in sentences]

    def of_tokens(self, streams: Sequence[TokenRows]) -> Scores:
        widths = np.stack([self.padding.alone(rows.sizes) for rows in streams], axis=1)
        if self.signature.same_width:
            widths[:] = widths.max(axis=1, keepdims=True)
        if len(widths) and not widths.min():
            raise NoAnswer("a text without a word that the model reads")
        order: list[Ids] = []
        parts: list[Scores] = []
        for places in self.batching.slabs(widths):
            wide = widths[places[0]].tolist()
            order.append(places)
            parts.append(self._run(self.feed(streams, places, wide), len(places), sum(wide)))
        sorted_scores = self.stacked(parts)
        scores = np.empty_like(sorted_scores)
        if order:
            scores[np.concatenate(order)] = sorted_scores
        return scores

    def _of_texts(self, sentences: Sequence[Fields]) -> Scores:
        feed: dict[str, NDArray[Any]] = {}
        for given in self.signature.inputs:
            column = np.array([fields[given.field] for fields in sentences], dtype=object)
            feed[given.name] = column[:, None] if given.rank == 2 else column
        characters = sum(len(text) for fields in sentences for text in fields)
        return self._run(feed, len(sentences), 1 + characters // CHARACTERS // max(1, len(sentences)))

    @property
    def padding(self) -> Padding:
        assert self.tokeniser is not None
        return self.tokeniser.padding

    def feed(self, streams: Sequence[TokenRows], places: Ids, widths: Sequence[int]) -> dict[str, NDArray[Any]]:
        """What the model reads of these sentences."""
        padding = self.padding
        padded = [rows.padded(places, width, padding) for rows, width in zip(streams, widths, strict=True)]
        feed: dict[str, NDArray[Any]] = {}
        for given in self.signature.inputs:
            ids, types, real = padded[given.field]
            read: NDArray[Any]
            match given.role:
                case "tokens":
                    read = ids
                case "mask":
                    read = real
                case "types":
                    read = types
                case "positions":
                    read = self._positions(real)
                case _:
                    sizes = streams[given.field].sizes[places]
                    read = sizes[:, None] if given.rank == 2 else sizes
            feed[given.name] = np.ascontiguousarray(read, dtype=given.dtype)
        return feed

    def _positions(self, real: NDArray[np.bool_]) -> Ids:
        assert self.tokeniser is not None
        first = self.tokeniser.first_position
        if first is None:
            return np.broadcast_to(np.arange(real.shape[1]), real.shape)
        return np.where(real, np.cumsum(real, axis=1) + first - 1, self.padding.id)

    def _run(self, feed: Mapping[str, NDArray[Any]], sentences: int, width: int) -> Scores:
        """In batches."""
        most = self.batching.most(width)
        if min(most, sentences) > 1 and self.apart.why_together_matters(feed) is not None:
            most = 1
        parts: list[Scores] = []
        for start in range(0, sentences, most):
            given = {name: array[start : start + most] for name, array in feed.items()}
            number = min(most, sentences - start)
            filled = self.batching.fixed or number
            if number < filled:  # the last one again, until the batch is full
                given = {name: np.concatenate([part, *[part[-1:]] * (filled - number)]) for name, part in given.items()}
            try:
                (value,) = self.session.run([self.signature.output], given)
            except Exception as error:  # onnxruntime's exceptions share no base class
                raise self._refusal(error, given) from None
            try:
                parts.append(scores_of(value, filled, self.signature.output)[:number])
            except BadInput as error:
                raise BadInput(f"{self.file.path}: {error}") from None
        return self.stacked(parts)

    def _refusal(self, error: Exception, given: Mapping[str, NDArray[Any]]) -> Exception:
        """An id beyond a table never has an answer; the rest may be this text's."""
        path, found = self.file.path, BEYOND.search(str(error))
        if self.tokeniser is None:
            return NoAnswer(f"{path}: onnxruntime fails ({one_line(error)})")
        ids = [given[one.name] for one in self.signature.inputs if one.role == "tokens"]
        width = max(tokens.shape[1] for tokens in ids)
        if found is None:
            advice = "" if self.signature.length else ": [model] length says to how many the deployed code pads or cuts"
            return NoAnswer(
                f"{path}: onnxruntime fails on {width} token{'s' * (width > 1)} ({one_line(error)}){advice}"
            )
        index, rows = int(found[1]), int(found[2]) + 1
        met: list[str] = []
        if any((tokens == index).any() for tokens in ids):
            shown = f"{self.deployment.vocabulary} gives {self.tokeniser.shown(index)!r} the id {index}"
            met.append(f"{shown}: this is the vocabulary of another model")
        long = width + ROBERTA > rows or not met
        if long:
            met.append(f"a text has {width} tokens: set length to where the deployed code cuts")
        return (TooLong if long else BadInput)(f"{path}: has a table of {rows} rows, and {'; or '.join(met)}")


ROBERTA = 2
"""Where its positions begin."""
WHOLE = 4
"""Sentences of a text that are read whole, to see that they are what their stretches give."""
CHARACTERS = 4
"""Of a text, for one token, where the model makes the tokens."""


@dataclass(eq=False)
class OnnxVariants:
    """The sentences of one text, put together from pieces once that is less work than spelling them out."""

    classifier: OnnxClassifier
    tokeniser: Tokeniser
    text: SwapText
    asked: int = field(default=0, init=False)

    def scores(self, rows: Rows) -> Scores:
        self.asked += len(rows)
        blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
        return self.classifier.stacked([self.classifier.of_tokens(self.tokens(block)) for block in blocks])

    def tokens(self, rows: Rows) -> list[TokenRows]:
        """One for each of the model's token inputs."""
        streams = self.classifier.signature.streams
        return [
            self.moving(rows)
            if streams == 1 or stream == self.text.moving
            else self.tokeniser.rows([(self.text.fields[stream],)]).repeated(len(rows))
            for stream in range(streams)
        ]

    def moving(self, rows: Rows) -> TokenRows:
        early = not isinstance(self.tokeniser, WordRows) and self.asked < self.layout_size
        if self.layout is None or early or self.pieces is None:
            return self.tokeniser.rows(self.spelt(rows.tolist()))
        return self.tokeniser.fitted(self.pieces.sentences(rows), lambda places: self.spelt(rows[places].tolist()))

    def pieces_of_words(self, layout: Layout) -> Pieces | None:
        """None where whole sentences, the text and some drawn at random, are read as something else."""
        found = pieces_apart(
            layout, self.tokeniser.separators, lambda texts: self.tokeniser.uncut([(text,) for text in texts])
        )
        sizes = np.array([len(options) for options in self.text.options], dtype=np.int64)
        drawn = np.random.default_rng(len(self.text.text)).integers(0, sizes, size=(WHOLE, len(sizes)))
        rows = np.concatenate([np.zeros_like(sizes)[None], drawn]).astype(np.int32)
        whole, parts = self.tokeniser.uncut(self.spelt(rows.tolist())), found.sentences(rows)
        same = np.array_equal(whole.sizes, parts.sizes) and np.array_equal(whole.ids, parts.ids)
        return found if same else None

    def spelt(self, rows: Sequence[Sequence[int]]) -> Sequence[Fields]:
        return self.classifier.part([self.text.sentence(row) for row in rows], self.text.moving)

    @cached_property
    def layout(self) -> Layout | None:
        return layout_of(self.text, self.tokeniser.separators)

    @cached_property
    def layout_size(self) -> int:
        return 0 if self.layout is None else len(self.layout.rows)

    @cached_property
    def pieces(self) -> Pieces | None:
        assert self.layout is not None
        if isinstance(self.tokeniser, WordRows) and (found := self.pieces_of_words(self.layout)) is not None:
            return found
        read = self.tokeniser.uncut(self.spelt(self.layout.rows))
        return pieces_of(self.layout, read) if self.tokeniser.plain(read) else None
