"""What radii are measured of: the texts of a task, the vectors of its words, and the network behind the embedding."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.canonical_layers import Curved, Pairs
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.network import Floats, Indices
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.models.deployed.classifier import Copy
from swapproof.models.vocabulary import WordVocabulary
from swapproof.proofs.writing.ball_certificate import Norm

from ..ladder.token_length import length_of
from ..runs.binding import OWN, Binding, binding_of, copies_of
from ..runs.run_folder import EMBEDDINGS
from ..synonyms.embeddings import read_vectors
from ..synonyms.part_of_speech import SamePartOfSpeech, same_part_of_speech
from ..tasks.inputs import Inputs, Text, read_inputs
from ..tasks.opened_model import opened
from ..tasks.task import Task, onnx_of
from .behind_embedding import Behind, Cutter, behind_name, without_head
from .moving_network import PlainNetwork
from .seeking.word_sweep import Products
from .smooth.smooth_forms import SmoothNetwork

Array = NDArray[Any]
CELLS = 1 << 22
"""Distances held at a time."""
WIDTH_BITS = 24
"""Of a range, which is rounded up to so many and is then the unit of its dimension: radii times widths are exact."""


@dataclass(frozen=True)
class RadiusQuestion:
    """`words`: "one", "all", or how many move together; `units`: of the vectors, or of each dimension's range."""

    norm: Norm
    words: str
    units: str = "raw"
    padding: bool = False
    saliency: bool = False
    """Effects of words beside their radii."""
    lime: int = 0
    """Samples of LIME for each text; 0: LIME is not asked."""
    same_part_of_speech: bool = False
    """The nearest word of the same part of speech, too."""

    def fact(self) -> dict[str, Any]:
        """As the store of the run says it."""
        return {
            "quantity": "msr",
            "norm": self.norm,
            "words": self.words,
            "units": self.units,
            "padding": self.padding,
            "saliency": self.saliency,
            "lime": self.lime,
            "same_part_of_speech": self.same_part_of_speech,
        }

    @classmethod
    def of(cls, fact: Mapping[str, Any]) -> RadiusQuestion:
        """Raises LookupError or TypeError."""
        names = ("norm", "words", "units", "padding", "saliency", "lime", "same_part_of_speech")
        return cls(*(fact[name] for name in names))


@dataclass(frozen=True, eq=False)
class Rooms:
    """The network behind the embedding for texts of one length, in all its forms."""

    behind: Behind
    plain: PlainNetwork | SmoothNetwork

    @cached_property
    def forms(self) -> SmoothNetwork:
        """The network as forms need it."""
        form = self.behind.canonical.form
        if isinstance(self.plain, SmoothNetwork) or form is None:
            return self.plain  # type: ignore[return-value]
        return SmoothNetwork.of(form)

    @classmethod
    def open(cls, path: Path, width: int) -> Rooms:
        behind = Behind.open(path, width)
        form = behind.canonical.form
        if form is None:
            raise Unsupported(f"{path}: {behind.canonical.reason}")
        smooth = any(isinstance(step, Pairs | Curved) for step in form.steps)
        return cls(behind, SmoothNetwork.of(form) if smooth else PlainNetwork.of(form))


