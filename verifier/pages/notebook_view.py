"""What a notebook shows of a run: its claim, its numbers with their definitions, and its texts as a table of pandas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from swapproof.encodings.errors import Unsupported

from ..runs.run_folder import Run
from ..runs.run_summary import DEFINITIONS
from .headline import headline
from .page import banner, chosen_radii, interval, percent

COLOURS = {"holds": "#2f8f5b", "incomplete": "#d99a1c", "violated": "#b9424a", "unchecked": "#b9424a"}
PLAIN = ("id", "text", "label", "predicted", "status", "level", "engine", "positions", "candidates", "seconds")
"""Keys of a line that are columns as they are."""


def html_of(folder: Path, summary: Mapping[str, Any]) -> str:
    """A run of `certify` with its claim and its numbers; any other with its verdict."""
    verdict = str(summary.get("verdict", {}).get("sentence", ""))
    if "mmws" not in summary:
        return str(Markup("<p><b>{}</b> {}</p>").format(verdict, where(folder)))
    claim = headline(summary)
    said = verdict if claim is None else f"{claim.sentence}. {verdict}"
    rows = [
        ("texts", f"{summary['texts']:,}"),
        *((name.replace("_", " "), f"{summary[name]:,}") for name in ("exact", "unbreakable", "open", "already_wrong")),
        ("MMWS", interval(summary["mmws"])),
        ("accuracy", percent(summary["accuracy"])),
        *((f"under {radius} swaps", percent(low) if low == high else f"{percent(low)} to {percent(high)}")
          for radius, low, high in chosen_radii(summary)),
    ]  # fmt: skip
    body = Markup("").join(
        Markup('<tr><th style="text-align:left">{}</th><td style="text-align:right">{}</td></tr>').format(*row)
        for row in rows
    )
    return str(
        Markup(
            '<div><p style="border-left:5px solid {};padding-left:10px"><b>{}</b></p><table>{}</table>'
            "<p><small>MMWS: {}. Under swaps: {}.</small></p>{}</div>"
        ).format(
            COLOURS[banner(summary)],
            said,
            body,
            DEFINITIONS["mmws"],
            DEFINITIONS["accuracy_under_attack"],
            where(folder),
        )
    )


def where(folder: Path) -> Markup:
    return Markup("<p><small>{}</small></p>").format(str(Run(folder).report))


def frame_of(folder: Path) -> Any:
    """A row for each text, the ends of its interval as `low` and `high`."""
    try:
        import pandas
    except ImportError:
        raise Unsupported("to_pandas() needs pandas: pip install pandas") from None
    return pandas.DataFrame(list(rows_of(folder)))


def rows_of(folder: Path) -> Iterator[dict[str, Any]]:
    with Run(folder).results.open(encoding="utf-8") as file:  # not splitlines: texts hold line separators of Unicode
        for line in map(json.loads, file):
            ends = line.get("min_swaps") or line.get("robust_fraction") or line.get("safe_radius") or {}
            swaps = (line.get("witness") or {}).get("swaps", ())
            yield {
                **{name: line[name] for name in PLAIN if name in line},
                "low": ends.get("low"),
                "high": ends.get("high"),
                "swaps": ", ".join(f"{one['from']} -> {one['to']}" for one in swaps),
            }
