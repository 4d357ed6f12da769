"""Columns of integers as one integer, so that adding, scaling and rounding all of them is one operation each.

    fields = fields_of(count, width)               room for so many integers, with so many bits for each
    fields.packed(numbers)                         the sum of x_k 2**(width k); negative ones are subtracted
    fields.unpacked(total)                         the x_k again
    fields.floors(total, bits, factor, add, below)      floor((x_k factor + add) / below), for each

Integers must be below 2**(width - 1) in magnitude: then totals add up, and are multiplied, as their integers are, as
long as the results are so small too, which who does so must see to.

This file is trusted, as check.py is. Standard library only, exact integers only; nothing is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct

WORD = 64
"""Bits of the integers that are read from bytes at once."""


class Fields:
    """`width` is a multiple of 8."""

    def __init__(self, count: int, width: int) -> None:
        self.count, self.width, self.step, self.half = count, width, width // 8, 1 << width - 1
        self.ones = ((1 << width * count) - 1) // ((1 << width) - 1)
        self.halves = self.half * self.ones
        numbers = (count + 1) // 2, count // 2
        """Of those in even places, and of those in odd ones."""
        self.pairs = [((1 << 2 * width * number) - 1) // ((1 << 2 * width) - 1) for number in numbers]
        self.even = ((1 << width) - 1) * self.pairs[0]
        self.lengths = [2 * self.step * number for number in numbers]
        words = f"q{2 * self.step - WORD // 8}x" if 2 * width >= WORD else ""
        self.words = [Struct("<" + words * number) for number in numbers]

    def packed(self, numbers: Sequence[int]) -> int:
        """Half of 2**width is added to each, their bytes are laid end to end, and all halves are taken off again."""
        half, step = self.half, self.step
        return int.from_bytes(b"".join([(x + half).to_bytes(step, "little") for x in numbers]), "little") - self.halves

    def unpacked(self, total: int) -> list[int]:
        """Half of 2**width is added to each, and taken off its bytes."""
        half, step, data = self.half, self.step, (total + self.halves).to_bytes(self.step * self.count, "little")
        return [int.from_bytes(data[at : at + step], "little") - half for at in range(0, len(data), step)]

    def floors(self, total: int, bits: int, factor: int, add: int, below: int) -> list[int]:
        """For magnitudes of at most 2**bits, factor >= 0 and below > 0. Where below is 2**shift, and floors are of 64
        bits for certain, all at once.

        y_k = x_k + 2**(width - 1) is in [0, 2**width), so that the sum of y_k 2**(width k) has each y_k in bits of its
        own. Those in even places, alone, have 2 width bits each, and so have those in odd ones. From y_k factor + c,
        c = add - 2**(width - 1) factor + 2**(64 + shift), `shift` bits are cut off: it is x_k factor + add, whose
        magnitude is below 2**(63 + shift), and 2**(64 + shift) more, so it is in [0, 2**(2 width)), since
        65 + shift <= 2 width. What is left is the floor and 2**64, the lowest 64 of the at least 65 bits down to those
        that come from the number after it; and these 64 are the floor itself, one of them its sign.
        """
        shift = below.bit_length() - 1
        greatest = (factor << bits) + abs(add)
        if below != 1 << shift or greatest >= 1 << WORD - 1 + shift or WORD + 1 + shift > 2 * self.width:
            return [(x * factor + add) // below for x in self.unpacked(total)]
        more = add - factor * self.half + (1 << WORD + shift)
        total += self.halves
        found = [0] * self.count
        for odd, (ones, words, length) in enumerate(zip(self.pairs, self.words, self.lengths, strict=True)):
            alone = (total >> self.width * odd) & self.even
            found[odd::2] = words.unpack((alone * factor + more * ones >> shift).to_bytes(length, "little"))
        return found


@lru_cache(256)
def fields_of(count: int, width: int) -> Fields:
    return Fields(count, width)
