"""The vote of a network over all random texts of a sentence, and how many swaps it withstands for certain.

g(x) is the class that the network answers most often, p its chance. If p is at least `low` and low - shift(r) > 1/2,
no swap of r words changes g: the class keeps more than half of all random texts. Where there are few random texts all
of them are asked, and p is known. Else N are drawn, with a seed that is the SHA-256 of the statement, and `low` is the
lower end of Clopper-Pearson's interval at the stated confidence, one-sided, for this N.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from swapproof.models.deployed.smoothing.word_noise import WordNoise

from ..counting.binomial import one_sided, outwards
from ..counting.draws import drawn, seed_of
from .released_claims import claimed

HALF = Fraction(1, 2)
BATCH = 2048

Answers = Callable[[list[list[str]]], "np.ndarray[Any, np.dtype[np.int64]]"]
"""Texts as lists of words -> the classes that the network answers."""


@dataclass(frozen=True)
class Vote:
    """`votes` of `samples` texts are for the class; `all_asked`: these are all random texts, each once."""

    votes: int
    samples: int
    outcomes: int
    all_asked: bool
    low: Fraction
    seed: str | None
    others: dict[int, int]
    """Class -> votes."""


def voted(
    noise: WordNoise,
    words: Sequence[str],
    label: int,
    answers: Answers,
    samples: int,
    most: int,
    delta: Fraction,
    about: Mapping[str, Any],
) -> Vote:
    """All random texts where there are at most `most`, else `samples` of them."""
    outcomes = noise.outcomes(words)
    counts: dict[int, int] = {}

    def ask(numbers: Sequence[int]) -> None:
        for start in range(0, len(numbers), BATCH):
            found = answers([noise.outcome(words, int(number)) for number in numbers[start : start + BATCH]])
            for one, count in zip(*np.unique(found, return_counts=True), strict=True):
                counts[int(one)] = counts.get(int(one), 0) + int(count)

    if outcomes <= most:
        ask(range(outcomes))
        votes = counts.get(label, 0)
        return Vote(votes, outcomes, outcomes, True, Fraction(votes, outcomes), None, counts)
    seed = seed_of(about)
    for numbers in drawn(seed, outcomes, samples):
        ask(numbers.tolist())
    votes = counts.get(label, 0)
    # one_sided halves what it is given, for intervals of two sides.
    return Vote(votes, samples, outcomes, False, one_sided(votes, samples, 2 * delta), seed.hex(), counts)


def withstood(low: Fraction, shifts: Sequence[Fraction]) -> int:
    """The greatest number of swaps with low - shift > 1/2; shifts grow, and beyond the last nothing can be swapped."""
    return sum(low - shift > HALF for shift in shifts)


def vote_line(
    noise: WordNoise, words: Sequence[str], options: Sequence[Sequence[str]], vote: Vote, label: int, delta: Fraction
) -> dict[str, Any]:
    """What a line of results.jsonl says of a vote; of a class without more than half for sure nothing is claimed."""
    shifts = noise.shifts(words, options)
    wins = vote.low > HALF
    radius = withstood(vote.low, shifts) if wins else None
    beaten = any(count > vote.votes or (count == vote.votes and one < label) for one, count in vote.others.items())
    status = "certified" if wins else "already_wrong" if vote.all_asked and beaten else "open"
    return {
        "status": status,
        "smoothed_radius": {"low": radius, "high": None, "of": len(shifts)},
        "released_claim": claimed(noise, words, options, vote.votes, vote.samples, vote.low),
        "vote": {
            "votes": vote.votes,
            "samples": vote.samples,
            "by_class": {str(one): vote.others[one] for one in sorted(vote.others)},
            "outcomes": str(vote.outcomes),
            "low": outwards(vote.low, vote.low)[0],
            "kind": "exact" if vote.all_asked else "sampled",
            "confidence": 1.0 if vote.all_asked else float(1 - delta),
            "seed": vote.seed,
        },
    }
