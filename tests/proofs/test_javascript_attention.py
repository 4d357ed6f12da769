"""check.js and check.py on the leaf `attention`: of small transformers, just above and just below what it proves."""

from __future__ import annotations

import base64
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attending_networks import LENGTH, ROWS, Shape, transformer
from both_checkers import CHECKERS, agree_on_each
from graph_builder import Builder, floats, tokens
from javascript_networks import certificate, write_certificates

from swapproof.proofs import check, lower

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

LEAF = b"\x19"
BIAS = struct.pack("<2f", 0.5, 0)
"""Of the last layer of `transformer`."""
NEAR = 0.001
SHAPES = (
    Shape(size=0.3),
    Shape(size=0.3, first=True, curve="Gelu", pooling="max"),
    Shape(heads=1, size=0.3, curve="Tanh", masked=1, pooled="Tanh"),
    Shape(heads=1, size=0.3, first=True, pooling="first", shifted=False, pooled="Relu"),
)


def text_of(rng: random.Random) -> dict[str, Any]:
    """Words on most positions, of up to four options."""
    original = [rng.randrange(ROWS) for _ in range(LENGTH)]
    words = []
    for position in sorted(rng.sample(range(LENGTH), 4)):
        others = rng.sample([t for t in range(ROWS) if t != original[position]], rng.randint(1, 3))
        words.append([position, [[token] for token in (original[position], *others)]])
    return {"inputs": [["words", original]], "words": words}


def bound_of(model: bytes, text: dict[str, Any], swaps: int, precision: int) -> float:
    """What check.py proves of the first class against the second."""
    found = lower.read_model(model).lower(text["inputs"], text["words"])
    network = check.Network(found.data, found.numbers, found.no_float32)
    space = check.Space(network, text["words"], 0, text["inputs"][0][1])
    leaf = space.attention(precision)
    above, below = leaf.margin(leaf.view(space.masks, swaps), 1)
    return float(above / below)


def lower_claim(swaps: int, tree: bytes) -> dict[str, Any]:
    return {"level": "real", "recipe": "smooth-1", "swaps": swaps, "tree": base64.b64encode(tree).decode()}


def test_both_believe_the_same(tmp_path: Path) -> None:
    certificates: list[dict[str, Any]] = []
    expected = []
    for seed, shape in enumerate(SHAPES):
        rng = random.Random(seed)
        text, model = text_of(rng), transformer(shape, seed)
        assert model.count(BIAS) == 1
        swaps, precision = 1 + seed % 2, (32, 48)[seed // 2]
        bound = bound_of(model, text, swaps, precision)
        split = bytes([4, 0, 1]) + LEAF + LEAF  # the first word: its original, and the others
        at = bytes([11, precision])
        for number, (bias, trees) in enumerate((
            (0.5 - bound + NEAR, (at + LEAF, at + split, at + LEAF + LEAF, at, at + b"\x1a")),
            (0.5 - bound - NEAR, (at + LEAF,)),
        )):  # fmt: skip
            file = f"{seed}-{number}.onnx"
            data = model.replace(BIAS, struct.pack("<2f", bias, 0))
            (tmp_path / file).write_bytes(data)
            certificates += [certificate(file, data, text, 0, lower=lower_claim(swaps, tree)) for tree in trees]
        expected += [True, True, False, False, False, False]
    kernel = {**certificates[0]["lower"], "level": "kernel"}
    certificates.append({**certificates[0], "lower": kernel})
    write_certificates(tmp_path, certificates)
    assert agree_on_each(tmp_path) == [*expected, False]


def swapped_product(folder: Path) -> Path:
    """Of x and 1024 tanh(u): a swap adds 1000 to x, and rounding at precision 16 loses nearly a unit of tanh(u). The
    bias is such that the label loses by 9 when one word is swapped."""
    b = Builder()
    table = np.array([[0, 0], [1000, 0.6088104248046875]], np.float32)
    sums = b.call("ReduceSum", b.call("Gather", b.constant(table), "tokens"), b.wholes(1), keepdims=0)
    x, u = [b.call("Slice", sums, b.wholes(at), b.wholes(at + 1), b.wholes(1)) for at in range(2)]
    y = b.call("Mul", b.call("Tanh", u), b.constant(np.array([1024], np.float32)))
    weights, bias = [b.constant(np.array(values, np.float32)) for values in ([[0, 1]], [556318.75, 0])]
    b.node("Gemm", [b.call("Mul", x, y), weights, bias], ["out"])
    data = bytes(b.proto([tokens(1, 3)], [floats("out", 1, 2)], opset=20).SerializeToString())
    (folder / "model.onnx").write_bytes(data)
    text = {"inputs": [["words", [0, 0, 0]]], "words": [[position, [[0], [1]]] for position in range(3)]}
    write_certificates(folder, [certificate("model.onnx", data, text, 0, lower=lower_claim(1, b"\x0b\x10" + LEAF))])
    return folder


@pytest.mark.parametrize("checker", ["check.py", "check.js"])
def test_what_rounding_loses_is_multiplied_by_what_a_swap_adds(checker: str, tmp_path: Path) -> None:
    result = subprocess.run([*CHECKERS[checker], str(swapped_product(tmp_path))], capture_output=True, text=True)
    assert result.returncode == 4, result.stdout


def test_limits_of_the_leaf(tmp_path: Path) -> None:
    """Precisions, no swaps and too many, and numbers so large that an interval or an exponent passes its limit."""
    certificates: list[dict[str, Any]] = []
    for number, size in enumerate((0.3, 3.0, 40.0, 3e5)):
        data = transformer(Shape(heads=1, size=size, shifted=size < 40), number).replace(
            BIAS, struct.pack("<2f", 64, 0)
        )
        (tmp_path / f"{number}.onnx").write_bytes(data)
        text = text_of(random.Random(number))
        trees = [(1, bytes([11, q]) + LEAF) for q in (15, 16, 64, 65)] + [(k, LEAF) for k in (0, 4, 10**6)]
        certificates += [
            certificate(f"{number}.onnx", data, text, 0, lower=lower_claim(swaps, tree)) for swaps, tree in trees
        ]
    write_certificates(tmp_path, certificates)
    found = agree_on_each(tmp_path)
    assert found[:7] == [False, True, True, False, True, True, True]
    assert found.count(False) > 14
