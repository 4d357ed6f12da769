"""Where `report` may write: a new file, or one that it wrote before in the same format; never into the run itself."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from swapproof.encodings.errors import BadInput, Unsupported

from ...runs.overwriting import first_line, refuse_to_replace
from .code_findings import SCHEMA
from .file_formats import CARD_BEGINS, CARD_ENDS, COLUMNS, LATEX_BEGINS, LATEX_ENDS, SUITE_BEGINS, row_of


def refuse_to_write(folder: Path, files: Mapping[str, Path]) -> None:
    """Before anything is written; `files`: format -> file."""
    taken: dict[Path, str] = {}
    for name, path in files.items():
        place = Path(os.path.realpath(path))
        if place.is_relative_to(os.path.realpath(folder)):
            raise BadInput(f"{path}: lies in the folder of the run; give --{name} a file elsewhere")
        if place in taken:
            raise BadInput(f"{path}: named by --{taken[place]} and --{name}; give each a file of its own")
        taken[place] = name
        refuse_to_replace(path, OURS[name], f"--{name}")


def is_junit(path: Path) -> bool:
    with path.open("rb") as file:
        file.readline(100)
        return file.readline(100).startswith(SUITE_BEGINS.encode())


def is_csv(path: Path) -> bool:
    return first_line(path) == row_of(COLUMNS).encode()


def is_latex(path: Path) -> bool:
    content = path.read_bytes()
    return content.startswith(LATEX_BEGINS.encode()) and content.splitlines()[-1].startswith(LATEX_ENDS.encode())


def is_card(path: Path) -> bool:
    """A section by itself: what a user put around it is the user's."""
    content = path.read_bytes()
    return content.startswith(CARD_BEGINS.encode()) and content.endswith(CARD_ENDS.encode())


def is_sarif(path: Path) -> bool:
    try:
        found = json.loads(path.read_bytes())
        (run,) = found["runs"]
        return bool(found["$schema"] == SCHEMA and run["tool"]["driver"]["name"] == "swapproof")
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


def is_parquet(path: Path) -> bool:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Unsupported("--parquet needs pyarrow: pip install pyarrow") from None
    try:
        return list(pyarrow.parquet.read_schema(path).names) == list(COLUMNS)
    except pyarrow.ArrowException:
        return False


OURS: Mapping[str, Callable[[Path], bool]] = {
    "junit": is_junit,
    "csv": is_csv,
    "latex": is_latex,
    "card": is_card,
    "sarif": is_sarif,
    "parquet": is_parquet,
}
