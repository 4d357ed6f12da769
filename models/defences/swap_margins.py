"""Training for certificates: IBP and CROWN-IBP over synonym boxes, and a hinge on bounds by numbers of swaps.

margin_j = z_y - z_j for the right class y and another class j; a text is robust where no margin sinks to 0.
Bounds are of the network without dropout and noise. They are float32 numbers for training: nothing is certified here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..architectures.architecture_table import ARCHITECTURES, name_of
from ..architectures.network_shape import PAD, Body, Box, Changes, Moved, embedded, features, without_padding
from .near_words import NearWords
from .smooth_contract import Held, averaging
from .training_rule import Learner, Setting, TrainingRule, cross_entropy, descend

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Certified(NearWords):
    """Keys of all three: loss = (1 - kappa) * cross entropy + kappa * certified loss; kappa and the size of swaps rise
    from 0, to `kappa` and to 1, in the first `rising` share of the epochs."""

    kappa: float = 0.8
    rising: float = 0.8

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (0 <= self.kappa <= 1, "kappa must be between 0 and 1"),
            (0 < self.rising <= 1, "rising must be a share above 0"),
        )


def named(suits: Callable[[type[Body]], bool]) -> str:
    names = [name for name, kind in ARCHITECTURES.items() if suits(kind)]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def needs_boxes(body: Body) -> tuple[bool, str]:
    return (
        body.has_boxes,
        f"ibp, crown-ibp and smooth-ibp need interval bounds, and {name_of(body)!r} has none; "
        f"{named(lambda kind: kind.has_boxes)} do",
    )


@dataclass(frozen=True)
class Ibp(Certified):
    """IBP (Jia et al. 2019; Huang et al. 2019): cross entropy of the worst margins that intervals allow, each word
    anywhere in the box around its synonyms' vectors, all words at once.

    Paper: kappa to 0.8 and box size to 1, linearly by epoch, the last epoch in full; here by step, in full from
    `rising`. The code bounds both logits and takes the greater loss; here differences of logits are bounded, which is
    tighter. It freezes GloVe behind a linear ReLU layer; here vectors are learned, as in the other recipes.
    """

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (*super().rules(body), needs_boxes(body))

    def start(self, setting: Setting) -> TrainingRule:
        return Boxed(self, self.near(setting), Held(None, 0, (), math.inf), crown=False)


@dataclass(frozen=True)
class SmoothIbp(Ibp):
    """Ours: IBP on embeddings that are averaged over synonyms `rounds` times, and with `l1` > 0 on recurrent matrices
    held as by `contract` (see smooth_contract.py). Averaging makes the boxes small before IBP has to.
    """

    rounds: int = 2
    l1: float = 0.0

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (1 <= self.rounds <= 100, "rounds must be between 1 and 100"),
            (math.isfinite(self.l1) and self.l1 >= 0, "l1 must be at least 0"),
            (not self.l1 or bool(body.state_matrices), f"l1 is for recurrent networks, not for {name_of(body)!r}"),
        )

    def start(self, setting: Setting) -> TrainingRule:
        mean = averaging(setting.words, setting.folder / self.synonyms)
        matrices = setting.shape.body.state_matrices if self.l1 else ()
        return Boxed(self, self.near(setting), Held(mean, self.rounds, matrices, self.l1), crown=False)


@dataclass(frozen=True)
class CrownIbp(Certified):
    """CROWN-IBP (Zhang et al. 2020) on the same boxes: margins by linear bounds through the fully connected layers down
    to intervals of their inputs, mixed with IBP's: share 1 at first, 0 when the rise ends, as in the paper.

    The paper goes down to the input. Of `mmws` and `mean` that is the same; of others intervals end at the features.
    """

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (*super().rules(body), needs_boxes(body))

    def start(self, setting: Setting) -> TrainingRule:
        return Boxed(self, self.near(setting), Held(None, 0, (), math.inf), crown=True)


@dataclass(frozen=True)
class SwapHinge(Certified):
    """Ours: sum over k = 1 .. `swaps` of max(0, `margin` - b_k) / swaps, b_k a lower bound of the least margin over all
    sentences with at most k swaps: a linear bound whose minimum over k swaps is a selection of the k best.

    The bounds are those that the exact engine prunes with, so what is learned is what it proves. `rounds` of averaging
    over synonyms (see smooth_contract.py) can go with it; 0 for none. For networks where swaps add up.
    """

    swaps: int = 3
    margin: float = 1.0
    rounds: int = 0

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            *super().rules(body),
            (1 <= self.swaps <= 100, "swaps must be between 1 and 100"),
            (math.isfinite(self.margin) and self.margin >= 0, "margin must be >= 0"),
            (0 <= self.rounds <= 100, "rounds must be between 0 and 100"),
            (
                body.adds_up,
                f"swap-hinge needs swaps that add up, as in {named(lambda kind: kind.adds_up)}; in {name_of(body)!r} "
                "they do not",
            ),
        )

    def start(self, setting: Setting) -> TrainingRule:
        mean = averaging(setting.words, setting.folder / self.synonyms) if self.rounds else None
        return Hinged(self, self.near(setting), Held(mean, self.rounds, (), math.inf))


def risen(keys: Certified, done: float) -> float:
    return min(1.0, done / keys.rising)


@dataclass(frozen=True)
class Boxed(TrainingRule):
    keys: Certified
    near: torch.Tensor
    held: Held
    crown: bool

    def table(self, embedding: torch.Tensor) -> torch.Tensor:
        return self.held.table(embedding)

    def hold(self, weights: dict[str, torch.Tensor]) -> None:
        self.held.hold(weights)

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        rise = risen(self.keys, done)
        kappa = self.keys.kappa * rise
        clean = network.loss(tokens, labels)
        if kappa == 0.0:
            return descend(clean)
        tokens = without_padding(network.shape, tokens)
        box = network.shape.body.box(network.weights, *word_boxes(network, self.near[tokens], rise), tokens != PAD)
        if box is None:
            raise NotImplementedError(f"{name_of(network.shape.body)} has no boxes")
        margins = interval_margins(network, box, labels)
        if self.crown and rise < 1.0:
            margins = (1 - rise) * crown_margins(network, box, labels) + rise * margins
        return descend((1 - kappa) * clean + kappa * cross_entropy(-margins, labels))


def word_boxes(network: Learner, near: torch.Tensor, size: float) -> Box:
    """Ends [batch, length, embedding] of the vectors of every word and its synonyms, moved to the word by `size`."""
    vectors = embedded({"embedding": network.table}, near)
    own = vectors[:, :, 0]
    low, high = vectors.amin(dim=2), vectors.amax(dim=2)
    return own + size * (low - own), own + size * (high - own)


def dense(network: Learner, labels: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Matrix and bias of every fully connected layer; in place of the logits the margins, [batch, classes, ...]."""
    found = [(network.weights[f"{name}.weight"], network.weights[f"{name}.bias"]) for name, _, _ in network.shape.dense]
    weight, bias = found.pop()
    return [*found, (weight[labels].unsqueeze(1) - weight, bias[labels].unsqueeze(1) - bias)]


