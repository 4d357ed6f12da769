"""Small smooth networks with words to swap: their spaces for check.py, and the exact values of every sentence."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import mpmath
from smooth_cases import CURVES, LENGTH, ROWS, cell, model
from smooth_values import EXACT, values_of

from swapproof.proofs import check, lower

MADE = {
    **CURVES,
    "LSTM": cell("LSTM", "bidirectional", 0),
    "LSTM last": cell("LSTM", "reverse", 1, "B"),
    "LSTM stacked": cell("LSTM", "forward", 0, "B", stacked=2),
    "GRU": cell("GRU", "bidirectional", 0, "BS"),
    "GRU reset last": cell("GRU", "forward", 1, "BI", linear_before_reset=1),
    "RNN": cell("RNN", "bidirectional", 0, "BI", variable=True),
}
RECURRENT = [name for name in MADE if name not in CURVES]
WORDS = {0: 3, 1: 2, 2: 2, 4: 3}
"""Positions that words start at, and their options; the word at 2 stands on two positions."""


@lru_cache(16)
def space_of(name: str, seed: int) -> check.Space:
    rng = random.Random(seed)
    text = [rng.randrange(ROWS) for _ in range(LENGTH)]
    words: list[Any] = []
    for start, count in WORDS.items():
        others = list(itertools.product(range(ROWS), repeat=2 if start == 2 else 1))
        original = tuple(text[start : start + len(others[0])])
        others.remove(original)
        words.append([start, [list(each) for each in (original, *rng.sample(others, count - 1))]])
    found = lower.read_model(model(MADE[name], seed)).lower([["words", text]], words)
    network = check.Network(found.data, found.numbers, found.no_float32)
    return check.Space(network, words, 0, text)


def text_of(space: check.Space, options: Sequence[int]) -> list[int]:
    text = [0] * LENGTH
    text[2:4] = space.words[2][1][0]
    for (start, given_options), option in zip(space.words, options, strict=True):
        text[start : start + len(given_options[option])] = given_options[option]
    return text


@lru_cache(1000)
def exact(name: str, seed: int, options: tuple[int, ...]) -> list[Any]:
    space = space_of(name, seed)
    with mpmath.workprec(200):
        return values_of(space.network, text_of(space, options), EXACT, mpmath.mpf)


def region_of(masks: Sequence[int], swaps: int) -> list[tuple[int, ...]]:
    allowed = [[o for o in range(mask.bit_length()) if mask >> o & 1] for mask in masks]
    return [each for each in itertools.product(*allowed) if sum(map(bool, each)) <= swaps]


def kernel_possible(space: check.Space) -> bool:
    return not space.network.no_float32
