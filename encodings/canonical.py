"""The canonical network of FORMAT.md, section 4.3, written from the layers that search and bounds work with.

Its SHA-256 stands in every certificate. The checkers read the ONNX file on their own and must come to the same bytes,
so equal hashes say that a `Network` and the checkers' network are one and the same: numbers, order of elements, layers,
and whether claims at level float32 are possible. What the hash does not say: anything about nodes that the logits do
not depend on, the order of additions, and that this file writes what a `Network` computes (the tests evaluate it).
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .canonical_layers import FIRST_CONSTANT, PADDING, Bends, Curved, Greatest, Inputs, Lookup, Pairs, Rows, Step, Walk
from .errors import Unsupported
from .exact_numbers import Numbers, exact, exact_numbers, number_bytes
from .network import Curve, Floats, Function, Indices, Maximum, Network, Product, Rectifier, Table

START = b"swapproof net 2\n"


@dataclass(frozen=True, eq=False)
class Form:
    """Constants, layers and logits, as elements are numbered in the end."""

    constants: Numbers
    steps: tuple[Step, ...]
    logits: Indices


@dataclass(frozen=True)
class Canonical:
    """`data` is None where the network has no canonical form or is not known exactly: `reason` says why."""

    data: bytes | None
    reason: str = ""
    float32: bool = False
    numbers: tuple[str, ...] = ()
    """The SHA-256 of every blob of numbers, in order."""
    layer_of: Mapping[int, int] = field(default_factory=dict)
    """Nonlinear node -> its layer, where the logits depend on it; elements are numbered alike in both."""
    form: Form | None = None
    """What the bytes say."""

    @cached_property
    def sha256(self) -> str | None:
        return None if self.data is None else hashlib.sha256(self.data).hexdigest()


def canonical_network(
    network: Network, *, inputs: Literal["tokens", "numbers"] = "tokens", keep: dict[str, bytes] | None = None
) -> Canonical:
    """The canonical network; of one that reads numbers (section 14), its first node stands for these.

    `keep` receives the numbers that stand in it as hashes, each form as one digit and then the bytes.
    """
    account = network.account
    if account is None:
        return Canonical(None, "the network was not read from an ONNX file")
    if network.inexact or account.foreign:
        return Canonical(None, (*network.inexact, *account.foreign)[0])
    try:
        walk = Walk(network, inputs)
        for at in network.places:
            walk.visit(at)
        last = walk.elements[len(network.nodes) - 1]
    except Unsupported as error:
        return Canonical(None, str(error))
    float32 = inputs == "tokens" and not account.real_only
    steps, constants, names = numbered(walk, last.ravel(), account.nodes)
    logits = names[last.ravel()]
    ink = Ink(keep)
    parts = [START, u32(int(float32)), u32(positions_of(network) if inputs == "tokens" else 0)]
    parts += [u32(len(constants)), *ink.written(constants), u32(len(steps))]
    for step in steps:
        parts += encoded(step, ink, sum(map(len, network.before)))
    parts += [u32(len(logits)), u32s(logits)]
    starts = np.cumsum([len(constants), *(step.size for step in steps)])
    layer_of: dict[int, int] = {}
    for index, node in enumerate(network.nodes):
        if isinstance(node.layer, Rectifier | Maximum | Product | Curve):
            first = int(names[walk.elements[index].flat[0]])
            layer_of |= {index: int(np.searchsorted(starts, first, side="right")) - 1} if first >= 0 else {}
    form = Form(constants, tuple(steps), logits)
    return Canonical(b"".join(parts), "", float32, tuple(ink.hashes), layer_of, form)


def positions_of(network: Network) -> int:
    """Of all inputs of the model together."""
    return network.length + sum(map(len, (*network.before, *network.after)))


KEPT: weakref.WeakKeyDictionary[Network, Canonical] = weakref.WeakKeyDictionary()
"""As long as their networks are."""


def canonical_of(network: Network) -> Canonical:
    """The same, of a network that reads tokens; kept."""
    found = KEPT.get(network)
    if found is None:
        found = KEPT[network] = canonical_network(network)
    return found


def windows_read(network: Network, index: int) -> Indices:
    """[outputs, width]: the elements that the windows of a maximum read, by number, in the order of the network."""
    canonical = canonical_of(network)
    step = None if canonical.form is None else canonical.form.steps[canonical.layer_of[index]]
    if not isinstance(step, Greatest):
        raise ValueError(f"node {index} is no maximum of a canonical network")
    return step.windows


def numbered(walk: Walk, logits: Indices, nodes: int) -> tuple[list[Step], Floats, Indices]:
    """The layers that the logits depend on; their constants; and the numbers that elements have in the end, or -1."""
    starts = np.array([first for _, first, _ in walk.steps], dtype=np.int64)
    needed = np.array([isinstance(step, Inputs) for _, _, step in walk.steps], dtype=np.bool_)
    shown = np.zeros(len(walk.constants), dtype=np.bool_)
    for layer in range(len(walk.steps), -1, -1):  # layers read earlier ones
        if layer < len(walk.steps) and not needed[layer]:
            continue
        elements = logits if layer == len(walk.steps) else read_by(walk.steps[layer][2])
        shown[FIRST_CONSTANT - elements[elements <= FIRST_CONSTANT]] = True
        needed[np.searchsorted(starts, elements[elements >= 0], side="right") - 1] = True
    constants = sorted((number, FIRST_CONSTANT - place) for number, place in walk.constants.items() if shown[place])
    names = np.full(walk.size + len(walk.constants) + 2, -1, dtype=np.int64)
    for place, (_, name) in enumerate(constants):
        names[name] = place  # from the end
    start = len(constants)
    places = [number % max(1, nodes) if number >= 0 else -1 for number, _, _ in walk.steps]  # a Clip counts on
    order = sorted(np.flatnonzero(needed).tolist(), key=lambda layer: (places[layer], layer))
    for layer in order:
        _, first, step = walk.steps[layer]
        names[first : first + step.size] = np.arange(start, start + step.size)
        start += step.size
    steps = [renamed(walk.steps[layer][2], names) for layer in order]
    return steps, np.array([number for number, _ in constants]), names


def read_by(step: Step) -> Indices:
    match step:
        case Lookup() | Inputs():
            return np.zeros(0, dtype=np.int64)
        case Rows(lists):
            return lists.ravel()
        case Bends(_, read) | Curved(_, read):
            return read
        case Greatest(read) | Pairs(read):
            return read.ravel()


def renamed(step: Step, names: Indices) -> Step:
    match step:
        case Lookup() | Inputs():
            return step
        case Rows(lists):
            return replace(step, lists=np.where(lists == PADDING, PADDING, names[lists]))
        case Bends(_, read) | Curved(_, read) | Pairs(read):
            return replace(step, read=names[read])
        case Greatest(windows):
            return replace(step, windows=names[windows])


# --- bytes ----------------------------------------------------------------------------------------------------------


@dataclass
class Ink:
    keep: dict[str, bytes] | None
    hashes: list[str] = field(default_factory=list)
    known: dict[int, tuple[tuple[Numbers, ...], list[bytes], str]] = field(default_factory=dict)

    def written(self, numbers: NDArray[Any]) -> Iterator[bytes]:
        """The form of the numbers, and the hash of what stands for them."""
        source, form, digest = SEEN.get(id(numbers), (None, 0, b""))
        if self.keep is not None or source is None or source() is not numbers:
            form, data = number_bytes(numbers)
            digest = hashlib.sha256(data).digest()
            if self.keep is not None:
                self.keep[digest.hex()] = str(form).encode() + bytes(data)
            if numbers.size > LARGE and not numbers.flags.writeable:
                SEEN[id(numbers)] = weakref.ref(numbers, forgotten(id(numbers))), form, digest
        self.hashes.append(digest.hex())
        yield u32(form) + digest

    def joined(self, parts: tuple[Numbers, ...]) -> Iterator[bytes]:
        """The same of numbers one after the other; of those that many layers share, once."""
        if id(parts) not in self.known:
            self.known[id(parts)] = parts, [*self.written(joined(parts))], self.hashes[-1]
        else:
            self.hashes.append(self.known[id(parts)][2])
        yield from self.known[id(parts)][1]


LARGE = 2**16
SEEN: dict[int, tuple[weakref.ref[NDArray[Any]], int, bytes]] = {}
"""Form and hash of large arrays that cannot change, as long as they are there: tables, read at every length."""


def forgotten(name: int) -> Callable[[object], None]:
    return lambda _: SEEN.pop(name, None) and None


def u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def u32s(numbers: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<u4").tobytes()


def encoded(step: Step, ink: Ink, offset: int) -> Iterator[bytes]:
    """`offset`: positions of the inputs before that of the tokens, for they are numbered through all."""
    match step:
        case Inputs(size):
            yield u32(0) + u32(size)
        case Lookup(table, positions):
            stored = table.stored if isinstance(table, Table) else table
            yield u32(1) + u32(stored.shape[0]) + u32(stored.shape[1])
            yield from ink.written(stored)
            yield u32(len(positions)) + u32s(positions + offset)
        case Rows(lists, weights, list_of, weights_of, bias):
            yield u32(2) + u32(len(lists))
            yield ragged(lists, lists != PADDING)
            yield u32(len(weights)) + u32s(np.array([len(sequence) for sequence in weights]))
            yield from ink.joined(weights)
            yield u32(len(list_of)) + u32s(np.stack([list_of, weights_of], axis=1))
            yield from ink.written(bias)
        case Bends(slope, read):
            yield u32(3)
            yield from ink.written(np.array([slope]))
            yield u32(len(read)) + u32s(read)
        case Greatest(windows):
            ordered = np.sort(windows, axis=1)
            first = np.ones(ordered.shape, dtype=np.bool_)
            first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
            yield u32(4) + u32(len(windows))
            yield ragged(ordered, first)
        case Pairs(read):
            yield u32(5) + u32(len(read)) + u32s(read)
        case Curved(function, read):
            yield u32(6) + u32(NUMBER_OF[function]) + u32(len(read)) + u32s(read)


NUMBER_OF: dict[Function, int] = {"exp": 1, "tanh": 2, "sigmoid": 3, "erf": 4, "reciprocal": 5, "sqrt": 6}
"""A function in the bytes."""


def ragged(matrix: Indices, shown: NDArray[np.bool_]) -> bytes:
    """For each row the number of those shown, and these."""
    lengths = shown.sum(axis=1)
    cells = np.concatenate([lengths[:, None], matrix], axis=1)
    mask = np.concatenate([np.ones((len(matrix), 1), dtype=np.bool_), shown], axis=1)
    return u32s(cells if shown.all() else cells[mask])


def joined(parts: Sequence[Numbers]) -> Numbers:
    """All numbers, one after the other."""
    if any(part.dtype == object for part in parts):
        return exact_numbers([exact(number) for part in parts for number in part.tolist()])
    return np.concatenate(parts) if parts else np.zeros(0)
