"""Training on vectors moved uphill: PGD-K, FreeLB, FreeLB++, TA-VAT and InfoBERT.

With X the vectors of a text's n words (d numbers each), f the network and L cross entropy:

    delta_0 = u * magnitude / sqrt(n d), u uniform on [-1, 1] at words, 0 at padding
    delta_t+1 = P(delta_t + rate * g / |g|), g the gradient of L(f(X + delta_t), y), |.| over the whole text
    P(delta) = delta * min(1, norm / |delta|) if norm > 0, else delta

A gradient is 0 at padding wherever the network does not read it; where it does, padding is kept still all the same, and
so are tokens that are no words, as [CLS].
The released code that is meant is TextDefender's, of the Defender paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..architectures.network_shape import PAD, UNKNOWN, Body, head, without_padding
from .training_rule import Defence, Learner, Setting, TrainingRule, cross_entropy, descend

if TYPE_CHECKING:
    import torch

LEAST_NORM = 1e-8
"""A gradient that is shorter is divided by this, as the released code does."""


@dataclass(frozen=True)
class Ascent(Defence):
    """Keys of all that climb; the defaults are those of the method's own paper or code."""

    steps: int = 5
    rate: float = 0.03
    magnitude: float = 0.05
    norm: float = 0.0
    """Largest norm of a text's delta; 0 for no limit."""

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        sizes = (self.rate, self.magnitude, self.norm)
        return (
            (1 <= self.steps <= 1000, "steps must be between 1 and 1000"),
            (all(math.isfinite(size) and size >= 0 for size in sizes), "rate, magnitude and norm must be >= 0"),
        )


@dataclass(frozen=True)
class Pgd(Ascent):
    """PGD-K (Madry et al. 2018) on word vectors: the loss at the last delta alone.

    The paper projects onto a ball; the Defender paper's norm is 0.01. The released code has norm 0 (no projection) as
    its default, and 5 steps of 0.03. Here the norm is the paper's; `norm = 0` gives what it calls PGD-K++.
    """

    norm: float = 0.01

    def start(self, setting: Setting) -> TrainingRule:
        return Climbing(self, every=False)


@dataclass(frozen=True)
class FreeLb(Ascent):
    """FreeLB (Zhu et al. 2020): the mean of the losses at delta_0 .. delta_K-1, weights moved once.

    Paper and code agree but for the norm: the paper projects (0.01 in the Defender paper), the released default not.
    """

    norm: float = 0.01

    def start(self, setting: Setting) -> TrainingRule:
        return Climbing(self, every=True)


@dataclass(frozen=True)
class FreeLbPlusPlus(Ascent):
    """FreeLB++ (Li et al. 2021, the Defender paper): FreeLB without projection and with more steps: 30 on AG News, 10
    on IMDb (`steps = 10`). Rate and first magnitude, which the paper does not say, are those of the released code."""

    steps: int = 30

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (*super().rules(body), (self.norm == 0, 'norm must be 0: method = "freelb" projects'))

    def start(self, setting: Setting) -> TrainingRule:
        return Climbing(self, every=True)


@dataclass(frozen=True)
class TaVat(Ascent):
    """TA-VAT (Li and Qiu 2020): FreeLB with a second delta for every word, which begins where the word's last one
    ended; each word's is scaled by its share of the longest of the text.

    Paper: the losses are averaged; the released code adds them up. Here they are averaged. The code divides the stored
    deltas by their norm over the whole batch, adds new ones to the stored ones instead of replacing them, and lets
    padding have one; here they begin with the norm `magnitude` over each text, words alone have one, and the last of a
    word's deltas in a batch is stored, as in the paper.
    """

    steps: int = 2
    rate: float = 0.05
    magnitude: float = 0.2
    norm: float = 0.5

    def start(self, setting: Setting) -> TrainingRule:
        import torch

        size = (setting.shape.vocabulary, setting.shape.body.embedding)
        drawn = torch.rand(size, generator=setting.generator) * 2.0 - 1.0
        return TokenAware(self, drawn * (self.magnitude / math.sqrt(setting.shape.body.embedding)))


