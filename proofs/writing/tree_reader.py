"""Reads the bytes of a proof tree back as plain data, so that a search can go on where its tree was left open.

Nothing is believed of what is read: whatever is made of it is checked like any other proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .certificate import (
    Attention,
    Boxes,
    Broken,
    Chain,
    Enumerate,
    Expansion,
    Joint,
    Linear,
    Node,
    Open,
    Precision,
    Rivals,
    Segment,
    Slopes,
    Words,
)
from .errors import BadInput

LEAVES: dict[int, type[Linear] | type[Enumerate] | type[Open]] = {
    1: Linear,
    2: Enumerate,
    3: Open,
}


def decode_tree(data: bytes, sizes: Sequence[int], rivals: Sequence[int]) -> Node:
    """The inverse of `encode_tree`."""
    return Reader(data, sizes, rivals).tree()


def preorder(tree: Node) -> list[Node]:
    """Every node before those below it, the left one first: the order of the bytes."""
    found: list[Node] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += reversed(below(node))
    return found


def below(node: Node) -> tuple[Node, ...]:
    match node:
        case Words() | Rivals():
            return node.left, node.right
        case Slopes() | Joint() | Precision():
            return (node.inner,)
        case Linear() | Enumerate() | Open() | Broken() | Boxes() | Attention() | Expansion():
            return ()


def replaced(nodes: Sequence[Node], others: Mapping[int, Node]) -> Node:
    """The tree of these nodes in preorder, with other subtrees instead of those that stand at some of their numbers."""
    made: list[Node] = []
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        inner = [made.pop() for _ in below(node)]
        made.append(others[number] if number in others else joined(node, inner))
    return made[0]


def joined(node: Node, inner: Sequence[Node]) -> Node:
    """The same node above others."""
    match node:
        case Words():
            return Words(node.word, node.left_options, *inner)
        case Rivals():
            return Rivals(node.left_rivals, *inner)
        case Slopes():
            return Slopes(node.values, *inner)
        case Joint():
            return Joint(node.groups, *inner)
        case Precision():
            return Precision(node.bits, *inner)
        case Linear() | Enumerate() | Open() | Broken() | Boxes() | Attention() | Expansion():
            return node


class Reader:
    """Goes through the bytes once; the nodes are joined when all are read, so depth costs no recursion."""

    def __init__(self, data: bytes, sizes: Sequence[int], rivals: Sequence[int]) -> None:
        self.data, self.at = data, 0
        self.sizes, self.rivals = sizes, tuple(sorted(rivals))
        self.masks: dict[int, frozenset[int]] = {}
        """Most splits share theirs."""

    def tree(self) -> Node:
        nodes: list[Node] = []
        missing = 1
        while missing:
            nodes.append(self.node())
            missing += len(below(nodes[-1])) - 1
        if self.at != len(self.data):
            raise BadInput(f"{len(self.data) - self.at} bytes after the end of a tree")
        return replaced(nodes, {})

    def node(self) -> Node:
        """One node above nothing yet."""
        kind, nothing = self.byte(), Open()
        match kind:
            case 1 | 2 | 3:
                return LEAVES[kind]()
            case 16:
                return Broken(self.number())
            case 4:
                word = self.number()
                if word >= len(self.sizes):
                    raise BadInput(f"word {word} of a text of {len(self.sizes)}")
                return Words(word, self.mask(self.sizes[word]), nothing, nothing)
            case 7:
                chosen = self.mask(len(self.rivals))
                return Rivals(frozenset(self.rivals[bit] for bit in chosen), nothing, nothing)
            case 8:
                return Slopes(self.table(), nothing)
            case 10:
                return Joint(tuple((self.number(), self.pairs(self.number())) for _ in range(self.number())), nothing)
            case 11:
                return Precision(self.number(), nothing)
            case 24:
                return Boxes(self.segments())
            case 25:
                return Attention()
            case 26:
                return Expansion(self.number(), self.chains())
            case _:
                raise BadInput(f"no node begins with the byte {kind}")

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise BadInput("a tree that ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def mask(self, size: int) -> frozenset[int]:
        value = int.from_bytes(bytes(self.byte() for _ in range((size + 7) // 8)), "little")
        if value >> size:
            raise BadInput(f"a mask of more than {size} bits")
        if value not in self.masks:
            self.masks[value] = frozenset(bit for bit in range(size) if value >> bit & 1)
        return self.masks[value]

    def segments(self) -> tuple[Segment, ...]:
        found: list[Segment] = []
        free = 0
        for _ in range(self.number()):
            found.append(Segment(free + self.number(), self.number(), self.number()))
            free = found[-1].first + found[-1].layers
        return tuple(found)

    def chains(self) -> tuple[Chain, ...]:
        found: list[Chain] = []
        free = 0
        for _ in range(self.number()):
            first, layers, descending = free + self.number(), self.number(), self.number()
            if descending > 1:
                raise BadInput(f"an order {descending} of a chain")
            found.append(Chain(first, layers, bool(descending)))
            free = first + layers
        return tuple(found)

    def pairs(self, count: int) -> dict[int, int]:
        found: dict[int, int] = {}
        last = 0
        for _ in range(count):
            last += self.number()
            found[last] = self.number()
        return found

    def table(self) -> dict[int, dict[int, int]]:
        return {self.number(): self.pairs(self.number()) for _ in range(self.number())}
