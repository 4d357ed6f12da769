"""`swapproof shards`: a task in shards, for machines that share files."""

from __future__ import annotations

import shlex
from pathlib import Path

from ...exit_codes import HOLDS
from ...pages.printing.json_printing import print_json
from ...sharding.shard_files import write_shards


def command(
    task: Path, count: int, out: Path, limit: int | None, doing: str = "certify", *, as_json: bool = False
) -> int:
    written = write_shards(task, count, out, limit, doing)
    if as_json:
        files = [str(path) for path in written.files]
        print_json({"exit_code": HOLDS, "texts": written.texts, "shards": files, "script": str(written.script)})
        return HOLDS
    print(f"{len(written.files)} shards of {written.texts} texts: {written.files[0]} and so on")
    folder = shlex.quote(str(written.script.parent))
    print(f"sbatch {folder}/{written.script.name}")
    print(f"swapproof merge {folder}/run-* --out {folder}/whole")
    return HOLDS
