"""What the smooth operators mean (FORMAT.md, sections 4.2 and 4.4): products, curves, attention, recurrent networks.

This file is trusted, as check.py is. lower.py takes these functions into its table. Each lays down the layers that the
page names, in its order. Standard library only, exact numbers only. Order: products and curves, operators of values,
lines (Softmax, LayerNormalization), recurrent networks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from fractions import Fraction
from functools import partial
from itertools import chain
from math import inf, prod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import onnx_file
    from . import onnx_graph as graphs
else:
    onnx_file, graphs = sys.modules["onnx_file"], sys.modules["onnx_graph"]

need = onnx_file.need
Graph = graphs.Graph
Tensor = graphs.Tensor
Kind = graphs.Kind
Ints = graphs.Ints
aligned, around, spread, lines_of = graphs.aligned, graphs.around, graphs.spread, graphs.lines_of
averaged, combined, greatest, rectified = graphs.averaged, graphs.combined, graphs.greatest, graphs.rectified
weighted, weights_of = graphs.weighted, graphs.weights_of

# Float32 numbers: the nearest to 1 / sqrt(2), sqrt(2 / pi) and 0.044715.
HALF_ROOT, ROOT_OF_2_OVER_PI, CUBIC = [onnx_file.float32(x) for x in (0.5**0.5, 0.7978845608028654, 0.044715)]
# Defaults of attributes.
EPSILON, HARD_ALPHA = onnx_file.float32(1e-5), onnx_file.float32(0.2)
ONE = Tensor(Kind.NUMBERS, (1,), [1.0])
ZERO = graphs.ZERO

Items = Sequence[int]
"""Elements."""


class Function(IntEnum):
    """The functions of curves, by their numbers."""

    EXP = 1
    TANH = 2
    SIGMOID = 3
    ERF = 4
    RECIPROCAL = 5
    SQRT = 6


OF_OPERATORS = {function.name.capitalize(): function for function in Function}


def curve(graph: Graph, function: Function, x: Tensor) -> Tensor:
    return curve_of(graph, function, x.items, x.shape)


def curve_of(graph: Graph, function: Function, items: Items, shape: Sequence[int]) -> Tensor:
    return graph.lay(graphs.Curve(len(items), [items], function), shape)


def product(graph: Graph, x: Tensor, y: Tensor) -> Tensor:
    shape, pairs = aligned(x, y)
    return pairs_of(graph, pairs, shape)


def pairs_of(graph: Graph, pairs: Sequence[tuple[int, ...]], shape: Sequence[int]) -> Tensor:
    return graph.lay(graphs.Product(len(pairs), [*zip(*pairs, strict=True)]), shape)


def scaled(graph: Graph, x: Tensor, factor: Any, offset: Any) -> Tensor:
    """factor x + offset"""
    return weighted(graph, x.shape, [([factor] * len(x.items), x.items)], [offset] * len(x.items))


# ------------------------------------------------------------------------------------------------ operators of values


def curved(graph: Graph, x: Tensor) -> Tensor:
    """Exp, Tanh, Sigmoid, Erf, Reciprocal, Sqrt; exp is 0 where minus infinity is."""
    function = OF_OPERATORS[graph.node.operator]
    if function is Function.SQRT or x.is_masked:
        graph.no_claim("the model has a Sqrt, or an Exp of minus infinity")
    return around(x, partial(curve_of, graph, function), graphs.zero_of(graph, x))


def quotient(graph: Graph, x: Tensor, y: Tensor) -> Tensor:
    """x / y, y being variable: x times the reciprocal of y."""
    reciprocal = curve(graph, Function.RECIPROCAL, y)
    if x.kind is Kind.VARIABLE:
        return product(graph, x, reciprocal)
    need(x.kind is Kind.NUMBERS, f"{x.kind.value} over values that depend on tokens")
    shape, pairs = aligned(x, reciprocal)
    return weighted(graph, shape, [([number for number, _ in pairs], [i for _, i in pairs])])


def power(graph: Graph, x: Tensor, exponent: Tensor) -> Tensor:
    """x**2, x**3, and the powers that roots and reciprocals are."""
    need(len(exponent.items) == 1, "one exponent is needed")
    graph.no_claim("the model has a Pow")
    n, x = exponent.items[0], spread(x, onnx_file.broadcast(x.shape, exponent.shape))
    need(n in (2, 3, 0.5, -0.5, -1, 1), f"a power of {float(n)} is outside the format; 2, 3, 0.5, -0.5, -1, 1 are in")
    if n in (2, 3):
        square = product(graph, x, x)
        return square if n == 2 else product(graph, square, x)
    if abs(n) == 0.5:
        x = curve(graph, Function.SQRT, x)
    return curve(graph, Function.RECIPROCAL, x) if n < 0 else x


def hard_sigmoid(graph: Graph, x: Tensor, alpha: float = HARD_ALPHA, beta: float = 0.5) -> Tensor:
    """alpha x + beta, between 0 and 1."""
    above = rectified(graph, scaled(graph, x, alpha, beta))
    return scaled(graph, rectified(graph, scaled(graph, above, -1, 1)), -1, 1)


def gelu(graph: Graph, x: Tensor, approximate: str = "none") -> Tensor:
    """x (1 + erf(x / sqrt(2))) / 2, or the same with a tanh of x + 0.044715 x**3 in place of the erf."""
    need(approximate in ("none", "tanh"), f"approximate {approximate!r}")
    if approximate == "none":
        bent = curve(graph, Function.ERF, scaled(graph, x, HALF_ROOT, 0))
    else:
        cube, factor = product(graph, product(graph, x, x), x), Fraction(ROOT_OF_2_OVER_PI)
        factors = [factor] * len(x.items), [factor * Fraction(CUBIC)] * len(x.items)
        inner = weighted(graph, x.shape, [(factors[0], x.items), (factors[1], cube.items)])
        bent = curve(graph, Function.TANH, inner)
    return product(graph, x, scaled(graph, bent, 0.5, 0.5))


def matrix_product(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    """Of two variables: every line of a with every column of b; what the constant 0 multiplies is left out."""
    b = b.swapped
    lines = graphs.reshaped(a, (*a.shape[:-1], 1, a.shape[-1]))
    columns = graphs.reshaped(b, (*b.shape[:-2], 1, *b.shape[-2:]))
    need(a.shape[-1] == b.shape[-1], f"{a.shape[-1]} columns with {b.shape[-1]} lines")
    shape, pairs = aligned(lines, columns)
    zero = graph.constants.get(0)
    at = graphs.shown(shape, [zero in pair for pair in pairs])
    if at.is_masked:
        graph.no_claim("the model multiplies by the constant 0")
    terms = around(at, lambda chosen, shape: pairs_of(graph, [pairs[i] for i in chosen], shape))
    sums = [[i for i in each if i != -inf] for each in graphs.parts_of(terms.items, prod(shape[:-1]))]
    return averaged(graph, sums, shape[:-1], 1)


# -------------------------------------------------------------------------------------------------------------- lines


def norm(graph: Graph, x: Tensor, axes: Ints, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    """ReduceSumSquare and ReduceL2: sums of squares, and the roots of these."""
    need(axes or not noop_with_empty_axes, "without axes to reduce")
    squares = product(graph, x, x)
    shape, lines = lines_of(squares, graphs.axes_of(axes, x.rank) or range(x.rank), keepdims)
    sums = averaged(graph, lines, shape, 1)
    if graph.node.operator == "ReduceSumSquare":
        return sums
    graph.no_claim("the model has a ReduceL2")
    return curve(graph, Function.SQRT, sums)


def softmax(graph: Graph, x: Tensor, axis: int = -1) -> Tensor:
    """exp(x - greatest) over the sum of these, line by line; 0 where minus infinity is."""
    graph.no_claim("the model has a Softmax")
    axes = [onnx_file.axis_of(axis, x.rank)]
    shape, lines = lines_of(x, axes)
    less = combined(graph, (1, x), (-1, greatest(graph, lines, shape)))
    powers = around(less, partial(curve_of, graph, Function.EXP))
    sums = averaged(graph, [[i for i in line if i != -inf] for line in lines_of(powers, axes)[1]], shape, 1)
    pairs = aligned(powers, curve(graph, Function.RECIPROCAL, sums))[1]
    at = graphs.shown(x.shape, [i == -inf for i in powers.items])
    zero = graphs.zero_of(graph, powers)
    return around(at, lambda chosen, shape: pairs_of(graph, [pairs[i] for i in chosen], shape), zero)


def layer_normalization(
    graph: Graph,
    x: Tensor,
    scale: Tensor,
    offset: Tensor | None,
    axis: int = -1,
    epsilon: float = EPSILON,
    stash_type: int = 1,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) scale + offset, line by line."""
    graph.no_claim("the model has a LayerNormalization")
    axis = onnx_file.axis_of(axis, x.rank)
    parameters = [spread(spread(each, x.shape[axis:]), x.shape).items for each in (scale, offset or ZERO)]
    need(stash_type == 1, f"stash_type {stash_type}")
    shape, lines = lines_of(x, range(axis, x.rank))
    distances = combined(graph, (1, x), (-1, averaged(graph, lines, shape)))
    squares = product(graph, distances, distances)
    squared_lines = lines_of(squares, range(axis, x.rank))[1]
    variances = averaged(graph, squared_lines, shape, biases=[epsilon] * prod(shape))
    factors = curve(graph, Function.RECIPROCAL, curve(graph, Function.SQRT, variances))
    return weighted(graph, x.shape, [(parameters[0], product(graph, distances, factors).items)], parameters[1])


