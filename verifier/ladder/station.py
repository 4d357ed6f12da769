"""A model loaded for reading, replaying and checking; a station is the process that settles text after text with it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
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

if TYPE_CHECKING:
    from .run_certificates import Checker


CHECK_FACTOR = 5
"""Times the time for one text that checking its proof may take: the checker computes exactly, and in plain Python."""


def time_to_check(seconds: float | None, longest: float) -> float:
    """The time for one proof, by that for one text; `longest` where that has no limit."""
    return longest if seconds is None else CHECK_FACTOR * seconds


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

    def network(self, space: SwapSpace) -> Network:
        return kept_network(self.networks, self.model, space)

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)
