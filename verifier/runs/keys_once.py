"""JSON in which no key occurs twice: a reader could otherwise take the one value, and people see the other."""

from __future__ import annotations

from typing import Any


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which of two values for one key counts is the reader's guess."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)
