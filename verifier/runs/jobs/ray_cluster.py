"""Texts settled on the machines of a Ray cluster: batches go out, results come back, this process alone writes them.

A machine that is lost costs the batches that it had, which others are given; what it had answered is kept. The model
is sent to every machine once. Every machine has swapproof installed; nothing is imported from the driver's folder.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swapproof.encodings.errors import BadInput, Unsupported

from ...versions import versions
from ..run_folder import Run
from ..work import Lost, Settled, Work
from ..workers import LOOK, TRIES, Pace, Taken
from .shipped_run import Member, packed

if TYPE_CHECKING:
    from ...tasks.inputs import Text

BATCH_SECONDS = 2.0
"""Of work in a batch: enough that sending it does not matter, little enough that losing it does not either."""
MOST = 64
"""Texts in a batch."""
AHEAD = 2
"""Batches that a process has at a time: it never waits for the next one."""
TAIL = 4
"""Of what is left each process gets no more than a so small part of its share."""
PATIENCE = 300.0
"""Seconds without an answer from any machine, and without a process at work, after which there is no cluster."""
HELLO, FAREWELL = 10.0, 5.0
"""Seconds for a machine to take a connection, and for a process to clean up."""
REMEDY = "start one with `ray start --head`, give ray://HOST:10001, or leave --cluster out"
TOKEN = "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN here"
"""What a cluster needs that was started with token authentication."""


def load_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise Unsupported("--cluster needs Ray: pip install 'swapproof[ray]'") from None
    return ray


@contextmanager
def connected(cluster: str | None) -> Iterator[None]:
    """Inside, this process is the driver of a cluster: `auto`, `ray://HOST:PORT` or `HOST:PORT`; None: of none."""
    if cluster is None:
        yield
        return
    ray = load_ray()
    if ray.is_initialized():
        yield
        return
    refuse_absent(cluster)
    try:
        ray.init(address=cluster, logging_level=logging.ERROR, log_to_driver=False, namespace="swapproof")
    except Exception as error:  # whatever the version of Ray raises, nothing of ours ran yet
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].partition(". ")[0][:200]
        raise BadInput(
            f"--cluster {cluster}: no Ray cluster answers ({reason}), or it asks for a token; {TOKEN}, or {REMEDY}"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def refuse_absent(cluster: str) -> None:
    """An address that takes no connection, before Ray tries it for minutes."""
    if cluster == "auto":
        return
    host, colon, port = cluster.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        raise BadInput(f"--cluster {cluster}: can be auto, ray://HOST:PORT or HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), HELLO).close()
    except (OSError, OverflowError) as error:
        raise BadInput(f"--cluster {cluster}: nobody answers there ({error}); {REMEDY}") from None


@dataclass(eq=False)
class Station:
    """A process of the cluster as the driver sees it: its handle, and what it was asked."""

    name: str
    handle: Any
    hello: Any
    """Its answer to the first question; None once it has come."""
    batches: dict[Any, list[Text]] = field(default_factory=dict)


def settle_on_cluster(
    work: Work, texts: Iterator[Text], folder: Path, jobs: int | None, taken: Taken
) -> Generator[Sequence[Settled | Lost], None, None]:
    """In batches, as they come; every text once, whatever is lost. `jobs`: processes, None for one a processor."""
    ray = load_ray()
    lost_machine = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError, ray.exceptions.WorkerCrashedError)
    files, shared_work = ray.put(packed(Run(folder))), ray.put(work)
    remote = ray.remote(num_cpus=1, max_restarts=0)(Member)
    queue, killed, number = deque(texts), Counter[int](), 0
    stations: list[Station] = []
    pace, heard = Pace(), time.monotonic()
    try:
        while queue or any(station.batches for station in stations):
            wanted = min(len(queue), jobs or processors(ray))
            while queue and len(stations) < wanted:
                handle = remote.remote(files, shared_work)
                number += 1
                stations.append(Station(f"cluster process {number}", handle, handle.version.remote()))
            for station in (one for one in stations for _ in range(AHEAD) if one.hello is None):
                if queue and len(station.batches) < AHEAD:
                    size = batch_size(pace.each, len(queue), len(stations))
                    batch = [queue.popleft() for _ in range(min(size, len(queue)))]
                    taken(batch, station.name)
                    station.batches[station.handle.settle.remote(batch)] = batch
            asked = {ref: one for one in stations for ref in ([one.hello] if one.hello is not None else one.batches)}
            done, _ = ray.wait(list(asked), num_returns=1, timeout=LOOK)
            if done:  # and whatever else is there: to look at many processes for each batch would take too long
                done, _ = ray.wait(list(asked), num_returns=len(asked), timeout=0)
            heard = time.monotonic() if done else heard
            if time.monotonic() - heard > PATIENCE and not any(station.batches for station in stations):
                raise BadInput(f"--cluster: no machine was free for {PATIENCE:g} s; the same command goes on from here")
            for ref in done:
                station = asked[ref]
                if station not in stations:
                    continue
                try:
                    answer = ray.get(ref)
                except lost_machine as error:
                    stations.remove(station)
                    if lost := list(returned(station, queue, killed, error)):
                        yield lost
                    continue
                except ray.exceptions.RayTaskError as error:
                    raise error.cause if isinstance(error.cause, BadInput | NotImplementedError) else error from None
                if station.hello is not None:
                    refuse_other_version(answer)
                    station.hello = None
                    continue
                found, seconds = answer
                pace = pace.after(seconds, len(station.batches.pop(ref)))
                yield found
    finally:
        with suppress(Exception):  # the cluster may be gone
            leaving = [station.handle.leave.remote() for station in stations if station.hello is None]
            ray.wait(leaving, num_returns=len(leaving), timeout=FAREWELL) if leaving else None
            for station in stations:
                ray.kill(station.handle)


def processors(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def batch_size(each: float, left: int, stations: int) -> int:
    """Texts of about BATCH_SECONDS, and towards the end fewer, so that nobody waits for one who has many."""
    size = MOST if each == 0.0 else math.ceil(BATCH_SECONDS / each)
    return max(1, min(size, MOST, math.ceil(left / (TAIL * AHEAD * stations))))


def returned(station: Station, queue: deque[Text], killed: Counter[int], error: Exception) -> Iterator[Lost]:
    """What a lost machine had goes to others; a text that was on several lost ones is lost with them."""
    for batch in station.batches.values():
        for text in batch:
            killed[text.id] += 1
            if killed[text.id] < TRIES:
                queue.append(text)
            else:
                reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
                yield Lost(text, f"the machine working on it was lost, {TRIES} times ({reason})", 0.0)


def refuse_other_version(theirs: str) -> None:
    ours = versions("swapproof")["swapproof"]
    if theirs != ours:
        raise BadInput(f"--cluster: a machine has swapproof {theirs}, and this one {ours}; install the same everywhere")
