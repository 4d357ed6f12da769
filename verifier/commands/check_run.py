"""`check`: every certificate of a run checked again, every witness replayed, every claimed line compared with both."""

from __future__ import annotations

import gc
import hashlib
import json
import multiprocessing
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.query import Query
from swapproof.proofs.check import (
    MAX_CERTIFICATE,
    SECONDS,
    Files,
    Refused,
    Unusable,
    Verdict,
    parse_canonical,
    read_model,
)

from ..audit.line_claims import exaggerations
from ..audit.run_accounts import differences, once
from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED
from ..ladder.model_trial import length_of
from ..ladder.replay import NO_CLASS, Replay
from ..ladder.truth import beaten
from ..pages.progress import progress
from ..runs.external_tensors import external_files
from ..runs.inputs import Inputs, Text, read_inputs
from ..runs.interrupting import leave_interrupts_to_parent
from ..runs.results import pieces
from ..runs.run_folder import CERTIFICATE, Run, existing, sha256
from ..runs.station import kept_network
from ..runs.task import read_task
from ..screening import Screen, Unsure, canonical

PATIENCE = 2.0
"""Seconds of this processor's time before other processes are started, which takes about as long."""
LARGE = 1 << 14
"""Bytes of a certificate that takes long."""
AT_ONCE = 32
"""Certificates examined together."""
SMALL = 1 << 20
"""Bytes of a certificate that is held in memory beside others."""
COLLECTED = 20_000, 20, 50
"""How seldom what nobody needs is looked for: nearly all that is read stays, and looking through it takes long."""


@dataclass(frozen=True)
class Item:
    """A certificate, a line of results.jsonl, or both, of one text; `text` None: the run has no such text."""

    id: int
    line: Mapping[str, Any] | None
    certificate: Path | None
    text: Text | None


@dataclass(frozen=True)
class Finding:
    """What was found of an item: its plain sentence, or why it is refused."""

    id: int
    has_certificate: bool
    sentence: str
    refusal: str | None
    screened: bool = False
    """Accepted in float64 with error bounds; else whatever was found was found by exact arithmetic."""


def check(folder: Path, *, exact: bool = False, jobs: int | None = None) -> int:
    """Print one line per text and, last, `accepted N of N` when nothing was refused; the exit code says the same.

    Proofs are screened in float64 with error bounds, and those that this leaves unsure are checked by
    proofs/check.py; with `exact` all are. A run that claims nothing is neither refused nor accepted.
    """
    gc.set_threshold(*COLLECTED)
    run = existing(folder)
    inputs = own_inputs(run)
    items = list(items_of(run, inputs))
    named = any(item.line is None or item.line.get("certificate") is not None for item in items)
    if not items or (named and not any(item.certificate for item in items)):
        raise BadInput(f"{folder}: holds no certificates; run certify again")
    certificates = refused = others = screened = 0
    with progress("check", len(items)) as advance:
        for finding in findings(run, items, jobs or os.cpu_count() or 1, exact=exact):
            certificates += finding.has_certificate
            screened += finding.screened
            name = f"{finding.id:06d}.json" if finding.has_certificate else f"text {finding.id}"
            if finding.refusal is not None:
                refused += 1
                print(f"refused {name}: {finding.refusal}", flush=True)
            else:
                print(f"{name}: {finding.sentence}", flush=True)
            advance(1)
    for problem in differences(run, inputs):
        others += 1
        print(f"refused: {problem}")
    if refused or others:
        print(refusals(refused, len(items), others))
        return UNCHECKED
    missing = len(inputs.texts) - sum(item.line is not None for item in items)
    if missing:
        print(f"{missing} of the run's {len(inputs.texts)} texts have no line in results.jsonl: they are not settled")
    if not certificates:
        print(nothing_claimed(items))
        return INCOMPLETE
    print(shown(screened, certificates))
    print(f"accepted {certificates} of {certificates}")
    return HOLDS


def refusals(texts: int, of: int, others: int) -> str:
    return f"refused {texts} of {of} texts, and {others} of the things that the run's other files say"


def nothing_claimed(items: Sequence[Item]) -> str:
    """Of a run in which no text was proved or broken, whose files agree."""
    counts = Counter(item.line["status"] for item in items if item.line is not None)
    listed = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return (
        f"the run's files agree, and claim nothing: no text was proved or broken ({listed}), so there is no "
        "certificate to check"
    )


