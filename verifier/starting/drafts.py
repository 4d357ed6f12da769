"""A task file in the making: every line with the reason why it says what it says."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swapproof.models.errors import visible

from ..tasks.task import SECTIONS, toml_value

WIDTH = 116
UP = 2
"""Folders that a relative path may climb; beyond that the whole path says more."""


@dataclass(frozen=True)
class Line:
    """`live`: else it is written as a comment, for somebody to complete or to think about."""

    value: Any
    reason: str
    live: bool = True


@dataclass
class Draft:
    """By section, then by key, in the order in which they are written."""

    sections: dict[str, dict[str, Line]] = field(default_factory=lambda: {section: {} for section in SECTIONS})

    def set(self, section: str, key: str, value: Any, reason: str, *, live: bool = True) -> None:
        self.sections[section][key] = Line(value, reason, live)

    def get(self, section: str, key: str) -> Any:
        line = self.sections[section].get(key)
        return line.value if line is not None and line.live else None

    def values(self, section: str) -> dict[str, Any]:
        """As a task file would give them."""
        return {key: line.value for key, line in self.sections[section].items() if line.live}

    def text(self, notes: list[str], folder: Path | None) -> str:
        """The task file of this folder (None: of any), its sections apart and above each line its reason."""
        lines = [part for note in notes for part in commented(note)]
        for section, entries in self.sections.items():
            if not entries:
                continue
            lines += ["", f"[{section}]"]
            for key, line in written_order(section, entries):
                lines += commented(line.reason)
                lines.append(f"{'' if line.live else '# '}{key} = {spelt(line.value, folder)}")
        return "\n".join(lines) + "\n"


def spelt(value: Any, folder: Path | None) -> str:
    """As TOML."""
    if isinstance(value, Path):
        return toml_value(value.absolute() if folder is None else from_folder(value, folder))
    return toml_value(tuple(value) if isinstance(value, list) else value)


def commented(sentence: str) -> list[str]:
    return [f"# {part}" for part in textwrap.wrap(visible(sentence), WIDTH, break_long_words=False)]


def written_order(section: str, entries: Mapping[str, Line]) -> Iterator[tuple[str, Line]]:
    """The order in which the sections list their keys."""
    known = list(SECTIONS[section].model_fields)
    yield from sorted(entries.items(), key=lambda entry: known.index(entry[0]))


def from_folder(path: Path, folder: Path) -> str:
    """A path as the task file in this folder says it."""
    relative = Path(os.path.relpath(path.absolute(), folder.absolute()))
    return str(path.absolute()) if relative.parts[: UP + 1].count("..") > UP else relative.as_posix()
