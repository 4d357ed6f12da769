"""A model2vec folder: vectors, weights and mapping in safetensors, a tokenizer, a head."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BadInput, Unsupported, one_line
from ...recognition.whole_files import read_object
from ..classifier import NoAnswer
from .head_graph import read_head_graph
from .static_heads import Layer, PooledLayers

LAYOUTS = (  # of config, vectors, tokenizer, and the vectors' name; the first whose files are all there
    ("config.json", "model.safetensors", "tokenizer.json", "embeddings"),
    ("config_sentence_transformers.json", "model.safetensors", "tokenizer.json", "embedding.weight"),
    (
        "config_sentence_transformers.json",
        "0_StaticEmbedding/model.safetensors",
        "0_StaticEmbedding/tokenizer.json",
        "embedding.weight",
    ),
)
HEAD, OLD_HEAD, GRAPH = "head.safetensors", "pipeline.skops", "head.onnx"
DEFAULT_LONGEST = 512
"""Tokens, where the folder does not say."""
FEW = 32
"""Texts that are read one by one before other threads have begun."""
MOST_KNOWN = 1_000_000
"""Stretches that are read once."""
MOST_UNPACKED = 2**31
"""Bytes of an old head."""
APART = ("BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip")
"""Normalisers that leave what stands between blanks to itself."""
CUTTING = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")
"""Pre-tokenizers that cut at every blank."""
MARKING = ("Punctuation", "Digits", *CUTTING)
"""Pre-tokenizers that cut a stretch without looking beyond it."""


@dataclass(frozen=True, eq=False)
class TokenLines:
    """Sentences as ids of tokens, by the tokenizer that lies in the folder."""

    cutting: Any
    """The tokenizer as it is deployed."""
    whole: Any
    """The same without truncation."""
    unknown: int | None
    """The token that counts for nothing."""
    longest_tokens: int | None
    longest_text: int | None
    interplay: str | None
    """Why no stretch of a sentence can be read alone."""
    _units: dict[str, list[int]] = field(default_factory=dict, init=False, repr=False)

    separators = " \t\n\r"

    @property
    def closing(self) -> list[int]:
        return []

    def ids(self, sentences: Sequence[str]) -> list[list[int]]:
        return [self.keep(ids) for ids in encoded(self.cutting, [text[: self.longest_text] for text in sentences])]

    def units(self, spellings: Sequence[str]) -> list[list[int]]:
        """Of stretches that stand alone between separators, unknown tokens included."""
        known = self._units
        if len(known) > MOST_KNOWN:
            known.clear()
        if new := [spelling for spelling in dict.fromkeys(spellings) if spelling not in known]:
            known.update(zip(new, encoded(self.whole, new), strict=True))
        return [known[spelling] for spelling in spellings]

    def keep(self, ids: list[int]) -> list[int]:
        return [token for token in ids if token != self.unknown]

    def joins(self, sentence: str) -> str | None:
        return None


def encoded(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    try:
        if len(texts) < FEW:
            return [list(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
        return [list(found.ids) for found in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
    except (UnicodeEncodeError, TypeError) as error:
        raise NoAnswer("the tokenizer reads UTF-8, which has no halves of surrogate pairs") from error


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """A row for each token: its vector, which several tokens may share, times its weight."""

    vectors: NDArray[Any]
    weights: NDArray[np.float64] | None
    mapping: NDArray[np.int64] | None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.vectors if self.mapping is None else self.mapping), self.vectors.shape[1]

    @property
    def rounded(self) -> bool:
        """Whether a vector times its weight has more than 53 bits: two factors of 24 bits have not."""
        return self.weights is not None and bool(
            self.vectors.dtype.itemsize > 4 or (self.weights.astype(np.float32) != self.weights).any()
        )

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        places = ids if self.mapping is None else self.mapping[ids]
        found: NDArray[np.float64] = self.vectors[places].astype(np.float64)
        return found if self.weights is None else found * self.weights[ids][:, None]


@dataclass(frozen=True, eq=False)
class TokenFolder:
    lines: TokenLines
    vectors: TokenVectors
    head: PooledLayers
    labels: tuple[str, ...] | None
    files: tuple[str, ...]
    """What was read, by its name in the folder."""
    remarks: tuple[str, ...]


def read_folder(folder: Path) -> TokenFolder:
    layout = next((names for names in LAYOUTS if all((folder / name).is_file() for name in names[:3])), None)
    if layout is None:
        raise BadInput(f"{folder}: no model2vec folder, which holds config.json, model.safetensors and tokenizer.json")
    settings, tensors, tokens, name = layout
    config = read_object(folder / settings)
    found = read_tensors(folder / tensors)
    vectors = found.get(name)
    if vectors is None:
        raise BadInput(f"{folder / tensors}: holds {listed(found)}, and no {name}")
    if vectors.ndim != 2 or not vectors.size or vectors.dtype.kind not in "fi":
        raise BadInput(f"{folder / tensors}: {name} of shape {vectors.shape} and {vectors.dtype}: a table is needed")
    lines = read_lines(folder / tokens, config)
    table = TokenVectors(
        cleaned(vectors),
        None if found.get("weights") is None else found["weights"].astype(np.float64),
        None if found.get("mapping") is None else found["mapping"].astype(np.int64),
    )
    check_sizes(folder, table, lines)
    normal = config.get("normalize", False)
    if not isinstance(normal, bool):
        raise BadInput(f"{folder / settings}: normalize is {normal!r}, where true or false is needed")
    layers, activation, labels, source = read_head(folder, config)
    width = vectors.shape[1]
    for place, layer in enumerate(layers):
        if layer.weight.ndim != 2 or layer.weight.shape[1] != width or layer.bias.shape != layer.weight.shape[:1]:
            shape = " x ".join(map(str, layer.weight.shape))
            raise BadInput(f"{folder / source}: layer {place} of {shape}, where it is given {width} numbers")
        width = layer.weight.shape[0]
    if labels is not None and activation != "identity" and len(labels) != width:
        raise BadInput(f"{folder / source}: answers {width} scores, and the folder names {len(labels)} classes")
    half = vectors.dtype == np.float16
    remarks = ["scores are computed in double precision; model2vec's own differ by its single-precision rounding"]
    if half:
        remarks.append("vectors in half precision: model2vec rounds their mean so too, at times to a neighbour of ours")
    return TokenFolder(
        lines=lines,
        vectors=table,
        head=PooledLayers(layers, activation, normal, half),
        labels=labels,
        files=(settings, tensors, tokens, source),
        remarks=tuple(remarks),
    )


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """All of them; the package checks names, shapes and offsets against the size of the file before it reads any."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise Unsupported(f"{path}: safetensors files need the package safetensors: pip install safetensors") from error
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{path}: not a safetensors file that numpy can hold ({one_line(error)})") from error


