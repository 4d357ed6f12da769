"""A head in an ONNX file: linear layers with ReLU between them, as torch and others export them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BadInput, Unsupported, one_line
from .static_heads import Layer

Array = NDArray[Any]
PASSING = ("Identity", "Dropout")
ACTIVATIONS = {"Softmax": "softmax", "Sigmoid": "sigmoid"}


def read_head_graph(path: Path) -> tuple[tuple[Layer, ...], str]:
    """The layers and the activation after the last. Nodes that take anything but one value on are refused by name."""
    graph = loaded(path)
    constants = constants_of(path, graph)
    reads = [value.name for value in graph.input if value.name not in constants]
    if len(reads) != 1 or len(graph.output) != 1:
        given = f"{len(reads)} inputs and {len(graph.output)} outputs"
        raise Unsupported(f"{path}: {given}; a head has one of each: the pooled vectors, and the scores")
    value, activation = reads[0], "identity"
    layers: list[Layer] = []
    rectified = True  # whether a linear layer may follow
    for node in graph.node:
        if node.op_type == "Constant":
            continue
        others = [name for name in node.input if name and name != value]
        unknown = [name for name in others if name not in constants]
        if value not in node.input or unknown or activation != "identity":
            raise Unsupported(
                f"{path}: node {node.name or node.op_type}: a head is a chain of layers with Relu between"
            )
        numbers = [constants[name] for name in others]
        if node.op_type in ("Gemm", "MatMul") and rectified:
            layers.append(linear(path, node, value, numbers))
            rectified = False
        elif node.op_type == "Add" and layers and not rectified and not layers[-1].bias.any():
            layers[-1] = Layer(layers[-1].weight, biases(path, node, numbers[0], len(layers[-1].weight)))
        elif node.op_type == "Relu" and not rectified:
            rectified = True
        elif node.op_type in ACTIVATIONS and not rectified and last_axis(node):
            activation = ACTIVATIONS[node.op_type]
        elif node.op_type not in PASSING:
            name = node.name or "without a name"
            raise Unsupported(
                f"{path}: node {name} ({node.op_type}): a head is Gemm or MatMul and Add, with Relu between"
            )
        value = node.output[0]
    if value != graph.output[0].name or rectified:
        raise Unsupported(f"{path}: its output is not what its last linear layer gives")
    return tuple(layers), activation


def loaded(path: Path) -> Any:
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
        onnx.checker.check_model(model)
    except Exception as error:  # whatever a damaged file leads to
        raise BadInput(f"{path}: not an ONNX file ({one_line(error)})") from error
    return model.graph


def constants_of(path: Path, graph: Any) -> dict[str, Array]:
    from onnx import TensorProto, numpy_helper

    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors.values()):
        raise Unsupported(f"{path}: weights in another file; save the head with its weights inside")
    found = {name: numpy_helper.to_array(tensor) for name, tensor in tensors.items()}
    for name, array in found.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BadInput(f"{path}: {name} holds numbers that are not finite")
    return found


def linear(path: Path, node: Any, value: str, given: list[Array]) -> Layer:
    said = {attribute.name: attribute for attribute in node.attribute}
    plain = all(said[name].f == 1.0 for name in ("alpha", "beta") if name in said)
    if node.input[0] != value or not plain or ("transA" in said and said["transA"].i) or given[0].ndim != 2:
        raise Unsupported(f"{path}: node {node.name or node.op_type}: a layer multiplies what it reads by a matrix")
    turned = "transB" in said and said["transB"].i
    weight = (given[0] if turned else given[0].T).astype(np.float64)
    return Layer(weight, biases(path, node, given[1] if len(given) > 1 else np.zeros(1), len(weight)))


def biases(path: Path, node: Any, given: Array, outputs: int) -> NDArray[np.float64]:
    if given.size not in (1, outputs):
        raise BadInput(f"{path}: node {node.name or node.op_type}: {given.size} biases for {outputs} outputs")
    return np.broadcast_to(given.astype(np.float64).ravel(), (outputs,))


def last_axis(node: Any) -> bool:
    return all(attribute.i in (1, -1) for attribute in node.attribute if attribute.name == "axis")