@dataclass(frozen=True, eq=False)
class RadiusSetting:
    """`vectors` [tokens, width] in the type that the model reads; `candidates` are tokens that are words."""

    task: Task
    inputs: Inputs
    path: Path
    model: Model | None
    """None where the file itself reads vectors."""
    vectors: Array
    candidates: Indices
    names: Mapping[int, str]
    folder: Path
    """Where networks behind the embedding are written."""
    cutter: Cutter | None = None
    rooms: dict[str, Rooms] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, folder: Path, limit: int | None = None, *, every_word: bool = False) -> RadiusSetting:
        """`folder` must be there; `every_word`: also unknown ones may have swaps, as in the files of a run."""
        if every_word:
            task = task.model_copy(update={"swaps": task.swaps.model_copy(update={"swap_unknown": True})})
        if task.model.embeddings is not None:
            return cls.of_vectors(task, folder, limit)
        model = opened(task)
        length = length_of(task, model)
        inputs = read_inputs(task, length, limit, model.roles)
        cutter = Cutter.of(model)
        table = cutter.table
        return cls(task, inputs, model.path, model, table, *words_of(inputs, len(table)), folder, cutter)

    @classmethod
    def of_vectors(cls, task: Task, folder: Path, limit: int | None) -> RadiusSetting:
        path, source = onnx_of(task), task.model.embeddings
        if source is None:
            raise BadInput("[model] embeddings is missing")
        length = task.model.length
        if length is None:
            raise BadInput("[model] length is missing: how many words the model reads, which its vectors do not say")
        inputs = read_inputs(task, length, limit)
        vectors = vectors_of(source, inputs)
        if not without_head(path, folder / behind_name(length)):
            (folder / behind_name(length)).write_bytes(path.read_bytes())
        setting = cls(task, inputs, path, None, vectors, *words_of(inputs, len(vectors)), folder)
        behind = setting.room(inputs.texts[0].encoded.tokens).behind
        if behind.positions != length:
            raise BadInput(
                f"{path}: reads {behind.positions} vectors of {vectors.shape[1]}, and [model] length is {length}"
            )
        return setting

    @cached_property
    def binding(self) -> Binding:
        return binding_of(self.path, self.inputs)

    def copies(self) -> tuple[Copy, ...]:
        """The files that a run keeps."""
        vocabulary = self.task.model.vocabulary
        if vocabulary is None:
            raise BadInput("[model] vocabulary is missing")
        found = copies_of(self.path, vocabulary, self.binding, self.inputs.vocabulary_content)
        if self.model is not None:
            return found
        data = npy_bytes(self.vectors)
        return (*found, Copy(EMBEDDINGS, self.path, hashlib.sha256(data).hexdigest(), data))

    @cached_property
    def vectors_sha256(self) -> str:
        """Of vectors that stand in a file of their own; of others the model's hash says it."""
        return "" if self.model is not None else hashlib.sha256(npy_bytes(self.vectors)).hexdigest()

    def own(self) -> dict[str, Any]:
        """Keys of [model] in the folder of the run."""
        if self.model is None:
            return {**OWN, "embeddings": Path(EMBEDDINGS)}
        plain = {"output": None, "scores": "logits", "threshold": None, "column": None}
        return dict(OWN if self.model.given is None else OWN | plain)

    @cached_property
    def same_part_of_speech(self) -> SamePartOfSpeech:
        return same_part_of_speech()

    @property
    def labels(self) -> int:
        return len(self.inputs.labels)

    @cached_property
    def words(self) -> Floats:
        """[candidates, width]: the vectors of all words."""
        return np.asarray(self.vectors[self.candidates], dtype=np.float64)

    @cached_property
    def products(self) -> Products:
        return Products(np.ascontiguousarray(self.words.T))

    def room(self, tokens: Sequence[int]) -> Rooms:
        """That of texts of as many tokens of which the model computes the same beside their embedding."""
        name = behind_name(len(tokens)) if self.cutter is None else self.cutter.named(tokens)
        if name not in self.rooms:
            path = self.folder / name
            if self.cutter is not None and not path.exists():
                self.cutter.write(tokens, path)
            self.rooms[name] = Rooms.open(path, self.vectors.shape[1])
        found = self.rooms[name]
        if found.behind.classes < self.labels:
            raise BadInput(
                f"{self.path}: {found.behind.classes} outputs for the {self.labels} classes of [model] labels"
            )
        return found

    def center(self, text: Text) -> Array:
        """[positions * width]: the vectors of the text's words, one after the other, as the model reads them."""
        return np.asarray(self.vectors[list(text.encoded.tokens)]).reshape(-1)

    @cached_property
    def nothing(self) -> Floats:
        """The vector of the padding; zeros where there is none."""
        vocabulary = self.inputs.vocabulary
        pad = vocabulary.pad if isinstance(vocabulary, WordVocabulary) else None
        token = vocabulary.ids.get(pad) if isinstance(pad, str) and isinstance(vocabulary, WordVocabulary) else pad
        if not isinstance(token, int) or token >= len(self.vectors):
            return np.zeros(self.vectors.shape[1])
        return np.asarray(self.vectors[token], dtype=np.float64)

    def widths(self, units: str) -> Floats:
        """[width]: 1, or the range of each dimension over all words, rounded up to 24 significant bits."""
        if units == "raw":
            return np.ones(self.vectors.shape[1])
        words = self.vectors[self.candidates].astype(np.float64)
        ranges = words.max(axis=0) - words.min(axis=0)
        still = np.flatnonzero(~(ranges > 0))
        if len(still):
            raise BadInput(
                f"--units scaled: dimension {still[0]} (the first is 0) of the vectors is the same in all words, so "
                "its range is no unit; --units raw measures them as they are"
            )
        part, exponent = np.frexp(ranges)
        return np.asarray(np.ldexp(np.ceil(np.ldexp(part, WIDTH_BITS)), exponent - WIDTH_BITS))

    def diameter(self, norm: Norm, units: str) -> float:
        """The greatest distance of two words."""
        points = self.vectors[self.candidates].astype(np.float64) / self.widths(units)
        if norm == "linf":
            return float((points.max(axis=0) - points.min(axis=0)).max())
        return widest(points)


