"""A run in which something is killed again and again: a worker, the command, or both at once, at random.

    python tests/support/random_killing.py TASK.toml OUT [seconds between kills] [seed] [certify|attack|measure ...]

runs the task once in peace and once so, begins it again whenever the command was killed, and compares both runs.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from command_runs import timeless

STAGES = ("min_swaps", "attack", "pr", "msr", "vote")
"""Of a store, whatever the run is of."""
COMMAND = [sys.executable, "-c", "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"]


def killed_at_random(
    task: Path,
    run: Path,
    options: list[str],
    patience: Callable[[], bool],
    seed: int = 1,
    name: str = "certify",
) -> tuple[Counter[str], list[str]]:
    """What was killed how often until the run ended by itself, and what was lost of what was finished before a kill.

    `patience`: whether to wait longer before the next kill."""
    chance, killed, faults = random.Random(seed), Counter[str](), []
    while True:
        process = subprocess.Popen(
            [*COMMAND, name, str(task), "--out", str(run), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        before: dict[int, str] = {}
        while process.poll() is None:
            if patience():
                time.sleep(0.02)
                continue
            workers = workers_of(process.pid)
            what = chance.choice(["worker", "worker", "command", "all"] if workers else ["command"])
            before = finished(run)
            for number in {"worker": workers[:1], "command": [process.pid], "all": [process.pid, *workers]}[what]:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            killed[what] += 1
        _, said = process.communicate()
        after = finished(run)
        faults += [f"text {id} was finished before a kill, and is not any more" for id in before.keys() - after.keys()]
        faults += [f"text {id} was done again" for id in before.keys() & after.keys() if before[id] != after[id]]
        if process.returncode != -signal.SIGKILL:
            if process.returncode != 0:
                faults.append(f"exit code {process.returncode}: {said.decode()[-500:]}")
            return killed, faults


def workers_of(parent: int) -> list[int]:
    """Processes started by this one that run our workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status, command = (folder / "status").read_text(), (folder / "cmdline").read_bytes()
            if f"\nPPid:\t{parent}\n" in status and b"worker_process" in command:
                found.append(int(folder.name))
    random.shuffle(found)
    return found


def finished(run: Path) -> dict[int, str]:
    """The lines that the store calls finished."""
    from swapproof.verifier.runs.store import Store, is_store

    if not is_store(run / "store.sqlite"):
        return {}
    with Store.open(run / "store.sqlite", readonly=True) as store:
        return {id: store.line(stage, id) for stage in STAGES for id, _ in store.finished(stage)}


def contents(run: Path) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, bytes]]:
    """Results, summary and certificates, without what the clock wrote, and what it took to come to them: a text that
    was gone on with has asked more, and has no history of engines."""
    lines = [json.loads(line) for line in (run / "results.jsonl").read_bytes().splitlines()]
    summary = json.loads((run / "summary.json").read_text())
    summary.pop("seconds", None)
    summary.pop("slowest", None)
    for one in (*lines, summary):
        for name in ("requests", "evaluations", "history"):
            one.pop(name, None)
    return timeless(lines), summary, {path.name: path.read_bytes() for path in (run / "certificates").iterdir()}


def main() -> int:
    task, out = Path(sys.argv[1]), Path(sys.argv[2])
    every, seed = (float(sys.argv[3]) if len(sys.argv) > 3 else 5.0), (int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    name, *options = sys.argv[5:] or ["certify", "--jobs", "2"]
    for folder in ("peaceful", "killed"):
        shutil.rmtree(out / folder, ignore_errors=True)
    subprocess.run(
        [*COMMAND, name, str(task), "--out", str(out / "peaceful"), *options],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    last = time.monotonic()

    def patience() -> bool:
        nonlocal last
        if time.monotonic() - last < every:
            return True
        last = time.monotonic()
        return False

    killed, faults = killed_at_random(task, out / "killed", options, patience, seed, name)
    lost = [line["id"] for line in contents(out / "killed")[0] if "the process working on it" in line.get("reason", "")]
    if lost:  # they take longer than any process was left alive: the same command takes them up again
        print(f"killed again and again, and reported as lost: texts {lost}")
        command = [*COMMAND, name, str(task), "--out", str(out / "killed"), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    peaceful, other = contents(out / "peaceful"), contents(out / "killed")
    differing = [one["id"] for one, two in zip(peaceful[0], other[0], strict=True) if one != two]
    proofs = [name for name in peaceful[2].keys() | other[2].keys() if peaceful[2].get(name) != other[2].get(name)]
    print(f"{len(other[0])} texts; killed {dict(killed)}; lost or done again: {faults or 'none'}")
    print(f"lines that differ: {differing or 'none'}; certificates that differ: {proofs or 'none'}")
    return int(bool(faults or differing or proofs))


if __name__ == "__main__":
    sys.exit(main())
