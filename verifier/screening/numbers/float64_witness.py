"""Witnesses in float64: whether a sentence surely breaks the label, over the reals or in every float32 evaluation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np

from swapproof.encodings.evaluation import values
from swapproof.encodings.exact_evaluation import exactly_beaten

from ..screened_text import Text
from .values_beyond_cut import evaluation_errors, magnitudes

Level = Literal["real", "float32"]


def breaks(text: Text, swaps: Sequence[tuple[int, int]], levels: Collection[str]) -> Level | None:
    """None when in the sentence with these (position, token) swaps some rival surely wins at all levels, else the first
    where that is not sure.

    `real`: z_r - z_y above the error of float64, else compared exactly. `float32`: also above an upper bound of E(r).
    """
    known = tuple((position, token) for position, token in swaps)
    levels = [level for level in levels if level != "replay" and (known, level) not in text.shown]
    if not levels:
        return None
    query, moves, network = text.query, text.moves, text.network
    vector = moves.base.copy()
    for position, token in swaps:
        i = query.space.swappable.index(position)
        vector[moves.touched[i]] += moves.rows[i][query.space.choices[position].index(token) - 1]
    error = moves.errors(len(swaps))
    sizes = magnitudes(network, {index: np.abs(vector[part]) + error[part] for index, part in moves.parts.items()})
    errors = evaluation_errors(network, {index: error[part] for index, part in moves.parts.items()}, sizes)
    last, label, rivals = len(network.nodes) - 1, query.label, list(query.rivals)
    given = {index: vector[part].reshape(1, *network.nodes[index].shape) for index, part in moves.parts.items()}
    found = values(network, given=given)
    logits = found[last][0, 0]
    wins = logits[rivals] - logits[label]
    wins = wins - 4 * np.spacing(np.abs(wins)) - errors[last][rivals] - errors[last][label]
    if "real" in levels and not (wins > 0).any() and not exactly_beaten(query, query.space.sentence(swaps))[0]:
        return "real"
    if "float32" not in levels:
        return None
    needed = text.claimable[rivals]
    if not np.isfinite(needed).all():
        return "float32"
    if (wins > needed).any():
        return None
    return None if (wins > text.claimable_alone(found, errors)[0, rivals]).any() else "float32"
