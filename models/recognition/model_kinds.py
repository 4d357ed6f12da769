"""Which kind of model somebody points at: a file, a folder, `package.module:function` or a URL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadInput, Unsupported, unreadable
from .whole_files import read_object

FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
FASTTEXT = (793712314).to_bytes(4, "little")
"""The first bytes of fastText's own format."""
PIPELINES = (".joblib", ".pkl", ".pickle", ".skops")
PICKLES = PIPELINES[:3]
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "model.safetensors.index.json", "pytorch_model.bin.index.json")
KNOWN = (
    "an .onnx file, a Hugging Face or model2vec folder, a scikit-learn .skops or .joblib file, a fastText .bin or .ftz "
    "file, package.module:function, or a URL"
)
CONVERT = {
    ".h5": "a Keras model: convert it with tf2onnx, write its weights as ONNX (models/PACKAGES.md shows how), or give "
    "a Python function that answers with it",
    ".keras": "a Keras model: export it with model.export(..., format='onnx'), or give a Python function",
    ".pt": "a torch file: export its module (models/README.md), or give a Python function that answers with it",
    ".pth": "a torch file: export its module (models/README.md), or give a Python function that answers with it",
    ".tflite": "a TensorFlow Lite file: convert it with tf2onnx, or give a Python function that answers with it",
    ".gguf": "a language model of llama.cpp: serve it and give the URL, or give a Python function",
}
"""Kinds that are met often and are not opened, with what would do."""


@dataclass(frozen=True)
class Pointed:
    """`kind` is a key of [model], `source` what belongs there, `seen` why it is taken for that."""

    kind: str
    source: str
    seen: str

    @property
    def path(self) -> Path:
        return Path(self.source)

    @property
    def located(self) -> str | Path:
        """Absolute, where it is a file or a folder."""
        return self.source if self.kind in ("callable", "endpoint") else self.path.absolute()

    @property
    def folder(self) -> Path:
        """Where what belongs to the model may lie."""
        return self.path if self.path.is_dir() else self.path.parent


def kind_of(given: str) -> Pointed:
    if re.match(r"https?://", given):
        return Pointed("endpoint", given, "a URL")
    path = Path(given)
    if not path.exists():
        if FUNCTION.fullmatch(given):
            return Pointed("callable", given, "a Python function")
        raise BadInput(f"{given}: no such file or folder; a model is {KNOWN}")
    return of_folder(path) if path.is_dir() else of_file(path)


def of_file(path: Path) -> Pointed:
    ending = path.suffix.lower()
    if ending == ".onnx":
        return Pointed("onnx", str(path), "an ONNX file")
    if ending in PIPELINES:
        how = "a file of skops" if ending == ".skops" else "a pickle"
        return Pointed("sklearn", str(path), f"a scikit-learn model, {how}")
    if ending in (".bin", ".ftz") and first_bytes(path) == FASTTEXT:
        return Pointed("static", str(path), "a fastText model")
    if path.name in (*WEIGHTS, "config.json", "tokenizer.json"):
        return of_folder(path.parent)
    raise Unsupported(f"{path}: {CONVERT.get(ending, f'no kind of model that is known; a model is {KNOWN}')}")


def of_folder(path: Path) -> Pointed:
    names = {entry.name for entry in path.iterdir()}
    weights = names.intersection(WEIGHTS)
    if weights and "config.json" in names:
        config = read_object(path / "config.json")
        architectures = config.get("architectures")
        if config.get("model_type") == "model2vec" or (not architectures and "normalize" in config):
            return Pointed("static", str(path), "a folder of static embeddings (model2vec)")
        shown = architectures[0] if isinstance(architectures, list) and architectures else config.get("model_type")
        return Pointed("hf", str(path), f"a Hugging Face folder ({shown or 'no architecture named'})")
    graphs = sorted(path.glob("*.onnx")) or sorted(path.glob("onnx/*.onnx"))
    if len(graphs) == 1:
        return Pointed("onnx", str(graphs[0]), "the one ONNX file of the folder")
    if graphs:
        listed = ", ".join(str(graph.relative_to(path)) for graph in graphs[:6])
        raise BadInput(f"{path}: {len(graphs)} ONNX files ({listed}): give the one that is deployed")
    foreign = sorted(entry for entry in path.iterdir() if entry.suffix.lower() in CONVERT)
    if foreign and not any(name.endswith(".skops") for name in names):  # pickles beside it are its tokenizer's
        raise Unsupported(f"{foreign[0]}: {CONVERT[foreign[0].suffix.lower()]}")
    pipelines = sorted(entry for ending in PIPELINES for entry in path.glob(f"*{ending}"))
    if len(pipelines) == 1:
        return of_file(pipelines[0])
    if pipelines:
        listed = ", ".join(path.name for path in pipelines[:6])
        raise BadInput(
            f"{path}: {len(pipelines)} files of scikit-learn ({listed}): give the one that reads texts, or a Python "
            "function that joins them: package.module:function"
        )
    if "config.json" in names:
        raise BadInput(f"{path}: config.json without weights ({' or '.join(WEIGHTS[:2])}): the download is not whole")
    raise BadInput(f"{path}: a folder without a model; a model is {KNOWN}")


def first_bytes(path: Path, count: int = 4) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise unreadable(path, error) from error
