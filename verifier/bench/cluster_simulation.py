"""What would break first with very many machines: `python -m swapproof.verifier.bench.cluster_simulation RUN`.

Texts are drawn from a run: each as long as one of its texts took, in the order of its candidates, as a driver hands
them out. The driver is one process: it looks at all processes in each turn, sends batches of the size that
`runs/jobs/ray_cluster.py` would send, and writes what has come in, with the seconds that writing takes on this machine.
Networks are not simulated, nor machines that are lost.
"""

from __future__ import annotations

import heapq
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swapproof.models.deployed.passing_folder import PassingFolder

from ..loaded_run import load
from ..runs.jobs.ray_cluster import AHEAD, batch_size
from ..runs.jobs.text_by_text import write_evidence
from ..runs.run_folder import Run
from ..runs.store import Store
from ..runs.work import Settled
from ..runs.workers import Pace

STAGE = "min_swaps"
SENDING = 0.0005
"""CPU seconds of the driver for a batch of 8 texts and its answer of 45 kB, measured with ray 2.60."""
LOOKING = 0.000001
"""Seconds of a turn for each batch that is waited for: 2,000 of them took 0.4 ms of CPU, 2 ms by the clock."""
SPREAD = 0.2
"""Of candidates about those of the texts that were measured."""
LEAST = 0.0005
"""Seconds of a text, which are noted to the tenth of a millisecond."""
COLUMNS = (
    "machines",
    "texts",
    "driver, a text",
    "whole run",
    "were there no driver",
    "machines busy",
    "driver busy",
    "texts a second",
)
SCENES = ((10, 10_000), (100, 100_000), (1_000, 1_000_000), (4_000, 1_000_000))


@dataclass(frozen=True)
class Scene:
    """`writing`: seconds of the driver for a text."""

    machines: int
    texts: int
    writing: float


@dataclass(frozen=True)
class Figures:
    machines: int
    texts: int
    hours: float
    ideal_hours: float
    """Without a driver, and with no machine waiting."""
    machines_busy: float
    driver_busy: float
    texts_per_second: float
    batches: int
    texts_in_a_batch: float
    longest_wait: float
    """Seconds that a machine had nothing to do before its last batch."""


def simulated(scene: Scene, samples: Sequence[tuple[int, float]], seed: int = 1) -> Figures:
    """`samples`: candidates and seconds of texts."""
    chance = random.Random(seed)
    drawn = chance.choices(samples, k=scene.texts)
    # Cheap texts first by their candidates, of which every text has a few more or less than the one it was drawn from.
    seconds = [each for _, each in sorted((number * chance.lognormvariate(0, SPREAD), each) for number, each in drawn)]
    left, begin, pace = scene.texts, 0, Pace()
    free = [0.0] * scene.machines  # when a machine has done what it was sent
    events: list[tuple[float, int, float, int]] = []  # when, machine, seconds of its batch, texts in it
    queued = [0] * scene.machines
    now = driver = working = longest = 0.0
    batches = 0
    todo = list(range(scene.machines))
    while left or events:
        now += LOOKING * AHEAD * scene.machines
        driver += LOOKING * AHEAD * scene.machines
        for machine in todo:
            while left and queued[machine] < AHEAD:
                size = min(left, batch_size(pace.each, left, scene.machines))
                work = sum(seconds[begin : begin + size])
                begin, left, batches = begin + size, left - size, batches + 1
                now += SENDING
                driver += SENDING
                if queued[machine] == 0 and batches > scene.machines:
                    longest = max(longest, now - free[machine])
                free[machine] = max(free[machine], now) + work
                working += work
                heapq.heappush(events, (free[machine], machine, work, size))
                queued[machine] += 1
        todo = []
        if events and events[0][0] > now:
            now = events[0][0]
        while events and events[0][0] <= now:
            _, machine, work, size = heapq.heappop(events)
            queued[machine] -= 1
            todo.append(machine)
            pace = pace.after(work, size)
            now += scene.writing * size
            driver += scene.writing * size
    return Figures(
        scene.machines,
        scene.texts,
        now / 3600,
        sum(seconds) / scene.machines / 3600,
        working / (now * scene.machines),
        driver / now,
        scene.texts / now,
        batches,
        scene.texts / batches,
        longest,
    )


def seconds_of_writing(rounds: int = 20, lots: int = 10, lot: int = 10) -> tuple[float, float]:
    """What it takes this machine to have a text's certificate and line on the disk, in batches of so many: in the
    quickest round, and in all of them."""
    with PassingFolder() as place:
        run = Run(place)
        Store.create(run.store, {})
        line = {"id": 0, "text": "x" * 1000, "history": ["y" * 100] * 5}
        taken = []
        with Store.open(run.store) as store:
            for first in range(0, rounds * lots * lot, lots * lot):
                started = time.perf_counter()
                for begin in range(first, first + lots * lot, lot):
                    found = [Settled(id, line, b"z" * 4000) for id in range(begin, begin + lot)]
                    for one in found:
                        store.lease(STAGE, [one.id], "a machine")
                    evidence = write_evidence(run, found)
                    with store.together():
                        for one in found:
                            store.put(STAGE, one.id, json.dumps(one.line), evidence[one.id], job="0" * 64)
                taken.append((time.perf_counter() - started) / (lots * lot))
        return min(taken), statistics.fmean(taken)


def main(run: str, out: str | None = None) -> None:
    samples = [(int(result.line["candidates"]), max(result.seconds, LEAST)) for result in load(run)]
    taken = sorted(seconds for _, seconds in samples)
    quick, all_rounds = seconds_of_writing()
    print(
        f"{len(taken)} texts: mean {statistics.fmean(taken):.3f} s, median {statistics.median(taken):.3f} s, "
        f"slowest {taken[-1]:.1f} s; writing one: {1000 * quick:.2f} ms in the quickest round, "
        f"{1000 * all_rounds:.2f} ms in all"
    )
    rows = []
    for machines, texts in SCENES:
        for writing in (quick, all_rounds):
            figures = simulated(Scene(machines, texts, writing), samples)
            rows.append(row(figures, writing))
            print(*rows[-1], sep="  ")
    if out is not None:
        lines = ",\n".join(f"  {json.dumps(one)}" for one in rows)
        Path(out).write_text(f'{{"columns": {json.dumps(COLUMNS)},\n "rows": [\n{lines}\n ]}}\n', encoding="utf-8")


def row(figures: Figures, writing: float) -> list[str]:
    return [
        f"{figures.machines:,}",
        f"{figures.texts:,}",
        f"{1000 * writing:.2f} ms",
        f"{60 * figures.hours:.1f} min",
        f"{60 * figures.ideal_hours:.1f} min",
        f"{figures.machines_busy:.0%}",
        f"{figures.driver_busy:.0%}",
        f"{figures.texts_per_second:,.0f}",
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
