"""A network that check.py's reading of the file and ours write alike, byte for byte, and what its proofs may name."""

from __future__ import annotations

from dataclasses import dataclass

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.network import Network, Rectifier

from ..numbers.kernels import Kernels
from .tree_leaves import Named
from .unsure import Unsure


@dataclass(frozen=True, eq=False)
class Agreed:
    """`sha256` of the canonical network; the rectifiers, by layer of that."""

    sha256: str
    named: dict[int, Named]
    kernels: Kernels

    @property
    def network(self) -> Network:
        return self.kernels.network


def agreed(network: Network, lowered: str) -> Agreed:
    """`lowered` is the SHA-256 of what proofs/lower.py makes of the file; raises Unsure where ours is another."""
    canonical = canonical_of(network)
    if canonical.sha256 is None:
        raise Unsure(f"no canonical network: {canonical.reason}")
    if canonical.sha256 != lowered:
        raise Unsure("the two readings of the model differ")
    named = {
        layer: Named(index, network.nodes[index].size, network.nodes[index].inputs[0] in network.cut)
        for index, layer in canonical.layer_of.items()
        if isinstance(network.nodes[index].layer, Rectifier)
    }
    return Agreed(lowered, named, Kernels(network))
