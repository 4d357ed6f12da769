"""A file read whole: as one JSON object, or for its SHA-256."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ..errors import BadInput, one_line, unreadable


def read_object(path: Path) -> dict[str, Any]:
    """The object of a JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON ({one_line(error)})") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path}: not a JSON object")
    return content


def sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error
