"""Random numbers that nobody can choose: drawn from the SHA-256 of what is being claimed, and drawn again by anyone.

The seed is the SHA-256 (32 bytes) of the canonical JSON of the statement. Chunk c = 0, 1, 2, ... of the stream is the
first 2^20 bytes of SHAKE-256(seed || c as 8 bytes, big endian). To draw numbers below n: let b be the number of bits
of n - 1 and w = ceil(b / 8), at least 1; each chunk is cut into blocks of w bytes (an incomplete last block is left
out); each block is read as a big-endian integer of which the lowest b bits are kept; numbers that are n or more are
left out. What remains, in order, is uniform on 0 .. n - 1.

Sampling Omega_r draws one number below |Omega_r| for each sample; encodings/omega.py says which sentence it names. The
statement is an object of `format` ("swapproof sample"), `version` (2), `model`, `tensors`, `vocabulary`, `text`,
`inputs`, `words`, `label`, `rivals` (all as in the certificate, of files the hashes only), `radius` and `samples`.

Sampling what a count left open draws one number below the number of sentences of all open leaves. These are numbered
leaf by leaf in the order of the tree; inside a leaf, whose positions have all their choices (free), the original only,
or one alternative only, the sentences are numbered as encodings/omega.py numbers those of the free positions with the
swaps that are left. The statement then has one more key, `tree`: that of the certificate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
CHUNK = 1 << 20
"""Bytes of one chunk of the stream."""
WORD = 62
"""Numbers of at most this many bits are computed in int64."""


def seed_of(statement: object) -> bytes:
    """SHA-256 of the canonical JSON of a statement."""
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).digest()


def stream(seed: bytes, below: int) -> Iterator[Array]:
    """Uniform numbers below `below`, in arrays: int64 when they fit, else Python integers."""
    bits = (below - 1).bit_length()
    width = max(1, -(-bits // 8))
    number = 0
    while True:
        chunk = hashlib.shake_256(seed + number.to_bytes(8, "big")).digest(CHUNK)
        found = small(chunk, width, bits) if bits <= WORD else large(chunk, width, bits)
        yield found[found < below]
        number += 1


def small(chunk: bytes, width: int, bits: int) -> Array:
    rows = np.frombuffer(chunk, dtype=np.uint8)[: len(chunk) // width * width].reshape(-1, width)
    padded = np.zeros((len(rows), 8), dtype=np.uint8)
    padded[:, 8 - width :] = rows
    numbers = padded.view(">u8")[:, 0].astype(np.uint64) & np.uint64((1 << bits) - 1)
    return numbers.astype(np.int64)


def large(chunk: bytes, width: int, bits: int) -> Array:
    mask = (1 << bits) - 1
    starts = range(0, len(chunk) - width + 1, width)
    return np.array([int.from_bytes(chunk[at : at + width], "big") & mask for at in starts], dtype=object)


def drawn(seed: bytes, below: int, count: int) -> Iterator[Array]:
    """The first `count` numbers of the stream, in arrays."""
    left = count
    for numbers in stream(seed, below):
        if len(numbers) >= left:
            yield numbers[:left]
            return
        left -= len(numbers)
        yield numbers
