"""A measurement of safe radii on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SHOWN = 8
"""Texts whose words are shown as a map."""
SHADES = "█▓▒░ "
"""From the smallest radius, the most salient word, to the greatest."""


def print_radii(summary: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
    """Counts and means, then the first texts with their words shaded by their radii."""
    from rich.table import Table

    from ..tables import print_table
    from ..terminal import terminal

    console, one = terminal(), summary["words"] == "one"
    what = "word" if one else "set of words"
    radius, each, share = summary["safe_radius"], summary["set_radius"], summary["normalised"]
    rows = [
        ("texts measured", f"{summary['measured']} of {summary['texts']}"),
        ("already wrong (radius 0)", str(summary["already_wrong"])),
        ("radius of a text, mean", interval(radius)),
        (f"radius of a {what}, mean", interval(each)),
        ("  divided by the diameter", f"{number(share['low'])} to {number(share['high'])}"),
        ("diameter of the embedding", f"{number(summary['diameter'])} ({summary['dimensions'] or '-'} dimensions)"),
        ("words exact" if one else "sets of words exact", f"{summary['sets_exact']} of {summary['sets']}"),
        ("texts exact", f"{summary['exact']} of {summary['measured']}"),
    ]
    if one:
        safe = summary["any_word"]
        rows += [
            ("words that a word can change", f"{summary['words_that_change_it']} of {summary['sets']}"),
            ("safe against any word", f"{safe['proved']} proved, {safe['evaluated']} evaluated"),
        ]
        if "alike" in summary:
            like = summary["alike"]
            rows.append(("  by one of the same part of speech", f"{like['words']} of {summary['sets']}"))
            rows.append(("  their mean distance; any word's", f"{number(like['distance'])}; {number(like['of_any'])}"))
        if summary["same_vector"]:
            rows.append(("swaps at distance 0 (one vector)", str(summary["same_vector"])))
    for name, effects in summary["agreement"].items():
        for effect, value in effects.items():
            rows.append((f"rank correlation of {name} and {effect.replace('_', ' ')}", number(value)))
    table = Table(title="Safe radius (MSR)", title_justify="left")
    table.add_column("")
    table.add_column(summary["norm"], justify="right")
    for row in rows:
        table.add_row(*row)
    print_table(console, table)
    console.print(f"{summary['definition']}.", style="dim")
    shown = [line for line in lines if line["status"] in ("exact", "open")][:SHOWN]
    if one and shown:
        console.print("Words by their radius, the smallest darkest:")
        for line in shown:
            console.print(f"{line['id']:>5}  {shaded(line['words'])}", markup=False, highlight=False)
    console.print(summary["verdict"]["sentence"])


def shaded(words: Sequence[Mapping[str, Any]]) -> str:
    """Each word behind a mark: five shades by rank of the low ends."""
    order = sorted(range(len(words)), key=lambda at: words[at]["low"])
    rank = {at: place for place, at in enumerate(order)}
    marks = [SHADES[min(len(SHADES) - 1, rank[at] * len(SHADES) // len(words))] for at in range(len(words))]
    return " ".join(f"{mark}{part['word']}" for mark, part in zip(marks, words, strict=True))


def interval(ends: Mapping[str, Any]) -> str:
    if ends["high"] is not None or not ends["of"]:
        return f"{number(ends['low'])} to {number(ends['high'])}"
    met = f"{ends['with_high']} of {ends['of']} at most {number(ends['high_of_these'])}" if ends["with_high"] else ""
    return f"{number(ends['low'])} or more ({met or 'no class change met'})"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
