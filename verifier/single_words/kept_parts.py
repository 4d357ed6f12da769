"""Parts of A[text, word] in the store of a run, so that a killed run goes on where it was."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runs.store import Store


@dataclass(frozen=True, eq=False)
class MatrixPart:
    """Rows of A, what of them is not known, and anything else worth keeping: counts, CPU seconds."""

    flipped: NDArray[np.bool_]
    unknown: NDArray[np.bool_] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """The parts found in one way, which `stage` names with everything that they depend on beside the run's inputs."""

    store: Store
    stage: str

    def numbers(self) -> set[int]:
        return {number for number, _ in self.store.finished(self.stage)}

    def get(self, number: int) -> MatrixPart:
        line = json.loads(self.store.line(self.stage, number))
        unknown = line["unknown"]
        return MatrixPart(
            unpacked(line["flipped"], line["shape"]),
            None if unknown is None else unpacked(unknown, line["shape"]),
            line["about"],
        )

    def put(self, number: int, part: MatrixPart) -> None:
        line = {
            "shape": part.flipped.shape,
            "flipped": packed(part.flipped),
            "unknown": None if part.unknown is None or not part.unknown.any() else packed(part.unknown),
            "about": part.about,
        }
        self.store.put(self.stage, number, json.dumps(line), None)


def packed(array: NDArray[np.bool_]) -> str:
    return base64.b64encode(zlib.compress(np.packbits(array).tobytes(), 1)).decode()


def unpacked(text: str, shape: tuple[int, int]) -> NDArray[np.bool_]:
    bits = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    return np.unpackbits(bits, count=shape[0] * shape[1]).astype(bool).reshape(shape)
