"""What the searches of this folder share: work in blocks, and whom they hand the margins that are to be decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

Decide = Callable[[int, int, Array, Array, Array, Array], None]
"""Takes position, rival, and of n sentences the texts, words, margins and what these must exceed."""


def parts(count: int, size: int) -> list[slice]:
    return [slice(first, first + size) for first in range(0, count, size)]
