"""Lowers an ONNX file to the canonical network of FORMAT.md, section 4: bytes that a certificate names by their hash.

    model = read_model(data, files)
    lowered = model.lower(inputs, words)

This file is trusted: check.py believes that the network proved about is the one in the file because of what is said
here. Beside it, onnx_file.py reads the file itself, onnx_graph.py runs through its nodes, smooth_operators.py has the
operators that make products and curves. Standard library only, exact numbers only. Order: operators, their table, the
model. What is outside the format raises `Unusable`, what speaks against the certificate `Refused`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, chain, pairwise, product
from math import inf, isqrt, prod
from operator import add, eq, ge, gt, le, lt, mul, sub
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from . import onnx_file
    from . import onnx_graph as graphs
    from . import smooth_operators as smooth
else:
    for name in ("onnx_file", "onnx_graph", "smooth_operators"):
        beside = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        sys.modules[name] = importlib.util.module_from_spec(beside)
        beside.loader.exec_module(sys.modules[name])
    onnx_file, graphs, smooth = [sys.modules[name] for name in ("onnx_file", "onnx_graph", "smooth_operators")]

Refused, Unusable = onnx_file.Refused, onnx_file.Unusable
require, need, in_time, sha256 = onnx_file.require, onnx_file.need, onnx_file.in_time, onnx_file.sha256
TensorType, MAX_SHAPE = onnx_file.TensorType, onnx_file.MAX_SHAPE
limited, broadcast, axis_of = onnx_file.limited, onnx_file.broadcast, onnx_file.axis_of
Kind = graphs.Kind
Tensor = graphs.Tensor
Layer = graphs.Layer
Embedding = graphs.Embedding
Graph = graphs.Graph
Lowered = graphs.Lowered
Input = graphs.Input
Operator = graphs.Operator
Ints = graphs.Ints
ZERO, OUTSIDE, stored, weights_of, distinct = (
    graphs.ZERO,
    graphs.OUTSIDE,
    graphs.stored,
    graphs.weights_of,
    graphs.distinct,
)
places, picked, reshaped = graphs.places, graphs.picked, graphs.reshaped
spread, taken = graphs.spread, graphs.taken
aligned, parts_of, lines_of, axes_of = graphs.aligned, graphs.parts_of, graphs.lines_of, graphs.axes_of
averaged, combined, greatest = graphs.averaged, graphs.combined, graphs.greatest
around, exact, rectified, weighted = graphs.around, graphs.exact, graphs.rectified, graphs.weighted

# Limits (FORMAT section 9).
MAX_APPLIED = 1 << 26
MAX_CLASSES = 1024
MAX_BITS = 20_000
# Lowered networks that a model keeps.
MAX_KEPT_BYTES = 1 << 28
# Square roots are multiples of 2**-ROOT_BITS.
ROOT_BITS = 40
# The greatest finite number of a type.
LARGEST: dict[int | None, int] = {
    TensorType.FLOAT: 2**128 - 2**104,
    TensorType.FLOAT16: 65504,
    TensorType.DOUBLE: 2**1024 - 2**971,
}
# Defaults of attributes.
EPSILON, LEAKY_ALPHA = onnx_file.float32(1e-5), onnx_file.float32(0.01)


def constant(graph: Graph, **values: Any) -> Tensor:
    need(len(values) == 1, "a constant must hold exactly one value")
    ((name, value),) = values.items()
    if name == "value":
        return value  # type: ignore[no-any-return]
    if name in ("value_float", "value_floats"):
        graph.model.one_type(TensorType.FLOAT)
    kind = Kind.INTEGERS if name in ("value_int", "value_ints") else Kind.NUMBERS
    return Tensor(kind, (len(value),), value) if isinstance(value, list) else Tensor(kind, (), [value])


def constant_of_shape(graph: Graph, sizes: Sequence[int], value: Tensor | None = None) -> Tensor:
    if value is None:
        graph.model.one_type(TensorType.FLOAT)
    filler = value or ZERO
    need(len(filler.items) == 1, "one value is needed")
    return Tensor(filler.kind, limited(sizes), [*filler.items] * prod(sizes))


def identity(graph: Graph, x: Tensor, rate: Tensor | None = None, training: Tensor | None = None, **_: Any) -> Tensor:
    """Identity, and Dropout as it is when nothing is trained."""
    need(training is None or list(training.items) == [0], "training mode is outside the format")
    need(rate is None or not rate.is_masked, "minus infinity as a ratio")
    return x


def cast(graph: Graph, x: Tensor, to: int = 0) -> Tensor:
    if x.kind in (Kind.NUMBERS, Kind.VARIABLE):
        fits = to == graph.model.floating
    elif x.kind is Kind.TOKENS:
        fits = to in (TensorType.INT32, TensorType.INT64)
    elif to in (TensorType.FLOAT, TensorType.DOUBLE):
        need(all(map(is_small, x.items)), "only integers up to 2**24 can be cast to numbers")
        graph.model.one_type(to)
        return replace(x, kind=Kind.NUMBERS)
    else:
        fits = to in onnx_file.INTEGER_RANGES and all(i in onnx_file.INTEGER_RANGES[to] for i in x.items)
    need(fits, f"{x.kind.value} cannot be cast to type {to}, or do not fit")
    return x


def is_small(number: Any) -> bool:
    """Every float evaluation of sums and products of few of these is exact."""
    return bool(abs(number) == inf or (abs(number) <= 1 << 24 and number == int(number)))


def sequence(graph: Graph, *given: Tensor) -> Tensor:
    """The integers from a start to an end, by steps."""
    need(all(len(each.items) == 1 for each in given), "a Range of lists")
    start, end, step = [each.items[0] for each in given]
    need(step, "steps of 0")
    count = max(0, -((start - end) // step))
    return Tensor(Kind.INTEGERS, limited((count,)), range(start, end, step))


def where(graph: Graph, chosen: Tensor, *options: Tensor) -> Tensor:
    need(set(chosen.items) <= {0, 1}, "a condition that is neither 0 nor 1")
    options = graph.alike(*options)
    shape, triples = aligned(chosen, *options)
    return Tensor(options[0].kind, shape, [yes if is_chosen else no for is_chosen, yes, no in triples])


def shape_of(graph: Graph, x: Tensor, start: int = 0, end: int | None = None) -> Tensor:
    sizes = x.shape[start:end]
    return Tensor(Kind.INTEGERS, (len(sizes),), sizes)


def flatten(graph: Graph, x: Tensor, axis: int = 1) -> Tensor:
    at = axis if axis == x.rank else axis_of(axis, x.rank)
    return reshaped(x, (prod(x.shape[:at]), prod(x.shape[at:])))


def reshape(graph: Graph, x: Tensor, wanted: Sequence[int], allowzero: int = 0) -> Tensor:
    need(all(size >= -1 and (size or i < x.rank) for i, size in enumerate(wanted)), f"impossible shape {wanted}")
    need(wanted.count(-1) <= 1 and not (allowzero and 0 in wanted), f"impossible shape {wanted}")
    shape = [size or x.shape[i] for i, size in enumerate(wanted)]
    if -1 in shape:
        need(0 not in shape, f"impossible shape {wanted}")
        shape[shape.index(-1)] = len(x.items) // -prod(shape)
    return reshaped(x, shape)


def squeeze(graph: Graph, x: Tensor, axes: Ints) -> Tensor:
    found = axes_of(axes, x.rank, [axis for axis, size in enumerate(x.shape) if size == 1])
    need(axes is None or axes, "an empty list of axes")
    need(all(x.shape[axis] == 1 for axis in found), "an axis is not of size 1")
    return reshaped(x, [size for axis, size in enumerate(x.shape) if axis not in found])


def unsqueeze(graph: Graph, x: Tensor, axes: Ints) -> Tensor:
    need(axes is not None, "axes are missing")
    found = axes_of(axes, x.rank + len(axes or ()))
    sizes = iter(x.shape)
    return reshaped(x, [1 if axis in found else next(sizes) for axis in range(x.rank + len(found))])


def transpose(graph: Graph, x: Tensor, perm: Ints = None) -> Tensor:
    order = range(x.rank)[::-1] if perm is None else perm
    need(sorted(order) == [*range(x.rank)], f"perm {order} for shape {x.shape}")
    return x.swapped if [*order] == [*range(x.rank - 2), x.rank - 1, x.rank - 2] else picked(x, {}, order)


def expand(graph: Graph, x: Tensor, sizes: Sequence[int]) -> Tensor:
    return spread(x, broadcast(x.shape, sizes))


def tile(graph: Graph, x: Tensor, repeats: Sequence[int]) -> Tensor:
    need(len(repeats) == x.rank, "impossible repeats")
    limited([size * count for size, count in zip(x.shape, repeats, strict=True)])
    return picked(x, {axis: [*range(size)] * repeats[axis] for axis, size in enumerate(x.shape)})


def split(graph: Graph, x: Tensor, sizes: Ints, axis: int = 0, num_outputs: int | None = None) -> list[Tensor]:
    axis, count = axis_of(axis, x.rank), len(graph.node.outputs)
    size = x.shape[axis]
    need(sizes is None or num_outputs is None, "sizes are given twice")
    if sizes is None:
        need(num_outputs == count or (num_outputs is None and size % count == 0), "parts are not equal")
        each = -(-size // count)
        sizes = [each] * (count - 1) + [size - each * (count - 1)]
    need(len(sizes) == count and min(sizes) > 0 and sum(sizes) == size, f"parts {sizes} of {size}")
    return [picked(x, {axis: range(start, end)}) for start, end in pairwise([0, *accumulate(sizes)])]


def gather(graph: Graph, x: Tensor, where: Tensor, axis: int = 0) -> Tensor:
    axis = axis_of(axis, x.rank)
    if where.kind is Kind.TOKENS:
        fits = x.kind is Kind.NUMBERS and x.rank == 2 and axis == 0 and not x.is_masked
        need(fits, "tokens can only pick rows of a table of finite numbers")
        layer = Embedding(len(where.items) * x.shape[1], (), x, where.items)
        return graph.lay(layer, (*where.shape, x.shape[1]))
    size = x.shape[axis]
    need(where.kind is Kind.INTEGERS, "impossible indices")
    found = picked(x, {axis: inside(where.items, size)})
    return replace(found, shape=x.shape[:axis] + where.shape + x.shape[axis + 1 :])


def gather_elements(graph: Graph, x: Tensor, where: Tensor, axis: int = 0) -> Tensor:
    axis, sizes = axis_of(axis, x.rank), limited(where.shape)
    need(where.rank == x.rank and where.items, "indices of another rank, or none")
    need(all(size <= x.shape[i] for i, size in enumerate(sizes) if i != axis), "indices beyond the input")
    along = [[0] * size if i == axis else range(size) for i, size in enumerate(sizes)]
    step, indices = prod(x.shape[axis + 1 :]), inside(where.items, x.shape[axis])
    return taken(x, [at + i * step for at, i in zip(places(x.shape, along), indices, strict=True)], sizes)


def gather_places(graph: Graph, x: Tensor, where: Tensor, batch_dims: int = 0) -> Tensor:
    """GatherND."""
    need(0 <= batch_dims < min(x.rank, where.rank), f"batch_dims {batch_dims}")
    batch, read = x.shape[:batch_dims], batch_dims + where.shape[-1]
    need(where.shape[:batch_dims] == batch and where.items and read <= x.rank, "indices that do not fit")
    shape, width = limited((*where.shape[:-1], *x.shape[read:])), prod(x.shape[read:])
    lists = parts_of(where.items, prod(where.shape[:-1]))
    starts = []
    for number, indices in enumerate(lists):
        at = number // (len(lists) // prod(batch))
        for size, index in zip(x.shape[batch_dims:read], indices, strict=True):
            (found,) = inside((index,), size)
            at = at * size + found
        starts.append(at * width)
    return taken(x, [start + i for start in starts for i in range(width)], shape)


def inside(indices: Sequence[int], size: int) -> list[int]:
    need(all(-size <= i < size for i in indices), "impossible indices")
    return [i % size for i in indices]


def slices(graph: Graph, x: Tensor, starts: Sequence[int], ends: Sequence[int], listed: Ints, by: Ints) -> Tensor:
    axes, steps = axes_of(listed, x.rank, range(len(starts))), [1] * len(starts) if by is None else by
    need(len(starts) == len(ends) == len(axes) == len(steps) and all(steps), "impossible lists")
    ranges = map(slice, starts, ends, steps)
    found = picked(x, {axis: range(x.shape[axis])[each] for axis, each in zip(axes, ranges, strict=True)})
    need(found.items, "an empty slice")
    return found


def concat(graph: Graph, *parts: Tensor, axis: int | None = None) -> Tensor:
    at = axis_of(axis, parts[0].rank)
    outlines = {(part.rank, part.shape[:at], part.shape[at + 1 :]) for part in parts}
    need(len(outlines) == 1, "shapes do not fit")
    parts, shape = graph.alike(*parts), list(parts[0].shape)
    shape[at] = sum(part.shape[at] for part in parts)
    limited(shape)
    blocks = zip(*[parts_of(part.items, prod(shape[:at])) for part in parts], strict=True)
    return Tensor(parts[0].kind, tuple(shape), [item for block in blocks for part in block for item in part])


def pad(
    graph: Graph, x: Tensor, pads: Sequence[int], value: Tensor | None, listed: Ints, mode: str = "constant"
) -> Tensor:
    filler, axes = value or ZERO, axes_of(listed, x.rank, range(x.rank))
    need(mode == "constant" and len(filler.items) == 1, "only padding with one number is in the format")
    need(len(pads) == 2 * len(axes) and all(0 <= size <= MAX_SHAPE for size in pads), "impossible pads")
    margins = zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True)
    chosen = {axis: [OUTSIDE] * low + [*range(x.shape[axis])] + [OUTSIDE] * high for axis, low, high in margins}
    return picked(x, chosen, filler=graph.alike(x, filler)[1].items[0])


def arithmetic(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    """Add, Sub, Mul, Div, and comparisons."""
    name, kinds = graph.node.operator, {a.kind, b.kind}
    if Kind.VARIABLE not in kinds:
        return folded(graph, name, a, b)
    if name in ("Add", "Sub"):
        return combined(graph, (1, a), (1 if name == "Add" else -1, b))
    x, factors = (a, b) if a.kind is Kind.VARIABLE else (b, a)
    is_smooth = b.kind is Kind.VARIABLE and (name == "Div" or a.kind is Kind.VARIABLE)
    need(not (factors.is_masked or (is_smooth and x.is_masked)), "minus infinity in a factor")
    if is_smooth:
        return (smooth.quotient if name == "Div" else smooth.product)(graph, a, b)
    possible = factors.kind is Kind.NUMBERS and (name == "Mul" or (name == "Div" and factors is b and all(b.items)))
    need(possible, f"{name} of {a.kind.value} and {b.kind.value}, or a division by 0, is outside the format")
    shape, pairs = aligned(x, factors)
    numbers = [1 / Fraction(n) if name == "Div" else n for i, n in pairs if i != -inf]
    if x.is_masked:
        need(all(n > 0 for i, n in pairs if i == -inf), f"{name} of minus infinity by what is not above 0")
        graph.no_claim("the model scales minus infinity")
    items = Tensor(Kind.VARIABLE, shape, [i for i, _ in pairs])
    return around(items, lambda items, shape: weighted(graph, shape, [(numbers, items)]))


# Numbers below may be read as 0 in float32.
TINY = Fraction(1, 1 << 126)


def divided(x: Any, y: Any) -> Any:
    """Integers are rounded down."""
    need(y and y != -inf, "a division by 0, or by minus infinity")
    if not isinstance(x, int):
        return x / y
    need(x >= 0 and y > 0, "a division of integers below 0")
    return x // y


COMPARISONS = {"Equal": eq, "Greater": gt, "GreaterOrEqual": ge, "Less": lt, "LessOrEqual": le}
FOLDED: dict[str, Any] = {**COMPARISONS, "Add": add, "Sub": sub, "Mul": mul, "Div": divided, "Max": max, "Min": min}


def folded(graph: Graph, name: str, *values: Tensor) -> Tensor:
    """Of constants, and of tokens as far as all choices of their positions give the same."""
    kinds = [value.kind for value in values]
    whole = {*kinds} <= {Kind.INTEGERS, Kind.TOKENS} and kinds.count(Kind.TOKENS) < 2
    known = (whole or {*kinds} == {Kind.NUMBERS}) and name in FOLDED
    need(known, f"{name} of {' and '.join([kind.value for kind in kinds])}")
    kind = Kind.INTEGERS if whole or name in COMPARISONS else Kind.NUMBERS
    shape, rows = aligned(*values)
    given = [[graph.options(own, item) for own, item in zip(kinds, items, strict=True)] for items in rows]
    if not whole and any(0 < abs(x) < TINY for options in given for each in options for x in each):
        graph.no_claim("the model computes constants from numbers below 2**-126")
    try:
        found = [{FOLDED[name](*each) for each in product(*options)} for options in given]
        alike = all(len(each) == 1 for each in found)
        require(alike, "the model does not compute the same from all choices of a position")
        result = calculated(graph, kind, shape, list(map(list, found)))
        if Kind.TOKENS in kinds:
            graph.folds.append((name, values, result.items))
        return result
    except Unusable as error:
        require(Kind.TOKENS not in kinds, f"{name} of tokens: {error}")
        raise


def folds_to(graph: Graph, name: str, values: Sequence[Tensor], items: Sequence[Any]) -> bool:
    """Whether the choices of this graph give what others gave."""
    try:
        return folded(graph, name, *values).items == items
    except (Refused, Unusable):
        return False


def calculated(graph: Graph, kind: Kind, shape: Sequence[int], terms: Sequence[Sequence[Any]]) -> Tensor:
    """Constants that are sums; small ones are exact in float32 too."""
    if kind is Kind.INTEGERS:
        integers = [int(sum(each)) for each in terms]
        need(all(item in onnx_file.INT32 for item in integers), "integers beyond 32 bits")
        return Tensor(kind, tuple(shape), integers)
    numbers = [sum(map(exact, each)) for each in terms]
    need(all(n == -inf or abs(n) <= LARGEST[graph.model.floating] for n in numbers), "numbers that overflow, or NaN")
    ratios = [n.as_integer_ratio() for n in numbers if n != -inf]
    bits = max([max(abs(above), below).bit_length() for above, below in ratios], default=0)
    need(bits <= MAX_BITS, f"exact numbers of more than {MAX_BITS} bits")
    if not all(is_small(n) for each in terms for n in [*each, sum(map(abs, map(exact, each)))]):
        graph.no_claim("the model computes constants that float32 may round")
    return Tensor(kind, tuple(shape), numbers)


def opposite(graph: Graph, x: Tensor) -> Tensor:
    need(set(x.items) <= {0, 1}, "Not of what is neither 0 nor 1")
    return replace(x, items=[1 - item for item in x.items])


def negated(graph: Graph, x: Tensor) -> Tensor:
    return combined(graph, (-1, x))


def leaky(graph: Graph, x: Tensor, alpha: float = LEAKY_ALPHA) -> Tensor:
    return rectified(graph, x, alpha)


def bent(graph: Graph, x: Tensor, slopes: Tensor | None = None) -> Tensor:
    """(1 - s) max(x, 0) + s x."""
    given = spread(slopes, x.shape).items if slopes else [-1] * len(x.items)
    kept = rectified(graph, x)
    return weighted(graph, x.shape, [([1 - Fraction(s) for s in given], kept.items), (given, x.items)])


def limited_by(graph: Graph, name: str, x: Tensor, c: Tensor) -> Tensor:
    """max(x, c) = c + max(x - c, 0), and min(x, c) = c - max(c - x, 0)."""
    if x.kind is not Kind.VARIABLE:
        return folded(graph, name, x, c)
    need(c.kind is Kind.NUMBERS, f"{c.kind.value} as a limit")
    if name == "Max" and not any(c.items):
        return rectified(graph, spread(x, broadcast(x.shape, c.shape)))
    need(not (x.is_masked or c.is_masked), "minus infinity, and a limit")
    sign = 1 if name == "Max" else -1
    kept = rectified(graph, combined(graph, (sign, x), (-sign, c)))
    return combined(graph, (sign, kept), (1, c))


def clip(graph: Graph, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    need(all(limit is None or limit.shape == () for limit in (low, high)), "limits must have rank 0")
    need(x.kind is not Kind.VARIABLE or not x.is_masked, "minus infinity in a Clip")
    x = limited_by(graph, "Max", x, low) if low else x
    return limited_by(graph, "Min", x, high) if high else x


def several(graph: Graph, *values: Tensor) -> Tensor:
    """Sum, Max and Min; the least is what is greatest of opposites."""
    name, shape = graph.node.operator, broadcast(*[value.shape for value in values])
    variables = [value for value in values if value.kind is Kind.VARIABLE]
    if name != "Sum" and len(values) == 2 > len(variables):
        return limited_by(graph, name, *sorted(values, key=lambda value: value.kind is not Kind.VARIABLE))
    small = prod(shape) * len(values) <= MAX_SHAPE
    need(variables and small, f"no input depends on the tokens, or shape {shape} is outside the limits")
    if len(values) == 1:
        return values[0]
    parts = [spread(graph.variable(value), shape) for value in values]
    need(name != "Min" or not any(part.is_masked for part in parts), "minus infinity in a Min")
    if name == "Sum":
        return combined(graph, *[(1, part) for part in parts])
    lists = [part.items for part in parts]
    if name == "Min":
        joined = Tensor(Kind.VARIABLE, (prod(shape) * len(parts),), [*chain.from_iterable(lists)])
        lists = parts_of(negated(graph, joined).items, len(parts))
    found = greatest(graph, list(zip(*lists, strict=True)), shape)
    return negated(graph, found) if name == "Min" else found


def gemm(
    graph: Graph, a: Tensor, b: Tensor, c: Tensor | None, transA: int = 0, transB: int = 0, **scales: float
) -> Tensor:
    need(a.rank == b.rank == 2, "A and B must have rank 2")
    alpha, beta = scales.get("alpha", 1.0), scales.get("beta", 1.0) if c else 1.0
    if alpha != 1 or beta != 1:
        graph.no_claim("the model scales constants in a Gemm")
    a, b = a.swapped if transA else a, b if transB else b.swapped
    return lines_with_lines(graph, a, times(b, alpha), c and times(c, beta))


def times(value: Tensor, factor: float) -> Tensor:
    if factor == 1:
        return value
    return replace(value, items=[Fraction(factor) * Fraction(n) for n in value.items])


def matmul(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    need(min(a.rank, b.rank) >= 2, f"shapes {a.shape} and {b.shape}")
    if a.kind is b.kind is Kind.VARIABLE:
        return smooth.matrix_product(graph, a, b)
    return lines_with_lines(graph, a, b.swapped)


def lines_with_lines(graph: Graph, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    """The lines of a with the lines of b, and c; each of a, b holds one matrix or many."""
    need({a.kind, b.kind} == {Kind.VARIABLE, Kind.NUMBERS}, "one matrix must depend on the tokens, the other must not")
    need(a.shape[-1] == b.shape[-1] and a.items and b.items, f"{a.shape[-1]} numbers with {b.shape[-1]}, or none")
    left = Tensor(Kind.INTEGERS, (*a.shape[:-1], 1), range(prod(a.shape[:-1])))
    right = Tensor(Kind.INTEGERS, (*b.shape[:-2], 1, b.shape[-2]), range(prod(b.shape[:-1])))
    x, weights, pair = (a, b, (left, right)) if a.kind is Kind.VARIABLE else (b, a, (right, left))
    shape, rows = aligned(*pair)
    return graph.affine(x.line_items, weights.lines, shape, c and spread(c, shape).items, rows)


# What lies under the kernel at an output place, padding left out: kernel places, and the input place of each.
Window = dict[int, int]


def windows_of(
    sizes: Sequence[int], kernel: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0, **lists: Sequence[int]
) -> tuple[list[int], list[Window]]:
    """Output sizes, and the window of each output place; the lists are pads, strides and dilations."""
    rank = len(sizes)
    steps, gaps = [lists.get(name) or [1] * rank for name in ("strides", "dilations")]
    kernel, margins = kernel or [], lists.get("pads") or [0] * 2 * rank
    fits = all(len(each) == rank and min(each) > 0 for each in (kernel, steps, gaps))
    need(fits and len(margins) == 2 * rank and min(margins) >= 0, "impossible kernel, strides, dilations or pads")
    need(auto_pad in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), f"auto_pad {auto_pad!r} is outside the format")
    need(auto_pad == "NOTSET" or not (ceil_mode or lists.get("pads")), "pads or ceil_mode together with auto_pad")
    axes: list[list[list[int]]] = []
    each_axis = zip(sizes, kernel, steps, gaps, margins[:rank], margins[rank:], strict=True)
    for size, width, step, gap, before, after in each_axis:
        reach = (width - 1) * gap + 1
        if auto_pad.startswith("SAME"):
            missing = max(0, (-(-size // step) - 1) * step + reach - size)
            before = (missing + (auto_pad == "SAME_LOWER")) // 2
            after = missing - before
        free = size + before + after - reach
        count = (-(-free // step) if ceil_mode else free // step) + 1
        count -= bool(ceil_mode) and (count - 1) * step >= size + before
        need(free >= 0 and count * width <= MAX_SHAPE, "windows larger than their input, or too many")
        starts = range(-before, count * step - before, step)
        axes.append([[i if 0 <= i < size else OUTSIDE for i in range(at, at + reach, gap)] for at in starts])
    shape = list(map(len, axes))
    need(prod(shape) * prod(kernel) <= MAX_SHAPE, "the windows are too many")
    under = (enumerate(places(sizes, along)) for along in product(*axes))
    return shape, [{k: i for k, i in window if i >= 0} for window in under]


def convolution(
    graph: Graph, x: Tensor, w: Tensor, b: Tensor | None, group: int = 1, kernel_shape: Ints = None, **options: Any
) -> Tensor:
    need(x.rank == w.rank in (3, 4) and x.shape[0] == 1, "only 1-D and 2-D convolutions are in the format")
    outputs, channels, *kernel = w.shape
    fits = group > 0 and x.shape[1] == channels * group and outputs % group == 0
    fits = fits and kernel_shape in (None, kernel) and (b is None or b.shape == (outputs,))
    need(fits, "kernel_shape, group, weights and bias do not fit")
    shape, windows = windows_of(x.shape[2:], kernel, **options)
    limited((outputs, len(windows)))
    need(len(windows) * len(w.items) <= MAX_APPLIED, "the windows are too many")
    groups = [parts_of(part, channels) for part in parts_of(x.items, group)]
    lists = [[channel[i] for channel in part for i in window.values()] for part in groups for window in windows]
    overlaps, overlap_places = distinct(map(tuple, windows))
    filters = [parts_of(items, channels) for items in parts_of(w.items, outputs)]
    weights = [[part[k] for part in parts for k in held] for parts in filters for held in overlaps]
    rows = []
    for m in range(outputs):
        first_list, first_weights = m * group // outputs * len(windows), m * len(overlaps)
        rows += [(first_list + i, first_weights + at) for i, at in enumerate(overlap_places)]
    biases = b and [bias for bias in b.items for _ in windows]
    return graph.affine(lists, weights_of(weights), (1, outputs, *shape), biases, rows)


def normalization(graph: Graph, x: Tensor, *parameters: Tensor, epsilon: float = EPSILON, **more: Any) -> Tensor:
    fits = x.rank >= 2 and all(each.shape == x.shape[1:2] for each in parameters)
    need(fits and not more.get("training_mode"), "parameters do not fit, or training mode")
    graph.no_claim("the model has a BatchNormalization")
    factors, biases = [], []
    for scale, offset, mean, variance in zip(*[map(Fraction, each.items) for each in parameters], strict=True):
        spread_out = variance + Fraction(epsilon)
        need(spread_out > 0, "a variance that is not above 0")
        root = Fraction(isqrt((1 << 2 * ROOT_BITS) // spread_out), 1 << ROOT_BITS)
        need(root < 1 << 13, "a variance that is too small")
        factors.append(scale * root)
        biases.append(offset - mean * scale * root)
    by_channel = (x.shape[1], *[1] * (x.rank - 2))
    scales, offsets = [spread(Tensor(Kind.NUMBERS, by_channel, each), x.shape).items for each in (factors, biases)]
    return weighted(graph, x.shape, [(scales, x.items)], offsets)


def reduction(graph: Graph, x: Tensor, axes: Ints, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    name = graph.node.operator
    constants = name == "ReduceSum" and x.kind in (Kind.INTEGERS, Kind.NUMBERS)
    need(constants or x.kind is Kind.VARIABLE, f"of {x.kind.value}")
    found = axes_of(axes, x.rank)
    if noop_with_empty_axes and not found:
        return x
    shape, windows = lines_of(x, found or range(x.rank), keepdims)
    if constants:
        return calculated(graph, x.kind, shape, windows)
    if name in ("ReduceMax", "GlobalMaxPool"):
        return greatest(graph, windows, shape)
    return averaged(graph, windows, shape, 1 if name == "ReduceSum" else None)


def global_pooling(graph: Graph, x: Tensor) -> Tensor:
    need(x.rank in (3, 4), f"rank {x.rank} is outside the format")
    return reduction(graph, x, range(2, x.rank))


def pooling(graph: Graph, x: Tensor, kernel_shape: Ints = None, storage_order: int = 0, **options: Any) -> Tensor:
    average, all_count = graph.node.operator == "AveragePool", options.pop("count_include_pad", 0)
    need(x.rank in (3, 4) and not storage_order, f"rank {x.rank} is outside the format, or storage_order")
    need(not (all_count and options.get("ceil_mode")), "count_include_pad with ceil_mode")
    same = options.get("auto_pad", "NOTSET").startswith("SAME")
    fits = set(options.get("dilations") or [1]) == {1} or not (average or same)
    need(fits, "dilations of an average, or with auto_pad")
    sizes, windows = windows_of(x.shape[2:], kernel_shape, **options)
    channels, most = parts_of(x.items, x.shape[0] * x.shape[1]), prod(kernel_shape or ())
    need(all(windows), "a window lies in the padding")
    need(len(channels) * len(windows) * most <= MAX_SHAPE, "the windows are too many")
    shape = (*x.shape[:2], *sizes)
    pooled = [[channel[i] for i in window.values()] for channel in channels for window in windows]
    return averaged(graph, pooled, shape, most if all_count else None) if average else greatest(graph, pooled, shape)


def head(graph: Graph, x: Tensor, axis: int = -1) -> Tensor:
    """What keeps the order of the logits, at the end of the model; elsewhere an operator like others."""
    name = graph.node.operator
    if graph.node is graph.model.nodes[-1] and graph.node.outputs[0] == graph.model.output:
        need(axis_of(axis, x.rank) == x.rank - 1, "the axis is not the last")
        graph.no_claim(f"the model ends in {name}")
        return x
    need(name != "LogSoftmax", "nothing may come after LogSoftmax")
    return smooth.softmax(graph, x, axis) if name == "Softmax" else smooth.curved(graph, x)


VALUE = Input(tuple(Kind))
VARIABLE = Input((Kind.VARIABLE,))
NUMBERS = Input((Kind.NUMBERS,))
CONSTANT_INTEGERS = Input((Kind.INTEGERS,))
NUMBERS_OR_VARIABLE = Input((Kind.NUMBERS, Kind.VARIABLE))
LIST = Input((Kind.INTEGERS,), is_list=True)
MAYBE_LIST = LIST._replace(may_be_absent=True)
MAYBE_INTEGERS = CONSTANT_INTEGERS._replace(may_be_absent=True)
MAYBE_NUMBERS = NUMBERS._replace(may_be_absent=True)
MAYBE_STATE = NUMBERS_OR_VARIABLE._replace(may_be_absent=True)
MAYBE_CONSTANT = Input((Kind.INTEGERS, Kind.NUMBERS), may_be_absent=True)

LINES = ("axis", "epsilon", "stash_type")
REDUCTION = ("axes", "keepdims", "noop_with_empty_axes")
WINDOW = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")
POOL = (*WINDOW, "ceil_mode")
HEADS = ("Softmax", "LogSoftmax", "Sigmoid", "Tanh")
MASKED: dict[str, Any] = {"may_be_masked": True}
NORMALIZATION = ("epsilon", "momentum", "training_mode")
SEQUENCE = (VARIABLE, NUMBERS, NUMBERS, MAYBE_NUMBERS, MAYBE_INTEGERS, MAYBE_STATE)
RECURRENT = ("activations", "direction", "hidden_size", "layout")
OPERATORS: dict[str, Operator] = {
    "Constant": Operator(constant, (), ("value", "value_int", "value_ints", "value_float", "value_floats")),
    "ConstantOfShape": Operator(constant_of_shape, (LIST,), ("value",)),
    "Identity": Operator(identity, (VALUE,), **MASKED),
    "Dropout": Operator(identity, (VALUE, MAYBE_CONSTANT, MAYBE_INTEGERS), ("ratio", "seed"), **MASKED),
    "Cast": Operator(cast, (VALUE,), ("to",), **MASKED),
    "Range": Operator(sequence, (CONSTANT_INTEGERS, CONSTANT_INTEGERS, CONSTANT_INTEGERS)),
    "Where": Operator(where, (CONSTANT_INTEGERS, VALUE, VALUE), **MASKED),
    "Shape": Operator(shape_of, (VALUE,), ("start", "end"), **MASKED),
    "Flatten": Operator(flatten, (VALUE,), ("axis",), **MASKED),
    "Reshape": Operator(reshape, (VALUE, LIST), ("allowzero",), **MASKED),
    "Squeeze": Operator(squeeze, (VALUE, MAYBE_LIST), ("axes",), **MASKED),
    "Unsqueeze": Operator(unsqueeze, (VALUE, MAYBE_LIST), ("axes",), **MASKED),
    "Transpose": Operator(transpose, (VALUE,), ("perm",), **MASKED),
    "Expand": Operator(expand, (VALUE, LIST), **MASKED),
    "Tile": Operator(tile, (VALUE, LIST), **MASKED),
    "Split": Operator(split, (VALUE, MAYBE_LIST), ("axis", "num_outputs"), **MASKED),
    "Gather": Operator(gather, (VALUE, VALUE), ("axis",), **MASKED),
    "GatherElements": Operator(gather_elements, (VALUE, CONSTANT_INTEGERS), ("axis",), **MASKED),
    "GatherND": Operator(gather_places, (VALUE, CONSTANT_INTEGERS), ("batch_dims",), **MASKED),
    "Slice": Operator(slices, (VALUE, LIST, LIST, MAYBE_LIST, MAYBE_LIST), **MASKED),
    "Concat": Operator(concat, (VALUE,), ("axis",), many=True, **MASKED),
    "Pad": Operator(pad, (NUMBERS_OR_VARIABLE, LIST, MAYBE_NUMBERS, MAYBE_LIST), ("mode",), **MASKED),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", *COMPARISONS), Operator(arithmetic, (VALUE, VALUE), **MASKED)),
    "Not": Operator(opposite, (CONSTANT_INTEGERS,)),
    **dict.fromkeys(("Sum", "Max", "Min"), Operator(several, (VALUE,), many=True, **MASKED)),
    "Exp": Operator(smooth.curved, (VARIABLE,), **MASKED),
    **dict.fromkeys(("Erf", "Reciprocal", "Sqrt"), Operator(smooth.curved, (VARIABLE,))),
    "Pow": Operator(smooth.power, (VARIABLE, NUMBERS)),
    "HardSigmoid": Operator(smooth.hard_sigmoid, (VARIABLE,), ("alpha", "beta")),
    "Gelu": Operator(smooth.gelu, (VARIABLE,), ("approximate",)),
    "LayerNormalization": Operator(smooth.layer_normalization, (VARIABLE, NUMBERS, MAYBE_NUMBERS), LINES),
    **dict.fromkeys(("ReduceL2", "ReduceSumSquare"), Operator(smooth.norm, (VARIABLE, MAYBE_LIST), REDUCTION)),
    "LSTM": Operator(smooth.recurrent, (*SEQUENCE, MAYBE_STATE), (*RECURRENT, "input_forget"), may_lack_outputs=True),
    "GRU": Operator(smooth.recurrent, SEQUENCE, (*RECURRENT, "linear_before_reset"), may_lack_outputs=True),
    "RNN": Operator(smooth.recurrent, SEQUENCE, RECURRENT, may_lack_outputs=True),
    "Clip": Operator(clip, (VALUE, MAYBE_CONSTANT, MAYBE_CONSTANT), **MASKED),
    "Neg": Operator(negated, (VARIABLE,)),
    "MatMul": Operator(matmul, (NUMBERS_OR_VARIABLE, NUMBERS_OR_VARIABLE)),
    "Gemm": Operator(gemm, (VARIABLE, NUMBERS, MAYBE_NUMBERS), ("alpha", "beta", "transA", "transB")),
    "Conv": Operator(convolution, (VARIABLE, NUMBERS, MAYBE_NUMBERS), (*WINDOW, "group")),
    "BatchNormalization": Operator(normalization, (VARIABLE, NUMBERS, NUMBERS, NUMBERS, NUMBERS), NORMALIZATION),
    **dict.fromkeys(("ReduceSum", "ReduceMean"), Operator(reduction, (VALUE, MAYBE_LIST), REDUCTION)),
    "ReduceMax": Operator(reduction, (VALUE, MAYBE_LIST), REDUCTION, **MASKED),
    "AveragePool": Operator(pooling, (VARIABLE,), (*POOL, "count_include_pad")),
    "MaxPool": Operator(pooling, (VARIABLE,), (*POOL, "storage_order"), **MASKED),
    "GlobalAveragePool": Operator(global_pooling, (VARIABLE,)),
    "GlobalMaxPool": Operator(global_pooling, (VARIABLE,), **MASKED),
    "Relu": Operator(rectified, (VARIABLE,), **MASKED),
    "LeakyRelu": Operator(leaky, (VARIABLE,), ("alpha",)),
    "PRelu": Operator(bent, (VARIABLE, NUMBERS)),
    "Abs": Operator(bent, (VARIABLE,)),
    "Softmax": Operator(head, (VARIABLE,), ("axis",), **MASKED),
    "LogSoftmax": Operator(head, (VARIABLE,), ("axis",)),
    **dict.fromkeys(("Sigmoid", "Tanh"), Operator(head, (VARIABLE,))),
}


class Model(onnx_file.OnnxFile):
    """A text classifier; it is lowered once for what its network depends on, as the masks that it makes of tokens."""

    def __init__(self, data: bytes, files: Mapping[str, bytes]) -> None:
        super().__init__(data, files, stored)
        self.known: dict[Any, list[Lowered]] = {}
        for item in self.model_inputs:
            fits = item.type in (TensorType.INT32, TensorType.INT64) and len(item.sizes) == 2
            fits = fits and item.sizes[0] in (None, 1)
            need(fits, "inputs must be INT64 or INT32 [batch, length], the batch not fixed to more than one")

    def lower(self, inputs: Sequence[Any], words: Sequence[Any], stop: float = inf) -> Lowered:
        """The network for inputs [role, integers] and words [start, options], as they are in a certificate."""
        require(len(inputs) == len(self.model_inputs), f"the model has {len(self.model_inputs)} inputs")
        for item, (_, given) in zip(self.model_inputs, inputs, strict=True):
            fits = item.sizes[1] in (None, len(given))
            require(fits, f"the model reads {item.sizes[1]} tokens, the certificate has {len(given)}")
        choices = [(number,) for _, given in inputs for number in given]
        for start, options in words:
            found = [tuple(dict.fromkeys(place)) for place in zip(*options, strict=True)]
            choices[start : start + len(found)] = found
        key = tuple([(role, tuple(given) if role == "constant" else len(given)) for role, given in inputs])
        asked = Graph(self, OPERATORS, stop, choices)
        alike = (each for each in self.known.get(key, ()) if all(folds_to(asked, *fold) for fold in each.folds))
        known = next(alike, None)
        if known is None:
            if sum(len(each.data) for several in self.known.values() for each in several) > MAX_KEPT_BYTES:
                self.known.clear()
            known = self.lowered(Graph(self, OPERATORS, stop, choices), inputs)
            self.known.setdefault(key, []).append(known)
        for embedding in known.lookups:
            inside = all(max(choices[position]) < embedding.table.shape[0] for position in embedding.positions)
            require(inside, "a token is beyond the embedding")
        return known

    def lowered(self, graph: Graph, inputs: Sequence[Any]) -> Lowered:
        values, count = graphs.Values(), 0
        for item, (role, given) in zip(self.model_inputs, inputs, strict=True):
            tokens = Tensor(Kind.TOKENS, (1, len(given)), range(count, count + len(given)))
            values[item.name] = Tensor(Kind.INTEGERS, tokens.shape, given) if role == "constant" else tokens
            count += len(given)
        result = graph.output(values)
        fits = result.kind is Kind.VARIABLE and result.rank == 2 and result.shape[0] == 1
        need(fits, "the output must depend on the tokens and have shape [batch, classes]")
        need(2 <= result.shape[1] <= MAX_CLASSES, f"{result.shape[1]} classes are outside the format")
        if self.floating != TensorType.FLOAT:
            graph.no_claim("the model is not FLOAT")
        return graph.lowered(result.items, count)


def read_model(data: bytes, files: Mapping[str, bytes] | None = None) -> Model:
    """The ONNX file with its external tensor files (name -> bytes), parsed once for many certificates."""
    return Model(data, files or {})
