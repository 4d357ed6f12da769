"""Convolutions over words and the maximum over time of each, as sentiment classifiers are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from graph_builder import Builder, floats, tokens
from tiny import SENTIMENT, write_task

Kernel = tuple[int, int, int, int]
"""Width, stride, dilation, padding at both ends."""


def convolved(length: int, kernels: Sequence[Kernel], *, seed: int = 11, leaky: bool = False) -> Any:
    """logits = W2 relu(W1 (maximum over time of each kernel's rectified values)); the ModelProto."""
    draw, b = np.random.default_rng(seed), Builder()

    def numbers(*shape: int) -> str:
        return b.constant(draw.integers(-8, 9, size=shape).astype(np.float32) / 8)

    table = draw.integers(-4, 5, size=(len(SENTIMENT), 3)).astype(np.float32) / 8
    table[:, 0] = np.array(SENTIMENT) / 2
    words = b.call("Transpose", b.call("Gather", b.constant(table), "tokens"), perm=[0, 2, 1])
    found = []
    for width, stride, dilation, pad in kernels:
        sizes: dict[str, Any] = {"kernel_shape": [width], "strides": [stride], "dilations": [dilation]}
        at = b.call("Conv", words, numbers(4, 3, width), numbers(4), pads=[pad, pad], **sizes)
        at = b.call("LeakyRelu", at, alpha=0.25) if leaky else b.call("Relu", at)
        found.append(b.call("ReduceMax", at, b.wholes(2), keepdims=0))
    pooled = found[0] if len(found) == 1 else b.call("Concat", *found, axis=1)
    hidden = b.call("Relu", b.call("Gemm", pooled, numbers(4 * len(kernels), 5), numbers(5)))
    b.node("Gemm", [hidden, numbers(5, 2), numbers(2)], ["logits"])
    return b.proto([tokens("batch", length)], [floats("logits", "batch", 2)], opset=18, ir_version=9)


def write_convolved(folder: Path, rows: list[tuple[str, str]], length: int = 9) -> Path:
    """The task file of tiny.py with such a network of two widths."""
    task = write_task(folder, rows, model_split="whitespace", model_length=length)
    onnx.save(convolved(length, [(2, 1, 1, 0), (3, 1, 1, 1)]), folder / "model.onnx")
    return task
