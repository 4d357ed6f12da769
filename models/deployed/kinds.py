"""The kinds of models that can be deployed: one table, a key of [model] -> what opens it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..word_network import ReadTexts, Unreadable
from .classifier import Classifier, Deployment

KINDS: dict[str, str] = {
    "onnx": "onnx_classifier:open_onnx",
    "hf": "hugging_face:open_hugging_face",
    "sklearn": "scikit_learn:open_scikit_learn",
    "static": "static_embeddings:open_static",
    "callable": "python_callable:open_callable",
    "endpoint": "http_endpoint:open_endpoint",
    "smoothed": "smoothing.smoothed_classifier:open_smoothed",
}
"""Module of this folder and function; imported when a model of the kind is opened."""


WORD_READERS: dict[str, str] = {
    "sklearn": "scikit_learn:read_texts",
    "static": "static_models.static_reading:read_texts",
}
"""What makes a network of words of a model of this kind, for some texts."""


def word_reader(kind: str) -> Callable[..., ReadTexts | Unreadable] | None:
    """(classifier, spellings, texts) -> the network and which texts are none of it, or why there is no network."""
    reader: Callable[..., ReadTexts | Unreadable] | None = found(WORD_READERS[kind]) if kind in WORD_READERS else None
    return reader


def found(name: str) -> Any:
    module, function = name.split(":")
    return getattr(import_module(f".{module}", __package__), function)


def open_classifier(deployment: Deployment) -> Classifier:
    opener: Callable[[Deployment], Classifier] = found(KINDS[deployment.kind])
    return opener(deployment)