def cleaned(vectors: NDArray[Any]) -> NDArray[Any]:
    """As model2vec does it on loading: 0 for what is not a number."""
    return vectors if vectors.dtype.kind == "i" else np.nan_to_num(vectors)


def check_sizes(folder: Path, table: TokenVectors, lines: TokenLines) -> None:
    ids = lines.whole.get_vocab().values()
    tokens = len(ids)
    last = max(ids, default=-1)
    if table.mapping is None:
        if len(table.vectors) != tokens:
            given = len(table.vectors)
            raise BadInput(f"{folder}: vectors for {given} tokens, and the tokenizer has {tokens}: they do not belong")
    elif table.mapping.ndim != 1 or not len(table.mapping):
        raise BadInput(f"{folder}: the mapping of tokens to vectors is no list")
    elif table.mapping.min() < 0 or table.mapping.max() >= len(table.vectors):
        raise BadInput(f"{folder}: tokens are mapped to vectors beyond the {len(table.vectors)} that are there")
    if last >= table.shape[0]:
        raise BadInput(f"{folder}: the tokenizer has a token {last}, and vectors end at {table.shape[0] - 1}")
    if table.weights is not None and (table.weights.ndim != 1 or len(table.weights) <= last):
        raise BadInput(f"{folder}: weights of shape {table.weights.shape}, and the tokenizer has {tokens} tokens")
    if table.weights is not None and not np.isfinite(table.weights).all():
        raise BadInput(f"{folder}: weights that are not numbers")


def read_lines(path: Path, config: Mapping[str, Any]) -> TokenLines:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise Unsupported(f"{path}: tokenizers need the package tokenizers: pip install tokenizers") from error
    try:
        cutting = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing narrower
        raise BadInput(f"{path}: not a tokenizer ({one_line(error)})") from error
    longest = config.get("max_length", DEFAULT_LONGEST)
    if longest is not None and (type(longest) is not int or longest < 1):
        raise BadInput(f"{path.parent}: max_length is {longest!r}, where a number of tokens or null is needed")
    cutting.no_padding()
    cutting.no_truncation()
    whole = Tokenizer.from_str(cutting.to_str())
    said = json.loads(whole.to_str())
    if said["model"].get("dropout"):
        raise Unsupported(f"{path}: its BPE drops merges at random, so a sentence has no one answer: set dropout null")
    if longest is not None:
        cutting.enable_truncation(longest)
    vocabulary = whole.get_vocab()
    median = int(np.median([len(token) for token in vocabulary])) if vocabulary else 0
    model = whole.model
    name = getattr(model, "unk_token", None)
    return TokenLines(
        cutting=cutting,
        whole=whole,
        unknown=said["model"].get("unk_id") if not hasattr(model, "unk_token") else name and whole.token_to_id(name),
        longest_tokens=longest,
        longest_text=None if longest is None else longest * median,
        interplay=interplay(said),
    )


