"""ADA in every epoch: adversarial examples of the network as it is, found while it learns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..architectures.network_shape import PAD, Body, Noise, without_padding
from .near_words import NearWords
from .training_rule import Learner, Setting, TrainingRule, descend

if TYPE_CHECKING:
    import torch

AT_ONCE = 1024
"""Sentences asked about at a time."""


@dataclass(frozen=True)
class AdaLive(NearWords):
    """The share `texts` of every batch is attacked by the network as it is; what fools it is learned from beside the
    batch, as if the batch were so much longer.

    The attack is greedy: of all single swaps the one that raises the loss most, again and again, until the class
    changes or the share `words` of the words is swapped (at least one). The MMWS paper augments "in each training loop"
    and does not say by how many; TextDefender attacks half of the texts before each epoch; here a tenth of each batch.
    """

    texts: float = 0.1
    words: float = 0.2

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (0 < self.texts <= 1 and 0 < self.words <= 1, "texts and words must be shares above 0"),
        )

    def start(self, setting: Setting) -> TrainingRule:
        return Live(self, self.near(setting))


@dataclass(frozen=True)
class Live(TrainingRule):
    keys: AdaLive
    near: torch.Tensor

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch

        number = max(1, round(len(tokens) * self.keys.texts))
        chosen = torch.randperm(len(tokens), generator=network.generator)[:number]
        found, broken = self.attacked(network, tokens[chosen], labels[chosen])
        return descend(network.loss(torch.cat([tokens, found[broken]]), torch.cat([labels, labels[chosen][broken]])))

    def attacked(
        self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sentences, and which of them the network answers wrongly though it answers their text rightly."""
        import torch

        quiet = replace(network, noise=Noise(0.0, 0.0, network.generator))
        near, words = self.near[tokens], network.is_word(tokens)
        most = (words.sum(dim=1) * self.keys.words).ceil().long().clamp(min=1)
        sentences = tokens.clone()
        loss, right = losses(quiet, tokens, labels)
        searching, open_places = right.clone(), words.clone()
        broken = torch.zeros_like(right)
        for swap in range(int(most.max())):
            active = searching & (swap < most)
            free = active[:, None, None] & open_places[:, :, None] & (near != tokens[:, :, None])
            texts, places, which = free.nonzero(as_tuple=True)
            if not len(texts):
                break
            tried = sentences[texts]
            tried[torch.arange(len(texts)), places] = near[texts, places, which]
            gained, still_right = losses(quiet, tried, labels[texts])
            for text in sorted(set(texts.tolist())):
                own = (texts == text).nonzero(as_tuple=True)[0]
                best = own[gained[own].argmax()]
                if gained[best] <= loss[text]:
                    searching[text] = False
                    continue
                sentences[text], loss[text] = tried[best], gained[best]
                open_places[text, places[best]] = False
                broken[text] = ~still_right[best]
                searching[text] = still_right[best]
        return sentences, broken


def losses(network: Learner, tokens: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each sentence: its cross entropy, and whether it is answered rightly."""
    import torch

    found, right = [], []
    with torch.no_grad():
        for some, wanted in zip(torch.split(tokens, AT_ONCE), torch.split(labels, AT_ONCE), strict=True):
            read = without_padding(network.shape, some)
            logits = network.logits(network.vectors(read), read != PAD)
            found.append(torch.nn.functional.cross_entropy(logits, wanted, reduction="none"))
            right.append(logits.argmax(dim=1) == wanted)
    return torch.cat(found), torch.cat(right)
