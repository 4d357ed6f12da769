"""Claims about random smooth networks that only just hold: the least bias of the label's logit with which check.js
believes a tree is looked for, so that one unit more or less in any interval shows. Another checker must find the same.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from javascript_networks import CHECKER, SECONDS, canonical, sha256
from smooth_graphs import ROWS, STEPS, Step, smooth_model
from smooth_values import chains_of

from swapproof.proofs import check, lower

MARKS = (12345.678, 98765.432)
"""The biases in the model, of which the bytes are replaced: whole multiples of 2^-17, and of 2^-39 below that."""
FINE = 22
BITS = 39


def split(bias: int) -> tuple[float, float]:
    """Both exact float32 numbers."""
    return (bias >> FINE) / 2 ** (BITS - FINE), (bias % 2**FINE) / 2**BITS


# Reads jobs, one a line; answers with biases and trees: just believed and just not, or only refused.
DRIVER = r"""
const { swapproofChecker } = require(process.argv[1]);
const checker = swapproofChecker();
function canonical(x) {
  if (Array.isArray(x)) return `[${x.map(canonical).join()}]`;
  if (x === null || typeof x !== "object") return JSON.stringify(x);
  return `{${Object.keys(x).sort().map((key) => `"${key}":${canonical(x[key])}`).join()}}`;
}
function believed(job, bias, tree) {
  const model = Buffer.from(job.model, "base64");
  const coarse = Math.floor(bias / 2 ** 22);
  model.writeFloatLE(coarse / 2 ** 17, job.places[0]);
  model.writeFloatLE((bias - coarse * 2 ** 22) / 2 ** 39, job.places[1]);
  const certificate = JSON.parse(JSON.stringify(job.certificate));
  certificate.model.sha256 = checker.hex(checker.sha256(model));
  try {
    certificate.network = checker.lowered(new Uint8Array(model), certificate, () => null).hash;
  } catch (error) {
    return null;
  }
  if (tree !== null) certificate.lower.tree = tree;
  const bytes = new Uint8Array(Buffer.from(canonical(certificate)));
  const only = new Uint8Array(model);
  const run = { root: () => null, read: () => only, isFolder: false, strangers: [], seconds: 60 };
  return checker.checkAll({ certificates: [["c.json", () => bytes]], ...run }, () => {}) === 0;
}
for (const line of require("node:fs").readFileSync(0, "utf8").split("\n").filter((text) => text !== "")) {
  const job = JSON.parse(line);
  const found = [];
  let tree = null;
  for (tree of job.trees) {
    if (believed(job, job.high, tree)) break;
    found.push([job.high, tree, false]);
    tree = undefined;
  }
  if (tree !== undefined) {
    let [low, high] = [job.low, job.high];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (believed(job, middle, tree)) high = middle;
      else low = middle;
    }
    found.push([high, tree, true], [low, tree, false]);
  }
  console.log(JSON.stringify(found));
}
"""


def leb(*numbers: int) -> bytes:
    out = bytearray()
    for number in numbers:
        while number > 127:
            out.append(number % 128 + 128)
            number //= 128
        out.append(number)
    return bytes(out)


def mask(bits: Sequence[int], size: int) -> bytes:
    return sum(1 << bit for bit in bits).to_bytes((size + 7) // 8, "little")


EXPANSION = b"\x1a"


@dataclass
class Trees:
    """Draws trees over words with so many options, and so many rivals."""

    source: random.Random
    options: list[int]
    rivals: int
    segments: list[list[tuple[int, int, int]]]
    """Lists of segments to choose from; none: drawn."""
    only: bytes = b""
    """The leaf, if it is always of one kind."""
    chains: Sequence[tuple[int, int, int]] = ()
    """Of the network: first layer, layers, order."""

    def expansion(self) -> bytes:
        """With the chains of the network, or some of them, or a part, or in another order."""
        kept = [chain for chain in self.chains if self.source.random() < 0.9]
        numbers, end = [], 0
        for first, count, order in kept:
            if self.source.random() < 0.1:
                first, count = first + (moved := self.source.randrange(count)), count - moved
            numbers += [first - end, count, order if self.source.random() < 0.95 else 1 - order]
            end = first + count
        return EXPANSION + leb(self.source.choice([0, 1, 2, 9]), len(kept), *numbers)

    def leaf(self) -> bytes:
        if self.only == EXPANSION:
            return self.expansion()
        if self.only:
            return self.only
        if self.source.random() < 0.3:
            return b"\2"
        if self.segments and self.source.random() < 0.8:
            drawn = self.source.choice(self.segments)
        else:
            word = self.source.randrange
            pick = self.source.randint
            drawn = [(pick(0, 3), pick(1, 8), word(len(self.options))) for _ in range(pick(0, 2))]
        return bytes([24]) + leb(len(drawn), *(number for segment in drawn for number in segment))

    def draw(self, depth: int = 0) -> bytes:
        """`left` is by word what options a region has left."""
        return self.region([list(range(n)) for n in self.options], list(range(self.rivals)), depth)

    def region(self, left: list[list[int]], rivals: list[int], depth: int) -> bytes:
        kind = self.source.random()
        splits = [word for word, some in enumerate(left) if len(some) > 1]
        if depth < 3 and kind < 0.25 and splits:
            word = self.source.choice(splits)
            part = self.source.sample(left[word], self.source.randint(1, len(left[word]) - 1))
            rest = [option for option in left[word] if option not in part]
            halves = [self.region([*left[:word], some, *left[word + 1 :]], rivals, depth + 1) for some in (part, rest)]
            return bytes([4]) + leb(word) + mask(part, self.options[word]) + b"".join(halves)
        if depth < 3 and kind < 0.4:
            precision = self.source.choice([16, 17, 20, 24, 32, 48, 64])
            return bytes([11]) + leb(precision) + self.region(left, rivals, depth + 1)
        if depth < 3 and kind < 0.5 and len(rivals) > 1:
            part = rivals[:1]
            halves = [self.region(left, some, depth + 1) for some in (part, rivals[1:])]
            return bytes([7]) + mask(part, self.rivals) + b"".join(halves)
        return self.leaf()


def steps_as_segments(steps: int, layers: int, first: int, words: Sequence[int]) -> list[tuple[int, int, int]]:
    """A segment for each step of a recurrent layer, of so many layers each, behind `first` layers."""
    return [(first if step == 0 else 0, layers, words[step]) for step in range(steps)]


@dataclass(frozen=True)
class Claim:
    """A certificate with its model, and whether check.js believes it."""

    model: bytes
    certificate: dict[str, Any]
    believed: bool


def narrow_claims(
    seeds: Sequence[int],
    level: str | None = None,
    steps: Sequence[Step] | None = None,
    trees: int = 4,
    only: bytes = b"",
) -> list[Claim]:
    jobs = [make_job(seed, level, steps, trees, only) for seed in seeds]
    command = ["node", "-e", DRIVER, str(CHECKER)]
    text = "\n".join(json.dumps(job) for job in jobs)
    result = subprocess.run(command, input=text, capture_output=True, text=True, timeout=4 * SECONDS)
    assert result.returncode == 0, result.stderr[-2000:]
    claims = []
    for job, line in zip(jobs, result.stdout.splitlines(), strict=True):
        for bias, tree, believed in json.loads(line):
            model = bytearray(base64.b64decode(job["model"]))
            for place, value in zip(job["places"], split(bias), strict=True):
                struct.pack_into("<f", model, place, value)
            certificate = json.loads(canonical(job["certificate"]))
            certificate["model"]["sha256"] = sha256(bytes(model))
            certificate["lower"]["tree"] = tree
            claims.append(Claim(bytes(model), certificate, believed))
    return claims


def network_chains(model: bytes, text: list[int], words: list[Any]) -> list[tuple[int, int, int]]:
    found = lower.read_model(model).lower([["words", text]], words)
    network = check.Network(found.data, found.numbers, found.no_float32)
    return chains_of(check.Space(network, words, 0, text))


def make_job(
    seed: int, level: str | None, steps: Sequence[Step] | None, trees: int, only: bytes = b""
) -> dict[str, Any]:
    source = random.Random(seed)
    length = source.choice([2, 3, 4])
    drawn = steps if steps is not None else source.choices(STEPS, k=source.randint(1, 3))
    model = smooth_model(seed, length, drawn, biases=MARKS)
    marks = [struct.pack("<f", mark) for mark in MARKS]
    assert [model.count(mark) for mark in marks] == [1, 1]
    tokens = [source.randrange(ROWS) for _ in range(length)]
    words: list[tuple[int, list[list[int]]]] = []
    for position, token in enumerate(tokens):
        others = source.sample([t for t in range(ROWS) if t != token], source.choice([0, 1, 1, 2, 3]))
        if others or source.random() < 0.5:
            words.append((position, [[token], *([other] for other in others)]))
    if not words:
        words = [(0, [[tokens[0]], [(tokens[0] + 1) % ROWS]])]
    at = list(range(len(words)))
    segments = [
        steps_as_segments(len(words), layers, first, order)
        for layers in (2, 6, 7, 8) for first in (1, 2) for order in (at, at[::-1])
    ]  # fmt: skip
    classes = onnx.load_from_string(model).graph.output[0].type.tensor_type.shape.dim[1].dim_value
    chains = network_chains(model, tokens, words) if only == EXPANSION else []
    drawer = Trees(source, [len(options) for _, options in words], classes - 1, segments, only, chains)
    certificate: dict[str, Any] = {
        "format": "swapproof certificate", "version": 2, "id": 0, "vocabulary": None, "synonyms": None,
        "model": {"file": "model.onnx", "sha256": "", "tensors": []}, "text": sha256(b""), "network": "",
        "inputs": [["words", tokens]], "words": words, "label": 0, "rivals": [*range(1, classes)],
        "count": None, "upper": None,
        "lower": {
            "level": level or source.choice(["real", "real", "kernel"]), "recipe": "smooth-1",
            "swaps": source.randint(0, 3), "tree": "",
        },
    }  # fmt: skip
    return {
        "model": base64.b64encode(model).decode(), "places": [model.index(mark) for mark in marks],
        "certificate": certificate,
        "trees": [base64.b64encode(drawer.draw()).decode() for _ in range(trees)],
        "low": -(2**45), "high": 2**45,
    }  # fmt: skip


def write_claims(folder: Path, claims: Sequence[Claim], networks: Sequence[str]) -> None:
    """A run folder, each certificate with a model of its own."""
    (folder / "certificates").mkdir(parents=True)
    for number, (claim, network) in enumerate(zip(claims, networks, strict=True)):
        file = f"m{number}.onnx"
        (folder / file).write_bytes(claim.model)
        certificate = claim.certificate | {"id": number, "network": network}
        certificate["model"] = certificate["model"] | {"file": file}
        (folder / "certificates" / f"{number:06}.json").write_bytes(canonical(certificate))
