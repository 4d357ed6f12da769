"""Which existing files a command may write over: those that the same command wrote before, and no others.

So no command replaces what it reads (a task, a model and its tensors, data, tables, the files of a run), nor anything
else that it could not write again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.onnx_writing import is_behind_embedding
from swapproof.models.errors import unreadable

EXPORTED = re.compile(rb"[\\*;%] swapproof: ")
"""How the files of `export` and `vipr` begin: with a comment of LP, MPS, SMT-LIB and VNN-LIB, or VIPR."""
LONGEST = 1 << 20
"""Bytes of a first line."""


def refuse_to_replace(path: Path, ours: Callable[[Path], bool], option: str = "--out") -> None:
    """Before anything is computed: this path can be a file, and what lies there is nothing, empty, or known as ours."""
    if path.is_dir():
        raise BadInput(f"{path}: is a folder; give {option} a file")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written: there is no folder {path.parent}")
    try:
        replaceable = not path.is_file() or not path.stat().st_size or ours(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if not replaceable:
        raise BadInput(f"{path}: exists, and this command did not write it; give {option} a new file")


def is_exported(path: Path) -> bool:
    return EXPORTED.match(first_line(path)) is not None


def is_exported_model(path: Path) -> bool:
    """The model beside an exported VNN-LIB file."""
    return is_behind_embedding(path.read_bytes())


def json_with(*keys: str) -> Callable[[Path], bool]:
    """Whether the first line of a file is a JSON object with these keys."""

    def found(path: Path) -> bool:
        try:
            value = json.loads(first_line(path))
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and value.keys() >= set(keys)

    return found


def first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(LONGEST)
