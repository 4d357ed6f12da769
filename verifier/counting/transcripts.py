"""Samples drawn again: from what a line of results.jsonl and its certificate say, as draws.py specifies."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from swapproof.encodings.incremental import Differences
from swapproof.encodings.omega import Omega
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.errors import BadInput

from ..engines.protocol import Budget
from ..replay import Replay
from .draws import seed_of
from .fraction import Estimate, Settings
from .judging import Jury
from .sampling import Remainder, sampled, sampled_deployed, sampled_open

LEAVES, OPEN, BROKEN, WORDS = (0, 1, 2, 3, 16), 3, 16, 4


def drawn_again(
    query: Query, about: Mapping[str, Any], radius: int, delta: Fraction, samples: int, part: Mapping[str, Any] | None
) -> Estimate:
    """The first `samples` samples; `part` is the `count` of the certificate when only its open leaves were sampled."""
    differences, omega = Differences.of(query), Omega(query.space, radius)
    if part is None:
        seed = seed_of(about)
        sample = sampled(differences, radius, seed, samples, Budget())
        return Estimate(sample, omega.total, 0, omega.total, delta, seed.hex())
    seed = seed_of({**about, "tree": part["tree"]})
    cells = open_leaves(base64.b64decode(part["tree"]), differences, radius)
    sample = sampled_open(Jury(differences, omega.most), cells, seed, samples, Budget())
    robust, broken, total = (int(part[name]) for name in ("robust", "broken", "total"))
    return Estimate(sample, total - robust - broken, robust, total, delta, seed.hex())


def drawn_again_deployed(
    replay: Replay, space: SwapSpace, label: int, about: Mapping[str, Any], settings: Settings, samples: int
) -> Estimate:
    """The first `samples` samples, judged by onnxruntime again."""
    total, seed = Omega(space, settings.radius).total, seed_of(about)
    sample = sampled_deployed(replay, space, label, settings.radius, seed, samples, Budget())
    return Estimate(sample, total, 0, total, settings.delta, seed.hex())


def open_leaves(tree: bytes, differences: Differences, radius: int) -> list[Remainder]:
    """The open leaves of a tree of words nodes; sentences inside are chosen at positions that keep all choices."""
    space = differences.query.space
    masks = {position: (1 << len(space.choices[position])) - 1 for position in space.swappable}
    waiting, at, found = [masks], 0, []
    while waiting:
        region = waiting.pop()
        kind, at = tree[at], at + 1
        if kind == OPEN:
            found.append(remainder(region, differences, radius))
        elif kind == BROKEN:
            _, at = number(tree, at)
        elif kind == WORDS:
            position, at = number(tree, at)
            size = (len(space.choices[position]) + 7) // 8
            chosen, at = int.from_bytes(tree[at : at + size], "little"), at + size
            waiting.append({**region, position: region[position] & ~chosen})
            waiting.append({**region, position: region[position] & chosen})
        elif kind not in LEAVES:
            raise BadInput(f"tree byte {kind}: a count that was sampled splits words only")
    return found


def remainder(region: Mapping[int, int], differences: Differences, radius: int) -> Remainder:
    space: SwapSpace = differences.query.space
    path, free = [], []
    first = differences.positions.searchsorted(list(region))
    for (position, mask), start in zip(region.items(), first.tolist(), strict=True):
        if mask == (1 << len(space.choices[position])) - 1:
            free.append(position)
        elif mask.bit_count() != 1:
            raise BadInput(f"position {position} of an open leaf is half decided")
        elif mask != 1:
            path.append(start + mask.bit_length() - 2)
    return Remainder(tuple(path), tuple(free), min(radius - len(path), len(free)))


def number(tree: bytes, at: int) -> tuple[int, int]:
    """A LEB128 number and where it ends."""
    value = shift = 0
    while True:
        byte, at = tree[at], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
