"""Every certificate checked again, every witness replayed, every line compared with both; in several processes."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.onnx_reading import network_for
from swapproof.encodings.query import Query
from swapproof.encodings.word_options import swaps_of
from swapproof.proofs.check import (
    MAX_CERTIFICATE,
    SECONDS,
    Files,
    Verdict,
    parse_canonical,
    verdict_of,
)
from swapproof.proofs.lower import read_model
from swapproof.proofs.onnx_file import Refused, Unusable

from ..collecting import collect_seldom
from ..interrupting import leave_interrupts_to_parent
from ..ladder.replay import NO_CLASS, Replay
from ..ladder.truth import beaten
from ..runs.external_tensors import external_files
from ..runs.run_folder import Run, sha256
from ..screening import Screen, Unsure, canonical
from ..tasks.inputs import Text
from ..tasks.opened_model import opened_in
from .findings import Finding
from .run_items import Item, size_of
from .text_rules import Spaces, agree, bind, expect

PATIENCE = 2.0
"""Seconds of this processor's time before other processes are started, which takes about as long."""
LARGE = 1 << 14
"""Bytes of a certificate that takes long."""
AT_ONCE = 32
"""Certificates examined together."""
SMALL = 1 << 20
"""Bytes of a certificate that is held in memory beside others."""
REPLAYED = "replayed"
"""What is said of a witness of level `replay` once it was replayed."""


def findings(run: Run, items: list[Item], jobs: int, *, exact: bool) -> Iterator[Finding]:
    """In the order of the items; in processes of their own where that takes longer than these take to start."""
    until = time.process_time() + (0 if any(size_of(item) >= LARGE for item in items) else PATIENCE)
    examiner = None
    for start in range(0, len(items), AT_ONCE):
        left = items[start:]
        if jobs > 1 and len(left) > 1 and time.process_time() >= until:
            yield from pooled(run, left, jobs, exact=exact)
            return
        examiner = examiner or Examiner.open(run.folder, exact=exact)
        yield from examiner.examine(left[:AT_ONCE])


def pooled(run: Run, items: list[Item], jobs: int, *, exact: bool) -> Iterator[Finding]:
    """The large ones first, so that none is begun when all others are done."""
    small = [item for item in items if size_of(item) < LARGE]
    large = sorted((item for item in items if size_of(item) >= LARGE), key=size_of, reverse=True)
    parts = [[item] for item in large] + [small[start : start + AT_ONCE] for start in range(0, len(small), AT_ONCE)]
    found: dict[int, Finding] = {}
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(parts))
    with ProcessPoolExecutor(workers, context, initializer=begin_examining, initargs=(run.folder, exact)) as pool:
        try:
            begun = [(part, pool.submit(examine_there, part)) for part in parts]
            future_of = {item.id: future for part, future in begun for item in part}
            for item in items:
                if item.id not in found:
                    found.update((finding.id, finding) for finding in future_of[item.id].result())
                yield found.pop(item.id)
        except BrokenProcessPool:
            raise BadInput("a process that was checking died, perhaps for want of memory; try --jobs 1") from None
        finally:
            pool.shutdown(cancel_futures=True)


EXAMINER: list[Examiner] = []
"""The examiner of a checking process, which the pool's functions cannot be handed."""


def begin_examining(folder: Path, exact: bool) -> None:
    leave_interrupts_to_parent()
    collect_seldom()
    EXAMINER.append(Examiner.open(folder, exact=exact))


def examine_there(items: Sequence[Item]) -> list[Finding]:
    return list(EXAMINER[0].examine(items))