def words_of(inputs: Inputs, rows: int) -> tuple[Indices, dict[int, str]]:
    """The tokens that are words with a vector, and a name for each; not padding, not the unknown word."""
    vocabulary = inputs.vocabulary
    if not isinstance(vocabulary, WordVocabulary):
        raise Unsupported(
            "radii are of models that read words, each with a vector; this vocabulary is of parts of words"
        )
    reserved = {
        name if isinstance(name, int) else vocabulary.ids.get(name) for name in (vocabulary.pad, vocabulary.unknown)
    }
    names: dict[int, str] = {}
    for word, token in vocabulary.ids.items():
        if token < rows and token not in reserved:
            names.setdefault(token, word)
    highest = max(token for text in inputs.texts for token in text.encoded.tokens)
    if highest >= rows:
        raise BadInput(f"token {highest} of a text is beyond the {rows} vectors")
    if not names:
        raise BadInput("the vocabulary has no word with a vector")
    return np.array(sorted(names), dtype=np.int64), names


def vectors_of(source: Path, inputs: Inputs) -> Array:
    """A row for each token: those of a .npy file, or by its words from a file of lines `word number number ...`; a
    word without a line there has zeros, as padding has."""
    if source.suffix != ".npy":
        found, vocabulary = read_vectors(source), inputs.vocabulary
        if not isinstance(vocabulary, WordVocabulary):
            raise Unsupported(f"{source}: vectors by word need a vocabulary of words")
        matrix = np.zeros((vocabulary.size, found.matrix.shape[1]), dtype=np.float32)
        for word, token in vocabulary.ids.items():
            if word in found.rows:
                matrix[token] = found.matrix[found.rows[word]]
        return matrix
    try:
        values = np.load(source, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(f"{source}: not a readable .npy matrix ({str(error).splitlines()[0]})") from None
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind != "f" or not values.size:
        raise BadInput(f"{source}: a matrix of floats, one row for each id of the vocabulary, is needed")
    if values.dtype == np.float16 or not np.isfinite(values).all():
        raise BadInput(f"{source}: finite float32 or float64 numbers are needed")
    return np.asarray(values)


def npy_bytes(vectors: Array) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    np.save(stream, vectors, allow_pickle=False)
    return stream.getvalue()


def widest(points: Floats) -> float:
    """The greatest distance of two of the points, of which only those are compared that could be an end of it."""
    centered = points - points.mean(axis=0)
    norms = np.sqrt((centered**2).sum(axis=1))
    start, best = int(norms.argmax()), 0.0
    for _ in range(4):
        away = np.sqrt(((centered - centered[start]) ** 2).sum(axis=1))
        best, start = max(best, float(away.max())), int(away.argmax())
    ends = centered[norms + norms.max() >= best]
    squares = (ends**2).sum(axis=1)
    block = max(1, CELLS // len(ends))
    for first in range(0, len(ends), block):
        part = slice(first, first + block)
        apart = squares[part, None] + squares[first:] - 2 * ends[part] @ ends[first:].T
        best = max(best, float(np.sqrt(max(0.0, apart.max()))))
    return best
