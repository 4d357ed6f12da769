"""The certificates and lines of a run, text by text, as they lie in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.proofs.check import read_certificate

from ..ladder.token_length import length_of
from ..runs.keys_once import once
from ..runs.run_folder import CERTIFICATE, Run
from ..runs.store import Store, intact
from ..tasks.inputs import Inputs, Text, read_inputs
from ..tasks.opened_model import opened_in
from ..tasks.task import read_task

AGAIN = "give the same command again to bring the run's files to one state"


class Unfinished(BadInput):
    """A run that was killed before its files say what it found."""


@dataclass(frozen=True)
class Item:
    """A certificate, a line of results.jsonl, or both, of one text; `text` None: the run has no such text."""

    id: int
    line: Mapping[str, Any] | None
    certificate: Path | None
    text: Text | None


def size_of(item: Item) -> int:
    """Bytes of its certificate: nearly all of a large one is its proof."""
    try:
        return 0 if item.certificate is None else item.certificate.stat().st_size
    except OSError:
        return 0


def own_inputs(run: Run) -> Inputs:
    """The texts and spaces of the run, as they lie in its folder: what is written in spaces.jsonl may move."""
    task = read_task(run.task)
    every = task.model_copy(update={"swaps": task.swaps.model_copy(update={"swap_unknown": True})})
    model = opened_in(run)
    return read_inputs(every, length_of(task, model), roles=model.roles)


def items_of(run: Run, inputs: Inputs) -> Iterator[Item]:
    """Every text that has a line or a certificate, by id."""
    texts = {text.id: text for text in inputs.texts}
    lines = read_lines(run)
    try:
        found = sorted(run.certificates.iterdir())
    except FileNotFoundError:
        found = []  # an empty folder is lost where only files are copied
    except OSError as error:
        raise BadInput(f"{run.certificates}: cannot be read ({error.strerror})") from error
    strange = [path.name for path in found if path.suffix == ".json" and not CERTIFICATE.fullmatch(path.name)]
    if strange:
        raise BadInput(f"{run.certificates}: holds files that are no certificates: {strange[0]}")
    paths = {int(path.stem): path for path in found if CERTIFICATE.fullmatch(path.name)}
    for id in sorted(lines.keys() | paths.keys()):
        yield Item(id, lines.get(id), paths.get(id), texts.get(id))


def read_lines(run: Run) -> dict[int, dict[str, Any]]:
    """results.jsonl by id."""
    lines: dict[int, dict[str, Any]] = {}
    if not run.results.exists() and not run.summary.exists():
        raise Unfinished(f"{run.folder}: the run was killed before it wrote what it found; {AGAIN}")
    try:
        with run.results.open(encoding="utf-8") as file:
            for number, raw in enumerate(file, start=1):
                where = f"{run.results}, line {number}"
                try:
                    line = json.loads(raw, object_pairs_hook=once)
                except (ValueError, RecursionError) as error:
                    raise BadInput(f"{where}: not JSON ({getattr(error, 'msg', error)})") from error
                if not isinstance(line, dict) or type(line.get("id")) is not int:
                    raise BadInput(f'{where}: not an object with an integer "id"')
                if line["id"] in lines:
                    raise BadInput(f"{where}: a second line for text {line['id']}")
                lines[line["id"]] = line
    except OSError as error:
        raise BadInput(f"{run.results}: cannot be read ({error.strerror}); {AGAIN}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{run.results}: not UTF-8 ({error.reason} at byte {error.start})") from error
    return lines


def without_line(run: Run, lines: Mapping[int, Any]) -> int:
    """Texts that were asked for and have no line yet."""
    with intact(run.store), Store.open(run.store, readonly=True) as store:
        return max(0, int(json.loads(store.facts()["total"])) - len(lines))


def statements_of(folder: Path) -> dict[int, dict[str, Any]]:
    """What the certificates of a run folder state, by id. Raises Refused for what is none."""
    found = sorted(path for path in (folder / "certificates").iterdir() if CERTIFICATE.fullmatch(path.name))
    return {int(path.stem): read_certificate(path.read_bytes()) for path in found}
