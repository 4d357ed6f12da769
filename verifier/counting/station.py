"""One text measured, from its space to its checked certificate; a process does this for text after text."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.encodings.network import Network
from swapproof.encodings.query import Query
from swapproof.encodings.reading import Model, network_of, open_model
from swapproof.proofs.certificate import Count, Statement, write_certificate
from swapproof.proofs.check import Refused, Unusable, check_certificate

from ..engines.protocol import Unchecked
from ..engines.truth import beaten
from ..evidence import LONGEST, MODEL, Binding, Checker, statement_of
from ..inputs import Text
from ..replay import Replay
from ..results import opening
from ..settle import CHECK_FACTOR, NETWORKS
from .fraction import Settings, deployed_fraction, robust_fraction


@dataclass(frozen=True)
class Measured:
    """The line of a text in results.jsonl, and its certificate when something was counted."""

    id: int
    line: dict[str, Any]
    certificate: bytes | None


@dataclass(eq=False)
class Station:
    """A model loaded for reading, replaying and checking."""

    settings: Settings
    binding: Binding
    model: Model
    replay: Replay
    checker: Checker | None
    """None when nothing is counted."""
    networks: OrderedDict[int, Network] = field(default_factory=OrderedDict)

    @classmethod
    def open(cls, folder: Path, binding: Binding, settings: Settings) -> Station:
        model = open_model(folder / MODEL)
        longest = LONGEST if settings.seconds is None else CHECK_FACTOR * settings.seconds
        checker = Checker.open(binding, folder / MODEL, folder, longest) if settings.count else None
        return cls(settings, binding, model, Replay.open(model), checker)

    def network(self, length: int) -> Network:
        network = self.networks.pop(length, None) or network_of(self.model, length)
        self.networks[length] = network
        if len(self.networks) > NETWORKS:
            self.networks.popitem(last=False)
        return network

    def measure(self, text: Text) -> Measured:
        started = time.monotonic()
        space = text.frozen.space
        outputs = self.replay.outputs(np.array([space.original], dtype=np.int64))
        predicted = int(self.replay.answers(np.array([space.original], dtype=np.int64))[0])
        line = opening(text, predicted)
        rivals = tuple(rival for rival in range(outputs.shape[1]) if rival != text.label)
        about = self.about(text, rivals)
        status = self.left_out(text, predicted)
        if status is not None:
            return wrong(text, line, status, started)
        if self.settings.deployed:
            found = deployed_fraction(self.replay, space, text.label, self.settings, about)
        else:
            query = Query.of(self.network(space.length), space, text.label)
            statement = statement_of(self.binding, text, query)
            found = robust_fraction(query, self.settings, about, lambda part: self.refusal(statement, part))
        line |= {
            "status": found.kind,
            "level": found.level,
            "radius": self.settings.radius,
            "robust_fraction": found.line(),
        }
        if found.contradiction is not None:
            line["contradiction"] = found.contradiction
        data = None if found.part is None else write_certificate(replace(statement, count=found.part))
        name = None if data is None else f"certificates/{text.id:06d}.json"
        return Measured(text.id, finished(line, name, started, found.evaluations, found.reason), data)

    def left_out(self, text: Text, predicted: int) -> str | None:
        """The status of a text whose own answer is not certainly right; None for a text to be measured."""
        if self.settings.deployed:
            return None if predicted == text.label else "already_wrong"
        space = text.frozen.space
        beats, agreed = beaten(Query.of(self.network(space.length), space, text.label), space.original)
        if not beats and predicted == text.label:
            return None
        return "already_wrong" if agreed else "ambiguous"

    def about(self, text: Text, rivals: tuple[int, ...]) -> dict[str, Any]:
        """What a sample's seed is the SHA-256 of: everything that is claimed but the answer."""
        return {
            "format": "swapproof sample",
            "version": 1,
            "model": self.binding.model_sha256,
            "tensors": sorted(digest for _, digest in self.binding.tensors),
            "vocabulary": self.binding.vocabulary_sha256,
            "text": hashlib.sha256(text.encoded.text.encode()).hexdigest(),
            "choices": [list(options) for options in text.frozen.space.choices],
            "label": text.label,
            "rivals": list(rivals),
            "radius": self.settings.radius,
            "samples": self.settings.samples,
        }

    def refusal(self, statement: Statement, part: Count) -> str | None:
        """Why the certificate of a count is not accepted; None when it is. Raises Unchecked when time is too short."""
        if self.checker is None:
            raise ValueError("a count without a checker")
        data, started = write_certificate(replace(statement, count=part)), time.monotonic()
        try:
            check_certificate(data, self.checker.model, self.binding.vocabulary_sha256, self.checker.seconds)
        except (Refused, Unusable) as error:
            if time.monotonic() - started >= self.checker.seconds:
                limit = f"{self.checker.seconds:.0f} s"
                raise Unchecked(f"its certificate of {len(data):,} bytes could not be checked in {limit}") from None
            return str(error)
        finally:
            while len(self.checker.model.networks) > NETWORKS:
                self.checker.model.networks.pop(next(iter(self.checker.model.networks)))
        return None


def wrong(text: Text, line: dict[str, Any], status: str, started: float) -> Measured:
    """A text that is left out."""
    line |= {"status": status, "robust_fraction": None}
    return Measured(text.id, finished(line, None, started, 0, None), None)


def finished(
    line: dict[str, Any], certificate: str | None, started: float, evaluations: int, reason: str | None
) -> dict[str, Any]:
    line |= {
        "certificate": certificate,
        "seconds": round(time.monotonic() - started, 4),
        "evaluations": evaluations,
    }
    if reason is not None:
        line["reason"] = reason
    return line


STATION: list[Station] = []
"""The station of a process, which the pool's functions cannot be handed."""


def start(folder: Path, binding: Binding, settings: Settings) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    STATION.append(Station.open(folder, binding, settings))


def measure_there(text: Text) -> Measured:
    return STATION[0].measure(text)


def measure_all(
    folder: Path, binding: Binding, settings: Settings, texts: Iterable[Text], jobs: int
) -> Iterator[Measured]:
    """Every text, in order."""
    if jobs == 1:
        station = Station.open(folder, binding, settings)
        for text in texts:
            yield station.measure(text)
        return
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=start, initargs=(folder, binding, settings)) as pool:
        try:
            yield from pool.map(measure_there, texts)
        except BrokenProcessPool:
            raise BadInput(
                "a process that was measuring died, perhaps for want of memory; run the command again: it resumes"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)
