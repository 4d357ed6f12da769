"""One walk over a network, and many meanings of its layers: a table `kind of layer -> rule` for each.

    forward     what node i comes to   = rule of its layer(what its inputs came to)
    backward    a function of node j   = functions of what j reads, added up where two nodes read the same

A meaning names the kinds that it has a rule for. Any other kind is refused by name, never guessed at, so a new kind of
layer needs one entry for each meaning that is to support it, and nothing else (README.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Generic, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from .errors import Unsupported
from .network import At, Layer, Network, Node, Rearrangement

Array = NDArray[Any]
Kind = type[Any]
"""Of layer."""
T = TypeVar("T")
Found = TypeVar("Found", covariant=True)

KINDS: tuple[Kind, ...] = get_args(Layer)


@dataclass(frozen=True, eq=False)
class Meaning(Generic[Found]):
    """What layers mean to one walk; `name` completes "a layer of this kind has no ...".

    A rule is called with (context, layer, what the inputs came to, At), and on the way back with (context, layer, the
    function of its values, At), to answer with the functions of its inputs. The context is whatever the walk is about.
    """

    name: str
    rules: Mapping[Kind, Callable[..., Found]]
    refused: Mapping[Kind, str] = field(default_factory=dict)
    """Kind -> why there is no rule for it, or what would work."""

    def rule(self, node: Node) -> Callable[..., Found]:
        kind = type(node.layer)
        found = self.rules.get(kind)
        if found is None:
            why = self.refused.get(kind, f"there is one for {', '.join(sorted(one.__name__ for one in self.rules))}")
            raise Unsupported(f"{node.origin}: a layer of kind {kind.__name__} has no {self.name}; {why}")
        return found


def forward(
    network: Network,
    meaning: Meaning[T],
    context: object,
    given: Mapping[int, T] | None = None,
    wanted: Sequence[int] = (),
    finish: Callable[[At, T], T] | None = None,
) -> dict[int, T]:
    """Node -> what it comes to, for the wanted nodes (the last one, unless said) and all they need.

    `given` holds nodes already known, whose inputs are then not computed; `finish` is done to every result.
    """
    known: dict[int, T] = dict(given or {})
    steps = [network.places[index] for index in needed(network, known, wanted)]
    for at, rule in [(at, meaning.rule(at.node)) for at in steps]:
        found = rule(context, at.node.layer, [known[source] for source in at.node.inputs], at)
        known[at.index] = found if finish is None else finish(at, found)
    return known


def backward(
    network: Network,
    meaning: Meaning[Sequence[T | None]],
    context: object,
    last: int,
    function: T,
    add: Callable[[int, T, T], T],
    stop: Collection[int] = (),
) -> Iterator[tuple[int, T]]:
    """Every node that a function of node `last` comes down to, with the function of it, from the last to the first.

    `add(node, one, more)` joins what two readers of a node ask of it. The nodes of `stop` are not looked behind, nor is
    one whose rule answers with no functions at all; an input whose function is None is asked nothing.
    """
    handed = {last: function}
    for index in range(last, -1, -1):
        if index not in handed:
            continue
        given = handed.pop(index)
        yield index, given
        if index in stop:
            continue
        at = network.places[index]
        parts = meaning.rule(at.node)(context, at.node.layer, given, at)
        for source, part in zip(at.node.inputs, parts, strict=bool(parts)):
            if part is not None:
                handed[source] = add(source, handed[source], part) if source in handed else part


def needed(network: Network, given: Collection[int], wanted: Sequence[int] = ()) -> list[int]:
    """The nodes to compute for the wanted ones (the last one, unless said) when `given` are there, in order."""
    found: set[int] = set()
    waiting = list(wanted) or [len(network.nodes) - 1]
    while waiting:
        index = waiting.pop()
        if index not in found and index not in given:
            found.add(index)
            waiting.extend(network.nodes[index].inputs)
    return sorted(found)


def gather(layer: Rearrangement, inputs: Sequence[Array], leading: int = 1) -> Array:
    """The inputs, each flattened but for its leading axes, laid end to end and read at the index."""
    batch = inputs[0].shape[:leading]
    if len(inputs) == 1:
        (x,) = inputs
        if layer.is_reshape and layer.index.size == prod(x.shape[leading:]):
            return x.reshape((*batch, *layer.index.shape))
        flat = x.reshape(*batch, -1)
    else:
        flat = np.concatenate([x.reshape(*batch, -1) for x in inputs], axis=-1)
    if layer.first is not None:
        return flat[..., layer.first : layer.first + layer.index.size].reshape((*batch, *layer.index.shape))
    return np.take(flat, layer.index.ravel(), axis=-1).reshape((*batch, *layer.index.shape))
