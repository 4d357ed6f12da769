"""Files of static embeddings written by hand: fastText's binary format, model2vec folders."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

LOSS = {"hs": 1, "ns": 2, "softmax": 3, "ova": 4}


def binary(
    words: Sequence[str],
    labels: Sequence[str],
    vectors: bytes,
    outputs: bytes,
    *,
    dim: int,
    loss: str = "softmax",
    grams: int = 1,
    shortest: int = 0,
    longest: int = 0,
    buckets: int = 0,
    kept: Mapping[int, int] | None = None,
    counts: Sequence[int] | None = None,
    kind: int = 3,
    version: int = 12,
) -> bytes:
    """A file of fastText; `vectors` and `outputs` as `dense` or `quantised` give them."""
    head = struct.pack("<ii", 793712314, version)
    head += struct.pack("<12id", dim, 5, 5, 1, 5, grams, LOSS[loss], kind, buckets, shortest, longest, 100, 1e-4)
    size = len(words) + len(labels)
    pruned = -1 if kept is None else len(kept)
    entries = struct.pack("<iiiqq", size, len(words), len(labels), 100, pruned)
    for word in words:
        entries += word.encode() + b"\0" + struct.pack("<qb", 1, 0)
    for label, count in zip(labels, counts or [1] * len(labels), strict=True):
        entries += b"__label__" + label.encode() + b"\0" + struct.pack("<qb", count, 1)
    for pair in (kept or {}).items():
        entries += struct.pack("<ii", *pair)
    return head + entries + vectors + outputs


def dense(values: NDArray[Any]) -> bytes:
    return b"\0" + struct.pack("<qq", *values.shape) + values.astype("<f4").tobytes()


def quantised(
    codes: NDArray[Any], centroids: Sequence[NDArray[Any]], norms: tuple[NDArray[Any], NDArray[Any]] | None = None
) -> bytes:
    """Rows of one code for each of `centroids` [256, width]; `norms`: a code for each row, and the 256 norms."""
    rows, parts = codes.shape
    width = sum(part.shape[1] for part in centroids)
    found = b"\1" + struct.pack("<bqqi", norms is not None, rows, width, codes.size) + codes.astype("u1").tobytes()
    found += struct.pack("<4i", width, parts, centroids[0].shape[1], centroids[-1].shape[1])
    found += b"".join(part.astype("<f4").tobytes() for part in centroids)
    if norms is not None:
        found += norms[0].astype("u1").tobytes() + struct.pack("<4i", 1, 1, 1, 1) + norms[1].astype("<f4").tobytes()
    return found


def word_pieces(tokens: Sequence[str]) -> Any:
    """A tokenizer as potion models have them."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    tokenizer = Tokenizer(WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def write_folder(
    folder: Path,
    tokenizer: Any,
    tensors: Mapping[str, NDArray[Any]],
    layers: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    *,
    activation: str = "softmax",
    classes: Sequence[str] | None = None,
    **config: Any,
) -> Path:
    """A folder as model2vec 0.10 saves a pipeline."""
    from safetensors.numpy import save_file

    folder.mkdir()
    save_file(dict(tensors), folder / "model.safetensors")
    head: dict[str, NDArray[Any]] = {}
    for place, (weight, bias) in enumerate(layers):
        head |= {f"head.{place}.weight": weight, f"head.{place}.bias": bias}
    save_file(head, folder / "head.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
    said = {"n_layers": len(layers), "activation": activation, "classes": classes}
    (folder / "config.json").write_text(json.dumps({"normalize": False, **config, "head_config": said}))
    return folder
