"""A step of an LSTM in ends: what `Ends` and `KernelEnds` say of its pieces one by one, at once.

Every end is moved outwards by no less than there, and by hardly more. Arrays are [rows, 2 or 3, size].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from ..regions.arithmetic import ABSOLUTE, FUNCTION, HALF, MORE, SHARE, Ends, KernelEnds
from .lstm_steps import Cell

Array = NDArray[Any]


def lstm_step(arithmetic: Ends, cell: Cell, rows: Array, memory: Array, roundings: Floats) -> tuple[Array, Array]:
    """The memory and the state, from the rows and the memory before; `roundings` are those of the memory."""
    kernel = isinstance(arithmetic, KernelEnds)
    gates = squashed(arithmetic.limited(rows)[:, :2], cell.gates, kernel, arithmetic.unit)
    size = cell.fresh.stop - cell.fresh.start
    kept, taken = np.empty((2, len(rows), 2, 2 * size))
    kept[..., :size], kept[..., size:] = gates[..., cell.forget], gates[..., cell.take]
    taken[..., :size], taken[..., size:] = memory[:, :2], gates[..., cell.fresh]
    both, sizes = multiplied(kept, taken, kernel, arithmetic.unit)
    total = both[..., :size] + both[..., size:]
    sizes = (sizes[:, :size] + sizes[:, size:]) * MORE + 2 * arithmetic.unit
    error = (16 * HALF + (SHARE * roundings if kernel else 0.0)) * sizes * MORE + (3 if kernel else 1) * arithmetic.unit
    total[:, 0] -= error
    total[:, 1] += error
    total = arithmetic.limited(np.concatenate([total, sizes[:, None]], axis=1) if kernel else total)
    shown = squashed(total[:, :2], slice(0), kernel, arithmetic.unit)
    state, sizes = multiplied(gates[..., cell.show], shown, kernel, arithmetic.unit)
    return total, np.concatenate([state, sizes[:, None]], axis=1) if kernel else state


def squashed(x: Array, gates: slice, kernel: bool, unit: float) -> Array:
    """tanh, and of the gates (1 + tanh(x / 2)) / 2, which is the sigmoid."""
    found = np.array(x)
    found[..., gates] *= 0.5
    np.tanh(found, out=found)
    found[..., gates] += 1
    found[..., gates] *= 0.5
    error = FUNCTION + unit + (ABSOLUTE + 2 * unit if kernel else 0.0)
    found[:, 0] -= error
    found[:, 1] += error
    return found


def multiplied(x: Array, y: Array, kernel: bool, unit: float) -> tuple[Array, Floats]:
    """[rows, 2, size], and magnitudes."""
    found = np.empty((max(len(x), len(y)), 2, x.shape[2]))
    if (x[:, 0] >= 0).all():
        np.minimum(x[:, 0] * y[:, 0], x[:, 1] * y[:, 0], out=found[:, 0])
        np.maximum(x[:, 0] * y[:, 1], x[:, 1] * y[:, 1], out=found[:, 1])
    else:
        a, b, c, d = x[:, 0] * y[:, 0], x[:, 0] * y[:, 1], x[:, 1] * y[:, 0], x[:, 1] * y[:, 1]
        np.minimum(np.minimum(a, b), np.minimum(c, d), out=found[:, 0])
        np.maximum(np.maximum(a, b), np.maximum(c, d), out=found[:, 1])
    sizes = np.maximum(-found[:, 0], found[:, 1])
    error = sizes * (8 * HALF + (2 * SHARE * MORE if kernel else 0.0)) + (4 if kernel else 1) * unit
    found[:, 0] -= error
    found[:, 1] += error
    sizes += error
    return found, sizes
