"""check.js and check.py on claims about smooth networks that only just hold: both must find the same least bias, and
what is believed must be true of what onnxruntime says."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
import smooth_graphs as graphs
from both_checkers import agree_on_each
from cases import FACTOR, drawn_seed
from javascript_networks import Statement, canonical, network_hashes
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
    "leaf-attention": ("real", (graphs.attention, graphs.normalised)),
    "leaf-attention-recurrent": ("real", (graphs.recurrent,)),
    "leaf-attention-drawn": ("real", None),
    "leaf-enumerate-kernel": ("kernel", (graphs.recurrent,)),
    "leaf-expansion-recurrent": ("real", (graphs.recurrent,)),
    "leaf-expansion-recurrent-kernel": ("kernel", (graphs.recurrent, graphs.linear, graphs.recurrent)),
    "leaf-expansion-drawn": ("real", None),
}
"""By name: the level, and the steps of the network; none: drawn."""
LEAVES = {"leaf-attention": b"\x19", "leaf-enumerate": b"\2", "leaf-expansion": b"\x1a"}
"""Of kinds that begin so, all leaves."""
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
    only = next((leaf for name, leaf in LEAVES.items() if kind.startswith(name)), b"")
    claims = narrow_claims(range(seed, seed + (2 if only else 8) * FACTOR), level, steps, only=only)
    networks = network_hashes([Statement(x.model, x.certificate["inputs"], x.certificate["words"]) for x in claims])
    write_claims(tmp_path / "run", claims, networks)
    assert agree_on_each(tmp_path / "run") == [claim.believed for claim in claims]
    believed = [claim for claim in claims if claim.believed]
    assert len(believed) > (0 if only else 2 * FACTOR)
    assert all(is_true(claim) for claim in believed)


def test_kept_claims_are_believed_to_the_last_unit(tmp_path: Path) -> None:
    """Each beside one whose bias is 2^-39 less (`write_narrow_cases.py`)."""
    kept = Path(__file__).parent / "narrow"
    expected = []
    (tmp_path / "certificates").mkdir()
    for number, path in enumerate(sorted(kept.glob("*/*.json"))):
        certificate = json.loads(path.read_bytes())
        file = f"m{number}.onnx"
        shutil.copy(path.with_suffix(".onnx"), tmp_path / file)
        certificate |= {"id": number, "model": {**certificate["model"], "file": file}}
        (tmp_path / "certificates" / f"{number:06}.json").write_bytes(canonical(certificate))
        expected.append(path.parent.name == "accepted")
    assert agree_on_each(tmp_path) == expected
    assert expected.count(True) == expected.count(False) > 9
