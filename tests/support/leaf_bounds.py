"""What check.py and the screening find of one leaf of a smooth proof: margins from below, to be compared."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.query import Query
from swapproof.encodings.regions.arithmetic import Ends, KernelEnds
from swapproof.encodings.regions.assignments import Choices
from swapproof.encodings.regions.box_runs import Remembered
from swapproof.encodings.regions.box_runs import Segment as Stretch
from swapproof.encodings.regions.boxes import boxed, segments_of
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.regions.region import Question
from swapproof.encodings.sequences.sentence_margins import margins_of
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.smooth_leaves import Boxes, Segment
from swapproof.proofs.writing import certificate
from swapproof.verifier.screening import Screen
from swapproof.verifier.screening.form.statement import well_formed_words
from swapproof.verifier.screening.form.unsure import Unsure
from swapproof.verifier.screening.smooth_proofs import Screened

Parts = Sequence[tuple[int, int, int]]
"""Segments: first layer, number of layers, word."""


@dataclass(frozen=True)
class Asked:
    """One text, seen by the screening and by check.py."""

    query: Query
    question: Question
    space: check.Space
    rivals: tuple[int, ...]

    def own_segments(self) -> Parts:
        return [(part.first, part.end - part.first, part.word) for part in segments_of(self.question)]

    def choices(self, options: Sequence[Sequence[int]], swaps: int) -> Choices:
        return Choices(tuple(tuple(own) for own in options), swaps)

    def ends(self, bits: int, kernel: bool) -> Ends:
        return (KernelEnds if kernel else Ends)(2.0**-bits)

    # ---- boxes

    def screened_boxes(self, choices: Choices, bits: int, kernel: bool, parts: Parts) -> bool:
        screened = Screened(self.query, self.question, "kernel" if kernel else "real", time.monotonic() + 60)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                named = [certificate.Segment(*part) for part in parts]
                screened.box(named, choices, bits, frozenset(self.rivals))
        except Unsure:
            return False
        return True

    def bounded(self, choices: Choices, bits: int, kernel: bool, parts: Parts) -> Any:
        """[rivals], by the screening."""
        stretches = tuple(Stretch(first, first + layers, word) for first, layers, word in parts)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                found = boxed(choices, Remembered(self.question, stretches, self.ends(bits, kernel)))
            except KeyError:
                return np.full(len(self.rivals), np.nan)
        return found.margins[choices.swaps]

    def checked_boxes(self, choices: Choices, bits: int, kernel: bool, parts: Parts) -> list[Fraction] | None:
        """[rivals], by check.py; None where it refuses."""
        masks = [sum(1 << option for option in own) for own in choices.options]
        try:
            boxes = Boxes(self.space.ruled(bits, kernel), masks, choices.swaps, [Segment(*part) for part in parts])
            return [exact_margin(boxes.intervals, boxes.stores[-1], self.space.label, r) for r in self.rivals]
        except check.Refused:
            return None

    # ---- sentences

    def screened_sentences(self, choices: Choices, bits: int, kernel: bool) -> dict[tuple[int, ...], Any]:
        """Options -> [rivals]"""
        with np.errstate(over="ignore", invalid="ignore"):
            rows, found = margins_of(self.question, choices, self.ends(bits, kernel))
        every = {}
        for row, ends in zip(rows.rows, found, strict=True):
            options = [0] * len(choices.options)
            for swap in row[row >= 0]:
                options[int(choices.word_of[swap])] = int(choices.option_of[swap])
            every[tuple(options)] = ends[0]
        return every

    def checked_sentence(self, options: Sequence[int], bits: int, kernel: bool) -> list[Fraction] | None:
        try:
            enumeration = self.space.enumeration(bits, kernel)
            enumeration.fill(options)
            intervals, store = enumeration.intervals, enumeration.store
            return [exact_margin(intervals, store, self.space.label, rival) for rival in self.rivals]
        except check.Refused:
            return None


def exact_margin(intervals: Any, store: Any, winner: int, loser: int) -> Fraction:
    """What must exceed 0 (FORMAT.md, sections 15.2 and 15.3)."""
    margin = intervals.margin(winner, loser)
    lows, highs = [margin.pick(column) for column in store.columns[:2]]
    total = 2 * margin.constant << intervals.q
    for factor, low, high in zip(margin.coefficients, lows, highs, strict=True):
        total += 2 * factor * (low if factor > 0 else high)
    error = 0
    if intervals.kernel:
        error = sum(store.columns[4][intervals.network.logits[each]] for each in (winner, loser)) + 1
    return Fraction(total - 2 * margin.scale * error, 2 * margin.scale << intervals.q)


def asked(data: bytes, folder: Path, text: Sequence[int], words: Sequence[Any], label: int, classes: int) -> Asked:
    path = folder / "model.onnx"
    path.write_bytes(data)
    model, inputs = read_model(data), [["words", list(text)]]
    lowered = model.lower(inputs, list(words))
    network = check.Network(lowered.data, lowered.numbers, lowered.no_float32)
    rivals = tuple(each for each in range(classes) if each != label)
    screen = Screen(open_model(path), model, None)
    query = screen.text((well_formed_words(inputs, list(words)), label, rivals)).query
    return Asked(query, question_of(query), check.Space(network, list(words), label, list(text)), rivals)
