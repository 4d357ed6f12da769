"""External tensor files of an ONNX model: the names it refers to, which must be plain files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
"""File names that a certificate can bind."""
TAKEN = {
    "task.toml",
    "manifest.json",
    "model.onnx",
    "vocabulary.json",
    "texts.jsonl",
    "spaces.jsonl",
    "results.jsonl",
    "summary.json",
    "report.html",
    "certificates",
}


def external_files(model: Path) -> list[str]:
    """Their names, in alphabetical order."""
    import onnx

    proto = onnx.load(model, load_external_data=False)
    names = sorted({location(tensor) for tensor in tensors(proto.graph) if tensor.data_location == tensor.EXTERNAL})
    for name in names:
        if not NAME.fullmatch(name) or name in TAKEN or name.startswith("store.sqlite"):
            raise BadInput(
                f"{model}: external data in {name!r}; a run folder needs a plain file name of letters, digits, "
                "dot, dash and underscore that is none of its own: save the model with another location"
            )
        if not (model.parent / name).is_file():
            raise BadInput(f"{model}: its external data {name} is not there")
    return names


def tensors(graph: Any) -> Iterator[Any]:
    """Every tensor of the main graph; models with subgraphs are refused elsewhere."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def location(tensor: Any) -> str:
    return next((str(entry.value) for entry in tensor.external_data if entry.key == "location"), "")
