"""What is said of a smooth network before anything is proved: how fast its states widen, and of the machine's kernels.

Both are seen on one machine, and another may see them otherwise: nothing that is proved rests on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.errors import BadInput
from swapproof.encodings.network import Embedding, Network
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.space import SwapSpace
from swapproof.models.defences.state_growth import (
    DRAWN,
    FEWEST_WORDS,
    drawn_vectors,
    growth_of_layers,
    recurrent_cells,
    relative_swap_size,
    said_of,
)

from .kernels.kernel_table import Table, measured_kernels

RECURRENT = "recurrent: "
KERNELS = "level kernel: "
MEASURE = "`swapproof doctor --kernels` measures them"
UNMEASURED = f"the errors of this machine's elementary functions were not measured; {MEASURE}"
SEEN = re.compile(
    rf"{RECURRENT}growth per step [0-9.e+]+(, relative swap size [0-9.e+]+)?: [a-z ,:]+"
    rf"|{KERNELS}({re.escape(UNMEASURED)}.*|.* exceeds its stated bound.*)"
)
"""These remarks."""
ROOTS, ROOT = ("sqrt", "reciprocal"), 2.0**-23
"""How far these may be off, of their value (FORMAT.md, section 15.3)."""


def remarks_seen(model: Model, network: Network, spaces: Sequence[SwapSpace]) -> Iterator[str]:
    """Of a network that is read, for these texts."""
    if not network.is_smooth:
        return
    said = growth_seen(model, network, spaces)
    if said is not None:
        yield f"{RECURRENT}{said}"
    if canonical_of(network).float32:
        yield from kernels_seen()


def growth_seen(model: Model, network: Network, spaces: Sequence[SwapSpace]) -> str | None:
    """None of what is no stack of LSTM and GRU on one table of words."""
    cells = recurrent_cells(model.proto)
    tables = [node.layer.table for node in network.nodes if isinstance(node.layer, Embedding)]
    if not cells or len(tables) != 1:
        return None
    table = np.asarray(tables[0], dtype=np.float64)
    words = np.array([token for space in spaces for token in space.original][:DRAWN], dtype=np.int64)
    growth = growth_of_layers(cells, table[words] if len(words) >= FEWEST_WORDS else drawn_vectors(table))
    return None if growth is None else said_of(growth, swap_size(table, spaces))


def swap_size(table: NDArray[np.float64], spaces: Sequence[SwapSpace]) -> float | None:
    pairs = {(own[0], other) for space in spaces for own in space.choices for other in own[1:]}
    pairs = {(word, other) for word, other in pairs if table[word].any()}
    return relative_swap_size(table, np.array(sorted(pairs), dtype=np.int64)) if pairs else None


def kernels_seen() -> Iterator[str]:
    """What the machine's own table says against the bounds of this level."""
    try:
        table = measured_kernels()
    except BadInput as error:
        yield f"{KERNELS}{UNMEASURED} ({error})"
        return
    if table is None:
        yield f"{KERNELS}{UNMEASURED}"
        return
    for said in excesses(table):
        yield f"{KERNELS}{said}: proofs of this level do not speak of this runtime"


def excesses(table: Table) -> Iterator[str]:
    """The table's own bounds are those of the level, but for roots and reciprocals, which may err by more here."""
    for said in table.exceeding:
        one = table.functions.get(said.partition(" ")[0]) if said.startswith(ROOTS) else None
        if one is None or one.relative.value > ROOT:
            yield said
