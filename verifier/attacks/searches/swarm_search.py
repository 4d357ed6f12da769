"""Particle swarms over words: SemPSO (Zang et al.), and LEAP (Xiao et al.), which adapts it with Levy flights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked

Array = NDArray[Any]
FASTEST = 3.0
"""Velocities stay between -3 and 3."""
INERTIA, PULL = (0.8, 0.2), (0.8, 0.2)
"""At the first round and at the last."""
TAIL = 1.5
"""Exponent a of Levy flights."""
SPREAD = (
    math.gamma(1 + TAIL) * math.sin(math.pi * TAIL / 2) / (math.gamma((1 + TAIL) / 2) * TAIL * 2 ** ((TAIL - 1) / 2))
) ** (1 / TAIL)
SCALE = (TAIL * math.gamma((TAIL + 1) / (2 * TAIL)) / math.gamma(1 / TAIL)) * (
    TAIL * math.gamma((TAIL + 1) / 2) / (math.gamma(TAIL + 1) * math.sin(math.pi * TAIL / 2))
) ** (1 / TAIL)
CENTRE = 2.737
"""K and C(1.5) of the released code."""
LEAST_STEP = -10.0
LIVELY = (0.5, 0.8)
"""Of w, for particles that are no worse than the first swarm's mean."""


@dataclass(frozen=True)
class Swarm:
    """A particle is a sentence x; each word d has a velocity v.

        v_d = w v_d + (1 - w) (I(p_d, x_d) + I(g_d, x_d))      I(a, b) = -3 if a = b, else 3

    p is the particle's best sentence so far, g the best of all, w falls from 0.8 to 0.2. With probability P_i the
    particle moves towards p, each word with probability sigmoid(v_d); then with P_g towards g. Last it mutates with
    probability 1 - 2 swaps/words, or never where that is negative, by its best option of a word. I has the signs of
    the released code, where words that differ are likely to move; those of the paper are the opposite. 60 particles,
    20 rounds.

    `levy`: LEAP (Xiao et al. 2023, arXiv 2308.11284), as in the authors' code and TextAttack 0.3.11:

        velocities  of half the particles or so begin as Levy steps (McCulloch's correction of Mantegna's, exponent 1.5)
        w           w_2 + (w_1 - w_2) (s - s_least) / (s_mean - s_least) below the mean of the first swarm's shares,
                    else a Levy step between 0.5 and 0.8
        moving      from the better sentence back to the particle's, a word at a time: softmax(v) in place of sigmoids
        mutation    the best swap of all words, with probability 1 - 2 (words unlike the particle's best)/words

    Their other parts are candidates of WordNet and at most 16 % of the words (--rho-max); they try a move that is
    not allowed 20 times again, here the particle stays.
    """

    particles: int = 60
    rounds: int = 20
    levy: bool = False

    def run(self, attacked: Attacked) -> None:
        random, words = attacked.random, attacked.words
        attacked.ask(attacked.original[None])
        if not attacked.movable:
            return
        steps = Mutation.of(attacked)
        if attacked.broken or not len(steps.words):
            return
        swarm = np.stack([steps.apply(attacked, attacked.original, greedy=False) for _ in range(self.particles)])
        velocity = random.uniform(-FASTEST, FASTEST, size=(self.particles, 1))
        if self.levy:
            jumps = random.uniform(-FASTEST, FASTEST, size=(self.particles, 1)) < levy_steps(
                random, (self.particles, 1)
            )
            velocity = np.where(jumps, velocity, levy_between(random, (self.particles, 1), -FASTEST, FASTEST))
        velocity = np.repeat(velocity, words, axis=1)
        judged = attacked.ask(swarm)
        scores, shares = judged.scores, judged.shares
        first = float(np.round(shares.mean(), 3)), float(shares.min())
        own, own_scores = swarm.copy(), scores.copy()
        best, best_score = swarm[scores.argmax()], float(scores.max())
        for round in range(self.rounds):
            if attacked.broken:
                return
            share = round / self.rounds
            inertia = self.inertia(random, share, shares, first)
            velocity = inertia * velocity + (1 - inertia) * (attraction(own, swarm) + attraction(best[None], swarm))
            turning = softmax(velocity) if self.levy else 1 / (1 + np.exp(-velocity))
            for aims, chance in (
                (own, PULL[0] - share * (PULL[0] - PULL[1])),
                (np.repeat(best[None], len(swarm), axis=0), PULL[1] + share * (PULL[0] - PULL[1])),
            ):
                swarm = moved(attacked, swarm, aims, turning, chance, back=self.levy)
            attacked.ask(swarm)
            if attacked.broken:
                return
            changed = swarm != own if self.levy else swarm != 0
            changing = 1 - 2 * np.count_nonzero(changed, axis=1) / words
            for place in np.flatnonzero(random.random(len(swarm)) < changing).tolist():
                swarm[place] = steps.apply(attacked, swarm[place], greedy=self.levy)
                if attacked.broken:
                    return
            judged = attacked.ask(swarm)
            scores, shares = judged.scores, judged.shares
            better = scores > own_scores
            own[better], own_scores[better] = swarm[better], scores[better]
            if scores.max() > best_score:
                best, best_score = swarm[scores.argmax()].copy(), float(scores.max())

    def inertia(self, random: np.random.Generator, share: float, shares: Array, first: tuple[float, float]) -> Array:
        """[particles, 1]; `first`: mean and least of the first swarm's shares."""
        most, least = INERTIA
        if not self.levy:
            return np.full((len(shares), 1), most - share * (most - least))
        mean, lowest = first
        lively = levy_between(random, shares.shape, *LIVELY)
        if not mean > lowest:
            return lively[:, None]
        slow = least + (shares - lowest) * (most - least) / (mean - lowest)
        return np.where(shares < mean, slow, lively)[:, None]


