"""Whether an exported model answers what the model it was made from answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Disagreement

# Two libraries sum in different orders; float32 sums of a few hundred terms differ by some 1e-6 of their size.
ROUNDING = 1e-4


@dataclass(frozen=True)
class Agreement:
    """How far two evaluations of the same sentences lie apart."""

    sentences: int
    largest_difference: float
    changed: int
    """Answers that differ: the scores that decide lie closer together than the evaluations do."""


def agreement(exported: NDArray[Any], original: NDArray[Any], *, multi_label: bool = False) -> Agreement:
    """Of scores [sentences, classes]; raises Disagreement if they differ by more than rounding, or one is no number.

    The answer is the argmax; of several labels, or of a single score, which of them are positive.
    """
    if exported.shape != original.shape:
        raise Disagreement(f"the exported model answers {list(exported.shape)}, the original {list(original.shape)}")
    if not original.size:
        return Agreement(0, 0.0, 0)
    if not (np.isfinite(exported).all() and np.isfinite(original).all()):
        who = "exported model" if np.isfinite(original).all() else "original"
        raise Disagreement(f"the {who} answers nan or infinity where a score is needed")
    largest = float(np.abs(exported.astype(np.float64) - original.astype(np.float64)).max())
    size = max(1.0, float(np.abs(original).max()))
    if largest > ROUNDING * size:
        raise Disagreement(f"the exported model differs from the original by {largest:g} on scores of size {size:g}")
    if multi_label or original.shape[1] == 1:
        changed = ((exported > 0) != (original > 0)).any(axis=1)
    else:
        changed = exported.argmax(axis=1) != original.argmax(axis=1)
    return Agreement(len(original), largest, int(changed.sum()))
