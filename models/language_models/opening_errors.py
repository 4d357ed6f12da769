"""Why transformers does not open a folder as the language model that is needed, in a line."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import one_line


def why(folder: Path, error: Exception) -> str:
    """Of a model of another kind its own type: transformers lists some sixty classes of its own instead."""
    if "Unrecognized configuration class" not in str(error):
        return one_line(error)
    try:
        kind = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
    except (OSError, ValueError, LookupError, TypeError):
        return "a model of another kind"
    return f"its model_type is {kind}"
