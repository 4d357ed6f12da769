"""report.html of `measure --quantity vote`: how many swaps votes over random texts withstand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...exit_codes import HOLDS, INCOMPLETE
from .sheet import BANNERS, Card, Column, Grid, Part, Row, Rows, Sheet

Summary = Mapping[str, Any]
Lines = Sequence[Mapping[str, Any]]


def vote_sheet(summary: Summary, lines: Lines) -> Sheet:
    shares, released = summary["certified_accuracy"], summary["released"]
    little = summary.get("vacuous", ())
    code = summary["verdict"]["exit_code"]
    return Sheet(
        title="How many swaps does the vote withstand?",
        lead=f"The vote over all random texts of {summary['texts']:,} labelled texts.",
        banner=BANNERS[INCOMPLETE if little and code == HOLDS else code],
        claim=f"This says little: {little[0]}."
        if little
        else f"{shares['1']:.1%} of the texts keep their class under any swap of one word, each at confidence "
        f"{summary['confidence']:g}.",
        said="The network was run: nothing is proved about it."
        if little
        else f"{summary['verdict']['sentence'].capitalize()}. The network was run: nothing is proved about it.",
        definition=summary["definition"],
        cards=(
            Card(
                f"{summary['certified']:,}", "for certain", "texts whose class has more than half of all random texts"
            ),
            Card(
                f"{summary['all_asked']:,}", "all asked", "texts whose random texts were all asked, so that it is sure"
            ),
            Card(f"{released['greater_than_sound']:,}", "claims too great", "of the released formula"),
            Card(f"{released['vanish']:,}", "claims of nothing", "of the released formula, where no swap is sound"),
        ),
        parts=(
            Part(
                "Radii",
                grids=(
                    Grid(
                        "Robust texts",
                        ("swaps", "of all texts"),
                        tuple((radius, f"{part:.2%}") for radius, part in shares.items()),
                        "Of all texts, those whose vote no swap of so many words changes, each at its confidence.",
                    ),
                ),
            ),
        ),
        rows=rows(lines),
        closing="`swapproof check RUN` on the folder of this page takes every vote again, with the same draws.",
    )


def rows(lines: Lines) -> Rows:
    def each() -> Iterator[Row]:
        for line in sorted(lines, key=lambda one: ((one["smoothed_radius"] or {}).get("low") or 0, one["id"])):
            vote, radius = line["vote"] or {}, line["smoothed_radius"] or {}
            cells = (line["id"], radius.get("low"), line["released_claim"], vote.get("low"),
                     line["status"].replace("_", " "), line["label"], line["positions"], line["text"])  # fmt: skip
            yield cells, ()

    return Rows(
        "Smallest radius first.",
        (
            Column("text", "number"), Column("radius", "number"), Column("released", "number"),
            Column("chance at least", "number"), Column("status", "choice"), Column("label", "choice"),
            Column("words", "number"), Column("what is said", "text"),
        ),
        len(lines),
        each,
        "Radius: swaps that the vote withstands for certain; none where the class has not more than half for certain.",
        opens=False,
    )  # fmt: skip
