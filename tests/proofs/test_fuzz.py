"""Mutants of accepted certificates: whatever is accepted is true, and nothing makes the checker crash or hang."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cases import FACTOR, drawn_seed
from proof_cases import exact_logits, sentences

from swapproof.proofs import check

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
    if isinstance(value, dict) and rng.random() < 0.9 and isinstance(value.get("choices"), list):
        value["space"] = hashlib.sha256(json.dumps(value["choices"], separators=(",", ":")).encode()).hexdigest()
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Judge:
    """The truth about the sentences of one model, by exact evaluation, remembered."""

    def __init__(self, model: check.Model) -> None:
        self.model = model
        self.known: dict[tuple[int, ...], list[Fraction]] = {}

    def logits(self, sentence: tuple[int, ...]) -> list[Fraction]:
        if sentence not in self.known:
            network = self.model.network(len(sentence), [[token] for token in sentence])
            self.known[sentence] = exact_logits(network, sentence)
        return self.known[sentence]

    def is_true(self, value: dict[str, Any]) -> bool:
        """All claims of a certificate, over the reals, by enumeration."""
        choices, label = tuple(map(tuple, value["choices"])), value["label"]

        def beaten(sentence: tuple[int, ...]) -> bool:
            z = self.logits(sentence)
            return any(z[r] > z[label] or (z[r] == z[label] and r < label) for r in value["rivals"])

        lower, upper, part = value["lower"], value["upper"], value["count"]
        if lower is not None and any(map(beaten, sentences(choices, lower["swaps"]))):
            return False
        if part is not None:
            lost = [beaten(sentence) for sentence in sentences(choices, part["swaps"])]
            fits = lost.count(False) >= int(part["robust"]) and lost.count(True) >= int(part["broken"])
            if int(part["total"]) != len(lost) or not fits:
                return False
        if upper is not None and set(upper["levels"]) & {"real", "float32"}:
            tokens = [options[0] for options in choices]
            for position, token in upper["swaps"]:
                tokens[position] = token
            return beaten(tuple(tokens))
        return True


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_no_mutant_is_accepted_unless_it_is_true(name: str) -> None:
    """Thousands of mutants of all accepted certificates; the survivors are enumerated."""
    data = (FOLDER / f"{name}.json").read_bytes()
    value = check.read_certificate(data)
    bound = value["model"]
    tensors = {file: (FOLDER / file).read_bytes() for file, _ in bound["tensors"]}
    model = check.read_model((FOLDER / bound["file"]).read_bytes(), tensors)
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
            claims = {key: value[key] for key in ("choices", "label", "rivals", "upper")}
            bounds = {key: value[key] and {**value[key], "tree": ""} for key in ("lower", "count")}
            key = json.dumps([claims, bounds], sort_keys=True)
            if key not in judged:
                judged[key] = judge.is_true(value)
            assert judged[key], f"seed {seed}: {changed!r}"
        assert time.monotonic() - started < 10, f"seed {seed}: {changed!r}"
    assert refused > 0
