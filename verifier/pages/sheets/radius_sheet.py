"""report.html of `measure --quantity msr`: safe radii of texts, and their words shaded by how little they may move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..printing.radius_printing import SHADES, interval, number
from .plots import Series, drawn_bars, drawn_trend
from .sheet import BANNERS, Card, Column, Detail, Figure, Part, Row, Rows, Sheet

BARS = 20
Summary = Mapping[str, Any]
Lines = Sequence[Mapping[str, Any]]


def radius_sheet(summary: Summary, lines: Lines) -> Sheet:
    found = [line for line in lines if line["status"] in ("exact", "open")]
    claim = f"On average the vectors of a text may move by {interval(summary['safe_radius'])} before the class changes."
    return Sheet(
        title="How far may the vectors of words move?",
        lead=f"Safe radius (MSR) of {summary['texts']:,} labelled texts.",
        banner=BANNERS[summary["verdict"]["exit_code"]],
        claim=claim if found else "No text was measured.",
        said=f"{summary['verdict']['sentence'].capitalize()}.",
        definition=f"{summary['definition']}.",
        cards=tuple(cards(summary)),
        parts=(
            Part(
                "Radii",
                (
                    Figure("Texts by safe radius", drawn(line["safe_radius"]["low"] for line in found),
                           "Texts by the low end of their radius: proved, certificate checked."),
                    Figure("Words or sets by radius", drawn(part["low"] for line in found for part in parts(line)),
                           "By the low end. What moves together is said above."),
                    *trend(summary),
                ),
            ),
        ),
        rows=rows(lines),
        closing="`swapproof check RUN` on the folder of this page checks every certificate and every point again.",
    )  # fmt: skip


def parts(line: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Words, or sets of words that move together."""
    found: Sequence[Mapping[str, Any]] = line["sets"] if "sets" in line else line.get("words", ())
    return found


def cards(summary: Summary) -> Iterator[Card]:
    share = summary["normalised"]
    yield Card(interval(summary["safe_radius"]), "radius of a text", "mean of low ends and of high ends")
    yield Card(interval(summary["set_radius"]), "radius of what moves", "mean over words, or over sets of words")
    yield Card(f"{number(share['low'])} to {number(share['high'])}", "of the diameter",
               "the same, by the greatest distance of two words")  # fmt: skip
    yield Card(f"{summary['exact']:,} of {summary['measured']:,}", "exact", "texts whose ends differ by at most 0.1 %")
    yield Card(f"{summary['already_wrong']:,}", "already wrong", "radius 0, left out of means")


def drawn(radii: Iterator[float]) -> Any:
    values = list(radii)
    top = max(values, default=0.0) or 1.0
    counts = [0] * BARS
    for value in values:
        counts[min(BARS - 1, int(BARS * value / top))] += 1
    bars = [(f"{top * place / BARS:.3g}", count) for place, count in enumerate(counts)]
    return drawn_bars("By radius", bars, "radius", every=5)


def trend(summary: Summary) -> Iterator[Figure]:
    """Low ends by the position of the word."""
    if summary["by_position"]:
        points = tuple((at, low, low) for at, low in enumerate(summary["by_position"], 1) if low is not None)
        drawing = drawn_trend("Mean low end by position", [Series("low end", points)], "position of the word")
        yield Figure("Radius by position", drawing, "Mean low end of the words there, over the texts that have one.")


def rows(lines: Lines) -> Rows:
    def strength(line: Mapping[str, Any]) -> tuple[bool, float, int]:
        return line["status"] not in ("exact", "open"), line["safe_radius"]["low"] or 0.0, line["id"]

    def each() -> Iterator[Row]:
        for line in sorted(lines, key=strength):
            ends = line["safe_radius"]
            cells = (line["id"], [ends["low"], ends["high"]], line["status"].replace("_", " "), line["label"],
                     line["positions"], line["seconds"], line["text"])  # fmt: skip
            yield cells, [*details(line)]

    return Rows(
        "Smallest radius first; texts that were not measured come last.",
        (
            Column("text", "number"), Column("radius", "number"), Column("status", "choice"), Column("label", "choice"),
            Column("words", "number"), Column("seconds", "number"), Column("what is said", "text"),
        ),
        len(lines),
        each,
        "Radius: as [low, high]. Opened, the words are shaded by rank: the darkest may move least.",
    )  # fmt: skip


def details(line: Mapping[str, Any]) -> Iterator[Detail]:
    """The words shaded, then every radius."""
    words = () if "sets" in line else line.get("words", ())
    if words:
        yield "Words, the most salient darkest", " ".join(one["word"] for one in words), list(shades(words))
    for one in sorted(parts(line), key=lambda part: part["low"])[:8]:
        name = one.get("word") or " ".join(one.get("words", ()))
        swap = one.get("swap")
        said = f"radius {number(one['low'])} to {number(one['high'])}"
        yield name, said + (f"; {swap['to']} at distance {number(swap['distance'])} changes it" if swap else ""), ()


def shades(words: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Places in the joined words, in code points, each with its shade by rank of the low ends."""
    order = sorted(range(len(words)), key=lambda at: words[at]["low"])
    rank = {at: place for place, at in enumerate(order)}
    start = 0
    for at, one in enumerate(words):
        end = start + len(one["word"])
        shade = min(len(SHADES) - 1, rank[at] * len(SHADES) // len(words))
        yield {"position": at, "characters": [start, end], "shade": shade}
        start = end + 1
