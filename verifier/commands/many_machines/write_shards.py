"""`swapproof shards`: a task in shards, for machines that share files."""

from __future__ import annotations

import shlex
from pathlib import Path

from ...exit_codes import HOLDS
from ...sharding.shard_files import write_shards


def command(task: Path, count: int, out: Path, limit: int | None) -> int:
    written = write_shards(task, count, out, limit)
    print(f"{len(written.files)} shards of {written.texts} texts: {written.files[0]} and so on")
    folder = shlex.quote(str(written.script.parent))
    print(f"sbatch {folder}/{written.script.name}")
    print(f"swapproof merge {folder}/run-* --out {folder}/whole")
    return HOLDS
