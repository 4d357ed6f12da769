"""What an ONNX model reads and answers: the roles of its inputs, and the output that holds the scores."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import BadInput

ROLES = ("tokens", "mask", "types", "positions", "length", "text")
NAMES: Mapping[str, frozenset[str]] = {
    "tokens": frozenset(
        {
            "input_ids",
            "input_word_ids",
            "token_ids",
            "tokens",
            "token",
            "ids",
            "input",
            "inputs",
            "word_ids",
            "text_ids",
        }
    ),
    "mask": frozenset({"attention_mask", "input_mask", "mask", "attn_mask"}),
    "types": frozenset({"token_type_ids", "input_type_ids", "type_ids", "segment_ids", "token_types", "segments"}),
    "positions": frozenset({"position_ids", "positions", "pos_ids"}),
    "length": frozenset(
        {
            *("length", "lengths", "len", "lens", "input_length", "input_lengths", "seq_len", "seq_lens"),
            *("seq_length", "seq_lengths", "sequence_length", "sequence_lengths", "text_lengths", "x_lengths", "x_len"),
        }
    ),
}
"""By which inputs are known, in small letters."""
INTEGERS = {f"tensor({kind}{bits})": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
NUMBERS = INTEGERS | {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16"}
STRINGS = "tensor(string)"


class Declared(Protocol):
    """An input or output, as onnxruntime shows it."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def shape(self) -> Sequence[Any]: ...


def roles_of(inputs: Sequence[Declared]) -> dict[str, str] | str:
    """Input -> role, by well-known names and types; or, in one line, what cannot be told and what to set."""
    roles: dict[str, str] = {}
    unknown: list[Declared] = []
    for given in inputs:
        role = "text" if given.type == STRINGS else _role(given)
        if role is None:
            unknown.append(given)
        else:
            roles[given.name] = role
    whole = [given for given in unknown if given.type in INTEGERS and len(given.shape) in (0, 2)]
    if len(unknown) == 1 and whole and not {"tokens", "text"} & set(roles.values()):
        roles[whole[0].name], unknown = "tokens", []
    if unknown:
        listed = ", ".join(described(given) for given in unknown)
        known = "".join(f'{_key(name)} = "{role}", ' for name, role in roles.items())
        asked = ", ".join(f'{_key(given.name)} = "..."' for given in unknown)
        one = len(unknown) == 1
        return (
            f"{'input' if one else 'inputs'} of unknown role: {listed}: set [model] inputs = {{ {known}{asked} }}, "
            f"each one of {', '.join(ROLES)}"
        )
    if not {"tokens", "text"} & set(roles.values()):
        listed = ", ".join(described(given) for given in inputs) or "none"
        return f'no input of tokens or text: {listed}: set [model] inputs = {{ NAME = "tokens" }}'
    return {given.name: roles[given.name] for given in inputs}


