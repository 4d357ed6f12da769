"""The sections of a task file: every key there is, what it can be, and what it is when left out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from swapproof.models.deployed.classifier import Deployment
from swapproof.models.deployed.decision import Decision, Meaning
from swapproof.models.encoded import PATTERNS, NamedSplit, Pattern
from swapproof.models.errors import BadInput

TEXT_FORMATS = frozenset({".json", ".onnxjson", ".textproto", ".prototxt", ".pbtxt", ".onnxtxt", ".onnxtext"})
"""Endings by which onnx guesses that a model is written as text; only binary files are read here."""

Origin = Literal["table", "wordnet", "embeddings"]
ORIGINS: dict[Origin, frozenset[str]] = {  # where candidates come from, and the keys that say more about it
    "table": frozenset({"file"}),
    "wordnet": frozenset(),
    "embeddings": frozenset({"embeddings", "words", "cosine"}),
}
MOST_LOGIT = 30.0
"""In magnitude: of larger ones the sigmoid, as a double, is too near to 0 or 1 to say which they are."""
DEFAULT_COSINE = 0.8  # the published choice for GloVe neighbours


def _located(value: object, info: ValidationInfo) -> Path:
    """A path, relative ones from the folder of the task file."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("should be a path, written as a string")
    folder: Path = (info.context or {})["folder"]
    return (folder / value).absolute()


