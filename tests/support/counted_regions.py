"""Small networks with maxima and rectifiers that count swaps, and regions of a text with heights and stairs set."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import exact_recipe as exact
import numpy as np
import onnx
from proof_cases import Maker
from tree_bytes import deltas, leb128

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.network import Network, Rectifier
from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.pools.counted_swaps import counts_swaps
from swapproof.encodings.space import SwapSpace

LENGTH = 5


def model(m: Maker) -> bytes:
    """A convolution; then in any order rectifiers, constants, pools over few; and a pool over all that is left."""
    draw, filters, width = m.rng, m.rng.randint(1, 2), m.rng.randint(1, 3)
    x = m.call("Transpose", m.embed(2), perm=[0, 2, 1])
    pads = [draw.randint(0, 1), draw.randint(0, 1)]
    x = m.call("Conv", x, m.weights(filters, 2, width), m.weights(filters), kernel_shape=[width], pads=pads)
    for _ in range(draw.randint(0, 3)):
        step = draw.choice(("relu", "leaky", "constants", "pool", "top", "turn"))
        if step == "relu":
            x = m.call("Relu", x)
        elif step == "leaky":
            x = m.call("LeakyRelu", x, alpha=draw.choice((0.25, 0.5)))
        elif step == "constants":
            x = m.call("Concat", x, m.weights(1, filters, 1), axis=2)
        elif step == "turn":
            x = m.call("Slice", x, *(m.constant([each]) for each in (-1, -100, 2, -1)))
        elif step == "pool":
            x = m.call("MaxPool", x, kernel_shape=[2], strides=[1], pads=[1, 0])
        else:
            x = m.call("Concat", x, m.call("ReduceMax", x, axes=[2], keepdims=1), axis=2)
    top = m.call("ReduceMax", x, axes=[2], keepdims=0)
    if draw.random() < 0.5:
        top = m.call("LeakyRelu", top, alpha=draw.choice((0.0, 0.25)))
    return m.model(m.gemm(top, filters, 2), 2)


@dataclass
class Uneven(Maker):
    """Weights that are never equal by chance, nor zero."""

    def weights(self, *shape: int) -> str:
        numbers = [self.rng.gauss(0, 1) for _ in range(int(np.prod(shape)))]
        return self.constant(np.array(numbers, np.float32).reshape(shape))


@dataclass(frozen=True)
class Drawn:
    data: bytes
    network: Network
    choices: tuple[tuple[int, ...], ...]
    region: exact.Region


def drawn(seed: int, whole: bool = False) -> Drawn:
    """Few numbers, so that roots are often equal, or of all sizes; forced words, and words that lack options, unless
    the region is the whole space."""
    rng = random.Random(seed)
    data = model(Uneven(rng, LENGTH) if seed % 2 else Maker(rng, LENGTH, rng.choice((0.25, 0.25, 1.0, 0.3, 3e-9))))
    tokens = rng.sample(range(7), rng.randint(3, 7))
    choices = tuple(tuple(rng.sample(tokens, rng.randint(1, 3))) for _ in range(LENGTH))
    masks = [(1 << len(options)) - 1 for options in choices]
    masks = [rng.randint(1, mask) if not whole and rng.random() < 0.3 else mask for mask in masks]
    k = sum(not mask & 1 for mask in masks) + rng.choice((0, 1, 1, 2, 2, 3))
    network = read(data, choices)
    share = rng.choice((0.1, 0.5, 0.9))
    values = {
        (n, i): 128 * (rng.choice((0, 1, 2, 3, 7)) + bends) + rng.choice((0, 1, 20, 64))
        for n, node in enumerate(network.nodes)
        if counts_swaps(network, n)
        for bends in [isinstance(node.layer, Rectifier)]
        for i in range(node.size)
        if rng.random() < (share if bends else 0.9)
    }
    return Drawn(data, network, choices, exact.Region(masks, k, {}, (), values))


def read(data: bytes, choices: tuple[tuple[int, ...], ...]) -> Network:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        return network_for(open_model(path), SwapSpace(choices))


def with_bias(data: bytes, bias: float) -> bytes:
    """The same model, the first logit moved to this bias."""
    proto = onnx.load_from_string(data)
    name = proto.graph.node[-1].input[2]
    stored = next(tensor for tensor in proto.graph.initializer if tensor.name == name)
    numbers = onnx.numpy_helper.to_array(stored).copy()
    numbers[0] = bias
    stored.CopyFrom(onnx.numpy_helper.from_array(numbers, name))
    return bytes(proto.SerializeToString())


def table_of(found: Drawn) -> bytes:
    """A node that sets the heights and stairs of its region."""
    layer_of, by_layer = canonical_of(found.network).layer_of, dict[int, dict[int, int]]()
    for (n, i), value in found.region.heights.items():
        by_layer.setdefault(layer_of[n], {})[i] = value
    node = bytes([8]) + leb128(len(by_layer))
    for layer, values in sorted(by_layer.items()):
        node += leb128(layer) + leb128(len(values))
        node += b"".join(leb128(gap) + leb128(v) for gap, v in zip(deltas(list(values)), values.values(), strict=True))
    return node
