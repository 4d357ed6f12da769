"""For the tests of check.js: what it makes of an ONNX file, certificates in format 2, and the canonical network written
down from section 4.3 of FORMAT.md. Without any code of ours but check.js."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product as every_choice
from pathlib import Path
from typing import Any

from resident_checkers import Resident

SECONDS = 240
CHECKER = Path(__file__).parents[2] / "proofs" / "check.js"

# Reads a statement with a model a line; answers with the hash of its network, and its bytes if they are wanted.
DRIVER = r"""
const { swapproofChecker } = require(process.argv[1]);
const checker = swapproofChecker();
const said = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { model, inputs, words, files, whole } = JSON.parse(line);
  const open = (name) => new Uint8Array(Buffer.from(files[name], "base64"));
  try {
    const { hash, bytes } = checker.lowered(new Uint8Array(Buffer.from(model, "base64")), { inputs, words }, open);
    said(whole ? `${hash} ${checker.hex(bytes)}` : hash);
  } catch (error) {
    said(`none: ${error.message}`);
  }
});
"""

Inputs = list[list[Any]]
Words = list[list[Any]]
Choices = list[list[int]]


@dataclass(frozen=True)
class Statement:
    """What a network depends on."""

    model: bytes
    inputs: Inputs
    words: Words
    files: dict[str, bytes] | None = None

    def line(self, whole: bool) -> str:
        files = {name: base64.b64encode(data).decode() for name, data in (self.files or {}).items()}
        return json.dumps({
            "model": base64.b64encode(self.model).decode(), "inputs": self.inputs, "words": self.words,
            "files": files, "whole": whole,
        })  # fmt: skip


def lowered(statements: Sequence[Statement], whole: bool = False) -> list[str]:
    """What check.js says of each, in one process for all tests."""
    process = lowering()
    return [process.asked(statement.line(whole)) for statement in statements]


@cache
def lowering() -> Resident:
    return Resident("node", "-e", DRIVER, str(CHECKER))


def network_hashes(statements: Sequence[Statement]) -> list[str]:
    """A statement without a network gets zeros."""
    return ["0" * 64 if line.startswith("none: ") else line for line in lowered(statements)]


@dataclass(frozen=True)
class Text:
    """Inputs, and words with options; some positions may be under no word. A sentence is an option of each word."""

    inputs: Inputs
    words: Words

    def parts(self) -> dict[str, Any]:
        """As they stand in a certificate."""
        return {"inputs": self.inputs, "words": self.words}

    def sentences(self, swaps: int) -> list[tuple[int, ...]]:
        every = every_choice(*(range(len(options)) for _, options in self.words))
        return [sentence for sentence in every if sum(option > 0 for option in sentence) <= swaps]

    def read(self, sentence: tuple[int, ...]) -> list[int]:
        """What stands at all positions."""
        tokens = [token for _, original in self.inputs for token in original]
        for (start, options), option in zip(self.words, sentence, strict=True):
            tokens[start : start + len(options[0])] = options[option]
        return tokens


def random_text(inputs: Inputs, tokens: int, source: random.Random) -> Text:
    """Words of one or two positions, with up to four options of tokens below this number."""
    words: Words = []
    at = 0
    for role, original in inputs:
        end = at + len(original)
        while at < end:
            length = source.choice([1, 1, 1, 2]) if at + 1 < end else 1
            if role == "words" and source.random() < 0.9:
                first = original[len(original) - (end - at) :][:length]
                others = [[source.randrange(tokens) for _ in range(length)] for _ in range(source.randint(0, 3))]
                options = [first, *(option for option in others if option != first)]
                words.append([at, [option for i, option in enumerate(options) if option not in options[:i]]])
            at += length
        at = end
    return Text(inputs, words)


def one_by_one(choices: Choices) -> dict[str, Any]:
    """The text of one input whose words stand on one position each."""
    return {
        "inputs": [["words", [options[0] for options in choices]]],
        "words": [[position, [[token] for token in options]] for position, options in enumerate(choices)],
    }


@dataclass(frozen=True)
class Layer:
    kind: int
    size: int


def layers_of(data: bytes) -> list[Layer]:
    """The layers of a canonical network, read from its bytes."""
    at = len(b"swapproof net 2\n") + 8

    def take() -> int:
        nonlocal at
        at += 4
        return int.from_bytes(data[at - 4 : at], "little")

    def skip(count: int) -> None:
        nonlocal at
        at += count

    take()
    skip(36)
    layers = []
    for _ in range(take()):
        kind = take()
        if kind == 1:
            _, columns = take(), take()
            skip(36)
            count = take()
            skip(4 * count)
            size = columns * count
        elif kind == 2:
            for _ in range(take()):
                skip(4 * take())
            skip(4 * take() + 36)
            size = take()
            skip(8 * size + 36)
        elif kind == 3:
            skip(36)
            size = take()
            skip(4 * size)
        elif kind == 4:
            size = take()
            for _ in range(size):
                skip(4 * take())
        elif kind == 5:
            size = take()
            skip(8 * size)
        else:
            assert kind == 6
            take()
            size = take()
            skip(4 * size)
        layers.append(Layer(kind, size))
    skip(4 * take())
    assert at == len(data)
    return layers


# ---- certificates ----------------------------------------------------------------------------------------------------


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def claim(level: str, swaps: int, tree: bytes) -> dict[str, Any]:
    return {"level": level, "recipe": "linear-2", "swaps": swaps, "tree": base64.b64encode(tree).decode()}


def certificate(file: str, model: bytes, text: dict[str, Any], label: int, **more: Any) -> dict[str, Any]:
    """A certificate about two classes, spelt out key by key, that lacks its network. The text: inputs and words."""
    return {
        "format": "swapproof certificate", "version": 2, "id": 0, "vocabulary": None, "synonyms": None,
        "model": {"file": file, "sha256": sha256(model), "tensors": []}, "text": sha256(b""),
        "label": label, "rivals": [1 - label], "lower": None, "count": None, "upper": None, **text, **more,
    }  # fmt: skip


def with_networks(certificates: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """The same, each with its number and the hash of its network; the models and tensor files lie in the folder."""
    statements = []
    for data in certificates:
        files = {name: (folder / name).read_bytes() for name, _ in data["model"]["tensors"]}
        model = (folder / data["model"]["file"]).read_bytes()
        statements.append(Statement(model, data["inputs"], data["words"], files))
    hashes = network_hashes(statements)
    pairs = zip(certificates, hashes, strict=True)
    return [{**data, "id": number, "network": found} for number, (data, found) in enumerate(pairs)]


def write_certificates(folder: Path, certificates: Sequence[dict[str, Any]]) -> list[str]:
    """In a run folder that holds their models; gives their names."""
    (folder / "certificates").mkdir(parents=True, exist_ok=True)
    names = [f"{number:06}.json" for number in range(len(certificates))]
    for name, data in zip(names, with_networks(certificates, folder), strict=True):
        (folder / "certificates" / name).write_bytes(canonical(data))
    return names


# ---- the bytes of a network, from a plain description --------------------------------------------------------------


def u32(*numbers: int) -> bytes:
    return b"".join(struct.pack("<I", number) for number in numbers)


def numbers(values: Sequence[Fraction | float]) -> bytes:
    exact = [Fraction(value) for value in values]
    for form, letter in ((1, "<f"), (2, "<d")):
        try:
            written = [struct.pack(letter, value) for value in exact]
        except OverflowError:
            continue
        if [Fraction(struct.unpack(letter, data)[0]) for data in written] == exact:
            return u32(form) + hashlib.sha256(b"".join(written)).digest()
    texts = [f"{'-' * (x < 0)}{abs(x.numerator):x}/{x.denominator:x}" for x in exact]
    return u32(3) + hashlib.sha256(",".join(texts).encode()).digest()


def listed(items: Sequence[int]) -> bytes:
    return u32(len(items), *items)


def embedding(table: list[list[float]], positions: list[int]) -> bytes:
    return u32(1, len(table), len(table[0])) + numbers([x for row in table for x in row]) + listed(positions)


Row = tuple[Sequence[int], Sequence[Fraction | float], Fraction | float]


def affine(*rows: Row) -> bytes:
    """Each row: what it reads, its weights, its bias."""
    lists: list[Sequence[int]] = []
    weights: list[Sequence[Fraction | float]] = []
    for read, factors, _ in rows:
        lists += [read] if read not in lists else []
        weights += [factors] if factors not in weights else []
    out = u32(2, len(lists)) + b"".join(map(listed, lists)) + u32(len(weights), *map(len, weights))
    out += numbers([x for factors in weights for x in factors])
    out += u32(len(rows)) + b"".join(u32(lists.index(read), weights.index(factors)) for read, factors, _ in rows)
    return out + numbers([bias for _, _, bias in rows])


def rectifier(alpha: float, read: list[int]) -> bytes:
    return u32(3) + numbers([alpha]) + listed(read)


def maximum(*windows: list[int]) -> bytes:
    return u32(4, len(windows)) + b"".join(map(listed, windows))


def product(*pairs: tuple[int, int]) -> bytes:
    return u32(5, len(pairs), *(element for pair in pairs for element in pair))


def curve(function: int, read: Sequence[int]) -> bytes:
    return u32(6, function) + listed(read)


def network(
    layers: list[bytes], logits: list[int], positions: int, constants: Sequence[float] = (), float32: int = 1
) -> bytes:
    out = b"swapproof net 2\n" + u32(float32, positions, len(constants)) + numbers(constants) + u32(len(layers))
    return out + b"".join(layers) + listed(logits)
