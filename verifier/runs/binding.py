"""What every certificate of a run is bound to: the SHA-256 of its files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from swapproof.models.deployed.classifier import Copy, Identity

from ..synonyms.freezing import digest_of
from ..tasks.inputs import Inputs
from .external_tensors import external_files
from .run_folder import sha256

MODEL, VOCABULARY = "model.onnx", "vocabulary.json"
"""Their names in the run folder."""


@dataclass(frozen=True)
class Binding:
    """SHA-256 of the files that every certificate of a run names; `tensors` are (name, SHA-256) of external data."""

    model_sha256: str
    tensors: tuple[tuple[str, str], ...]
    vocabulary_sha256: str
    spaces_sha256: str


def copies_of(model: Path, vocabulary: Path, binding: Binding, content: bytes | None) -> tuple[Copy, ...]:
    """The files of a network that was read, as a run keeps them."""
    return (
        Copy(MODEL, model, binding.model_sha256),
        *(Copy(name, model.parent / name, digest) for name, digest in binding.tensors),
        Copy(VOCABULARY, vocabulary, binding.vocabulary_sha256, content),
    )


OWN = {"onnx": Path(MODEL), "vocabulary": Path(VOCABULARY)}
"""Keys of [model] in the folder of such a run."""


def binding_of(model: Path, inputs: Inputs, spaces: Path | None = None) -> Binding:
    """Of the frozen spaces as they are written, or, where they are, of the very bytes that lie there."""
    folder = model.parent
    return Binding(
        sha256(model),
        tuple((name, sha256(folder / name)) for name in external_files(model)),
        inputs.vocabulary_sha256,
        digest_of(text.frozen for text in inputs.texts) if spaces is None else sha256(spaces),
    )


def binding_of_deployed(identity: Identity, inputs: Inputs) -> Binding:
    """Of a model that is run: all that its answers depend on, as far as that is known."""
    others = [copy for copy in identity.files if copy.name not in (MODEL, VOCABULARY)]
    about = json.dumps(identity.account, sort_keys=True).encode()
    return Binding(
        next((copy.sha256 for copy in identity.files if copy.name == MODEL), hashlib.sha256(about).hexdigest()),
        tuple((copy.name, copy.sha256) for copy in others),
        inputs.vocabulary_sha256,
        digest_of(text.frozen for text in inputs.texts),
    )