def interval_margins(network: Learner, box: Box, labels: torch.Tensor) -> torch.Tensor:
    """Lower bounds [batch, classes] of the margins; 0 for the right class itself."""
    layers = dense(network, labels)
    for weight, bias in layers[:-1]:
        low, high = dense_box(weight, bias, box)
        box = low.clamp(min=0.0), high.clamp(min=0.0)
    weight, bias = layers[-1]
    return (weight * midpoint(box).unsqueeze(1)).sum(dim=-1) + bias - (weight.abs() * radius(box).unsqueeze(1)).sum(-1)


def dense_box(weight: torch.Tensor, bias: torch.Tensor, box: Box) -> Box:
    middle, reach = midpoint(box) @ weight.T + bias, radius(box) @ weight.abs().T
    return middle - reach, middle + reach


def midpoint(box: Box) -> torch.Tensor:
    return (box[0] + box[1]) / 2


def radius(box: Box) -> torch.Tensor:
    return (box[1] - box[0]) / 2


def crown_margins(network: Learner, box: Box, labels: torch.Tensor) -> torch.Tensor:
    """The same by one linear bound down to the features, each ReLU between the bounds that intervals give."""
    layers = dense(network, labels)
    bounds, inside = [], box
    for weight, bias in layers[:-1]:
        bounds.append(dense_box(weight, bias, inside))
        inside = bounds[-1][0].clamp(min=0.0), bounds[-1][1].clamp(min=0.0)
    row, constant = backward(layers, bounds)
    return (row * midpoint(box).unsqueeze(1)).sum(dim=-1) + constant - (row.abs() * radius(box).unsqueeze(1)).sum(-1)


def backward(
    layers: Sequence[tuple[torch.Tensor, torch.Tensor]], bounds: Sequence[Box]
) -> tuple[torch.Tensor, torch.Tensor]:
    """(A, c), [batch, rows, features] and [batch, rows]: A x + c is at most the last of these layers at features x, if
    what the ReLUs between them read lies within `bounds`.

    relu(z) >= s z with s in {0, 1}, 1 where high > -low; relu(z) <= high (z - low) / (high - low) where low < 0 < high.
    """
    import torch

    row, constant = layers[-1]
    if bounds and row.dim() == 2:
        row = row.unsqueeze(0)
    for (weight, bias), (low, high) in zip(reversed(layers[:-1]), reversed(bounds), strict=True):
        below = (high > -low).to(row.dtype)
        below = torch.where(low >= 0, 1.0, torch.where(high <= 0, 0.0, below))
        chord = high.clamp(min=0.0) / (high.clamp(min=0.0) - low.clamp(max=0.0)).clamp(min=1e-12)
        chord = torch.where(low >= 0, 1.0, chord)
        up, down = row.clamp(min=0.0), row.clamp(max=0.0)
        constant = constant + (down * (-chord * low.clamp(max=0.0)).unsqueeze(1)).sum(dim=-1)
        row = up * below.unsqueeze(1) + down * chord.unsqueeze(1)
        constant = constant + row @ bias
        row = row @ weight
    return row, constant


