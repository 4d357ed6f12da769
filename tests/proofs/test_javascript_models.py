"""check.js on random networks of all operators: it agrees with onnxruntime on sentences, with check.py on proofs."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from both_checkers import CHECKERS, verdicts_of
from graph_builder import Builder, tokens
from growing_networks import KINDS, POSITIONS, WORDS, random_network, run
from javascript_networks import (
    Layer,
    Statement,
    Text,
    certificate,
    claim,
    layers_of,
    lowered,
    one_by_one,
    random_text,
    write_certificates,
)  # fmt: skip
from onnx import TensorProto
from tree_bytes import leb128, mask, table

NETWORKS = 50
TIMES = 60 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


def random_tree(layers: list[Layer], text: Text, source: random.Random) -> bytes:
    """One or two splits by words, slopes, heights with stairs and joint groups for the network, and leaves."""
    sizes = [len(options) for _, options in text.words]
    splits = [word for word, size in enumerate(sizes) if size > 1]
    rectifiers = [number for number, layer in enumerate(layers) if layer.kind == 3]
    bent = [number for number, layer in enumerate(layers) if layer.kind in (3, 4)]
    leaf = source.choice([b"\1", b"\1", b"\1", b"\2"])
    kinds = ["leaf", "leaf"] + ["words"] * bool(splits) + ["slopes"] * 2 * bool(bent) + ["joint"] * bool(rectifiers)
    kind = source.choice(kinds)
    if kind == "words":
        first, second = source.choice(splits), source.choice(splits)
        node = bytes([4]) + leb128(first) + mask([0], sizes[first])
        if source.random() < 0.5 or first == second:
            return node + b"\1" + leaf
        others = mask(list(range(1, sizes[second])), sizes[second])
        return node + b"\1" + bytes([4]) + leb128(second) + others + b"\1" + leaf
    if kind == "leaf":
        return leaf
    number = source.choice(bent if kind == "slopes" else rectifiers)
    stairs = 7 if layers[number].kind == 4 else 8 * source.randint(0, 1) if kind == "slopes" else 0
    return bytes([8 if kind == "slopes" else 10, 1]) + table(number, layers[number].size, 64, source, stairs) + b"\1"


@pytest.mark.parametrize("part", range(TIMES))
def test_sentences_come_out_as_in_onnxruntime_and_proofs_as_in_check_py(tmp_path: Path, part: int) -> None:
    """Networks of all operators. Where onnxruntime sees a clear winner, the exact logits have the same; a certificate
    that says otherwise is refused. Proofs by random trees, at both levels, get one verdict from both checkers."""
    source = random.Random(20 + part)
    folder = tmp_path / "run"
    folder.mkdir()
    clear: dict[int, bool] = {}
    operators: Counter[str] = Counter()
    drafts: list[dict[str, Any]] = []
    drawn = [random_network(source) for _ in range(NETWORKS)]
    originals = [graph.originals() for _, graph in drawn]
    lines = lowered([Statement(m, inputs, []) for (m, _), inputs in zip(drawn, originals, strict=True)], whole=True)
    for network, (model, graph) in enumerate(drawn):
        used = graph.operators
        operators.update(set(used))
        file = f"m{network}.onnx"
        (folder / file).write_bytes(model)
        for _ in range(3):
            inputs = graph.originals()
            feeds = {name: tokens for name, (_, tokens) in zip(graph.inputs, inputs, strict=True)}
            [[first, second]] = run(model, feeds)[0].tolist()
            if abs(first - second) > 1e-3 * (1 + abs(first) + abs(second)):
                winner = 0 if first > second else 1
                for label in (0, 1):
                    clear[len(drafts)] = label == winner
                    text = {"inputs": inputs, "words": []}
                    drafts.append(certificate(file, model, text, label, lower=claim("real", 0, b"\2")))
        # The layers of a model are the same for all its texts, but for what is computed from tokens.
        layers = [] if lines[network].startswith("none") else layers_of(bytes.fromhex(lines[network].split()[1]))
        for _ in range(6):
            label = source.randint(0, 1)
            words = random_text(graph.originals(), WORDS, source)
            level = "real" if "BatchNormalization" in used else source.choice(["real", "float32"])
            lower = claim(level, source.randint(0, 3), random_tree(layers, words, source))
            drafts.append(certificate(file, model, words.parts(), label, lower=lower))
    names = write_certificates(folder, drafts)
    number = len(names)
    javascript = verdicts_of("check.js", folder)
    assert {index: javascript[names[index]] for index in clear} == clear
    python = verdicts_of("check.py", folder)
    assert python == javascript
    assert part > 0 or set(operators) >= set(KINDS), set(KINDS) - set(operators)
    assert sum(javascript.values()) > number / 10
    assert sum(not accepted for accepted in javascript.values()) > number / 10


# ---- one hidden layer, all joint: the border of acceptance by brute force ----------------------------------------


def sentences(choices: list[list[int]], swaps: int) -> list[tuple[int, ...]]:
    """As numbers of choices; 0 is the original."""
    every = itertools.product(*(range(len(position)) for position in choices))
    return [sentence for sentence in every if sum(number > 0 for number in sentence) <= swaps]


def joint_bound(inputs: list[list[Fraction]], coefficients: list[int], slopes: list[Fraction]) -> Fraction:
    """min over sentences of sum c a x, less T = max over sentences and patterns d of sum |c| (d - a) x, for c < 0.

    `inputs` are the pre-activations x of every sentence of the region.
    """
    weighted = list(zip(coefficients, slopes, strict=True))
    least = min(sum(c * a * x for (c, a), x in zip(weighted, xs, strict=True)) for xs in inputs)
    # The best pattern of a sentence takes the greater end for each element.
    most = max(sum(max(c * a * x, -c * (1 - a) * x) for (c, a), x in zip(weighted, xs, strict=True)) for xs in inputs)
    return Fraction(least - most)


@pytest.mark.parametrize("part", range(TIMES))
def test_a_joint_leaf_holds_from_the_exact_bound_on(tmp_path: Path, part: int) -> None:
    """Words that differ in the last bits only, so floating point cannot tell which swap or pattern is the best: with
    the bias that brute force finds a claim is proved, with the next lower one it is not; by both checkers."""
    source = random.Random(5 + part)
    folder = tmp_path / "run"
    folder.mkdir()
    expected: list[bool] = []
    drafts = []
    for case in range(20):
        width, hidden = source.randint(1, 2), source.randint(1, 8)
        far = source.choice([0, 2**8, 2**42, 2**42])
        words = [[source.choice([-far, far]) + source.randint(-3, 3) for _ in range(width)] for _ in range(WORDS)]
        weights = [[source.choice([-1, 0, 1, 2]) for _ in range(POSITIONS * width)] for _ in range(hidden)]
        coefficients = [-source.randint(1, 3) for _ in range(hidden)]
        # With slopes 0 and 1 the bias is whole, and a double.
        values = [source.choice([0, 64, 64 if far == 2**42 else source.randint(0, 64)]) for _ in range(hidden)]
        choices = [source.sample(range(WORDS), source.randint(1, 4)) for _ in range(POSITIONS)]
        swaps = source.randint(1, POSITIONS)
        region = sentences(choices, swaps)
        joint = bytes([10, 1, 2, hidden, 0, values[0]]) + b"".join(bytes([1, value]) for value in values[1:])
        # One word keeps its original, or not.
        split = source.choice([None, *(word for word, options in enumerate(choices) if len(options) > 1)])
        regions = [region]
        tree = joint + b"\1"
        if split is not None:
            regions = [[s for s in region if (s[split] > 0) == side] for side in (False, True)]
            tree = joint + bytes([4, split]) + mask([0], len(choices[split])) + b"\1\1"

        def pre_activations(sentence: tuple[int, ...], weights: list[list[int]] = weights) -> list[Fraction]:
            tokens = [position[number] for position, number in zip(choices, sentence, strict=True)]  # noqa: B023
            flat = [x for token in tokens for x in words[token]]  # noqa: B023
            return [Fraction(sum(w * x for w, x in zip(row, flat, strict=True))) for row in weights]

        slopes = [Fraction(value, 64) for value in values]
        bounds = [joint_bound([pre_activations(s) for s in part], coefficients, slopes) for part in regions if part]
        for less in (0, 1):
            bias = -min(bounds) - Fraction(less, 1 if far == 2**42 else 64)
            assert Fraction(float(bias)) == bias
            numbers = {
                "words": words, "weights": weights, "bias": [0] * hidden,
                "out": [coefficients, [0] * hidden], "shift": [float(bias), 0],
            }  # fmt: skip
            file = f"m{case}_{less}.onnx"
            (folder / file).write_bytes(double_network(numbers))
            claims = {"lower": claim("real", swaps, tree)}
            drafts.append(certificate(file, (folder / file).read_bytes(), one_by_one(choices), 0, **claims))
            expected.append(less == 0)
    names = write_certificates(folder, drafts)
    for checker in CHECKERS:
        assert verdicts_of(checker, folder) == dict(zip(names, expected, strict=True)), checker


def double_network(numbers: dict[str, Any]) -> bytes:
    """One hidden layer, in DOUBLE; its Relu is layer 2."""
    g = Builder()
    names = ("words", "weights", "bias", "out", "shift")
    words, weights, bias, out, shift = (g.constant(np.array(numbers[name], np.float64)) for name in names)
    flat = g.call("Flatten", g.call("Gather", words, "tokens"))
    hidden = g.call("Relu", g.call("Gemm", flat, weights, bias, transB=1))
    g.node("Gemm", [hidden, out, shift], ["logits"], transB=1)
    model = g.proto([tokens(1, POSITIONS)], [("logits", TensorProto.DOUBLE, [1, 2])])
    return bytes(model.SerializeToString())
