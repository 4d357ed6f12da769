"""A network over exact rational arithmetic, one sentence at a time: slow, and always right.

Every array is integers times one positive rational, its scale; float weights are dyadic, so nothing is rounded.
Beside each value goes whether every float evaluation of it, in any order, is exact too: when all products and partial
sums are multiples of one power of two g and the sum of their absolute values stays below g / u.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .network import (
    Affine,
    At,
    Constant,
    Curve,
    Embedding,
    Floats,
    Maximum,
    Network,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from .query import Query
from .walk import Meaning, forward, gather

Integers = NDArray[Any]  # of dtype object: Python integers


@dataclass(frozen=True, eq=False)
class Exact:
    """integers * scale; `rounded` is False when every float evaluation of it gives exactly this.

    gross * scale is the sum of the absolute values of the terms that a runtime may add up in any order: those of the
    layer, and of the sums and products before it, which runtimes fuse.
    """

    integers: Integers
    scale: Fraction
    rounded: bool
    gross: Integers


def single_term(integers: Integers, scale: Fraction, rounded: bool) -> Exact:
    return Exact(integers, scale, rounded, abs(integers))


def dyadic(array: Floats) -> tuple[Integers, Fraction]:
    """The float numbers as integers times one power of two."""
    mantissas, exponents = np.frexp(array)
    integers = np.array([int(m) for m in (mantissas * 2.0**53).ravel()], dtype=object)
    powers = exponents.astype(np.int64).ravel() - 53
    used = integers != 0
    lowest = int(powers[used].min()) if used.any() else 0
    shifted = [int(i) << int(p - lowest) if i else 0 for i, p in zip(integers, powers, strict=True)]
    common = 0
    for value in shifted:  # the largest power of two that divides all
        common |= value
    shift = (common & -common).bit_length() - 1 if common else 0
    result = np.array([value >> shift for value in shifted], dtype=object).reshape(array.shape)
    return result, Fraction(2) ** (lowest + shift)


@lru_cache(maxsize=32)
def dyadic_weight(layer: Affine) -> tuple[Integers, Fraction]:
    """Of one layer, for the many sentences that go through it."""
    return dyadic(layer.weight)


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence, and the unit roundoff of the floats that would evaluate it."""

    tokens: NDArray[np.int64]
    unit: float


def exact_logits(network: Network, tokens: Sequence[int]) -> tuple[list[Fraction], bool]:
    """The logits of one sentence over the reals, and whether every float evaluation gives exactly these."""
    last = exact_values(network, tokens)[len(network.nodes) - 1]
    plain = network.head == "logits" and not last.rounded
    return [Fraction(int(value)) * last.scale for value in last.integers[0]], plain


def exact_values(
    network: Network, tokens: Sequence[int] = (), given: Mapping[int, Exact] | None = None, wanted: Sequence[int] = ()
) -> dict[int, Exact]:
    """Node -> its value over the reals, for the wanted nodes (the last one, unless said) and all they need."""
    sentence = Sentence(np.asarray(tokens, dtype=np.int64), network.unit)
    return forward(network, REALS, sentence, given, wanted)


def look_up(sentence: Sentence, layer: Embedding, inputs: list[Exact], at: At) -> Exact:
    return constant(layer.table[sentence.tokens[layer.positions]])


def hold(sentence: Sentence, layer: Constant, inputs: list[Exact], at: At) -> Exact:
    return constant(layer.value.reshape(shaped(at)))


def rearrange(sentence: Sentence, layer: Rearrangement, inputs: list[Exact], at: At) -> Exact:
    scale, arrays, grosses = common_scale(inputs)
    integers, gross = (gather(layer, part, leading=0).reshape(shaped(at)) for part in (arrays, grosses))
    return Exact(integers, scale, any(x.rounded for x in inputs), gross)


def multiply(sentence: Sentence, layer: Affine, inputs: list[Exact], at: At) -> Exact:
    (x,) = inputs
    factors, grid = dyadic_weight(layer)
    rows = x.integers.reshape(-1, len(layer.weight))
    products, sizes = (found.reshape(shaped(at)) for found in (rows @ factors, abs(rows) @ abs(factors)))
    return plus(Exact(products, x.scale * grid, x.rounded, sizes), layer.bias, sentence.unit)


