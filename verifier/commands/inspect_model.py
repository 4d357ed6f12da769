"""`inspect`: what a model is made of, whether it will be read or run, and everything that stands in the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..exit_codes import HOLDS
from ..starting.inspecting import inspect_model
from ..starting.telling import hang

MARGIN = 14
NAMES = {
    "ir_version": "IR version",
    "producer": "made by",
    "other_operators": "foreign",
    "inputs_problem": "",
    "embedding_tables": "embeddings",
    "refusals": "not read",
    "model_type": "type",
    "longest_text": "longest text",
}
"""Of facts whose keys are not what people call them."""


def command(model: str, *, as_json: bool, trust_pickle: bool) -> int:
    facts = inspect_model(model, trust_pickle=trust_pickle)
    if as_json:
        print(json.dumps({"exit_code": HOLDS, **facts}, indent=2, ensure_ascii=False, default=str))
        return HOLDS
    for key, value in facts.items():
        show(key, value)
    return HOLDS


def show(key: str, value: Any) -> None:
    head = NAMES.get(key, key).ljust(MARGIN)
    match key, value:
        case "files", list():
            print_rows(
                head, [(file["name"], f"{file['bytes']:,} bytes", f"SHA-256 {file['sha256']}") for file in value]
            )
        case "inputs", list():
            print_rows(head, [(port["name"], port["type"], shape(port), port["role"]) for port in value])
        case "outputs", list():
            print_rows(head, [(port["name"], port["type"], shape(port)) for port in value])
        case "embedding_tables", list():
            tables = [(f"{t['rows']:,} x {t['columns']:,}", t["name"], f"read by {t['read_by']}") for t in value]
            print_rows(head, tables) if tables else hang(head, "none")
        case (("refusals" | "remarks"), list()):
            for number, reason in enumerate(value):
                hang(head if number == 0 else " " * MARGIN, str(reason))
        case "road", _:
            hang("will be".ljust(MARGIN), str(value))
        case "model", _:
            hang(head, Path(value).name if Path(value).exists() else str(value))
        case _, dict():
            hang(head, ", ".join(f"{name} {plain(count)}" for name, count in value.items()) or "none")
        case _, list():
            hang(head, ", ".join(map(plain, value)) or "none")
        case _:
            hang(head, plain(value))


def plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def shape(port: dict[str, Any]) -> str:
    known = port["shape"]
    return "any shape" if known is None else f"[{', '.join('?' if d is None else str(d) for d in known)}]"


def print_rows(head: str, rows: Sequence[tuple[str, ...]]) -> None:
    """Columns below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"{head if number == 0 else ' ' * len(head)}{cells}".rstrip())