def _words(value: object, info: ValidationInfo) -> Path | bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("should be true, false or the path of a file")
    return _located(value, info)


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _several(value: object) -> object:
    """One or a list of them."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _token(value: object) -> object:
    if isinstance(value, str) or (type(value) is int and value >= 0):
        return value
    raise ValueError("should be a token of the vocabulary or an id")


def _split(value: object) -> object:
    if isinstance(value, dict) and list(value) == ["pattern"] and isinstance(value["pattern"], str):
        return Pattern(value["pattern"])
    if isinstance(value, Pattern) or (isinstance(value, str) and value in PATTERNS):
        return value
    raise ValueError('should be "whitespace", "words" or { pattern = "a regular expression" }')


def _classes(labels: tuple[str, ...]) -> tuple[str, ...]:
    if len(labels) < 2 or "" in labels or len(set(labels)) < len(labels):
        raise ValueError("should be two or more different names, in the order of the model's classes")
    return labels


def _protobuf(path: Path) -> Path:
    if path.suffix.lower() in TEXT_FORMATS:
        raise ValueError(f"should be a binary .onnx file, which {path.suffix} does not name: convert it with onnx.save")
    return path


File = Annotated[Path, BeforeValidator(_located)]
Onnx = Annotated[Path, BeforeValidator(_located), AfterValidator(_protobuf)]
Files = Annotated[tuple[File, ...], BeforeValidator(_tuple)]
Labels = Annotated[tuple[str, ...], BeforeValidator(_tuple), AfterValidator(_classes)]
Delimiter = Annotated[str, Field(pattern=r'^[^"\r\n]$')]
Token = Annotated[str | int, BeforeValidator(_token)]
Split = Annotated[NamedSplit | Pattern, BeforeValidator(_split)]
Column = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Rows = Annotated[tuple[Annotated[int, Field(ge=0)], Count], BeforeValidator(_tuple)]
Role = Literal["tokens", "mask", "types", "positions", "length", "text"]
Callable = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")]
Url = Annotated[str, Field(pattern=r"^https?://[^\s]+$")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


KINDS = ("onnx", "hf", "sklearn", "static", "callable", "endpoint", "smoothed")
"""Of models: keys of [model], one of which says where the model is."""
ENDPOINT_KEYS = ("request", "response", "per_second", "attempts", "timeout", "batch")
OF_KINDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("vocabulary", "inputs", "pad", "pad_side", "cut_side", "unknown", "lowercase", "embeddings"), ("onnx",)
    ),
    **dict.fromkeys(("output", "length"), ("onnx", "hf")),
    "output": ("onnx", "hf", "sklearn"),
    **dict.fromkeys(ENDPOINT_KEYS, ("endpoint",)),
    "batch": ("callable", "endpoint"),
    "folder": ("callable",),
}
"""Keys that only models of these kinds have."""


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ModelSection(Section):
    """The classifier, of one kind, and how texts become its input."""

    onnx: Onnx | None = None
    hf: File | None = None
    sklearn: File | None = None
    static: File | None = None
    callable: Callable | None = None
    folder: File | None = None
    endpoint: Url | None = None
    smoothed: File | None = None
    road: Literal["read", "run"] | None = None
    vocabulary: File | None = None
    inputs: Annotated[dict[str, Role], Field(min_length=1)] | None = None
    output: Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=0)] | None = None
    scores: Meaning = "logits"
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = None
    column: Annotated[int, Field(ge=0)] | None = None
    embeddings: File | None = None
    length: Count | None = None
    pad: Token | None = None
    pad_side: Literal["left", "right"] | None = None
    cut_side: Literal["left", "right"] | None = None
    unknown: Token | None = None
    lowercase: bool = False
    split: Split | None = None
    labels: Labels
    label_map: dict[str, str] | None = None
    """What stands in the data -> name, where [model] labels is such a map; written there, and never as a key."""
    request: str | None = None
    response: str | None = None
    per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    attempts: Count | None = None
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    batch: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _names_of_map(cls, value: Any) -> Any:
        """The classes of a map are its names, in the order in which they first appear."""
        if not isinstance(value, dict):
            return value
        if "label_map" in value:
            raise ValueError('unknown key \'label_map\': the map belongs in labels = { "0" = "negative", ... }')
        spelt = value.get("labels")
        if not isinstance(spelt, dict):
            return value
        if not all(isinstance(name, str) for name in spelt.values()):
            raise ValueError('labels should map what stands in the data to names: { "0" = "negative", ... }')
        return {**value, "labels": tuple(dict.fromkeys(spelt.values())), "label_map": dict(spelt)}

    @model_validator(mode="before")
    @classmethod
    def _names_of_the_model(cls, value: Any, info: ValidationInfo) -> Any:
        """Where the task names no classes, those that config.json of a Hugging Face folder names, in its order."""
        if not isinstance(value, dict) or "labels" in value or not isinstance(value.get("hf"), str):
            return value
        from swapproof.models.recognition.folder_contents import labels_in
        from swapproof.models.recognition.whole_files import read_object

        config = (info.context or {})["folder"] / value["hf"] / "config.json"
        names = labels_in(read_object(config)) if config.is_file() else None
        return value if names is None else {**value, "labels": names}

    @model_validator(mode="before")
    @classmethod
    def _beside_the_task(cls, value: Any) -> Any:
        """A callable's module is looked for in the task's folder, wherever the task is written to afterwards."""
        if isinstance(value, dict) and "callable" in value:
            return {"folder": ".", **value}
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> ModelSection:
        """Exactly one model, and no key that would have no effect."""
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if not given:
            raise ValueError(f"names no model: set one of {', '.join(KINDS)}")
        if len(given) > 1:
            raise ValueError(f"has both {given[0]} and {given[1]}: keep the one to use")
        (kind,) = given
        for key, kinds in OF_KINDS.items():
            if kind not in kinds and getattr(self, key) != ModelSection.model_fields[key].default:
                raise ValueError(f"{key} has no effect with {kind}: remove it")
        if self.endpoint is not None and "@" in urlsplit(self.endpoint).netloc:
            from swapproof.models.deployed.http_endpoint import AUTHORIZATION

            raise ValueError(f"endpoint holds a password: set the variable {AUTHORIZATION}, which no run keeps")
        if self.road == "read" and kind in ("callable", "endpoint", "smoothed"):
            raise ValueError(f'road = "read" needs a file that can be read; {kind} can only be run')
        if self.column is not None and len(self.labels) != 2:
            raise ValueError(f"column decides between two classes, and labels names {len(self.labels)}")
        if self.threshold is not None and len(self.labels) != 2:
            raise ValueError(f"threshold decides between two classes, and labels names {len(self.labels)}")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise ValueError(f"threshold is a probability, above 0 and below 1, not {self.threshold:g}{self._share()}")
        return self

    def _share(self) -> str:
        """What to say where the threshold is that of a logit."""
        if self.scores != "logits" or self.threshold is None or abs(self.threshold) > MOST_LOGIT:
            return ""
        share = 1 / (1 + math.exp(-self.threshold))
        return f"; for class 1 to win where the logit exceeds that, say threshold = {share!r}, its sigmoid"

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def decision(self) -> Decision:
        return Decision(len(self.labels), self.scores, self.threshold, self.column)

    @property
    def plain(self) -> bool:
        """Whether the scores are one logit for each class: what proofs speak of."""
        return self.threshold is None and self.column is None

    def deployment(self, *, fields: int = 1, moving: int | None = None, threads: int = 1, **trust: bool) -> Deployment:
        """For whoever opens the model; `moving`: of pairs; `trust`: what the command line allows."""
        alone = {key: getattr(self, key) for key in ENDPOINT_KEYS if getattr(self, key) is not None}
        return Deployment(
            kind=self.kind,
            source=str(getattr(self, self.kind)),
            vocabulary=self.vocabulary,
            inputs=self.inputs,
            output=self.output,
            length=self.length,
            pad=self.pad,
            pad_side=self.pad_side,
            cut_side=self.cut_side,
            unknown=self.unknown,
            lowercase=self.lowercase,
            split=self.split,
            fields=fields,
            moving=moving,
            labels=self.labels,
            label_map=self.label_map,
            folder=self.folder,
            threads=threads,
            options=alone,
            **trust,
        )


class DataSection(Section):
    """The texts and their gold labels. Of pairs, `text` moves and `context` does not; `first` says which of them the
    model reads first."""

    file: File
    text: Column = "text"
    label: Column = "label"
    context: Column | None = None
    first: Literal["text", "context"] = "context"
    answer: Column | None = None
    delimiter: Delimiter | None = None
    on_error: Literal["stop", "skip"] = "stop"
    limit: Count | None = None
    sample: Count | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    balanced: bool = False
    rows: Rows | None = None
    """Of these texts only those from the first number, counted from 0, to before the second: a shard."""
    shard_of: Rows | None = None
    """The rows of all shards together, of which `merge` wants every one."""

    @model_validator(mode="after")
    def _one_choice(self) -> DataSection:
        """Of the first rows and drawn ones, and no key that would have no effect."""
        if self.sample is not None and self.limit is not None:
            raise ValueError("has both limit and sample: keep the one to use")
        if self.sample is not None and self.seed is None:
            raise ValueError("sample needs seed, a whole number that says which rows are drawn")
        if self.sample is None and self.seed is not None:
            raise ValueError("seed has no effect without sample: remove it")
        if self.sample is None and self.balanced:
            raise ValueError("balanced has no effect without sample: remove it")
        if self.rows is not None and self.rows[0] >= self.rows[1]:
            raise ValueError("rows needs a first number that is less than the second")
        if self.shard_of is not None and (
            self.rows is None or not self.shard_of[0] <= self.rows[0] < self.rows[1] <= self.shard_of[1]
        ):
            raise ValueError("shard_of needs rows that lie within it")
        return self

    @property
    def fields(self) -> int:
        return 1 if self.context is None else 2

    @property
    def moving(self) -> int:
        """The place of the text that moves among what the model reads."""
        return 1 if self.context is not None and self.first == "context" else 0


class SwapsSection(Section):
    """Frozen spaces, or where the candidates come from and which filters they pass."""

    file: File | None = None
    frozen: File | None = None
    source: Origin = "table"
    embeddings: File | None = None
    words: File | None = None
    cosine: Share | None = None
    max_per_word: Count = 8
    antonyms: Files = ()
    rejected: File | None = None
    """Pairs that a reader rejected, whatever the source says."""
    stop_words: Annotated[Path | bool, BeforeValidator(_words)] = False
    symmetric: bool = False
    same_part_of_speech: bool = False
    sentence_similarity: Share | None = None
    swap_unknown: bool = False

    @model_validator(mode="before")
    @classmethod
    def _default_cosine(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("source") == "embeddings":
            return {"cosine": DEFAULT_COSINE, **value}
        return value

    @model_validator(mode="after")
    def _one_source(self) -> SwapsSection:
        """Exactly one origin of the spaces, and no key that would have no effect."""
        fields = SwapsSection.model_fields
        given = {name for name in fields if getattr(self, name) != fields[name].default}
        if self.frozen is not None:
            idle = given - {"frozen", "max_per_word", "swap_unknown", "rejected"}
            if "file" in idle:
                raise ValueError("has both file and frozen: keep the one to use")
            if idle:
                raise ValueError(f"{listed(idle)} cannot change spaces that are frozen: remove it, or freeze anew")
            return self
        if idle := (given & {"file", "embeddings", "words", "cosine"}) - ORIGINS[self.source]:
            raise ValueError(f"{listed(idle)} has no effect with source = {json.dumps(self.source)}: remove it")
        if self.source == "table" and self.file is None:
            raise ValueError('needs file (a synonym table), frozen (spaces), or source = "wordnet" or "embeddings"')
        if self.source == "embeddings" and self.embeddings is None:
            raise ValueError('source = "embeddings" needs embeddings, a .npy or text file of vectors')
        if self.embeddings is not None and (self.embeddings.suffix == ".npy") != (self.words is not None):
            raise ValueError("words, a file that names the rows, belongs with embeddings in a .npy file only")
        return self


class CertifiedGate(Section):
    """At least this share of all texts withstands so many swaps."""

    at: Annotated[int, Field(ge=0)]
    least: Share


class AccuracyGate(Section):
    """At least this share of all texts is answered rightly."""

    least: Share


class MeanGate(Section):
    """The mean of min_swaps is so great."""

    least: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RequireSection(Section):
    """What must hold of the run: each is answered true, false or not settled."""

    certified_accuracy: Annotated[tuple[CertifiedGate, ...], BeforeValidator(_several)] = ()
    accuracy: Annotated[tuple[AccuracyGate, ...], BeforeValidator(_several)] = ()
    mmws: Annotated[tuple[MeanGate, ...], BeforeValidator(_several)] = ()
    no_text_broken_by: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_several)] = ()
    rho: Annotated[tuple[AccuracyGate, ...], BeforeValidator(_several)] = ()
    baseline: Annotated[tuple[CertifiedGate, ...], BeforeValidator(_several)] = ()
    """What an earlier run certified, as --baseline writes it."""

    @property
    def empty(self) -> bool:
        return not self.asked

    @property
    def asked(self) -> tuple[str, ...]:
        return tuple(name for name in RequireSection.model_fields if getattr(self, name))


NUMBER = r"(?P<least>\d{1,6}(?:\.\d{1,15})?)"
GATES: Mapping[str, tuple[re.Pattern[str], float]] = {
    "certified_accuracy": (re.compile(rf"certified@(?P<at>\d{{1,9}})\s*>=\s*{NUMBER}", re.ASCII), 1.0),
    "accuracy": (re.compile(rf"accuracy\s*>=\s*{NUMBER}", re.ASCII), 1.0),
    "mmws": (re.compile(rf"mmws\s*>=\s*{NUMBER}", re.ASCII), math.inf),
    "rho": (re.compile(rf"rho\s*>=\s*{NUMBER}", re.ASCII), 1.0),
    "no_text_broken_by": (re.compile(r"no_text_broken_by\s*=\s*(?P<at>\d{1,9})", re.ASCII), math.inf),
}
"""How the command line says each, and the greatest number that it can name."""
SAID = "'certified@SWAPS >= SHARE', 'accuracy >= SHARE', 'mmws >= MEAN', 'rho >= SHARE' or 'no_text_broken_by = SWAPS'"


def gates_said(gates: Iterable[str]) -> RequireSection:
    """Requirements as the command line has them: `certified@2 >= 0.70`, `mmws >= 3`."""
    found: dict[str, list[Any]] = {name: [] for name in GATES}
    for gate in gates:
        name, value = gate_said(gate)
        found[name].append(value)
    return RequireSection.model_validate({name: values for name, values in found.items() if values})


def gate_said(gate: str) -> tuple[str, object]:
    for name, (pattern, most) in GATES.items():
        said = pattern.fullmatch(gate.strip())
        if said is None:
            continue
        numbers = said.groupdict()
        if "least" not in numbers:
            return name, int(numbers["at"])
        least = float(numbers["least"])
        if least <= most:
            return name, {"least": least, **({"at": int(numbers["at"])} if "at" in numbers else {})}
    raise BadInput(f"--require {gate!r}: should be {SAID}, a share from 0 to 1")


MEASURED: Mapping[str, tuple[str, ...]] = {
    "certify": ("certified_accuracy", "accuracy", "mmws", "no_text_broken_by", "baseline"),
    "measure --quantity kappa": ("rho",),
    "measure --quantity pr": (),
    "measure --quantity msr": (),
    "attack": (),
}
"""Command -> the requirements that it can answer."""


def refuse_unmeasured(require: RequireSection, command: str) -> None:
    """A threshold that nobody would look at."""
    for name in require.asked:
        if name not in MEASURED[command]:
            homes = [other for other, names in MEASURED.items() if name in names]
            raise BadInput(
                f"[require] {name}: `{command}` does not measure it, so that it would not be answered; "
                f"`{homes[0]}` does: keep it in a task of that"
            )


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
