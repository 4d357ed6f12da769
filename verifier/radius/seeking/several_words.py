"""Several words replaced at once: Monte Carlo tree search (La Malfa et al.) for a near sentence of another class.

A vertex is a set of words. Its simulations replace each of them by random ones of its nearest words.

    UCT = Q / N + alpha sqrt(2 ln N_parent / N)      Q = the greatest drop of the margin met, alpha = 0.5

The paper takes what it finds. Here every sentence that changes the class is then brought nearer: words go back, or give
way to nearer ones, one place at a time, as long as the class stays changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from swapproof.encodings.bounds.normal_form import Stack
from swapproof.encodings.network import Floats, Indices

from ..moving_ball import Ball

ALPHA, ITERATIONS, SIMULATIONS = 0.5, 12, 64
MOST_NEIGHBOURS = 1000
"""Of each word, as in the paper."""
KEPT_BACK = 4
"""Sentences that are brought nearer."""


@dataclass(eq=False)
class Vertex:
    """Places whose words are replaced together."""

    places: tuple[int, ...]
    best: float = 0.0
    visits: int = 1
    children: list[Vertex] = field(default_factory=list)
    spent: bool = False
    """Whether nothing is left to expand at it or below."""


@dataclass(eq=False)
class SentenceSearch:
    """`vectors` [words, width]; a sentence is a row for each place, -1 for the word that stands there."""

    stack: Stack
    balls: Sequence[Ball]
    vectors: Floats
    random: np.random.Generator
    found: list[tuple[float, Indices]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.center = self.balls[0].center.reshape(-1, self.vectors.shape[1])
        away = [self.distances_at(place) for place in range(len(self.center))]
        self.away = np.array(away)
        self.near = np.argsort(self.away, axis=1, kind="stable")[:, :MOST_NEIGHBOURS]

    def distances_at(self, place: int) -> Floats:
        ball, width = self.balls[0], self.vectors.shape[1]
        away = np.abs(self.vectors - self.center[place]) / ball.widths[:width]
        return np.asarray(away.max(axis=1) if ball.norm == "linf" else np.sqrt((away**2).sum(axis=1)))

    def points(self, sentences: Indices) -> Floats:
        """[n, places * width]"""
        chosen = np.where((sentences >= 0)[:, :, None], self.vectors[sentences], self.center)
        return np.asarray(chosen.reshape(len(sentences), -1))

    def margins(self, sentences: Indices) -> Floats:
        points = self.points(sentences)
        return np.asarray(np.min([ball.margin(self.stack, points) for ball in self.balls], axis=0))

    def distances(self, sentences: Indices) -> Floats:
        own = np.where(sentences >= 0, np.take_along_axis(self.away, np.maximum(sentences, 0).T, axis=1).T, 0.0)
        return np.asarray(own.max(axis=1) if self.balls[0].norm == "linf" else np.sqrt((own**2).sum(axis=1)))

    def run(self) -> list[tuple[float, Indices]]:
        """Sentences that change the class in float64, the nearest first, with their distances."""
        here = float(self.margins(np.full((1, len(self.center)), -1))[0])
        root, met = Vertex(()), set[frozenset[int]]()
        for _ in range(ITERATIONS):
            path = [root]
            while path[-1].children:
                left = [child for child in path[-1].children if not child.spent]
                if not left:
                    path[-1].spent = True
                    break
                path.append(max(left, key=lambda child: urgency(child, path[-1].visits)))
            if root.spent:
                break
            self.expand(path, here, met)
        self.found.sort(key=lambda pair: pair[0])
        nearer = [self.brought_nearer(sentence) for _, sentence in self.found[:KEPT_BACK]]
        return sorted([(float(self.distances(one[None])[0]), one) for one in nearer], key=lambda pair: pair[0])

    def expand(self, path: list[Vertex], here: float, met: set[frozenset[int]]) -> None:
        leaf, rise = path[-1], 0.0
        for place in range(len(self.center)):
            places = frozenset((*leaf.places, place))
            if len(places) == len(leaf.places) or places in met:
                continue
            met.add(places)
            child = Vertex((*leaf.places, place))
            sentences = np.full((SIMULATIONS, len(self.center)), -1)
            for at in child.places:
                sentences[:, at] = self.random.choice(self.near[at], SIMULATIONS)
            margin = self.margins(sentences)
            child.best = here - float(margin.min())
            rise = max(rise, child.best)
            changed = sentences[margin <= 0]
            self.found += zip(self.distances(changed).tolist(), changed, strict=True)
            leaf.children.append(child)
        leaf.spent = not leaf.children
        for vertex in path:
            vertex.visits += 1
            vertex.best = max(vertex.best, rise)

    def brought_nearer(self, sentence: Indices) -> Indices:
        """One place at a time the nearest word that still changes the class, the word itself first; until none is."""
        best = sentence.copy()
        improved = True
        while improved:
            improved = False
            for place in np.argsort(-np.where(best >= 0, self.away[np.arange(len(best)), best], -1.0)).tolist():
                if best[place] < 0:
                    continue
                nearer = self.near[place][self.away[place][self.near[place]] < self.away[place][best[place]]]
                options = np.concatenate([[-1], nearer])
                tried = np.repeat(best[None], len(options), axis=0)
                tried[:, place] = options
                still = np.flatnonzero(self.margins(tried) <= 0)
                if len(still):
                    best, improved = tried[still[0]], True
        return best


def urgency(child: Vertex, visits: int) -> float:
    n = max(1, child.visits)
    return child.best / n + ALPHA * math.sqrt(2 * math.log(max(1, visits)) / n)
