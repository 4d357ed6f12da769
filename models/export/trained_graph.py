"""Write a trained network as a small ONNX graph, node by node, and ask it.

No tracing: Gather, the nodes that each architecture writes, then Gemm and Relu; the same weights give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..architectures.architecture_table import name_of
from ..architectures.graph_writer import GraphWriter
from ..architectures.network_shape import Arrays, Shape

if TYPE_CHECKING:
    import onnx

OPSET = 18
IR_VERSION = 8  # the oldest that knows opset 18, so that older runtimes read the file
BATCH = 256


def onnx_model(shape: Shape, weights: Arrays) -> onnx.ModelProto:
    """`tokens` int64 [batch, length] -> `logits` float32 [batch, classes]."""
    from onnx import TensorProto, checker, helper, numpy_helper

    graph = GraphWriter()
    graph.node("Gather", [graph.floats("embedding", weights["embedding"]), "tokens"], "embedded", "embed", axis=0)
    shape.body.write(graph, weights, shape.length)
    reads = "features"
    for name, _, _ in shape.dense:
        last = name == "logits"
        layer = [reads, *graph.copy(weights, f"{name}.weight", f"{name}.bias")]
        reads = graph.node("Gemm", layer, name if last else f"{name}.sum", name, transB=1)
        if not last:
            reads = graph.node("Relu", [reads], f"{name}.active", f"{name}_relu")
    length = "length" if shape.body.takes_any_length else shape.length
    made = helper.make_graph(
        graph.nodes,
        f"swapproof_{name_of(shape.body)}",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", length])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", shape.classes])],
        [numpy_helper.from_array(graph.constants[name], name) for name in in_order(graph.constants, weights)],
    )
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="swapproof",
    )
    checker.check_model(model, full_check=True)
    return model


def in_order(constants: Iterable[str], weights: Arrays) -> list[str]:
    """Trained weights first, in their order, then what was made for the graph."""
    made = list(constants)
    return [*(name for name in weights if name in made), *(name for name in made if name not in weights)]


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
