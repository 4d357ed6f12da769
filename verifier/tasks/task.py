"""The task file: which model, which texts, which swaps; read from TOML, checked, written back, hashed."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from swapproof.models.encoded import Pattern
from swapproof.models.errors import BadInput, Unsupported, unreadable, visible

from .sections import DataSection, ModelSection, RequireSection, Section, SwapsSection, gates_said

FOLDERS = ("hf", "static", "folder")
"""Keys of [model] that may name a folder."""


class Task(Section):
    """A task file, its paths absolute."""

    model: ModelSection
    data: DataSection
    swaps: SwapsSection
    require: RequireSection = RequireSection()

    def resolved(self, notes: Iterable[str] = ()) -> str:
        """The task as TOML that `read_task` reads to an equal task, wherever it lies; notes become comments on top."""
        lines = [f"# {line}".rstrip() for note in notes for line in note.splitlines()]
        for section in ("model", "data", "swaps", *(() if self.require.empty else ("require",))):
            lines += ["", f"[{section}]"] if lines else [f"[{section}]"]
            lines += [f"{key} = {toml_value(value)}" for key, value in self.written(section) if value is not None]
        return "\n".join(lines) + "\n"

    def written(self, section: str) -> Iterator[tuple[str, object]]:
        """The keys of a section as they stand in a file."""
        part: Section = getattr(self, section)
        for key, value in part:
            if key == "labels" and self.model.label_map is not None:
                yield key, self.model.label_map
            elif key != "label_map" and (section != "require" or value):
                yield key, value

    def requiring(self, gates: Sequence[str]) -> Task:
        """The same with requirements of the command line added."""
        said = gates_said(gates)
        both = {key: getattr(self.require, key) + getattr(said, key) for key in RequireSection.model_fields}
        return self.model_copy(update={"require": self.require.model_copy(update=both)})

    @property
    def placeless(self) -> Task:
        """The same with the bare names of its files, for people whom their folders do not concern."""
        named = {section: part.model_copy(update={key: _named(value) for key, value in part}) for section, part in self}
        return self.model_copy(update=named)

    @property
    def digest(self) -> str:
        """SHA-256 of what the task says of every text, of its files only which are given and of which kind (their
        suffixes).

        Where a file lies changes no answer; what it holds does, and is hashed by whoever reads it. The suffix says how
        some files are read, so it counts. How many texts there are, and what is required of them, changes no answer
        about any of them; nor does a key that says what goes without saying. What readers rejected shows in the swaps.
        """
        return self._digest_of("model", "data", "swaps")

    @property
    def model_digest(self) -> str:
        """The same of the model alone."""
        return self._digest_of("model")

    def _digest_of(self, *sections: str) -> str:
        content = {
            section: {
                key: _placeless(value)
                for key, value in part
                if key not in UNHASHED and value != SECTIONS[section].model_fields[key].default
            }
            for section, part in self
            if section in sections
        }
        text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(f"swapproof task 2\n{text}".encode()).hexdigest()


def task_dumped(content: Mapping[str, Any]) -> Task:
    """The task of which this is `placeless`, as JSON; raises Problems where it is of none."""
    model = content.get("model")
    if isinstance(model, dict) and "label_map" in model:
        others = {key: value for key, value in model.items() if key != "label_map"}
        content = {**content, "model": {**others, "labels": model["label_map"]}}
    try:
        return Task.model_validate(content, context={"folder": Path("/")})
    except ValidationError as error:
        raise Problems(list(problems_of(error.errors()))) from None


UNHASHED = ("limit", "sample", "rows", "shard_of", "rejected")
SECTIONS: dict[str, type[Section]] = {
    "model": ModelSection,
    "data": DataSection,
    "swaps": SwapsSection,
    "require": RequireSection,
}


def read_task(path: str | Path, *, check_files: bool = True) -> Task:
    """The task of a TOML file, or BadInput with one line per problem; `check_files`: those it names must exist."""
    path = Path(path)
    content = _parsed(path)
    try:
        task = Task.model_validate(content, context={"folder": path.parent})
    except ValidationError as error:
        raise Problems([f"{path}: {problem}" for problem in problems_of(error.errors())]) from None
    missing = [f"{path}: {problem}" for problem in _missing_files(task)] if check_files else []
    if missing:
        raise Problems(missing)
    return task


def onnx_of(task: Task) -> Path:
    """The model's file, where it must be an ONNX file to be read."""
    if task.model.onnx is None:
        raise Unsupported(f"[model] {task.model.kind}: only run, and this needs a network that is read: give onnx")
    return task.model.onnx


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
    if b"\0" in data:
        raise BadInput(f"{path}: no task file, which is text; `swapproof init MODEL` writes one about a model")
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


def problems_of(errors: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What pydantic found, one line each."""
    # Unknown keys first: a key that is missing is most often one that is misspelt.
    for found in sorted(errors, key=lambda problem: problem["type"] != "extra_forbidden"):
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
    if len(location) > 2:
        return f"{_where(location[:-1])} unknown key {key!r}"
    if homes:
        return f"[{section}] unknown key {key!r}: it belongs in [{homes[0]}]"
    known = [name for name in SECTIONS[section].model_fields if name != "label_map"]
    return f"[{section}] unknown key {key!r}: did you mean {_nearest(key, known)!r}?"


def _nearest(key: str, known: Iterable[str]) -> str:
    return get_close_matches(key.lower(), list(known), n=1, cutoff=0.0)[0]


def _missing_files(task: Task) -> Iterator[str]:
    for section, part in task:
        for key, value in part:
            for file in value if isinstance(value, tuple) else (value,):
                if not isinstance(file, Path) or (key in FOLDERS and file.is_dir()):
                    continue
                if (problem := _unreadable_file(file)) is not None:
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
        case Pattern():
            return {"pattern": value.pattern}
        case dict():  # in its order, by which the inputs of a pair are told apart
            return [[key, _placeless(inner)] for key, inner in value.items()]
        case _:
            return value


def toml_value(value: object) -> str:
    """A TOML value; JSON's escapes of strings are TOML's too, once DEL is escaped."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)
        case str() | Path():
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case Section():
            return toml_value(dict(value))
        case Pattern():
            return f"{{ pattern = {toml_value(value.pattern)} }}"
        case dict():
            return f"{{ {', '.join(f'{toml_value(key)} = {toml_value(inner)}' for key, inner in value.items())} }}"
    raise TypeError(f"no TOML for {value!r}")