# -------------------------------------------------------------------------------------------------- recurrent networks


State = tuple[Items, ...]
"""The elements of h and, of an LSTM, of c."""
Step = Callable[..., State]
"""From the elements of x and of the state to those of the next state."""


class Rows(NamedTuple):
    """Rows of weights and their biases, to be applied to one list of elements or another."""

    weights: graphs.Weights
    biases: Sequence[Any]

    def of(self, graph: Graph, read: Items) -> Items:
        count = len(self.biases)
        return graph.affine([read], self.weights, (count,), self.biases, [(0, i) for i in range(count)]).items


class Direction(NamedTuple):
    """By row: W, R and the halves of B. Without B the first half is 0, and the second has nothing in a row."""

    w: Sequence[Sequence[Any]]
    r: Sequence[Sequence[Any]]
    wb: Sequence[Any]
    rb: Sequence[Sequence[Any]]
    ones: Items

    def rows(self, start: int, stop: int) -> Rows:
        """To be applied to x, then h, then the 1 if there is B."""
        lines = zip(self.w[start:stop], self.r[start:stop], self.rb[start:stop], strict=True)
        return Rows(weights_of([[*w, *r, *b] for w, r, b in lines]), self.wb[start:stop])

    def rows_of_input(self, start: int, stop: int) -> Rows:
        """To be applied to x."""
        return Rows(weights_of(self.w[start:stop]), self.wb[start:stop])

    def rows_of_state(self, start: int, stop: int) -> Rows:
        """To be applied to h, then the 1 if there is B."""
        lines = zip(self.r[start:stop], self.rb[start:stop], strict=True)
        return Rows(weights_of([[*r, *b] for r, b in lines]), [0] * (stop - start))


