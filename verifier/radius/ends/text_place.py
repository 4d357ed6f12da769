"""One text as a point: the vectors of its words, the network behind them, and what onnxruntime answers near it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Disagreement
from swapproof.encodings.network import Floats, Indices

if TYPE_CHECKING:
    from ...tasks.inputs import Text
    from ..radius_setting import RadiusQuestion, RadiusSetting, Rooms

Array = NDArray[Any]
AGREEING = 1e-3


@dataclass(eq=False)
class TextPlace:
    """What is asked of a text, and where it stands."""

    setting: RadiusSetting
    question: RadiusQuestion
    text: Text
    widths: Floats
    diameter: float
    until: float
    evaluations: int = 0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        self.room: Rooms = self.setting.room(self.text.encoded.tokens)
        self.center = self.setting.center(self.text)
        self.exact_center: Floats = self.center.astype(np.float64)
        self.values = self.room.plain.values(self.exact_center)
        outputs = self.answers(self.exact_center[None])
        logits = self.values[self.room.plain.logits]
        apart = np.abs(outputs[0].astype(np.float64) - logits).max()
        if not apart <= AGREEING * (1.0 + np.abs(logits).max()):
            raise Disagreement(f"onnxruntime and the network as it was read differ by {apart:.3g} on a text")
        self.predicted = int(classes_of(outputs, self.setting.labels)[0])

    def answers(self, points: Floats) -> Array:
        self.evaluations += len(points)
        return self.room.behind.answers(points)

    def free_of(self, words: Sequence[int]) -> Indices:
        """The inputs that are the vectors of these words."""
        width, places = self.setting.vectors.shape[1], self.places
        tokens = [t for word in words for t in range(places[word][0], sum(places[word]))]
        return np.array([width * token + d for token in sorted(tokens) for d in range(width)], dtype=np.int64)

    @property
    def far(self) -> float:
        """How far is looked for what changes the class: the diameter, or a unit where all words have one vector."""
        return self.diameter or 1.0

    @property
    def places(self) -> list[tuple[int, int]]:
        """First token and number of tokens, of every word; with padding, of every padded place after the words."""
        own = list(self.text.encoded.places)
        if self.question.padding:
            taken = {t for first, count in own for t in range(first, first + count)}
            own += [(t, 1) for t in range(len(self.text.encoded.tokens)) if t not in taken]
        return own

    def name(self, word: int) -> str:
        words = self.text.encoded.words
        return words[word] if word < len(words) else "<padding>"

    def breaks(self, free: Indices, point: Floats) -> bool:
        """Whether onnxruntime answers with another class there."""
        whole = self.exact_center.copy()
        whole[free] = point
        return int(classes_of(self.answers(whole[None]), self.setting.labels)[0]) not in (self.text.label, -1)

    def stands_for(self, free: Indices, swaps: Mapping[int, int]) -> bool:
        """Whether the model computes the same beside the embedding with these tokens in these places."""
        cutter = self.setting.cutter
        if cutter is None or not cutter.fixed:
            return True
        tokens = list(self.text.encoded.tokens)
        for place, token in swaps.items():
            tokens[place] = token
        return cutter.named(tokens) == self.room.behind.model.path.name


def upwards(distance: float) -> float:
    """A little more than any rounding of a distance amounts to."""
    return distance if not math.isfinite(distance) else float(np.nextafter(distance * (1 + 2.0**-40), np.inf))


def classes_of(outputs: Array, labels: int) -> Array:
    """[n]: the argmax over the first so many outputs, the lowest index among equals; -1 where one is no number."""
    own = outputs[:, :labels]
    return np.where(np.isnan(own).any(axis=1), -1, own.argmax(axis=1))
