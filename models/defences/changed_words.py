"""Training on texts with other words: Rand, SP-Defense, A2T, and the noise that RanMASK and SAFER are smoothed with.

Words are those of the vocabulary but padding and the unknown word; of word pieces those of letters alone. Padding and
special tokens never move.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..architectures.architecture_table import name_of
from ..architectures.network_shape import PAD, UNKNOWN, Body, Shape, without_padding
from .near_words import NearWords
from .synonym_hull import present
from .training_rule import Defence, Learner, Setting, TrainingRule, cross_entropy, descend

if TYPE_CHECKING:
    import torch

HIDDEN = "xunkx"
"""Read as an unknown word where marks are words of their own."""
AT_ONCE = 16
"""Texts whose every word is compared with the whole vocabulary at a time."""


@dataclass(frozen=True)
class Tuned(Defence):
    """A defence that goes on from a trained network: the first share `clean` of the epochs is learned without it."""

    clean: float = 0.5

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return ((0 <= self.clean < 1, "clean must be in [0, 1)"),)


@dataclass(frozen=True)
class Rand(Tuned):
    """Rand (baseline of the SP paper): in every step, one random word of every text becomes a random word.

    The paper goes on from a trained network for 20,000 more batches; here for the rest of the epochs.
    """

    def start(self, setting: Setting) -> TrainingRule:
        return RandomWords(self.clean, choices_of(setting))


@dataclass(frozen=True)
class SpDefence(Tuned):
    """SP-Defense (Xu et al.): of every batch, half of the texts get the swap of one word for any word of V that to
    first order lowers log f(y|x) most: min over i, w of <grad_i log f(y|x), e_w - e_i>; each other text stays, gets a
    random swap, or at a random place a random word of T(y), one of the three by chance.

    T(y) = words t with max over y' != y of log freq(t, y') - log freq(t, y) > `excess`, freq counted over training
    texts with that label. A word that no text of the class has counts as infinitely rarer there, as in the formula.
    The released code takes V from BERT's vocabulary, whole words of letters; here V is the vocabulary. The paper goes
    on from a trained network for 20,000 more batches; here for the rest of the epochs.
    """

    excess: float = 1.0

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (*super().rules(body), (math.isfinite(self.excess) and self.excess > 0, "excess must be above 0"))

    def start(self, setting: Setting) -> TrainingRule:
        choices = choices_of(setting)
        special = special_words(setting.tokens, setting.labels, setting.shape, self.excess, choices)
        return SingleWords(self.clean, choices, special)


@dataclass(frozen=True)
class A2t(NearWords):
    """A2T (Yoo and Qi 2021): of every batch, the share `texts` is attacked; its loss counts `alpha` beside the clean.

    Words are taken by the norm of the gradient at their vectors, at most the share `words` of them, each for the
    synonym that raises the loss most. Paper and code try synonyms by asking the network (at most 200 times, sentence
    similarity above 0.9), once an epoch for 20 % of the texts; here every batch is attacked with its own network, and
    synonyms are compared to first order, which asks nothing more. alpha = 1 and 10 % of the words are the paper's.
    """

    texts: float = 0.2
    words: float = 0.1
    alpha: float = 1.0

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (0 < self.texts <= 1 and 0 < self.words <= 1, "texts and words must be shares above 0"),
            (math.isfinite(self.alpha) and self.alpha >= 0, "alpha must be >= 0"),
        )

    def start(self, setting: Setting) -> TrainingRule:
        return Swapped(self, self.near(setting))


@dataclass(frozen=True)
class Masked(Defence):
    """What RanMASK (Zeng et al. 2021) trains: of every text the share `rate` of its words becomes the unknown word,
    drawn anew in every step; the rounded number, and at least two words stay, as in the code.

    Published rates are 0.9 (AG News, Defender paper) and 0.3 (IMDb). The classifier is the vote over masked texts:
    `[model] smoothed` of a task.
    """

    rate: float = 0.3

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return ((0 < self.rate < 1, "rate must be in (0, 1)"), smooths_words(body))

    def start(self, setting: Setting) -> TrainingRule:
        return RandomMasks(self.rate)

    def smoothing(self, split: str) -> dict[str, str | int | float]:
        return {"method": "ranmask", "rate": self.rate, "mask": "<unk>" if split == "whitespace" else HIDDEN}


@dataclass(frozen=True)
class Substituted(NearWords):
    """What SAFER (Ye et al. 2020) trains: every word of a text becomes one of itself and its synonyms, all alike, drawn
    anew in every step.

    Paper and code draw from counter-fitted neighbours within a distance, at most 100; here from the table. The
    classifier is the vote over such texts: `[model] smoothed` of a task.
    """

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (*super().rules(body), smooths_words(body))

    def start(self, setting: Setting) -> TrainingRule:
        return RandomSynonyms(self.near(setting))

    def smoothing(self, split: str) -> dict[str, str | int | float]:
        return {"method": "safer", "synonyms": "noise_synonyms.json", "max_per_word": self.max_per_word}


def smooths_words(body: Body) -> tuple[bool, str]:
    return body.package is None, f"{name_of(body)!r} reads pieces of words, and mask and substitute smooth whole words"


@dataclass(frozen=True)
class AfterClean(TrainingRule, ABC):
    """`choices`: the words that may come in."""

    clean: float
    choices: torch.Tensor

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        return descend(network.loss(tokens if done < self.clean else self.changed(network, tokens, labels), labels))

    @abstractmethod
    def changed(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The same texts with other words."""


