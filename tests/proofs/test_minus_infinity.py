"""Minus infinity is read as it is: by all who lower, to one network, which computes what onnxruntime computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_builder import Builder
from smooth_cases import LENGTH, WIDTH, f32, model, session

from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.evaluation import logits
from swapproof.encodings.onnx_files.adaptation import adapted, write_model
from swapproof.encodings.onnx_files.model_ports import Scores
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.proofs import lower

Made = Callable[[Builder, str, Any], str]
LOW: Any = np.float32(-np.inf)
TEXTS = ([1, 2, 3, 4, 5], [3, 8, 7, 0, 0], [6, 0, 0, 0, 0])


def padding(b: Builder) -> str:
    """[1, LENGTH], where token 0 is."""
    return b.call("Equal", "tokens", b.constant(np.array(0)))


def mask(b: Builder, low: Any = LOW) -> str:
    """[1, LENGTH]: this number where the padding is, and 0."""
    return b.call("Where", padding(b), b.constant(np.float32(low)), b.constant(f32(0)))


def normal(b: Builder, rng: Any, *shape: int, size: float = 1.0) -> str:
    return b.constant((size * rng.normal(size=shape)).astype(np.float32))


def attention(masked: Callable[[Builder, str], str], size: float = 1.0, after: str = "") -> Made:
    """One head; `masked` makes the scores [1, LENGTH, LENGTH] what they are."""

    def made(b: Builder, x: str, rng: Any) -> str:
        q, k, v = [b.call("MatMul", x, normal(b, rng, WIDTH, 3, size=size)) for _ in range(3)]
        scores = b.call("MatMul", q, b.call("Transpose", k, perm=[0, 2, 1]))
        shares = b.call("Softmax", masked(b, scores))
        return b.call("MatMul", b.call(after, shares) if after else shares, v)

    return made


def causal(b: Builder) -> str:
    return b.constant(np.triu(np.full((LENGTH, LENGTH), LOW), 1))


def pooled(b: Builder, x: str, rng: Any) -> str:
    """Words weigh what they say, some of them far less than -10000."""
    scores = b.call("MatMul", x, b.constant(f32(-30000, 0, 0, 0).reshape(4, 1)))
    share = b.call("Softmax", b.call("Where", columns(b), b.constant(LOW), scores), axis=1)
    return b.call("ReduceSum", b.call("Mul", x, share), b.wholes(1), keepdims=0)


def columns(b: Builder) -> str:
    return b.call("Unsqueeze", padding(b), b.wholes(-1))


def without(b: Builder, x: str) -> str:
    """Minus infinity in the rows of the padding."""
    return b.call("Where", columns(b), b.constant(LOW), x)


def by_hand(b: Builder, x: str, _: Any) -> str:
    """A softmax over the words of each column, from Exp, where the greatest is known not to matter."""
    powers = b.call("Exp", without(b, x))
    return b.call("Div", powers, b.call("ReduceSum", powers, b.wholes(1), keepdims=1))


def windows(b: Builder, x: str, rng: Any) -> str:
    """Two maxima, one after the other; a window of the first may hold nothing but padding."""
    turned = b.call("Transpose", without(b, x), perm=[0, 2, 1])
    first = b.call("ReduceMax", b.call("Slice", turned, b.wholes(3), b.wholes(5), b.wholes(2)), b.wholes(2))
    second = b.call("MaxPool", turned, kernel_shape=[5], pads=[4, 0])
    return b.call("GlobalMaxPool", b.call("Concat", first, second, axis=2))


def joined(b: Builder, x: str, _: Any) -> str:
    low = b.call("Unsqueeze", b.call("Unsqueeze", mask(b), b.wholes(-1)), b.wholes(0))
    both = b.call("Concat", b.call("Reshape", without(b, x), b.wholes(1, 1, 20, 1)), low, axis=2)
    wider = b.call("Pad", both, b.wholes(0, 0, 1, 0, 0, 0, 2, 0), b.constant(LOW))
    some = b.call("Slice", wider, b.wholes(2), b.wholes(24), b.wholes(2), b.wholes(3))
    least = b.call("Neg", b.call("ReduceMax", x, b.wholes(1, 2)))
    return b.call("Relu", b.call("Max", b.call("Tile", some, b.wholes(1, 1, 2, 1)), least))


def added(b: Builder, x: str, _: Any) -> str:
    return b.call("ReduceMax", b.call("Add", x, b.call("Unsqueeze", mask(b), b.wholes(-1))), b.wholes(1), keepdims=0)


def summed(b: Builder, x: str, _: Any) -> str:
    low = b.call("Unsqueeze", mask(b), b.wholes(-1))
    return b.call("ReduceMax", b.call("Sum", x, low, x), b.wholes(1), keepdims=0)


def scaled(b: Builder, x: str, _: Any) -> str:
    low = b.call("Div", b.call("Mul", without(b, x), b.constant(f32(3))), b.constant(f32(7, 6, 5, 4)))
    return b.call("ReduceMax", b.call("Sub", low, x), b.wholes(1), keepdims=0)


def limited(b: Builder, x: str, _: Any) -> str:
    return b.call("Max", without(b, x), b.constant(f32(0)))


def of_constants(b: Builder, scores: str) -> str:
    """Masks of the padding and of what comes later, taken together in two ways."""
    low = b.call("Add", b.call("Mul", mask(b), b.constant(f32(2))), causal(b))
    seen = b.call("Max", low, b.call("Where", b.call("Equal", mask(b), b.constant(LOW)), b.constant(LOW), causal(b)))
    return b.call("Add", scores, b.call("Min", seen, b.call("Sub", low, b.constant(f32(0)))))


CASES: dict[str, tuple[Made, bool]] = {
    "added": (attention(lambda b, x: b.call("Add", x, mask(b))), False),
    "chosen": (attention(lambda b, x: b.call("Where", padding(b), b.constant(LOW), x), 40.0), False),
    "causal": (attention(lambda b, x: b.call("Add", x, causal(b))), False),
    "both": (attention(of_constants), False),
    "scaled after": (attention(lambda b, x: b.call("Mul", b.call("Add", x, mask(b)), b.constant(f32(0.3)))), False),
    "behind it": (attention(lambda b, x: b.call("Add", x, mask(b)), after="Exp"), False),
    "far below": (pooled, False),
    "by hand": (by_hand, False),
    "windows": (windows, True),
    "joined": (joined, True),
    "added before a maximum": (added, False),
    "a sum of three": (summed, False),
    "scaled before a maximum": (scaled, False),
    "limited": (limited, True),
}
"""And whether claims at level float32 are possible."""


@pytest.mark.parametrize("name", CASES)
def test_all_read_one_network_that_computes_what_the_model_computes(name: str, tmp_path: Path) -> None:
    make, float32 = CASES[name]
    data = model(make, 7)
    (tmp_path / "model.onnx").write_bytes(data)
    opened, checked, runs = open_model(tmp_path / "model.onnx"), lower.read_model(data), session(data)
    for text in TEXTS:
        found = checked.lower([["words", text]], [])
        network = network_of(opened, LENGTH, [(token,) for token in text])
        assert canonical_network(network).sha256 == found.sha256
        assert (found.no_float32 == "") == float32 or 0 not in text
        (row,) = runs.run(None, {"tokens": [text]})[0]
        np.testing.assert_allclose(logits(network, np.array([text]))[0], row, rtol=1e-5, atol=1e-5)


def test_masks_are_read_as_exporters_write_them(tmp_path: Path) -> None:
    """Logic of masks, triangles, and 0 in the place of NaN; a text with a line of nothing else is not read."""
    given, made = tmp_path / "given.onnx", tmp_path / "made.onnx"

    def seen(b: Builder, scores: str) -> str:
        later = b.call("Not", b.call("Trilu", b.constant(np.ones((LENGTH, LENGTH), np.bool_)), upper=0))
        hidden = b.call("Or", padding(b), b.call("And", later, b.constant(np.arange(LENGTH) > 0)))
        return b.call("Where", hidden, b.constant(LOW), scores)

    def guarded(b: Builder, x: str, rng: Any) -> str:
        shares = b.call("Softmax", seen(b, b.call("MatMul", x, b.call("Transpose", x, perm=[0, 2, 1]))))
        plain = b.call("Where", b.call("IsNaN", shares), b.constant(f32(0)), shares)
        return b.call("MatMul", plain, x)

    given.write_bytes(model(guarded, 3))
    found = adapted(given, Scores(3))
    assert found is not None
    write_model(found[0], made)
    opened, checked = open_model(made), lower.read_model(made.read_bytes())
    for text in TEXTS:
        network = network_of(opened, LENGTH, [(token,) for token in text])
        assert canonical_network(network).sha256 == checked.lower([["words", text]], []).sha256
        for path in (given, made):
            (row,) = session(path.read_bytes()).run(None, {"tokens": [text]})[0]
            np.testing.assert_allclose(logits(network, np.array([text]))[0], row, rtol=1e-5, atol=1e-5)
    left = [0, 0, 3, 8, 7]
    assert np.isfinite(session(given.read_bytes()).run(None, {"tokens": [left]})[0]).all()
    with pytest.raises(Unsupported, match="nothing but minus infinity"):
        network_of(opened, LENGTH, [(token,) for token in left])


def minimum(b: Builder, x: str, _: Any) -> str:
    return b.call("Min", without(b, x), x)


REFUSED: dict[str, Made] = {
    "taken off": lambda b, x, _: b.call("Sub", x, b.call("Unsqueeze", mask(b), b.wholes(-1))),
    "times a word": lambda b, x, _: b.call("Mul", without(b, x), x),
    "times 0": lambda b, x, _: b.call("Mul", without(b, x), b.constant(f32(0))),
    "a factor": lambda b, x, _: b.call("Mul", x, b.call("Unsqueeze", mask(b), b.wholes(-1))),
    "a divisor": lambda b, x, _: b.call("Div", x, without(b, x)),
    "a limit": lambda b, x, _: b.call("Max", without(b, x), b.constant(f32(-1))),
    "least": minimum,
    "turned": lambda b, x, _: b.call("Neg", without(b, x)),
    "a curve": lambda b, x, _: b.call("Tanh", without(b, x)),
    "summed up": lambda b, x, _: b.call("ReduceSum", without(b, x), b.wholes(1)),
    "weighed": lambda b, x, rng: b.call("MatMul", without(b, x), normal(b, rng, WIDTH, 2)),
    "a window of padding": lambda b, x, _: b.call("MaxPool", without(b, x), kernel_shape=[1]),
    "a whole line": attention(lambda b, x: b.call("Transpose", b.call("Add", x, mask(b)), perm=[0, 2, 1])),
    "NaN of constants": attention(lambda b, x: b.call("Add", x, b.call("Mul", mask(b), b.constant(f32(0))))),
    "too low a constant": attention(lambda b, x: b.call("Add", x, b.call("Mul", mask(b, -3e38), b.constant(f32(2))))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_else_meets_it_is_read_by_nobody(name: str, tmp_path: Path) -> None:
    data = model(REFUSED[name], 7)
    (tmp_path / "model.onnx").write_bytes(data)
    with pytest.raises(lower.Unusable):
        lower.read_model(data).lower([["words", TEXTS[1]]], [])
    with pytest.raises((BadInput, Unsupported)):
        network_of(open_model(tmp_path / "model.onnx"), LENGTH, [(token,) for token in TEXTS[1]])
