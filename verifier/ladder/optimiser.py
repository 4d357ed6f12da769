"""What onnxruntime's graph optimiser makes of a model, where that is not what the ONNX file says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Unsupported
from swapproof.encodings.onnx_files.onnx_reading import Model

from .replay import session_of

Array = NDArray[Any]

APART = 1e-3
"""A value is changed when it moves by more than this part of the largest there: far more than rounding."""
NOT_NEGATIVE = frozenset({"Relu", "Sigmoid", "HardSigmoid", "Softmax", "Abs", "Exp", "Softplus"})
WITHOUT = "without graph optimisation (GraphOptimizationLevel.ORT_DISABLE_ALL)"
INSTEAD = "put the zeros there by Concat (torch.cat), or a ReLU before them"


def blamed(path: Path, proto: Any, feeds: Mapping[str, Array], difference: str) -> str:
    """A difference from onnxruntime that is not there without optimisation: what is to be said of it."""
    node = first_changed(proto, feeds)
    told = f"{path}: onnxruntime's graph optimiser changes what the model computes: {difference}; {WITHOUT} they agree"
    if node is None:
        return told
    merged = [name for name, _ in merges(path, proto)]
    if named(node) in merged:
        return (
            f"{told}; the first node changed is {named(node)}: the zeros put around its input become its own padding, "
            f"which never wins, so that windows of negative numbers come out otherwise; {INSTEAD}"
        )
    return f"{told}; the first node changed is {named(node)}"


def refuse_merges(model: Model) -> None:
    """A maximum over zeros and negative numbers, from which onnxruntime leaves out the zeros, is another function.

    The sentences tried need not show it.
    """
    met = harmful_merge(model.path, model.proto)
    if met is not None:
        raise Unsupported(f"{model.path}: {met}; {INSTEAD}")


def harmful_merge(path: Path, proto: Any) -> str | None:
    """What is to be said of the first maximum that onnxruntime may take otherwise; None when there is none."""
    name = next((name for name, harmless in merges(path, proto) if not harmless), None)
    if name is None:
        return None
    return (
        f"onnxruntime's graph optimiser turns the zeros put around the input of {name} into its own padding, which "
        "never wins: windows of negative numbers come out otherwise than the file says"
    )


def merges(path: Path, proto: Any) -> list[tuple[str, bool]]:
    """Max-pooling nodes whose padding the optimiser changed, and whether what they pool is never negative."""
    pools = [node for node in proto.graph.node if node.op_type == "MaxPool"]
    if not pools or not any(node.op_type == "Pad" for node in proto.graph.node):
        return []
    makers = {name: node for node in proto.graph.node for name in node.output}
    after = {node.output[0]: node for node in optimised(path).graph.node if node.op_type == "MaxPool"}
    return [
        (named(node), padded_after(makers, node) in NOT_NEGATIVE)
        for node in pools
        if node.output[0] in after and padding(after[node.output[0]]) != padding(node)
    ]


def optimised(path: Path) -> Any:
    """The model as onnxruntime's basic optimisations leave it, without the data of its weights."""
    import onnx

    with TemporaryDirectory() as folder:
        target = Path(folder) / "optimised.onnx"
        session_of(path, optimised=target)
        return onnx.load(target, load_external_data=False)


def padding(node: Any) -> list[int]:
    numbers = [number for attribute in node.attribute if attribute.name == "pads" for number in attribute.ints]
    return numbers if any(numbers) else []


def padded_after(makers: Mapping[str, Any], pool: Any) -> str | None:
    """The operator that makes what the zeros are put around."""
    pad = makers.get(pool.input[0])
    if pad is None or pad.op_type != "Pad" or pad.input[0] not in makers:
        return None
    return str(makers[pad.input[0]].op_type)


def named(node: Any) -> str:
    return f"node {node.name or node.output[0]} ({node.op_type})"


def first_changed(proto: Any, feeds: Mapping[str, Array]) -> Any | None:
    """The first node whose own value is another in the optimised model that ends there; None when none is."""
    import onnx

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for node in proto.graph.node:
            part = onnx.ModelProto()
            part.CopyFrom(proto)
            del part.graph.output[:]
            part.graph.output.append(onnx.ValueInfoProto(name=node.output[0]))
            onnx.save(part, path, save_as_external_data=part.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF)
            plain, changed = (
                np.asarray(session.run(None, dict(feeds))[0])
                for session in (session_of(path, optimised=False), session_of(path))
            )
            if differ(plain, changed):
                return node
    return None


def differ(plain: Array, changed: Array) -> bool:
    if not np.issubdtype(plain.dtype, np.floating) or plain.shape != changed.shape:
        return not np.array_equal(plain, changed)
    if not plain.size:
        return False
    apart = np.where(plain == changed, 0.0, np.abs(plain.astype(np.float64) - changed))
    return not bool((apart <= APART * np.abs(plain).max()).all())
