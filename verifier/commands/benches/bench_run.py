"""`bench run`: sentences of a model that is run: estimated, as `certify` asks about them, and in a bare loop."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.classifier import Classifier
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.onnx_classifier import OnnxClassifier, OnnxVariants
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.deployed.tokenising.token_rows import TokenRows

from ...bench.run_figures import RunFigures, Spent
from ...bench.surroundings import surroundings
from ...pages.progress import progress
from ...replaying.asking import Asking
from ...replaying.estimate import estimated
from ...replaying.sentence_order import SentenceOrder
from ...replaying.simple_prover import FIRST, next_block
from ...runs.overwriting import json_with, refuse_to_replace
from ...runs.store import unwritable
from ...tasks.deployed_model import Trust, open_deployed
from ...tasks.inputs import Text, read_plain
from ...tasks.task import read_task

AT_ONCE = 2_000
"""Sentences that are timed together, or those of one text."""
BATCHES = (4, 8, 16, 32, 64, 128, 256)
"""Sentences that the bare loop gives at once; the best of these counts."""


def bench_run(
    task_path: str | Path,
    limit: int | None = None,
    radius: int = 1,
    *,
    trust: Trust | None = None,
    threads: int = 1,
    shown: bool = False,
    json_file: Path | None = None,
) -> RunFigures:
    """Every sentence with 1 to `radius` swaps of the first `limit` texts, answered rightly or not, broken or not.

    Both take turns, a few texts each. Of the run road all counts: the order of the sentences, tokens, batches, answers.
    Of the bare loop only onnxruntime: the same sentences as arrays, sorted by length, that were made beforehand.
    """
    if radius < 1 or threads < 1:
        raise BadInput(f"radius = {radius}, threads = {threads}: at least 1")
    if json_file is not None:
        refuse_to_replace(json_file, json_with("command", "sentences", "run"), "--json")
    task = read_task(task_path)
    classifier = open_deployed(task, trust or Trust(), threads)
    texts = [text for text in read_plain(task, limit).texts if text.swaps.swappable]
    about = surroundings(task_path, 0.0, ())
    guess = estimated(classifier, [text.swaps for text in texts])
    if guess is None:
        raise BadInput(f"{task_path}: nothing can be swapped in these texts, or the model answers none")
    run, bare, sentences = Spent(), dict[int, Spent](), 0
    decision = task.model.decision
    with progress("bench", len(texts), shown=shown) as advance:
        for number, (some, size) in enumerate(together(texts, radius)):
            if number % 2:
                barely(classifier, some, radius, bare)
            as_certified(classifier, decision, some, radius, run)
            if not number % 2:
                barely(classifier, some, radius, bare)
            sentences += size
            advance(len(some))
    name, beforehand = classifier.identity.name, sum(guess.seconds[:radius])
    found = RunFigures(name, len(texts), radius, sentences, beforehand, run, bare, about | {"threads": threads})
    if json_file is not None:
        write_figures(json_file, found)
    return found


def together(texts: Sequence[Text], radius: int) -> Iterator[tuple[list[Text], int]]:
    """Texts that are timed together, for asking the clock takes time too; and the number of their sentences."""
    some, size = list[Text](), 0
    for text in texts:
        order = SentenceOrder.of_text(text.swaps.options)
        some, size = [*some, text], size + sum(order.counts[1 : radius + 1])
        if size >= AT_ONCE:
            yield some, size
            some, size = [], 0
    if some:
        yield some, size


def as_certified(classifier: Classifier, decision: Decision, texts: Sequence[Text], radius: int, run: Spent) -> None:
    """As the simple prover asks, but on after a witness."""
    with run.more():
        for text in texts:
            asking = Asking(classifier, decision, text.swaps, text.label)
            order = SentenceOrder.of_text(text.swaps.options)
            block = FIRST
            for swaps in range(1, min(radius, len(order.counts) - 1) + 1):
                done, margins = 0, []
                while done < order.counts[swaps]:
                    started = time.monotonic()
                    stop = min(order.counts[swaps], done + block)
                    margins.append(asking.judged(order.rows(swaps, range(done, stop)))[1])
                    done, block = stop, next_block(block, time.monotonic() - started)
                if swaps == 1:
                    order = order.by_danger(np.concatenate(margins))


def barely(classifier: Classifier, texts: Sequence[Text], radius: int, bare: dict[int, Spent]) -> None:
    """onnxruntime alone, batch by batch, of a model that is an ONNX file and reads tokens."""
    if not isinstance(classifier, OnnxClassifier) or classifier.tokeniser is None:
        return
    read = [streams_of(classifier, text.swaps, radius) for text in texts]
    for batch in batches_of(classifier):
        feeds = [feed for streams in read for feed in feeds_of(classifier, streams, batch)]
        with bare.setdefault(batch, Spent()).more():
            for feed in feeds:
                classifier.session.run([classifier.signature.output], feed)


def streams_of(classifier: OnnxClassifier, text: SwapText, radius: int) -> list[TokenRows]:
    """The tokens of every sentence, for each of the model's inputs of tokens."""
    order, variants = SentenceOrder.of_text(text.options), classifier.variants(text)
    if not isinstance(variants, OnnxVariants):
        raise TypeError("an ONNX model that reads tokens has them")
    most = min(radius, len(order.counts) - 1)
    rows = [order.rows(swaps, range(order.counts[swaps])) for swaps in range(1, most + 1)]
    return variants.tokens(np.concatenate(rows))


