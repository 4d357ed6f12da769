"""A model whose network cannot be read: tried through onnxruntime before it is sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.onnx_reading import Model

from ...ladder.replay import DEPENDENCE, Replay, batch_dependence
from ...tasks.inputs import Inputs

TRIED = 8
"""Texts of one length that are answered alone and together."""
SCATTER = 1e-3
"""How far, relative to the greatest output, the same sentence's outputs may be apart in two batches: there is no
bound on the rounding of a network that was not read, and float32 sums of thousands of terms stay well below."""
JUDGED = ": every sample was judged by onnxruntime"
ALONE = "; so every sentence was answered alone"


@dataclass(frozen=True)
class BlackBox:
    """What a run says of such a model in place of a trial."""

    model: Model
    reason: str
    batch_dependence: str | None

    @property
    def remarks(self) -> tuple[str, ...]:
        found = f"the network cannot be read ({self.reason}){JUDGED}"
        if self.batch_dependence is None:
            return (found,)
        return (found, f"{self.batch_dependence}{ALONE}")

    def facts(self) -> dict[str, str | int]:
        return {"file": self.model.path.name, "opset": self.model.opset}


def are_of_black_box(remarks: Sequence[str]) -> bool:
    """Whether a run may say so of such a model; why it cannot be read is in the words of whoever tried."""
    first, *others = remarks or [""]
    plain = first.startswith("the network cannot be read (") and first.endswith(f"){JUDGED}")
    return plain and len(others) < 2 and all(DEPENDENCE.fullmatch(other.removesuffix(ALONE)) for other in others)


def black_box(model: Model, reason: str, inputs: Inputs) -> BlackBox:
    """Raises BadInput unless it answers some of the texts as a classifier of their classes does."""
    if not inputs.texts:
        raise BadInput(f"{model.named}: no text to try it on")
    first = inputs.texts[0].frozen.space
    replay = Replay.open(model).of(first)
    spaces = [text.frozen.space for text in inputs.texts if text.frozen.space.frame == first.frame]
    tokens = np.array([space.original for space in spaces[:TRIED]], dtype=np.int64)
    answers = replay.outputs(tokens)
    if answers.shape != (len(tokens), len(inputs.labels)):
        raise BadInput(
            f"{model.named}: answers {list(answers.shape)} for {len(tokens)} texts; a classifier of "
            f"{', '.join(inputs.labels)} answers {[len(tokens), len(inputs.labels)]}"
        )
    scale = float(np.abs(np.nan_to_num(answers.astype(np.float64))).max())
    return BlackBox(model, reason, batch_dependence(replay, tokens, np.full(answers.shape, SCATTER * scale)))