@dataclass(frozen=True)
class InfoBert(Ascent):
    """InfoBERT (Wang et al. 2020): FreeLB, with two terms for what vectors of words tell.

    * beta * E |e_i - e_j|^2 / 2 over words i and j drawn from the batch: bounds what vectors tell of the text;
    * -alpha * InfoNCE between the vectors of the words whose gradient's rank lies between the shares `low` and `high`
      and the features of their text, scored by a learned network (300 ReLUs, softplus).

    Paper and code take BERT's first token as the features; here they are what the fully connected layers read. The
    released code draws at most a batch of words for each InfoNCE and lets padding into the first term; here as many
    words are drawn as there are texts, and padding never.
    """

    steps: int = 3
    rate: float = 0.04
    magnitude: float = 0.08
    alpha: float = 5e-3
    beta: float = 5e-3
    low: float = 0.5
    high: float = 0.9

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (0 <= self.low < self.high <= 1, "low and high must be shares, low the smaller"),
            (0 <= self.alpha < math.inf and 0 <= self.beta < math.inf, "alpha and beta must be >= 0, and finite"),
        )

    def start(self, setting: Setting) -> TrainingRule:
        import torch

        reads = setting.shape.body.embedding + setting.shape.body.features(setting.shape.length)
        bounds = {"inner.weight": ((INNER, reads), reads), "inner.bias": ((INNER,), reads)}
        bounds |= {"outer.weight": ((1, INNER), INNER), "outer.bias": ((1,), INNER)}
        drawn = {
            name: ((torch.rand(size, generator=setting.generator) * 2 - 1) / math.sqrt(inputs)).requires_grad_()
            for name, (size, inputs) in bounds.items()
        }
        return Informed(self, drawn)


INNER = 300
"""ReLUs of the network that InfoNCE scores with, as released."""


def first_delta(vectors: torch.Tensor, real: torch.Tensor, magnitude: float, by: torch.Generator) -> torch.Tensor:
    """delta_0."""
    import torch

    drawn = (torch.rand(vectors.shape, generator=by) * 2.0 - 1.0) * real.unsqueeze(-1)
    numbers = real.sum(dim=1).clamp(min=1) * vectors.shape[-1]
    return drawn * (magnitude / numbers.sqrt())[:, None, None]


def lengths(values: torch.Tensor) -> torch.Tensor:
    """[batch, 1, 1]: the norm over each whole text."""
    import torch

    found: torch.Tensor = torch.linalg.vector_norm(values, dim=(1, 2), keepdim=True)
    return found


def projected(delta: torch.Tensor, norm: float) -> torch.Tensor:
    """P(delta), each text by itself."""
    return delta * (norm / lengths(delta).clamp(min=norm)) if norm > 0 else delta


def climbed(delta: torch.Tensor, gradient: torch.Tensor, rate: float, norm: float) -> torch.Tensor:
    """delta_t+1."""
    return projected(delta + rate * gradient / lengths(gradient).clamp(min=LEAST_NORM), norm).detach()


@dataclass(frozen=True)
class Climbing(TrainingRule):
    """`every`: the mean of the losses on the way (FreeLB), else the loss where it ends (PGD-K)."""

    keys: Ascent
    every: bool

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch

        keys = self.keys
        tokens = without_padding(network.shape, tokens)
        real, words = tokens != PAD, network.is_word(tokens)
        delta = first_delta(network.vectors(tokens).detach(), words, keys.magnitude, network.generator)
        total = 0.0
        for step in range(keys.steps):
            delta.requires_grad_()
            loss = cross_entropy(network.logits(network.vectors(tokens) + delta, real), labels)
            if self.every:
                total += descend(loss / keys.steps)
                gradient = delta.grad
            else:
                (gradient,) = torch.autograd.grad(loss, delta)
            if not self.every or step < keys.steps - 1:
                delta = climbed(delta.detach(), still(gradient, delta, words), keys.rate, keys.norm)
        if self.every:
            return total
        return descend(cross_entropy(network.logits(network.vectors(tokens) + delta, real), labels))


