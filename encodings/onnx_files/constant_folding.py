"""One ONNX operator on arrays, by the ONNX reference implementation: within a size, and only if all runtimes agree.

It folds operators on constants, and moves arrays of indices for operators that only move data. The size of a result is
worked out before it is computed, so that a small file cannot ask for a huge array. Arithmetic on float constants must
have one answer: IEEE operations have, whatever the runtime; of others the result must be free of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Unsupported

Array = NDArray[Any]
Arrays = Sequence[Array | None]

LARGEST_CONSTANT = 2**26
"""Elements of one computed array: half a gigabyte of int64."""


def all_of(arrays: Arrays, attributes: dict[str, Any]) -> int:
    """No more than is read."""
    return sum(array.size for array in arrays if array is not None)


def broadcast(arrays: Arrays, attributes: dict[str, Any]) -> int:
    return math.prod(np.broadcast_shapes(*(array.shape for array in arrays if array is not None)))


def constant(arrays: Arrays, attributes: dict[str, Any]) -> int:
    return 0  # its value is in the file


def filled(arrays: Arrays, attributes: dict[str, Any]) -> int:
    return math.prod(whole(arrays, 0))


def expanded(arrays: Arrays, attributes: dict[str, Any]) -> int:
    shape = given(arrays, 0).shape
    target = whole(arrays, 1)
    longest = max(len(shape), len(target))
    pairs = zip([1] * (longest - len(shape)) + list(shape), [1] * (longest - len(target)) + target, strict=True)
    return math.prod(max(size, wish) for size, wish in pairs)


def tiled(arrays: Arrays, attributes: dict[str, Any]) -> int:
    return given(arrays, 0).size * math.prod(whole(arrays, 1))


def counted(arrays: Arrays, attributes: dict[str, Any]) -> int:
    start, limit, step = (float(given(arrays, position).reshape(-1)[0]) for position in range(3))
    return max(0, math.ceil((limit - start) / step))


def padded(arrays: Arrays, attributes: dict[str, Any]) -> int:
    shape, amounts = given(arrays, 0).shape, whole(arrays, 1)
    axes = arrays[3] if len(arrays) > 3 else None
    touched = list(range(len(shape))) if axes is None else [int(axis) for axis in axes.reshape(-1)]
    sizes = list(shape)
    for axis, before, after in zip(touched, amounts[: len(touched)], amounts[len(touched) :], strict=True):
        sizes[axis] += before + after
    return math.prod(max(0, size) for size in sizes)


def gathered(arrays: Arrays, attributes: dict[str, Any]) -> int:
    source, index = given(arrays, 0), given(arrays, 1)
    along: int = source.shape[attributes.get("axis", 0)]
    return source.size // max(1, along) * index.size


def gathered_places(arrays: Arrays, attributes: dict[str, Any]) -> int:
    source, index = given(arrays, 0), given(arrays, 1)
    read: int = attributes.get("batch_dims", 0) + index.shape[-1]
    return int(index.size // max(1, index.shape[-1]) * math.prod(source.shape[read:]))


def product(arrays: Arrays, attributes: dict[str, Any]) -> int:
    left, right = given(arrays, 0), given(arrays, 1)
    return left.size * right.size // max(1, min(left.shape[-1:] + right.shape[-2:][:1], default=1))


def given(arrays: Arrays, position: int) -> Array:
    array = arrays[position] if position < len(arrays) else None
    if array is None:
        raise ValueError(f"input {position} is missing")
    return array


def whole(arrays: Arrays, position: int) -> list[int]:
    return [int(number) for number in given(arrays, position).reshape(-1)]


SIZES: dict[str, Callable[[Arrays, dict[str, Any]], int]] = {
    "Abs": all_of,
    "Add": broadcast,
    "And": broadcast,
    "Cast": all_of,
    "Ceil": all_of,
    "Clip": all_of,
    "Concat": all_of,
    "Constant": constant,
    "ConstantOfShape": filled,
    "Div": broadcast,
    "Equal": broadcast,
    "Exp": all_of,
    "Expand": expanded,
    "Flatten": all_of,
    "Floor": all_of,
    "Gather": gathered,
    "GatherElements": all_of,
    "GatherND": gathered_places,
    "Greater": broadcast,
    "GreaterOrEqual": broadcast,
    "Identity": all_of,
    "Less": broadcast,
    "LessOrEqual": broadcast,
    "MatMul": product,
    "Max": broadcast,
    "Min": broadcast,
    "Mod": broadcast,
    "Mul": broadcast,
    "Neg": all_of,
    "Not": all_of,
    "Or": broadcast,
    "Pad": padded,
    "Pow": broadcast,
    "Range": counted,
    "Reciprocal": all_of,
    "ReduceL2": all_of,
    "ReduceMax": all_of,
    "ReduceMean": all_of,
    "ReduceMin": all_of,
    "ReduceProd": all_of,
    "ReduceSum": all_of,
    "Relu": all_of,
    "Reshape": all_of,
    "Sign": all_of,
    "Slice": all_of,
    "Split": all_of,
    "Sqrt": all_of,
    "Squeeze": all_of,
    "Sub": broadcast,
    "Sum": broadcast,
    "Tile": tiled,
    "Transpose": all_of,
    "Trilu": all_of,
    "Unsqueeze": all_of,
    "Where": broadcast,
}
EXACT = {
    "Abs", "And", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape", "Equal", "Expand", "Flatten", "Floor",
    "Gather", "GatherElements", "GatherND",
    "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Neg", "Not", "Or", "Pad",
    "ReduceMax", "ReduceMin", "Relu", "Reshape", "Sign", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Trilu", "Unsqueeze", "Where",
}  # fmt: skip
"""These never round."""
IEEE = {"Add", "Cast", "Div", "Mul", "Sqrt", "Sub"}
"""These round once, to the nearest, in every runtime."""


class Rounding(Unsupported):
    """Constants of which each runtime may make slightly other numbers; `results`: one that they may be."""

    def __init__(self, message: str, results: Sequence[Array] = ()) -> None:
        super().__init__(message)
        self.results = results


def perform(
    operator: str, where: str, attributes: dict[str, Any], arrays: Arrays, outputs: int, opset: int
) -> tuple[list[Array], bool]:
    """The outputs of one operator, and whether a number in them was rounded."""
    arrays = list(arrays)
    while arrays and arrays[-1] is None:  # absent optional inputs, which older versions of an operator do not know
        arrays.pop()
    if operator not in SIZES:
        raise Unsupported(f"{where}: operator {operator} on constants is not supported; fold the constants on export")
    try:
        size = SIZES[operator](arrays, attributes)
        if size > LARGEST_CONSTANT:
            raise Unsupported(f"{where}: would make an array of {size} elements; at most {LARGEST_CONSTANT} are made")
        if operator == "Trilu":
            refuse_no_triangles(where, arrays)
        results = reference(operator, attributes, arrays, outputs, opset)
        if operator in EXACT or not any(np.issubdtype(result.dtype, np.floating) for result in results):
            return results, False
        rounded = differs(results, operator, attributes, arrays, outputs, opset)
        if operator in IEEE and overflows(operator, given(arrays, 0), given(arrays, -1), results[0]):
            raise Unsupported(f"{where}: makes NaN, or numbers that overflow, of constants")
    except Unsupported:
        raise
    except Exception as error:  # the reference implementation raises whatever numpy does
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadInput(f"{where}: its inputs do not fit it ({reason[:200]})") from None
    if rounded and operator not in IEEE:
        raise Rounding(
            f"{where}: {operator} on constants rounds, and runtimes round differently; fold the constants on export",
            results,
        )
    return results, rounded


def refuse_no_triangles(where: str, arrays: Arrays) -> None:
    """The reference implementation makes a matrix of a row, and takes any number for a diagonal."""
    if (found := given(arrays, 0)).ndim < 2:
        raise BadInput(f"{where}: Trilu of shape {list(found.shape)}, which has no triangles; it takes matrices")
    diagonal = arrays[1] if len(arrays) > 1 else None
    if diagonal is not None and (diagonal.size != 1 or diagonal.dtype != np.int64):
        raise BadInput(
            f"{where}: Trilu from a diagonal of {diagonal.size} {diagonal.dtype}; it takes one number, of int64"
        )


def differs(
    results: Sequence[Array], operator: str, attributes: dict[str, Any], arrays: Arrays, outputs: int, opset: int
) -> bool:
    """Whether the results are, or may be, other numbers than the exact ones."""
    if operator == "Cast":
        source = given(arrays, 0)
        return not np.array_equal(results[0].astype(np.float64), source.astype(np.float64), equal_nan=True)
    if operator in IEEE:
        left, right = given(arrays, 0), given(arrays, 0 if operator == "Sqrt" else 1)
        doubles = [array.astype(np.float64) for array in (left, right, results[0])]
        return not bool((is_exact(operator, *doubles) | is_low(operator, *doubles)).all())
    if operator == "ReduceSum" and given(arrays, 0).dtype == np.float64:
        sizes = reference(operator, attributes, [np.abs(given(arrays, 0)), *arrays[1:]], outputs, opset)[0]
        whole = given(arrays, 0) == np.rint(given(arrays, 0))
        return not (bool(whole.all()) and bool((sizes < 2.0**53).all()))
    doubled = [
        array.astype(np.float64) if array is not None and np.issubdtype(array.dtype, np.floating) else array
        for array in arrays
    ]
    finer = reference(operator, attributes, doubled, outputs, opset)
    pairs = zip(results, finer, strict=True)
    return any(not np.array_equal(r.astype(np.float64), f.astype(np.float64), equal_nan=True) for r, f in pairs)


def overflows(operator: str, left: Array, right: Array, result: Array) -> bool:
    """Whether something becomes infinite, or NaN, that is not minus infinity because what it is made of is."""
    return not bool((np.isfinite(result) | is_low(operator, left, right, result)).all())


def is_low(operator: str, left: Array, right: Array, result: Array) -> Array:
    """Where it is minus infinity because a term, or factor, is; a quotient only where that is what is divided."""
    low = np.isneginf(left) | (np.isneginf(right) & (operator in ("Add", "Mul")))
    return np.asarray(np.isneginf(result) & low)


@np.errstate(all="ignore")  # what overflows is not exact, as what comes of it is NaN
def is_exact(operator: str, left: Array, right: Array, result: Array) -> Array:
    """For each element whether the result is the exact one; False where float64 cannot tell."""
    if operator in ("Add", "Sub"):
        right = right if operator == "Add" else -right
        total = left + right
        back = total - left
        return np.asarray(((left - (total - back)) + (right - back) == 0.0) & (total == result))
    factors, product = ((left, right), result) if operator == "Mul" else ((result, right), left)
    if operator == "Sqrt":
        factors = (result, result)
    high, low = exact_product(*factors)
    fits = (product == 0.0) & (high == 0.0) & ((factors[0] == 0.0) | (factors[1] == 0.0))
    return np.asarray(((high == product) & (low == 0.0) & (np.abs(product) > 2.0**-900)) | fits)


def exact_product(left: Array, right: Array) -> tuple[Array, Array]:
    """Two float64 numbers whose sum is the product (Dekker), where nothing over- or underflows."""
    parts = []
    for array in (left, right):
        scaled = array * (2.0**27 + 1.0)
        high = scaled - (scaled - array)
        parts.append((high, array - high))
    (a, b), (c, d) = parts
    product = left * right
    return product, b * d - (((product - a * c) - b * c) - a * d)


def flat(array: Array, axis: int) -> Array:
    """Flatten: the dimensions before the axis become one, and those from it on."""
    if not -array.ndim <= axis <= array.ndim:
        raise ValueError(f"axis {axis} of {array.ndim} dimensions")
    return array.reshape(math.prod(array.shape[:axis]), -1)


def reference(operator: str, attributes: dict[str, Any], arrays: Arrays, outputs: int, opset: int) -> list[Array]:
    if operator == "Flatten":  # nearly every model has one, and the reference implementation takes long to load
        return [flat(given(arrays, 0), attributes.get("axis", 1))]
    if operator == "GatherElements":  # the reference implementation fails on tables that are longer than the indices
        return [picked_elements(given(arrays, 0), given(arrays, 1), attributes.get("axis", 0))]
    import onnx
    from onnx.reference import ReferenceEvaluator

    if operator == "Constant" and "value" in attributes:
        return [np.asarray(onnx.numpy_helper.to_array(attributes["value"]))]
    names = [f"i{position}" if array is not None else "" for position, array in enumerate(arrays)]
    results = [f"o{position}" for position in range(max(1, outputs))]
    feeds = {name: array for name, array in zip(names, arrays, strict=True) if array is not None}
    node = onnx.helper.make_node(operator, names, results)
    node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in attributes.items())
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [onnx.helper.make_tensor_value_info(name, kinds[name], array.shape) for name, array in feeds.items()],
        [onnx.helper.make_tensor_value_info(name, 0, None) for name in results],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    with np.errstate(all="ignore"):  # NaN and infinity are refused where they reach a layer
        return [np.asarray(result) for result in ReferenceEvaluator(model).run(None, feeds)]


def picked_elements(table: Array, indices: Array, axis: int) -> Array:
    """out[i, j, ...] = table[i, indices[i, j, ...], ...] along the axis; both fit but for that axis."""
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = np.where(indices < 0, indices + table.shape[axis], indices)
    return np.asarray(table[tuple(places)])
