"""What the inputs and outputs of a model are for: tokens, or what is the same whatever is swapped, such as a mask;
scores, and what they were in a model as it was given, from which one that can be read was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadInput, Unsupported

TOKENS, POSITIONS, LENGTH = "tokens", "positions", "length"
NAMES: dict[str, str] = {
    "input_ids": TOKENS,
    "tokens": TOKENS,
    "token_ids": TOKENS,
    "ids": TOKENS,
    "input": TOKENS,
    "attention_mask": "mask",
    "input_mask": "mask",
    "token_type_ids": "types",
    "segment_ids": "types",
    "position_ids": "positions",
    "positions": "positions",
    "lengths": LENGTH,
    "length": LENGTH,
    "seq_lengths": LENGTH,
    "sequence_length": LENGTH,
}
"""Usual names of inputs -> their roles; of names in capitals, or with a number of the graph behind, the same."""
ROLES = ("tokens", "mask", "types", "positions", "length")


@dataclass(frozen=True)
class ModelInput:
    """One input of a model; `length` None where it takes any."""

    name: str
    type: str
    role: str
    length: int | None


def roles_of(names: Sequence[str], given: Mapping[str, str] | None, path: str) -> tuple[str, ...]:
    """The role of each input: as given, else by its name; a single one reads the tokens whatever it is called."""
    if given is not None:
        other = sorted({*given} ^ {*names})
        if other:
            met = "names no input of the model" if other[0] in given else "is missing"
            raise BadInput(f"{path}: [model] inputs: {other[0]} {met}; its inputs are {', '.join(names)}")
        found = tuple(given[name] for name in names)
    elif len(names) == 1:
        found = (TOKENS,)
    else:
        found = tuple(NAMES.get(name.lower().split(":")[0], "") for name in names)
    for name, role in zip(names, found, strict=True):
        if role not in ROLES:
            why = f"is {role}, which cannot be read" if role else "has a role that its name does not tell"
            every = ", ".join(f'{one} = "{known or "?"}"' for one, known in zip(names, found, strict=True))
            refused = Unsupported if role else BadInput  # a model of texts can be run
            raise refused(f"{path}: input {name} {why}: set [model] inputs = {{ {every} }} ({', '.join(ROLES)})")
    if found.count(TOKENS) != 1:
        shown = ", ".join(f"{name} ({role})" for name, role in zip(names, found, strict=True))
        refused = Unsupported if TOKENS in found else BadInput  # a model of two texts can be run
        raise refused(
            f"{path}: of a model that is read, one input reads the tokens, not {found.count(TOKENS)}: {shown}; "
            "see [model] inputs"
        )
    return found


@dataclass(frozen=True)
class Scores:
    """What the output of a model means, and when the second of two classes wins."""

    classes: int
    output: str | int | None = None
    """The one of several that holds the scores."""
    meaning: str = "logits"
    """logits, probabilities, log_probabilities or sigmoid."""
    threshold: float | None = None
    column: int | None = None


@dataclass(frozen=True)
class Given:
    """`path` is None where only its hash is known; `notes`: what was changed, in order."""

    path: Path | None
    sha256: str
    notes: tuple[str, ...]
    output: str = ""
    scores: Scores = Scores(2)
    headless: bool = False
    """Whether the function at the end was left out."""

    @property
    def remark(self) -> str:
        return f"made from the model given (SHA-256 {self.sha256}): {'; '.join(self.notes)}"


def type_named(number: int) -> str:
    """An element type of ONNX; a file may have any number there."""
    import onnx

    types = onnx.TensorProto.DataType
    return str(types.Name(number)).lower() if number in types.values() else f"of the unknown type {number}"
