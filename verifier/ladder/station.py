"""A model loaded for reading, replaying and checking; a station is the process that settles text after text with it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, open_model
from swapproof.encodings.space import SwapSpace

from ..runs.inputs import Text
from ..runs.run_folder import Run
from ..runs.work import Settled
from .kept_networks import kept_network
from .replay import Replay
from .rereading import Reading

if TYPE_CHECKING:
    from .run_certificates import Checker


class AtStation(Protocol):
    """Work that needs a station."""

    @property
    def folder(self) -> Path: ...

    def settle(self, station: Station, text: Text) -> Settled: ...


@dataclass(eq=False)
class Station:
    """A model loaded for reading, replaying and checking."""

    work: AtStation
    model: Model
    replay: Replay
    certifier: Checker | None
    networks: OrderedDict[int, Network] = field(default_factory=OrderedDict)
    prepared: set[int] = field(default_factory=set)
    """Lengths of texts whose network the checker has read."""

    @classmethod
    def of(cls, work: AtStation, certifier: Checker | None) -> Station:
        """`certifier`: None where nothing is to be certified."""
        model = open_model(Run(work.folder).model)
        return cls(work, model, Replay.open(model), certifier)

    @property
    def checker(self) -> Checker:
        if self.certifier is None:
            raise ValueError("a certificate where nothing was to be certified")
        return self.certifier

    @cached_property
    def reading(self) -> Reading:
        return Reading.of(Run(self.work.folder))

    def prepare(self, space: SwapSpace) -> None:
        """Before the clock of a text starts: what all texts of its length share, read when the first one comes."""
        network = self.network(space)
        if self.certifier is not None and network.choices is None and space.length not in self.prepared:
            self.prepared.add(space.length)
            self.certifier.prepare(space)

    def network(self, space: SwapSpace) -> Network:
        return kept_network(self.networks, self.model, space)

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)