def interplay(tokenizer: Mapping[str, Any]) -> str | None:
    """Why what stands between blanks is not read by itself; None where it is."""
    for step in steps(tokenizer["normalizer"], "normalizers"):
        if step["type"] not in APART:
            return f"its normaliser {step['type']} may join what blanks keep apart"
    cuts = steps(tokenizer["pre_tokenizer"], "pretokenizers")
    if not any(step["type"] in CUTTING for step in cuts):
        return "its tokenizer does not cut at every blank"
    for step in cuts:
        if step["type"] not in MARKING:
            return f"its pre-tokenizer {step['type']} may look beyond a blank"
    for token in tokenizer["added_tokens"]:
        if any(character.isspace() for character in token["content"]):
            return f"its added token {token['content']!r} spans several words"
    return None


def steps(step: Mapping[str, Any] | None, parts: str) -> list[Mapping[str, Any]]:
    if step is None:
        return []
    return [inner for part in step[parts] for inner in steps(part, parts)] if step["type"] == "Sequence" else [step]


def read_head(folder: Path, config: Mapping[str, Any]) -> tuple[tuple[Layer, ...], str, tuple[str, ...] | None, str]:
    """Layers, activation, classes, and the file they stand in."""
    if not (folder / HEAD).is_file():
        if (folder / OLD_HEAD).is_file():
            return (*read_old_head(folder / OLD_HEAD), OLD_HEAD)
        if (folder / GRAPH).is_file():
            return (*read_head_graph(folder / GRAPH), classes_of(folder, config), GRAPH)
        raise BadInput(f"{folder}: vectors and no head ({HEAD}, {OLD_HEAD} or {GRAPH}): models/README.md trains one")
    said = config.get("head_config", {})
    activation = said.get("activation", "identity") if isinstance(said, dict) else None
    if activation not in ("softmax", "sigmoid", "identity"):
        raise BadInput(f"{folder}: a head with activation {activation!r}: softmax, sigmoid and identity are known")
    tensors = read_tensors(folder / HEAD)
    count = said.get("n_layers", 0)
    names = [f"head.{place}.{part}" for place in range(len(tensors) // 2) for part in ("weight", "bias")]
    if len(tensors) != len(names) or set(tensors) != set(names) or count != len(names) // 2:
        raise BadInput(f"{folder / HEAD}: holds {listed(tensors)}, and config.json speaks of {count!r} layers")
    layers = tuple(
        Layer(exact(folder, tensors[weight]), exact(folder, tensors[bias]))
        for weight, bias in zip(names[::2], names[1::2], strict=True)
    )
    return layers, activation, classes_of(folder, config), HEAD


def classes_of(folder: Path, config: Mapping[str, Any]) -> tuple[str, ...] | None:
    said = config.get("head_config", {})
    classes = said.get("classes") if isinstance(said, dict) else None
    if classes is not None and not isinstance(classes, list):
        raise BadInput(f"{folder}: classes should be a list")
    return None if classes is None else tuple(map(str, classes))


def read_old_head(path: Path) -> tuple[tuple[Layer, ...], str, tuple[str, ...] | None]:
    """A scikit-learn MLP in a skops file, as model2vec wrote it before 0.10."""
    try:
        import skops.io
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise Unsupported(f"{path}: heads of that form need scikit-learn and skops: pip install skops") from error
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_UNPACKED:
            raise BadInput(f"{path}: {size:,} bytes unpacked: more than a head can have")
        foreign = [name for name in skops.io.get_untrusted_types(file=path) if not name.startswith("sklearn.")]
        if foreign:
            raise BadInput(f"{path}: holds objects of {foreign[0]}, which are not loaded: only scikit-learn's are")
        model = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    except BadInput:
        raise
    except Exception as error:  # whatever a damaged archive leads to
        raise BadInput(f"{path}: not a head that skops reads ({one_line(error)})") from error
    head = model[-1] if hasattr(model, "steps") else model
    if type(head) is not MLPClassifier or head.activation != "relu":
        raise Unsupported(f"{path}: a {type(head).__name__}; heads of this form are MLPClassifiers with relu")
    layers = [
        Layer(exact(path, weight.T), exact(path, bias))
        for weight, bias in zip(head.coefs_, head.intercepts_, strict=True)
    ]
    labels = tuple(map(str, head.classes_))
    if head.out_activation_ == "softmax":
        return tuple(layers), "softmax", labels
    if len(labels) == 2 and len(layers[-1].weight) == 1:  # 0 and the logit have the softmax (1 - p, p)
        last = layers[-1]
        both = Layer(np.vstack([np.zeros_like(last.weight), last.weight]), np.concatenate([[0.0], last.bias]))
        return (*layers[:-1], both), "softmax", labels
    return tuple(layers), "sigmoid", labels


def exact(path: Path, array: NDArray[Any]) -> NDArray[np.float64]:
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise BadInput(f"{path}: a head of numbers that are not finite, or not of a floating type")
    return array.astype(np.float64)


def listed(tensors: Mapping[str, object]) -> str:
    return ", ".join(sorted(tensors)[:8]) or "nothing"
