"""The task file: which model, which texts, which swaps; read from TOML, checked, written back, hashed."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from swapproof.models.errors import BadInput, unreadable, visible

TEXT_FORMATS = frozenset({".json", ".onnxjson", ".textproto", ".prototxt", ".pbtxt", ".onnxtxt", ".onnxtext"})
"""Endings by which onnx guesses that a model is written as text; only binary files are read here."""

Origin = Literal["table", "wordnet", "embeddings"]
ORIGINS: dict[Origin, frozenset[str]] = {  # where candidates come from, and the keys that say more about it
    "table": frozenset({"file"}),
    "wordnet": frozenset(),
    "embeddings": frozenset({"embeddings", "words", "cosine"}),
}
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


def _token(value: object) -> object:
    if isinstance(value, str) or (type(value) is int and value >= 0):
        return value
    raise ValueError("should be a token of the vocabulary or an id")


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
Token = Annotated[str | int, BeforeValidator(_token)]
Column = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ModelSection(Section):
    """The classifier and how texts become its input."""

    onnx: Onnx
    vocabulary: File
    length: Count | None = None
    pad: Token | None = None
    unknown: Token | None = None
    lowercase: bool = False
    split: Literal["whitespace", "words"] = "whitespace"
    labels: Labels


class DataSection(Section):
    """The texts and their gold labels."""

    file: File
    text: Column = "text"
    label: Column = "label"
    context: Column | None = None
    limit: Count | None = None


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
            idle = given - {"frozen", "max_per_word", "swap_unknown"}
            if "file" in idle:
                raise ValueError("has both file and frozen: keep the one to use")
            if idle:
                raise ValueError(f"{_list(idle)} cannot change spaces that are frozen: remove it, or freeze anew")
            return self
        if idle := (given & {"file", "embeddings", "words", "cosine"}) - ORIGINS[self.source]:
            raise ValueError(f"{_list(idle)} has no effect with source = {json.dumps(self.source)}: remove it")
        if self.source == "table" and self.file is None:
            raise ValueError('needs file (a synonym table), frozen (spaces), or source = "wordnet" or "embeddings"')
        if self.source == "embeddings" and self.embeddings is None:
            raise ValueError('source = "embeddings" needs embeddings, a .npy or text file of vectors')
        if self.embeddings is not None and (self.embeddings.suffix == ".npy") != (self.words is not None):
            raise ValueError("words, a file that names the rows, belongs with embeddings in a .npy file only")
        return self


class Task(Section):
    """A task file, its paths absolute."""

    model: ModelSection
    data: DataSection
    swaps: SwapsSection

    def resolved(self, notes: Iterable[str] = ()) -> str:
        """The task as TOML that `read_task` reads to an equal task, wherever it lies; notes become comments on top."""
        lines = [f"# {line}".rstrip() for note in notes for line in note.splitlines()]
        for section in ("model", "data", "swaps"):
            lines += ["", f"[{section}]"] if lines else [f"[{section}]"]
            part: Section = getattr(self, section)
            lines += [f"{key} = {_toml(value)}" for key, value in part if value is not None]
        return "\n".join(lines) + "\n"

    @property
    def placeless(self) -> Task:
        """The same with the bare names of its files, for people whom their folders do not concern."""
        named = {section: part.model_copy(update={key: _named(value) for key, value in part}) for section, part in self}
        return self.model_copy(update=named)

    @property
    def digest(self) -> str:
        """SHA-256 of everything the task says, of its files only which are given and of which kind (their suffixes).

        Where a file lies changes no answer; what it holds does, and is hashed by whoever reads it. The suffix says how
        some files are read, so it counts.
        """
        content = {section: {key: _placeless(value) for key, value in part} for section, part in self}
        text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(f"swapproof task 1\n{text}".encode()).hexdigest()


SECTIONS: dict[str, type[Section]] = {"model": ModelSection, "data": DataSection, "swaps": SwapsSection}


def read_task(path: str | Path, *, check_files: bool = True) -> Task:
    """The task of a TOML file, or BadInput with one line per problem; `check_files`: those it names must exist."""
    path = Path(path)
    content = _parsed(path)
    try:
        task = Task.model_validate(content, context={"folder": path.parent})
    except ValidationError as error:
        raise Problems([f"{path}: {problem}" for problem in _problems(error)]) from None
    missing = [f"{path}: {problem}" for problem in _missing_files(task)] if check_files else []
    if missing:
        raise Problems(missing)
    return task


class Problems(BadInput):
    """Several at once, one a line."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(visible(problem) for problem in problems)
        super().__init__("\n".join(self.problems))


