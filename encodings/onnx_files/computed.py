"""Arithmetic on constants, as certificates see it: what they do not speak of, and what bars claims at level float32.

FORMAT.md, sections 4.2 and 4.3: numbers computed from numbers are exact rationals, which a runtime may have rounded
unless they are whole and at most 2**24; and it may have read as 0 what is below 2**-126.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MOVED = {
    "Cast", "Concat", "Constant", "ConstantOfShape", "Dropout", "Expand", "Flatten", "Gather",
    "GatherElements", "GatherND", "Identity", "Pad",
    "Range", "Reshape", "Shape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip
COMPARED = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
PAIRED = {"Add", "Div", "Max", "Min", "Mul", "Sub"}
SPOKEN_OF = MOVED | COMPARED | PAIRED | {"Clip", "Not", "ReduceSum"}
WHOLE = 2.0**24
TINY = 2.0**-126


def is_foreign(operator: str, attributes: dict[str, Any], arrays: Sequence[Array | None]) -> bool:
    """Whether certificates do not speak of this operator on these constants."""
    given = [array for array in arrays if array is not None]
    floats = [array for array in given if is_floating(array)]
    if operator not in SPOKEN_OF or (operator in PAIRED and len(given) != 2):
        return True
    if operator == "ReduceSum" and any(bool(np.isneginf(array).any()) for array in floats):
        return True
    if operator == "Cast":
        types = {1: "float32", 10: "float16", 11: "float64"}
        target = types.get(attributes["to"])
        return target != str(given[0].dtype) if floats else target == "float16"
    if operator == "Pad":
        return bool(attributes.get("mode", "constant") != "constant" or not floats)
    return operator == "Range" and bool(floats)


def is_real_only(
    operator: str, arrays: Sequence[Array | None], results: Sequence[Array], sizes: Array | None = None
) -> bool:
    """Whether a runtime may take other numbers than these results for them; `sizes` are the sums of magnitudes of a
    ReduceSum, or None if it has no axes and sums nothing."""
    floats = [np.asarray(array, dtype=np.float64) for array in arrays if array is not None and is_floating(array)]
    if operator in MOVED or not floats:
        return False
    if operator == "ReduceSum":
        return sizes is not None and not (are_whole(floats[0]) and bool((sizes <= WHOLE).all()))
    if 0 in np.broadcast_shapes(*(array.shape for array in floats)):
        return False
    if operator == "Clip" and len(floats) == 1:
        return False
    if any(bool(((array != 0) & (np.abs(array) < TINY)).any()) for array in floats):
        return True
    if operator in COMPARED:
        return False
    steps = list(results)
    if operator == "Clip" and len(arrays) > 1 and arrays[1] is not None:
        steps.append(np.maximum(floats[0], floats[1]))
    return not all(are_whole(np.asarray(step, dtype=np.float64)) for step in steps)


def are_whole(numbers: Array) -> bool:
    return bool(((numbers == np.rint(numbers)) & (np.abs(numbers) <= WHOLE) | np.isneginf(numbers)).all())


def is_floating(array: Array) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))
