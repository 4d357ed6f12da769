"""A network that check.py's reading of the file and ours write alike, byte for byte, and what its proofs may name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.errors import Disagreement
from swapproof.encodings.network import Network, Rectifier
from swapproof.encodings.pools.counted_swaps import counts_swaps

from ..numbers.kernels import Kernels
from .tree_leaves import Named
from .unsure import Unsure


class Apart(Disagreement):
    """The two readings of a model write different networks: one of them is wrong, and nothing may rest on either."""


@dataclass(frozen=True, eq=False)
class Agreed:
    """`sha256` of the canonical network; rectifiers, and maxima that count swaps, by layer of that."""

    sha256: str
    named: dict[int, Named]
    kernels: Kernels

    @property
    def network(self) -> Network:
        return self.kernels.network


def agreed(network: Network, lowered: str) -> Agreed:
    """`lowered` is the SHA-256 of what proofs/lower.py makes of the file; raises Apart where ours is another. What is
    found is for all texts of which the same is written.

    Where ours cannot be exact there is nothing to compare: Unsure.
    """
    canonical = canonical_of(network)
    if canonical.sha256 is None:
        raise Unsure(f"no canonical network: {canonical.reason}")
    if canonical.sha256 != lowered:
        raise Apart(
            "the model is read in two ways: the SHA-256 of its canonical network is "
            f"{lowered[:16]}... by proofs/lower.py and {canonical.sha256[:16]}... by the engines' reader; "
            "nothing is claimed. This is a fault of swapproof: please report it"
        )
    named = {
        layer: Named(
            index,
            network.nodes[index].size,
            isinstance(network.nodes[index].layer, Rectifier),
            network.nodes[index].inputs[0] in network.cut,
            counts_swaps(network, index),
        )
        for index, layer in canonical.layer_of.items()
        if isinstance(network.nodes[index].layer, Rectifier) or counts_swaps(network, index)
    }
    return Agreed(lowered, named, Kernels(replace(network, choices=None, same=None)))
