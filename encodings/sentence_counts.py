"""Numbers of sentences by their swaps: with a_i alternatives at place i, the coefficients of the product of 1 + a_i x.

They are the elementary symmetric polynomials of the a_i, as exact integers:

    T[i][j] = T[i+1][j] + a_i T[i+1][j-1]        ways to make j swaps from place i on
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate


def counts(alternatives: Iterable[int], most: int) -> list[int]:
    """[j]: sentences with exactly j swaps, j = 0 .. most."""
    found = [1] + [0] * most
    for count in alternatives:
        found = one_more(found, count)
    return found


def suffix_counts(alternatives: Sequence[int], most: int) -> list[list[int]]:
    """T[i][j] for i = 0 .. number of places, j = 0 .. most."""
    table = [[1] + [0] * most]
    for count in reversed(alternatives):
        table.append(one_more(table[-1], count))
    return table[::-1]


def one_more(found: Sequence[int], alternatives: int) -> list[int]:
    """With one more place."""
    return [same + alternatives * fewer for same, fewer in zip(found, [0, *found], strict=False)]


def up_to(table: Iterable[Sequence[int]]) -> list[list[int]]:
    """The same with at most j swaps."""
    return [list(accumulate(row)) for row in table]
