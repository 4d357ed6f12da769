"""A network smoothed over random texts, as it is deployed: a file that names the network and the noise.

    [base]                          # the keys of [model] of a task, of kind onnx
    onnx = "model.onnx"
    vocabulary = "vocabulary.json"

    [smoothing]
    method = "ranmask"              # or "safer"
    rate = 0.3                      # ranmask: share of the words that become `mask`
    mask = "<unk>"
    synonyms = "synonyms.json"      # safer: {"word": ["synonym", ...]}
    max_per_word = 8
    combine = "logits"              # the mean of the network's scores; or "votes", the shares of its answers
    samples = 100                   # random texts of a sentence

The random texts of a sentence are drawn from the SHA-256 of this file's content and of the sentence: the same sentence
always gets the same answer, as nobody else's draw could promise.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...defences.synonym_pairs import read_synonyms
from ...encoded import PATTERNS, Split, spans_of
from ...errors import BadInput, unreadable
from ..classifier import Classifier, Copy, Deployment, Identity, Scores, SpeltOut, Variants
from ..onnx_classifier import open_onnx
from ..opening.file_facts import copy_of
from ..swapped_text import Fields, SwapText
from .word_noise import Masking, Substituting, WordNoise

BASE = ("onnx", "vocabulary", "length", "pad", "pad_side", "cut_side", "unknown", "lowercase", "split", "output")
KEYS = {"ranmask": {"rate", "mask"}, "safer": {"synonyms", "max_per_word"}}
COMMON = {"method", "combine", "samples"}
FOLDER = "smoothed"
BLOCK = 4096
"""Random texts that the network is asked about at a time."""


@dataclass(frozen=True, eq=False)
class SmoothedClassifier:
    """`salt`: what the draws of a sentence depend on beside it."""

    base: Classifier
    noise: WordNoise
    split: Split
    samples: int
    votes: bool
    salt: str
    identity: Identity

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        texts, counts = list[Fields](), list[int]()
        for (sentence,) in sentences:
            drawn = self.drawn(sentence)
            texts += [(text,) for text in drawn]
            counts.append(len(drawn))
        known = list(dict.fromkeys(texts))
        found = np.concatenate([self.base.scores(known[at : at + BLOCK]) for at in range(0, len(known), BLOCK)])
        place = {text: number for number, text in enumerate(known)}
        rows = found[[place[text] for text in texts]]
        if self.votes:
            rows = np.eye(rows.shape[1])[answers(rows)]
        return np.stack([part.mean(axis=0) for part in np.split(rows, np.cumsum(counts)[:-1])])

    def variants(self, text: SwapText) -> Variants:
        return SpeltOut(self, text)

    def drawn(self, sentence: str) -> list[str]:
        """Uniform by rejection from SHAKE-256, whose input nobody chooses."""
        spans = spans_of(sentence, self.split)
        words = [sentence[start:end] for start, end in spans]
        below = self.noise.outcomes(words)
        bits = (below - 1).bit_length()
        width = max(1, -(-bits // 8))
        seed = json.dumps(["swapproof smoothed", self.salt, sentence]).encode()
        found: list[str] = []
        number = 0
        while len(found) < self.samples:
            chunk = hashlib.shake_256(seed + number.to_bytes(8, "big")).digest(2 * width * self.samples)
            number += 1
            for at in range(0, len(chunk), width):
                value = int.from_bytes(chunk[at : at + width], "big") & ((1 << bits) - 1)
                if value < below and len(found) < self.samples:
                    found.append(rewritten(sentence, spans, self.noise.outcome(words, value)))
        return found


def answers(scores: Scores) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The class of each row, the lowest of equal ones."""
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def rewritten(text: str, spans: Sequence[tuple[int, int]], words: Sequence[str]) -> str:
    pieces, end = [], 0
    for (start, stop), word in zip(spans, words, strict=True):
        pieces += [text[end:start], word]
        end = stop
    return "".join([*pieces, text[end:]])


