"""A row of TextAttack's CSV log (0.3.11): one text, what was made of it, scores and outputs, queries, how it ended.

Swapped words stand in double brackets, line breaks as <SPLIT>; of several fields each begins with its name in four
brackets. Texts are quoted and numbers are not.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.swapped_text import SwapText

from ...runs.overwriting import first_line

Result = Literal["Successful", "Failed", "Skipped", "Maximized"]
COLUMNS = (
    *("original_text", "perturbed_text", "original_score", "perturbed_score", "original_output", "perturbed_output"),
    *("ground_truth_output", "num_queries", "result_type"),
)
NEEDED = ("original_text", "perturbed_text", "num_queries", "result_type")
BREAK = "<SPLIT>"
NAMED_FIELD = re.compile(r"(?:^|<SPLIT>)\[\[\[\[[^\]\[]*\]\]\]\]: ")
MARK = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
REACHED: tuple[Result, ...] = ("Successful", "Maximized")


@dataclass(frozen=True)
class Logged:
    """`original` and `perturbed`: the fields of the text, without marks."""

    line: int
    original: tuple[str, ...]
    perturbed: tuple[str, ...]
    queries: int
    result: Result


@dataclass(frozen=True)
class Row:
    """As it is written: texts with marks, and the numbers in the order of the columns."""

    original: str
    perturbed: str
    scores: tuple[float, float]
    outputs: tuple[int, int]
    label: int
    queries: int
    result: Result


def written(rows: Iterable[Row]) -> str:
    """The file as pandas writes it with QUOTE_NONNUMERIC."""
    file = io.StringIO()
    table = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in rows:
        table.writerow(
            [row.original, row.perturbed, *row.scores, *row.outputs, row.label, row.queries, row.result],
        )
    return file.getvalue()


def is_log(path: Path) -> bool:
    """Whether a file begins with the line of columns that `written` begins with."""
    return first_line(path) == written([]).encode()


def marked(fields: Sequence[str], names: Sequence[str], spans: Sequence[tuple[int, int]], moving: int) -> str:
    """The fields as the log has them, these parts of the one that moves in brackets."""
    shown = list(fields)
    for start, end in sorted(spans, reverse=True):
        text = shown[moving]
        shown[moving] = f"{text[:start]}[[{text[start:end]}]]{text[end:]}"
    if len(shown) > 1:
        shown = [f"[[[[{name.capitalize()}]]]]: {text}" for name, text in zip(names, shown, strict=True)]
    return "\n".join(shown).replace("\n", BREAK)


def read_log(path: Path) -> list[Logged]:
    """Raises BadInput for what is no such log."""
    usual = csv.field_size_limit(sys.maxsize)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: not a CSV file in UTF-8 ({error})") from None
    finally:
        csv.field_size_limit(usual)
    missing = [name for name in NEEDED if not rows or rows[0].get(name) is None]
    if missing:
        raise BadInput(f"{path}: not a log of TextAttack: no column {missing[0]}; it writes {', '.join(COLUMNS)}")
    return [logged(path, number, row) for number, row in enumerate(rows, start=1)]


def logged(path: Path, number: int, row: dict[str, str | None]) -> Logged:
    result = next((one for one in get_args(Result) if one == row["result_type"]), None)
    if result is None:
        raise BadInput(
            f"{path}, row {number}: result_type {row['result_type']!r}; there are {', '.join(get_args(Result))}"
        )
    try:
        queries = int(float(row["num_queries"] or ""))
    except (ValueError, OverflowError):
        raise BadInput(f"{path}, row {number}: num_queries {row['num_queries']!r} is no number") from None
    original, perturbed = (fields_of(row[name] or "") for name in ("original_text", "perturbed_text"))
    return Logged(number, original, perturbed, queries, result)


def fields_of(text: str) -> tuple[str, ...]:
    """Without names and marks."""
    parts = NAMED_FIELD.split(text)
    fields = parts[1:] if len(parts) > 1 and not parts[0] else [text]
    return tuple(MARK.sub(r"\1", field).replace(BREAK, "\n") for field in fields)


def plainly(fields: Sequence[str]) -> tuple[str, ...]:
    """What two fields have in common that differ in white space, or in brackets that may have been marks."""
    return tuple(" ".join(MARK.sub(r"\1", field).split()) for field in fields)


def row_of(text: SwapText, moved: str) -> list[int] | None:
    """The option of every word that makes this sentence, whatever its letters' case; None where none does.

    `reached` holds, for every place in the sentence that some choice for the words so far leads to, one such choice.
    """
    sentence, reached = moved.casefold(), {0: list[int]()}
    for before, span, options in zip(text.between, text.spans, text.options, strict=False):
        after = dict[int, list[int]]()
        gap = before.casefold()
        for place, row in reached.items():
            if sentence.startswith(gap, place):
                for number, option in enumerate((text.text[slice(*span)], *options[1:])):
                    if sentence.startswith(option.casefold(), place + len(gap)):
                        after.setdefault(place + len(gap) + len(option.casefold()), [*row, number])
        reached = after
    last = text.between[-1].casefold()
    return next((row for place, row in reached.items() if sentence[place:] == last), None)