@dataclass(frozen=True, eq=False)
class Mutation:
    """Of every word that may move, its best single swap of the text, and how much that adds to the share."""

    words: Array
    gains: Array

    @classmethod
    def of(cls, attacked: Attacked) -> Mutation:
        rows = attacked.extensions(attacked.original)
        if not len(rows):
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0))
        here = float(attacked.ask(attacked.original[None]).shares[0])
        shares, moved = attacked.ask(rows).shares, rows.argmax(axis=1)
        words = np.unique(moved)
        return cls(words, np.array([shares[moved == word].max() - here for word in words]))

    def apply(self, attacked: Attacked, row: Array, *, greedy: bool) -> Array:
        """A word drawn in proportion to what it adds (greedy: all words), with the option of the best score."""
        words = self.words
        if not greedy:
            weights = np.maximum(self.gains, 0)
            chances = weights / weights.sum() if weights.sum() > 0 else None
            words = attacked.random.choice(self.words, size=1, p=chances)
        rows = attacked.swaps_of(row, words.tolist())
        if not len(rows):
            return row
        return np.asarray(rows[attacked.ask(rows).scores.argmax()])


def attraction(aim: Array, swarm: Array) -> Array:
    return np.where(aim == swarm, -FASTEST, FASTEST)


def moved(attacked: Attacked, swarm: Array, aims: Array, turning: Array, chance: float, *, back: bool = False) -> Array:
    """Particles that move, with this chance, towards their aims; none to where it is not allowed. `back`: they jump to
    their aims, and words turn back to what they were."""
    going = attacked.random.random((len(swarm), 1)) < chance
    turned = attacked.random.random(swarm.shape) < turning
    there = np.where(going & (turned != back), aims, swarm).astype(np.int32)
    fine = attacked.permits(there)
    return np.where(fine[:, None], there, swarm).astype(np.int32)


def softmax(velocity: Array) -> Array:
    weights = np.exp(velocity - velocity.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def levy_between(random: np.random.Generator, shape: tuple[int, ...], low: float, high: float) -> Array:
    """Levy steps drawn until they lie there."""
    found = np.full(shape, np.nan)
    while (left := np.isnan(found)).any():
        drawn = levy_steps(random, (int(left.sum()),))
        found[left] = np.where((drawn >= low) & (drawn <= high), drawn, np.nan)
    return found


def levy_steps(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """v ((K - 1) exp(-v / C) + 1) with v = u / |x|^(1/a), u and x normal, u of the deviation that makes the tail a
    stable law's; no v below -10."""
    v = np.full(shape, -np.inf)
    while (left := v < LEAST_STEP).any():
        number = int(left.sum())
        v[left] = random.normal(0, SPREAD, number) / np.abs(random.normal(0, 1, number)) ** (1 / TAIL)
    return np.asarray(v * ((SCALE - 1) * np.exp(-v / CENTRE) + 1))
