"""The open leaves of a kept tree, as regions that a search can go on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swapproof.encodings.bounds.chosen_slopes import GRID, Relaxation
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.shallow_margin import Shallow
from swapproof.encodings.errors import BadInput
from swapproof.encodings.sentence_counts import counts, up_to
from swapproof.proofs.writing.certificate import Enumerate, Joint, Linear, Node, Open, Rivals, Slopes, Words
from swapproof.proofs.writing.tree_reader import below, preorder

Choices = frozenset[int]


@dataclass(frozen=True)
class Rest:
    """A part of a tree that is left to search, with what is decided above it, in rows and columns of `Places`."""

    number: int
    """Of the node in preorder."""
    tree: Node
    """An open leaf, or what a search with other slopes left."""
    decided: frozenset[int]
    made: tuple[tuple[int, tuple[int, ...]], ...]
    """Positions with the choices of which one is made."""

    @property
    def leads(self) -> bool:
        """Whether the first positions are decided and no others."""
        return self.decided == frozenset(range(len(self.decided)))

    def places(self, places: Places) -> Places:
        """The positions that are left to decide, after one swap at each of those decided."""
        rows = [row for row in range(places.count) if row not in self.decided]
        made = (int(places.swaps[row, column]) for row, (column,) in self.made)
        return Places(places.differences, places.swaps[rows], (*places.made, *made))

    def proved_with(self, prove: Callable[[Rest], Node], places: Places) -> Node:
        """The tree of those parts of it, one of several choices of a position each, that have their own."""
        for at, (row, choices) in enumerate(self.made):
            if len(choices) > 1:
                first, others = (
                    replace(self, made=(*self.made[:at], (row, some), *self.made[at + 1 :]))
                    for some in (choices[:1], choices[1:])
                )
                options = frozenset({choices[0] + 1})
                left, right = (part.proved_with(prove, places) for part in (first, others))
                return Words(int(places.words[row]), options, left, right)
        return prove(self)


def of_rivals(tree: Node | None, rivals: Sequence[int]) -> dict[int, Node]:
    """Rival -> the tree against it, an open leaf where there is none: what `against_all` put together."""
    found: dict[int, Node] = {}
    rest = Open() if tree is None else tree
    while isinstance(rest, Rivals):
        (rival,) = rest.left_rivals
        found[rival], rest = rest.left, rest.right
    found |= {rival: rest for rival in rivals if rival not in found}
    return found


def unwrapped(tree: Node) -> tuple[Joint | None, Slopes | None, Node]:
    """The joint groups and slopes set for a whole tree, and the tree below."""
    joint = slopes = None
    if isinstance(tree, Joint):
        joint, tree = tree, tree.inner
    if isinstance(tree, Slopes):
        slopes, tree = tree, tree.inner
    return joint, slopes, tree


def rest_of(nodes: Sequence[Node], places: Places, first: int) -> Iterator[Rest]:
    """What is left to search of the tree of these nodes in preorder, from the node `first` on."""
    for number, now in parts_of(nodes, places, first):
        if isinstance(node := nodes[number], Open | Joint | Slopes):
            yield rest(number, node, now)


def listed_in(tree: Node, places: Places, k: int) -> int:
    """Sentences with at most k swaps that the leaves of a tree against one rival list."""
    nodes, ways, total = preorder(tree), places.there.sum(axis=1).tolist(), 0
    free: dict[frozenset[int], list[int]] = {}
    """Rows decided -> sentences with at most j swaps at the others."""
    for number, now in parts_of(nodes, places, 0, inside=True):
        if not isinstance(nodes[number], Enumerate):
            continue
        rows = frozenset(now)
        if rows not in free:
            (free[rows],) = up_to([counts((ways[row] for row in range(places.count) if row not in rows), k)])
        made = [1]
        """[j]: ways to make j swaps at the rows decided."""
        for swapped, stays in ((len(choices - {0}), 0 in choices) for choices in now.values() if choices != {0}):
            made = [stays * same + swapped * fewer for same, fewer in zip([*made, 0], [0, *made], strict=True)]
        total += sum(found * free[rows][k - count] for count, found in enumerate(made[: k + 1]))
    return total


def parts_of(
    nodes: Sequence[Node], places: Places, first: int, *, inside: bool = False
) -> Iterator[tuple[int, Mapping[int, Choices]]]:
    """Of a tree in preorder, from the node `first` on: the nodes that split no word, and what is decided above them;
    `inside`: those below joint groups and slopes too."""
    rows = {int(word): row for row, word in enumerate(places.words)}
    full = [frozenset(range(int(there.sum()) + 1)) for there in places.there]
    now: dict[int, Choices] = {}
    ends = after_each(nodes)
    waiting: list[tuple[int, int, Choices | None]] = [(first, -1, None)]
    """(node, row to restrict, to what), or with node -1: a restriction to undo."""
    while waiting:
        number, row, choices = waiting.pop()
        before = now.get(row)
        if choices is not None:
            now[row] = choices
        elif row >= 0:
            now.pop(row, None)
        if number < 0:
            continue
        if row >= 0:
            waiting.append((-1, row, before))
        match node := nodes[number]:
            case Words():
                at = rows[node.word]
                right = now.get(at, full[at]) - node.left_options
                waiting += [(ends[number + 1], at, right), (number + 1, at, node.left_options)]
            case Open() | Linear() | Enumerate():
                yield number, now
            case Joint() | Slopes():
                yield number, now
                if inside:
                    waiting.append((number + 1, -1, None))
            case _:
                raise BadInput(f"a kept tree with a node {type(node).__name__}")


def rest(number: int, node: Node, now: Mapping[int, Choices]) -> Rest:
    if any(0 in choices and len(choices) > 1 for choices in now.values()):
        raise BadInput("a kept tree that leaves open whether a word is swapped")
    made = ((row, tuple(sorted(choice - 1 for choice in choices))) for row, choices in sorted(now.items()))
    return Rest(number, node, frozenset(now), tuple((row, choices) for row, choices in made if choices != (-1,)))


def after_each(nodes: Sequence[Node]) -> list[int]:
    """Of each node in preorder, the number of the first one that is not below it."""
    ends = [0] * len(nodes)
    for number in range(len(nodes) - 1, -1, -1):
        end = number + 1
        for _ in below(nodes[number]):
            end = ends[end]
        ends[number] = end
    return ends


def kept_relaxation(
    joint: Joint | None, slopes: Slopes | None, shallow: Shallow, layers: Mapping[int, int], k: int
) -> Relaxation:
    """The slopes and groups that a tree sets: the inverse of `joint_tree`."""
    neurons = {(layers[index], element): neuron for neuron, (index, element) in enumerate(shallow.elements)}
    steps = np.zeros(shallow.neurons, dtype=np.int64)
    groups = () if joint is None else joint.groups
    for layer, chosen in (*groups, *(() if slopes is None else slopes.values.items())):
        for element, step in chosen.items():
            steps[neurons[layer, element]] = step
    (unstable, settled), leaks = shallow.stability(k), shallow.leaks
    inner = np.where(leaks < 1, (steps / GRID - leaks) / np.where(leaks < 1, 1.0 - leaks, 1.0), 0.0)
    members = tuple(tuple(neurons[layer, element] for element in chosen) for layer, chosen in groups)
    return Relaxation(np.where(unstable, inner, settled), tuple(steps.tolist()), members)