def feeds_of(classifier: OnnxClassifier, streams: Sequence[TokenRows], batch: int) -> Iterator[dict[str, Any]]:
    """Sorted by length, only those of one width together."""
    widths = np.stack([classifier.padding.alone(one.sizes) for one in streams], axis=1)
    order = np.lexsort(widths.T)
    changes = np.flatnonzero((np.diff(widths[order], axis=0) != 0).any(axis=1)) + 1
    for group in np.split(order, changes):
        for start in range(0, len(group), batch):
            part = group[start : start + batch]
            yield classifier.feed(streams, part, widths[part[0]].tolist())


def batches_of(classifier: OnnxClassifier) -> Sequence[int]:
    """Of the sizes that change no answer; a model of fixed batches is left out unless they are of one sentence."""
    if classifier.batching.fixed not in (None, 1):
        return ()
    return (1,) if classifier.batching.alone or classifier.batching.fixed == 1 else BATCHES


def line_of(found: RunFigures) -> dict[str, Any]:
    line = {**found.surroundings, **{name: value for name, value in asdict(found).items() if name != "surroundings"}}
    line |= {"best_batch": found.best, "overhead": found.overhead, "load_after": load()}
    return line


def write_figures(path: Path, found: RunFigures) -> None:
    try:
        path.write_text(json.dumps(line_of(found)) + "\n", encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error) from error


def load() -> float | None:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def print_figures(found: RunFigures) -> None:
    from rich.table import Table

    from ...pages.tables import print_table
    from ...pages.terminal import terminal

    title = f"{found.model}: {found.sentences:,} sentences of {found.texts} texts, with up to {found.radius} swaps"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in ("seconds", "CPU seconds", "ms a sentence", "CPU ratio"):
        table.add_column(name, justify="right")
    table.add_row("said beforehand", f"{found.estimated:.1f}", "", "", "")
    least = None if found.best is None else found.bare[found.best].cpu
    spent = {"as certify asks": found.run, **{f"bare loop, {size} at once": one for size, one in found.bare.items()}}
    for name, one in spent.items():
        each = 1000 * one.cpu / max(1, found.sentences)
        share = "" if least is None else f"{one.cpu / max(1e-9, least):.3f}"
        table.add_row(name, f"{one.wall:.1f}", f"{one.cpu:.1f}", f"{each:.3f}", share)
    console = terminal()
    print_table(console, table)
    if found.overhead is not None:
        console.print(f"Overhead over the bare loop with its best batches: {100 * found.overhead:+.1f} % of CPU time.")
    console.print(
        f"The time said beforehand is {found.estimated / max(1e-9, found.run.wall):.2f} times the time taken."
    )
