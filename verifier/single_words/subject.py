"""A text, as everything that replaces single words in it sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """A text that the model answers correctly: its tokens, where they can be replaced, and its gold class."""

    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    label: int
