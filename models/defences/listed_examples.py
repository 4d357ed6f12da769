"""Training on adversarial examples from a file: ADA, MixADA, and the MMWS paper's training on minimal examples.

The file is `results.jsonl` of a run of `attack` or `certify` on training texts, or any JSON lines of
{"text": ..., "label": ..., "witness": {"swaps": [{"position": ..., "to": ...}]}}: the text with these words swapped,
and the label that is right. Lines without a witness are left out. With `attack --method textfooler` it is the paper's
baseline, with `certify` its training on minimal examples.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..architectures.network_shape import PAD, Body, without_padding
from ..errors import BadInput, unreadable
from .training_rule import Defence, Learner, Setting, TrainingRule, cross_entropy, descend

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Ada(Defence):
    """ADA: the listed examples are learned from beside the training texts, each `times` times an epoch.

    TextDefender makes a data set of which half (`aug_ratio` 0.5) is attacked by one attack and learns from both halves;
    the MMWS paper augments in each training loop and does not say by how many. Here the file says how many.
    """

    examples: str
    times: int = 1

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return ((1 <= self.times <= 1000, "times must be between 1 and 1000"),)

    def start(self, setting: Setting) -> TrainingRule:
        return TrainingRule()

    def more_texts(self, setting: Setting) -> tuple[torch.Tensor, torch.Tensor] | None:
        tokens, labels = listed(setting, setting.folder / self.examples)
        return tokens.repeat(self.times, 1), labels.repeat(self.times)


@dataclass(frozen=True)
class MixAda(Ada):
    """MixADA (Si et al. 2021): ADA, and the loss of mixtures: (1 - mix) * cross entropy + mix * KL(mixed labels || f).

    A mixture of a text with another one of the batch is l a + (1 - l) b, of vectors and of labels, l ~ Beta(alpha,
    alpha) drawn for the batch. The paper mixes BERT's hidden states (layers 7, 9, 12), here word vectors are mixed. The
    released default weighs mixtures with 0 (gamma 1.0), which is ADA; here with 0.5.
    """

    alpha: float = 2.0
    mix: float = 0.5

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (math.isfinite(self.alpha) and self.alpha > 0, "alpha must be above 0"),
            (0 <= self.mix <= 1, "mix must be between 0 and 1"),
        )

    def start(self, setting: Setting) -> TrainingRule:
        return Mixing(self)


@dataclass(frozen=True)
class Mixing(TrainingRule):
    keys: MixAda

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        import torch
        from torch.nn import functional

        tokens = without_padding(network.shape, tokens)
        vectors, real = network.vectors(tokens), tokens != PAD
        clean = cross_entropy(network.logits(vectors, real), labels)
        other = torch.randperm(len(tokens), generator=network.generator)
        gammas = torch._standard_gamma(torch.full((2,), self.keys.alpha), generator=network.generator)
        share = gammas[0] / gammas.sum()
        right = functional.one_hot(labels, network.shape.classes).float()
        mixed = network.logits(share * vectors + (1 - share) * vectors[other], real | real[other])
        wanted = share * right + (1 - share) * right[other]
        apart = functional.kl_div(torch.log_softmax(mixed, dim=1), wanted, reduction="batchmean")
        return descend((1 - self.keys.mix) * clean + self.keys.mix * apart)


def listed(setting: Setting, path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [examples, length] and labels of the examples in a file."""
    import torch

    length = setting.tokens.shape[1]
    rows, labels = [], []
    for where, line in lines_of(path):
        try:
            label = line["label"]
            number = label if type(label) is int else list(setting.labels_by_name).index(label)
            if not 0 <= number < setting.shape.classes:
                raise ValueError("no such class")
            if line.get("witness") is None or not line["witness"]["swaps"]:
                continue
            tokens = setting.read(swapped(line["text"], line["witness"]["swaps"], setting))[:length]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(
                f'{where}: no example, which is {{"text", "label", "witness": {{"swaps": [...]}}}} with a label of '
                f"this recipe ({type(error).__name__}: {error})"
            ) from None
        rows.append([*tokens, *[PAD] * (length - len(tokens))])
        labels.append(number)
    if not rows:
        raise BadInput(f"{path}: no line has a witness with swaps; there is nothing to learn from")
    return torch.tensor(rows, dtype=torch.int32), torch.tensor(labels, dtype=torch.int64)


def lines_of(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        found = json.loads(line)
                    except ValueError:
                        raise BadInput(
                            f"{path} line {number}: not JSON; a line is an object with its example"
                        ) from None
                    yield f"{path} line {number}", found
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8") from None
    except OSError as error:
        raise unreadable(path, error) from error


def swapped(text: str, swaps: list[Mapping[str, Any]], setting: Setting) -> str:
    """The text with the words at these positions replaced."""
    spans = setting.spans(text)
    pieces, end = [], 0
    for swap in sorted(swaps, key=lambda one: int(one["position"])):
        position = swap["position"]
        if type(position) is not int or not 0 <= position < len(spans):
            raise ValueError(f"position {position} of a text of {len(spans)} words")
        start, stop = spans[position]
        pieces += [text[end:start], str(swap["to"])]
        end = stop
    return "".join([*pieces, text[end:]])
