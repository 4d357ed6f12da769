"""The numbers, masks and tables of proof trees as bytes, written from section 5 of FORMAT.md."""

from __future__ import annotations

import random


def leb128(number: int) -> bytes:
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def mask(bits: list[int], size: int) -> bytes:
    return sum(1 << bit for bit in bits).to_bytes((size + 7) // 8, "little")


def deltas(numbers: list[int]) -> list[int]:
    return [number - (numbers[place - 1] if place else 0) for place, number in enumerate(numbers)]


def table(node: int, size: int, most: int, source: random.Random, stairs: int = 0) -> bytes:
    """Some elements of one layer, with values; heights with up to so many stairs, of rectifiers with one less."""
    elements = sorted(source.sample(range(size), source.randint(1, min(size, 4))))
    values = [source.randint(0, most) + 128 * source.choice((0, source.randint(0, stairs))) for _ in elements]
    pairs = b"".join(leb128(gap) + leb128(value) for gap, value in zip(deltas(elements), values, strict=True))
    return leb128(node) + leb128(len(elements)) + pairs
