"""A certificate read as FORMAT sections 2 and 3 have it, at the speed of the standard library's JSON.

`canonical` alone lets through what is canonical JSON in shape but not in content (floats, other strings); `well_formed`
demands every key, type and range, by the patterns of check.py. What is accepted here, check.py reads alike; whatever
else it is, is left to check.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from itertools import chain
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import space_of
from swapproof.proofs import check
from swapproof.proofs.lower import Model as CheckedModel
from swapproof.proofs.onnx_file import Refused

from .agreed_network import Agreed
from .unsure import Unsure

LARGEST, MOST_PARTS = 1 << 26, 4_000_000
MOST_SWAPS, MOST_POSITIONS, MOST_OPTIONS, MOST_STEPS = 10**6, 1 << 16, 1_000_000, 1 << 25
"""FORMAT section 9, and what check.py takes on."""
LEVELS = ("real", "float32", "kernel", "replay")
ODD = (b"\t", b"\n", b"\r", b"\\", b"\x7f", b"-0")
SPACED = b'"swapproof certificate"'
"""The one string of a certificate that holds a space."""


def canonical(data: bytes) -> Any:
    """The value of JSON that is spelt in the one way there is: ASCII, keys ascending and once, no white space."""
    fits(len(data) <= LARGEST, "the certificate is too large")
    fits(data.count(b"[") + data.count(b"{") + data.count(b",") <= MOST_PARTS, "too many parts")
    try:
        value = json.loads(data.decode("ascii"), object_pairs_hook=ascending)
        same = plain(data) or json.dumps(value, sort_keys=True, separators=(",", ":")).encode() == data
    except (ValueError, RecursionError, TypeError):
        raise Unsure("no canonical JSON") from None
    fits(same, "no canonical JSON")
    return value


def ascending(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if names != sorted(set(names)):
        raise ValueError("keys that do not ascend")
    return dict(pairs)


def plain(data: bytes) -> bool:
    """Whether strings and integers can be spelt in no other way: JSON without white space but in the name of the
    format, without escapes, without characters that would be escaped, and without a minus before a zero."""
    return data.count(b" ") == data.count(SPACED) and not any(odd in data for odd in ODD)


def well_formed(top: Any) -> SwapSpace:
    """The space of a certificate; raises Unsure or Refused unless this is one, as far as its model is not needed."""
    fits(type(top) is dict and {"inputs", "words"} <= top.keys(), "no certificate")
    # Inputs and words, being many, at more speed:
    check.expect({**top, "inputs": [["words", [0]]], "words": []}, check.CERTIFICATE, "a certificate")
    space = well_formed_words(top["inputs"], top["words"])
    names, rivals = [name for name, _ in top["model"]["tensors"]], top["rivals"]
    fits(names == sorted(set(names)), "tensor files must ascend")
    fits(bool(rivals) and rivals == sorted(set(rivals)) and top["label"] not in rivals, "impossible rivals")
    well_formed_claims(top)
    return space


def well_formed_words(inputs: Any, words: Any) -> SwapSpace:
    """Of one input of words, constants beside it, and of words of one position each."""
    fits(lists(inputs, 2) and all(type(given) is list and given for _, given in inputs), "no inputs")
    given = list(chain.from_iterable(own for _, own in inputs))
    fits(len(given) <= MOST_POSITIONS, "too many positions")
    fits(lists(words, 2), "no words")
    starts, options = [start for start, _ in words], [own for _, own in words]
    fits(all(type(own) is list and 0 < len(own) <= MOST_POSITIONS for own in options), "a word without options")
    every = list(chain.from_iterable(options))
    fits(lists(every, 1) and len(every) <= MOST_OPTIONS, "words of several positions, or too many options")
    numbers = [*given, *starts, *chain.from_iterable(every)]
    fits(set(map(type, numbers)) == {int} and min(numbers) >= 0 and max(numbers) < 1 << 31, "no token ids")
    try:
        return space_of(inputs, words)
    except BadInput as error:
        raise Unsure(str(error)) from None


def lists(value: Any, size: int) -> bool:
    """Whether it is a list of lists of this length."""
    return type(value) is list and set(map(type, value)) <= {list} and set(map(len, value)) <= {size}


def well_formed_claims(top: Mapping[str, Any]) -> None:
    lower, count, upper = top["lower"], top["count"], top["upper"]
    fits(any(part is not None for part in (lower, count, upper)), "a certificate that claims nothing")
    low = 0 if lower is None else lower["swaps"] + 1
    fits(count is None or count["swaps"] >= low, "a count that adds nothing to lower")
    if upper is not None:
        levels, last = upper["levels"], -1
        fits(bool(levels) and levels == [level for level in LEVELS if level in levels], "impossible levels")
        fits(len(upper["swaps"]) >= low, "a witness that contradicts lower")
        counts = [len(options) for _, options in top["words"]]
        for word, option in upper["swaps"]:
            fits(last < word < len(counts), "words of a witness must ascend, within the text")
            fits(0 < option < counts[word], "a witness with an option that its word does not have")
            last = word


def bound(
    top: Mapping[str, Any], space: SwapSpace, model: CheckedModel, agreed: Agreed, vocabulary_sha256: str | None
) -> None:
    """Raises Refused or Unsure unless a certificate that is well formed is about this model and this vocabulary."""
    network = agreed.network
    expect(top["model"]["sha256"] == model.sha256, "made for another model: the SHA-256 differs")
    expect(dict(top["model"]["tensors"]) == model.tensors, "made for other external tensors")
    expect(top["network"] == agreed.sha256, "made for another network")
    vocabulary = top["vocabulary"]
    expect(vocabulary is None or vocabulary["sha256"] == vocabulary_sha256, "made for another vocabulary")
    expect(max(top["label"], *top["rivals"]) < network.classes, "label or rivals beyond the classes")
    if network.is_smooth:
        return
    options = space.candidates + len(space.swappable)
    if options * network.cut_width > MOST_STEPS:
        touched = {position: len(agreed.kernels.at(position).touched) for position in space.swappable}
        steps = sum(number * len(space.choices[position]) for position, number in touched.items())
        fits(steps <= MOST_STEPS, "too many options for a network of this size")


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
