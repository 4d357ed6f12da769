"""Certificates of a run: what they are bound to, how they are made of a verdict, and the checker that must accept them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from swapproof.encodings.query import Query
from swapproof.encodings.reading import Model

from .engines.protocol import Bound
from .inputs import Inputs, Text
from .ladder import Verdict
from .run import sha256
from .synonyms.freezing import digest_of

MODEL, VOCABULARY = "model.onnx", "vocabulary.json"
"""Their names in the run folder."""


@dataclass(frozen=True)
class Binding:
    """SHA-256 of the files that every certificate of a run names; `tensors` are (name, SHA-256) of external data."""

    model_sha256: str
    tensors: tuple[tuple[str, str], ...]
    vocabulary_sha256: str
    spaces_sha256: str


def binding_of(model: Model, inputs: Inputs) -> Binding:
    folder = model.path.parent
    return Binding(
        sha256(model.path),
        tuple((name, sha256(folder / name)) for name in external_files(model)),
        inputs.vocabulary_sha256,
        digest_of(text.frozen for text in inputs.texts),
    )