def bent(graph: Graph, function: Function, x: Items) -> Items:
    return curve(graph, function, Tensor(Kind.VARIABLE, (len(x),), x)).items


def multiplied(graph: Graph, x: Items, y: Items) -> Items:
    return graph.lay(graphs.Product(len(x), [x, y]), (len(x),)).items


def added(graph: Graph, x: Items, y: Items) -> Items:
    ones = [1] * len(x)
    return weighted(graph, (len(x),), [(ones, x), (ones, y)]).items


def lstm(graph: Graph, numbers: Direction, size: int) -> Step:
    """c' = f c + i tanh(...), h' = o tanh(c'), with i, o, f sigmoids."""
    gates = numbers.rows(0, 4 * size)

    def step(x: Items, h: Items, c: Items) -> State:
        inner = gates.of(graph, [*x, *h, *numbers.ones])
        opened = bent(graph, Function.SIGMOID, inner[: 3 * size])
        fresh = bent(graph, Function.TANH, inner[3 * size :])
        i, o, f = opened[:size], opened[size : 2 * size], opened[2 * size :]
        terms = multiplied(graph, [*f, *i], [*c, *fresh])
        c = added(graph, terms[:size], terms[size:])
        return multiplied(graph, o, bent(graph, Function.TANH, c)), c

    return step


