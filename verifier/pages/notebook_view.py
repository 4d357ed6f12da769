"""What a notebook shows of a run: its claim, its numbers with their definitions, and its texts as a table of pandas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from swapproof.encodings.errors import BadInput, Unsupported

from ..runs.run_folder import Run
from ..runs.run_summary import DEFINITIONS
from .headline import headline
from .page import banner, both_ends, chosen_radii, interval, percent

COLOURS = {"holds": "#2f8f5b", "incomplete": "#d99a1c", "violated": "#b9424a", "unchecked": "#b9424a"}
PLAIN = (
    "id",
    "text",
    "label",
    "predicted",
    "status",
    "level",
    "engine",
    "positions",
    "candidates",
    "words_that_flip_it",
    "ambiguous",
    "seconds",
)
"""Keys of a line that are columns as they are."""
INTERVALS = ("min_swaps", "robust_fraction", "safe_radius", "smoothed_radius")
"""What a run may have found of a text."""


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
        *((f"under {radius} swaps", both_ends(low, high))
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


def html_of_comparison(folder: Path, sentences: Iterable[str]) -> str:
    said = Markup("").join(Markup("<p><b>{}.</b></p>").format(one) for one in sentences)
    return str(said + Markup("<p><small>{}</small></p>").format(str(folder / "compare.html")))


def frame_of(folder: Path) -> Any:
    """A row for each text, the ends of its interval as `low` and `high`."""
    return pandas().DataFrame(list(rows_of(folder)))


def frame_of_file(path: Path) -> Any:
    return pandas().read_csv(path)


def pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise Unsupported("to_pandas() needs pandas: pip install pandas") from None
    return pandas


def rows_of(folder: Path) -> Iterator[dict[str, Any]]:
    path = Run(folder).results
    if not path.is_file():
        raise BadInput(f"{folder}: not finished; give its command again")
    with path.open(encoding="utf-8") as file:  # not splitlines: texts hold line separators of Unicode
        for line in map(json.loads, file):
            ends: Mapping[str, Any] = next((line[name] for name in INTERVALS if line.get(name)), {})
            swaps = (line.get("witness") or {}).get("swaps", ())
            yield {
                **{name: line[name] for name in PLAIN if name in line},
                "low": ends.get("low"),
                "high": ends.get("high"),
                "swaps": ", ".join(f"{one['from']} -> {one['to']}" for one in swaps),
            }
