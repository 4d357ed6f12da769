"""The runs that are compared are of one kind, with the same texts, labels and swaps, or one line says where not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ..runs.manifest import QUESTION
from ..runs.run_folder import Run, existing
from ..runs.store import ILL_FORMED, Store, intact
from .standings import STANDINGS, WRONG, Standing

FEW = 6
"""Candidates that are named where two runs differ."""


@dataclass(frozen=True)
class ComparedRun:
    """`kind`: certify, attack, pr, kappa or msr; `lines` of results.jsonl by text; `texts` as texts.jsonl has them."""

    run: Run
    name: str
    kind: str
    question: Mapping[str, Any]
    labels: tuple[str, ...]
    model: str
    texts: tuple[Mapping[str, Any], ...]
    lines: Mapping[int, Mapping[str, Any]]
    vacuous: tuple[str, ...] = ()
    """Why the run says little, if it does."""

    def standing(self, id: int) -> Standing:
        """Runs of kappa have lines of the texts that are answered rightly only."""
        line = self.lines.get(id)
        return WRONG if line is None else STANDINGS[self.kind](line)


def compared_runs(folders: Sequence[Path]) -> tuple[ComparedRun, ...]:
    """Raises BadInput where a folder is no finished run, or answers another question than the first."""
    if len(folders) < 2:
        raise BadInput("give two runs or more: the first is what the others are compared with")
    names = names_of(folders)
    runs = tuple(read_run(folder, name) for folder, name in zip(folders, names, strict=True))
    for other in runs[1:]:
        refuse_others(runs[0], other)
    return runs


def names_of(folders: Sequence[Path]) -> list[str]:
    """The last parts of their paths, as many as tell them apart."""
    paths = [folder.resolve() for folder in folders]
    twice = next((folder for number, folder in enumerate(folders) if paths[number] in paths[:number]), None)
    if twice is not None:
        raise BadInput(f"{twice}: given twice")
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def read_run(folder: Path, name: str) -> ComparedRun:
    run = existing(folder)
    with Store.open(run.store, readonly=True) as store:
        facts = store.facts()
    with intact(run.store):
        question = dict(json.loads(facts.get(QUESTION, '{"quantity": "certify"}')))
        kind = str(question["quantity"])
    if kind not in STANDINGS:
        raise BadInput(f"{folder}: runs of {kind} cannot be compared; those of {', '.join(STANDINGS)} can")
    if not run.summary.exists():
        raise BadInput(f"{folder}: the run is not finished; give its command again")
    try:
        about = json.loads(facts.get("about", "{}"))
        lines = {int(line["id"]): line for line in objects(run.results)}
        texts = tuple(objects(run.texts))
        found = ComparedRun(
            run,
            name,
            kind,
            question,
            tuple(about.get("labels", ())) or labels_of(run),
            str(about.get("model", {}).get("file") or run.model.name),
            texts,
            lines,
            tuple(map(str, json.loads(run.summary.read_bytes()).get("vacuous", ()))),
        )
        for id, text in enumerate(texts):
            found.standing(id), text["text"], text["label"]
    except (OSError, *ILL_FORMED) as error:
        met = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadInput(f"{folder}: cannot be read as a run of {kind} ({met}); `swapproof check` says more") from None
    missing = len(texts) - len(lines)
    if missing > 0 and kind != "kappa":
        raise BadInput(f"{folder}: {missing} of {len(texts)} texts are not settled yet; give the run's command again")
    return found


def labels_of(run: Run) -> tuple[str, ...]:
    from ..tasks.task import read_task

    return read_task(run.task, check_files=False).model.labels


def objects(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:  # not splitlines: texts hold line separators of Unicode
        return [dict(json.loads(line)) for line in file]


def refuse_others(first: ComparedRun, other: ComparedRun) -> None:
    where, there = other.run.folder, first.run.folder
    if other.kind != first.kind:
        raise BadInput(f"{where}: a run of {other.kind}, and {there} is one of {first.kind}: give runs of one kind")
    if other.question.get("radius") != first.question.get("radius"):
        raise BadInput(
            f"{where}: measured at radius {other.question.get('radius')}, and {there} at "
            f"{first.question.get('radius')}: give runs of one radius"
        )
    for name in ("norm", "words", "units", "padding"):
        if other.question.get(name) != first.question.get(name):
            said = f"{name} {other.question.get(name)}, and {there} with {first.question.get(name)}"
            raise BadInput(f"{where}: measured with {said}: give runs of one question")
    if other.question.get("target") != first.question.get("target"):
        raise BadInput(f"{where}: attacked towards another class than {there}")
    refuse_other_texts(first, other)
    if first.kind == "kappa":
        refuse_other_words(first, other)
    else:
        refuse_other_spaces(first, other)


def refuse_other_texts(first: ComparedRun, other: ComparedRun) -> None:
    where, there = other.run.folder, first.run.folder
    if len(other.texts) != len(first.texts):
        raise BadInput(
            f"{where}: has {len(other.texts):,} texts, and {there} has {len(first.texts):,}: run both on the same ones"
        )
    for id, (own, one) in enumerate(zip(other.texts, first.texts, strict=True)):
        if any(own.get(name) != one.get(name) for name in ("text", "context")):
            raise BadInput(f"{where}: text {id} is another one than in {there}: run both on the same texts")
        if own["label"] != one["label"]:
            raise BadInput(f"{where}: text {id} has the label {own['label']}, and in {there} it is {one['label']}")
    if other.labels != first.labels:
        raise BadInput(
            f"{where}: its classes are {', '.join(other.labels)}, and those of {there} are {', '.join(first.labels)}"
        )


def refuse_other_spaces(first: ComparedRun, other: ComparedRun) -> None:
    """Line by line, where the files are not the same bytes."""
    own, one = other.run.spaces, first.run.spaces
    try:
        if own.read_bytes() == one.read_bytes():
            return
        choices = [{line["id"]: line["choices"] for line in objects(path)} for path in (own, one)]
    except (OSError, *ILL_FORMED) as error:
        raise BadInput(f"{own} or {one}: not a file of frozen spaces ({error})") from None
    for id in range(len(first.texts)):
        mine, its = (one.get(id) for one in choices)
        if mine == its:
            continue
        raise BadInput(
            f"{other.run.folder}: text {id}{place_of(mine, its)} in {first.run.folder}: compare models on one space, "
            f'with [swaps] frozen = "{first.run.spaces}" in the task of the other run'
        )


def place_of(own: Any, one: Any) -> str:
    """Where the choices of a text differ: a sentence that ends with a place."""
    if not own or not one or len(own) != len(one):
        return f" has {len(own or ())} words, and {len(one or ())}"
    for place, (mine, its) in enumerate(zip(own, one, strict=True)):
        if mine != its:
            return f", word {place} ({mine[0]}) can become {listed(mine)}, and {listed(its)}"
    return " has other swaps than"


def listed(options: Sequence[str]) -> str:
    others = list(islice(options, 1, FEW + 1))
    more = ", ..." if len(options) > FEW + 1 else ""
    return ", ".join(others) + more if others else "nothing"


def refuse_other_words(first: ComparedRun, other: ComparedRun) -> None:
    """kappa is of the words of a vocabulary."""
    mine, its = (words_of(run) for run in (other, first))
    if mine.keys() != its.keys():
        odd = min(mine.keys() ^ its.keys())
        raise BadInput(
            f"{other.run.folder}: measured over {len(mine):,} words, and {first.run.folder} over {len(its):,}; "
            f"{odd!r} is of one only"
        )


def words_of(run: ComparedRun) -> dict[str, tuple[float, float]]:
    """kappa.csv: word -> low and high."""
    import csv

    path = run.run.folder / "kappa.csv"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {row["word"]: (float(row["low"]), float(row["high"])) for row in csv.DictReader(file)}
    except (OSError, *ILL_FORMED) as error:
        raise BadInput(f"{path}: cannot be read ({error})") from None
