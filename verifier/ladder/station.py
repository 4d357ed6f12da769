"""A model loaded for reading, replaying and checking; a station is the process that settles text after text with it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_of, open_model
from swapproof.encodings.space import SwapSpace

from ..runs.binding import Binding
from ..runs.inputs import Text
from ..runs.run_folder import Run
from ..runs.work import Settled
from .replay import Replay
from .run_certificates import LONGEST, Checker

CHECK_FACTOR = 5
"""Times the time for one text that checking its proof may take: the checker computes exactly, and in plain Python."""
NETWORKS = 4
"""Networks kept for a model that takes any length: each holds the weights once more."""


class AtStation(Protocol):
    """Work that needs a station."""

    @property
    def folder(self) -> Path: ...

    @property
    def binding(self) -> Binding: ...

    @property
    def seconds(self) -> float | None:
        """Time for one text."""

    @property
    def certified(self) -> bool:
        """Whether anything is to be certified."""

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
    def open(cls, work: AtStation) -> Station:
        path = Run(work.folder).model
        longest = LONGEST if work.seconds is None else CHECK_FACTOR * work.seconds
        model = open_model(path)
        checker = Checker.open(work.binding, path, work.folder, longest) if work.certified else None
        return cls(work, model, Replay.open(model), checker)

    @property
    def checker(self) -> Checker:
        if self.certifier is None:
            raise ValueError("a certificate where nothing was to be certified")
        return self.certifier

    def network(self, space: SwapSpace) -> Network:
        return kept_network(self.networks, self.model, space)

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)


def kept_network(networks: OrderedDict[int, Network], model: Model, space: SwapSpace) -> Network:
    """The network for these texts' length, or for this text alone when the model computes with tokens; the last few
    are kept."""
    network = networks.pop(space.length, None)
    if network is None or network.choices not in (None, space.choices):
        network = network_of(model, space.length, space.choices)
    networks[space.length] = network
    if len(networks) > NETWORKS:
        networks.popitem(last=False)
    return network
