"""The question put to every engine: how few swaps make another class win?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from .errors import BadInput
from .network import Network
from .space import SwapSpace


@dataclass(frozen=True)
class Query:
    """Is there a sentence of the space that some rival class wins against the label, and with how few swaps?

    A class beats the label when its logit is greater, or equal and its index lower (argmax, lowest index first).
    """

    network: Network
    space: SwapSpace
    label: int
    rivals: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.space.length != self.network.length:
            raise BadInput(
                f"a space of {self.space.length} positions for a network that reads {self.network.length} tokens"
            )
        if self.space.frame != self.network.frame:
            raise BadInput("the network is for other values of the model's other inputs")
        if not self.network.is_for(self.space.choices):
            raise BadInput("the network is for other choices: its model computes with tokens")
        classes = range(self.network.classes)
        if self.label not in classes or not self.rivals or self.label in self.rivals:
            raise BadInput(f"label {self.label} and rivals {self.rivals} do not fit {self.network.classes} classes")
        if any(rival not in classes for rival in self.rivals) or len(set(self.rivals)) != len(self.rivals):
            raise BadInput(f"rivals {self.rivals} do not fit {self.network.classes} classes")
        tokens = list(chain.from_iterable(self.space.choices))
        highest, lowest = max(tokens), min(tokens)
        if lowest < 0 or highest >= self.network.vocabulary_size:
            raise BadInput(f"token ids {lowest} to {highest} for an embedding of {self.network.vocabulary_size} rows")

    @classmethod
    def of(cls, network: Network, space: SwapSpace, label: int) -> Query:
        """The question against every other class."""
        return cls(network, space, label, tuple(c for c in range(network.classes) if c != label))
