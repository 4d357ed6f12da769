"""Certificates spelt out key by key, as FORMAT section 3 has them, without any code of ours."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def claim(level: str, swaps: int, tree: bytes) -> dict[str, Any]:
    return {"level": level, "recipe": "linear-1", "swaps": swaps, "tree": base64.b64encode(tree).decode()}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def certificate(number: int, file: str, model: bytes, choices: list[list[int]], label: int, **claims: Any) -> bytes:
    return canonical({
        "format": "swapproof certificate", "version": 1, "id": number, "vocabulary": None, "synonyms": None,
        "model": {"file": file, "sha256": sha256(model), "tensors": []}, "text": sha256(b""),
        "space": sha256(canonical(choices)), "choices": choices, "label": label, "rivals": [1 - label],
        "lower": None, "count": None, "upper": None, **claims,
    })  # fmt: skip
