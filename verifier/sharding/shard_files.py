"""A task in shards: task files that differ in their rows only, and a script for a batch system that runs each."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.models.plain_words import PlainWords

from ..runs.run_folder import write_atomically
from ..runs.store import writing
from ..tasks.given_rows import given_rows
from ..tasks.task import read_task

COMMANDS = ("certify", "attack", "measure")
MOST = 10_000
"""Shards: their files are numbered with four digits."""
SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=swapproof
#SBATCH --array=0-{last}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
# `sbatch array.sh`, in an environment that has the command swapproof. Options of `{name}` may follow.
# A shard that was stopped goes on when it is submitted again. When all are done:
#     swapproof merge {folder}/run-* --out {folder}/whole
shard=$(printf '%04d' "$SLURM_ARRAY_TASK_ID") || exit 2
exec swapproof {name} {folder}/shard-"$shard".toml{options} --out {folder}/run-"$shard" \\
    --jobs "${{SLURM_CPUS_PER_TASK:-1}}" "$@"
"""


@dataclass(frozen=True)
class Shards:
    files: tuple[Path, ...]
    script: Path
    texts: int


def write_shards(
    task: str | Path, count: int, out: str | Path, limit: int | None = None, doing: str = "certify"
) -> Shards:
    """Cut the first `limit` texts of a task into `count` shards of nearly the same number of texts.

    A shard is the task itself with other `rows`: it names the same files, by their whole paths, which every machine
    must see. Its spaces are frozen where it is run; they depend on nothing but its own texts. `doing`: the command of
    each shard, with its options.
    """
    name, *options = shlex.split(doing) or [""]
    if name not in COMMANDS:
        raise BadInput(f"--run {doing!r}: begins with {', '.join(COMMANDS)}, such as 'attack --method pdp'")
    if not 1 <= count <= MOST:
        raise BadInput(f"--count {count}: from 1 to {MOST}")
    folder = Path(out).absolute()
    given = read_task(task)
    rows, _ = given_rows(given.data, given.model, lambda text: PlainWords("words").encode(text, None), limit)
    number = len(rows)
    if count > number:
        raise BadInput(f"--count {count}: {given.data.file} has {number} texts for this task; give at most as many")
    refuse_others(folder)
    begin = given.data.rows[0] if given.data.rows else 0
    together = (begin, begin + number)
    files = []
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for shard in range(count):
        span = (begin + number * shard // count, begin + number * (shard + 1) // count)
        data = given.data.model_copy(update={"rows": span, "shard_of": together})
        notes = [f"Shard {shard} of {count}: texts {span[0]} to {span[1] - 1}, counted from 0."]
        files.append(folder / f"shard-{shard:04d}.toml")
        write_atomically(files[-1], given.model_copy(update={"data": data}).resolved(notes).encode())
    script = folder / "array.sh"
    write_atomically(script, script_of(count, folder, name, options).encode())
    return Shards(tuple(files), script, number)


def script_of(count: int, folder: Path, name: str, options: Sequence[str]) -> str:
    given = "".join(f" {shlex.quote(option)}" for option in options)
    return SCRIPT.format(last=count - 1, folder=shlex.quote(str(folder)), name=name, options=given)


def refuse_others(folder: Path) -> None:
    """A folder with other things in it than the shards of an earlier command, of which none may be left."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder}: exists and is not empty; give --out a new folder")
