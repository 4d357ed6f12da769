"""check.js on masks that are finite: which elements the limit of section 15.1 of FORMAT.md spares, by every leaf."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from both_checkers import verdicts_of
from graph_builder import Builder, floats, tokens
from javascript_networks import certificate, claim, one_by_one, write_certificates
from numpy.typing import ArrayLike

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

SENTENCES, BOXES, ATTENTION, EXPANSION = b"\2", b"\x18\0", b"\x19", b"\x1a\0\0"
LOW = -(2.0**128 - 2.0**104)
"""The lowest number of float32."""
LIMIT = 2.0**40
BESIDE = 2.0**17
"""Less than rounding widens an element of the size LIMIT by, at `kernel`."""


class Graph(Builder):
    """Three words of two numbers, `x`, and of shape (1, 1, 3), between 0 and 1: `front`, affine in the words, and
    `scores`, which are not."""

    def __init__(self) -> None:
        super().__init__()
        self.x = self.call("Gather", self.numbers([[1.0, 2.0], [3.0, -0.5], [0.25, 0.0]]), "tokens")
        first = self.call("Slice", self.x, self.wholes(0), self.wholes(1), self.wholes(2))
        self.front = self.call("Mul", self.call("Transpose", first, perm=[0, 2, 1]), self.numbers([0.25]))
        self.scores = self.call("Tanh", self.front)

    def numbers(self, values: ArrayLike) -> str:
        return self.constant(np.array(values, np.float32))

    def masked(self, scores: str, *masks: float) -> str:
        return self.call("Add", scores, self.numbers(masks))

    def greatest(self, scores: str) -> str:
        return self.call("ReduceMax", scores, self.wholes(2))

    def far(self, logits: str) -> str:
        """The second class is far before the first, whatever the words are."""
        return self.call("Add", logits, self.numbers([0.0, 64.0]))

    def mean(self, scores: str) -> str:
        """The logits of a softmax, step by step: so it has a level `kernel`."""
        self.differences = self.call("Sub", scores, self.greatest(scores))
        powers = self.call("Exp", self.differences)
        weights = self.call("Div", powers, self.call("ReduceSum", powers, self.wholes(2)))
        return self.far(self.call("MatMul", weights, self.x))

    def model(self, logits: str) -> bytes:
        model = self.proto([tokens(1, 3)], [floats(self.call("Flatten", logits), 1, "n")], opset=20)
        return bytes(model.SerializeToString())


Case = tuple[bool, Callable[[Graph], str]]
"""Logits, and whether their claims are believed."""


def of(*masks: float) -> Callable[[Graph], str]:
    return lambda g: g.mean(g.masked(g.scores, *masks))


def negated(g: Graph) -> str:
    return g.mean(g.masked(g.call("Neg", g.scores), *[-LIMIT] * 3))


def with_weight_0(g: Graph, logits: str, other: str) -> str:
    """The logits read this too, with weight 0."""
    return g.call("MatMul", g.call("Concat", logits, other, axis=2), g.numbers(np.eye(5, 2)))


def read_by(reader: Callable[[Graph, str], str], mask: float = LOW) -> Callable[[Graph], str]:
    def make(g: Graph) -> str:
        scores = g.masked(g.scores, 0.0, 0.0, mask)
        return with_weight_0(g, g.mean(scores), reader(g, scores))

    return make


def relu(g: Graph, scores: str) -> str:
    return g.call("Relu", scores)


def power(g: Graph, scores: str) -> str:
    return g.call("Exp", g.masked(scores, 0.5, 0.5, 0.5))


def sum_of_sums(g: Graph) -> str:
    """What is sunk, and its sum, are read by what is sunk too."""
    return g.mean(g.masked(g.masked(g.scores, 0.0, 0.0, LOW), 0.5, 0.25, 0.0))


def tanh_of_differences(is_front: bool) -> Callable[[Graph], str]:
    """The limit of differences is spared, for exp reads them too; that of scores is not, but in front."""

    def make(g: Graph) -> str:
        logits = g.mean(g.masked(g.front if is_front else g.scores, 0.0, 0.0, LOW))
        return with_weight_0(g, logits, g.call("Tanh", g.differences))

    return make


def relu_beside(g: Graph) -> str:
    """A layer that the logits need holds elements that they do not need."""
    scores = g.masked(g.scores, 0.0, 0.0, LOW)
    both = relu(g, g.call("Concat", g.mean(scores), scores, axis=2))
    return g.call("Slice", both, g.wholes(0), g.wholes(2), g.wholes(2))


def logits_too(g: Graph) -> str:
    scores = g.masked(g.scores, 0.0, 0.0, LOW)
    return g.call("Concat", g.mean(scores), scores, axis=2)


def of_pairs(mask: float) -> Callable[[Graph], str]:
    """The greatest of what depends on pairs of words: no word is its own, so the leaf `attention` needs its form."""

    def make(g: Graph) -> str:
        turned = g.call("Gather", g.scores, g.wholes(1, 2, 0), axis=2)
        pairs = g.call("ReduceSum", g.call("Mul", g.scores, turned), g.wholes(2))
        return g.far(g.call("Mul", g.greatest(g.masked(pairs, mask, mask)), g.numbers([0.0, 1 / LIMIT])))

    return make


REAL: list[Case] = [
    (True, of(0.0, 0.0, LOW)), (True, of(LOW, 0.0, LOW)), (False, of(LOW, LOW, LOW)),
    (True, of(-LIMIT, -LIMIT, -LIMIT)), (False, negated), (False, of(0.0, 0.0, LIMIT)),
    (False, read_by(relu)), (False, read_by(lambda _, scores: scores)), (True, read_by(power)), (True, sum_of_sums),
    (True, tanh_of_differences(is_front=True)), (False, tanh_of_differences(is_front=False)),
    (True, relu_beside), (False, logits_too),
    (True, of_pairs(BESIDE - LIMIT)), (False, of_pairs(-BESIDE - LIMIT)),
]  # fmt: skip
KERNEL: list[Case] = [
    (True, of(0.0, 0.0, BESIDE - LIMIT)), (False, read_by(relu, BESIDE - LIMIT)), (False, of(0.0, 0.0, LOW)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("level", "cases", "leaves"),
    [("real", REAL, (SENTENCES, BOXES, ATTENTION, EXPANSION)), ("kernel", KERNEL, (SENTENCES, BOXES))],
)
def test_what_is_sunk_may_be_low(level: str, cases: list[Case], leaves: Sequence[bytes], tmp_path: Path) -> None:
    certificates = []
    text = one_by_one([[0, 2], [2, 1], [0, 1, 2]])
    for number, (_, make) in enumerate(cases):
        g, name = Graph(), f"{number}.onnx"
        model = g.model(make(g))
        (tmp_path / name).write_bytes(model)
        for leaf in leaves:
            lower = claim(level, 2, leaf) | {"recipe": "smooth-1"}
            certificates.append(certificate(name, model, text, 1, lower=lower))
    write_certificates(tmp_path, certificates)
    expected = [is_believed for is_believed, _ in cases for _ in leaves]
    assert list(verdicts_of("check.js", tmp_path).values()) == expected


@pytest.mark.parametrize("checker", ["check.py", "check.js"])
def test_terms_that_cancel_are_not_looked_at_by_the_leaf_attention(checker: str, tmp_path: Path) -> None:
    """Of two logits that are the same, behind a line that is masked whole."""
    g, leaves = Graph(), {ATTENTION: True, BOXES: False}
    model = g.model(g.call("MatMul", g.mean(g.masked(g.scores, LOW, LOW, LOW)), g.numbers(np.ones((2, 2)))))
    (tmp_path / "alike.onnx").write_bytes(model)
    text = one_by_one([[0, 2], [2, 1], [0, 1, 2]])
    claims = [claim("real", 2, leaf) | {"recipe": "smooth-1"} for leaf in leaves]
    write_certificates(tmp_path, [certificate("alike.onnx", model, text, 0, lower=lower) for lower in claims])
    assert [*verdicts_of(checker, tmp_path).values()] == [*leaves.values()]