@dataclass(eq=False)
class Examiner:
    """One process's model, as the checker reads it and as onnxruntime runs it."""

    run: Run
    files: Files
    replay: Replay
    spaces: Spaces
    screen: Screen | None
    known_classes: int | None = None

    @classmethod
    def open(cls, folder: Path, *, exact: bool) -> Examiner:
        run = Run(folder)
        model = opened_in(run)
        replay, screen = Replay.open(model), None
        if not exact:
            tensors = {name: (folder / name).read_bytes() for name in external_files(model.path)}
            checked = read_model(run.model.read_bytes(), tensors)
            screen = Screen(model, checked, sha256(run.vocabulary), lambda space: replay.of(space).outputs)
        return cls(run, Files(folder), replay, Spaces.at(run), screen)

    def examine(self, items: Sequence[Item]) -> Iterator[Finding]:
        """Each as soon as it is found; what is screened is begun together."""
        given = [None if item.certificate is None else read(item.certificate) for item in items]
        if self.screen is not None:
            self.screen.prepare(top for top in given if top is not None)
        for item, top in zip(items, given, strict=True):
            yield self.finding(item, top)

    def finding(self, item: Item, top: Any) -> Finding:
        """The certificate proves what it says, and the line says no more than that and what was replayed.

        `top` is what was read of the certificate, None where that failed.
        """
        sentence, screened = "nothing is claimed", False
        try:
            verdict, statement = None, None
            if item.certificate is not None:
                statement = parsed(item.certificate) if top is None else top
                verdict = self.screened(item.id, statement)
                screened = verdict is not None
                if verdict is None:
                    verdict, _ = self.files.check(item.certificate, SECONDS)
                sentence = verdict.sentence
            if item.text is None:
                raise Refused("the run has no such text")
            if statement is not None:
                bind(statement, item.text, self.spaces, self.classes(item.text))
            if item.line is not None:
                self.compare(item.line, item.text, statement)
            if statement is not None and statement["upper"] is not None:
                about = statement["inputs"], statement["words"]
                self.replay_witness(item.text, swaps_of(*about, statement["upper"]["swaps"]))
                if verdict is not None:
                    sentence = self.replayed(statement, item.text, verdict)
        except (Refused, Unusable) as error:
            return Finding(item.id, item.certificate is not None, sentence, str(error))
        except Exception as error:  # whatever an ill-formed file does to us, it is not accepted
            met = f"the check met {type(error).__name__}: {error}"
            return Finding(item.id, item.certificate is not None, sentence, met)
        return Finding(item.id, item.certificate is not None, sentence, None, screened)

    def replayed(self, statement: Mapping[str, Any], text: Text, verdict: Verdict) -> str:
        """The verdict's sentence with what is known now: the witness was replayed here, not only recorded."""
        upper = statement["upper"]
        levels = [REPLAYED if level == "replay" else level for level in upper["levels"]]
        said = {**statement, "upper": {**upper, "levels": levels}}
        return verdict_of(said, self.classes(text), verdict.count).sentence

    def screened(self, id: int, statement: Mapping[str, Any]) -> Verdict | None:
        """The verdict on a certificate that float64 decides, and that names the files of this run."""
        verdict = None if self.screen is None else self.screen.verdict(statement, SECONDS)
        if verdict is None or verdict.id != id:
            return None
        model, vocabulary = statement["model"], statement["vocabulary"]
        named = vocabulary is None or vocabulary["file"] == self.run.vocabulary.name
        return verdict if named and model["file"] == self.run.model.name else None

    def classes(self, text: Text) -> int:
        """As many as the model answers with, whatever the text."""
        if self.known_classes is None:
            space = text.frozen.space
            self.known_classes = self.replay.of(space).outputs(np.array([space.original], dtype=np.int64)).shape[1]
        return self.known_classes

    def compare(self, line: Mapping[str, Any], text: Text, statement: Mapping[str, Any] | None) -> None:
        """A line may claim less than its certificate proves, never more."""
        swaps = agree(line, text, statement)
        if line["status"] == "ambiguous":
            expect(self.decided_by_rounding(text, swaps), "says ambiguous, and rounding does not decide it", "line")
        if line["predicted"] is not None:
            answer = self.answer(text)
            expect(
                line["predicted"] == answer, f"says the model answers {line['predicted']}; it answers {answer}", "line"
            )

    def decided_by_rounding(self, text: Text, swaps: Iterable[Sequence[int]]) -> bool:
        """Whether the text's own answer, or that of its witness, need not be what it is over the reals."""
        space = text.frozen.space
        query = Query.of(network_for(self.replay.model, space, smooth=True), space, text.label)
        if not beaten(query, space.original)[1] or self.answer(text) == NO_CLASS:
            return True
        broken = space.sentence((position, token) for position, token in swaps)
        return broken != space.original and not beaten(query, broken)[0]

    def answer(self, text: Text) -> int:
        """The class of the original."""
        space = text.frozen.space
        return int(self.replay.of(space).answers(np.array([space.original], dtype=np.int64))[0])

    def replay_witness(self, text: Text, swaps: Iterable[tuple[int, int]]) -> None:
        space = text.frozen.space
        sentence = np.array(space.sentence(swaps), dtype=np.int64)
        expect(self.replay.of(space).breaks(sentence, text.label), "does not fool onnxruntime", "witness")


def read(certificate: Path) -> Any:
    """The value of a certificate in canonical JSON, before it is known to be one; None when it is not, or large."""
    try:
        if certificate.stat().st_size <= SMALL:
            return canonical(certificate.read_bytes())
    except (OSError, Unsure):
        pass
    return None


def parsed(certificate: Path) -> dict[str, Any]:
    if certificate.stat().st_size > MAX_CERTIFICATE:
        raise Refused("the certificate is too large")
    value: dict[str, Any] = parse_canonical(certificate.read_bytes())
    return value
