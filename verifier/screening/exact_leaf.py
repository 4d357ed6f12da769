"""The leaf `attention` of a text, for engines and the screening: exactly as proofs/check.py has it, or in float64."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.network import Network
from swapproof.encodings.query import Query
from swapproof.encodings.word_options import inputs_of, words_of
from swapproof.proofs import check
from swapproof.proofs.attention_leaf import Attention

from ..attending.quick_bound import QuickLeaf


@lru_cache(maxsize=2)
def checked_network(network: Network) -> check.Network | None:
    """As the checker reads it; None where it has no canonical form."""
    kept: dict[str, bytes] = {}
    made = canonical_network(network, keep=kept)
    if made.data is None:
        return None
    numbers = {bytes.fromhex(name): data[1:] for name, data in kept.items()}
    return check.Network(made.data, numbers, "" if made.float32 else "it has no claims at level float32")


@lru_cache(maxsize=1)
def space_of(query: Query, network: check.Network) -> check.Space:
    """Laid out once for all who look at one query. Raises Refused where the network is beyond the checker."""
    text = [token for _, integers in inputs_of(query.space) for token in integers]
    return check.Space(network, words_of(query.space), query.label, text)


def leaf_of(query: Query, network: check.Network, bits: int, deadline: float) -> Attention:
    """Raises Refused when time is up."""
    space = space_of(query, network)
    space.stop = deadline
    return space.attention(bits)


@lru_cache(maxsize=1)
def quick_leaf_of(query: Query, network: check.Network) -> QuickLeaf:
    return QuickLeaf(space_of(query, network))


def masks_of(options: Sequence[Sequence[int]]) -> list[int]:
    """A bit for each option that a word may have."""
    return [sum([1 << option for option in own]) for own in options]
