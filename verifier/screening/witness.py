"""Witnesses in float64: whether a sentence surely breaks the label, over the reals or in every float32 evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from swapproof.encodings.evaluation import values
from swapproof.encodings.exact import exact_logits
from swapproof.encodings.network import Maximum, Rectifier

from . import claims
from .magnitudes import evaluation_errors, magnitudes
from .screen import Text


def breaks(text: Text, swaps: Sequence[tuple[int, int]], level: Literal["real", "float32"]) -> bool:
    """Whether some rival surely wins in the sentence with these (position, token) swaps.

    `real`: z_r - z_y above the error of float64, else compared exactly. `float32`: also above an upper bound of E(r).
    """
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
    if level == "real":
        return bool((wins > 0).any()) or is_beaten(text, swaps)
    if not text.covered.float32:
        return False
    sources = [node.inputs[0] for node in network.nodes if isinstance(node.layer, Rectifier | Maximum)]
    far = {index: errors[index].reshape(1, *network.nodes[index].shape) for index in sources}
    own = claims.of_sentences(network, text.whole, found, far, text.covered.merged)
    needed = np.minimum(*(claims.margin_errors(each, label)[0][rivals] for each in (text.whole, own)))
    return bool((wins > needed).any())


def is_beaten(text: Text, swaps: Sequence[tuple[int, int]]) -> bool:
    logits, _ = exact_logits(text.network, text.query.space.sentence(swaps))
    label = text.query.label
    return any(logits[r] > logits[label] or (logits[r] == logits[label] and r < label) for r in text.query.rivals)
