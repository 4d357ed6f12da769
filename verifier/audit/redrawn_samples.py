"""Samples drawn again: from what a line of results.jsonl and its certificate say, as draws.py specifies."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.omega import Omega
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.errors import BadInput

from ..counting.draws import seed_of
from ..counting.fraction import Estimate, Settings
from ..counting.judging import Jury
from ..counting.sampling import Classify, Remainder, sampled, sampled_deployed, sampled_open
from ..engines.protocol import Budget

LEAVES, OPEN, BROKEN, WORDS = (0, 1, 2, 3, 16), 3, 16, 4


def drawn_again(
    query: Query,
    about: Mapping[str, Any],
    settings: Settings,
    stated: Mapping[str, Any],
    part: Mapping[str, Any] | None,
) -> Estimate:
    """By the same rule for stopping; `part` is the certificate's `count` when only its open leaves were sampled."""
    differences, omega = Differences.of(query), Omega(query.space, settings.radius)
    if part is None:
        total, seed = omega.total, seed_of(about)
        stop = settings.stop(total, total, clock(stated))
        sample = sampled(differences, settings.radius, seed, stop, Budget(), listing=was_listed(stated))
        return Estimate(sample, total, 0, total, settings.delta, seed.hex())
    seed = seed_of({**about, "tree": part["tree"]})
    cells = open_leaves(base64.b64decode(part["tree"]), differences, settings.radius)
    robust, broken, total = (int(part[name]) for name in ("robust", "broken", "total"))
    open = total - robust - broken
    stop = settings.stop(open, total, clock(stated))
    sample = sampled_open(Jury(differences, omega.most), cells, seed, stop, Budget())
    return Estimate(sample, open, robust, total, settings.delta, seed.hex())


def drawn_again_deployed(
    classify: Classify,
    space: SwapSpace,
    label: int,
    about: Mapping[str, Any],
    settings: Settings,
    stated: Mapping[str, Any],
) -> Estimate:
    """By the same rule for stopping, judged by the classifier again."""
    total, seed = Omega(space, settings.radius).total, seed_of(about)
    stop = settings.stop(total, total, clock(stated))
    sample = sampled_deployed(
        classify, space, label, settings.radius, seed, stop, Budget(), settings.batch, listing=was_listed(stated)
    )
    return Estimate(sample, total, 0, total, settings.delta, seed.hex())


def clock(stated: Mapping[str, Any]) -> int | None:
    """Where the clock stopped a sample; None when its own rule did."""
    return int(stated["samples"]) if stated["stopped"] in ("time", "some") else None


def was_listed(stated: Mapping[str, Any]) -> bool:
    """Earlier runs drew samples of small spaces too: that is as true, and knows less."""
    return stated["stopped"] in ("all", "some")


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
