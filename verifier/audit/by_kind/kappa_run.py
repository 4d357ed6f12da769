"""The audit of a run of `measure --quantity kappa`: pairs of text and word asked again, all numbers counted anew.

kappa has no certificates. Every published number follows from A[text, word], which the store keeps: it is counted anew,
and of A itself pairs are asked of the deployed model again, in every position. Which pairs follows from what is
published, so that nobody can have chosen them; with `exact` they are all pairs, found again in the way of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.encodings.exact_evaluation import exactly_beaten
from swapproof.encodings.query import Query
from swapproof.models.deployed.passing_folder import PassingFolder

from ...counting.draws import drawn, seed_of
from ...runs.manifest import differences as manifest_differences
from ...runs.manifest import made_otherwise, read_manifest
from ...runs.run_folder import Run, existing, sha256
from ...runs.store import Store, intact
from ...single_words.brute_force import BATCHES, flips_by_force
from ...single_words.flip_matrix import FlipMatrix, exactly, parts_of_one_kind, parts_of_one_text
from ...single_words.kappa_findings import csv_of
from ...single_words.kappa_publishing import result_lines, summed_up
from ...single_words.kappa_setting import Setting, set_up
from ...single_words.kept_parts import Kept
from ...tasks.inputs import Text
from ...tasks.task import read_task
from ..findings import Audit, Fault, Finding
from ..run_accounts import binding_as_it_lies, names_differ, page_differs
from ..run_items import AGAIN, Unfinished, read_lines

LEVELS = {"exact": "real", "brute force": "replay", "euba": "replay"}
"""Of each way to find A; the stage of the store that keeps it is called after it."""
DRAWN = 32
"""Words of a text that are asked again of those said to flip it, and as many of the others."""


def audit_kappa(folder: Path, *, exact: bool) -> Audit:
    run = existing(folder)
    lines = read_lines(run)
    if not run.summary.exists():
        raise Unfinished(f"{folder}: the run was stopped before its numbers were complete; {AGAIN}")
    with intact(run.summary):
        summary = json.loads(run.summary.read_bytes())
        kind, euba = summary["kind"], summary.get("euba")
        stages = [(kind, summary["kept_as"]), *([] if euba is None else [("euba", euba["kept_as"])])]
        if summary["level"] != LEVELS[kind] or not all(stage.startswith(way) for way, stage in stages):
            raise ValueError(f"kind {kind}, level {summary['level']}")
    again = Again(run, set_up(read_task(run.task), None, deployed=LEVELS[kind] == "replay"), summary, exact)
    return Audit("kappa", len(lines), again.findings(), closing=again.said)


@dataclass(eq=False)
class Again:
    """The run's own files, A as it was kept, and how many of its pairs were asked again."""

    run: Run
    setting: Setting
    summary: Mapping[str, Any]
    exact: bool
    asked: int = field(default=0, init=False)

    def findings(self) -> Iterator[Finding | Fault]:
        texts = self.setting.answered.texts
        found = self.kept()
        true = self.measured() if self.exact and self.summary["kind"] == "exact" else None
        for number, text in enumerate(texts):
            words = self.words_that_differ(found, number, text, None if true is None else true.flipped[number])
            refusal = f"is said to be flipped by {words[0]!r}, or not to be, and it is otherwise" if words else None
            flips = int(found.flipped[number].sum())
            yield Finding(text.id, True, f"{flips:,} of {found.flipped.shape[1]:,} words flip it", refusal)
        yield from map(Fault, self.differences(found))

    def kept(self) -> FlipMatrix:
        """A as the store has it."""
        flipped, unknown = self.parts_kept_as(self.summary["kept_as"])
        euba = self.summary.get("euba")
        if self.summary["kind"] == "euba":
            unknown = ~flipped
        elif euba is not None and self.setting.network is None:
            more, _ = self.parts_kept_as(euba["kept_as"])
            flipped, unknown = flipped | (more & unknown), unknown & ~more
        about = {"kind": self.summary["kind"], "level": self.summary["level"]}
        return FlipMatrix(flipped, unknown if unknown.any() else None, about, 0.0, 0.0)

    def parts_kept_as(self, stage: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        subjects, network = self.setting.answered.subjects, self.setting.network
        if stage.startswith("exact") and network is not None:
            parts = parts_of_one_kind(network, subjects)
        else:
            parts = parts_of_one_text(subjects)
        flipped = np.zeros((len(subjects), len(self.setting.candidates.words)), dtype=bool)
        unknown = np.zeros_like(flipped)
        with Store.open(self.run.store, readonly=True) as store, intact(self.run.store):
            kept = Kept(store, stage)
            if kept.numbers() != set(range(len(parts))):
                raise BadInput(f"{self.run.store}: does not hold what summary.json was made of; {AGAIN}")
            for number, rows in enumerate(parts):
                part = kept.get(number)
                flipped[rows] = part.flipped
                if part.unknown is not None:
                    unknown[rows] = part.unknown
        return flipped, unknown

    def measured(self) -> FlipMatrix:
        """All of it, found again over the reals."""
        if self.setting.network is None:
            raise BadInput(f"{self.run.model}: cannot be read here, and the run says that it was")
        with PassingFolder() as folder:
            path = folder / "store.sqlite"
            Store.create(path, {})
            with Store.open(path) as store:
                words, subjects = self.setting.candidates.tokens, self.setting.answered.subjects
                return exactly(self.setting.network, words, subjects, Kept(store, "exact"), shown=False)

    def words_that_differ(
        self, found: FlipMatrix, number: int, text: Text, true: NDArray[np.bool_] | None
    ) -> Sequence[str]:
        """Words of which the run says what is not so of this text."""
        names, tokens = self.setting.candidates.words, self.setting.candidates.tokens
        flipped = found.flipped[number]
        known = np.ones_like(flipped) if found.unknown is None else ~found.unknown[number]
        if true is not None:
            self.asked += int(known.sum())
            return [names[word] for word in np.flatnonzero(known & (flipped != true))]
        chosen = np.flatnonzero(known)
        if not self.exact:
            chosen = np.concatenate([self.some(np.flatnonzero(known & (flipped == flips)), text) for flips in (1, 0)])
        self.asked += len(chosen)
        subject = self.setting.answered.subjects[number]
        answered, strange = flips_by_force(self.setting.replay.answers, tokens[chosen], subject, batch=BATCHES[1])
        differing = chosen[(answered != flipped[chosen]) & ~strange]
        if found.about["level"] == "real":
            differing = [word for word in differing if self.flips_over_reals(text, number, word) != flipped[word]]
        return [names[word] for word in differing]

    def some(self, words: NDArray[np.intp], text: Text) -> NDArray[np.intp]:
        if len(words) <= DRAWN:
            return words
        seed = seed_of([sha256(self.run.folder / "kappa.csv"), sha256(self.run.results), text.id])
        return words[np.unique(np.concatenate(list(drawn(seed, len(words), DRAWN))).astype(np.intp))]

    def flips_over_reals(self, text: Text, number: int, word: int) -> bool:
        """Where onnxruntime says otherwise, exact arithmetic at every position."""
        network, subject = self.setting.network, self.setting.answered.subjects[number]
        if network is None:
            raise BadInput(f"{self.run.model}: cannot be read here, and the run says that it was")
        query = Query.of(network(len(subject.tokens)), text.frozen.space, text.label)
        token = int(self.setting.candidates.tokens[word])
        for position in subject.positions:
            sentence = [*subject.tokens[:position], token, *subject.tokens[position + 1 :]]
            if token != subject.tokens[position] and exactly_beaten(query, sentence)[0]:
                return True
        return False

    def differences(self, found: FlipMatrix) -> Iterator[str]:
        """Where the run's other files say another thing than A."""
        try:
            yield from names_differ(self.run)
            binding = binding_as_it_lies(self.run, self.setting.inputs)
            manifest = read_manifest(self.run.manifest.read_bytes())
            yield from manifest_differences(manifest, binding, self.setting.inputs)
            yield from made_otherwise(self.run, manifest)
            if self.run.results.read_bytes() != b"".join(result_lines(self.setting, found)):
                yield "results.jsonl says another thing than the pairs that the store keeps"
            kappa, made = summed_up(self.setting, found, found.about, lambda word: {})
            if (self.run.folder / "kappa.csv").read_bytes() != csv_of(kappa):
                yield "kappa.csv says another thing than the pairs that the store keeps"
            yield from names_otherwise(self.summary, json.loads(json.dumps(made)))
            yield from page_differs(self.run)
        except Exception as error:  # whatever an ill-formed file does to us, it is not accepted
            yield f"the run's own account of itself cannot be compared: {type(error).__name__}: {error}"

    def said(self) -> str:
        every = self.setting.answered.subjects
        total = len(every) * len(self.setting.candidates.words)
        way = "found again" if self.exact else "drawn, and asked of the model again in every position"
        return f"kappa has no certificates: {self.asked:,} of {total:,} pairs of text and word were {way}"


def names_otherwise(stated: Mapping[str, Any], made: Mapping[str, Any]) -> Iterator[str]:
    """Where the summary says another thing than A makes; what words do when they are put in or taken out, and their
    parts of speech, depend on what is installed and are not compared."""
    for name, value in made.items():
        if name == "parts_of_speech":
            continue
        told = stated.get(name)
        if name == "highest_kappa":
            value = [{key: one[key] for key in one if key != "part_of_speech"} for one in value]
            told = [{key: one.get(key) for key in other} for one, other in zip(told or (), value, strict=False)]
        if told != value:
            yield f"summary.json says {name} = {told}, and the pairs make {value}"
