"""Particle swarms over words: SemPSO (Zang et al.), and its form with Levy flights, LEAP."""

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
"""Exponent of Levy flights."""


@dataclass(frozen=True)
class Swarm:
    """A particle is a sentence x; each word d has a velocity v.

        v_d = w v_d + (1 - w) (I(p_d, x_d) + I(g_d, x_d))      I(a, b) = -3 if a = b, else 3

    p is the particle's best sentence so far, g the best of all, w falls from 0.8 to 0.2. With probability P_i the
    particle moves towards p, each word with probability sigmoid(v_d); then with P_g towards g. Last it mutates with
    probability 1 - 2 swaps/words, or never where that is negative, by its best option of a word. I has the signs of
    the released code, where words that differ are likely to move; those of the paper are the opposite. 60 particles,
    20 rounds.

    `levy`: LEAP (Xiao et al. 2023). Velocities begin as Levy steps; each particle's w follows its own score,
    w = w_min + (w_max - w_min) (s_best - s) / (s_best - s_mean) where s is above the mean, else w_max; and mutations
    are greedy: of all words, not of one drawn at random. Written after the idea of the paper; neither its
    text nor code was at hand to compare with.
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
            velocity = np.clip(levy_steps(random, (self.particles, 1)), -FASTEST, FASTEST)
        velocity = np.repeat(velocity, words, axis=1)
        scores = attacked.ask(swarm).scores
        own, own_scores = swarm.copy(), scores.copy()
        best, best_score = swarm[scores.argmax()], float(scores.max())
        for round in range(self.rounds):
            if attacked.broken:
                return
            share = round / self.rounds
            inertia = self.inertia(share, scores)
            velocity = inertia * velocity + (1 - inertia) * (attraction(own, swarm) + attraction(best[None], swarm))
            turning = 1 / (1 + np.exp(-velocity))
            swarm = moved(attacked, swarm, own, turning, PULL[0] - share * (PULL[0] - PULL[1]))
            swarm = moved(
                attacked,
                swarm,
                np.repeat(best[None], len(swarm), axis=0),
                turning,
                PULL[1] + share * (PULL[0] - PULL[1]),
            )
            scores = attacked.ask(swarm).scores
            if attacked.broken:
                return
            changing = 1 - 2 * np.count_nonzero(swarm, axis=1) / words
            for place in np.flatnonzero(random.random(len(swarm)) < changing).tolist():
                swarm[place] = steps.apply(attacked, swarm[place], greedy=self.levy)
                if attacked.broken:
                    return
            scores = attacked.ask(swarm).scores
            better = scores > own_scores
            own[better], own_scores[better] = swarm[better], scores[better]
            if scores.max() > best_score:
                best, best_score = swarm[scores.argmax()].copy(), float(scores.max())

    def inertia(self, share: float, scores: Array) -> Array:
        """[particles, 1]."""
        most, least = INERTIA
        if not self.levy:
            return np.full((len(scores), 1), most - share * (most - least))
        finite = np.where(np.isfinite(scores), scores, scores[np.isfinite(scores)].min(initial=0.0))
        mean, best = finite.mean(), finite.max()
        above = (best - finite) / (best - mean) if best > mean else np.ones(len(finite))
        return np.asarray(np.where(finite > mean, least + (most - least) * above, most))[:, None]


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


def moved(attacked: Attacked, swarm: Array, aims: Array, turning: Array, chance: float) -> Array:
    """Particles that move, with this chance, towards their aims; none to where it is not allowed."""
    going = attacked.random.random((len(swarm), 1)) < chance
    taking = going & (attacked.random.random(swarm.shape) < turning)
    there = np.where(taking, aims, swarm).astype(np.int32)
    fine = attacked.permits(there)
    return np.where(fine[:, None], there, swarm).astype(np.int32)


def levy_steps(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Mantegna's way: u / |v|^(1/a) with normal u, v and the deviation of u that makes the tail a stable law's."""
    top = math.gamma(1 + TAIL) * math.sin(math.pi * TAIL / 2)
    bottom = math.gamma((1 + TAIL) / 2) * TAIL * 2 ** ((TAIL - 1) / 2)
    spread = (top / bottom) ** (1 / TAIL)
    drawn = random.normal(0, spread, shape) / np.abs(random.normal(0, 1, shape)) ** (1 / TAIL)
    return np.asarray(drawn)
