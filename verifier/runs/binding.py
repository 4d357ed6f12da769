"""What every certificate of a run is bound to: the SHA-256 of its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..synonyms.freezing import digest_of
from .external_tensors import external_files
from .inputs import Inputs
from .run_folder import sha256


@dataclass(frozen=True)
class Binding:
    """SHA-256 of the files that every certificate of a run names; `tensors` are (name, SHA-256) of external data."""

    model_sha256: str
    tensors: tuple[tuple[str, str], ...]
    vocabulary_sha256: str
    spaces_sha256: str


def binding_of(model: Path, inputs: Inputs) -> Binding:
    folder = model.parent
    return Binding(
        sha256(model),
        tuple((name, sha256(folder / name)) for name in external_files(model)),
        inputs.vocabulary_sha256,
        digest_of(text.frozen for text in inputs.texts),
    )
