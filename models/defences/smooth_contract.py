"""Training of networks that can be certified: smoothed embeddings, and recurrent matrices that contract.

*Smooth.* Words that may replace each other get nearby vectors: `rounds` times, each row of the embedding table becomes
the mean of itself and of its neighbours in the synonym graph. Two words of the vocabulary are neighbours where either
is listed for the other. The network learns through the averaging, and the exported table is the averaged one.

*Contract.* After every step each row of the matrices that act on the recurrent state is scaled down until the sum
of its absolute values is at most `l1`, so that intervals of states do not widen from word to word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..architectures.network_shape import Body
from ..errors import BadInput
from .synonym_pairs import Pairs, read_synonyms, synonym_pairs
from .training_rule import Defence, Setting, TrainingRule

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class SmoothContract(Defence):
    """Both. Ours, as `smooth` and `contract`: there is no paper to follow. Four rounds and l1 = 1 bring the growth
    per step below 1 and cost about a point of accuracy (models/README.md)."""

    synonyms: str
    rounds: int = 4
    l1: float = 1.0

    @property
    def synonym_file(self) -> str:
        return self.synonyms

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (*rounds_rules(self.rounds), *l1_rules(self.l1, body))

    def start(self, setting: Setting) -> TrainingRule:
        mean = averaging(setting.words, setting.folder / self.synonyms)
        return Held(mean, self.rounds, setting.shape.body.state_matrices, self.l1)


@dataclass(frozen=True)
class Smooth(Defence):
    """The embeddings alone; the only half that networks without recurrent matrices can have."""

    synonyms: str
    rounds: int = 4

    @property
    def synonym_file(self) -> str:
        return self.synonyms

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return rounds_rules(self.rounds)

    def start(self, setting: Setting) -> TrainingRule:
        return Held(averaging(setting.words, setting.folder / self.synonyms), self.rounds, (), math.inf)


@dataclass(frozen=True)
class Contract(Defence):
    """The recurrent matrices alone."""

    l1: float = 1.0

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return l1_rules(self.l1, body)

    def start(self, setting: Setting) -> TrainingRule:
        return Held(None, 0, setting.shape.body.state_matrices, self.l1)


def rounds_rules(rounds: int) -> tuple[tuple[bool, str], ...]:
    return ((1 <= rounds <= 100, "rounds must be between 1 and 100"),)


def l1_rules(l1: float, body: Body) -> tuple[tuple[bool, str], ...]:
    missing = 'has no matrix that acts on a recurrent state; method = "smooth" needs none'
    return (
        (math.isfinite(l1) and l1 > 0, "l1 must be above 0"),
        (bool(body.state_matrices), f"the network {missing}"),
    )


@dataclass(frozen=True)
class Held(TrainingRule):
    """`mean` averages once, [words, words]; None leaves the embedding as it is."""

    mean: torch.Tensor | None
    rounds: int
    matrices: tuple[str, ...]
    l1: float

    def table(self, embedding: torch.Tensor) -> torch.Tensor:
        if self.mean is not None:
            for _ in range(self.rounds):
                embedding = self.mean @ embedding
        return embedding

    def hold(self, weights: dict[str, torch.Tensor]) -> None:
        for name in self.matrices:
            hold_rows(weights[name], self.l1)


def hold_rows(matrix: torch.Tensor, l1: float) -> None:
    """Every row of the matrix, in place, times min(1, l1 / sum of its absolute values)."""
    import torch

    with torch.no_grad():
        matrix *= (l1 / matrix.abs().sum(dim=1, keepdim=True).clamp(min=l1)).clamp(max=1.0)


def averaging(words: Sequence[str], file: Path) -> torch.Tensor:
    """The sparse matrix A whose product with a table is the mean of each row and its neighbours' rows.

    A[w, v] = 1 / (1 + neighbours of w) where v is w or a neighbour of w, else 0.
    """
    import torch

    pairs = synonym_pairs(words, read_synonyms(file))
    if not len(pairs):
        raise BadInput(f"{file}: no two words of the vocabulary are synonyms there; nothing would be averaged")
    linked = neighbours(pairs, len(words))
    share = 1.0 / np.bincount(linked[:, 0], minlength=len(words))
    entries = torch.from_numpy(share[linked[:, 0]].astype(np.float32))
    size = (len(words), len(words))
    return torch.sparse_coo_tensor(torch.from_numpy(linked.T.copy()), entries, size, check_invariants=True).coalesce()


def neighbours(pairs: Pairs, words: int) -> Pairs:
    """(word, neighbour) both ways, every word its own neighbour, each pair once and in order."""
    itself = np.arange(words)
    return np.unique(np.concatenate([pairs, pairs[:, ::-1], np.stack([itself, itself], axis=1)]), axis=0)
