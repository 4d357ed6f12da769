"""What every deployed classifier is, whatever it is made of: a function from sentences to scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..encoded import Split
from ..errors import BadInput
from .decision import Answered
from .swapped_text import Fields, SwapText

Scores = NDArray[np.float64]
"""[sentences, outputs]: what the model answers, as it answers it; NaN where it did."""
Rows = NDArray[np.int32]
"""[sentences, words]: the number of the option that each word of a text takes, 0 the word that stands there."""


class NoAnswer(Exception):
    """The model cannot answer one of the sentences: these stay open, and the run goes on. The message says why."""


class TooLong(BadInput):
    """A text has more tokens than the model has places for."""


@dataclass(frozen=True)
class Copy:
    """A file that a run keeps a copy of: its name there, where it lies, its SHA-256; `content` in place of the file's
    own, where that says the same without other files."""

    name: str
    path: Path
    sha256: str
    content: bytes | None = None


@dataclass(frozen=True)
class Identity:
    """What the answers of a classifier depend on: `kind` is a key of KINDS, `name` what people call it (no folders, no
    passwords), `files` all that it was read from."""

    kind: str
    name: str
    files: tuple[Copy, ...] = ()
    facts: Mapping[str, str | int] = field(default_factory=dict)
    """For the report: opset, number of parameters, versions of libraries that answer."""
    remarks: tuple[str, ...] = ()
    """What a reader of the report must know."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys of [model] with which copies of these files, in a folder of their own, are opened again: names in it."""
    answered: Answered | None = None

    @property
    def opened_by(self) -> Mapping[str, str]:
        """The same, of models that are one file too; none of those that stay where they are."""
        if self.keys or not self.files or self.kind in ("callable", "endpoint"):
            return self.keys
        return {self.kind: self.files[0].name}

    @property
    def account(self) -> dict[str, Any]:
        """What transcripts say of it."""
        return {"kind": self.kind, "name": self.name, "files": {copy.name: copy.sha256 for copy in self.files}}


@dataclass(frozen=True)
class Deployment:
    """What a task says of a model, for whoever opens it; paths are absolute."""

    kind: str
    source: str
    """A path, `package.module:function` or a URL."""
    vocabulary: Path | None = None
    inputs: Mapping[str, str] | None = None
    """Of an ONNX model with several: name -> role."""
    output: str | int | None = None
    """The one of several that holds the scores."""
    length: int | None = None
    pad: str | int | None = None
    pad_side: str | None = None
    cut_side: str | None = None
    """Where a text longer than `length` is cut, of plain words: "right" keeps its beginning."""
    unknown: str | int | None = None
    lowercase: bool = False
    split: Split | None = None
    fields: int = 1
    """2 for pairs of texts."""
    moving: int | None = None
    """Of pairs, the place of the text that the swaps move."""
    labels: tuple[str, ...] = ()
    """The classes in order, for models that name theirs."""
    label_map: Mapping[str, str] | None = None
    """What stands in the data -> class, which may be the model's own names."""
    folder: Path | None = None
    """Where a callable's module is looked for before all other places."""
    threads: int = 1
    """Cores that one batch may use."""
    trust_pickle: bool = False
    allow_endpoint: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keys of [model] that one kind alone has, such as an endpoint's `request`."""


class Variants(Protocol):
    """The sentences of one text."""

    def scores(self, rows: Rows) -> Scores: ...


class Classifier(Protocol):
    """Texts in, a row of scores for each out. Batches are its own affair: it may be asked about any number at once."""

    @property
    def identity(self) -> Identity: ...

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        """Raises NoAnswer where it cannot answer one of them, BadInput where it never will answer any."""

    def variants(self, text: SwapText) -> Variants:
        """The same scores as of the sentences spelt out, without spelling them out where that is slow."""


@dataclass(frozen=True, eq=False)
class SpeltOut:
    """The sentences of a text, each as the classifier reads any other."""

    classifier: Classifier
    text: SwapText

    def scores(self, rows: Rows) -> Scores:
        return self.classifier.scores([self.text.sentence(row) for row in rows])
