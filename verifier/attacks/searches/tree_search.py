"""Monte Carlo tree search (La Malfa et al.): which words to swap together, by the greatest drops met so far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked, distinct

Array = NDArray[Any]


@dataclass(eq=False)
class Vertex:
    """A set of words that are swapped together; `best` is the greatest rise of the share among its own simulations."""

    row: Array
    """Of these simulations the sentence with the best score; the text itself at the root."""
    words: tuple[int, ...] = ()
    parent: Vertex | None = None
    best: float = 0.0
    score: float = -math.inf
    visits: int = 1
    children: list[Vertex] | None = None
    """None while it is a leaf."""

    def urgency(self, alpha: float) -> float:
        """UCT, and of equal ones (shares that are 0 or 1 in floats) the better score."""
        above = 1 if self.parent is None else self.parent.visits
        return self.best / self.visits + alpha * math.sqrt(2 * math.log(above) / self.visits)

    def below(self) -> Iterator[Vertex]:
        """Itself, and all below it."""
        yield self
        for child in self.children or ():
            yield from child.below()

    def leaves(self) -> list[Vertex]:
        return [vertex for vertex in self.below() if vertex.children is None]


@dataclass(frozen=True)
class TreeSearch:
    """A vertex is a set of words; its simulations give each of them random options.

        UCT = Q / N + alpha sqrt(2 ln N_parent / N)      Q = the greatest drop of confidence met, alpha = 0.5

    An iteration takes the leaf of the greatest UCT, expands it by every word that is not in it (a set met before is not
    made again) and simulates each child `simulations` times; then all vertices above it count a visit. The paper says
    no more of when the search ends than "a fixed fraction of the vertices"; its code expands until a depth is reached.
    Here, after `rounds` iterations, the search commits itself to the first step towards the best leaf and goes on below
    it, until a sentence reaches the goal or no swap is left.

    The paper's neighbours are any words of an embedding, ours the options of the space. A vertex never draws more than
    its sentences are, and beside what it draws it tries its parent's best sentence with every option of the new word.
    """

    rounds: int = 2
    simulations: int = 1000
    alpha: float = 0.5

    def run(self, attacked: Attacked) -> None:
        here = float(attacked.ask(attacked.original[None]).shares[0])
        root = Vertex(attacked.original)
        while leaves := root.leaves():
            met = {frozenset(vertex.words) for vertex in root.below()}
            for _ in range(self.rounds):
                urgent = max(leaves, key=lambda leaf: (leaf.urgency(self.alpha), leaf.score))
                self.expand(attacked, urgent, here, met)
                leaves = root.leaves()
                if attacked.broken or not leaves:
                    return
            best = max(leaves, key=lambda leaf: leaf.score)
            while best.parent is not root and best.parent is not None:
                best = best.parent
            root = best

    def expand(self, attacked: Attacked, leaf: Vertex, here: float, met: set[frozenset[int]]) -> None:
        leaf.children = []
        for word in attacked.movable if len(leaf.words) < attacked.most_swaps else ():
            words = frozenset((*leaf.words, word))
            if len(words) == len(leaf.words) or words in met:
                continue
            met.add(words)
            rows = attacked.allowed(self.drawn(attacked, leaf, word))
            if not len(rows):
                continue
            judged = attacked.ask(rows)
            top = int(judged.scores.argmax())
            rise, score = float(judged.shares[top]) - here, float(judged.scores[top])
            leaf.children.append(Vertex(rows[top], (*leaf.words, word), leaf, rise, score))
        above: Vertex | None = leaf
        while above is not None:
            above.visits += 1
            above = above.parent

    def drawn(self, attacked: Attacked, leaf: Vertex, word: int) -> Array:
        """Random options of these words: at most `simulations` sentences, all of them where there are no more."""
        words = (*leaf.words, word)
        sizes = [attacked.options[one] - 1 for one in words]
        total = math.prod(sizes)
        if total <= self.simulations:
            chosen = np.stack(np.unravel_index(np.arange(total), sizes), axis=1)
        else:
            chosen = (attacked.random.random((self.simulations - sizes[-1], len(sizes))) * sizes).astype(np.int64)
        rows = np.zeros((len(chosen), attacked.words), dtype=np.int32)
        rows[:, list(words)] = chosen + 1
        below = np.repeat(np.asarray(leaf.row, dtype=np.int32)[None], sizes[-1], axis=0)
        below[:, word] = np.arange(1, sizes[-1] + 1)
        return distinct(np.concatenate([below, rows]))
