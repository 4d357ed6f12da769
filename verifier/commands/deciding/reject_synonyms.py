"""`synonyms reject`: a pair of words that are no synonyms is put on the task's list, which freezing honours."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from swapproof.encodings.errors import BadInput

from ...exit_codes import HOLDS
from ...pages.printing.json_printing import print_json
from ...runs.run_folder import Run, write_atomically
from ...runs.store import is_store
from ...synonyms.graph import neighbours
from ...synonyms.rejected_pairs import read_rejected
from ...synonyms.sources import read_text, writable
from ...synonyms.synonym_tables import read_synonyms
from ...tasks.task import read_task

NAME = "rejected.tsv"
SECTION = re.compile(r"^[ \t]*\[[ \t]*swaps[ \t]*\][ \t]*(#[^\r\n]*)?(?=\r?$)", re.MULTILINE)


def command(word: str, other: str, task_path: Path, *, as_json: bool = False) -> int:
    pair = tuple(one.strip().lower() for one in (word, other))
    for one in pair:
        if not one or not writable(one) or re.search(r"[\t\r\n]", one):
            raise BadInput(f"{one!r}: not a word")
    if pair[0] == pair[1]:
        raise BadInput(f"{pair[0]!r} and {pair[1]!r}: a word is no swap of itself")
    if is_store(Run(task_path.parent).store):
        raise BadInput(f"{task_path}: the copy of a run, which nothing freezes anew; give the task it was made from")
    if not task_path.is_file():
        raise BadInput(f"{task_path}: no such file; say which task with --task")
    task = read_task(task_path)
    path = task.swaps.rejected or task_path.parent / NAME
    known = read_rejected(path) if path.exists() else frozenset()
    if frozenset(pair) in known and task.swaps.rejected is not None:
        if as_json:
            return told(pair, path, len(known), task_path, new=False)
        print(f"{pair[0]}, {pair[1]}: already rejected in {path}")
        return HOLDS
    named = read_text(task_path) if task.swaps.rejected is not None else naming(task_path)
    absent = task.swaps.source == "table" and task.swaps.file is not None and not has_pair(task.swaps.file, *pair)
    before = read_text(path) if path.exists() else ""
    if frozenset(pair) not in known:
        before += "" if not before or before.endswith("\n") else "\n"
        write_atomically(path, f"{before}{pair[0]}\t{pair[1]}\n".encode())
        known |= {frozenset(pair)}
    if task.swaps.rejected is None:
        write_atomically(task_path, named.encode())
    if as_json:
        return told(pair, path, len(known), task_path, new=True)
    if task.swaps.rejected is None:
        print(f'{task_path}: [swaps] names it now: rejected = "{NAME}"')
    pairs = "1 pair" if len(known) == 1 else f"{len(known)} pairs"
    print(f"{pair[0]}, {pair[1]}: neither stands for the other any more ({path}, {pairs})")
    if absent:
        print(f"{task.swaps.file}: has no swap of these two; the pair is written down all the same")
    print("the same `certify` again settles the texts whose swaps this changes, and keeps the others")
    return HOLDS


def told(pair: Sequence[str], path: Path, pairs: int, task: Path, *, new: bool) -> int:
    print_json(
        {"exit_code": HOLDS, "pair": list(pair), "new": new, "list": str(path), "pairs": pairs, "task": str(task)}
    )
    return HOLDS


def has_pair(table: Path, word: str, other: str) -> bool:
    graph = read_synonyms(table).graph
    return any(b in (one.lower() for one in neighbours(graph, a)) for a, b in ((word, other), (other, word)))


def naming(path: Path) -> str:
    """The task file with the key; every other byte of it as it was."""
    text = read_text(path)
    ending = "\r\n" if "\r\n" in text else "\n"
    found = SECTION.search(text)
    if found is None:
        raise BadInput(f'{path}: no line [swaps] to write below; add rejected = "{NAME}" to its swaps')
    changed = f'{text[: found.end()]}{ending}rejected = "{NAME}"{text[found.end() :]}'
    if tomllib.loads(changed.replace("\r\n", "\n")).get("swaps", {}).get("rejected") != NAME:
        raise BadInput(f'{path}: add rejected = "{NAME}" to its [swaps]')
    return changed
