"""fastText's supervised files answer here as in fastText, and files that lie about their sizes are refused."""

from __future__ import annotations

import json
import math
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import static_files
from numpy.typing import NDArray

from swapproof.models.deployed.classifier import Classifier, Deployment, NoAnswer
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.deployed.static_models.hashed_lines import hashed
from swapproof.models.errors import BadInput, Unsupported

WORDS = ["</s>", "good", "bad", "naïve", "日本"]
LABELS = ["pos", "neg", "odd"]
DIM, BUCKETS = 3, 11
TEXTS = [
    "good",
    "bad  bad\tgood",
    "",
    "naïve 日本 unheard",
    "good </s> bad",
    "__label__pos good",
    "__label__new",
    "a\0good",
]


def opened(path: Path) -> Classifier:
    return open_classifier(Deployment("static", str(path)))


def saved(folder: Path, content: bytes, name: str = "model.bin") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def handmade(folder: Path, **changed: Any) -> Path:
    rows = len(WORDS) + changed.get("buckets", 0)
    said = {"dim": DIM, **changed}
    outputs = static_files.dense(numbers(len(LABELS), DIM))
    return saved(folder, static_files.binary(WORDS, LABELS, static_files.dense(numbers(rows, DIM)), outputs, **said))


def expected(text: str, grams: int = 1, shortest: int = 0, longest: int = 0, buckets: int = 0) -> list[float]:
    """Softmax of the mean, said once more: character by character, one vector after the other."""
    table, outputs = numbers(len(WORDS) + buckets, DIM), numbers(len(LABELS), DIM)

    def fnv(stretch: str) -> int:
        value = 2166136261
        for byte in stretch.encode():
            value = ((value ^ ((byte - 256 if byte > 127 else byte) % 2**32)) * 16777619) % 2**32
        return value

    rows, hashes = [], []
    for word in [*text.replace("\0", " ").split(), "</s>"]:
        if word.startswith("__label__"):
            continue
        if word in WORDS:
            rows.append(WORDS.index(word))
        if longest and word != "</s>":
            marked = f"<{word}>"
            stretches = [marked[i:j] for i in range(len(marked)) for j in range(i + 1, len(marked) + 1)]
            rows += [
                len(WORDS) + fnv(stretch) % buckets
                for stretch in stretches
                if shortest <= len(stretch) <= longest and stretch not in ("<", ">")
            ]
        hashes.append(fnv(word))
        if word == "</s>":
            break
    signed = [value - 2**32 if value >= 2**31 else value for value in hashes]
    for first in range(len(signed)):
        value = signed[first]
        for other in signed[first + 1 : first + grams]:
            value = (value * 116049371 + other) % 2**64
            rows.append(len(WORDS) + value % 2**64 % buckets)
    mean = [math.fsum(float(table[row, place]) for row in rows) / len(rows) for place in range(DIM)]
    powers = [math.exp(math.fsum(float(w) * x for w, x in zip(row, mean, strict=True))) for row in outputs]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"grams": 3, "buckets": BUCKETS},
        {"shortest": 1, "longest": 3, "buckets": BUCKETS},
        {"grams": 2, "shortest": 2, "longest": 2, "buckets": BUCKETS},
    ],
)
def test_words_parts_and_groups_count_as_a_second_reading_counts_them(settings: dict[str, int], tmp_path: Path) -> None:
    scores = opened(handmade(tmp_path, **settings)).scores([(text,) for text in TEXTS])
    np.testing.assert_allclose(scores, [expected(text, **settings) for text in TEXTS], rtol=0, atol=1e-7)


def test_bytes_beyond_ascii_are_hashed_as_negative_numbers() -> None:
    assert hashed(b"hello") == 0x4F9F2CAB  # FNV-1a's own
    assert hashed(b"\xff") == ((2166136261 ^ 0xFFFFFFFF) * 16777619) % 2**32


def test_old_supervised_files_have_no_parts_of_words(tmp_path: Path) -> None:
    path = handmade(tmp_path, shortest=1, longest=3, buckets=BUCKETS, version=11)
    np.testing.assert_allclose(opened(path).scores([("good",)]), [expected("good", buckets=BUCKETS)], atol=1e-7)


