"""A model loaded for reading, replaying and checking; a station is the process that settles text after text with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.encodings.space import Frame, SwapSpace

from ..runs.run_folder import Run
from ..runs.work import Settled
from ..tasks.inputs import Text
from ..tasks.opened_model import opened_in
from .replay import Original, Replay
from .rereading import Reading

if TYPE_CHECKING:
    from ..derived.deployed_beside import Beside
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
    beside: Beside | None = None
    prepared: set[Frame] = field(default_factory=set)
    """Those of texts whose network the checker has read."""
    smooth: bool = False
    """Whether the work can be done on smooth networks."""
    original: Original | None = None
    """The model as it was given, where this one was made from it."""

    @classmethod
    def of(cls, work: AtStation, certifier: Checker | None, beside: Beside | None = None) -> Station:
        """`certifier`: None where nothing is to be certified."""
        model = opened_in(Run(work.folder))
        return cls(work, model, Replay.open(model), certifier, beside)

    @property
    def checker(self) -> Checker:
        if self.certifier is None:
            raise ValueError("a certificate where nothing was to be certified")
        return self.certifier

    @cached_property
    def reading(self) -> Reading:
        return Reading.of(Run(self.work.folder))

    def prepare(self, space: SwapSpace) -> None:
        """Before the clock of a text starts: what all texts of its frame share, read when the first one comes."""
        network = self.network(space)
        if self.certifier is not None and network.choices is None and space.frame not in self.prepared:
            self.prepared.add(space.frame)
            self.certifier.prepare(space)

    def network(self, space: SwapSpace) -> Network:
        return network_for(self.model, space, smooth=self.smooth)

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)
