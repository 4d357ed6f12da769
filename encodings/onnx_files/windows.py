"""Index lists for sliding windows: which input elements a convolution or pooling window reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import Indices

MOST_VALUES = 2**24
"""Values of one layer for one text (or reads of its windows): more is a mistake or an attack, not a text classifier."""

OUTSIDE = -1
"""Stands for an element of the padding."""


def paddings(
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    auto_pad: str,
) -> list[tuple[int, int]]:
    """Begin and end padding per spatial axis, as ONNX's `pads` and `auto_pad` say."""
    if auto_pad == "NOTSET":
        if len(pads) != 2 * len(spatial):
            raise BadInput(f"{len(pads)} pads for {len(spatial)} axes; two per axis are needed")
        return [(pads[axis], pads[axis + len(spatial)]) for axis in range(len(spatial))]
    if auto_pad == "VALID":
        return [(0, 0)] * len(spatial)
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise BadInput(f"auto_pad {auto_pad!r}")
    check_geometry(len(spatial), kernel, strides, dilations, [])
    result = []
    for size, width, stride, dilation in zip(spatial, kernel, strides, dilations, strict=True):
        extent = (width - 1) * dilation + 1
        total = max(0, (-(-size // stride) - 1) * stride + extent - size)
        small, large = total // 2, total - total // 2
        result.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return result


def windows(
    shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
    *,
    ceil_mode: bool = False,
) -> Indices:
    """Flat indices [N, C, *out, *kernel] into an array of `shape` = (N, C, *spatial), OUTSIDE where padding is read.

    out = floor((size + pads - ((kernel - 1) * dilation + 1)) / stride) + 1, rounded up under `ceil_mode` unless the
    last window would start in the end padding.
    """
    spatial = shape[2:]
    check_geometry(len(spatial), kernel, strides, dilations, pads)
    index = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    rank = len(spatial)
    for axis in range(rank):
        size, width, stride, dilation = spatial[axis], kernel[axis], strides[axis], dilations[axis]
        before, after = pads[axis]
        room = size + before + after - ((width - 1) * dilation + 1)
        if room < 0:
            raise BadInput(f"a window of {width} (dilation {dilation}) does not fit an axis of {size} with its padding")
        count = (-(-room // stride) if ceil_mode else room // stride) + 1
        if ceil_mode and (count - 1) * stride >= size + before:
            count -= 1
        if index.size // size * count * width > MOST_VALUES:
            raise Unsupported(
                f"windows that read {index.size // size * count * width} values; {MOST_VALUES} is the most"
            )
        reads = np.arange(count)[:, None] * stride + np.arange(width)[None, :] * dilation - before
        inside = (reads >= 0) & (reads < size)
        # The axis stays where it is and its window goes last, so kernel axes end up in order.
        picked = np.take(index, np.where(inside, reads, 0), axis=2 + axis)
        picked = np.moveaxis(picked, 3 + axis, -1)
        mask = inside.reshape((1, 1) + (1,) * axis + (count,) + (1,) * (picked.ndim - 4 - axis) + (width,))
        index = np.where(mask, picked, OUTSIDE)
    return index


def check_geometry(
    rank: int,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> None:
    for name, numbers in (("kernel", kernel), ("strides", strides), ("dilations", dilations)):
        if len(numbers) != rank or any(number < 1 for number in numbers):
            raise BadInput(f"{name} {list(numbers)} for {rank} axes; one whole number above 0 per axis is needed")
    if any(number < 0 for pair in pads for number in pair):
        raise BadInput(f"pads {[list(pair) for pair in pads]}: they must not be negative")
