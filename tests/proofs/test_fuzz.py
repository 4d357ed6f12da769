"""Mutants of accepted certificates: whatever is accepted is true, and nothing makes the checker crash or hang."""

from __future__ import annotations

import base64
import itertools
import json
import random
import time
from pathlib import Path
from typing import Any

import mpmath
import pytest
from cases import FACTOR, drawn_seed
from proof_cases import exact_logits
from smooth_values import EXACT, values_of

from swapproof.proofs import check, lower

FOLDER = Path(__file__).parent / "accepted"
MUTANTS = 250
"""Of each certificate; there are about thirty."""
INTERESTING = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 64, 65, 127, 128, 255)


def mutate_tree(tree: bytes, rng: random.Random) -> bytes:
    """A byte changed, added, dropped, or a piece copied elsewhere."""
    out = bytearray(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(5):
            case 0 if at < len(out):
                out[at] = rng.choice(INTERESTING)
            case 1 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 2 if at < len(out):
                del out[at]
            case 3:
                out.insert(at, rng.choice(INTERESTING))
            case _:
                start = rng.randrange(len(out) + 1)
                out[at:at] = out[start : start + rng.randrange(1, 8)]
    return bytes(out)


def mutate_value(value: object, rng: random.Random) -> object:
    """One place of the JSON changed."""
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value))
        return {**value, key: mutate_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value[:at] + value[at + 1 :]
        if rng.random() < 0.1:
            return [*value, value[at]]
        return [*value[:at], mutate_value(value[at], rng), *value[at + 1 :]]
    if isinstance(value, int) and rng.random() < 0.8:
        return value + rng.choice((-1, 1, 2, 100, 2**31, 2**63))
    return rng.choice((None, 0, 1, -1, "", "0", "real", "float32", [], {}, [0], [[0, 1]], "AQ==", "Ag==", "Aw=="))


def mutant(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.1:
        at = rng.randrange(len(data))
        return data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(2) :]
    value = json.loads(data)
    for part in ("lower", "count"):
        if value[part] and rng.random() < 0.6:
            tree = mutate_tree(base64.b64decode(value[part]["tree"]), rng)
            value[part] = {**value[part], "tree": base64.b64encode(tree).decode()}
            if rng.random() < 0.3:
                value[part]["swaps"] += rng.choice((-1, 1))
    if rng.random() < 0.5:
        value = mutate_value(value, rng)
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def near_logits(network: check.Network, text: list[int]) -> list[Any]:
    """Of a smooth network, to 300 bits."""
    with mpmath.workprec(300):
        found = values_of(network, text, EXACT, mpmath.mpf)
    return [found[i] for i in network.logits]


class Judge:
    """The truth about the sentences of one model, by exact evaluation, remembered."""

    def __init__(self, model: lower.Model) -> None:
        self.model = model
        self.known: dict[str, list[Any]] = {}

    def logits(self, value: dict[str, Any], picks: tuple[int, ...]) -> list[Any]:
        """Of a text with these options, read as it stands, without words."""
        text = [token for _, tokens in value["inputs"] for token in tokens]
        for (start, options), option in zip(value["words"], picks, strict=True):
            text[start : start + len(options[option])] = options[option]
        left = iter(text)
        inputs = [[role, [next(left) for _ in tokens]] for role, tokens in value["inputs"]]
        key = json.dumps(inputs)
        if key not in self.known:
            found = self.model.lower(inputs, [])
            network = check.Network(found.data, found.numbers)
            self.known[key] = near_logits(network, text) if network.smooth else exact_logits(network, text)
        return self.known[key]

    def is_true(self, value: dict[str, Any]) -> bool:
        """All claims of a certificate, over the reals, by enumeration."""
        label = value["label"]

        def beaten(picks: tuple[int, ...]) -> bool:
            z = self.logits(value, picks)
            return any(z[r] > z[label] or (z[r] == z[label] and r < label) for r in value["rivals"])

        def sentences(swaps: int) -> list[tuple[int, ...]]:
            everything = itertools.product(*[range(len(options)) for _, options in value["words"]])
            return [picks for picks in everything if len(picks) - picks.count(0) <= swaps]

        lower, upper, part = value["lower"], value["upper"], value["count"]
        if lower is not None and any(map(beaten, sentences(lower["swaps"]))):
            return False
        if part is not None:
            lost = [beaten(picks) for picks in sentences(part["swaps"])]
            fits = lost.count(False) >= int(part["robust"]) and lost.count(True) >= int(part["broken"])
            if int(part["total"]) != len(lost) or not fits:
                return False
        if upper is not None and set(upper["levels"]) & {"real", "float32", "kernel"}:
            picks = dict(map(tuple, upper["swaps"]))
            return beaten(tuple([picks.get(i, 0) for i in range(len(value["words"]))]))
        return True


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_no_mutant_is_accepted_unless_it_is_true(name: str) -> None:
    """Thousands of mutants of all accepted certificates; the survivors are enumerated."""
    data = (FOLDER / f"{name}.json").read_bytes()
    value = check.read_certificate(data)
    bound = value["model"]
    tensors = {file: (FOLDER / file).read_bytes() for file, _ in bound["tensors"]}
    model = lower.read_model((FOLDER / bound["file"]).read_bytes(), tensors)
    vocabulary = value["vocabulary"]["sha256"] if value["vocabulary"] else None
    seed = drawn_seed()
    rng, judge, refused = random.Random(seed), Judge(model), 0
    judged: dict[str, bool] = {}
    for _ in range(MUTANTS * FACTOR):
        changed = mutant(data, rng)
        started = time.monotonic()
        try:
            check.check_certificate(changed, model, vocabulary)
        except (check.Refused, check.Unusable):
            refused += 1
        else:
            value = json.loads(changed)
            claims = {key: value[key] for key in ("inputs", "words", "label", "rivals", "upper")}
            bounds = {key: value[key] and {**value[key], "tree": ""} for key in ("lower", "count")}
            key = json.dumps([claims, bounds], sort_keys=True)
            if key not in judged:
                judged[key] = judge.is_true(value)
            assert judged[key], f"seed {seed}: {changed!r}"
        assert time.monotonic() - started < 10, f"seed {seed}: {changed!r}"
    assert refused > 0
