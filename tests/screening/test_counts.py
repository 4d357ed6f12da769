"""Counts screened: exactly the numbers of check.py or nothing, also where floats cancel, overflow or underflow."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import KINDS, Case, Prover, exact_logits, make_case, network_of, space_of, statement
from random_networks import swap_spaces, tiny
from screening_cases import SHAPES, mutated, same_or_nothing, wild

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.screening import Screen

LEVELS: tuple[c.Level, ...] = ("real", "float32")
SCREENED = {"paper", "residual", "straight", "bag", "plane", "two_layers"}
"""Kinds of models whose counts must not all need the exact checker."""


def opened(data: bytes, folder: Path) -> Screen | None:
    path = folder / "model.onnx"
    path.write_bytes(data)
    try:
        return Screen(open_model(path), read_model(data), None)
    except (BadInput, Unsupported, check.Unusable):
        return None


def counted(case: Case, k: int, level: c.Level, source: int) -> c.Count | None:
    """A true count with leaves of every kind."""
    chosen = random.Random(source)
    try:
        prover = Prover(case, k, level, chosen, counting=True)
    except (check.Refused, check.Unusable):
        return None
    tree, robust, broken = prover.count(prover.tree.root)
    return c.Count(k, level, tree, robust, broken, prover.tree.sentences(prover.tree.root).count())


def agree(screen: Screen, case: Case, part: c.Count, source: int) -> bool:
    """On a true count, on false numbers and on broken trees; whether the true one was screened."""
    chosen = random.Random(source)
    screened = same_or_nothing(screen, c.write_certificate(statement(case, count=part)))
    for name in ("robust", "broken", "total"):
        wrong = replace(part, **{name: max(0, getattr(part, name) + chosen.choice((-1, 1)))})
        same_or_nothing(screen, c.write_certificate(statement(case, count=wrong)))
    top = json.loads(c.write_certificate(statement(case, count=part)))
    tree = base64.b64decode(top["count"]["tree"])
    for _ in range(10):
        other = {**top["count"], "tree": base64.b64encode(mutated(tree, chosen)).decode()}
        data = json.dumps({**top, "count": other}, sort_keys=True, separators=(",", ":")).encode()
        same_or_nothing(screen, data)
    return screened


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_counts_get_the_verdict_of_the_checker(kind: Any, tmp_path: Path) -> None:
    """At both levels and for every radius; with false numbers or a broken tree they are not accepted."""
    screened = 0
    for seed in range(8):
        case = make_case(kind, seed)
        screen = opened(case.data, tmp_path)
        if screen is None:
            continue
        for level in LEVELS:
            part = counted(case, seed % 5, level, seed)
            screened += part is not None and agree(screen, case, part, seed)
    assert screened or kind.__name__ not in SCREENED


def rescaled(data: bytes, source: int, folder: Path) -> bytes:
    """With every tensor of weights times a power of two, very large or very small ones among them."""
    import onnx

    chosen = np.random.default_rng(source)
    model = onnx.load_from_string(data)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = np.array(onnx.numpy_helper.to_array(tensor), dtype=np.float64)
            scaled = np.clip(array * 2.0 ** int(chosen.integers(-120, 121)), -(2.0**127), 2.0**127)
            tensor.CopyFrom(onnx.numpy_helper.from_array(scaled.astype(np.float32), tensor.name))
    return bytes(model.SerializeToString())


def tied(data: bytes, choices: tuple[tuple[int, ...], ...], source: int) -> bytes:
    """With the last bias such that some sentence of the space is nearly tied, within float32, or exactly."""
    import onnx

    model = onnx.load_from_string(data)
    floats = [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    chosen = random.Random(source)
    sentence = [chosen.choice(options) for options in choices]
    logits = [float(z) for z in exact_logits(network_of(data, len(choices)), sentence)]
    bias = next((t for t in reversed(floats) if list(t.dims) == [len(logits)]), None)
    if bias is not None:
        moved = np.array(onnx.numpy_helper.to_array(bias), dtype=np.float64) - np.array(logits)
        bias.CopyFrom(onnx.numpy_helper.from_array(moved.astype(np.float32), bias.name))
    return bytes(model.SerializeToString())


@given(
    data=st.data(),
    shape=st.sampled_from(SHAPES),
    source=st.integers(0, 2**32 - 1),
    how=st.sampled_from(("plain", "cancelling", "rescaled", "tied")),
    level=st.sampled_from(LEVELS),
)
def test_networks_built_to_fool_floats_fool_nobody(
    data: st.DataObject, shape: str, source: int, how: str, level: c.Level
) -> None:
    """Weights that nearly cancel, margins of about an ulp or none at all, numbers beyond float32 and below it: proofs,
    counts and witnesses are accepted only as check.py accepts them."""
    sample = tiny(shape, source, small=how == "tied" and data.draw(st.booleans()), classes=data.draw(st.integers(2, 3)))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = wild(sample, source, folder) if how == "cancelling" else sample.save(folder)
        model = path.read_bytes()
        if how == "rescaled":
            model = rescaled(model, source, folder)
        if how == "tied":
            model = tied(model, choices, source)
        classes = len(network_of(model, sample.length).logits)
        case = Case(model, choices, data.draw(st.integers(0, classes - 1)), classes)
        screen = opened(model, folder)
        if screen is None:
            return
        k = data.draw(st.integers(0, 3))
        part = counted(case, k, level, source)
        if part is not None:
            agree(screen, case, part, source)
        leaf: c.Node = c.Linear() if data.draw(st.booleans()) else c.Enumerate()
        everything = c.Lower(k, level, leaf)
        same_or_nothing(screen, c.write_certificate(statement(case, lower=everything)))
        able = [(p, len(options)) for p, options in enumerate(choices) if len(options) > 1]
        swaps = [(p, data.draw(st.integers(1, count - 1))) for p, count in able]
        made = tuple(swaps[: data.draw(st.integers(0, len(swaps)))])
        for levels in (("real",), ("float32",)):
            same_or_nothing(screen, c.write_certificate(statement(case, upper=c.Upper(made, levels))))


def test_a_long_enumeration_is_counted_exactly(tmp_path: Path) -> None:
    """Thousands of sentences in one leaf, in several blocks, of a model whose weights are all small integers."""
    case = make_case(KINDS[0], 3)
    wide = replace(case, choices=tuple(tuple(range(7)) for _ in case.choices))
    screen = opened(wide.data, tmp_path)
    assert screen is not None
    tree = check.Tree(space_of(wide), b"\x02", wide.rivals, 4, "real", counting=True)
    tree.check()
    part = c.Count(4, "real", c.Enumerate(), 7**4 - tree.broken, tree.broken, 7**4)
    assert 0 < tree.broken < 7**4
    assert same_or_nothing(screen, c.write_certificate(statement(wide, count=part)))
