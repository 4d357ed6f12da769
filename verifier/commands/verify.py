"""`swapproof verify`: one query, or every row of an instances.csv, answered in the standard words."""

from __future__ import annotations

import csv
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from swapproof.encodings.errors import BadInput, OutOfTime, Unsupported
from swapproof.encodings.vnnlib.vnnlib_reading import read_vnnlib
from swapproof.models.errors import unreadable, visible

from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED, USAGE, VIOLATED
from ..pages.printing.json_printing import print_json
from ..queries.answering import QueryVerdict, Verifier
from ..queries.search import Answer

EXIT: dict[Answer, int] = {"unsat": HOLDS, "sat": VIOLATED, "unknown": INCOMPLETE, "timed-out": INCOMPLETE}
"""No input breaks the property; one does; not settled."""
ERROR = "error"
"""The answer in a table for a query or model that cannot be read."""
SECONDS = 60.0
SETTLED = ("sat", "unsat")
EXPECTED = (*SETTLED, "unknown")
"""In a table without a header; answers that are not settled contradict none."""
HEADER = {"timeout": "seconds", "time": "seconds", "network": "onnx", "query": "vnnlib"}
"""Other names of columns."""


def command(
    query: Path | None,
    networks: Sequence[str],
    seconds: float | None,
    proof: Path | None,
    batch: Path | None,
    *,
    exact: bool = False,
    as_json: bool = False,
) -> int:
    """A query, or a table of queries, which is CSV in any case."""
    if exact and proof is None:
        raise BadInput("--exact says how --proof FILE is checked; give that too")
    if (query is None) == (batch is None):
        raise BadInput("verify needs a QUERY.vnnlib with --network, or --batch instances.csv")
    if seconds is not None and not is_time(seconds):
        raise BadInput(f"--timeout {seconds:g}: seconds above 0 are needed")
    if batch is not None:
        if as_json:
            raise BadInput("--json is of one query; --batch prints a table as CSV")
        return verify_batch(batch, seconds, proof, exact=exact)
    if query is None:
        raise BadInput("a QUERY.vnnlib is needed")
    return verify(query, networks, SECONDS if seconds is None else seconds, proof, exact=exact, as_json=as_json)


def verify(
    query: Path,
    networks: Sequence[str],
    seconds: float,
    proof: Path | None = None,
    *,
    exact: bool = False,
    as_json: bool = False,
) -> int:
    """Prints the answer and, for sat, the witness; remarks go to stderr, or into the JSON object.

    With `proof` unsat is printed once its certificate is written there: all of it holds in float64, rounding taken off,
    or with `exact` the checker accepted it. A remark says which.
    """
    if len(networks) != 1:
        raise BadInput(f"{len(networks)} networks given; one is needed: --network N=MODEL.onnx")
    name, _, path = networks[0].rpartition("=")
    until = time.monotonic() + seconds
    try:
        property = read_vnnlib(query, until)
    except OutOfTime as error:
        if as_json:
            return told_as_json(query, "timed-out", None, (str(error),))
        print(f"swapproof: {error}", file=sys.stderr)
        print("timed-out")
        return EXIT["timed-out"]
    if property.version == 2 and name not in ("", property.network):
        raise BadInput(f"{query}: declares network {property.network}, and --network names {name}")
    verdict = Verifier().verify(query, Path(path), max(0.0, until - time.monotonic()), proof, exact=exact)
    if as_json:
        witness = None if verdict.witness is None else verdict.witness.text(property)
        about = {"seconds": round(verdict.seconds, 4), "regions": verdict.regions}
        return told_as_json(query, verdict.answer, witness, verdict.remarks, **about)
    for remark in verdict.remarks:
        print(f"swapproof: {remark}", file=sys.stderr)
    print(verdict.answer)
    if verdict.witness is not None:
        print(verdict.witness.text(property))
    return EXIT[verdict.answer]


def told_as_json(query: Path, answer: Answer, witness: str | None, remarks: Sequence[str], **about: float) -> int:
    code = EXIT[answer]
    said = {"query": str(query), "exit_code": code, "answer": answer, "witness": witness, "remarks": list(remarks)}
    print_json(said | about)
    return code


def is_time(seconds: float) -> bool:
    return seconds > 0 and math.isfinite(seconds)


@dataclass(frozen=True)
class Unread:
    """In place of a verdict: what cannot be read, and why."""

    remarks: tuple[str, ...]
    seconds: float
    answer: str = ERROR
    regions: int = 0


@dataclass(frozen=True)
class Instance:
    onnx: str
    vnnlib: str
    seconds: float
    expected: str


