"""`measure --quantity kappa`: which words of the vocabulary, put anywhere, flip how many texts; and rho."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.network import Network
from swapproof.encodings.reading import Model, network_of, open_model
from swapproof.models.vocabulary import UNKNOWN, Vocabulary

from .certifying import Outcome, require
from .inputs import Inputs, read_inputs
from .progress import progress as shown_progress
from .replay import Replay
from .run import Run, held, refuse_foreign, sha256, write_atomically
from .store import Store, writing
from .task import Task, read_task
from .trial import length_of, tried
from .words.answered import Answered, answered_deployed, answered_over_reals
from .words.brute_force import Cost, cost_of, flips_by_force
from .words.euba import VARIANTS, Euba, Variant
from .words.findings import LISTED, csv_of, draw, summary_of, write_parquet
from .words.flips import Search, Subject
from .words.kappa import kappa_of
from .words.single_words import Candidates, ids_of, words_of_several_tokens

NAME = "measure"
NETWORKS = 4
MASKS = ("<mask>", "[MASK]")
HOLDS, INCOMPLETE = 0, 3


@dataclass(frozen=True, eq=False)
class Found:
    """A over D+, the pairs of which nothing is known, and how it was found."""

    flipped: NDArray[np.bool_]
    unknown: NDArray[np.bool_] | None
    about: dict[str, Any]


def measure_kappa(
    task: str | Path,
    out: str | Path,
    limit: int | None = None,
    *,
    brute_force: bool = False,
    seconds: float | None = None,
    euba: int | None = None,
    variant: Variant = "paper",
    progress: bool = False,
) -> Outcome:
    """kappa of every word and rho, over the reals and exactly, for every network we can read.

    `brute_force`: by onnxruntime instead, for any model; a text that takes longer than `seconds` leaves an interval.
    `euba`: also what EUBA finds that stops after so many failures, in this variant.
    """
    require(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    require(seconds is None or (seconds > 0 and math.isfinite(seconds)), f"seconds = {seconds}: a time above 0")
    require(euba is None or euba >= 1, f"euba = {euba}: at least 1 failure")
    require(euba is None or not brute_force, "EUBA needs gradients of a network that can be read: no --brute-force")
    require(variant in VARIANTS, f"--euba-variant {variant!r}: can be {', '.join(VARIANTS)}")
    run = Run(Path(out))
    refuse_foreign(run.folder)
    given = read_task(task)
    model = open_model(given.model.onnx)
    inputs = read_inputs(given, length_of(given, model), limit)
    candidates = Candidates.of(inputs.vocabulary)
    if not candidates.words:
        raise BadInput(f"{inputs.vocabulary.source}: no word consists of letters and is one token: nothing to try")
    replay = Replay.open(model)
    obstacle = None if brute_force else why_unreadable(model, given, inputs)
    if obstacle is not None:
        cost = cost_of(replay, candidates.tokens, correct(answered_deployed(replay, inputs.texts), given).subjects)
        raise Unsupported(f"{obstacle}; --brute-force would evaluate {cost.sentence}")
    network = lru_cache(maxsize=NETWORKS)(lambda length: network_of(model, length))
    exact = not brute_force
    answered = correct(
        answered_over_reals(network, replay, inputs.texts) if exact else answered_deployed(replay, inputs.texts), given
    )
    cost = cost_of(replay, candidates.tokens, answered.subjects)
    if progress and not exact:
        print(f"brute force: {cost.sentence}", file=sys.stderr, flush=True)
    started, cpu = time.perf_counter(), time.process_time()
    if exact:
        found = exactly(network, candidates, answered, shown=progress)
    else:
        found = by_force(replay, candidates, answered, seconds, shown=progress)
    spent, cpu = time.perf_counter() - started, time.process_time() - cpu
    kappa = kappa_of(candidates.words, found.flipped, found.unknown)
    if euba is not None:
        found.about["euba"] = by_euba(network, candidates, answered, inputs, given, found, euba, variant, progress)
    labels = np.array([text.label for text in answered.texts])
    complete = found.unknown is None or not found.unknown.any()
    about = {
        "already_wrong": answered.already_wrong,
        "ambiguous": answered.ambiguous,
        **found.about,
        "speed": speed_of(cost, cpu),
        "vocabulary": vocabulary_facts(candidates, inputs),
        "seconds": round(spent, 3),
        "verdict": {
            "exit_code": HOLDS if complete else INCOMPLETE,
            "sentence": "every pair of text and word was decided" if complete else "time was up in some texts",
        },
    }
    summary = summary_of(kappa, found.flipped, labels, inputs.labels, len(inputs.texts), about)
    with writing(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    with held(run):
        prepare(run, given, model, inputs)
        write_atomically(run.results, lines_of(answered, found, kappa.words))
        write_atomically(run.folder / "kappa.csv", csv_of(kappa))
        write_parquet(kappa, run.folder / "kappa.parquet")
        draw(kappa, run.folder / "kappa.png")
        write_atomically(run.summary, (json.dumps(summary, indent=2, ensure_ascii=False) + "\n").encode())
    return Outcome(run.folder, summary, summary["verdict"]["exit_code"])


def why_unreadable(model: Model, task: Task, inputs: Inputs) -> str | None:
    """None for a network that can be read and answers as onnxruntime does."""
    try:
        tried(model, length_of(task, model), inputs)
    except Unsupported as error:
        return str(error)
    return None


def correct(answered: Answered, task: Task) -> Answered:
    if not answered.texts:
        unsure = f" whatever the rounding, which decides {answered.ambiguous} of them" if answered.ambiguous else ""
        raise BadInput(f"{task.data.file}: the model answers no text correctly{unsure}, so kappa is not defined")
    return answered


def exactly(network: Callable[[int], Network], candidates: Candidates, answered: Answered, *, shown: bool) -> Found:
    """Texts of one class and one length at a time."""
    subjects = answered.subjects
    groups: dict[tuple[int, int], list[int]] = {}
    for number, subject in enumerate(subjects):
        groups.setdefault((len(subject.tokens), subject.label), []).append(number)
    flipped = np.zeros((len(subjects), len(candidates.words)), dtype=bool)
    unsure, counts = 0, dict.fromkeys(("sentences", "bounded", "evaluated", "exactly"), 0)
    total = sum(len(subject.positions) for subject in subjects)
    with shown_progress("kappa", total, shown=shown) as advance:
        for (length, label), numbers in groups.items():
            group: Sequence[Subject] = [subjects[number] for number in numbers]
            found = Search(network(length), candidates.tokens, group, label, advance).run()
            flipped[numbers] = found.flipped
            unsure += len(found.unsure)
            for name in counts:
                counts[name] += getattr(found, name)
    about = {
        "kind": "exact",
        "level": "real",
        "pairs_that_rounding_may_decide": unsure,
        "work": {
            "sentences": counts["sentences"],
            "boxes_of_words_bounded": counts["bounded"],
            "sentences_evaluated": counts["evaluated"],
            "sentences_decided_by_exact_arithmetic": counts["exactly"],
        },
    }
    return Found(flipped, None, about)


def by_euba(
    network: Callable[[int], Network],
    candidates: Candidates,
    answered: Answered,
    inputs: Inputs,
    task: Task,
    exact: Found,
    m: int,
    variant: Variant,
    shown: bool,
) -> dict[str, Any]:
    """rho as EUBA estimates it, beside the exact one. Texts are visited in their order, as the method asks."""
    name, mask = mask_of(inputs.vocabulary, task)
    searches: dict[int, Euba] = {}
    flipped, started = [], time.process_time()
    with shown_progress("EUBA", len(answered.texts), shown=shown) as advance:
        for subject in answered.subjects:
            length = len(subject.tokens)
            if length not in searches:
                successes = next(iter(searches.values())).successes if searches else {}
                searches[length] = Euba(network(length), candidates.tokens, mask, m, variant, successes=successes)
            flipped.append(searches[length].flips(subject))
            advance(1)
    found = np.array(flipped)
    upper, rho = (1 - Fraction(int(a.sum()), a.size) for a in (found, exact.flipped))
    return {
        "m": m,
        "variant": variant,
        "mask": name,
        "rho": float(upper),
        "gap": float(upper - rho),
        "flips_found": int(found.sum()),
        "flips": int(exact.flipped.sum()),
        "flips_that_are_none": int((found & ~exact.flipped).sum()),
        "queries": sum(one.queries for one in searches.values()),
        "cpu_seconds": round(time.process_time() - started, 3),
    }


def mask_of(vocabulary: Vocabulary, task: Task) -> tuple[str, int]:
    """The mask token of the vocabulary, else its unknown token."""
    ids = ids_of(vocabulary)
    for name in (*MASKS, task.model.unknown, UNKNOWN):
        if name is not None and name in ids:
            return name, ids[name]
    raise BadInput(f"{vocabulary.source}: has neither a mask nor an unknown token, one of which EUBA needs")


def by_force(
    replay: Replay, candidates: Candidates, answered: Answered, seconds: float | None, *, shown: bool
) -> Found:
    flipped, unknown = [], []
    with shown_progress("kappa", len(answered.texts), shown=shown) as advance:
        for subject in answered.subjects:
            deadline = float("inf") if seconds is None else time.monotonic() + seconds
            some, rest = flips_by_force(replay, candidates.tokens, subject, deadline)
            flipped.append(some)
            unknown.append(rest)
            advance(1)
    return Found(np.array(flipped), np.array(unknown), {"kind": "brute force", "level": "replay"})


def speed_of(cost: Cost, spent: float) -> dict[str, Any]:
    """Beside evaluating every sentence by onnxruntime, which was measured on a sample and extrapolated."""
    return {
        "sentences": cost.sentences,
        "cpu_seconds": round(spent, 3),
        "onnxruntime_cpu_seconds_extrapolated": round(cost.seconds, 1),
        "onnxruntime_sample": cost.tried,
        "onnxruntime_sample_cpu_seconds": round(cost.tried_seconds, 4),
        "ratio": round(cost.seconds / spent, 1) if spent else None,
    }


def vocabulary_facts(candidates: Candidates, inputs: Inputs) -> dict[str, Any]:
    return {
        "tried": len(candidates.words),
        "left_out_for_several_tokens": len(candidates.several),
        "listed": list(candidates.several[:LISTED]),
        "words_of_texts_left_out_for_several_tokens": words_of_several_tokens(inputs.texts),
    }


def prepare(run: Run, task: Task, model: Model, inputs: Inputs) -> None:
    """A run folder with the hashes of what was measured."""
    facts = {
        NAME: json.dumps({"quantity": "kappa"}),
        "state": "ready",
        "task": task.digest,
        "model": sha256(model.path),
        "vocabulary": inputs.vocabulary_sha256,
        "texts": inputs.digest,
    }
    if run.store.exists():
        with Store.open(run.store, readonly=True) as store:
            before = store.facts()
        if before.get(NAME) != facts[NAME]:
            raise BadInput(f"{run.folder}: the run there is another one; give --out a new folder")
        run.store.unlink()
    Store.create(run.store, facts)
    write_atomically(run.task, task.resolved([f"{name} {value}" for name, value in facts.items()]).encode())


def lines_of(answered: Answered, found: Found, words: Sequence[str]) -> list[bytes]:
    lines = []
    for number, text in enumerate(answered.texts):
        line: Mapping[str, Any] = {
            "id": text.id,
            "text": text.encoded.text,
            "label": text.label,
            "positions": len(text.encoded.words),
            "words_that_flip_it": int(found.flipped[number].sum()),
            "words_not_known": 0 if found.unknown is None else int(found.unknown[number].sum()),
            "words": len(words),
        }
        lines.append((json.dumps(line, ensure_ascii=False) + "\n").encode())
    return lines


def print_kappa(summary: Mapping[str, Any]) -> None:
    """rho, the most dangerous words, and how it was found."""
    from rich.table import Table

    from .report import terminal

    console = terminal()
    rho, speed, far = summary["rho"], summary["speed"], summary["rho_of_the_distribution"]
    shown = f"{rho['low']:.6f}" if rho["low"] == rho["high"] else f"[{rho['low']:.6f}, {rho['high']:.6f}]"
    console.print(f"rho = {shown} over {summary['answered_correctly']:,} texts and {summary['words']:,} words")
    console.print(
        f"{summary['already_wrong']:,} texts already wrong, {summary['ambiguous']:,} that rounding decides: left out. "
        f"At confidence {far['confidence']:g} rho of the texts' distribution lies in {far['empirical_bernstein']} "
        f"(empirical Bernstein), {far['hoeffding']} (Hoeffding)"
    )
    if speed["ratio"] is not None and summary["kind"] == "exact":
        console.print(
            f"{speed['sentences']:,} sentences in {speed['cpu_seconds']:.2f} CPU s; evaluated in batches by "
            f"onnxruntime they would take {speed['onnxruntime_cpu_seconds_extrapolated']:,.0f} (extrapolated from "
            f"{speed['onnxruntime_sample']:,}): {speed['ratio']:.0f} times as long"
        )
    if "euba" in summary:
        euba = summary["euba"]
        console.print(
            f"EUBA ({euba['variant']}, m = {euba['m']}, mask {euba['mask']}) says rho <= {euba['rho']:.6f}, "
            f"{euba['gap']:.6f} above the exact value, after {euba['queries']:,} queries and "
            f"{euba['cpu_seconds']:.1f} CPU s"
        )
    table = Table(title="Words of greatest kappa", title_justify="left")
    for name in ("word", "kappa", "part of speech", "accuracy against it"):
        table.add_column(name, justify="left" if name == "word" else "right")
    for one in summary["highest_kappa"]:
        after = f"{one['accuracy_against_it']:.4f}"
        table.add_row(one["word"], f"{one['low']:.4f}", one["part_of_speech"] or "", after)
    console.print(table)
    console.print(f"{summary['definition']}. {'. '.join(summary['deviations_from_the_paper'])}.", style="dim")
