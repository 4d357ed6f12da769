"""The order of jobs: cheap texts first, then open ones by their gap, and last those at which a process died."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from ...tasks.inputs import Text

Line = Callable[[int], Mapping[str, Any]]
"""The line of a text that was settled before."""


def in_order(texts: Iterable[Text], again: Set[int], suspects: Set[int], line: Line) -> list[Text]:
    """`again`: texts with a result that is to be narrowed; `suspects`: those that somebody began and did not end."""

    def place(text: Text) -> tuple[bool, bool, float, int]:
        work = gap_of(line(text.id)) if text.id in again else cost_of(text)
        return text.id in suspects, text.id in again, work, text.id

    return sorted(texts, key=place)


def cost_of(text: Text) -> float:
    """The candidates of a text, by which its work grows."""
    return sum(len(options) - 1 for options in text.frozen.words)


def gap_of(line: Mapping[str, Any]) -> float:
    """How far the ends are apart: infinitely far without a high one, or where no interval is asked for."""
    ends = line.get("min_swaps")
    return math.inf if ends is None or ends["high"] is None else float(ends["high"] - ends["low"])
