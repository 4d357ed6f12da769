"""Training inside the convex hulls of synonyms: ASCC and DNE.

Every word w of a text reads sum over v of c_v e_v, where v are w and its neighbours, c_v >= 0 and sum c_v = 1.
Padding and unknown words have no neighbours and stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..architectures.network_shape import PAD, Body, without_padding
from .near_words import NearWords
from .synonym_pairs import neighbours_of
from .training_rule import Learner, Setting, TrainingRule, cross_entropy, descend

if TYPE_CHECKING:
    import torch

FIRST_RATE = 1.0
DECAY = 2e-5
"""Of ASCC's inner Adam, as released."""
LEAST_SHARE = 1e-6
"""Added to a Dirichlet share before its logarithm, as DNE's code does."""


@dataclass(frozen=True)
class Ascc(NearWords):
    """ASCC (Dong et al. 2021): cross entropy + beta * KL(clean || worst point of the hull).

    The point is sought from random logits w by `steps` steps of Adam (rate 1) that raise KL - alpha * H(c), H the mean
    entropy of the coefficients, which makes them sparse; c = softmax(w). Paper and code agree; TextDefender's defaults
    are alpha 10, beta 4, 5 steps, followed here. Its code starts w with `kaiming_normal_`, whose deviation there is
    sqrt(2 / neighbours), as here.
    """

    alpha: float = 10.0
    beta: float = 4.0
    steps: int = 5

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (0 <= self.alpha < math.inf and 0 <= self.beta < math.inf, "alpha and beta must be >= 0, and finite"),
            (1 <= self.steps <= 1000, "steps must be between 1 and 1000"),
        )

    def start(self, setting: Setting) -> TrainingRule:
        return Sparse(self, self.near(setting))


@dataclass(frozen=True)
class Dne(NearWords):
    """DNE (Zhou et al. 2021): cross entropy at a random point of the hulls, and at `ascents` points uphill from it.

    Neighbours are synonyms and synonyms of synonyms, at most `max_per_word` together. The first coefficients are drawn
    from a Dirichlet distribution: `concentration` for the word and its synonyms, times `decay` for those further off.
    Each next logit is the last one plus `rate` times the gradient, divided by its norm for each word. Defaults are the
    code's for AG News (IMDb: concentration 0.1, decay 0.1). The losses are added up, as in the code. Paper: the text
    is also averaged over drawn points when it is deployed; the code's table and ours deploy the network alone.
    """

    max_per_word: int = 50
    concentration: float = 1.0
    decay: float = 0.5
    rate: float = 10.0
    ascents: int = 3

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (0 < self.concentration < math.inf, "concentration must be above 0, and finite"),
            (0 < self.decay <= 1, "decay must be in (0, 1]"),
            (math.isfinite(self.rate) and self.rate >= 0, "rate must be >= 0"),
            (0 <= self.ascents <= 1000, "ascents must be between 0 and 1000"),
        )

    def start(self, setting: Setting) -> TrainingRule:
        near, first = second_order(setting.words, setting.folder / self.synonyms, self.max_per_word)
        return Drawn(self, tensor(near), tensor(first))


def tensor(values: NDArray[np.int64]) -> torch.Tensor:
    import torch

    return torch.from_numpy(values)


