"""Our reading of a file and check.py's, compared until nothing is left in which proofs could differ over the reals.

The recipe (FORMAT section 7) knows a network by its nonlinear layers, by what each element that they read is (a
constant, a certain output of a certain nonlinear layer, or neither: then it is bounded by substitution, which is exact
through whatever affine layers lie between), and by its numbers. The first two are compared one by one. As to numbers,
all between embeddings, nonlinear layers and logits is affine: random integers are put in place of what is looked up and
of what nonlinear layers give, and all that these read, and the logits, must come out equal over the rationals. Affine
functions that are not equal come out equal with a probability of 2**-30 at most. Tables are compared row by row: a
table may be computed, and exact in one reading only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.exact_evaluation import Exact, constant, exact_layer
from swapproof.encodings.network import Constant, Embedding, Maximum, Network, Node, Rearrangement, Rectifier, Table
from swapproof.proofs.check import Layer
from swapproof.proofs.check import Network as CheckedNetwork

from ..numbers.float64_rounding import Floats
from ..numbers.margins import repeats
from .unsure import Unsure

Indices = NDArray[np.int64]

CONSTANT, AFFINE, IDLE = -1, -2, -3
"""Instead of the place of a nonlinear layer; idle are those that play no part."""
LARGEST = 1 << 29
"""Of the random integers, in magnitude."""
ROWS = 4096
"""Of a table that are compared at once: bounds memory."""
ALIKE: deque[tuple[Any, Any]] = deque(maxlen=8)
"""Tables that were compared, ours and theirs: networks of other lengths hold the same."""


class Element(NamedTuple):
    """The place of the nonlinear layer that gives it, or what else it is; which of its outputs; and its number."""

    source: int
    output: int
    number: Fraction


@dataclass(frozen=True, eq=False)
class Pair:
    """A layer in both readings: our node, and check.py's layer; and integers to put in place of what it gives."""

    index: int
    layer: Layer
    drawn: Indices


def paired(network: Network, checked: CheckedNetwork) -> list[Pair]:
    """The nonlinear layers; raises Unsure unless every proof means the same in both readings over the reals."""
    played, chosen = sorted(playing(network)), np.random.default_rng()

    def pairs(kinds: type | tuple[type, ...], layers: Sequence[Layer]) -> list[Pair]:
        nodes = [index for index in played if isinstance(network.nodes[index].layer, kinds)]
        alike = len(nodes) == len(layers)
        expect(alike and all(same_layer(network.nodes[i], each) for i, each in zip(nodes, layers, strict=True)))
        drawn = [chosen.integers(-LARGEST, LARGEST, size=layer.size) for layer in layers]
        return [Pair(*each) for each in zip(nodes, layers, drawn, strict=True)]

    looked_up = pairs(Embedding, [layer for layer in checked.layers if layer.kind == "embedding"])
    nonlinear = pairs((Rectifier, Maximum), checked.nonlinear)
    ours, theirs = Ours.of(network, looked_up, nonlinear), Theirs.of(checked, looked_up, nonlinear)
    for pair in nonlinear:
        here, there = ours.elements(network.nodes[pair.index].inputs[0]), theirs.elements(pair.layer.sources)
        if isinstance(network.nodes[pair.index].layer, Maximum):
            expect(same_windows(here, there, pair.layer, repeats(network, pair.index).tolist()))
        else:
            expect(here == there)
    here, there = ours.elements(len(network.nodes) - 1), theirs.elements(checked.logits)
    expect([element.number for element in here] == [element.number for element in there])
    return nonlinear


def same_layer(node: Node, layer: Layer) -> bool:
    """Kind and size, and what else there is: slope and number of a rectifier; positions and a table."""
    match node.layer:
        case Rectifier(slope):
            alike = layer.kind == "rectifier" and Fraction(slope) == Fraction(layer.p, layer.q)
            return alike and node.number == layer.node and node.size == layer.size
        case Embedding(table, positions):
            if positions.reshape(-1).tolist() != list(layer.rows) or tuple(table.shape) != tuple(layer.table.shape):
                return False
            return same_table(table, layer.table.items)
        case _:
            return layer.kind == "maximum" and node.size == layer.size


def same_table(table: Floats | Table, items: Sequence[Any]) -> bool:
    """Number by number: Python compares floats and fractions exactly."""
    held = table.stored if isinstance(table, Table) else table
    if any(held is ours and items is theirs for ours, theirs in ALIKE):
        return True
    numbers = iter(items)
    for start in range(0, len(table), ROWS):
        here = np.asarray(table[start : start + ROWS]).reshape(-1).tolist()
        if here != list(islice(numbers, len(here))):
            return False
    ALIKE.append((held, items))
    return True