def test_quantised_rows_are_their_centroids_times_their_norm(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes, norm_codes = rng.integers(0, 256, size=(len(WORDS), 2)), rng.integers(0, 256, size=len(WORDS))
    centroids = [rng.normal(size=(256, 2)).astype(np.float32), rng.normal(size=(256, 1)).astype(np.float32)]
    norms = rng.random(256).astype(np.float32)
    rows = np.concatenate([part[codes[:, place]] for place, part in enumerate(centroids)], axis=1)
    rows = rows * norms[norm_codes][:, None]
    outputs = static_files.dense(numbers(len(LABELS), DIM))
    small = static_files.quantised(codes, centroids, (norm_codes, norms))
    (tmp_path / "small").mkdir()
    quantised = saved(tmp_path / "small", static_files.binary(WORDS, LABELS, small, outputs, dim=DIM, kept={}), "m.ftz")
    plain = saved(tmp_path, static_files.binary(WORDS, LABELS, static_files.dense(rows), outputs, dim=DIM))
    texts = [(text,) for text in TEXTS]
    np.testing.assert_allclose(opened(quantised).scores(texts), opened(plain).scores(texts), rtol=0, atol=1e-6)


def test_of_equal_labels_the_later_one_wins_as_in_fasttext(tmp_path: Path) -> None:
    outputs = static_files.dense(np.zeros((3, DIM)))
    path = saved(tmp_path, static_files.binary(WORDS, LABELS, static_files.dense(numbers(5, DIM)), outputs, dim=DIM))
    (scores,) = opened(path).scores([("good",)])
    assert scores.argmax() == 2
    np.testing.assert_allclose(scores, 1 / 3, atol=1e-7)


def test_a_text_of_which_nothing_is_known_has_no_answer(tmp_path: Path) -> None:
    vectors, outputs = static_files.dense(numbers(1, DIM)), static_files.dense(numbers(3, DIM))
    model = opened(saved(tmp_path, static_files.binary(["good"], LABELS, vectors, outputs, dim=DIM)))
    assert model.scores([("good",)]).shape == (1, 3)
    with pytest.raises(NoAnswer, match="knows no word"):
        model.scores([("good",), ("unheard",)])
    with pytest.raises(NoAnswer, match="line ends"):
        model.scores([("good\ngood",)])
    with pytest.raises(NoAnswer, match="UTF-8"):
        model.scores([("good \ud800",)])


def with_number(content: bytes, place: int, form: str, value: int) -> bytes:
    return content[:place] + struct.pack(form, value) + content[place + struct.calcsize(form) :]


HEAD = 8
SETTINGS = 56
DICTIONARY = HEAD + SETTINGS
MATRIX = DICTIONARY + 28 + sum(len(word.encode()) + 10 for word in [*WORDS, *(f"__label__{name}" for name in LABELS)])


@pytest.mark.parametrize(
    ("place", "form", "value", "says"),
    [
        (0, "<i", 7, "not a binary file of fastText"),
        (4, "<i", 13, "version 13"),
        (HEAD + 24, "<i", 9, "loss 9"),
        (HEAD + 28, "<i", 2, "learnt without labels"),
        (HEAD + 20, "<i", 2, "no buckets"),
        (HEAD + 40, "<i", 2, "no buckets"),
        (DICTIONARY, "<i", 2**31 - 1, "entries, of"),
        (DICTIONARY + 8, "<i", 0, "without labels"),
        (DICTIONARY + 20, "<q", 2**62, "the list of kept ids should take"),
        (DICTIONARY + 20, "<q", 0, "pruned and not quantised"),
        (MATRIX, "<b", 2, "where 0 or 1 is needed"),
        (MATRIX + 1, "<q", 2**40, "the vectors should take"),
        (MATRIX + 1, "<q", -1, "negative size"),
        (MATRIX + 9, "<q", 2, "damaged"),
    ],
)
def test_a_file_that_lies_is_refused_in_one_line(place: int, form: str, value: int, says: str, tmp_path: Path) -> None:
    content = with_number(handmade(tmp_path).read_bytes(), place, form, value)
    with pytest.raises((BadInput, Unsupported), match=says) as refused:
        opened(saved(tmp_path, content))
    assert "\n" not in str(refused.value)


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    content = handmade(tmp_path, longest=2, buckets=4).read_bytes()
    for end in range(len(content)):
        with pytest.raises(BadInput):
            opened(saved(tmp_path, content[:end]))


def test_large_sizes_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    sizes = static_files.binary(WORDS, LABELS, b"\0" + struct.pack("<qq", 2**50, 2**50), b"", dim=DIM)
    with pytest.raises(BadInput, match="should take"):
        opened(saved(tmp_path, sizes))
    codes = b"\1" + struct.pack("<bqqi", 0, 2**50, 2**50, 2**31 - 1)
    with pytest.raises(BadInput, match="should take"):
        opened(saved(tmp_path, static_files.binary(WORDS, LABELS, codes, b"", dim=DIM)))


SYLLABLES = ["ba", "ko", "mi", "ré", "tsu", "日", "x", "llo"]


def corpus(path: Path, labels: int) -> list[str]:
    """Lines whose label goes with their words; the texts without labels."""
    rng = random.Random(0)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(400)]
    lines = []
    for _ in range(1500):
        label = min(int(rng.expovariate(0.5)), labels - 1)
        lines.append((label, " ".join(rng.choices(words[label * 20 :: 1 + label % 3], k=rng.randint(1, 12)))))
    path.write_text("".join(f"__label__{label} {text}\n" for label, text in lines))
    unseen = ["", "  ", "zzz", "ba zzz", "__label__1 ba", "ko </s> mi", "ré\u00a0日 \u3000x", "a\x0bb\x0cc\rd\0e"]
    return unseen + [text for _, text in lines[:150]]


