"""A certificate read as FORMAT sections 2 and 3 have it, at the speed of the standard library's JSON.

`canonical` alone lets through what is canonical JSON in shape but not in content (floats, other strings); `well_formed`
demands every key, type and range, by the patterns of check.py. What is accepted here, check.py reads alike; whatever
else it is, is left to check.py.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from swapproof.proofs import check
from swapproof.proofs.check import Model as CheckedModel
from swapproof.proofs.check import Network as CheckedNetwork
from swapproof.proofs.check import Refused

from .unsure import Unsure

LARGEST, MOST_PARTS = 1 << 26, 4_000_000
MOST_SWAPS, MOST_POSITIONS, MOST_CHOICES, MOST_STEPS = 10**6, 1 << 16, 1_000_000, 1 << 25
"""FORMAT section 9, and what check.py takes on."""
LEVELS = ("real", "float32", "replay")


def canonical(data: bytes) -> Any:
    """The value of JSON that is spelt in the one way there is: ASCII, keys ascending and once, no white space."""
    fits(len(data) <= LARGEST, "the certificate is too large")
    fits(data.count(b"[") + data.count(b"{") + data.count(b",") <= MOST_PARTS, "too many parts")
    try:
        value = json.loads(data.decode("ascii"))
        same = json.dumps(value, sort_keys=True, separators=(",", ":")).encode() == data
    except (ValueError, RecursionError, TypeError):
        raise Unsure("no canonical JSON") from None
    fits(same, "no canonical JSON")
    return value


def well_formed(top: Any) -> None:
    """Raises Unsure or Refused unless this is the value of a certificate, by what can be seen without its model."""
    fits(type(top) is dict and "choices" in top, "no certificate")
    check.expect({**top, "choices": []}, check.CERTIFICATE, "a certificate")  # the choices, being many, at more speed:
    well_formed_choices(top["choices"], top["space"])
    names, rivals = [name for name, _ in top["model"]["tensors"]], top["rivals"]
    fits(names == sorted(set(names)), "tensor files must ascend")
    fits(bool(rivals) and rivals == sorted(set(rivals)) and top["label"] not in rivals, "impossible rivals")
    well_formed_claims(top)


def well_formed_choices(choices: Any, digest: str) -> None:
    fits(type(choices) is list and bool(choices) and set(map(type, choices)) == {list}, "no choices")
    sizes = list(map(len, choices))
    fits(len(sizes) <= MOST_POSITIONS and sum(sizes) <= MOST_CHOICES, "too many choices")
    fits(min(sizes) > 0 and max(sizes) <= MOST_POSITIONS, "too many choices at one position, or none")
    every = list(chain.from_iterable(choices))
    fits(set(map(type, every)) == {int} and min(every) >= 0 and max(every) < 1 << 31, "no token ids")
    distinct = all(size == 1 or len(set(options)) == size for size, options in zip(sizes, choices, strict=True))
    fits(distinct, "a position lists a token twice")
    written = json.dumps(choices, separators=(",", ":")).encode()
    fits(hashlib.sha256(written).hexdigest() == digest, "the hash of the choices is another")


def well_formed_claims(top: Mapping[str, Any]) -> None:
    lower, count, upper = top["lower"], top["count"], top["upper"]
    fits(any(part is not None for part in (lower, count, upper)), "a certificate that claims nothing")
    low = 0 if lower is None else lower["swaps"] + 1
    fits(count is None or count["swaps"] >= low, "a count that adds nothing to lower")
    if upper is not None:
        levels, last = upper["levels"], -1
        fits(bool(levels) and levels == [level for level in LEVELS if level in levels], "impossible levels")
        fits(len(upper["swaps"]) >= low, "a witness that contradicts lower")
        for position, token in upper["swaps"]:
            fits(last < position < len(top["choices"]), "positions of a witness must ascend, within the text")
            fits(token in top["choices"][position][1:], "a witness with another token than the choices")
            last = position


@dataclass(frozen=True)
class Sizes:
    """What of check.py's network a certificate is compared with."""

    classes: int
    vocabulary: int
    touched: Mapping[int, int]
    """Position -> how many elements of the cut its word moves."""

    @classmethod
    def of(cls, network: CheckedNetwork) -> Sizes:
        touched = {position: len(kernels) for position, kernels in network.kernels.items()}
        return cls(network.classes, network.vocabulary, touched)


def bound(top: Mapping[str, Any], model: CheckedModel, network: Sizes, vocabulary_sha256: str | None) -> None:
    """Raises Refused or Unsure unless a certificate that is well formed is about this model and vocabulary."""
    vocabulary, choices = top["vocabulary"], top["choices"]
    expect(top["model"]["sha256"] == model.sha256, "made for another model: the SHA-256 differs")
    expect(dict(top["model"]["tensors"]) == model.tensors, "made for other external tensors")
    expect(vocabulary is None or vocabulary["sha256"] == vocabulary_sha256, "made for another vocabulary")
    expect(max(top["label"], *top["rivals"]) < network.classes, "label or rivals beyond the classes")
    expect(max(map(max, choices)) < network.vocabulary, "tokens beyond the embedding")
    touched = network.touched
    steps = sum(touched.get(p, 0) * len(options) for p, options in enumerate(choices) if len(options) > 1)
    fits(steps <= MOST_STEPS, "too many choices for a network of this size")


def decoded(tree: str) -> bytes:
    try:
        data = base64.b64decode(tree, validate=True)
    except ValueError:
        raise Unsure("the tree is not base64") from None
    fits(base64.b64encode(data).decode() == tree, "the tree is not canonical base64")
    return data


def whole(value: Any, end: int) -> bool:
    return type(value) is int and 0 <= value < end


def fits(fact: bool, otherwise: str) -> None:
    if not fact:
        raise Unsure(otherwise)


def expect(fact: bool, otherwise: str) -> None:
    if not fact:
        raise Refused(otherwise)