def same_windows(ours: list[Element], theirs: list[Element], layer: Layer, repeated: list[bool]) -> bool:
    """Padding, which check.py leaves out of a window, is here an element that the window holds anyway."""
    width = len(ours) // layer.size
    for at, (window, several) in enumerate(zip(layer.rows, repeated, strict=True)):
        here, there = ours[at * width : (at + 1) * width], theirs[window.start : window.stop]
        if here != there and not (several and set(here) == set(there)):
            return False
    return True


def playing(network: Network) -> set[int]:
    """The nodes that hold an element from which the logits are computed, a layer counting as a whole."""
    last = len(network.nodes) - 1
    used = {last: np.ones(network.nodes[last].size, dtype=np.bool_)}
    for index in range(last, -1, -1):
        if index not in used or not network.nodes[index].inputs:
            continue
        node, sizes = network.nodes[index], [network.nodes[source].size for source in network.nodes[index].inputs]
        if isinstance(node.layer, Rearrangement):
            read = np.zeros(sum(sizes), dtype=np.bool_)
            read[node.layer.index.reshape(-1)[used[index]]] = True
        else:
            read = np.ones(sum(sizes), dtype=np.bool_)
        for source, part in zip(node.inputs, np.split(read, np.cumsum(sizes)[:-1]), strict=True):
            if part.any():
                used[source] = used.get(source, np.zeros(len(part), dtype=np.bool_)) | part
    return set(used)


@dataclass(frozen=True, eq=False)
class Ours:
    """Our network with drawn numbers."""

    numbers: list[Exact]
    """By node."""
    sources: list[Indices]
    outputs: list[Indices]

    @classmethod
    def of(cls, network: Network, looked_up: Sequence[Pair], nonlinear: Sequence[Pair]) -> Ours:
        places = {pair.index: place for place, pair in enumerate(nonlinear)}
        given = {pair.index: pair.drawn.astype(np.float64) for pair in (*looked_up, *nonlinear)}
        made, nothing = cls([], [], []), np.zeros(0, dtype=np.int64)
        for index, node in enumerate(network.nodes):
            shape, idle = node.shape or (1,), np.zeros(node.size)
            match node.layer:
                case Embedding() | Rectifier() | Maximum():
                    number = constant(given.get(index, idle).reshape(shape))
                    source = AFFINE if isinstance(node.layer, Embedding) else places.get(index, IDLE)
                case layer:
                    inputs = [made.numbers[i] for i in node.inputs]
                    number = exact_layer(layer, inputs, node.shape, nothing, network.unit)
                    source = CONSTANT if isinstance(layer, Constant) else AFFINE
            made.numbers.append(number)
            if isinstance(node.layer, Rearrangement):
                order = node.layer.index.reshape(-1)
                made.sources.append(np.concatenate([made.sources[i] for i in node.inputs])[order])
                made.outputs.append(np.concatenate([made.outputs[i] for i in node.inputs])[order])
            else:
                made.sources.append(np.full(node.size, source))
                made.outputs.append(np.arange(node.size) * (source >= 0))
        return made

    def elements(self, index: int) -> list[Element]:
        """Of a node."""
        x = self.numbers[index]
        above, below = x.scale.numerator, x.scale.denominator
        numbers = [Fraction(int(number) * above, below) for number in x.integers.reshape(-1)]
        found = zip(self.sources[index].tolist(), self.outputs[index].tolist(), numbers, strict=True)
        return [Element(*each) for each in found]


@dataclass(frozen=True, eq=False)
class Theirs:
    """check.py's network with drawn numbers."""

    checked: CheckedNetwork
    numbers: list[int]
    sources: dict[Layer, int]

    @classmethod
    def of(cls, checked: CheckedNetwork, looked_up: Sequence[Pair], nonlinear: Sequence[Pair]) -> Theirs:
        numbers = [0] * len(checked.owner)
        given = {pair.layer: pair.drawn.tolist() for pair in (*looked_up, *nonlinear)}
        for layer in checked.layers:
            if layer in given:
                found = [number * layer.scale for number in given[layer]]
                numbers[layer.start : layer.start + layer.size] = found
            else:
                checked.evaluate([layer], numbers)
        sources = {layer: CONSTANT if layer.kind == "constants" else AFFINE for layer in checked.layers}
        return cls(checked, numbers, sources | {pair.layer: place for place, pair in enumerate(nonlinear)})

    def elements(self, numbered: Sequence[int]) -> list[Element]:
        found = []
        for i in numbered:
            layer = self.checked.owner[i]
            source = self.sources[layer]
            output = i - layer.start if source >= 0 else 0
            found.append(Element(source, output, Fraction(self.numbers[i], layer.scale)))
        return found


def expect(fact: bool) -> None:
    if not fact:
        raise Unsure("the two readings of the model differ")
