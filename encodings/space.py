"""The frozen attack surface of one text: which tokens may stand at which position."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput
from .sentence_counts import counts

Constants = tuple[tuple[int, ...], ...]
"""Integers that some inputs of a model are given, whatever is swapped."""
Frame = tuple[int, Constants, Constants]


@dataclass(frozen=True)
class SwapSpace:
    """One tuple of distinct token ids per position of the model's input, the original first.

    Padding and other fixed positions hold their one token. A sentence is one choice per position; its number
    of swaps is the number of positions whose token is not the original. `before` and `after` are what the model's
    other inputs are given, a mask say, in the order of its file: those before the tokens, and those after.
    """

    choices: tuple[tuple[int, ...], ...]
    before: Constants = ()
    after: Constants = ()

    def __post_init__(self) -> None:
        for position, options in enumerate(self.choices):
            if not options:
                raise BadInput(f"position {position} has no choices: the original token must be there")
            if len(options) > 1 and len(set(options)) != len(options):
                raise BadInput(f"position {position} lists a token twice: use SwapSpace.of, which drops repeats")

    @classmethod
    def of(cls, choices: Iterable[Iterable[int]]) -> SwapSpace:
        """The space of these choices, repeats of a token dropped (the first stays, so the original does)."""
        return cls(tuple(tuple(dict.fromkeys(int(token) for token in options)) for options in choices))

    @property
    def length(self) -> int:
        """Positions of the model's input, padding included."""
        return len(self.choices)

    @property
    def frame(self) -> Frame:
        """What all texts share that are read by one network, unless the model computes with tokens."""
        return self.length, self.before, self.after

    @property
    def offset(self) -> int:
        """Positions of the inputs before the tokens: certificates number positions through all inputs."""
        return sum(map(len, self.before))

    @cached_property
    def original(self) -> tuple[int, ...]:
        return tuple(options[0] for options in self.choices)

    @cached_property
    def swappable(self) -> tuple[int, ...]:
        """The positions that have an alternative."""
        return tuple(position for position, options in enumerate(self.choices) if len(options) > 1)

    @cached_property
    def candidates(self) -> int:
        """Single swaps: alternatives over all positions."""
        return sum(map(len, self.choices)) - len(self.choices)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the choices."""
        return hashlib.sha256(json.dumps(self.choices, separators=(",", ":")).encode()).hexdigest()

    def counts(self) -> list[int]:
        """Number of sentences with exactly s swaps, for s = 0 .. number of swappable positions."""
        return counts([len(self.choices[position]) - 1 for position in self.swappable], len(self.swappable))

    def sentence(self, swaps: Iterable[tuple[int, int]] = ()) -> tuple[int, ...]:
        """The token ids after these (position, token) swaps."""
        tokens = list(self.original)
        for position, token in swaps:
            if token not in self.choices[position]:
                raise BadInput(f"token {token} is not a choice at position {position}")
            tokens[position] = token
        return tuple(tokens)

    def swaps_of(self, tokens: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The (position, token) pairs where a sentence of this space differs from the original."""
        if len(tokens) != self.length:
            raise BadInput(f"a sentence of {len(tokens)} tokens in a space of {self.length} positions")
        changed = tuple(
            (position, int(token))
            for position, (token, first) in enumerate(zip(tokens, self.original, strict=True))
            if token != first
        )
        for position, token in changed:
            if token not in self.choices[position]:
                raise BadInput(f"token {token} is not a choice at position {position}")
        return changed

    def single_swaps(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions and tokens of every single swap, ordered by position, then by order of choice."""
        pairs = [(position, token) for position in self.swappable for token in self.choices[position][1:]]
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]