def _parsed(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}: not UTF-8 ({error.reason})") from error
    except tomllib.TOMLDecodeError as error:
        end = f"at the end, line {max(1, len(data.splitlines()))}"
        reason = str(error).replace("at end of document", end)
        raise BadInput(f"{path}: not TOML: {reason}") from error
    except (RecursionError, ValueError) as error:
        raise BadInput(f"{path}: not TOML that can be read: {error}") from error


def _problems(error: ValidationError) -> Iterator[str]:
    # Unknown keys first: a key that is missing is most often one that is misspelt.
    for found in sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden"):
        location, kind, value = found["loc"], found["type"], found["input"]
        where = _where(location)
        if kind == "extra_forbidden":
            yield _unknown_key(location)
        elif kind == "missing":
            yield f"{where} is missing"
        elif kind in ("model_type", "model_attributes_type"):
            yield f"{where} should be a table, not {_shown(value)}"
        elif kind == "value_error":
            reason = found["msg"].removeprefix("Value error, ")
            yield f"{where} {reason}" if isinstance(value, dict) else f"{where} {reason}, not {_shown(value)}"
        else:
            reason = found["msg"].replace("Input should be", "should be").replace("String should", "should")
            yield f"{where} {reason}, not {_shown(value)}"


def _where(location: Sequence[str | int]) -> str:
    section, *rest = location
    keys = "".join(f"[{key}]" if isinstance(key, int) else f" {key}" for key in rest)
    return f"[{section}]{keys}"


def _unknown_key(location: Sequence[str | int]) -> str:
    """What the unknown key most likely is: a key of another section, or the nearest one of its own."""
    key = str(location[-1])
    homes = [section for section, fields in SECTIONS.items() if key in fields.model_fields]
    if len(location) == 1:
        if homes:
            return f"unknown key {key!r} outside any section: it belongs in [{homes[0]}]"
        return f"unknown section [{key}]: did you mean [{_nearest(key, SECTIONS)}]?"
    section = str(location[0])
    if homes:
        return f"[{section}] unknown key {key!r}: it belongs in [{homes[0]}]"
    return f"[{section}] unknown key {key!r}: did you mean {_nearest(key, SECTIONS[section].model_fields)!r}?"


def _nearest(key: str, known: Iterable[str]) -> str:
    return get_close_matches(key.lower(), list(known), n=1, cutoff=0.0)[0]


def _missing_files(task: Task) -> Iterator[str]:
    for section, part in task:
        for key, value in part:
            for file in value if isinstance(value, tuple) else (value,):
                if isinstance(file, Path) and (problem := _unreadable_file(file)) is not None:
                    yield f"[{section}] {key}: {problem}"


def _unreadable_file(file: Path) -> BadInput | None:
    try:
        if file.exists() and not file.is_file() and not file.is_dir():
            return BadInput(f"{file}: not a regular file")  # opening a pipe would wait for its other end
        with file.open("rb"):
            return None
    except OSError as error:
        return unreadable(file, error)


def _shown(value: object) -> str:
    shown = json.dumps(value, default=str, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _named(value: object) -> object:
    match value:
        case Path():
            return Path(value.name)
        case tuple():
            return tuple(_named(item) for item in value)
        case _:
            return value


def _placeless(value: object) -> object:
    match value:
        case Path():
            return {"file": "".join(value.suffixes[-2:]) if value.suffix == ".gz" else value.suffix}
        case tuple():
            return [_placeless(item) for item in value]
        case _:
            return value


def _toml(value: object) -> str:
    """A TOML value; JSON's escapes of strings are TOML's too, once DEL is escaped."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str() | Path():
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case tuple():
            return f"[{', '.join(map(_toml, value))}]"
    raise TypeError(f"no TOML for {value!r}")
