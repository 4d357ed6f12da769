"""Runs the checkers of boxes and balls, check_box.py, check_ball.py and check.js, on the same certificates; and writes
such certificates by FORMAT.md, without any code of ours."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from graph_builder import Builder, floats
from javascript_networks import CHECKER
from smooth_graphs import STEPS, Graph

from swapproof.proofs import check_ball, check_box

# Answers a line {"folder", "text"} with the exit code for this certificate alone; files lie in the folder.
DRIVER = r"""
const { readFileSync, existsSync } = require("node:fs");
const checker = require(process.argv[1]).swapproofChecker();
const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { folder, text } = JSON.parse(line);
  const read = (name) => (existsSync(`${folder}/${name}`) ? readFileSync(`${folder}/${name}`) : null);
  const certificates = [["certificate.json", () => Buffer.from(text, "latin1")]];
  const job = { certificates, root: () => null, read, beside: read, isFolder: false, strangers: [], seconds: 600 };
  const said = [];
  const code = checker.checkAll(job, (words) => said.push(words));
  console.log(JSON.stringify([code, said]));
});
"""
Slopes = dict[int, dict[int, int]]
Certificate = dict[str, Any]


class Twins:
    """Both checkers in one process each. `code` is what both say."""

    def __init__(self) -> None:
        command = ["node", "-e", DRIVER, str(CHECKER)]
        self.node = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        self.node.communicate()

    def javascript(self, folder: Path, text: bytes) -> tuple[int, list[str]]:
        assert self.node.stdin is not None
        assert self.node.stdout is not None
        self.node.stdin.write(json.dumps({"folder": str(folder), "text": text.decode("latin1")}) + "\n")
        self.node.stdin.flush()
        code, said = json.loads(self.node.stdout.readline())
        return code, said

    def python(self, folder: Path, text: bytes) -> tuple[int, list[str]]:
        path = folder / "certificate.json"
        path.write_bytes(text)
        said = io.StringIO()
        program = check_ball if b'"swapproof ball certificate"' in text else check_box
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = program.main([str(path)])
        return code, said.getvalue().splitlines()

    def code(self, folder: Path, text: bytes) -> int:
        theirs, ours = self.python(folder, text), self.javascript(folder, text)
        assert theirs[0] == ours[0], (theirs, ours, text)
        return ours[0]


# ----------------------------------------------------------------------------------------------- trees (section 14.3)


def number(n: int) -> bytes:
    found = bytearray()
    while n > 127:
        found.append(n % 128 + 128)
        n //= 128
    return bytes([*found, n])


def integer(z: int) -> bytes:
    return number(2 * z if z >= 0 else -2 * z - 1)


def table(slopes: Slopes) -> bytes:
    found = number(len(slopes))
    for layer in sorted(slopes):
        places = sorted(slopes[layer])
        found += number(layer) + number(len(places))
        for place, before in zip(places, [0, *places], strict=False):
            found += number(place - before) + number(slopes[layer][place])
    return found


def multipliers(
    weights: Sequence[int], slopes: Slopes | None = None, finer: int = 0, betas: Slopes | None = None
) -> bytes:
    return b"".join(map(number, weights)) + table(slopes or {}) + number(finer) + table(betas or {})


def leaf(*given: Any) -> bytes:
    return b"\1" + multipliers(*given)


def cut(*given: Any) -> bytes:
    return b"\2" + multipliers(*given)


RENEW = b"\3"


def at_input(place: int, finer: int, z: int) -> bytes:
    return b"\4" + number(place) + number(finer) + integer(z)


def at_phase(layer: int, place: int) -> bytes:
    return b"\5" + number(layer) + number(place)


@dataclass(frozen=True)
class Drawn:
    """Random trees about so many inputs, constraints, and rectifiers (layer, elements)."""

    source: random.Random
    inputs: int
    constraints: int
    rectifiers: Sequence[tuple[int, int]]
    kinds: str = "ccc-iipp"

    def multipliers(self) -> bytes:
        source = self.source

        def some(highest: int) -> Slopes:
            return {
                layer: {i: source.randint(0, highest) for i in source.sample(range(size), source.randint(1, size))}
                for layer, size in self.rectifiers
                if source.random() < 0.6
            }

        weights = [source.choice([0, 1, 1, 2, 3, 1000003]) for _ in range(self.constraints)]
        weights[source.randrange(self.constraints)] += 1
        return multipliers(weights, some(64), source.randint(0, 3), some(4))

    def tree(self, depth: int, phased: frozenset[tuple[int, int]] = frozenset()) -> bytes:
        source = self.source
        if depth == 0:
            return b"\1" + self.multipliers()

        def rest(more: frozenset[tuple[int, int]] = phased) -> bytes:
            return self.tree(depth - 1 if source.random() < 0.8 else 0, more)

        kind = source.choice(self.kinds)
        free = [(layer, i) for layer, size in self.rectifiers for i in range(size) if (layer, i) not in phased]
        if kind == "c":
            return b"\2" + self.multipliers() + rest()
        if kind == "i":
            finer = source.choice([0, 3, 5, 64])
            z = source.randint(-5 * 2**finer // 2, 5 * 2**finer // 2)
            return at_input(source.randrange(self.inputs), finer, z) + rest() + rest()
        if kind == "p" and free:
            chosen = source.choice(free)
            return at_phase(*chosen) + rest(phased | {chosen}) + rest(phased | {chosen})
        return RENEW + rest()


# --------------------------------------------------------------------------------------------------------- networks


@dataclass(frozen=True)
class Mixed:
    """A model of numbers: its bytes, inputs, outputs, the hash of its network, and its rectifiers (layer, elements)."""

    data: bytes = field(repr=False)
    inputs: int
    outputs: int
    network: str = field(repr=False)
    rectifiers: Sequence[tuple[int, int]]

    @property
    def files(self) -> Certificate:
        """The part of a certificate about it."""
        digest = hashlib.sha256(self.data).hexdigest()
        model = {"file": "model.onnx", "sha256": digest, "tensors": []}
        return {"inputs": self.inputs, "model": model, "network": self.network, "outputs": self.outputs}


def measured(data: bytes) -> Mixed:
    """With what the network is, by its bytes as check.js writes them."""
    script = (
        "const c = require(process.argv[1]).swapproofChecker(); const text = require('fs').readFileSync(0, 'latin1');"
        "const {hash, bytes} = c.lowered(new Uint8Array(Buffer.from(text, 'base64')), {}, null);"
        "console.log(hash + ' ' + c.hex(bytes));"
    )
    command = ["node", "-e", script, str(CHECKER)]
    made = subprocess.run(command, input=base64.b64encode(data).decode(), capture_output=True, text=True, check=True)
    digest, text = made.stdout.split()
    return Mixed(data, *sizes_of(bytes.fromhex(text)), digest, rectifiers_of(bytes.fromhex(text)))


@dataclass
class Bytes:
    """Read from section 4.3: `numbers` are not looked at."""

    data: bytes
    at: int = 16

    def u32(self) -> int:
        self.at += 4
        return int.from_bytes(self.data[self.at - 4 : self.at], "little")

    def u32s(self, count: int) -> None:
        self.at += 4 * count

    def lists(self) -> int:
        count = self.u32()
        for _ in range(count):
            self.u32s(self.u32())
        return count

    def numbers(self) -> None:
        self.at += 36

    def affine(self) -> int:
        self.lists()
        self.u32s(self.u32())
        self.numbers()
        size = self.u32()
        self.u32s(2 * size)
        self.numbers()
        return size

    def rectifier(self) -> int:
        self.numbers()
        size = self.u32()
        self.u32s(size)
        return size

    def pairs(self) -> int:
        size = self.u32()
        self.u32s(2 * size)
        return size

    def curve(self) -> int:
        self.u32()
        size = self.u32()
        self.u32s(size)
        return size


def layers_of(data: bytes) -> tuple[list[tuple[int, int]], int]:
    """Kind and number of elements of each layer, and the number of logits."""
    page = Bytes(data)
    page.u32s(3)
    page.numbers()
    found = []
    for _ in range(page.u32()):
        kind = page.u32()
        kinds = {0: page.u32, 2: page.affine, 3: page.rectifier, 4: page.lists, 5: page.pairs, 6: page.curve}
        size = kinds[kind]()
        found.append((kind, size))
    return found, page.u32()


def sizes_of(data: bytes) -> tuple[int, int]:
    layers, logits = layers_of(data)
    return layers[0][1], logits


def rectifiers_of(data: bytes) -> list[tuple[int, int]]:
    return [(place, size) for place, (kind, size) in enumerate(layers_of(data)[0]) if kind == 3]


def mixed_model(seed: int) -> bytes:
    """Rectifiers of inputs, and several of one element; maxima of inputs, rectifiers and sums; numbers among variables,
    also very small ones; layers that read all of these; weights that are no float numbers (1/3)."""
    source, random_numbers, g = random.Random(seed), np.random.default_rng(seed), Builder()
    inputs, outputs, whole = source.randint(1, 5), source.randint(2, 4), source.random() < 0.4
    tiny = source.choice([1.0, 2.0**-30, 2.0**-70])

    def numbers(*shape: int) -> str:
        drawn = random_numbers.integers(-2, 3, size=shape) if whole else random_numbers.normal(size=shape)
        return g.constant((drawn if whole else drawn / np.sqrt(max(1, shape[0]))).astype(np.float32))

    pool = [("X", inputs)]
    for _ in range(source.randint(2, 6)):
        at, width = source.choice([*pool[-3:], source.choice(pool)])
        alike = [name for name, other in pool if other == width]
        match source.choice(
            ["Gemm", "Gemm", "Relu", "Relu", "Leaky", "Max", "Reduce", "Add", "Concat", "number", "Abs", "third"]
        ):
            case "Gemm":
                at, width = g.call("Gemm", at, numbers(width, after := source.randint(1, 5)), numbers(after)), after
            case "Relu":
                at = g.call("Relu", at)
            case "Leaky":
                at = g.call("LeakyRelu", at, alpha=source.choice([0.1, 0.5, 1.0, 0.0]))
            case "Max":
                at = g.call("Max", at, *source.choices(alike, k=source.randint(1, 2)))
            case "Reduce":
                at, width = g.call("ReduceMax", at, axes=[1], keepdims=1), 1
            case "Add":
                at = g.call("Add", at, source.choice(alike))
            case "Concat":
                other, more = source.choice(pool)
                at, width = g.call("Concat", at, other, axis=1), width + more
            case "number":
                small = g.constant((random_numbers.normal(size=(1, 1)) * tiny).astype(np.float32))
                at, width = g.call("Concat", small, at, axis=1), width + 1
            case "Abs":
                at = g.call("Abs", at)
            case _:
                at = g.call("Mul", at, g.constant(np.float32(1 / 3)))
        if width <= 12:
            pool.append((at, width))
    at, width = pool[-1]
    g.node("Gemm", [at, numbers(width, outputs), numbers(outputs)], ["Y"])
    return bytes(g.proto([floats("X", 1, inputs)], [floats("Y", 1, outputs)], opset=13).SerializeToString())


def smooth_numbers_model(seed: int) -> bytes:
    """Vectors of three words, a few steps of smooth operators, logits."""
    g = Graph(seed, runs=True)
    value: Any = ("X", (1, 3, 2))
    for step in g.source.choices(STEPS, k=g.source.randint(1, 3)):
        value = step(g, value)
    pooled = g.call("Reshape", g.call("Identity", value[0]), g.wholes(1, -1))
    logits = g.call("Gemm", pooled, g.constant(g.numbers(int(np.prod(value[1])), 2)))
    opset = 20 if any(node.op_type in ("Gelu", "ReduceL2", "ReduceSumSquare") for node in g.nodes) else 17
    for node in g.nodes if opset == 20 else ():
        for axes in [each for each in node.attribute if each.name == "axes" and node.op_type == "ReduceMean"]:
            node.input.append(g.wholes(*axes.ints))
            node.attribute.remove(axes)
    return bytes(g.proto([floats("X", 1, 3, 2)], [floats(logits, 1, 2)], opset=opset).SerializeToString())


# ------------------------------------------------------------------------------------------------------ certificates


def canonical(certificate: Certificate) -> bytes:
    return json.dumps(certificate, sort_keys=True, separators=(",", ":")).encode()


def encoded(tree: bytes) -> str:
    return base64.b64encode(tree).decode()


def fact(coefficients: dict[str, Any], constant: Any, strict: int = 0) -> Certificate:
    return {"coefficients": {k: str(v) for k, v in coefficients.items()}, "constant": str(constant), "strict": strict}


def box_case(box: Sequence[Sequence[Any]], facts: Sequence[Certificate], tree: bytes) -> Certificate:
    return {"box": [[str(end) for end in pair] for pair in box], "constraints": list(facts), "tree": encoded(tree)}


def boxes(model: Mixed, cases: Sequence[Certificate]) -> Certificate:
    head = {"format": "swapproof box certificate", "version": 2, "recipe": "box-2"}
    return {**head, **model.files, "query": {"file": "q.vnnlib", "sha256": "0" * 64}, "cases": list(cases)}


def numbers_in(form: int, values: Sequence[float]) -> Certificate:
    return {"form": form, "numbers": encoded(np.array(values, dtype=f"<f{4 * form}").tobytes())}


def ball(free: Sequence[Sequence[int]], radius: Any, trees: Sequence[bytes]) -> Certificate:
    return {"free": [list(run) for run in free], "radius": str(radius), "trees": [encoded(tree) for tree in trees]}


def balls(model: Mixed, center: Sequence[float], cases: Sequence[Certificate], **changes: Any) -> Certificate:
    head = {"format": "swapproof ball certificate", "version": 1, "recipe": "ball-1"}
    rest = {"center": numbers_in(1, center), "widths": numbers_in(2, [1.0]), "label": 0, "rivals": [1], "norm": "l2"}
    return {**head, **model.files, **rest, "cases": list(cases), **changes}


def runs_of(free: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for i in free:
        if runs and sum(runs[-1]) == i:
            runs[-1][1] += 1
        else:
            runs.append([i, 1])
    return runs


def drawn_boxes(model: Mixed, source: random.Random, kinds: str = "ccc-iipp") -> Certificate:
    facts = []
    for _ in range(source.randint(1, 3)):
        coefficients: dict[str, Any] = {}
        for j in range(model.outputs):
            if source.random() < 0.8:
                coefficients[f"Y_{j}"] = source.choice([-1, 1, Fraction(source.randint(1, 9), 7), Fraction(-5, 3)])
        for j in range(model.inputs):
            if source.random() < 0.2:
                coefficients[f"X_{j}"] = source.choice([-1, Fraction(2, 3), 1])
        facts.append(
            fact(coefficients, Fraction(source.randint(-20, 20), source.choice([3, 4, 8])), source.randint(0, 1))
        )
    box = [
        sorted(Fraction(source.randint(-40, 40), source.choice([16, 16, 3, 5])) for _ in range(2))
        for _ in range(model.inputs)
    ]
    tree = Drawn(source, model.inputs, len(facts), model.rectifiers, kinds).tree(source.randint(0, 5))
    return boxes(model, [box_case(box, facts, tree)])


def drawn_balls(model: Mixed, source: random.Random, kinds: str = "ccc-iipp") -> Certificate:
    free = sorted(source.sample(range(model.inputs), source.randint(1, model.inputs)))
    center = [source.choice([source.gauss(0, 1), source.randint(-2, 2) / 4]) + 0.0 for _ in range(model.inputs)]
    size = source.choice([d for d in range(1, model.inputs + 1) if model.inputs % d == 0])
    label = source.randrange(model.outputs)
    rivals = sorted(
        source.sample([c for c in range(model.outputs) if c != label], source.randint(1, model.outputs - 1))
    )
    # In the network of a case a layer may have fewer elements: mostly trees name its first one.
    rectifiers = [(layer, 1) for layer, _ in model.rectifiers] if source.random() < 0.7 else []
    trees = [Drawn(source, len(free), 1, rectifiers, kinds).tree(source.randint(0, 4)) for _ in rivals]
    widths = numbers_in(2, [source.choice([1.0, 0.5, 0.1, 2.0]) for _ in range(size)])
    case = ball(runs_of(free), Fraction(1, 2), trees)
    norm = source.choice(["l2", "linf"])
    return balls(model, center, [case], widths=widths, label=label, rivals=rivals, norm=norm)


def drawn_forms(model: Mixed, source: random.Random) -> Certificate:
    """Without trees (section 16.6)."""
    made = drawn_balls(model, source)
    for case in made["cases"]:
        del case["trees"]
    return {**made, "recipe": "forms-1", "precision": source.choice([16, 20, 32, 57, 64, 100, 256])}