@pytest.mark.parametrize(
    ("settings", "quantise"),
    [
        ({}, None),
        ({"minn": 1, "maxn": 4, "bucket": 2000}, {"cutoff": 300}),
        ({"wordNgrams": 3, "bucket": 3000}, {"cutoff": 500, "qnorm": True}),
        ({"wordNgrams": 2, "minn": 2, "maxn": 3, "bucket": 999, "loss": "ova"}, {"cutoff": 400}),
        ({"loss": "hs", "wordNgrams": 2, "bucket": 500, "dim": 5}, {"qnorm": True}),
        ({"loss": "ns"}, None),
    ],
)
def test_trained_models_answer_as_in_fasttext(
    settings: dict[str, Any], quantise: dict[str, Any] | None, tmp_path: Path
) -> None:
    fasttext = pytest.importorskip("fasttext")
    texts = corpus(tmp_path / "lines.txt", 7)
    model = fasttext.train_supervised(
        str(tmp_path / "lines.txt"), **{"dim": 16, "epoch": 20, "lr": 0.5, "thread": 1, "verbose": 0, **settings}
    )
    model.save_model(str(tmp_path / "model.bin"))
    agrees(model, tmp_path / "model.bin", texts)
    if quantise is not None:
        model.quantize(input=str(tmp_path / "lines.txt"), verbose=0, **quantise)
        model.save_model(str(tmp_path / "model.ftz"))
        agrees(model, tmp_path / "model.ftz", texts)


def agrees(model: Any, path: Path, texts: list[str]) -> None:
    ours = opened(path).scores([(text,) for text in texts])
    labels = [f"__label__{name}" for name in labels_of(path)]
    for text, scores in zip(texts, ours, strict=True):
        theirs = {label: value for value, label in model.f.predict(text + "\n", -1, 0.0, "strict")}
        more = 0 if model.f.getArgs().loss.name == "hs" else 1e-5  # fastText adds it before its logarithm
        for label, score in zip(labels, scores, strict=True):
            if label in theirs:
                assert theirs[label] == pytest.approx(score + more, abs=1e-6), (text, label)
        ((_, best),) = model.f.predict(text + "\n", 1, 0.0, "strict")
        if labels[int(scores.argmax())] != best:  # only where the last bits of single precision decide
            assert scores.max() - scores[labels.index(best)] < 1e-7


def labels_of(path: Path) -> list[str]:
    found: list[str] = json.loads(str(opened(path).identity.facts["labels"]))
    return found
