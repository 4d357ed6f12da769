"""Write a trained network as a small ONNX graph, node by node, and measure it against torch.

No tracing: the graph has one node per layer (Gather, Flatten | ReduceMean | Transpose, Conv, Relu, ReduceMax, then
Gemm and Relu), no Shape or Cast, and the same weights give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .architectures import Shape

if TYPE_CHECKING:
    import onnx

OPSET = 18
IR_VERSION = 8  # the oldest that knows opset 18, so that older runtimes read the file
# torch and onnxruntime sum in different orders; float32 sums of a few hundred terms differ by some 1e-6 of their size.
ROUNDING = 1e-4
BATCH = 256

Arrays = dict[str, NDArray[np.float32]]


def onnx_model(shape: Shape, weights: Arrays) -> onnx.ModelProto:
    """`tokens` int64 [batch, length] -> `logits` float32 [batch, classes]."""
    from onnx import TensorProto, checker, helper, numpy_helper

    constants = {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in weights.items()}
    nodes = [helper.make_node("Gather", ["embedding", "tokens"], ["embedded"], name="embed", axis=0)]
    match shape.architecture:
        case "mmws":
            nodes.append(helper.make_node("Flatten", ["embedded"], ["features"], name="flatten", axis=1))
        case "mean":
            nodes.append(helper.make_node("ReduceMean", ["embedded", "axes"], ["features"], name="mean", keepdims=0))
        case "cnn":
            nodes += [
                helper.make_node("Transpose", ["embedded"], ["channels"], name="transpose", perm=[0, 2, 1]),
                helper.make_node("Conv", ["channels", "conv.weight", "conv.bias"], ["windows"], name="conv"),
                helper.make_node("Relu", ["windows"], ["active_windows"], name="conv_relu"),
                helper.make_node("ReduceMax", ["active_windows", "axes"], ["features"], name="maximum", keepdims=0),
            ]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    if shape.architecture != "mmws":
        time = 1 if shape.architecture == "mean" else 2
        initializers.append(numpy_helper.from_array(np.array([time], dtype=np.int64), "axes"))
    reads = "features"
    for name, _, _ in shape.dense:
        layer = [reads, f"{name}.weight", f"{name}.bias"]
        last = name == "logits"
        gives = name if last else f"{name}.sum"
        nodes.append(helper.make_node("Gemm", layer, [gives], name=name, transB=1))
        if not last:
            reads = f"{name}.active"
            nodes.append(helper.make_node("Relu", [gives], [reads], name=f"{name}_relu"))
    graph = helper.make_graph(
        nodes,
        f"swapproof_{shape.architecture}",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", shape.length])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", shape.classes])],
        initializers,
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="swapproof",
    )
    checker.check_model(model, full_check=True)
    return model


def onnx_logits(model: Path, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
    """What onnxruntime returns for the written file, in batches, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(["logits"], {"tokens": batch})[0] for batch in batches(tokens)])


def batches(tokens: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(tokens), BATCH):
        yield tokens[start : start + BATCH]


def largest_difference(exported: NDArray[np.float32], trained: NDArray[np.float32]) -> float:
    """max |exported - trained| over all logits; raises if it, or a changed answer, is more than rounding.

    An answer may change only where the two best logits are closer than twice the largest difference.
    """
    difference = np.abs(exported.astype(np.float64) - trained.astype(np.float64))
    size = max(1.0, float(np.abs(trained).max()))
    largest = float(difference.max())
    if not largest <= ROUNDING * size:  # also refuses nan
        raise ArithmeticError(f"the ONNX model differs from torch by {largest:g} on logits of size {size:g}")
    changed = exported.argmax(axis=1) != trained.argmax(axis=1)
    best = np.sort(trained.astype(np.float64), axis=1)
    if np.any(best[changed, -1] - best[changed, -2] > 2 * largest):
        raise ArithmeticError("the ONNX model answers differently from torch by more than rounding")
    return largest
