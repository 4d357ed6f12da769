"""Checks box certificates (FORMAT.md, section 14) with exact integers, by the networks and bounds of check.py.

    python -I -S proofs/check_box.py CERTIFICATE.json            its model, and maybe its query, beside it

It loads check.py, and through it lower.py and exact_network.py, from its own folder, and nothing else of ours. Like
them it believes no number it can compute, and says `accepted 1 of 1` as its very last act, leaving with 0; otherwise 4
(refused) or 2 (nothing to check: no file, or a model outside the format).
"""

from __future__ import annotations

import base64
import importlib.util
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, lcm, prod
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

if TYPE_CHECKING or __package__:
    from . import check, onnx_file
    from . import exact_network as networks
    from . import lower as lowering
else:
    found = importlib.util.spec_from_file_location("check", Path(__file__).with_name("check.py"))
    check = sys.modules["check"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(check)
    lowering, networks = check.lowering, check.networks
    onnx_file = lowering.onnx_file

GRID, Refused, Unusable = check.GRID, check.Refused, check.Unusable
require, need = check.require, check.need
# Limits (FORMAT section 14), and the bits that a plane's coefficients are cut to.
MAX_NODES, MAX_DEPTH, MAX_CASES, MAX_CONSTRAINTS = 5_000_000, 100_000, 100_000, 4096
MAX_INPUT_BITS = 128
PLANE_BITS = 128
BETA_BITS = 30
ENDLESS = 1 << 20_000

# -------------------------------------------------------------------------------------------------------- the network


# Operators that meant something else, in the same words, before this opset (section 14.2).
CHANGED = {"Clip": 11, "Pad": 11, "Slice": 10, "Dropout": 12, "BatchNormalization": 9, "MaxPool": 8}


class NumericModel(onnx_file.OnnxFile):
    """A network of numbers (FORMAT section 14): `inputs` numbers give `outputs` numbers."""

    opsets = range(7, 23)
    most = lowering.MAX_CLASSES
    """Inputs and outputs together."""

    def __init__(self, data: bytes, files: Mapping[str, bytes]) -> None:
        super().__init__(data, files, lowering.stored)
        need(len(self.model_inputs) == 1, "the model must have one input")
        self.name, kind, sizes = self.model_inputs[0]
        need(kind in onnx_file.FLOATING, "the input must be FLOAT, FLOAT16 or DOUBLE")
        self.one_type(kind)
        shape = [size or 0 for size in ([1, *sizes[1:]] if len(sizes) > 1 and sizes[0] is None else sizes)]
        fits = 0 < len(shape) <= onnx_file.MAX_RANK and min(shape) > 0 and prod(shape) < self.most
        need(fits, f"input shape {sizes}: fixed sizes, few axes and fewer than {self.most} numbers are needed")
        self.shape, self.inputs = shape, prod(shape)
        for node in self.nodes:
            same = self.opset >= CHANGED.get(node.operator, 0)
            same = same and (self.opset >= 14 or node.operator != "BatchNormalization" or len(node.outputs) == 1)
            need(same, f"node {node.number}: {node.operator} of opset {self.opset} is outside the format")
        self.known: lowering.Lowered | None = None

    @property
    def outputs(self) -> int:
        self.lower()
        return self.count

    @property
    def has_head(self) -> bool:
        return any(node.operator in lowering.HEADS for node in self.nodes)

    def lower(self, stop: float = inf) -> lowering.Lowered:
        if self.known is None:
            graph = lowering.Graph(self, lowering.OPERATORS, stop)
            result = graph.output({self.name: graph.lay(lowering.Layer(self.inputs, ()), self.shape)})
            need(not self.has_head, "a head in a network of numbers")
            self.count = len(result.items)
            fits = 0 < self.count < min(lowering.MAX_CLASSES, self.most - self.inputs + 1)
            need(fits, f"{self.inputs} inputs and {self.count} outputs: at most {self.most} are in the format")
            graph.no_claim("the inputs of the model are numbers")
            self.known = graph.lowered(graph.variable(result).items, 0)
        return self.known


def read_model(data: bytes, files: Mapping[str, bytes] | None = None) -> NumericModel:
    """The ONNX file of a box certificate with its external tensor files (name -> bytes)."""
    return NumericModel(data, files or {})


class Network(check.Network):
    """A canonical network whose first layer are its inputs, numbers over `input_scale`.

    The cut holds them all, whatever reads them.
    """

    def __init__(self, data: bytes, numbers: Mapping[bytes, bytes], scale: int) -> None:
        self.input_scale = scale
        super().__init__(data, numbers)
        inputs = self.layers[0]
        need(type(inputs) is check.Layer, "a network that does not begin with its inputs")
        self.inputs = range(inputs.start, inputs.start + inputs.size)
        self.cut = sorted({*self.cut, *self.inputs})
        self.slot = {i: slot for slot, i in enumerate(self.cut)}

    def numbers(self, reader: networks.Reader) -> check.Layer:
        need(len(self.owner) == len(self.constants), "inputs that are not the first layer")
        return self.add(check.Layer, (), reader.integer(), self.input_scale)

    kinds: ClassVar[dict[int, Callable[..., check.Layer]]] = {
        kind: read for kind, read in check.Network.kinds.items() if kind in (2, 3, 4)
    } | {0: numbers}


# ------------------------------------------------------------------------------------------------------------ regions

Ends = tuple[tuple[int, int], ...]
Plane = tuple[list[int], int]
Bounds = tuple[int, int]
Kept = dict[int, Bounds]
NO_PHASES: Mapping[int, int] = {}


class Inputs:
    """The inputs x of a region, as integers over the scale of the inputs: their ends; a plane (s, t), which says that
    the sum of s x is at least t where all constraints hold; and bounds of elements that hold there too.

    Phases are by element of a rectifier: 1 if what it reads is >= 0, -1 if it is <= 0.

    This takes the place of sentences in check.py; `best` is the greatest of an affine function. What knows more of the
    inputs than their ends (check_ball.py) has other extremes and is `moved` to more of the same.
    """

    def __init__(
        self, space: Space, ends: Ends, plane: Plane | None, kept: Kept, phases: Mapping[int, int] = NO_PHASES
    ) -> None:
        self.space, self.ends, self.plane, self.kept, self.phases = space, ends, plane, kept, phases
        self.empty = any(low > high for low, high in ends)
        self.middles = [low + high for low, high in ends]
        self.widths = [high - low for low, high in ends]
        self.known: dict[int, Bounds] = {}

    def within(self, element: int, sign: int) -> Inputs:
        """With a phase for this element of a rectifier; what is known of elements of the cut stays known."""
        found = copy(self)
        found.phases = {**self.phases, element: sign}
        return found

    def moved(self, ends: Ends, plane: Plane | None, kept: Kept) -> Inputs:
        """With other ends inside these, another plane and other bounds."""
        return Inputs(self.space, ends, plane, kept, self.phases)

    def extremes(self, function: Sequence[int]) -> Bounds:
        """The least and greatest sum of c x between the ends: half the sum of c (low + high) -+ |c| (high - low)."""
        middle, width = sum(map(mul, function, self.middles)), sum(map(mul, map(abs, function), self.widths))
        return middle - width >> 1, middle + width >> 1

    def best(self, function: Sequence[int]) -> int:
        """The greatest sum of c x."""
        return self.extremes(function)[1]

    def column_extremes(self, slot: int) -> Bounds:
        """`extremes` of an element's column, input by input where few are in it."""
        pairs = self.space.pairs[slot]
        if pairs is None:
            return self.extremes(self.space.columns[slot])
        middle = sum([c * self.middles[i] for i, c in pairs])
        width = sum([abs(c) * self.widths[i] for i, c in pairs])
        return middle - width >> 1, middle + width >> 1

    def element(self, slot: int) -> Bounds:
        """Bounds of an element that is affine in the inputs, on the grid; the plane is used if their signs differ."""
        if slot not in self.known:
            column, base, scale = self.space.columns[slot], self.space.base[slot], self.space.scales[slot]
            low, high = [base + end for end in self.column_extremes(slot)]
            if low < 0 < high and self.plane:
                low = max(low, base - self.beyond([-c for c in column], *self.plane))
                high = min(high, base + self.beyond(column, *self.plane))
            self.known[slot] = check.grid(low, scale)[0], check.grid(high, scale)[1]
        return self.known[slot]

    def beyond(self, function: Sequence[int], slopes: list[int], least: int) -> int:
        """For u >= 0 the sum of c x is at most the greatest sum of (c + u s) x, less u t, rounded up.

        Between the ends that is least where some c + u s is 0 and its slope in u turns. Whole numbers say where: cuts
        move ends so far that slopes are nearly 0.
        """
        missing, turns, u = least, [], 0.0
        for c, (s, size, at_low, at_high, most, reach) in zip(function, self.reaches, strict=True):
            if c > 0:
                missing -= at_high
                if s < 0:
                    turns.append((c / size, reach))
            elif c < 0:
                missing -= at_low
                if s > 0:
                    turns.append((-c / size, reach))
            else:
                missing -= most
        for turn, gain in sorted(turns):
            u, missing = turn, missing - gain
            if missing <= 0:
                break
        above, below = u.as_integer_ratio()
        turned = [c * below + s * above for c, s in zip(function, slopes, strict=True)]
        return check.ceiling(self.best(turned) - above * least, below)

    @cached_property
    def reaches(self) -> list[tuple[int, int, int, int, int, int]]:
        """Of each input: s, |s|, s x at its ends, the greater of both, and how far they are apart."""
        slopes = self.plane[0] if self.plane else []
        found = [(s, s * low, s * high) for s, (low, high) in zip(slopes, self.ends, strict=True)]
        return [(s, abs(s), one, other, max(one, other), abs(other - one)) for s, one, other in found]

    def cut(self, function: list[int], least: int, kept: Kept) -> Inputs:
        """With another plane: the sum of c x is at least `least` / 2**GRID.

        The c are cut to PLANE_BITS bits, what that can add being taken off `least`; ends that lie beyond the plane
        are moved, outwards to integers.
        """
        shift = max(0, max(map(abs, function)).bit_length() - PLANE_BITS)
        rest = sum([(c & (1 << shift) - 1) * high for c, (_, high) in zip(function, self.ends, strict=True)])
        plane = [c >> shift for c in function], (least - (rest << GRID)) >> (GRID + shift)
        most = Inputs.extremes(self, plane[0])[1]  # between the ends, whatever else is known of the inputs
        room, ends = most - plane[1], list(self.ends)
        for i, (s, (low, high)) in enumerate(zip(plane[0], self.ends, strict=True)):
            if s:
                reach = check.ceiling(room, abs(s))
                ends[i] = (max(low, high - reach), high) if s > 0 else (low, min(high, low + reach))
        return self.moved(tuple(ends), plane, kept)


def few(column: Sequence[int]) -> list[tuple[int, int]] | None:
    """The inputs of a column that few move, with their coefficients; None where it has many."""
    pairs = [(i, c) for i, c in enumerate(column) if c]
    return pairs if 2 * len(pairs) < len(column) else None


class Slopes:
    """In place of inputs: takes down the coefficients of an affine function."""

    found: list[int]

    def best(self, function: list[int]) -> int:
        self.found = function
        return 0


class Nowhere(Exception):
    """Bounds of an element cross: nothing is in the region."""


class Space(check.Space):
    """The network over its inputs: shared by all regions."""

    network: Network

    def __init__(self, network: Network, stop: float) -> None:
        self.network, self.stop = network, stop
        values = network.start()
        network.evaluate([layer for layer in network.earlier if layer is not network.layers[0]], values)
        self.base = [values[i] for i in network.cut]
        self.scales = [network.owner[i].scale for i in network.cut]
        self.columns = list(map(self.column, network.cut))
        self.pairs = list(map(few, self.columns))
        self.rows: dict[int, tuple[list[tuple[int, int]], int]] = {}
        self.columns_of: dict[check.Affine, list[tuple[list[int], Sequence[int], list[tuple[int, ...]]]]] = {}

    def column(self, top: int) -> list[int]:
        """The coefficients of the inputs in an element of the cut."""
        network = self.network

        def define(i: int, c: int) -> check.Terms | None:
            layer = network.owner[i]
            if isinstance(layer, check.Affine):
                row = layer.rows[i - layer.start]
                return zip(layer.lists[row.read], [c * weight for weight in row.weights], strict=True)
            return None if i in network.inputs else ()

        check.in_time(self.stop)
        found = check.substitute({top: 1}, define)
        return [found.get(i, 0) for i in network.inputs]

    def minimum(
        self, function: dict[int, int], scale: int, words: Any, box: check.Box, region: check.Region
    ) -> check.Ratio:
        """As in check.py, where every number is explained; but a layer at a time, and without joint groups."""
        check.in_time(self.stop)
        network, constant, bits = self.network, 0, check.SLOPE_BITS
        shift = bits * max([network.owner[i].depth for i in function])
        given = [0] * len(network.owner)
        for i, c in function.items():
            given[i] = c << shift
        for layer in reversed(network.later):
            here = given[layer.start : layer.start + layer.size]
            if not any(here):
                continue
            if isinstance(layer, check.Affine):
                constant += self.handed_on(layer, here, given) << GRID
            elif isinstance(layer, check.Maximum):
                for at, (c, (place, certain)) in enumerate(zip(here, box.picks[layer], strict=True)):
                    if c > 0 or certain:
                        given[layer.sources[place]] += c * layer.factors[place]
                    else:
                        constant += c * layer.scale * box.lines[layer.start + at].above[0]
            elif not isinstance(layer, check.Rectifier):
                raise Refused("a layer of which nothing is known")
            else:
                for at, (c, (low, high)) in enumerate(zip(here, box.inputs[layer], strict=True)):
                    if c:
                        line, rest = check.relaxed(layer, c, low, high, region.slopes.get(layer.start + at))
                        constant += c * layer.scale * rest // (layer.q << bits) if rest else 0
                        given[layer.sources[at]] += c * layer.factors[at] * line >> bits if line else 0
        falls = tuple([(slot, -given[i]) for slot, i in enumerate(network.cut) if given[i]])
        return constant - (self.maximum(words, falls) << GRID), scale << shift

    def handed_on(self, layer: check.Affine, here: list[int], given: list[int]) -> int:
        """Adds what rows with these coefficients hand to the elements they read, and returns the biases' share.

        Rows that read the same list are added up element by element of it, unless most of them have no coefficient.
        """
        if layer not in self.columns_of:
            readers: dict[int, list[int]] = {}
            for at, row in enumerate(layer.rows):
                readers.setdefault(row.read, []).append(at)
            self.columns_of[layer] = [
                (rows, layer.lists[read], list(zip(*[layer.rows[at].weights for at in rows], strict=True)))
                for read, rows in readers.items()
                if len(rows) > 1
            ]
        used = {at: c for at, c in enumerate(here) if c}
        constant = sum([c * layer.rows[at].bias for at, c in used.items()])
        for rows, elements, columns in self.columns_of[layer]:
            taken = [here[at] for at in rows]
            if 2 * taken.count(0) < len(rows):
                for i, column in zip(elements, columns, strict=True):
                    given[i] += sum(map(mul, taken, column))
                for at in rows:
                    used.pop(at, None)
        for at, c in used.items():
            row = layer.rows[at]
            for i, weight in zip(layer.lists[row.read], row.weights, strict=True):
                given[i] += c * weight
        return constant

    def maximum(self, words: Any, *functions: check.Function) -> int:
        """The greatest of the sum of c times the number of a slot, over the functions."""
        function = [pair for each in functions for pair in each]
        total = [0] * len(self.columns[0])
        full = [(slot, c) for slot, c in function if self.pairs[slot] is None]
        if full:
            factors, columns = [c for _, c in full], [self.columns[slot] for slot, _ in full]
            total = [sum(map(mul, factors, row)) for row in zip(*columns, strict=True)]
        for slot, c in function:
            for i, weight in self.pairs[slot] or ():
                total[i] += c * weight
        found: int = words.best(total)
        return found + sum([c * self.base[slot] for slot, c in function])

    def inputs_of(self, layer: check.Layer, words: Any, box: check.Box) -> list[Bounds]:
        """Phases narrow the bounds of what a rectifier reads."""
        here = list(super().inputs_of(layer, words, box))
        for element, sign in words.phases.items():
            if self.network.owner[element] is layer:
                low, high = here[element - layer.start]
                here[element - layer.start] = (max(low, 0), high) if sign > 0 else (low, min(high, 0))
        if any(low > high for low, high in here):
            raise Nowhere
        return here

    def bounds_of(self, i: int, words: Any, box: check.Box) -> Bounds:
        """Bounds known to have one sign are kept as they are, and so are those that follow from the bounds of the
        elements an element is computed from; others are found by substitution too.
        """
        low, high = words.kept.get(i, (-ENDLESS, ENDLESS))
        if low >= 0 or high <= 0 or i in box.known:
            return box.known.get(i, (low, high))
        if self.network.owner[i].depth:
            least, most = self.interval(i, words, box)
            low, high = max(low, least), min(high, most)
            if low >= 0 or high <= 0:
                return low, high
        least, most = super().bounds_of(i, words, box)
        return max(low, least), min(high, most)

    def interval(self, i: int, words: Any, box: check.Box) -> Bounds:
        """An element as a sum of elements of nonlinear layers and others that are affine in the inputs, each between
        its bounds. Coefficients are multiples of the element's number for multiples of the others.
        """
        owner = self.network.owner
        if i not in self.rows:
            constant = 0

            def define(top: int, c: int) -> Iterable[tuple[int, int]] | None:
                nonlocal constant
                layer = owner[top]
                if not layer.depth or not isinstance(layer, check.Affine):
                    return None
                row = layer.rows[top - layer.start]
                constant += c * row.bias
                return zip(layer.lists[row.read], [c * weight for weight in row.weights], strict=True)

            found = check.substitute({i: 1}, define)
            self.rows[i] = [(at, c * owner[at].scale) for at, c in found.items()], constant << GRID
        low = high = self.rows[i][1]
        for at, c in self.rows[i][0]:
            ends = box.known[at] if owner[at].depth else words.element(self.network.slot[at])
            low, high = low + c * ends[c < 0], high + c * ends[c > 0]
        return low // owner[i].scale, check.ceiling(high, owner[i].scale)


@dataclass(frozen=True)
class Region:
    inputs: Inputs
    depth: int = 0
    box: check.Box | None = None


# ----------------------------------------------------------------------------------------------------------- the tree


@dataclass(frozen=True)
class Constraint:
    """Coefficients of outputs and of inputs by place, and a constant: the sum is <= 0, or < 0 if strict."""

    outputs: dict[int, Fraction]
    inputs: dict[int, Fraction]
    constant: Fraction
    strict: bool


class Tree(check.Tree):
    """Reads the tree of one case in preorder and proves every leaf; the children of a node are made here."""

    def __init__(self, space: Space, ends: Ends, constraints: list[Constraint], data: bytes, stop: float) -> None:
        self.space: Space = space
        self.data, self.at = data, 0
        space.stop = stop
        self.start = Region(Inputs(space, ends, None, {}))
        self.strict = [constraint.strict for constraint in constraints]
        numbers = [n for each in constraints for n in (*each.outputs.values(), *each.inputs.values(), each.constant)]
        self.common = scale = networks.scale_of(numbers)
        logits, inputs = space.network.logits, space.network.inputs
        self.rows = []
        for each in constraints:
            terms = [(logits[place], c) for place, c in each.outputs.items()]
            terms += [(inputs[place], c) for place, c in each.inputs.items()]
            self.rows.append(([(i, int(c * scale)) for i, c in terms], int(each.constant * scale)))
        self.nodes = self.leaves = 0

    def walk(self) -> None:
        stack = [self.start]
        while stack:
            region = stack.pop()
            self.nodes += 1
            require(self.nodes <= MAX_NODES and region.depth <= MAX_DEPTH, "the tree is too large or too deep")
            check.in_time(self.space.stop)
            kind = self.byte()
            require(kind in RULES, f"tree byte {kind} is not in the format")
            stack += reversed(RULES[kind](self, region))
        require(self.at == len(self.data), "bytes after the end of the tree")

    def integer(self) -> int:
        """An integer of either sign: n as 2 n, -n as 2 n - 1."""
        value = shift = 0
        byte = 128
        while byte > 127:
            require(shift < 203, "a number in the tree is too large")
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
        require(byte or shift == 7, "a number in the tree is not minimal")
        return value >> 1 ^ -(value & 1)

    def plane(self, region: Region) -> tuple[check.Box, list[int], int, bool] | None:
        """(bounds, s, t, strict): where all constraints of the region hold, the sum of s x is at least t / 2**GRID,
        or greater if strict; by the multipliers that stand in the tree. None: nothing is in the region.
        """
        space, network = self.space, self.space.network
        weights = [self.number() for _ in self.rows]
        slopes, exponent = self.table(64, 0), self.number()
        require(exponent <= BETA_BITS, f"betas finer than 2**-{BETA_BITS}")
        betas = self.table(1 << 31, 0)
        if region.inputs.empty:
            return None
        try:
            box = region.box or space.bounds(region.inputs)  # type: ignore[arg-type]
        except Nowhere:
            return None
        # Coefficients are over `scale` and the common denominator of the constraints.
        turned = [(*self.source(element), region.inputs.phases.get(element, 0) * b) for element, b in betas.items()]
        scales = [layer_scale for _, layer_scale, b in turned if b]
        scale = lcm(network.scale, network.input_scale, *scales) << (exponent if scales else 0)
        function, constant = dict.fromkeys(network.logits, 0), 0
        for weight, (terms, added) in zip(weights, self.rows, strict=True):
            constant += weight * added
            for i, c in terms:
                function[i] = function.get(i, 0) + weight * c * (scale // network.owner[i].scale)
        for i, own, b in turned:
            if b:
                function[i] = function.get(i, 0) - b * self.common * (scale // own >> exponent)
        taken, known = Slopes(), check.Region((), (), slopes=slopes)
        number, below = space.minimum(function, scale, taken, box, known)
        strict = any(weight and strict for weight, strict in zip(weights, self.strict, strict=True))
        return box, taken.found, number + (constant * below << GRID), strict

    def source(self, element: int) -> tuple[int, int]:
        """What an element of a rectifier reads, and the scale of that."""
        owner = self.space.network.owner
        layer = owner[element]
        if not isinstance(layer, check.Rectifier):
            raise Refused("a beta for what is not a rectifier")
        found = layer.sources[element - layer.start]
        return found, owner[found].scale

    # ---- nodes

    def refute(self, region: Region) -> list[Region]:
        """Nowhere in the region do all constraints hold."""
        self.leaves += 1
        require(self.holds(region), f"leaf {self.leaves} does not hold")
        return []

    def holds(self, region: Region) -> bool:
        found = self.plane(region)
        if found is None:
            return True
        _, slopes, least, strict = found
        reach = region.inputs.best(slopes) << GRID
        return reach < least or (strict and reach == least)

    def cut(self, region: Region) -> list[Region]:
        found = self.plane(region)
        if found is None:
            return [child(region)]
        box, slopes, least, _ = found
        kept = {
            i: each for layer, here in box.inputs.items() for i, each in zip(check.sources_of(layer), here, strict=True)
        }
        return [child(region, inputs=region.inputs.cut(slopes, least, kept), box=box)]

    def renew(self, region: Region) -> list[Region]:
        return [child(region, box=None)]

    def split_input(self, region: Region) -> list[Region]:
        i, exponent, point, old = self.number(), self.number(), self.integer(), region.inputs
        require(i < len(old.ends) and exponent <= GRID, "an input out of range, or an exponent beyond 64")
        at, (low, high) = point * (self.space.network.input_scale >> exponent), old.ends[i]
        sides = (low, min(high, at)), (max(low, at), high)
        ends = [(*old.ends[:i], side, *old.ends[i + 1 :]) for side in sides]
        return [child(region, inputs=old.moved(each, old.plane, old.kept), box=None) for each in ends]

    def split_phase(self, region: Region) -> list[Region]:
        layer, i = self.rectifier(), self.number()
        element, inputs = layer.start + i, region.inputs
        require(i < layer.size and element not in inputs.phases, "a phase out of range or set twice")
        return [child(region, inputs=inputs.within(element, sign), box=None) for sign in (-1, 1)]


def child(region: Region, **news: Any) -> Region:
    return replace(region, depth=region.depth + 1, **news)


RULES: dict[int, Callable[[Tree, Region], list[Region]]] = {
    1: Tree.refute,
    2: Tree.cut,
    3: Tree.renew,
    4: Tree.split_input,
    5: Tree.split_phase,
}


# --------------------------------------------------------------------------------------------------- the certificate

RATIONAL = re.compile("-?[0-9]{1,2000}(/[0-9]{1,2000})?")
PLACE = re.compile("([XY])_(0|[1-9][0-9]{0,3})")
CERTIFICATE = {
    "format": "swapproof box certificate",
    "version": 2,
    "recipe": "box-2",
    "model": check.CERTIFICATE["model"],
    "network": check.HASH,
    "query": check.FILE,
    "inputs": range(1, 1024),
    "outputs": range(1, 1024),
}


@dataclass(frozen=True)
class Verdict:
    """An accepted certificate: what it says in one plain sentence."""

    cases: int
    nodes: int
    leaves: int
    sentence: str


def rational(text: Any) -> Fraction:
    """In lowest terms, and written in one way only."""
    check.expect(text, RATIONAL, "a number")
    above, _, below = text.partition("/")
    require(int(below or 1), "a number over 0")
    number = Fraction(int(above), int(below or 1))
    require(str(number) == text, f"{text[:40]} is not in lowest terms")
    return number


def read_constraint(entry: Any, inputs: int, outputs: int) -> Constraint:
    fits = type(entry) is dict and entry.keys() == {"coefficients", "constant", "strict"}
    require(fits and type(entry["coefficients"]) is dict, "a constraint is not as it should be")
    check.expect(entry["strict"], range(2), "strict")
    found: dict[str, dict[int, Fraction]] = {"X": {}, "Y": {}}
    for name, text in entry["coefficients"].items():
        matched = PLACE.fullmatch(name)
        if matched is None:
            raise Refused(f"{name!r} is neither an input X_i nor an output Y_j")
        side, place = matched.groups()
        require(int(place) < (inputs if side == "X" else outputs), f"{name} is out of range")
        number = rational(text)
        require(number, f"{name} has the coefficient 0")
        found[side][int(place)] = number
    return Constraint(found["Y"], found["X"], rational(entry["constant"]), bool(entry["strict"]))


@dataclass(frozen=True)
class Case:
    """One box with constraints, and its proof."""

    box: list[tuple[Fraction, Fraction]]
    constraints: list[Constraint]
    tree: bytes


def read_case(entry: Any, inputs: int, outputs: int) -> Case:
    fits = type(entry) is dict and entry.keys() == {"box", "constraints", "tree"}
    require(fits and type(entry["constraints"]) is list, "a case is not as it should be")
    check.expect(entry["box"], [(RATIONAL, RATIONAL)], "box")
    box = [(rational(low), rational(high)) for low, high in entry["box"]]
    require(len(box) == inputs and all(low <= high for low, high in box), "a box of another size, or crossed ends")
    large = any(abs(end) >= 1 << MAX_INPUT_BITS for ends in box for end in ends)
    require(not large, f"an input of 2**{MAX_INPUT_BITS} or more")
    require(len(entry["constraints"]) <= MAX_CONSTRAINTS, "too many constraints")
    constraints = [read_constraint(each, inputs, outputs) for each in entry["constraints"]]
    check.expect(entry["tree"], check.BASE64, "tree")
    tree = base64.b64decode(entry["tree"], validate=True)
    require(base64.b64encode(tree).decode() == entry["tree"], "the tree is not canonical base64")
    return Case(box, constraints, tree)


def read_certificate(data: bytes) -> tuple[dict[str, Any], list[Case]]:
    """The object of a certificate, and its cases."""
    top = check.parse_canonical(data)
    require(type(top) is dict and type(top.get("cases")) is list, "a certificate without cases")
    check.expect({key: value for key, value in top.items() if key != "cases"}, CERTIFICATE, "a certificate")
    names = [name for name, _ in top["model"]["tensors"]]
    require(names == sorted(set(names)), "tensor files must ascend")
    require(len(top["cases"]) <= MAX_CASES, "too many cases")
    return top, [read_case(each, top["inputs"], top["outputs"]) for each in top["cases"]]


def space_of(top: dict[str, Any], cases: list[Case], model: NumericModel, stop: float) -> Space:
    """The network of the certificate, its inputs over a scale that makes the ends of all boxes integers."""
    require(top["model"]["sha256"] == model.sha256, "made for another model: the SHA-256 differs")
    require(dict(top["model"]["tensors"]) == model.tensors, "made for other external tensors")
    require(top["inputs"] == model.inputs, f"the model has {model.inputs} inputs")
    lowered = model.lower(stop)
    require(top["network"] == lowered.sha256, "made for another network: its SHA-256 differs")
    scale = lcm(1 << GRID, *{end.denominator for case in cases for ends in case.box for end in ends})
    networks.narrow(scale)
    network = Network(lowered.data, lowered.numbers, scale)
    outputs = len(network.logits)
    require(top["outputs"] == outputs, f"the model has {outputs} outputs")
    return Space(network, stop)


def check_claims(
    top: dict[str, Any],
    cases: list[Case],
    model: NumericModel,
    stop: float,
    make: Callable[..., Tree] = Tree,
) -> Verdict:
    """Raises Refused when the certificate does not prove that no case has an input, Unusable when the model is
    outside the format. `make` makes the tree of a case: for producers one that goes on after a leaf that does not
    hold.
    """
    space = space_of(top, cases, model, stop)
    scale, nodes, leaves = space.network.input_scale, 0, 0
    for case in cases:
        ends = tuple([(int(low * scale), int(high * scale)) for low, high in case.box])
        tree = make(space, ends, case.constraints, case.tree, stop)
        tree.walk()
        nodes, leaves = nodes + tree.nodes, leaves + tree.leaves
        require(nodes <= MAX_NODES, "the trees are too large")
    many = f"{len(cases)} cases" if len(cases) != 1 else "case"
    sentence = (
        f"{top['model']['file']} has no input that meets the {many} stated here (real; "
        f"that {top['query']['file']} says the same is not checked here)"
    )
    return Verdict(len(cases), nodes, leaves, f"{sentence}; {leaves} leaves")


# -------------------------------------------------------------------------------------------------------------- files


def check_file(path: Path, seconds: float = check.SECONDS) -> Verdict:
    """Check one certificate with the model, and the query if it is there, beside it."""
    stop = time.monotonic() + seconds
    top, cases = read_certificate(check.read_file(path, check.MAX_CERTIFICATE))
    bound, query = top["model"], path.parent / top["query"]["file"]
    data, *tensors = [
        check.read_file(path.parent / name, check.MAX_FILE)
        for name in (bound["file"], *[name for name, _ in bound["tensors"]])
    ]
    require(check.sha256(data) == bound["sha256"], "made for another model: the SHA-256 differs")
    here = query.exists()
    same = not here or check.sha256(check.read_file(query, check.MAX_FILE)) == top["query"]["sha256"]
    require(same, f"made for another query: the SHA-256 of {query.name} differs")
    model = read_model(data, dict(zip([name for name, _ in bound["tensors"]], tensors, strict=True)))
    verdict = check_claims(top, cases, model, stop)
    return (
        verdict if here else replace(verdict, sentence=f"{verdict.sentence}; {query.name} is not here to be compared")
    )


def main(arguments: list[str]) -> int:
    """Exit code 0 after `accepted 1 of 1`; 4 when it was refused; 2 when there is nothing to check."""

    def say(line: str, stream: TextIO = sys.stdout) -> None:
        print(line.encode("ascii", "backslashreplace").decode(), flush=True, file=stream)

    seconds = check.SECONDS
    if len(arguments) == 3 and arguments[0] == "--seconds" and re.fullmatch("[0-9]{1,9}", arguments[1]):
        seconds, arguments = float(arguments[1]), arguments[2:]
    try:
        usable = len(arguments) == 1 and not arguments[0].startswith("--")
        need(usable, "usage: check_box.py [--seconds S] CERTIFICATE.json")
        sentence = check_file(Path(arguments[0]), seconds).sentence
    except Unusable as error:
        say(f"check_box.py: {error}", sys.stderr)
        return 2
    except Exception as error:
        met = "" if isinstance(error, Refused) else f"the checker met {type(error).__name__}: "
        say(f"refused {Path(arguments[0]).name}: {met}{error}")
        say("refused 1 of 1")
        return 4
    say(f"{Path(arguments[0]).name}: {sentence}")
    say("accepted 1 of 1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