def _key(name: str) -> str:
    """As TOML writes it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _role(given: Declared) -> str | None:
    name = given.name.lower().split(":")[0].rsplit("/", 1)[-1].rsplit(".", 1)[-1].removeprefix("serving_default_")
    found = next((role for role, names in NAMES.items() if name in names), None)
    if found == "mask":
        return found if given.type in NUMBERS or given.type == "tensor(bool)" else None
    return found if given.type in INTEGERS else None


def described(given: Declared) -> str:
    """`input_ids int64 [batch, 128]`."""
    kind = given.type.removeprefix("tensor(").removesuffix(")")
    return f"{given.name} {kind} [{', '.join('?' if size is None else str(size) for size in given.shape)}]"


@dataclass(frozen=True)
class Input:
    """`field` is the text that it belongs to, of a model that reads each text of a pair by inputs of its own."""

    name: str
    role: str
    dtype: str
    rank: int
    field: int


@dataclass(frozen=True)
class Signature:
    """`batch` and `length` where the model has only one of them; `tokens` is the number of token inputs."""

    inputs: tuple[Input, ...]
    output: str
    batch: int | None
    length: int | None
    same_width: bool = False
    """Whether both texts of a pair are padded to the same width: the model calls their lengths by one name."""

    @property
    def roles(self) -> set[str]:
        return {given.role for given in self.inputs}

    @property
    def reads_text(self) -> bool:
        return "text" in self.roles

    @property
    def streams(self) -> int:
        """How many rows of tokens (or texts) a sentence becomes."""
        return 1 + max(given.field for given in self.inputs)


RANKS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("tokens", "mask", "types", "positions"), (2,)),
    **dict.fromkeys(("length", "text"), (1, 2)),
}


def signature_of(
    inputs: Sequence[Declared], outputs: Sequence[Declared], roles: Mapping[str, str] | None, output: str | int | None
) -> Signature:
    """By the roles that a task gives, or else those that are recognised."""
    names = [given.name for given in inputs]
    if roles is None:
        found = roles_of(inputs)
        if isinstance(found, str):
            raise BadInput(found)
        roles = found
    elif set(roles) != set(names):
        wrong = sorted(set(roles) - set(names)) or sorted(set(names) - set(roles))
        said = "there is no input" if set(roles) - set(names) else "no role is given for input"
        raise BadInput(f"[model] inputs: {said} {', '.join(wrong)}; the model reads {', '.join(names)}")
    by_name = {given.name: given for given in inputs}
    counts: dict[str, int] = {}
    read: list[Input] = []
    batches: dict[int, str] = {}
    lengths: dict[int, str] = {}
    for name, role in roles.items():  # the order of the task's map says which text is the first of a pair
        given = by_name[name]
        read.append(_input(given, role, counts.setdefault(role, 0)))
        counts[role] += 1
        sizes = [size if isinstance(size, int) and size > 0 else None for size in given.shape]
        if sizes and sizes[0] is not None:
            batches.setdefault(sizes[0], name)
        if role not in ("length", "text") and len(sizes) == 2 and sizes[1] is not None:
            lengths.setdefault(sizes[1], name)
    main = max(counts.get("tokens", 0), counts.get("text", 0))
    if not main:
        raise BadInput(f"[model] inputs: none of {', '.join(names)} has the role tokens or text")
    if odd := [role for role, count in counts.items() if count != main]:
        raise BadInput(f"[model] inputs: {main} of tokens or text, and {counts[odd[0]]} of the role {odd[0]}")
    for found_sizes, what in ((batches, "batches"), (lengths, "lengths")):
        if len(found_sizes) > 1:
            listed = " and ".join(f"{name} {size}" for size, name in found_sizes.items())
            raise BadInput(f"inputs of different {what}: {listed}; only one can be read")
    chosen = _output(outputs, output)
    batch, length = next(iter(batches), None), next(iter(lengths), None)
    widths = [by_name[given.name].shape[1:] for given in read if given.role == "tokens"]
    same = len(widths) > 1 and all(width and width == widths[0] for width in widths) and widths[0][0] is not None
    return Signature(tuple(read), chosen.name, batch, length, same)


def _input(given: Declared, role: str, field: int) -> Input:
    if role not in RANKS:
        raise BadInput(f"[model] inputs: {given.name} has the role {role!r}; roles are {', '.join(ROLES)}")
    rank = len(given.shape) or RANKS[role][0]
    if rank not in RANKS[role]:
        raise BadInput(f"input {described(given)}: {role} are read as {_shape(role)}")
    if role == "text":
        if given.type != STRINGS:
            raise BadInput(f"input {described(given)}: text is read as strings")
        return Input(given.name, role, "str", rank, field)
    dtype = "bool" if given.type == "tensor(bool)" and role == "mask" else NUMBERS.get(given.type)
    if dtype is None:
        raise BadInput(f"input {described(given)}: {role} are read as numbers")
    return Input(given.name, role, dtype, rank, field)


def _shape(role: str) -> str:
    return "[batch] or [batch, 1]" if role in ("length", "text") else "[batch, length]"


def _output(outputs: Sequence[Declared], chosen: str | int | None) -> Declared:
    """The one that is named or numbered; else the only one that can be scores."""
    listed = ", ".join(described(given) for given in outputs)
    if isinstance(chosen, int):
        if chosen >= len(outputs):
            raise BadInput(f"[model] output = {chosen}: the model has {len(outputs)}, counted from 0: {listed}")
        found = [outputs[chosen]]
    elif chosen is not None:
        found = [given for given in outputs if given.name == chosen]
        if not found:
            raise BadInput(f"[model] output = {chosen!r}: there is none of this name: {listed}")
    else:
        found = list(outputs) if len(outputs) == 1 else [given for given in outputs if _can_be_scores(given)]
        if len(found) != 1:
            raise BadInput(
                f"{len(found)} of {len(outputs)} outputs can be scores [batch, classes]: {listed}: set [model] output "
                f"= {(found or list(outputs))[0].name!r}, or another of them"
            )
    (one,) = found
    if one.type in INTEGERS or one.type in (STRINGS, "tensor(bool)"):
        raise BadInput(f"output {described(one)}: an answer, not scores; export the model with its scores")
    return one


def _can_be_scores(given: Declared) -> bool:
    if _is_map(given):
        return True
    moving = [size for place, size in enumerate(given.shape) if place == 0 or size != 1]
    return given.type in NUMBERS and given.type not in INTEGERS and (not given.shape or len(moving) in (1, 2))


def _is_map(given: Declared) -> bool:
    """A list of tables, class -> probability, as scikit-learn's classifiers are exported."""
    return given.type.startswith("seq(map(")


def scores_of(value: Any, sentences: int, output: str) -> NDArray[np.float64]:
    """[sentences, scores]; axes of size 1 behind the first are left out until two are left."""
    if isinstance(value, list):
        columns = sorted(value[0]) if value and isinstance(value[0], dict) else []
        if not columns or any(sorted(row) != columns for row in value):
            raise BadInput(f"output {output}: a list that is no table of scores")
        value = np.array([[row[column] for column in columns] for row in value])
    array = np.asarray(value)
    if array.ndim == 0 or array.shape[0] != sentences or array.dtype.kind != "f":
        raise BadInput(
            f"output {output}: {array.dtype} {list(array.shape)} for {sentences} sentences; scores [batch, classes] "
            "are needed"
        )
    if array.ndim > 2:
        axes = [axis for axis in range(1, array.ndim) if array.shape[axis] == 1]
        array = array.squeeze(axis=tuple(axes[: array.ndim - 2] if len(axes) > array.ndim - 2 else axes))
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not array.shape[1]:
        raise BadInput(
            f"output {output}: {list(array.shape)} for {sentences} sentences; one row of scores each is needed"
        )
    return array.astype(np.float64)
