"""left_out.csv, every swap that was left out and why: how it is written, and what must agree with it afterwards.

The source of the swaps is no part of a run, so the list cannot be made again. The store holds its SHA-256; its rows
must add up to the counts that summary and report show, and name words as often as the texts have them at most.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from typing import Any

from swapproof.encodings.errors import BadInput

from ..synonyms.freezing import TOUCHING_MARK, Freezing, obstacles, outside, touching_marks
from ..tasks.inputs import Inputs
from ..tasks.task import read_task
from .run_folder import LEFT_OUT as LEFT_OUT
from .run_folder import Run, sha256

FACT = "left_out"
"""The fact of the store that holds its SHA-256."""
HEADER = ["word", "candidate", "reason", "positions"]


def left_out(freezing: Freezing) -> Iterator[bytes]:
    """Every swap that was left out, the reason, and at how many positions."""
    return in_rows(freezing.dropped)


def in_rows(dropped: Mapping[tuple[str, str, str], int]) -> Iterator[bytes]:
    rows: Iterable[Iterable[object]] = ([*row, times] for row, times in sorted(dropped.items()))
    for row in chain([HEADER], rows):
        line = StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        yield line.getvalue().encode()


def left_out_together(runs: Sequence[Run]) -> Iterator[bytes]:
    """The list of runs of different texts, put together."""
    dropped: Counter[tuple[str, str, str]] = Counter()
    for run in runs:
        path = run.folder / LEFT_OUT
        try:
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file, strict=True):
                    dropped[row["word"], row["candidate"], row["reason"]] += int(row["positions"])
        except (OSError, ValueError, TypeError, LookupError, csv.Error) as error:
            raise BadInput(f"{path}: not the list of a run ({type(error).__name__}: {error})") from None
    return in_rows(dropped)


def uncovered(run: Run, facts: Mapping[str, str]) -> str | None:
    """What to say of a list that no hash covers: those of runs that were made before it was recorded."""
    if FACT in facts or not (run.folder / LEFT_OUT).exists():
        return None
    return f"{LEFT_OUT} is not covered: this run did not record its SHA-256; only its sums were compared"


def counts_differ(run: Run, inputs: Inputs, swaps: Mapping[str, Any]) -> Iterator[str]:
    """Where `swaps`, what is said of all swaps, differs from the run's own texts and swaps."""
    removed = swaps["removed"].values()
    if swaps["considered"] != swaps["kept"] + sum(removed) or min(removed, default=0) < 0:
        yield "says that other numbers of swaps were considered than were kept and removed"
    found, stated = fixed(inputs, swap_unknown=read_task(run.task).swaps.swap_unknown), Counter(swaps["fixed"])
    if not stated[TOUCHING_MARK]:
        del found[TOUCHING_MARK]  # runs of given frozen spaces did not always say it
    for what in sorted(found.keys() | stated.keys()):
        if stated[what] != found[what]:
            yield f"says that {stated[what]} do not move ({what}), and the texts have {found[what]}"


def fixed(inputs: Inputs, *, swap_unknown: bool) -> Counter[str]:
    """What of the texts does not move, as far as texts and vocabulary tell."""
    found: Counter[str] = Counter()
    for text in inputs.texts:
        marks = touching_marks(text.encoded)
        for index, obstacle in enumerate(obstacles(text.encoded, swap_unknown)):
            if obstacle is not None or index in marks:
                found[obstacle or TOUCHING_MARK] += 1
        found.update(outside(text.encoded))
    return found


def list_differs(run: Run, inputs: Inputs, facts: Mapping[str, str], removed: Mapping[str, int]) -> Iterator[str]:
    """Another list than was recorded, or one that does not add up to the counts, or leaves out more than there is."""
    path = run.folder / LEFT_OUT
    if FACT in facts and (not path.is_file() or sha256(path) != facts[FACT]):
        yield f"{LEFT_OUT} is {'another list than' if path.exists() else 'missing, and'} the store recorded"
        return
    if not path.exists():
        return
    words = Counter(word.lower() for text in inputs.texts for word in text.encoded.words)
    sums: Counter[str] = Counter()
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        if next(rows, None) != HEADER:
            yield f"{LEFT_OUT} does not begin with {','.join(HEADER)}"
            return
        for number, (word, _, reason, positions) in enumerate(rows, start=2):
            if not 0 < int(positions) <= words[word]:
                yield f"{LEFT_OUT} row {number}: {positions} positions of {word!r}, and the texts have {words[word]}"
            sums[reason] += int(positions)
    for reason in sorted(sums.keys() | removed.keys()):
        if sums[reason] != removed.get(reason, 0):
            yield f"{LEFT_OUT} leaves out {sums[reason]} for {reason!r}, and store.sqlite says {removed.get(reason, 0)}"
