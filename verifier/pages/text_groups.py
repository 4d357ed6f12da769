"""Results by class and against length: the shares of a run in groups of its texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..gates.known_ends import Short, broken, mmws, robust, short

LENGTHS = 4
"""Groups of about as many texts each, by number of words."""


@dataclass(frozen=True)
class Group:
    """Shares of the texts of a group: answered rightly, and under so many swaps certified, and not broken."""

    name: str
    texts: int
    accuracy: float
    certified: float
    unbroken: float
    mmws: Mapping[str, Any]


Line = tuple[int, bool, Short]
"""Class, whether it is answered rightly, and its ends."""


def grouped(
    lines: Iterable[Mapping[str, Any]], labels: Sequence[str], radius: int
) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """By class, and by length."""
    every = [(int(line["label"]), line["predicted"] == line["label"], short(line)) for line in lines]
    classes = sorted({label for label, _, _ in every})
    named = [labels[label] if 0 <= label < len(labels) else f"class {label}" for label in classes]
    by_class = [[one for one in every if one[0] == label] for label in classes]
    return (
        tuple(group(name, own, radius) for name, own in zip(named, by_class, strict=True)),
        tuple(group(name, own, radius) for name, own in by_length(every)),
    )


def by_length(every: Sequence[Line]) -> Iterator[tuple[str, list[Line]]]:
    """Texts of one length stay together."""
    ordered = sorted(every, key=lambda one: (one[2].words, one[2].id))
    lengths = [one[2].words for one in ordered]
    last = len(lengths) - 1
    borders = sorted({lengths[min(last, len(lengths) * (k + 1) // LENGTHS)] for k in range(LENGTHS)} if lengths else ())
    above = -1
    for border in borders:
        own = [one for one in ordered if above < one[2].words <= border]
        least, above = own[0][2].words, border
        yield f"{least} to {border} words" if least < border else f"{border} words", own


def group(name: str, own: Sequence[Line], radius: int) -> Group:
    total, texts = len(own), [text for _, _, text in own]
    return Group(
        name,
        total,
        sum(right for _, right, _ in own) / total,
        sum(robust(text, radius) for text in texts) / total,
        sum(not broken(text, radius) for text in texts) / total,
        mmws(texts),
    )
