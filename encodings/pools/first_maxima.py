"""Where a network takes the greatest of windows before anything but rectifiers reads the words.

    y_f = max over windows t of r(z_tf) = r(max over t of z_tf),    r the rectifiers, none of which decreases,

so that the rectifiers, exact in floats of any kind, have one number to do in place of each window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Maximum, Network, Rearrangement, Rectifier

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Pool:
    node: int
    """The maximum."""
    windows: NDArray[np.int64]
    """[F, T]: the elements of the cut that each of its F elements is the greatest of, but for the rectifiers."""
    slopes: Sequence[float]
    """Of the rectifiers between, in order."""

    def windows_of(self, cut: Array) -> Array:
        """[n, F, T], of values [n, width] of the cut."""
        return cut.take(self.windows.reshape(-1), axis=1).reshape(len(cut), *self.windows.shape)

    def rectified(self, greatest: Array) -> Array:
        for slope in self.slopes:
            greatest = np.maximum(greatest, greatest * slope if slope else 0.0)
        return greatest


@lru_cache(maxsize=4)
def pool_of(network: Network) -> Pool | None:
    """None where something else reads the words, or lies between."""
    if len(network.cut) != 1:
        return None
    (at,) = network.cut
    elements, slopes = np.arange(network.nodes[at].size), list[float]()
    while len(network.readers[at]) == 1:
        (at,) = network.readers[at]
        node = network.nodes[at]
        if isinstance(node.layer, Maximum):
            return Pool(at, elements.reshape(node.size, -1), tuple(slopes))
        if isinstance(node.layer, Rectifier):
            slopes.append(node.layer.slope)
        elif isinstance(node.layer, Rearrangement) and len(node.inputs) == 1:
            elements = elements[node.layer.index.reshape(-1)]
        else:
            return None
    return None


def beyond_cut(network: Network, cut: Array) -> dict[int, Array]:
    """What `values` may be given, of values [n, width] of the cut, to go on from there or from the first maxima."""
    pool = pool_of(network)
    if pool is None:
        return network.split_cut(cut)
    greatest = pool.rectified(pool.windows_of(cut).max(axis=2))
    return {pool.node: greatest.reshape(len(cut), *network.nodes[pool.node].shape)}
