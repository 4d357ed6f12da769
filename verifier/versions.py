"""Which versions of which distributions are at work."""

from __future__ import annotations

import importlib.metadata

AT_WORK = ("swapproof", "numpy", "onnx", "onnxruntime")
"""Those that what a run finds depends on."""


def version(distribution: str) -> str | None:
    """None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def versions(*distributions: str) -> dict[str, str]:
    """Of distributions without which nothing works."""
    return {name: importlib.metadata.version(name) for name in distributions}