def still(gradient: torch.Tensor | None, delta: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """The gradient with padding left where it is; 0 where nothing depends on the vectors."""
    import torch

    return (torch.zeros_like(delta) if gradient is None else gradient) * real.unsqueeze(-1)


@dataclass(frozen=True)
class TokenAware(TrainingRule):
    """`deltas` [words, embedding]: the last delta of each word."""

    keys: TaVat
    deltas: torch.Tensor

    @property
    def own(self) -> Mapping[str, torch.Tensor]:
        return {"deltas": self.deltas}

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch

        keys = self.keys
        tokens = without_padding(network.shape, tokens)
        real, words = tokens != PAD, network.is_word(tokens)
        column = words.unsqueeze(-1)
        delta = first_delta(network.vectors(tokens).detach(), words, keys.magnitude, network.generator)
        by_word = self.deltas[tokens] * column
        by_word = by_word / lengths(by_word).clamp(min=LEAST_NORM) * keys.magnitude
        total = 0.0
        for step in range(keys.steps):
            delta.requires_grad_()
            by_word.requires_grad_()
            logits = network.logits(network.vectors(tokens) + delta + by_word, real)
            total += descend(cross_entropy(logits, labels) / keys.steps)
            if step == keys.steps - 1:
                break
            uphill = still(by_word.grad, by_word, words)
            moved = by_word.detach() + keys.rate * uphill / torch.linalg.vector_norm(
                uphill, dim=-1, keepdim=True
            ).clamp(min=LEAST_NORM)
            size = torch.linalg.vector_norm(moved, dim=-1, keepdim=True)
            moved = moved * size / size.amax(dim=1, keepdim=True).clamp(min=LEAST_NORM)
            lifted = climbed(delta.detach(), still(delta.grad, delta, words), keys.rate, 0.0)
            both = lengths(lifted + moved)
            kept = keys.norm / both.clamp(min=keys.norm) if keys.norm > 0 else both.new_ones(both.shape)
            delta, by_word = (lifted * kept).detach(), (moved * kept).detach()
        known = words & (tokens != UNKNOWN)
        self.deltas[tokens[known]] = by_word.detach()[known]
        return total


@dataclass(frozen=True)
class Informed(TrainingRule):
    """`scorer`: weights of the network that InfoNCE scores with, learned too."""

    keys: InfoBert
    scorer: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def own(self) -> Mapping[str, torch.Tensor]:
        return self.scorer

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch

        keys = self.keys
        tokens = without_padding(network.shape, tokens)
        real, words = tokens != PAD, network.is_word(tokens)
        delta = first_delta(network.vectors(tokens).detach(), words, keys.magnitude, network.generator)
        total = 0.0
        for step in range(keys.steps):
            delta.requires_grad_()
            vectors = network.vectors(tokens) + delta
            told = network.features(vectors, real)
            loss = cross_entropy(head(network.shape, network.weights, told, network.noise), labels) / keys.steps
            (gradient,) = torch.autograd.grad(loss, delta, retain_graph=True)
            total += loss.item()
            extra = self.upper(vectors[words], network.generator) * keys.beta
            lower = self.lower(vectors, told, still(gradient, delta, words), words, network.generator)
            descend(loss + (extra - keys.alpha * lower) / keys.steps)
            if step < keys.steps - 1:
                delta = climbed(delta.detach(), still(gradient, delta, words), keys.rate, keys.norm)
        return total

    def upper(self, words: torch.Tensor, by: torch.Generator) -> torch.Tensor:
        """E |e_i - e_j|^2 / 2, j drawn for each i."""
        import torch

        other = torch.randint(len(words), (len(words),), generator=by)
        return ((words - words[other]) ** 2).sum(dim=-1).mean() / 2

    def lower(
        self, vectors: torch.Tensor, told: torch.Tensor, gradient: torch.Tensor, real: torch.Tensor, by: torch.Generator
    ) -> torch.Tensor:
        """InfoNCE: E T(e, f) - E log mean over others e' of exp T(e', f), of words e in texts with features f."""
        import torch

        texts, places = self.anchored(gradient, real).nonzero(as_tuple=True)
        if not len(texts):
            return told.sum() * 0.0
        drawn = torch.randperm(len(texts), generator=by)[: len(told)]
        local, whole = vectors[texts[drawn], places[drawn]], told[texts[drawn]]
        number = len(drawn)
        pairs = torch.cat([local.repeat(number, 1), whole.repeat_interleave(number, dim=0)], dim=1)
        scores = self.scored(pairs).view(number, number)
        return scores.diagonal().mean() - (scores.logsumexp(dim=1).mean() - math.log(number))

    def anchored(self, gradient: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Words whose gradient is neither among the smallest nor among the greatest of their text."""
        import torch

        size = torch.linalg.vector_norm(gradient, dim=-1).masked_fill(~real, float("inf"))
        rank = size.argsort(dim=1, stable=True).argsort(dim=1)
        number = real.sum(dim=1, keepdim=True)
        anchored: torch.Tensor = (
            (rank >= (number * self.keys.low).ceil()) & (rank < (number * self.keys.high).ceil()) & real
        )
        return anchored

    def scored(self, pairs: torch.Tensor) -> torch.Tensor:
        import torch
        from torch.nn import functional

        scorer = self.scorer
        inner = torch.relu(functional.linear(pairs, scorer["inner.weight"], scorer["inner.bias"]))
        return functional.softplus(functional.linear(inner, scorer["outer.weight"], scorer["outer.bias"]))
