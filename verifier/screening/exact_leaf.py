"""The leaf `attention` of a text, as proofs/check.py has it: exact integers, for engines and the screening alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.network import Network
from swapproof.encodings.query import Query
from swapproof.encodings.word_options import inputs_of, words_of
from swapproof.proofs import check
from swapproof.proofs.attending.attention_leaf import Attention


@lru_cache(maxsize=2)
def checked_network(network: Network) -> check.Network | None:
    """As the checker reads it; None where it has no canonical form."""
    kept: dict[str, bytes] = {}
    made = canonical_network(network, keep=kept)
    if made.data is None:
        return None
    numbers = {bytes.fromhex(name): data[1:] for name, data in kept.items()}
    return check.Network(made.data, numbers, "" if made.float32 else "it has no claims at level float32")


def leaf_of(query: Query, network: check.Network, bits: int, deadline: float) -> Attention:
    """Raises Refused where the network is beyond the checker, and when time is up."""
    text = [token for _, integers in inputs_of(query.space) for token in integers]
    return check.Space(network, words_of(query.space), query.label, text, deadline).attention(bits)


def masks_of(options: Sequence[Sequence[int]]) -> list[int]:
    """A bit for each option that a word may have."""
    return [sum([1 << option for option in own]) for own in options]
