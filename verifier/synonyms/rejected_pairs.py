"""Pairs of words that a reader rejected: neither may stand for the other, whatever the source of the swaps says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from swapproof.encodings.errors import BadInput

from .sources import read_text

REJECTED = "rejected by a reader"
Pairs = frozenset[frozenset[str]]


@dataclass(frozen=True)
class Rejected:
    """Removes the candidates that a reader said are no synonyms of the word."""

    pairs: Pairs = field(repr=False)
    name: str = REJECTED
    in_context: ClassVar[bool] = False

    def keeps(self, words: Sequence[str], position: int, candidates: Sequence[str]) -> list[bool]:
        return [not self.has(words[position], candidate) for candidate in candidates]

    def has(self, word: str, candidate: str) -> bool:
        return frozenset((word.lower(), candidate.lower())) in self.pairs


def read_rejected(path: Path) -> Pairs:
    """A pair a line, its words apart by a tab or a space; blank lines are skipped."""
    pairs = set()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = [word.strip() for word in (line.lower().split("\t") if "\t" in line else line.lower().split())]
        if not line.strip():
            continue
        if len(words) != 2 or not all(words) or words[0] == words[1]:
            raise BadInput(f"{path}, line {number}: not a pair of two different words, apart by a tab")
        pairs.add(frozenset(words))
    return frozenset(pairs)
