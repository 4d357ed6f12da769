"""Networks kept for a model that takes any length: the last few, because each holds the weights once more."""

from __future__ import annotations

from collections import OrderedDict

from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_of
from swapproof.encodings.space import SwapSpace

NETWORKS = 4


def kept_network(networks: OrderedDict[int, Network], model: Model, space: SwapSpace) -> Network:
    """The network for these texts' length, or for this text alone when the model computes with tokens; the last few
    are kept."""
    network = networks.pop(space.length, None)
    if network is None or network.choices not in (None, space.choices):
        network = network_of(model, space.length, space.choices)
    networks[space.length] = network
    if len(networks) > NETWORKS:
        networks.popitem(last=False)
    return network
