"""What is known of a task in the making."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swapproof.models.deployed.swapped_text import Fields
from swapproof.models.recognition.data_sample import Sample
from swapproof.models.recognition.model_kinds import Pointed
from swapproof.models.recognition.onnx_contents import OnnxContents

from .drafts import Draft
from .telling import Findings

FEW = 200
"""Texts that are tried."""


@dataclass(frozen=True)
class Few:
    """Some texts of the data with the labels that stand there; `found`: all labels of the file."""

    sentences: tuple[Fields, ...]
    labels: tuple[str, ...]
    found: tuple[str, ...]
    where: str
    """The column of the labels, for messages."""


@dataclass
class Beginning:
    """`given`: what the user says, by section and key; `trust`: what the command line allows."""

    pointed: Pointed
    sample: Sample
    given: dict[str, dict[str, Any]]
    trust: dict[str, bool]
    draft: Draft
    findings: Findings
    contents: OnnxContents | None = None
    positions: bool = False
    """Whether the model answers a score for each position of a text, and not each for a class or a question."""
    names: Sequence[str] | None = None
    """What the model calls its classes."""

    def column(self, key: str) -> str | None:
        found: str | None = self.draft.get("data", key)
        return found

    @property
    def moving(self) -> int | None:
        """Of pairs, the place of the text that moves."""
        if self.column("context") is None:
            return None
        return 0 if self.draft.get("data", "first") == "text" else 1

    @property
    def pair(self) -> tuple[str, ...]:
        """The columns of a pair, in the order in which the model reads them."""
        text, context = self.column("text"), self.column("context")
        if text is None or context is None:
            return ()
        return (context, text) if self.moving else (text, context)

    @property
    def called_with(self) -> str:
        return "texts" if self.moving is None else "pairs"

    @property
    def texts(self) -> list[str]:
        return [str(row[self.column("text") or ""]) for row in self.rows]

    @property
    def rows(self) -> tuple[dict[str, object], ...]:
        """Those with a text and a label, as certify keeps them."""
        needed = [column for key in ("text", "label", "context") if (column := self.column(key)) is not None]
        return tuple(row for row in self.sample.rows if all(filled(row[name]) for name in needed))

    @property
    def few(self) -> Few:
        label = self.column("label") or ""
        found = tuple(value for value in self.sample.column(label).spellings or () if value)
        sentences = tuple(self.fields(row) for row in self.rows)
        labels = tuple(str(row[label]) for row in self.rows)
        return Few(sentences, labels, found, f"{self.sample.path}: column {label!r}")

    def text(self, folder: Path | None) -> str:
        """The task file that lies there, or wherever."""
        notes = ["Written by swapproof init. Above each line: what was found, and where that comes from."]
        notes += [f"Doubtful: {doubt}" for doubt in self.findings.doubts]
        return self.draft.text(notes, folder)

    def fields(self, row: dict[str, object]) -> Fields:
        """As certify gives them to the model."""
        text, context = str(row[self.column("text") or ""]), self.column("context")
        if context is None:
            return (text,)
        both = (str(row[context]), text)
        return both[::-1] if self.draft.get("data", "first") == "text" else both


def filled(value: object) -> bool:
    return value is not None and bool(str(value).strip())
