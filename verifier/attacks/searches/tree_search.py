"""Monte Carlo tree search (La Malfa et al.): which words to swap together, by the greatest drops met so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked, distinct

Array = NDArray[Any]


@dataclass(eq=False)
class Vertex:
    """A set of words that are swapped together; `best` is the greatest rise of the share met at it or below."""

    words: tuple[int, ...]
    best: float = 0.0
    visits: int = 0
    children: list[Vertex] = field(default_factory=list)
    open: bool = True
    """Whether there is anything left to expand at it or below."""


@dataclass(frozen=True)
class TreeSearch:
    """A vertex is a set of words; its simulations give each of them random options.

        UCT = Q / N + alpha sqrt(2 ln N_parent / N)      Q = the greatest drop of confidence met, alpha = 0.5

    An iteration goes down by UCT, expands a vertex by every word that is not in it (sets met before are not made
    again) and simulates each child; rises go up as maxima. The paper has 1,000 simulations a vertex and embeddings of
    any neighbour; here a vertex never draws more than its sentences are. Its code keeps the first success; we go on,
    among sets smaller than that of the fewest swaps found, until the iterations are used up.
    """

    iterations: int = 50
    simulations: int = 64
    alpha: float = 0.5

    def run(self, attacked: Attacked) -> None:
        here = float(attacked.ask(attacked.original[None]).shares[0])
        root, met = Vertex(()), set[frozenset[int]]()
        for _ in range(self.iterations):
            if attacked.fewest == 1 or not root.open:
                return
            path = [root]
            while path[-1].children:
                path.append(self.urgent(path[-1]))
            self.expand(attacked, path, here, met)

    def urgent(self, parent: Vertex) -> Vertex:
        visits = max(1, parent.visits)

        def urgency(child: Vertex) -> float:
            n = max(1, child.visits)
            return child.best / n + self.alpha * math.sqrt(2 * math.log(visits) / n)

        return max((child for child in parent.children if child.open), key=urgency)

    def expand(self, attacked: Attacked, path: list[Vertex], here: float, met: set[frozenset[int]]) -> None:
        leaf = path[-1]
        most = min(attacked.most_swaps, attacked.words if attacked.fewest is None else attacked.fewest - 1)
        for word in attacked.movable if len(leaf.words) < most else ():
            words = frozenset((*leaf.words, word))
            if len(words) == len(leaf.words) or words in met:
                continue
            met.add(words)
            child = Vertex((*leaf.words, word), visits=1)
            rows = attacked.allowed(self.drawn(attacked, child.words))
            if not len(rows):
                continue
            child.best = float(attacked.ask(rows).shares.max()) - here
            leaf.children.append(child)
        rise = max((child.best for child in leaf.children), default=0.0)
        leaf.open = bool(leaf.children)
        for vertex in reversed(path):
            vertex.visits += 1
            vertex.best = max(vertex.best, rise)
            vertex.open = vertex.open and any(child.open for child in vertex.children)

    def drawn(self, attacked: Attacked, words: tuple[int, ...]) -> Array:
        """Random options of these words: at most `simulations` sentences, all of them where there are no more."""
        sizes = [attacked.options[word] - 1 for word in words]
        total = math.prod(sizes)
        if total <= self.simulations:
            chosen = np.stack(np.unravel_index(np.arange(total), sizes), axis=1)
        else:
            chosen = (attacked.random.random((self.simulations, len(sizes))) * sizes).astype(np.int64)
        rows = np.zeros((len(chosen), attacked.words), dtype=np.int32)
        rows[:, list(words)] = chosen + 1
        return distinct(rows)