def open_smoothed(deployment: Deployment) -> SmoothedClassifier:
    path = Path(deployment.source)
    said = read_toml(path)
    base, smoothing = (table(said, name, path) for name in ("base", "smoothing"))
    if deployment.fields != 1:
        raise BadInput(f"{path}: smooths one text, and the task gives {deployment.fields}")
    for name, known, given in (
        ("base", set(BASE), base),
        ("smoothing", COMMON | set().union(*KEYS.values()), smoothing),
    ):
        for key in given:
            if key not in known:
                raise BadInput(f"{path}: [{name}] key {key!r} is unknown; there are {', '.join(sorted(known))}")
    split = base.get("split", "whitespace")
    if split not in PATTERNS:
        raise BadInput(f"{path}: [base] split is {split!r}; it must be one of {', '.join(PATTERNS)}")
    for key in ("onnx", "vocabulary"):
        if not isinstance(base.get(key), str):
            raise BadInput(f"{path}: [base] needs {key}, the path of a file")
    files = {key: path.parent / base[key] for key in ("onnx", "vocabulary")}
    noise, synonyms = noise_of(smoothing, path, split)
    samples, combine = smoothing.get("samples", 100), smoothing.get("combine", "logits")
    if type(samples) is not int or not 1 <= samples <= 1_000_000:
        raise BadInput(f"{path}: [smoothing] samples is {samples!r}; it must be a number from 1 to 1000000")
    if combine not in ("logits", "votes"):
        raise BadInput(f"{path}: [smoothing] combine is {combine!r}; it must be logits or votes")
    others = {key: base[key] for key in BASE if key in base and key not in ("onnx", "vocabulary")}
    opened = open_onnx(
        Deployment(
            "onnx",
            str(files["onnx"]),
            files["vocabulary"],
            labels=deployment.labels,
            threads=deployment.threads,
            **others,
        )
    )
    own = {"onnx": "model.onnx", "vocabulary": "vocabulary.json"}
    content = written({"base": base | own, "smoothing": smoothing | ({"synonyms": NOISE} if synonyms else {})})
    copies = [copy for copy in opened.identity.files if copy.name != own["vocabulary"]]
    copies += [copy_of(own["vocabulary"], files["vocabulary"])]
    if synonyms is not None:
        copies.append(copy_of(NOISE, synonyms))
    digest = hashlib.sha256(content).hexdigest()
    copies.append(Copy("smoothing.toml", path, digest, content))
    facts = {
        **opened.identity.facts,
        "smoothing": noise.name,
        "random texts of a sentence": samples,
        "combined": combine,
    }
    identity = Identity(FOLDER, path.name, tuple(copies), facts, (REMARK,), {FOLDER: "smoothing.toml"})
    salt = hashlib.sha256(json.dumps(sorted((copy.name, copy.sha256) for copy in copies)).encode()).hexdigest()
    return SmoothedClassifier(opened, noise, split, samples, combine == "votes", salt, identity)


NOISE = "noise_synonyms.json"
REMARK = (
    "the model is the mean or the vote over random texts that are drawn from each sentence; "
    "`measure --quantity vote` says what holds of all random texts"
)


def noise_of(said: dict[str, Any], path: Path, split: Split) -> tuple[WordNoise, Path | None]:
    method = said.get("method")
    if method not in KEYS:
        raise BadInput(f"{path}: [smoothing] method is {method!r}; it must be one of {', '.join(KEYS)}")
    for key in said:
        if key not in COMMON | KEYS[method]:
            raise BadInput(f"{path}: [smoothing] {key} has no effect with method {method!r}: remove it")
    if method == "ranmask":
        rate, mask = said.get("rate", 0.3), said.get("mask", "<unk>")
        if type(rate) not in (int, float) or not 0 < rate < 1:
            raise BadInput(f"{path}: [smoothing] rate is {rate!r}; it must be in (0, 1)")
        if not isinstance(mask, str) or spans_of(mask, split) != ((0, len(mask)),):
            raise BadInput(f"{path}: [smoothing] mask is {mask!r}; it must be one word")
        return Masking(float(rate), mask), None
    if not isinstance(said.get("synonyms"), str):
        raise BadInput(f"{path}: [smoothing] needs synonyms, the path of a table")
    most = said.get("max_per_word", 8)
    if type(most) is not int or most < 1:
        raise BadInput(f"{path}: [smoothing] max_per_word is {most!r}; it must be at least 1")
    file = path.parent / said["synonyms"]
    return Substituting({word.lower(): tuple(others[:most]) for word, others in read_synonyms(file).items()}), file


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise unreadable(path, error) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path}: not TOML: {error}") from error


def table(said: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    found = said.get(name)
    if not isinstance(found, dict):
        raise BadInput(f"{path}: has no section [{name}]")
    return found


def written(said: dict[str, dict[str, Any]]) -> bytes:
    """Strings, numbers and truth values are spelt alike in JSON and TOML."""
    lines = []
    for name, section in said.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in section.items())]
    return ("\n".join(lines) + "\n").encode()
