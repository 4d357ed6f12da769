"""Static embeddings with a small head as classifiers: model2vec folders and fastText's binary files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Unsupported
from ..readers import refuse_other_order
from .classifier import Classifier, Deployment, Identity, NoAnswer, Rows, Scores, SpeltOut, Variants
from .opening.file_facts import copy_of
from .static_models.hashed_lines import HashedLines
from .static_models.static_heads import LabelLoss, PooledLayers
from .static_models.supervised_binary import Matrix, read_supervised
from .static_models.text_units import Unit, numbers_of, units_of
from .static_models.token_folder import read_folder
from .swapped_text import Fields, SwapText

Floats = NDArray[np.float64]
COPIED = "static"
"""The folder of a run in which copies of model2vec folders lie."""
AT_ONCE = 1 << 22
"""Numbers that are gathered before they are summed."""
CHECKED = 4
"""Sentences of a text that are read whole, to see that they are what their stretches give."""


class Lines(Protocol):
    """How sentences become ids of rows."""

    @property
    def separators(self) -> str:
        """What stands between two of them is read by itself."""

    @property
    def interplay(self) -> str | None: ...

    @property
    def closing(self) -> list[int]: ...

    @property
    def longest_tokens(self) -> int | None: ...

    @property
    def longest_text(self) -> int | None: ...

    def ids(self, sentences: Sequence[str]) -> list[list[int]]: ...

    def units(self, spellings: Sequence[str]) -> list[list[int]]: ...

    def keep(self, ids: list[int]) -> list[int]: ...

    def joins(self, sentence: str) -> str | None: ...


def open_static(deployment: Deployment) -> Classifier:
    if deployment.fields != 1:
        raise Unsupported("static embeddings read one text, and the data has pairs: leave out [data] context")
    path = Path(deployment.source)
    if path.is_dir() or path.suffix in (".bin", ".ftz"):
        classifier = open_folder(path) if path.is_dir() else open_binary(path)
        own = json.loads(str(classifier.identity.facts.get("labels", "[]")))
        refuse_other_order(path, own, deployment.labels, deployment.label_map)
        return classifier
    if not path.exists():
        raise BadInput(f"{path}: no such file")
    raise Unsupported(f"{path}: static is a model2vec folder, or a .bin or .ftz file of fastText")


def open_folder(path: Path) -> Classifier:
    found = read_folder(path)
    facts: dict[str, str | int] = {
        "format": "model2vec",
        "scores": found.head.answers,
        "parameters": int(
            found.vectors.vectors.size + sum(part.weight.size + part.bias.size for part in found.head.layers)
        ),
        **labelled(found.labels),
    }
    copied = f"{COPIED}/{path.name}"  # by its own name, which the copy is called by too
    files = tuple(copy_of(f"{copied}/{name}", path / name) for name in found.files)
    identity = Identity("static", path.name, files, facts, found.remarks, {"static": copied}, found.head.answered)
    return StaticClassifier(identity, found.lines, found.vectors, found.head)


def open_binary(path: Path) -> Classifier:
    model = read_supervised(path)
    rows, width = model.vectors.shape
    facts: dict[str, str | int] = {
        "format": "fastText",
        "loss": model.loss,
        "scores": "probabilities",
        "parameters": (rows + len(model.labels)) * width,
        **labelled(model.labels),
    }
    remarks = (
        "scores are computed in double precision and rounded; fastText's own differ by its single-precision rounding",
        "of equal labels fastText answers the later one: its score is raised by the last bit",
    )
    files = (copy_of(path.name, path),)
    head = LabelLoss(model.loss, model.outputs, model.label_counts)
    identity = Identity("static", path.name, files, facts, remarks, answered=head.answered)
    return StaticClassifier(identity, HashedLines(model), model.vectors, head)


def labelled(labels: tuple[str, ...] | None) -> dict[str, str]:
    """For whoever writes a task file: the classes in the order of the scores, as a JSON list."""
    return {} if labels is None else {"labels": json.dumps(list(labels), ensure_ascii=False)}


@dataclass(frozen=True, eq=False)
class StaticClassifier:
    """The scores of a sentence depend on the sum of the rows of its ids, and on their number."""

    identity: Identity
    lines: Lines
    vectors: Matrix
    head: PooledLayers | LabelLoss

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        if any(len(fields) != 1 for fields in sentences):
            raise BadInput("static embeddings read one text, not pairs")
        ids = self.lines.ids([text for (text,) in sentences])
        return self.head.scores(self.sums(ids), lengths(ids))

    def sums(self, ids: Sequence[list[int]]) -> Floats:
        """Of the rows of each list, a bounded number of rows at a time."""
        width = self.vectors.shape[1]
        found = np.zeros((len(ids), width))
        most = max(AT_ONCE // width, 1)
        start = 0
        while start < len(ids):
            end, rows = start, 0
            while end < len(ids) and (end == start or rows + len(ids[end]) <= most):
                rows += len(ids[end])
                end += 1
            filled = [place for place in range(start, end) if ids[place]]
            if filled:
                together = np.array([one for place in filled for one in ids[place]], dtype=np.int64)
                firsts = np.cumsum([0, *(len(ids[place]) for place in filled[:-1])])
                found[filled] = np.add.reduceat(self.vectors.rows(together), firsts, axis=0)
            start = end
        return found

    def variants(self, text: SwapText) -> Variants:
        """Sums of what stretches of the text contribute, where they are read apart; see `apart` for where not."""
        found = self.apart(text)
        return SpeltOut(self, text) if isinstance(found, str) else self.summed(found)

    def apart(self, text: SwapText) -> Apart | str:
        """The stretches of a text that are read apart, and the ids of all their spellings; or why each of its sentences
        has to be read whole."""
        if len(text.fields) != 1:
            return "a pair of texts"
        if self.lines.interplay is not None:
            return self.lines.interplay
        units = units_of(text, self.lines.separators)
        if isinstance(units, str):
            return units
        spellings = [spelling for unit in units for spelling in unit.spellings]
        for spelling in spellings:
            if (joined := self.lines.joins(spelling)) is not None:
                return joined
        try:
            raw = self.lines.units(spellings)
        except NoAnswer as error:
            return str(error)
        starts = np.cumsum([0, *(len(unit.spellings) for unit in units)])
        whole = [raw[start:end] for start, end in pairwise(starts)]
        if (longest := self.lines.longest_tokens) is not None and sum(max(map(len, ids)) for ids in whole) > longest:
            return f"a sentence may have more than {longest} tokens, and the rest is cut off"
        letters = sum(max(map(len, unit.spellings)) + 1 for unit in units)
        if (longest := self.lines.longest_text) is not None and max(letters, len(text.text)) > longest:
            return f"a sentence may have more than {longest} characters, and the rest is cut off"
        kept = [[self.lines.keep(ids) for ids in one] for one in whole]
        if not self.agrees(text, units, kept):
            return "its sentences are not cut into the tokens that their stretches are cut into"
        return Apart(tuple(units), tuple(kept))

    def agrees(self, text: SwapText, units: Sequence[Unit], kept: Sequence[list[list[int]]]) -> bool:
        """Whether sentences read whole have the ids of their stretches: the text itself, and some drawn at random."""
        sizes = np.array([len(options) for options in text.options], dtype=np.int64)
        drawn = np.random.default_rng(len(text.text)).integers(0, sizes, size=(CHECKED, len(sizes)))
        rows = np.vstack([np.zeros_like(sizes)[None], drawn]).astype(np.int32)
        moving = [unit for unit in units if unit.words]
        chosen = numbers_of(moving, rows).tolist() if moving else [[]] * len(rows)
        expected = []
        for numbers in chosen:
            left = iter(numbers)
            read = [ids[next(left)] if unit.words else ids[0] for unit, ids in zip(units, kept, strict=True)]
            expected.append([one for ids in (*read, self.lines.closing) for one in ids])
        return self.lines.ids([text.moved(row) for row in rows]) == expected

    def summed(self, found: Apart) -> Summed:
        flat = [ids for one in found.ids for ids in one]
        sums, counts = self.sums(flat), lengths(flat)
        closing = self.lines.closing
        base, count = self.sums([closing])[0], len(closing)
        moving, firsts, changes, longer = [], [], [], []
        place, first = 0, 0
        for unit in found.units:
            end = place + len(unit.spellings)
            base, count = base + sums[place], count + int(counts[place])
            if unit.words:
                moving.append(unit)
                firsts.append(first)
                changes.append(sums[place:end] - sums[place])
                longer.append(counts[place:end] - counts[place])
                first += len(unit.spellings)
            place = end
        width = self.vectors.shape[1]
        return Summed(
            self.head,
            tuple(moving),
            np.array(firsts, dtype=np.int64),
            base,
            count,
            np.concatenate(changes) if changes else np.zeros((0, width)),
            np.concatenate(longer) if longer else np.zeros(0, dtype=np.int64),
        )


@dataclass(frozen=True, eq=False)
class Apart:
    """Stretches of a text, and for each the ids of its spellings."""

    units: tuple[Unit, ...]
    ids: tuple[list[list[int]], ...]


def lengths(ids: Sequence[list[int]]) -> NDArray[np.int64]:
    return np.array([len(one) for one in ids], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Summed:
    """The sentences of a text: the text's own sum, and what each spelling of a stretch changes in it."""

    head: PooledLayers | LabelLoss
    units: tuple[Unit, ...]
    firsts: NDArray[np.int64]
    """For each stretch, the place of its first spelling in `changes`."""
    base: Floats
    count: int
    changes: Floats
    longer: NDArray[np.int64]

    def scores(self, rows: Rows) -> Scores:
        if not self.units:
            return self.head.scores(np.tile(self.base, (len(rows), 1)), np.full(len(rows), self.count))
        step = max(AT_ONCE // (4 * len(self.base)), 1)
        return np.concatenate([self.part(rows[start : start + step]) for start in range(0, max(len(rows), 1), step)])

    def part(self, rows: Rows) -> Scores:
        numbers = numbers_of(self.units, rows)
        row, unit = np.nonzero(numbers)
        if len(row) * len(self.base) > AT_ONCE and len(rows) > 1:
            half = len(rows) // 2
            return np.concatenate([self.part(rows[:half]), self.part(rows[half:])])
        sums = np.tile(self.base, (len(rows), 1))
        counts = np.full(len(rows), self.count, dtype=np.int64)
        if len(row):
            places = self.firsts[unit] + numbers[row, unit]
            starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
            changed = row[starts]
            sums[changed] += np.add.reduceat(self.changes[places], starts, axis=0)
            counts[changed] += np.add.reduceat(self.longer[places], starts)
        return self.head.scores(sums, counts)
