"""check.js and check.py on claims about smooth networks that only just hold: both must find the same least bias, and
what is believed must be true of what onnxruntime says."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
import smooth_graphs as graphs
from both_checkers import agree_on_each
from cases import FACTOR, drawn_seed
from javascript_networks import Statement, network_hashes
from proof_cases import logits
from smooth_claims import Claim, narrow_claims, write_claims

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

KINDS = {
    "drawn": (None, None),
    "recurrent-kernel": ("kernel", (graphs.recurrent,)),
    "recurrent-twice": ("real", (graphs.recurrent, graphs.unary, graphs.recurrent)),
    "products-kernel": ("kernel", (graphs.linear, graphs.products, graphs.unary)),
    "attention": ("real", (graphs.attention, graphs.normalised)),
    "powers": ("real", (graphs.powers, graphs.softmax)),
    "norms": ("real", (graphs.norms, graphs.linear)),
}
"""By name: the level, and the steps of the network; none: drawn."""
SLACK = 0.01
"""How far float32 logits of these small networks may be from the real ones."""


def is_true(claim: Claim) -> bool:
    """By running every sentence."""
    lower, label = claim.certificate["lower"], claim.certificate["label"]
    words = claim.certificate["words"]
    sentences = []
    for picks in itertools.product(*(range(len(options)) for _, options in words)):
        if len(picks) - picks.count(0) <= lower["swaps"]:
            tokens = list(claim.certificate["inputs"][0][1])
            for (start, options), pick in zip(words, picks, strict=True):
                tokens[start] = options[pick][0]
            sentences.append(tokens)
    z = logits(claim.model, sentences)
    return all((z[:, label] - z[:, rival]).min() > -SLACK for rival in claim.certificate["rivals"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_bias_is_the_same(kind: str, tmp_path: Path) -> None:
    """To 2^-39, so that a unit of an interval at precision 32 shows."""
    level, steps = KINDS[kind]
    seed = drawn_seed() + 1000
    claims = narrow_claims(range(seed, seed + 8 * FACTOR), level, steps)
    networks = network_hashes([Statement(x.model, x.certificate["inputs"], x.certificate["words"]) for x in claims])
    write_claims(tmp_path / "run", claims, networks)
    assert agree_on_each(tmp_path / "run") == [claim.believed for claim in claims]
    believed = [claim for claim in claims if claim.believed]
    assert len(believed) > 2 * FACTOR
    assert all(is_true(claim) for claim in believed)
