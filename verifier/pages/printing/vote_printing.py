"""What `measure --quantity vote` prints: how many swaps votes withstand, and what released code would claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def print_vote(summary: Mapping[str, Any]) -> None:
    from ..terminal import terminal

    released = summary["released"]
    for finding in summary.get("vacuous", ()):
        print(f"This says little: {finding}.")
    print(
        f"{summary['texts']} texts: {summary['certified']} with more than half of all random texts for certain, "
        f"{summary['already_wrong']} answered wrongly, {summary['open']} open; "
        f"of {summary['all_asked']} all random texts were asked"
    )
    for radius, part in summary["certified_accuracy"].items():
        swaps = "1 swap" if radius == "1" else f"{radius} swaps"
        print(f"robust to {swaps}: {part:.2%} of all texts, each at confidence {summary['confidence']:g}")
    print(
        f"the released formula would claim a radius of {released['claims']} texts; of {released['greater_than_sound']} "
        f"a greater one than is sound, and of {released['vanish']} where none is"
    )
    terminal().print(summary["definition"], style="dim")
