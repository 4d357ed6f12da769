"""A deployed model that adds up what its words say, read as a network of words: sums of rows, then layers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import Disagreement, Unsupported
from swapproof.models.deployed.classifier import Classifier
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.kinds import word_reader
from swapproof.models.errors import visible
from swapproof.models.plain_words import PlainWords
from swapproof.models.vocabulary import read_vocabulary
from swapproof.models.word_network import ReadTexts, Unreadable, WordNetwork

from ..runs.run_folder import sha256
from ..tasks.deployed_model import Trust, open_deployed
from ..tasks.inputs import Inputs, Text, read_plain
from ..tasks.task import Task
from .deployed_beside import Made

PAD, UNDECIDED = "<pad>", "undecided"
SENTENCES = 8
"""Of each text compared: itself, and others at random."""
AT_ONCE = 4096
CLOSE = 1e-9
"""Of the largest score: margins that the float64 arithmetic of two programs may see with different signs."""


def read_words(task: Task, limit: int | None, trust: Trust, place: Path) -> tuple[Task, Inputs, Made]:
    """The network of a task's model and texts, written to a folder. Raises Unsupported where there is none."""
    read = word_reader(task.model.kind)
    if read is None or not task.model.plain:
        raise Unsupported(f"{task.model.kind}: no network is made of it with these keys")
    inputs, classifier = read_plain(task, limit), open_deployed(task, trust)
    plain = inputs.vocabulary
    if not isinstance(plain, PlainWords):
        raise TypeError("texts as words were asked for")
    spellings = plain.spellings
    found = read(classifier, spellings, [text.swaps for text in inputs.texts])
    if isinstance(found, Unreadable):
        raise Unsupported(found.reason)
    misfits = {text.id: reason for text, reason in zip(inputs.texts, found.misfits, strict=True) if reason is not None}
    if len(misfits) == len(inputs.texts):
        raise Unsupported(f"text 0: {misfits[0]}")
    fitting = [text for text in inputs.texts if text.id not in misfits]
    compared = compare(found.network, classifier, task.model.decision, fitting)
    path, words = place / "model.onnx", place / "vocabulary.json"
    found.network.to_onnx(path)
    words.write_text(json.dumps([*spellings, *([] if PAD in spellings else [PAD])]))
    labels = (*task.model.labels, *([UNDECIDED] if found.undecided else []))
    model = task.model.model_copy(
        update={
            task.model.kind: None,
            "onnx": path,
            "vocabulary": words,
            "split": plain.split,
            "output": None,
            "labels": labels,
            "label_map": None,
        }
    )
    vocabulary = read_vocabulary(words, split=plain.split)
    inputs = replace(inputs, vocabulary=vocabulary, vocabulary_sha256=sha256(words), labels=labels)
    made = Made(task, classifier.identity, tuple(said(classifier, found, misfits, compared)), trust, misfits)
    return task.model_copy(update={"model": model}), inputs, made


def said(classifier: Classifier, found: ReadTexts, misfits: Mapping[int, str], compared: int) -> Iterator[str]:
    """For the report."""
    number = len(found.network.layers)
    layers = "no layer" if not number else "1 layer" if number == 1 else f"{number} layers"
    yield (
        f"a network was made of {classifier.identity.name}: rows of its words added up, {layers} after them; proofs "
        f"speak of it, witnesses fool both, and on {compared:,} sentences it answers like the model"
    )
    if found.undecided:
        yield f"the network answers {UNDECIDED!r} where its enclosure of a norm leaves the model's answer open"
    if misfits:
        first, reason = next(iter(misfits.items()))
        yield f"{len(misfits)} texts are run, not read: the network does not hold for them (text {first}: {reason})"
    yield from found.network.remarks


def compare(network: WordNetwork, classifier: Classifier, decision: Decision, texts: Sequence[Text]) -> int:
    """How many sentences were compared, each text among them. Raises Disagreement where the two answer differently."""
    source, compared = np.random.default_rng(0), 0
    waiting: list[tuple[Text, Any]] = []
    for text in texts:
        sizes = np.array([len(options) for options in text.frozen.words])
        rows = (source.random((SENTENCES, len(sizes))) * sizes).astype(np.int32)
        rows[0] = 0
        waiting += [(text, row) for row in rows]
        if len(waiting) >= AT_ONCE:
            compared, waiting = compared + agreed(network, classifier, decision, waiting), []
    return compared + agreed(network, classifier, decision, waiting)


def agreed(network: WordNetwork, classifier: Classifier, decision: Decision, some: list[tuple[Text, Any]]) -> int:
    if not some:
        return 0
    ids = np.full((len(some), max(len(row) for _, row in some)), network.padding, dtype=np.int64)
    for place, (text, row) in enumerate(some):
        choices = text.frozen.space.choices
        ids[place, : len(row)] = [choices[word][option] for word, option in enumerate(row.tolist())]
    sentences = [text.swaps.sentence(row) for text, row in some]
    scores = network.scores(ids)
    answers, deployed = scores.argmax(axis=1), decision.answers(classifier.scores(sentences))
    top = np.sort(scores, axis=1)
    sure = top[:, -1] - top[:, -2] > CLOSE * np.abs(scores).max(axis=1)
    apart = np.flatnonzero((answers != deployed) & sure & (answers < decision.classes))
    if len(apart):
        first = apart[0]
        raise Disagreement(
            f"{classifier.identity.name} answers {deployed[first]} to {visible(sentences[first][0])[:80]!r}, and the "
            f"network made of it {answers[first]}"
        )
    return len(some)
