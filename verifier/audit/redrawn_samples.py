"""Samples drawn again: from what a line of results.jsonl and its certificate say, as draws.py specifies."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.omega import Omega
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import option_counts
from swapproof.proofs.writing.certificate import Broken, Enumerate, Linear, Node, Open, Words
from swapproof.proofs.writing.errors import BadInput
from swapproof.proofs.writing.tree_reader import decode_tree

from ..counting.draws import seed_of
from ..counting.fraction import Estimate, Settings
from ..counting.sampling import Classify, Remainder, sampled, sampled_deployed, sampled_open
from ..engines.protocol import Budget
from ..ladder.truth import Jury


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
    space, rivals = differences.query.space, differences.query.rivals
    every = {word: frozenset(range(count)) for word, count in enumerate(option_counts(space))}
    found: list[Remainder] = []
    waiting: list[tuple[Node, dict[int, frozenset[int]]]] = [(decode_tree(tree, option_counts(space), rivals), every)]
    while waiting:
        node, region = waiting.pop()
        match node:
            case Open():
                found.append(remainder(region, every, differences, radius))
            case Words(word, left, inner, other):
                waiting += [
                    (other, region | {word: region[word] - left}),
                    (inner, region | {word: region[word] & left}),
                ]
            case Linear() | Enumerate() | Broken():
                pass
            case _:
                raise BadInput(f"a tree with a node {type(node).__name__}: a count that was sampled splits words only")
    return found


def remainder(
    region: Mapping[int, frozenset[int]], every: Mapping[int, frozenset[int]], differences: Differences, radius: int
) -> Remainder:
    """Of a region in which every word has all its options, or one."""
    path, free = [], []
    positions = differences.query.space.swappable
    first = differences.positions.searchsorted(list(positions))
    for word, options in region.items():
        if options == every[word]:
            free.append(positions[word])
        elif len(options) != 1:
            raise BadInput(f"word {word} of an open leaf is half decided")
        else:
            (option,) = options
            path += [int(first[word]) + option - 1] if option else []
    return Remainder(tuple(path), tuple(free), min(radius - len(path), len(free)))
