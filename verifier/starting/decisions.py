"""What only somebody who knows the model can say: given on the command line, asked for on a terminal, or demanded."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from swapproof.models.errors import BadInput

from ..tasks.task import SECTIONS

DECIDED = {"label_map", "onnx", "hf", "sklearn", "static", "callable", "endpoint"}
"""Keys of [model] that the first argument says."""
FIRST = ("model", "data", "swaps", "require")


def parse_settings(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`--set KEY=VALUE`, as sections of a task file."""
    found: dict[str, dict[str, Any]] = {section: {} for section in FIRST}
    for setting in settings:
        key, equals, spelt = setting.partition("=")
        key = key.strip()
        if not equals or not key:
            raise BadInput(f"--set {setting}: it is KEY=VALUE, such as --set label=class")
        section, dot, name = key.partition(".")
        if not dot:
            section, name = section_of(key), key
        if section not in found or name not in SECTIONS[section].model_fields or name in DECIDED:
            raise unknown_key(key)
        if (section, name) == ("data", "file"):
            raise BadInput(f"--set {setting}: --data says which file; of synonyms it is --synonyms")
        found[section][name] = value_of(name, spelt.strip())
    return found


def section_of(key: str) -> str:
    return next((section for section in FIRST if key in SECTIONS[section].model_fields), "")


def unknown_key(key: str) -> BadInput:
    known = sorted({name for section in FIRST for name in SECTIONS[section].model_fields} - DECIDED)
    near = get_close_matches(key, known, n=1, cutoff=0.0)[0]
    return BadInput(f"--set {key}: no key of a task file that can be set here: did you mean {near}?")


def value_of(key: str, spelt: str) -> Any:
    """A TOML value; anything else is a string, and of labels the names between commas."""
    try:
        value = tomllib.loads(f"value = {spelt}")["value"]
    except tomllib.TOMLDecodeError:
        value = spelt
    if key == "labels" and isinstance(value, str):
        return [name.strip() for name in value.split(",")]
    if key in ("text", "label", "context", "answer", "vocabulary", "output") and not isinstance(value, str):
        return value if key == "output" and type(value) is int else spelt
    return value


def as_setting(message: str) -> str:
    """What other commands ask to have in the task file, as it is said here."""
    return re.sub(
        r"""set \[model\] (\w+) = (\{[^}]*\}|"[^"]*"|'[^']*'|[^\s,;:]+)""",
        lambda found: f"say --set '{found[1]}={found[2].strip(chr(39))}'",
        message,
    )


class Undecided(BadInput):
    """A decision that a guess must not make."""


def decide(question: str, choices: Mapping[str, str], otherwise: str) -> str:
    """The key of the choice taken on the terminal; where there is none, a line that says how to decide."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Undecided(otherwise)
    print(f"\n{question}")
    keys = list(choices)
    for number, key in enumerate(keys, 1):
        print(f"  {number}  {choices[key]}")
    while True:
        print(f"Which? [1-{len(keys)}, or q to stop] ", end="", flush=True)
        try:
            answer = input().strip().lower()
        except EOFError:
            answer = "q"
        if answer in ("q", "quit"):
            raise Undecided(otherwise)
        if answer.isdecimal() and 1 <= int(answer) <= len(keys):
            return keys[int(answer) - 1]
