"""Runs of the shards of one task put together: the run that one machine would have made of all of their texts.

Texts are numbered anew. A certificate holds its text's number and the hash of its line of spaces.jsonl, a transcript
the number; nothing else of them changes, and `check` finds out whether what was put together is true.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ..runs.left_out_swaps import FACT, LEFT_OUT, left_out_together
from ..runs.life import READY, Outcome
from ..runs.manifest import QUESTION, Unlike, read_manifest, write_manifest
from ..runs.results import written
from ..runs.run_folder import UNFINISHED, Run, existing, held, is_free, remove_own, sha256, write_atomically
from ..runs.store import Store, writing
from ..tasks.inputs import digest_of_rows
from ..tasks.task import read_task
from .merged_kinds import Kind, kind_of

ALIKE = {
    "model": "the model",
    "vocabulary": "the vocabulary",
    "model section": "[model] of the task file",
    "task": "the task file",
    "engines": "--engines",
    "seconds": "--seconds",
    "radius": "--radius",
    "require": "--require",
    "swapproof": "the version of swapproof",
    QUESTION: "what is measured",
    "vectors": "the vectors of words",
}
"""Facts that must be the same for runs to be of one task."""
MADE_OF_LINES = (LEFT_OUT, "robust_fraction.png")
OWN_FILES = ("texts", "spaces", "results", "summary", "report", "store", "lock", "manifest")


@dataclass(frozen=True)
class Part:
    """A run of the texts from `begin` to before `end`, as the task counts them."""

    run: Run
    store: Store
    kind: Kind
    facts: Mapping[str, str]
    manifest: Mapping[str, Any]
    begin: int
    together: tuple[int, int] | None
    """The texts of all shards, if this is the run of one."""

    @property
    def end(self) -> int:
        return self.begin + int(json.loads(self.facts["total"]))

    @property
    def ended(self) -> bool:
        """Whether the data have no text behind its last one, where shards had counted rows that were skipped. A run
        of which --limit left texts out does not say so."""
        return bool(self.about["data"].get("ended"))

    @property
    def about(self) -> dict[str, Any]:
        return dict(json.loads(self.facts["about"]))


def merge(folders: Sequence[str | Path], out: str | Path) -> Outcome:
    """Put finished runs of shards together into a new folder, the first text of all of them first.

    Refused are runs of different tasks, runs with texts left to do, a run given twice, missing texts, and texts with
    two answers. A run whose texts another one has too, with the same answers, adds nothing.
    """
    run = Run(Path(out))
    if not is_free(run.folder):
        raise BadInput(f"{run.folder}: exists and is not empty; give --out a new folder")
    known: set[Path] = set()
    for folder in folders:
        if Path(folder).resolve() in known:
            raise BadInput(f"{folder}: given twice; give every run once")
        known.add(Path(folder).resolve())
    with ExitStack() as stores:
        parts = sorted((opened(Path(folder), stores) for folder in folders), key=lambda part: (part.begin, -part.end))
        refuse_misfits(parts)
        parts = apart(parts)
        made = not run.folder.exists()
        with writing(run.folder):
            run.folder.mkdir(parents=True, exist_ok=True)
        with held(run):
            try:
                put_together(run, parts)
                with Store.open(run.store, readonly=True) as store:
                    question = json.loads(parts[0].facts.get(QUESTION, "{}"))
                    outcome = parts[0].kind.publish(run, store, question)
            except BaseException:
                remove_own(run, [name for name, _ in json.loads(parts[0].facts["model"])[1:]], store=True)
                run.lock.unlink(missing_ok=True)
                if made:
                    run.folder.rmdir()
                raise
    return outcome


def opened(folder: Path, stores: ExitStack) -> Part:
    run = existing(folder)
    store = stores.enter_context(Store.open(run.store, readonly=True))
    facts = store.facts()
    kind = kind_of(facts, folder)
    try:
        manifest = read_manifest(run.manifest.read_bytes())
        rows = manifest["made_from"]["data"].get("rows")
        begin = 0 if rows is None else int(rows[0])
        stated = manifest["made_from"]["data"].get("shard_of")
        together = None if stated is None else (int(stated[0]), int(stated[1]))
    except OSError as error:
        raise BadInput(f"{run.manifest}: cannot be read ({error.strerror}); copy all of the run") from error
    except (Unlike, LookupError, TypeError, ValueError) as error:
        raise BadInput(f"{run.manifest}: not the manifest of a run ({error}); copy all of the run") from error
    part = Part(run, store, kind, facts, manifest, begin, together)
    if facts.get("state") != READY:
        raise BadInput(f"{folder}: the run there was stopped while it began; give its command again")
    left = part.end - begin - sum(1 for _ in store.finished(kind.stage))
    if left:
        raise BadInput(f"{folder}: {left} of its {part.end - begin} texts are not settled; give its command again")
    for path in (run.texts, run.spaces, run.task):
        if not path.is_file():
            raise BadInput(f"{path}: not there; copy all of the run")
    refuse_other_files(part)
    return part


def refuse_other_files(part: Part) -> None:
    """A model or vocabulary that is not there, or is not the one that the run was made with."""
    task = read_task(part.run.task)  # raises BadInput for what is not there
    model, *others = json.loads(part.facts["model"])
    stated = [(part.run.folder / name, digest) for name, digest in others]
    stated += [(part.run.model, model)] if task.model.onnx is not None else []
    for path, digest in stated:
        if not path.is_file() or sha256(path) != digest:
            raise BadInput(f"{path}: not the file that the run was made with; copy all of the run")


def refuse_misfits(parts: Sequence[Part]) -> None:
    first, end = parts[0], parts[0].begin
    for part in parts:
        others = [what for name, what in ALIKE.items() if part.facts.get(name) != first.facts.get(name)]
        if others:
            raise BadInput(
                f"{part.run.folder}: does not fit {first.run.folder}: {', '.join(others)} differ; give the runs of the "
                "shards of one task"
            )
        if part.begin > end:
            raise BadInput(
                f"{part.run.folder}: begins at text {part.begin}, and no run has texts {end} to "
                f"{part.begin - 1}; give their runs too"
            )
        end = max(end, part.end)
    known: dict[int, tuple[Part, int]] = {}
    for part in parts:
        jobs = part.store.jobs()
        for id in range(part.end - part.begin):
            other, its = known.setdefault(part.begin + id, (part, id))
            if other is part:
                continue
            if other.store.jobs()[its] != jobs.get(id):
                raise BadInput(
                    f"{part.run.folder}: its text {id} is another, or has other swaps, than text {its} of "
                    f"{other.run.folder}, and both are text {part.begin + id} of the task"
                )
            one, two = other.store.result(part.kind.stage, its), part.store.result(part.kind.stage, id)
            unlike = [name for name in part.kind.alike if one.get(name) != two.get(name)]
            if unlike:
                raise BadInput(
                    f"{part.run.folder}: of text {part.begin + id} of the task it says another "
                    f"{unlike[0]} than {other.run.folder}; leave one of them out"
                )
    ended = any(part.ended and part.end == end for part in parts)
    for part in parts:
        begin, beyond = part.together or (first.begin, end)
        beyond = min(beyond, end) if ended else beyond
        missing = [f"{one} to {two - 1}" for one, two in ((begin, first.begin), (end, beyond)) if one < two]
        if missing:
            raise BadInput(
                f"{part.run.folder}: one of the shards of texts {begin} to {beyond - 1}, and no run has texts "
                f"{' and '.join(missing)}; give their runs too"
            )


def put_together(run: Run, parts: Sequence[Part]) -> None:
    """Every text once, from the first run that has it; the store says `ready` when all is there."""
    first, begin = parts[0], parts[0].begin
    copy_files(parts, run)
    write_atomically(run.texts, numbered_lines(parts, lambda part: part.run.texts))
    write_atomically(run.spaces, numbered_lines(parts, lambda part: part.run.spaces))
    total = parts[-1].end - begin
    about = merged_about(parts, sha256(run.spaces))
    facts = {
        **first.facts,
        "texts": texts_of(run, about["labels"]),
        "spaces": about["swaps"]["sha256"],
        "total": json.dumps(total),
        "about": json.dumps(about, ensure_ascii=False),
        "state": "merging",
    }
    facts.pop(FACT, None)
    if all(FACT in part.facts for part in parts):
        facts[FACT] = write_atomically(run.folder / LEFT_OUT, left_out_together([part.run for part in parts]))
    Store.create(run.store, facts)
    run.certificates.mkdir()
    if any(part.run.transcripts.is_dir() for part in parts):
        run.transcripts.mkdir()
    with Store.open(run.store) as store, run.spaces.open("rb") as spaces:
        number = 0
        for part in parts:
            stage, kept_stage = part.kind.stage, part.kind.kept
            jobs, kept = part.store.jobs(), dict.fromkeys(id for id, _ in part.store.finished(kept_stage))
            with store.together():
                for id in range(part.end - part.begin):
                    line = part.store.result(stage, id)
                    evidence = renumbered_evidence(
                        part.run, line, run, number, hashlib.sha256(next(spaces)).hexdigest()
                    )
                    store.put(stage, number, written(renumbered(line, number)), evidence, job=jobs[id])
                    if id in kept:
                        store.put(kept_stage, number, part.store.line(kept_stage, id), None)
                    number += 1
        write_atomically(run.results, (f"{line}\n".encode() for line in store.lines(first.kind.stage)))
        manifest = dict(first.manifest)
        manifest["sha256"] = {**manifest["sha256"], "texts": facts["texts"], "spaces": facts["spaces"]}
        made_from = manifest["made_from"]
        data = {key: value for key, value in made_from["data"].items() if key != "shard_of"}
        manifest["made_from"] = {**made_from, "data": {**data, "rows": [begin, begin + total]}}
        manifest["merged_from"] = [
            {
                "rows": [part.begin, part.end],
                "platform": part.manifest.get("platform"),
                "versions": part.manifest["versions"],
            }
            for part in parts
        ]
        write_manifest(run, manifest)
        store.set_facts({"state": READY})


def copy_files(parts: Sequence[Part], run: Run) -> None:
    """What all of the runs have alike, and the networks behind the embedding for texts of other lengths: everything
    but texts, what was found of them, and what is made of that."""
    with writing(run.folder):
        for source in (part.run for part in parts):
            own = {getattr(source, name) for name in OWN_FILES} | {source.folder / name for name in MADE_OF_LINES}
            evidence = {source.certificates, source.transcripts, source.refused}
            for path in sorted(source.folder.rglob("*")):
                target = run.folder / path.relative_to(source.folder)
                mine = path in own or evidence & set(path.parents) or path.name.startswith(source.store.name)
                if path.is_file() and not mine and not UNFINISHED.fullmatch(path.name) and not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)


def apart(parts: Sequence[Part]) -> list[Part]:
    """Those that are not wholly inside another. What was left out of a text's swaps is counted for a run as a whole, so
    that nobody could count it for a part of one."""
    found: list[Part] = []
    for part in parts:
        end = found[-1].end if found else part.begin
        if part.begin < end < part.end:
            raise BadInput(
                f"{part.run.folder}: texts {part.begin} to {end - 1} of the task are in {found[-1].run.folder} too, "
                "and others are not; give runs that have no text in common"
            )
        if part.end > end:
            found.append(part)
    return found


def numbered_lines(parts: Sequence[Part], file: Callable[[Part], Path]) -> Iterator[bytes]:
    """The lines of such a file of each run, numbered from 0."""
    number = 0
    for part in parts:
        with file(part).open("rb") as lines:
            for raw in lines:
                yield f"{json.dumps(json.loads(raw) | {'id': number}, ensure_ascii=False)}\n".encode()
                number += 1


def texts_of(run: Run, labels: Sequence[str]) -> str:
    """The digest of the texts, as a run of them has it."""
    place = {name: number for number, name in enumerate(labels)}
    with run.texts.open("rb") as file:
        lines = [json.loads(raw) for raw in file]
    return digest_of_rows(
        (
            line["id"],
            line["text"],
            place[line["label"]],
            line.get("context"),
            place[line["answer"]] if "answer" in line else None,
        )
        for line in lines
    )


def merged_about(parts: Sequence[Part], spaces: str) -> dict[str, Any]:
    """What reports say of all runs: counts of swaps added up, and every remark once."""
    about, all_of_them = parts[0].about, [part.about for part in parts]
    swaps = [one["swaps"] for one in all_of_them]
    merged = {**about["swaps"], "sha256": spaces}
    for name in ("considered", "kept"):
        merged[name] = sum(one[name] for one in swaps)
    for name in ("removed", "fixed"):
        merged[name] = {key: sum(one[name].get(key, 0) for one in swaps) for one in swaps for key in one[name]}
    for name in ("remarks", "observed"):
        about[name] = list(dict.fromkeys(said for one in all_of_them for said in one[name]))
    return {**about, "swaps": merged, "data": all_of_them[-1]["data"]}


def renumbered(line: dict[str, Any], number: int) -> dict[str, Any]:
    line = {**line, "id": number}
    for name in ("certificate", "transcript"):
        if line.get(name) is not None:
            line[name] = f"{name}s/{number:06d}.json"
    return line


def renumbered_evidence(source: Run, line: Mapping[str, Any], run: Run, number: int, space: str) -> str | None:
    """The SHA-256 of the certificate or transcript under its new number."""
    id = int(line["id"])
    for name, old, new in (
        ("certificate", source.certificate(id), run.certificate(number)),
        ("transcript", source.transcript(id), run.transcript(number)),
    ):
        if line.get(name) is None:
            continue
        try:
            found = json.loads(old.read_bytes())
        except (OSError, ValueError) as error:
            raise BadInput(f"{old}: cannot be read; copy all of the run, or give its command again") from error
        if name == "certificate":
            about = {"id": number, "synonyms": space}
            return write_atomically(new, compact({**found, **{key: about[key] for key in about.keys() & found.keys()}}))
        return write_atomically(new, compact({**found, "id": number}))
    return None


def compact(evidence: Mapping[str, Any]) -> bytes:
    """As certificates and transcripts are written."""
    return json.dumps(evidence, sort_keys=True, separators=(",", ":")).encode("ascii")
