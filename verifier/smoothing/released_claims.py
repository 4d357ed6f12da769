"""What the released code of RanMASK and SAFER would have claimed of the same votes: never used for anything else.

* RanMASK (`population_radius_for_majority` of its `certify.py`): lambda, the chance that the network answers the class
  among texts that keep a swapped word, is taken to be the share of votes, a point estimate; and the number returned is
  the first radius that does *not* pass, one too many.
* SAFER (`evaluation.py`): votes / N - 1 + product of overlaps >= 0.5 + 0.01, whatever N is: a fixed error term, which a
  few draws do not have. Overlap of a word: the least of |P_w & P_v| / |P_w|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from swapproof.models.deployed.smoothing.word_noise import Masking, Substituting, WordNoise

MONTE_CARLO_ERROR = Fraction(1, 100)


def claimed(
    noise: WordNoise, words: Sequence[str], options: Sequence[Sequence[str]], votes: int, samples: int, low: Fraction
) -> int | None:
    """The radius, with the same lower bound `low` of the chance of the class; None for a noise of neither."""
    if isinstance(noise, Masking):
        return ranmask_claim(len(words), noise.kept(len(words)), votes, samples, low)
    if isinstance(noise, Substituting):
        return safer_claim(noise, words, options, votes, samples)
    return None


def ranmask_claim(size: int, keep: int, votes: int, samples: int, low: Fraction) -> int:
    if not votes:
        return 0
    share = Fraction(votes, samples)
    left = (Fraction(1, 2) + share - low) / share
    radius = 0
    while radius <= size - keep and left < Fraction(math.comb(size - radius, keep), math.comb(size, keep)):
        radius += 1
    return radius


def safer_claim(
    noise: Substituting, words: Sequence[str], options: Sequence[Sequence[str]], votes: int, samples: int
) -> int:
    """Every word that can be swapped, or none."""
    same, movable = Fraction(1), 0
    for word, others in zip(words, options, strict=True):
        if len(others) > 1:
            own = set(noise.around(word))
            same *= min(Fraction(len(own & set(noise.around(other))), len(own)) for other in others[1:])
            movable += 1
    return movable if Fraction(votes, samples) - 1 + same >= Fraction(1, 2) + MONTE_CARLO_ERROR else 0