@dataclass(frozen=True)
class Hinged(TrainingRule):
    keys: SwapHinge
    near: torch.Tensor
    held: Held

    def table(self, embedding: torch.Tensor) -> torch.Tensor:
        return self.held.table(embedding)

    def learn(self, network: Learner, tokens: torch.Tensor, labels: torch.Tensor, done: float) -> float:
        rise = risen(self.keys, done)
        kappa = self.keys.kappa * rise
        clean = network.loss(tokens, labels)
        if kappa == 0.0:
            return descend(clean)
        bounds = margins_by_swaps(network, self.near, tokens, labels, self.keys.swaps, rise)
        hinge = (self.keys.margin - bounds).clamp(min=0.0).mean()
        return descend((1 - kappa) * clean + kappa * hinge)


def margins_by_swaps(
    network: Learner, near: torch.Tensor, tokens: torch.Tensor, labels: torch.Tensor, swaps: int, size: float = 1.0
) -> torch.Tensor:
    """Lower bounds [batch, swaps] of the least margin over every other class with at most 1 .. swaps swaps.

    Every layer's bounds are made by going back to the features; those of each number of swaps apart.
    """
    import torch

    shape, weights = network.shape, network.weights
    tokens = without_padding(shape, tokens)
    vectors = network.vectors(tokens)
    told = features(shape, weights, vectors, tokens != PAD)
    moved = shape.body.moved(weights, vectors, changes_of(network, near, tokens, vectors, size))
    if moved is None:
        raise NotImplementedError(f"swaps do not add up in {name_of(shape.body)}")
    layers = dense(network, labels)
    classes = torch.arange(shape.classes)
    first = first_bounds(moved, told, *layers[0], swaps) if len(layers) > 1 else []
    found = []
    for number in range(1, swaps + 1):
        bounds: list[Box] = [first[number - 1]] if first else []
        for depth in range(1, len(layers) - 1):
            weight, bias = layers[depth]
            low = least(moved, told, *backward([*layers[:depth], (weight, bias)], bounds), number)
            high = -least(moved, told, *backward([*layers[:depth], (-weight, -bias)], bounds), number)
            bounds.append((low, high))
        margins = least(moved, told, *backward(layers, bounds), number)
        found.append(margins.masked_fill(classes == labels.unsqueeze(1), float("inf")).amin(dim=1))
    return torch.stack(found, dim=1)


def first_bounds(moved: Moved, told: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, swaps: int) -> list[Box]:
    """Of the first layer, for each number of swaps: both ends from one list of moves."""
    low, high = moved(weight)
    here = told @ weight.T + bias
    down, up = sums_of_least(low.amin(dim=2), swaps), sums_of_least(-high.amax(dim=2), swaps)
    return [(here + down[:, number], here - up[:, number]) for number in range(swaps)]


def sums_of_least(moves: torch.Tensor, most: int) -> torch.Tensor:
    """[batch, most, rows]: of moves [batch, places, rows] the sum of the least 1 .. most that are below 0."""
    from torch.nn import functional

    count = min(most, moves.shape[1])
    best = moves.clamp(max=0.0).topk(count, dim=1, largest=False).values.cumsum(dim=1)
    return functional.pad(best, (0, 0, 0, most - count), mode="replicate") if count < most else best


def changes_of(
    network: Learner, near: torch.Tensor, tokens: torch.Tensor, vectors: torch.Tensor, size: float
) -> Changes:
    """The swaps of a batch, words without one left out: as many places as the text with most swappable words has."""
    import torch

    others = near[tokens]
    swappable = (others != others[..., :1]).any(dim=-1)
    most = max(1, int(swappable.sum(dim=1).max()))
    places = swappable.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
    chosen = others.gather(1, places.unsqueeze(-1).expand(-1, -1, others.shape[-1]))
    own = vectors.gather(1, places.unsqueeze(-1).expand(-1, -1, vectors.shape[-1]))
    moves = size * (embedded({"embedding": network.table}, chosen[..., 1:]) - own.unsqueeze(2))
    return Changes(places, moves)


def least(moved: Moved, told: torch.Tensor, row: torch.Tensor, constant: torch.Tensor, swaps: int) -> torch.Tensor:
    """[batch, rows]: the least of row @ features + constant with at most so many swaps: the best of every place, and of
    those the `swaps` greatest, where they lower it."""
    shared = row if row.dim() == 2 or len(row) > 1 else row[0]
    here = told @ shared.T if shared.dim() == 2 else (shared * told.unsqueeze(1)).sum(dim=-1)
    return here + constant + sums_of_least(moved(shared)[0].amin(dim=2), swaps)[:, -1]