@dataclass(frozen=True)
class RandomWords(AfterClean):
    def changed(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return with_words(tokens, random_places(network, tokens), drawn(self.choices, len(tokens), network))


def random_places(network: Learner, tokens: torch.Tensor) -> torch.Tensor:
    """[batch]: one word of every text; -1 of a text without words."""
    import torch

    real = network.is_word(tokens)
    places = torch.rand(tokens.shape, generator=network.generator).masked_fill(~real, -1.0).argmax(dim=1)
    return torch.where(real.any(dim=1), places, -1)


def choices_of(setting: Setting) -> torch.Tensor:
    """The words that may stand in place of another."""
    import torch

    if setting.shape.body.package is None:
        return torch.arange(UNKNOWN + 1, setting.shape.vocabulary)
    return torch.tensor([number for number, word in enumerate(setting.words) if word.isalpha()])


def drawn(choices: torch.Tensor, number: int, network: Learner) -> torch.Tensor:
    import torch

    return choices[torch.randint(len(choices), (number,), generator=network.generator)]


def with_words(tokens: torch.Tensor, places: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Each text with this word at this place, -1 for none."""
    changed = tokens.clone()
    texts = (places >= 0).nonzero(as_tuple=True)[0]
    changed[texts, places[texts]] = words[texts]
    return changed


@dataclass(frozen=True)
class SingleWords(AfterClean):
    """`special`: for each class its words T(y)."""

    special: tuple[torch.Tensor, ...]

    def changed(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        import torch

        tokens = without_padding(network.shape, tokens)
        half = len(tokens) // 2
        changed = tokens.clone()
        if half:
            changed[:half] = with_words(
                tokens[:half], *worst_swaps(network, tokens[:half], labels[:half], self.choices)
            )
        rest = tokens[half:]
        which = torch.randint(3, (len(rest),), generator=network.generator)
        places = torch.where(which > 0, random_places(network, rest), -1)
        words = drawn(self.choices, len(rest), network)
        for number, known in enumerate(self.special):
            of_class = (which == 2) & (labels[half:] == number)
            if len(known):
                words = torch.where(of_class, drawn(known, len(rest), network), words)
            else:
                places = torch.where(of_class, -1, places)
        changed[half:] = with_words(rest, places, words)
        return changed


def worst_swaps(
    network: Learner, tokens: torch.Tensor, labels: torch.Tensor, choices: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(place, word) [batch]: the least <gradient of log f(y|x) at i, e_w - e_i> over words i of the text and w of V."""
    import torch

    real, table = tokens != PAD, network.table.detach()[choices]
    vectors = network.vectors(tokens).detach().requires_grad_()
    loss = torch.nn.functional.cross_entropy(network.logits(vectors, real), labels, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, vectors)
    places, words = [], []
    for uphill, own, here in zip(
        *(torch.split(part, AT_ONCE) for part in (gradient, vectors.detach(), network.is_word(tokens))), strict=True
    ):
        # The gradient of the loss is minus that of log f(y|x): the greatest gain is sought.
        best, word = (uphill @ table.T).max(dim=-1)
        gain = (best - (uphill * own).sum(dim=-1)).masked_fill(~here, float("-inf"))
        place = gain.argmax(dim=1)
        places.append(torch.where(here.any(dim=1), place, -1))
        words.append(choices[word.gather(1, place[:, None])[:, 0]])
    return torch.cat(places), torch.cat(words)


def special_words(
    tokens: torch.Tensor, labels: torch.Tensor, shape: Shape, excess: float, choices: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """T(y) for each class; words that no other class has either are none."""
    import torch

    classes, vocabulary = shape.classes, shape.vocabulary
    counts = torch.stack(
        [torch.bincount(tokens[labels == number].flatten().long(), minlength=vocabulary) for number in range(classes)]
    )
    chosen = torch.zeros_like(counts)
    chosen[:, choices] = counts[:, choices]
    logs = chosen.double().log()
    found = []
    for number in range(classes):
        others = logs[torch.arange(classes) != number].amax(dim=0)
        found.append(((others > float("-inf")) & (others - logs[number] > excess)).nonzero(as_tuple=True)[0])
    return tuple(found)


@dataclass(frozen=True)
class Swapped(TrainingRule):
    keys: A2t
    near: torch.Tensor

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch

        number = max(1, round(len(tokens) * self.keys.texts))
        chosen = torch.randperm(len(tokens), generator=network.generator)[:number]
        attacked = self.attacked(network, tokens[chosen], labels[chosen])
        clean = network.loss(tokens, labels)
        return descend(clean + self.keys.alpha * network.loss(attacked, labels[chosen]))

    def attacked(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Words by the norm of their gradients, each for its best synonym, if to first order that raises the loss."""
        import torch

        real, near = tokens != PAD, self.near[tokens]
        vectors = network.vectors(tokens).detach().requires_grad_()
        loss = cross_entropy(network.logits(vectors, real), labels)
        (gradient,) = torch.autograd.grad(loss, vectors)
        moves = network.table.detach()[near] - vectors.detach().unsqueeze(2)
        gain, best = (moves * gradient.unsqueeze(2)).sum(dim=-1).max(dim=-1)
        movable = network.is_word(tokens) & (gain > 0)
        importance = gradient.norm(dim=-1).masked_fill(~movable, -1.0)
        most = (real.sum(dim=1) * self.keys.words).ceil().long().unsqueeze(1)
        rank = importance.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        swapped = near.gather(2, best.unsqueeze(2))[..., 0]
        return torch.where(movable & (rank < most), swapped, tokens)


@dataclass(frozen=True)
class RandomMasks(TrainingRule):
    rate: float

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        return descend(network.loss(masked(tokens, self.rate, network.generator), labels))


def masked(tokens: torch.Tensor, rate: float, by: torch.Generator) -> torch.Tensor:
    import torch

    real = tokens != PAD
    number = real.sum(dim=1)
    hidden = torch.minimum((number * rate).round(), number - FEWEST_KEPT).clamp(min=0).unsqueeze(1)
    rank = torch.rand(tokens.shape, generator=by).masked_fill(~real, 2.0).argsort(dim=1).argsort(dim=1)
    return torch.where((rank < hidden) & real, UNKNOWN, tokens)


FEWEST_KEPT = 2
"""Words of a text that stay, whatever the rate."""


@dataclass(frozen=True)
class RandomSynonyms(TrainingRule):
    near: torch.Tensor

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch

        near = self.near[tokens]
        drawn = torch.rand(near.shape, generator=network.generator).masked_fill(~present(near), -1.0).argmax(dim=-1)
        return descend(network.loss(near.gather(2, drawn.unsqueeze(2))[..., 0], labels))
