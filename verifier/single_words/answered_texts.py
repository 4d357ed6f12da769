"""D+: the texts of a task that the model answers correctly, as single-word replacements need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from swapproof.encodings.network import Network
from swapproof.encodings.query import Query

from ..ladder.replay import Replay
from ..ladder.truth import beaten
from ..tasks.inputs import Text
from .replacements import positions_of
from .subject import Subject


@dataclass(frozen=True, eq=False)
class Answered:
    """D+, and what was left out of it; whether `ambiguous` texts belong to it is decided by rounding."""

    texts: tuple[Text, ...]
    already_wrong: int
    ambiguous: tuple[Text, ...] = ()

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return tuple(Subject(text.frozen.space.original, tuple(positions_of(text)), text.label) for text in self.texts)


def answered_over_reals(network: Callable[[int], Network], replay: Replay, texts: Sequence[Text]) -> Answered:
    """The gold class wins over the reals and in onnxruntime, whatever the rounding."""
    kept, wrong, ambiguous = [], 0, []
    for text in texts:
        original = text.frozen.space.original
        beats, agreed = beaten(Query.of(network(len(original)), text.frozen.space, text.label), original)
        if not agreed:
            ambiguous.append(text)
        elif beats or not right(replay, text):
            wrong += 1
        else:
            kept.append(text)
    return Answered(tuple(kept), wrong, tuple(ambiguous))


def answered_deployed(replay: Replay, texts: Sequence[Text]) -> Answered:
    """The gold class wins in onnxruntime."""
    kept = tuple(text for text in texts if right(replay, text))
    return Answered(kept, len(texts) - len(kept))


def right(replay: Replay, text: Text) -> bool:
    return int(replay.answers(np.array([text.frozen.space.original], dtype=np.int64))[0]) == text.label