def gru(graph: Graph, numbers: Direction, size: int, reset_last: bool) -> Step:
    """h' = (1 - z) tanh(...) + z h, where r multiplies what R makes of h, or else h itself."""
    gates = numbers.rows(0, 2 * size)
    both = numbers.rows(2 * size, 3 * size)
    apart = numbers.rows_of_input(2 * size, 3 * size), numbers.rows_of_state(2 * size, 3 * size)

    def step(x: Items, h: Items) -> State:
        opened = bent(graph, Function.SIGMOID, gates.of(graph, [*x, *h, *numbers.ones]))
        z, r = opened[:size], opened[size:]
        if reset_last:
            kept = multiplied(graph, r, apart[1].of(graph, [*h, *numbers.ones]))
            inner = added(graph, apart[0].of(graph, x), kept)
        else:
            inner = both.of(graph, [*x, *multiplied(graph, r, h), *numbers.ones])
        fresh = bent(graph, Function.TANH, inner)
        rest = scaled(graph, Tensor(Kind.VARIABLE, (size,), z), -1, 1).items
        terms = multiplied(graph, [*rest, *z], [*fresh, *h])
        return (added(graph, terms[:size], terms[size:]),)

    return step


def simple(graph: Graph, numbers: Direction, size: int) -> Step:
    """h' = tanh(...)"""
    gates = numbers.rows(0, size)

    def step(x: Items, h: Items) -> State:
        return (bent(graph, Function.TANH, gates.of(graph, [*x, *h, *numbers.ones])),)

    return step


ACTIVATIONS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}
BLOCKS = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}


def recurrent(
    graph: Graph,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    lengths: Tensor | None,
    *initial: Tensor | None,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    linear_before_reset: int = 0,
    **unused: int,
) -> list[Tensor]:
    """LSTM, GRU and RNN: all states by step, and the last ones."""
    name = graph.node.operator
    need(direction in DIRECTIONS and not any(unused.values()), f"direction {direction!r}, layout or input_forget")
    known = activations is None or [each.lower() for each in activations] == ACTIVATIONS[name] * len(
        DIRECTIONS[direction]
    )
    need(known and linear_before_reset in (0, 1), "activations that are not the usual ones, or linear_before_reset")
    need(x.rank == r.rank == 3 and x.shape[1] == 1, f"shapes {x.shape} and {r.shape}: one sentence is expected")
    steps, count, size = x.shape[0], len(DIRECTIONS[direction]), r.shape[2]
    rows = BLOCKS[name] * size
    fits = w.shape == (count, rows, x.shape[2]) and r.shape == (count, rows, size) and hidden_size in (None, size)
    fits = fits and size > 0 and (b is None or b.shape == (count, 2 * rows))
    fits = fits and all(each is None or each.shape == (count, 1, size) for each in initial)
    need(fits, "the shapes of X, W, R, B, the initial state and hidden_size do not fit")
    length = steps
    if lengths is not None:
        need(lengths.shape == (1,) and 1 <= lengths.items[0] <= steps, "impossible sequence_lens")
        length = lengths.items[0]
    zero, one = [graph.variable(each).items[0] for each in (ZERO, ONE)]
    started = [graph.variable(each).items if each else [zero] * count * size for each in initial]
    inputs = graphs.parts_of(x.items, steps)
    lines = [[graphs.parts_of(part, rows) for part in graphs.parts_of(each.items, count)] for each in (w, r)]
    found: list[list[Items]] = []
    last: list[State] = []
    for d, way in enumerate(DIRECTIONS[direction]):
        halves = graphs.parts_of(b.items, 2 * count)[2 * d : 2 * d + 2] if b else ([0] * rows, ())
        rb = [[number] for number in halves[1]] if b else [()] * rows
        numbers = Direction(lines[0][d], lines[1][d], halves[0], rb, [one] if b else [])
        if name == "GRU":
            step = gru(graph, numbers, size, linear_before_reset == 1)
        else:
            step = (lstm if name == "LSTM" else simple)(graph, numbers, size)
        state: State = tuple([graphs.parts_of(each, count)[d] for each in started])
        states: list[Items] = [[zero] * size] * steps
        for t in range(length)[::way]:
            state = step(inputs[t], *state)
            states[t] = state[0]
        found.append(states)
        last.append(state)
    items = [i for at_step in zip(*found, strict=True) for h in at_step for i in h]
    ends = [Tensor(Kind.VARIABLE, (count, 1, size), [*chain(*each)]) for each in zip(*last, strict=True)]
    return [Tensor(Kind.VARIABLE, (steps, count, 1, size), items), *ends]
