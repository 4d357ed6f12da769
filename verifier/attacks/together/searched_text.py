"""What a search over all texts at once found of one of them, and what it asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Searched:
    """Of one text; `swaps`: word and option of each in the sentence that reached the goal, None where none did."""

    requests: int
    evaluations: int
    silent: int
    seconds: float
    swaps: tuple[tuple[int, int], ...] | None

    def row(self, words: int) -> NDArray[Any] | None:
        if self.swaps is None:
            return None
        row = np.zeros(words, dtype=np.int32)
        for word, option in self.swaps:
            row[word] = option
        return row

    @property
    def fact(self) -> dict[str, Any]:
        """As the store of the run says it."""
        return asdict(self)

    @classmethod
    def of(cls, fact: Mapping[str, Any]) -> Searched:
        """Raises LookupError, TypeError or ValueError."""
        requests, evaluations, silent = (int(fact[name]) for name in ("requests", "evaluations", "silent"))
        swaps = fact["swaps"]
        told = None if swaps is None else tuple((int(word), int(option)) for word, option in swaps)
        return cls(requests, evaluations, silent, float(fact["seconds"]), told)
