"""Writes certificates: proof trees and statements as plain data in, the bytes of FORMAT.md out."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import sub
from typing import Literal

from ..check import merkle_root
from .errors import BadInput

__all__ = [
    "Attention",
    "Boxes",
    "Broken",
    "Count",
    "Enumerate",
    "File",
    "Input",
    "Joint",
    "Level",
    "Linear",
    "Lower",
    "Node",
    "Open",
    "Precision",
    "Recipe",
    "Rivals",
    "Segment",
    "Slopes",
    "Statement",
    "Upper",
    "Word",
    "Words",
    "encode_tree",
    "merkle_root",
    "write_certificate",
]

Level = Literal["real", "float32", "kernel"]
Recipe = Literal["linear-2", "smooth-1"]
Multipliers = Mapping[int, Mapping[int, int]]


@dataclass(frozen=True)
class Linear:
    """Leaf: the pinned recipe proves it."""


@dataclass(frozen=True)
class Enumerate:
    """Leaf: every sentence evaluated."""


@dataclass(frozen=True)
class Open:
    """Leaf: nothing proved here."""


@dataclass(frozen=True)
class Broken:
    """Leaf: this rival beats the label in every sentence, by the pinned recipe."""

    rival: int


@dataclass(frozen=True, eq=False)
class Words:
    """Split: left, the options (by index, 0 the original) of a word (by index) in `left_options`; right, the others."""

    word: int
    left_options: frozenset[int]
    left: Node
    right: Node


@dataclass(frozen=True, eq=False)
class Rivals:
    """Split: left, the rivals (classes) in `left_rivals`; right, the others of the region."""

    left_rivals: frozenset[int]
    left: Node
    right: Node


@dataclass(frozen=True, eq=False)
class Slopes:
    """Sets lower slopes value / 64 for a subtree: layer -> element -> value from 0 to 64.

    Layers are those of the canonical network, by index; elements by their place in the layer.
    """

    values: Multipliers
    inner: Node


@dataclass(frozen=True, eq=False)
class Joint:
    """Bounds groups of elements together in a subtree, with these slopes / 64.

    One pair per group: layer, element -> slope from 0 to 64; the layer reads what is affine in the words.
    """

    groups: tuple[tuple[int, Mapping[int, int]], ...]
    inner: Node


@dataclass(frozen=True)
class Segment:
    """So many layers of the canonical network from `first` on, conditioned on the option of one word (by index)."""

    first: int
    layers: int
    word: int


@dataclass(frozen=True)
class Boxes:
    """Leaf of a smooth network: intervals for every number of swaps; segments ascend and do not overlap."""

    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True)
class Attention:
    """Leaf of a smooth network, at level real: what single swaps do, and what they do together."""


@dataclass(frozen=True)
class Chain:
    """So many layers of the canonical network from `first` on, which read words in ascending or descending order."""

    first: int
    layers: int
    descending: bool = False


@dataclass(frozen=True)
class Expansion:
    """Leaf of a smooth network: the margin expanded at one sentence; chains ascend and do not overlap.

    Swaps with more than `reach` moving words of a chain behind them share their intervals.
    """

    reach: int
    chains: tuple[Chain, ...] = ()


@dataclass(frozen=True, eq=False)
class Precision:
    """Numbers of a smooth network are multiples of 2**-bits in a subtree, from 16 to 64 bits."""

    bits: int
    inner: Node


Node = Linear | Enumerate | Open | Broken | Boxes | Attention | Expansion | Words | Rivals | Slopes | Joint | Precision


@dataclass(frozen=True)
class File:
    name: str
    sha256: str


@dataclass(frozen=True)
class Lower:
    """In no sentence with at most `swaps` swaps does a rival beat the label."""

    swaps: int
    level: Level
    tree: Node = field(repr=False)


@dataclass(frozen=True)
class Count:
    """Of `total` sentences with at most `swaps` swaps at least `robust` are won by the label, `broken` by a rival."""

    swaps: int
    level: Level
    tree: Node = field(repr=False)
    robust: int = 0
    broken: int = 0
    total: int = 0


@dataclass(frozen=True)
class Upper:
    """The sentence with these (word, option) swaps is won by a rival, at these levels of truth."""

    swaps: tuple[tuple[int, int], ...]
    levels: tuple[Literal["real", "float32", "kernel", "replay"], ...]


@dataclass(frozen=True)
class Input:
    """What the model reads at an input: the original integers, of words or of a constant."""

    role: Literal["words", "constant"]
    integers: tuple[int, ...]


@dataclass(frozen=True)
class Word:
    """Where it starts, and its options: each as many integers as it has positions, the original first."""

    start: int
    options: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Statement:
    """What a certificate is about and what it claims; hashes in lower-case hexadecimal.

    `network` is that of the canonical network of this model for these inputs and words; `recipe` is smooth-1 if it has
    a product or a curve.
    """

    id: int
    model: File
    tensors: tuple[File, ...]
    vocabulary: File | None
    text: str
    synonyms: str | None
    network: str
    inputs: tuple[Input, ...]
    words: tuple[Word, ...]
    label: int
    rivals: tuple[int, ...]
    lower: Lower | None = None
    count: Count | None = None
    upper: Upper | None = None
    recipe: Recipe = "linear-2"


def write_certificate(statement: Statement) -> bytes:
    """The canonical JSON of a statement, proofs included."""
    lower, count, upper = statement.lower, statement.count, statement.upper
    rivals = tuple(sorted(statement.rivals))
    sizes = tuple(len(word.options) for word in statement.words)

    def tree_part(part: Lower | Count) -> dict[str, object]:
        tree = base64.b64encode(encode_tree(part.tree, sizes, rivals)).decode()
        return {"swaps": part.swaps, "level": part.level, "recipe": statement.recipe, "tree": tree}

    value: dict[str, object] = {
        "format": "swapproof certificate",
        "version": 2,
        "id": statement.id,
        "model": {
            "file": statement.model.name,
            "sha256": statement.model.sha256,
            "tensors": sorted([file.name, file.sha256] for file in statement.tensors),
        },
        "vocabulary": statement.vocabulary
        and {"file": statement.vocabulary.name, "sha256": statement.vocabulary.sha256},
        "text": statement.text,
        "synonyms": statement.synonyms,
        "network": statement.network,
        "inputs": [(given.role, given.integers) for given in statement.inputs],
        "words": [(word.start, word.options) for word in statement.words],
        "label": statement.label,
        "rivals": rivals,
        "lower": lower and tree_part(lower),
        "count": count
        and {
            **tree_part(count),
            "robust": decimal(count.robust),
            "broken": decimal(count.broken),
            "total": decimal(count.total),
        },
        "upper": upper and {"swaps": sorted(upper.swaps), "levels": upper.levels},
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def decimal(number: int) -> str:
    """Python itself refuses to write more than 4,300 digits at once."""
    return str(number) if number < 10**4000 else decimal(number // 10**4000) + str(number % 10**4000).zfill(4000)


def encode_tree(tree: Node, sizes: Sequence[int], rivals: Sequence[int]) -> bytes:
    """The preorder bytes of FORMAT section 5; `sizes` are the numbers of options per word."""
    out = bytearray()
    stack = [tree]
    while stack:
        node = stack.pop()
        match node:
            case Linear():
                out.append(1)
            case Enumerate():
                out.append(2)
            case Open():
                out.append(3)
            case Broken():
                out.append(16)
                out += number(node.rival)
            case Words():
                out.append(4)
                out += number(node.word)
                out += mask(node.left_options, sizes[node.word])
            case Rivals():
                out.append(7)
                out += mask((rivals.index(rival) for rival in node.left_rivals), len(rivals))
            case Slopes():
                out.append(8)
                out += table(node.values)
            case Joint():
                out.append(10)
                out += number(len(node.groups))
                for layer, slopes in node.groups:
                    out += entries(layer, slopes)
            case Precision():
                out.append(11)
                out += number(node.bits)
            case Attention():
                out.append(25)
            case Boxes():
                out.append(24)
                out += number(len(node.segments))
                free = 0
                for segment in node.segments:
                    out += number(segment.first - free) + number(segment.layers) + number(segment.word)
                    free = segment.first + segment.layers
            case Expansion():
                out.append(26)
                out += number(node.reach) + number(len(node.chains))
                free = 0
                for chain in node.chains:
                    out += number(chain.first - free) + number(chain.layers) + number(int(chain.descending))
                    free = chain.first + chain.layers
        match node:
            case Words() | Rivals():
                stack += [node.right, node.left]
            case Slopes() | Joint() | Precision():
                stack.append(node.inner)
            case Linear() | Enumerate() | Open() | Broken() | Boxes() | Attention() | Expansion():
                pass
    return bytes(out)


def number(value: int) -> bytes:
    """LEB128, minimal."""
    if not 0 <= value < 1 << 31:
        raise BadInput(f"{value} does not fit a number of the tree, from 0 to 2**31 - 1")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def mask(bits: Iterable[int], size: int) -> bytes:
    value = 0
    for bit in bits:
        if not 0 <= bit < size:
            raise BadInput(f"option {bit} of {size}")
        value |= 1 << bit
    return value.to_bytes((size + 7) // 8, "little")


def table(values: Multipliers) -> bytes:
    if not values or not all(values.values()):
        raise BadInput("a table of multipliers must not be empty")
    out = number(len(values))
    for layer, chosen in sorted(values.items()):
        out += entries(layer, chosen)
    return out


def entries(layer: int, values: Mapping[int, int]) -> bytes:
    """The layer, the number of entries, and (step from the last element, value) for each."""
    order = sorted(values)
    numbers = [0] * (2 * len(order))
    numbers[::2] = map(sub, order, [0, *order[:-1]])
    numbers[1::2] = map(values.__getitem__, order)
    head = number(layer) + number(len(order))
    single = not numbers or 0 <= min(numbers) <= max(numbers) < 128
    return head + (bytes(numbers) if single else b"".join(map(number, numbers)))
