"""Whether a number can pass below the finite one that stands for a mask of minus infinity before a maximum."""

from __future__ import annotations

import numpy as np

from ..errors import Unsupported
from ..network import Embedding, Maximum, Network
from .magnitudes import constants, magnitudes

MASKED = -10000.0
"""Its exponential is 0 in every float type, beside that of any score."""
MASKS = f"masks of minus infinity are {MASKED:.0f}"
"""What is said of a model in which it stands."""


def refuse_passed_masks(network: Network) -> None:
    """Unsupported where whatever words stand at the positions may bring what a maximum reads as low as its mask."""
    tables = {
        index: np.broadcast_to(np.abs(np.asarray(node.layer.table)).max(axis=0), node.shape)[None]
        for index, node in enumerate(network.nodes)
        if isinstance(node.layer, Embedding)
    }
    found = magnitudes(network, tables, {})
    for node in network.nodes:
        if isinstance(node.layer, Maximum):
            read = node.inputs[0]
            fixed = constants(network, read).reshape(*node.shape, -1)
            masked = (fixed == MASKED).any(axis=-1, keepdims=True)
            sizes = np.where(np.isnan(fixed) & masked, found[read].reshape(fixed.shape), 0.0)
            if sizes.max(initial=0.0) >= -MASKED:
                raise Unsupported(
                    f"{node.origin}: reads numbers that may be as low as {-sizes.max():.3g}, and {MASKS}: "
                    'run the model instead (road = "run")'
                )
