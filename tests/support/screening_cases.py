"""What tests of the screening share: certificates to begin with, broken trees, weights that cancel, one question."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from random_graphs import Sample

from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.verifier.screening import Screen
from swapproof.verifier.screening.verdict import UNFORESEEN

PROOFS = Path(__file__).parents[1] / "proofs"
ACCEPTED = sorted((PROOFS / "accepted").glob("*.json"))
REFUSED = sorted((PROOFS / "refused").glob("*.json"))
SHAPES = ("mlp", "deep", "mean", "cnn", "residual", "maximum")


def screen_of(folder: Path, top: Any) -> Screen:
    """With the model and the vocabulary that lie in the folder."""
    model = folder / top["model"]["file"]
    tensors = {name: (folder / name).read_bytes() for name, _ in top["model"]["tensors"]}
    vocabulary = top["vocabulary"] and check.sha256((folder / top["vocabulary"]["file"]).read_bytes())
    return Screen(open_model(model), read_model(model.read_bytes(), tensors), vocabulary)


def same_or_nothing(screen: Screen, data: bytes) -> bool:
    """Whether it was screened, by itself or as one of several; then check.py must say exactly the same."""
    top = check.parse_canonical(data)
    verdicts = []
    for prepared in ([], [top]):
        screen.prepare(prepared)
        verdicts.append(screen.verdict(top, 60.0))
    assert not any(reason.startswith(UNFORESEEN) for reason in screen.reasons)
    if any(verdicts):
        truth = check.check_certificate(data, screen.checked, screen.vocabulary_sha256)
        assert all(found is None or found == truth for found in verdicts)
    return any(verdicts)


def mutated(tree: bytes, chosen: random.Random) -> bytes:
    """A byte changed, added, dropped, or a piece copied elsewhere."""
    out = bytearray(tree)
    for _ in range(chosen.choice((1, 1, 2, 3))):
        at = chosen.randrange(len(out) + 1)
        match chosen.randrange(5):
            case 0 if at < len(out):
                out[at] = chosen.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 64, 127, 128, 255))
            case 1 if at < len(out):
                out[at] ^= 1 << chosen.randrange(8)
            case 2 if at < len(out):
                del out[at]
            case 3:
                out.insert(at, chosen.choice((0, 1, 2, 4, 5, 6, 7, 8)))
            case _:
                start = chosen.randrange(len(out) + 1)
                out[at:at] = out[start : start + chosen.randrange(1, 8)]
    return bytes(out)


def wild(sample: Sample, source: int, folder: Path) -> Path:
    """The sample with weights of very different sizes, many of them nearly cancelling each other."""
    import onnx

    random = np.random.default_rng(source)
    for tensor in sample.model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        array = np.array(onnx.numpy_helper.to_array(tensor))
        flat = array.reshape(-1)
        flat *= (2.0 ** random.integers(-14, 15, size=flat.size)).astype(np.float32)
        if flat.size > 1:
            half = flat.size // 2
            flat[half : 2 * half] = -flat[:half] * (1 + random.integers(-2, 3, size=half) * np.float32(2.0**-22))
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return sample.save(folder)


def within(number: float, truth: Any, error: float) -> bool:
    return bool(abs(Fraction(float(number)) - truth) <= Fraction(float(error)))