def instances(path: Path) -> Iterator[Instance]:
    """Rows onnx,vnnlib,seconds and maybe expected; with or without a header."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}: not UTF-8 ({error.reason})") from None
    header, first = ["onnx", "vnnlib", "seconds", "expected"], 0
    if rows and "vnnlib" in [cell.strip().lower() for cell in rows[0]]:
        named, first = [HEADER.get(cell.strip().lower(), cell.strip().lower()) for cell in rows[0]], 1
        missing = [name for name in header[:3] if name not in named]
        if missing:
            raise BadInput(f"{path} line 1: no column {missing[0]}; name the columns onnx,vnnlib,seconds,expected")
        header = named
    for number, row in enumerate(rows[first:], first + 1):
        if not any(cell.strip() for cell in row):
            continue
        cells = dict(zip(header, (cell.strip() for cell in row), strict=False))
        if more := [cell for cell in row[len(header) :] if cell.strip()]:
            raise BadInput(
                f"{path} line {number}: {','.join(header)} are read, and {','.join(more)} stands beside them"
            )
        try:
            found = Instance(cells["onnx"], cells["vnnlib"], float(cells["seconds"]), cells.get("expected", ""))
        except (KeyError, ValueError):
            raise BadInput(f"{path} line {number}: onnx,vnnlib,seconds are needed, not {','.join(row)}") from None
        if not first and found.expected not in ("", *EXPECTED):
            raise BadInput(
                f"{path} line {number}: {found.expected}; a fourth cell is the answer expected: {', '.join(EXPECTED)}"
            )
        if not is_time(found.seconds):
            raise BadInput(f"{path} line {number}: {cells['seconds']} seconds; a time above 0 is needed")
        yield found


def verify_batch(table: Path, seconds: float | None, proof: Path | None = None, *, exact: bool = False) -> int:
    """One line of CSV per instance on stdout: onnx, vnnlib, answer, seconds, regions; a summary on stderr.

    `seconds` lowers the limits of the table. A file that cannot be read has the answer `error`, and the next follows.
    Exit code 4 when an answer contradicts the table, 2 when files could not be read, 3 when some are open.
    With the folder `proof` every unsat has a certificate there, named after its place among the instances.
    """
    verifier, counts, wrong, spent = Verifier(), Counter[str](), 0, []
    out = csv.writer(sys.stdout, lineterminator="\n")
    rows = list(instances(table))
    if proof is not None:
        for place, instance in enumerate(rows):
            planned(verifier, table.parent, instance, numbered(proof, place))
    out.writerow(["onnx", "vnnlib", "answer", "seconds", "regions", "expected"])
    for place, instance in enumerate(rows):
        limit = instance.seconds if seconds is None else min(seconds, instance.seconds)
        certificate = None if proof is None else numbered(proof, place)
        verdict = answered(verifier, table.parent, instance, limit, certificate, exact=exact)
        told = proof is not None or verdict.answer in ("sat", ERROR)
        for remark in verdict.remarks if told else ():
            print(f"swapproof: {instance.vnnlib}: {remark}", file=sys.stderr)
        counts[verdict.answer] += 1
        spent.append(verdict.seconds)
        if instance.expected in SETTLED and verdict.answer in SETTLED and verdict.answer != instance.expected:
            wrong += 1
            print(
                f"swapproof: {instance.vnnlib}: {verdict.answer}, and the table says {instance.expected}",
                file=sys.stderr,
            )
        row = (instance.onnx, instance.vnnlib, verdict.answer, f"{verdict.seconds:.4f}", verdict.regions)
        out.writerow([*row, instance.expected])
        sys.stdout.flush()
    if not spent:
        raise BadInput(f"{table}: no instances")
    shown = ", ".join(f"{count} {answer}" for answer, count in sorted(counts.items()))
    median = sorted(spent)[len(spent) // 2]
    print(f"{len(spent)} instances: {shown}; median {median:.3f} s, total {sum(spent):.1f} s", file=sys.stderr)
    if wrong:
        return UNCHECKED
    if counts[ERROR]:
        return USAGE
    return HOLDS if all(answer in SETTLED for answer in counts) else EXIT["unknown"]


def planned(verifier: Verifier, folder: Path, instance: Instance, certificate: Path) -> None:
    """Raises what keeps this certificate from being written; a file that cannot be read is met again in its turn."""
    query, model = folder / instance.vnnlib, folder / instance.onnx
    readable = False
    with suppress(BadInput, OutOfTime, Unsupported):
        verifier.read(query, model, time.monotonic() + instance.seconds)
        readable = True
    if readable:
        verifier.plan(query, model, certificate)


def answered(
    verifier: Verifier, folder: Path, instance: Instance, seconds: float, certificate: Path | None, *, exact: bool
) -> QueryVerdict | Unread:
    """The verdict, or why there is none."""
    began = time.monotonic()
    try:
        return verifier.verify(folder / instance.vnnlib, folder / instance.onnx, seconds, certificate, exact=exact)
    except (BadInput, Unsupported) as error:
        return Unread((visible(str(error)),), time.monotonic() - began)


def numbered(folder: Path, place: int) -> Path:
    return folder / f"{place:06d}.json"