def scale(sentence: Sentence, layer: Scaling, inputs: list[Exact], at: At) -> Exact:
    (x,) = inputs
    factors, grid = dyadic(layer.multiply)
    divisors, unit_of_divisors = dyadic(layer.divide)
    common = lcm(*(int(d) for d in divisors.ravel()))
    factors = factors * np.array([common // int(d) for d in divisors.ravel()], dtype=object).reshape(shaped(at))
    # Divisors that are no powers of two leave a scale that is none: `plus` then finds the quotient rounded.
    scaled = x.scale * grid / unit_of_divisors / common
    return plus(Exact(x.integers * factors, scaled, x.rounded, x.gross * abs(factors)), layer.add, sentence.unit)


def add_up(sentence: Sentence, layer: Sum, inputs: list[Exact], at: At) -> Exact:
    scale, arrays, grosses = common_scale(inputs)
    total = np.add.reduce([sign * array for sign, array in zip(layer.signs, arrays, strict=True)])
    gross = np.add.reduce(grosses)
    return Exact(total, scale, any(x.rounded for x in inputs) or too_large(gross, scale, sentence.unit), gross)


def rectify(sentence: Sentence, layer: Rectifier, inputs: list[Exact], at: At) -> Exact:
    (x,) = inputs
    factor, grid = dyadic(np.array([layer.slope]))
    kept = single_term(np.where(x.integers > 0, x.integers, 0), x.scale, False)
    leaked = single_term(np.where(x.integers < 0, x.integers, 0) * factor[0], x.scale * grid, False)
    scale, (integers, added), _ = common_scale([kept, leaked])
    inexact = layer.slope not in (0.0, 1.0) and too_large(abs(added), scale, sentence.unit)
    return single_term(integers + added, scale, x.rounded or inexact)


def take_greatest(sentence: Sentence, layer: Maximum, inputs: list[Exact], at: At) -> Exact:
    (x,) = inputs
    highest = np.asarray(x.integers.max(axis=-1), dtype=object)
    return single_term(highest.reshape(shaped(at)), x.scale, x.rounded)


def multiply_pairs(sentence: Sentence, layer: Product, inputs: list[Exact], at: At) -> Exact:
    a, b = inputs
    scale, integers = a.scale * b.scale, a.integers * b.integers
    rounded = a.rounded or b.rounded or too_large(abs(integers), scale, sentence.unit)
    return single_term(integers, scale, rounded)


def shaped(at: At) -> tuple[int, ...]:
    """Arithmetic on an object array of rank 0 gives no array."""
    return at.node.shape or (1,)


REALS: Meaning[Exact] = Meaning(
    "value over the reals",
    {
        Embedding: look_up,
        Constant: hold,
        Rearrangement: rearrange,
        Affine: multiply,
        Scaling: scale,
        Sum: add_up,
        Rectifier: rectify,
        Maximum: take_greatest,
        Product: multiply_pairs,
    },
    {Curve: "its values are no rational numbers; they can be enclosed"},
)


def constant(value: Floats) -> Exact:
    return single_term(*dyadic(value), False)


def plus(x: Exact, added: Floats, unit: float) -> Exact:
    """x plus constants, as one sum with the terms that x is made of."""
    scale, (integers, more), (gross, size) = common_scale([x, constant(added)])
    total = gross + size
    return Exact(integers + more, scale, x.rounded or too_large(total, scale, unit), total)


def common_scale(parts: Sequence[Exact]) -> tuple[Fraction, list[Integers], list[Integers]]:
    """One scale of which all the parts' scales are whole multiples, and their integers and gross in units of it."""
    numerators = [part.scale.numerator for part in parts]
    denominator = lcm(*(part.scale.denominator for part in parts))
    shared = numerators[0] if len(set(numerators)) == 1 else 1
    scale = Fraction(shared, denominator)
    steps = [int(part.scale / scale) for part in parts]
    pairs = list(zip(parts, steps, strict=True))
    return scale, [part.integers * step for part, step in pairs], [part.gross * step for part, step in pairs]


def too_large(total: Integers, scale: Fraction, unit: float) -> bool:
    """Whether sums of these absolute values, in units of `scale`, can leave the exact grid of a float format.

    The grid is exact for a power of two that is no subnormal, while sums stay at most 1 / unit steps of it.
    """
    power_of_two = scale.denominator & (scale.denominator - 1) == 0 and scale.numerator & (scale.numerator - 1) == 0
    smallest, largest = (Fraction(2) ** -14, 2**15) if unit > 2.0**-24 else (Fraction(2) ** -126, 2**126)
    steps = int(max(total.ravel(), default=0))
    return not (power_of_two and scale >= smallest and steps * scale < largest and steps <= int(1 / unit))


def exactly_beaten(query: Query, tokens: Sequence[int], rivals: Collection[int] | None = None) -> tuple[bool, bool]:
    """Whether a rival (of these, if said) wins over the reals, and whether all float evaluations give these logits."""
    logits, plain = exact_logits(query.network, tokens)
    own, asked = logits[query.label], query.rivals if rivals is None else rivals
    return any(logits[rival] > own or (logits[rival] == own and rival < query.label) for rival in asked), plain
