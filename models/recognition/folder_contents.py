"""What a Hugging Face or model2vec folder holds, told from its small files and the headers of its weights."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadInput, unreadable
from .whole_files import read_object

LARGEST_HEADER = 100_000_000
"""Bytes; safetensors allows no more."""


@dataclass(frozen=True)
class Tensor:
    name: str
    type: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        found = 1
        for length in self.shape:
            found *= length
        return found


def tensors_of(folder: Path) -> list[Tensor]:
    """Of all .safetensors files, by their headers alone."""
    return [tensor for path in sorted(folder.glob("*.safetensors")) for tensor in header_of(path)]


def header_of(path: Path) -> list[Tensor]:
    try:
        with path.open("rb") as file:
            start = file.read(8)
            size = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 0 < size <= min(LARGEST_HEADER, path.stat().st_size - 8):
                raise BadInput(f"{path}: not a safetensors file: its header has {size:,} bytes")
            header = json.loads(file.read(size))
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: not a safetensors file: its header is not JSON") from error
    if not isinstance(header, dict):
        raise BadInput(f"{path}: not a safetensors file: its header is no JSON object")
    found = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        shape = entry.get("shape") if isinstance(entry, dict) else None
        if not isinstance(shape, list) or not all(type(length) is int and length >= 0 for length in shape):
            raise BadInput(f"{path}: not a safetensors file: {name[:60]!r} has no shape")
        found.append(Tensor(name, str(entry.get("dtype")), tuple(shape)))
    return found


def labels_in(config: dict[str, Any]) -> list[str] | None:
    """Of config.json: the names of the classes in the order of the scores."""
    names = config.get("id2label")
    if not isinstance(names, dict) or not names or not all(str(key).isdecimal() for key in names):
        return None
    ordered = sorted(names.items(), key=lambda entry: int(entry[0]))
    return [str(name) for _, name in ordered] if [int(key) for key, _ in ordered] == list(range(len(names))) else None


def tokenizer_in(folder: Path) -> dict[str, Any]:
    """Kind, size, and what is said of case, padding and length."""
    found: dict[str, Any] = {}
    if (path := folder / "tokenizer.json").is_file():
        content = read_object(path)
        model = content.get("model") if isinstance(content.get("model"), dict) else {}
        found["file"] = path.name
        found["kind"] = str((model or {}).get("type") or "unknown")
        words = (model or {}).get("vocab")
        found["tokens"] = len(words) if isinstance(words, dict | list) else None
        found["normaliser"] = steps(content.get("normalizer"))
        found["splits"] = steps(content.get("pre_tokenizer"))
    else:
        names = ("vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
        found["file"] = next((name for name in names if (folder / name).is_file()), "none")
    if (path := folder / "tokenizer_config.json").is_file():
        config = read_object(path)
        for key in ("tokenizer_class", "model_max_length", "padding_side", "truncation_side", "do_lower_case"):
            if config.get(key) is not None:
                found[key] = config[key]
    return {key: value for key, value in found.items() if value is not None}


def steps(part: Any) -> str | None:
    """Of a normaliser or a splitter, the names of its parts."""
    if not isinstance(part, dict):
        return None
    inner = part.get("normalizers") or part.get("pretokenizers")
    if isinstance(inner, list):
        return " + ".join(str(each.get("type")) for each in inner if isinstance(each, dict))
    return str(part.get("type"))