def shown(screened: int, certificates: int) -> str:
    rest = certificates - screened
    return f"screened in float64 with error bounds: {screened}; checked in exact arithmetic by proofs/check.py: {rest}"


def own_inputs(run: Run) -> Inputs:
    """The texts and spaces of the run, as they lie in its folder: what is written in spaces.jsonl may move."""
    task = read_task(run.task)
    every = task.model_copy(update={"swaps": task.swaps.model_copy(update={"swap_unknown": True})})
    return read_inputs(every, length_of(task, open_model(run.model)))


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
        raise BadInput(f"{run.results}: cannot be read ({error.strerror}); run certify again") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{run.results}: not UTF-8 ({error.reason} at byte {error.start})") from error
    return lines


def findings(run: Run, items: list[Item], jobs: int, *, exact: bool) -> Iterator[Finding]:
    """In the order of the items; in processes of their own where that takes longer than these take to start."""
    until = time.process_time() + (0 if any(size_of(item) >= LARGE for item in items) else PATIENCE)
    bench = None
    for start in range(0, len(items), AT_ONCE):
        left = items[start:]
        if jobs > 1 and len(left) > 1 and time.process_time() >= until:
            yield from pooled(run, left, jobs, exact=exact)
            return
        bench = bench or Bench.open(run.folder, exact=exact)
        yield from bench.examine(left[:AT_ONCE])


def pooled(run: Run, items: list[Item], jobs: int, *, exact: bool) -> Iterator[Finding]:
    """The large ones first, so that none is begun when all others are done."""
    small = [item for item in items if size_of(item) < LARGE]
    large = sorted((item for item in items if size_of(item) >= LARGE), key=size_of, reverse=True)
    parts = [[item] for item in large] + [small[start : start + AT_ONCE] for start in range(0, len(small), AT_ONCE)]
    found: dict[int, Finding] = {}
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(parts))
    with ProcessPoolExecutor(workers, context, initializer=start_bench, initargs=(run.folder, exact)) as pool:
        try:
            begun = [(part, pool.submit(examine_on_bench, part)) for part in parts]
            future_of = {item.id: future for part, future in begun for item in part}
            for item in items:
                if item.id not in found:
                    found.update((finding.id, finding) for finding in future_of[item.id].result())
                yield found.pop(item.id)
        except BrokenProcessPool:
            raise BadInput("a process that was checking died, perhaps for want of memory; try --jobs 1") from None
        finally:
            pool.shutdown(cancel_futures=True)


def size_of(item: Item) -> int:
    """Bytes of its certificate: nearly all of a large one is its proof."""
    try:
        return 0 if item.certificate is None else item.certificate.stat().st_size
    except OSError:
        return 0


BENCH: list[Bench] = []
"""The bench of a checking process, which the pool's functions cannot be handed."""


def start_bench(folder: Path, exact: bool) -> None:
    leave_interrupts_to_parent()
    gc.set_threshold(*COLLECTED)
    BENCH.append(Bench.open(folder, exact=exact))


def examine_on_bench(items: Sequence[Item]) -> list[Finding]:
    return list(BENCH[0].examine(items))


@dataclass(eq=False)
class Bench:
    """One process's model, as the checker reads it and as onnxruntime runs it."""

    run: Run
    files: Files
    replay: Replay
    spaces_sha256: str
    screen: Screen | None
    known_classes: int | None = None
    networks: OrderedDict[int, Network] = field(default_factory=OrderedDict)

    @classmethod
    def open(cls, folder: Path, *, exact: bool) -> Bench:
        run = Run(folder)
        model = open_model(run.model)
        replay, screen = Replay.open(model), None
        if not exact:
            tensors = {name: (folder / name).read_bytes() for name in external_files(model)}
            checked = read_model(run.model.read_bytes(), tensors)
            screen = Screen(model, checked, sha256(run.vocabulary), replay.outputs)
        return cls(run, Files(folder), replay, sha256(run.spaces), screen)

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
                bind(statement, item.text, self.spaces_sha256, self.classes(item.text))
            if item.line is not None:
                self.compare(item.line, item.text, statement)
            if statement is not None and statement["upper"] is not None:
                self.replay_witness(item.text, statement["upper"]["swaps"])
                sentence = sentence.replace("replay as recorded, not checked", "replayed")
        except (Refused, Unusable) as error:
            return Finding(item.id, item.certificate is not None, sentence, str(error))
        except Exception as error:  # whatever an ill-formed file does to us, it is not accepted
            met = f"the check met {type(error).__name__}: {error}"
            return Finding(item.id, item.certificate is not None, sentence, met)
        return Finding(item.id, item.certificate is not None, sentence, None, screened)

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
            self.known_classes = self.replay.outputs(np.array([text.frozen.space.original], dtype=np.int64)).shape[1]
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
        query = Query.of(kept_network(self.networks, self.replay.model, space), space, text.label)
        if not beaten(query, space.original)[1] or self.answer(text) == NO_CLASS:
            return True
        broken = space.sentence((position, token) for position, token in swaps)
        return broken != space.original and not beaten(query, broken)[0]

    def answer(self, text: Text) -> int:
        """The class of the original."""
        return int(self.replay.answers(np.array([text.frozen.space.original], dtype=np.int64))[0])

    def replay_witness(self, text: Text, swaps: Iterable[tuple[int, int]]) -> None:
        sentence = np.array(text.frozen.space.sentence(swaps), dtype=np.int64)
        expect(self.replay.breaks(sentence, text.label), "does not fool onnxruntime", "witness")


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