def second_order(words: Sequence[str], file: Path, at_most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbours with those of theirs behind them, [words, 1 + most], and how many of a row are of the first kind."""
    near = neighbours_of(words, file, at_most)
    rows, first = [], []
    for others in near.tolist():
        own = list(dict.fromkeys(others))
        beyond = dict.fromkeys([*own, *(other for word in own[1:] for other in near[word].tolist())])
        rows.append(list(beyond)[: 1 + at_most])
        first.append(len(own))
    width = max(map(len, rows))
    return (
        np.array([[*row, *[row[0]] * (width - len(row))] for row in rows], dtype=np.int64),
        np.array(first, dtype=np.int64),
    )


def present(near: torch.Tensor) -> torch.Tensor:
    """Where a row of neighbours names one: the word itself first, and no repetition of it that fills up."""
    import torch

    found = near != near[..., :1]
    return torch.cat([torch.ones_like(found[..., :1]), found[..., 1:]], dim=-1)


def hull_points(table: torch.Tensor, near: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """sum c_v e_v with c = softmax of `weights` [batch, length, neighbours] over those that are present."""
    import torch
    from torch.nn import functional

    shares = torch.softmax(weights.masked_fill(~present(near), float("-inf")), dim=-1).flatten(0, 1)
    # Sums up rows where they stand: copies of them, 50 for each word of DNE, cost five times as much.
    sums = functional.embedding_bag(near.flatten(0, 1), table, per_sample_weights=shares, mode="sum", padding_idx=PAD)
    found: torch.Tensor = sums.view(*near.shape[:2], -1)
    return found


@dataclass(frozen=True)
class Sparse(TrainingRule):
    keys: Ascc
    near: torch.Tensor

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch
        from torch.nn import functional

        keys = self.keys
        tokens = without_padding(network.shape, tokens)
        real, near = tokens != PAD, self.near[tokens]
        there = present(near)
        weights = torch.randn(near.shape, generator=network.generator) * math.sqrt(2.0 / near.shape[-1])
        weights.requires_grad_()
        inner = torch.optim.Adam([weights], lr=FIRST_RATE, weight_decay=DECAY)
        table = network.table.detach()
        with torch.no_grad():
            calm = torch.softmax(network.logits(network.vectors(tokens), real), dim=1)
        for _ in range(keys.steps):
            logits = network.logits(hull_points(table, near, weights), real)
            apart = functional.kl_div(torch.log_softmax(logits, dim=1), calm, reduction="batchmean")
            logs = torch.log_softmax(weights.masked_fill(~there, float("-inf")), dim=-1)
            entropy = -(logs.exp() * logs.masked_fill(~there, 0.0)).sum(dim=-1)[real].mean()
            (weights.grad,) = torch.autograd.grad(keys.alpha * entropy - apart, weights)
            inner.step()
        clean = network.logits(network.vectors(tokens), real)
        worst = network.logits(hull_points(network.table, near, weights.detach()), real)
        apart = functional.kl_div(torch.log_softmax(worst, dim=1), torch.softmax(clean, dim=1), reduction="batchmean")
        return descend(cross_entropy(clean, labels) + keys.beta * apart)


@dataclass(frozen=True)
class Drawn(TrainingRule):
    """`first`: of each row of neighbours, how many are the word and its synonyms."""

    keys: Dne
    near: torch.Tensor
    first: torch.Tensor

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch

        keys = self.keys
        tokens = without_padding(network.shape, tokens)
        real, near = tokens != PAD, self.near[tokens]
        near = near[..., : int(present(near).sum(dim=-1).max())]
        weights = (self.shares(near, self.first[tokens], network.generator) + LEAST_SHARE).log()
        total = 0.0
        for _ in range(1 + keys.ascents):
            weights.requires_grad_()
            logits = network.logits(hull_points(network.table, near, weights), real)
            total += descend(cross_entropy(logits, labels))
            gradient = torch.zeros_like(weights) if weights.grad is None else weights.grad
            length = gradient.norm(dim=-1, keepdim=True) + LEAST_SHARE
            weights = (weights.detach() + keys.rate * gradient / length).detach()
        return total

    def shares(self, near: torch.Tensor, first: torch.Tensor, by: torch.Generator) -> torch.Tensor:
        """Dirichlet shares: gamma variables over their sum."""
        import torch

        place = torch.arange(near.shape[-1])
        far = self.keys.concentration * self.keys.decay
        concentration = torch.where(place < first.unsqueeze(-1), self.keys.concentration, far)
        drawn = torch._standard_gamma(concentration, generator=by) * present(near)
        return drawn / drawn.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(drawn.dtype).tiny)
