"""Networks kept for a model that takes any length, or a mask: the last few, because each holds weights once more."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from swapproof.encodings.network import Embedding, Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.encodings.space import Frame, SwapSpace

FEWEST, MOST = 4, 64
"""Networks that are kept: the fewest whatever their size, and of small ones as many as there are lengths of texts."""
ROOM = 2**25
"""Bytes of all that are kept beyond the fewest."""


def kept_network(
    networks: OrderedDict[Frame, Network], model: Model, space: SwapSpace, *, smooth: bool = False
) -> Network:
    """The network for these texts' length and constants, or for this text alone when the model computes with tokens;
    the last ones are kept."""
    network = networks.pop(space.frame, None)
    if network is None or network.choices not in (None, space.choices):
        network = network_for(model, space, smooth=smooth)
    networks[space.frame] = network
    if len(networks) > min(MOST, max(FEWEST, ROOM // own_bytes(network))):
        networks.popitem(last=False)
    return network


def own_bytes(network: Network) -> int:
    """Of its numbers, without the tables of its embeddings, which all networks of a model share."""
    layers = [node.layer for node in network.nodes if not isinstance(node.layer, Embedding)]
    return 1 + sum(value.nbytes for layer in layers for value in vars(layer).values() if isinstance(value, np.ndarray))