def bind(statement: Mapping[str, Any], text: Text, spaces_sha256: str, classes: int) -> None:
    """What the certificate is about must be this text of this run."""
    expect(statement["text"] == hashlib.sha256(text.encoded.text.encode()).hexdigest(), "is of another text")
    expect(statement["label"] == text.label, "is for another label")
    expect(statement["synonyms"] == spaces_sha256, "is for other frozen swaps than spaces.jsonl")
    expect(statement["choices"] == [list(c) for c in text.frozen.space.choices], "is for another space")
    rivals = [c for c in range(classes) if c != text.label]
    expect(statement["rivals"] == rivals, "does not speak of all other classes")


def agree(line: Mapping[str, Any], text: Text, statement: Mapping[str, Any] | None) -> list[list[int]]:
    """The swaps of a line that says of this text no more than the statement of its certificate; else Refused."""
    described(line, text)
    for fault in exaggerations(line, text.id, statement, len(text.encoded.words)):
        raise Refused(f"the line {fault}")
    swaps = [] if line["witness"] is None else list(tokens(text, line["witness"]["swaps"]))
    stated = None if statement is None or statement["upper"] is None else statement["upper"]["swaps"]
    expect(stated is None or swaps == stated, "has another witness than the certificate", "line")
    if statement is not None and stated is not None:
        spelt(line["witness"], text, statement["upper"]["levels"])
    return swaps


def tokens(text: Text, swaps: Iterable[Mapping[str, Any]]) -> Iterator[list[int]]:
    """[position in the model's input, token] of swaps that are given by word."""
    for swap in sorted(swaps, key=lambda swap: int(swap["position"])):
        words = text.frozen.words[swap["position"]]
        position = text.encoded.places[swap["position"]][0]
        expect(words[0] == swap["from"], f"swaps {swap['from']!r}, where the text has {words[0]!r}", "line")
        expect(swap["to"] in words[1:], f"swaps in {swap['to']!r}, which is no synonym there", "line")
        yield [position, text.frozen.space.choices[position][words.index(swap["to"])]]


def described(line: Mapping[str, Any], text: Text) -> None:
    """Raises Refused when a line is about another text than the run's."""
    expect(line["text"] == text.encoded.text and line["label"] == text.label, "has another text or label", "line")
    expect(line["positions"] == len(text.encoded.words), "has another number of words", "line")
    expect(line["cut"] == text.encoded.cut, "has another number of words that the model does not read", "line")
    expect(line["unknown"] == len(text.encoded.unknown), "has another number of unknown words", "line")
    expect(line["candidates"] == text.frozen.space.candidates, "has another number of single swaps", "line")


def spelt(witness: Mapping[str, Any], text: Text, levels: Sequence[str]) -> None:
    """What a reader sees of a witness, the sentence and its levels of truth, is what its swaps and certificate say."""
    for swap in witness["swaps"]:
        span = list(text.encoded.spans[swap["position"]])
        expect(swap["characters"] == span, f"places the word {swap['from']!r} elsewhere than the text does", "line")
    sentence = "".join(piece.after for piece in pieces(text.encoded.text, witness["swaps"]))
    expect(witness["sentence"] == sentence, "spells another sentence than its swaps make", "line")
    expect(witness["levels"] == list(levels), "has other levels for its witness than the certificate", "line")


def expect(fact: bool, otherwise: str, who: str = "certificate") -> None:
    if not fact:
        raise Refused(f"the {who} {otherwise}")
