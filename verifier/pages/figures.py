"""The figures of the report, as inline SVG: a few hundred bytes a bar, every bar a link to its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

WIDTH, HEIGHT = 480, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 22, 46
WIDEST_BAR = 56
TICKS = 4
SETTLED = ("exact", "unbreakable", "already_wrong")
LEAST_SECONDS = 1e-4
"""What the seconds of a line are rounded to."""
POINTS = 200
"""Of a line of the cactus plot."""
LINES = 6
"""Kinds of lines in the cactus plot."""


@dataclass(frozen=True)
class Bar:
    """Stacked numbers of texts, each with the class that colours it and the filter that selects its rows."""

    name: str
    parts: tuple[tuple[int, str, str], ...]

    @property
    def total(self) -> int:
        return sum(number for number, _, _ in self.parts)


def histogram(summary: Mapping[str, Any]) -> Markup:
    """Texts by min_swaps: exact values, open texts at their low end, those no number of swaps can break, the unsure."""
    bars = list(bars_of(summary))
    top = scale_top(max([1, *(bar.total for bar in bars)]))
    step = (WIDTH - LEFT - RIGHT) / len(bars)
    width = min(WIDEST_BAR, step * 0.72)
    drawn = [axis(top)]
    skip = max(1, len(bars) // 16)
    for index, bar in enumerate(bars):
        middle = LEFT + step * (index + 0.5)
        bottom = float(HEIGHT - BOTTOM)
        for number, kind, link in bar.parts:
            height = (HEIGHT - TOP - BOTTOM) * number / top
            bottom -= height
            drawn.append(
                f'<a href="#{link}"><rect class="{kind}" x="{middle - width / 2:.1f}" y="{bottom:.1f}" '
                f'width="{width:.1f}" height="{height:.1f}"><title>{bar.name}: {number} texts</title></rect></a>'
            )
        if bar.total and len(bars) <= 40:
            drawn.append(f'<text class="count" x="{middle:.1f}" y="{bottom - 5:.1f}">{bar.total}</text>')
        if index % skip == 0 or not bar.name.isdecimal():
            lower = 20 if bar.name == "ambiguous" else 0  # under the others: it is longer than a bar is wide
            drawn.append(f'<text class="tick" x="{middle:.1f}" y="{HEIGHT - BOTTOM + 16 + lower}">{bar.name}</text>')
    drawn.append(f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">swaps needed to change the answer</text>')
    return svg("Number of texts by minimum number of swaps", drawn)


def bars_of(summary: Mapping[str, Any]) -> Iterator[Bar]:
    """From 0 (already wrong) to the largest number of swaps seen, then `never` and, if there are such, `ambiguous`."""
    exact, open_at = summary["exact_counts"], summary["open_counts"]
    for swaps in range(max([1, *map(int, exact), *map(int, open_at)]) + 1):
        parts = [
            (exact.get(str(swaps), 0), "exact", f"rows?status=exact&amp;low={swaps}"),
            (open_at.get(str(swaps), 0), "open", f"rows?status=open&amp;low={swaps}"),
        ]
        if swaps == 0:
            parts.insert(0, (summary["already_wrong"], "already_wrong", "rows?status=already_wrong"))
        yield Bar(str(swaps), tuple(part for part in parts if part[0]))
    unbreakable = (summary["unbreakable"], "unbreakable", "rows?status=unbreakable")
    yield Bar("never", (unbreakable,) if summary["unbreakable"] else ())
    if summary["ambiguous"]:
        yield Bar("ambiguous", ((summary["ambiguous"], "ambiguous", "rows?status=ambiguous"),))


def accuracy_curve(summary: Mapping[str, Any], attacks: Sequence[tuple[str, Sequence[float]]] = ()) -> Markup:
    """Accuracy under attack by number of swaps: the band between what is proved and what is not yet broken; beside it
    what single attacks leave unbroken, from 0 swaps on."""
    shares = [(int(radius), both["low"], both["high"]) for radius, both in summary["accuracy_under_attack"].items()]
    shares.insert(0, (0, summary["accuracy"], summary["accuracy"]))
    last = shares[-1][0]
    step = (WIDTH - LEFT - RIGHT) / (last + 1)

    def steps(each: Sequence[float]) -> list[str]:
        points = []
        for (radius, *_), share in zip(shares, each, strict=False):
            y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
            points += [f"{LEFT + step * radius:.1f},{y:.1f}", f"{LEFT + step * (radius + 1):.1f},{y:.1f}"]
        return points

    low, high = (steps([share[which] for share in shares]) for which in (1, 2))
    # The high end is a broad line under the thin one of the low end: where they coincide both are seen.
    drawn = [
        axis(1.0, percent=True),
        f'<polygon class="band" points="{" ".join(high + low[::-1])}"/>',
        f'<polyline class="high" points="{" ".join(high)}"/>',
        f'<polyline class="low" points="{" ".join(low)}"/>',
    ]
    for number, (_, unbroken) in enumerate(attacks):
        drawn.append(f'<polyline class="attack attack-{number % LINES}" points="{" ".join(steps(unbroken))}"/>')
    for radius in range(0, last + 1, max(1, (last + 1) // 16)):
        x = LEFT + step * (radius + 0.5)
        drawn.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}">{radius}</text>')
    drawn.append(f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">swaps allowed</text>')
    return svg("Accuracy under attack by number of swaps", drawn)


def settled_times(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Engine -> seconds of the texts whose intervals it closed, in ascending order."""
    found: dict[str, list[float]] = {}
    for line in lines:
        if line["status"] in SETTLED:
            found.setdefault(line["engine"] or "none", []).append(max(LEAST_SECONDS, line["seconds"]))
    return {engine: sorted(seconds) for engine, seconds in sorted(found.items(), key=lambda one: -len(one[1]))}


def cactus(times: Mapping[str, Sequence[float]]) -> Markup:
    """Texts that an engine settled, by the seconds that each of them took."""
    every = [seconds for own in times.values() for seconds in own]
    first = math.floor(math.log10(min(every, default=LEAST_SECONDS)))
    last = max(first + 1, math.ceil(math.log10(max(every, default=1.0))))
    top = scale_top(max([1, *map(len, times.values())]))

    def point(seconds: float, texts: float) -> str:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(seconds) - first) / (last - first)
        return f"{x:.1f},{HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * texts / top:.1f}"

    drawn = [axis(top)]
    for power in range(first, last + 1):
        x, _ = point(10.0**power, 0).split(",")
        drawn.append(f'<text class="tick" x="{x}" y="{HEIGHT - BOTTOM + 16}">{10.0**power:g}</text>')
    for number, own in enumerate(times.values()):
        places = range(0, len(own), max(1, len(own) // POINTS))
        points = [point(own[0], 0), *(point(own[place], place + 1) for place in places), point(own[-1], len(own))]
        drawn.append(f'<polyline class="engine engine-{number % LINES}" points="{" ".join(points)}"/>')
    drawn.append(
        f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">seconds for a text (each step is ten times)</text>'
    )
    return svg("Texts settled by seconds, for each engine", drawn)


def axis(top: float, *, percent: bool = False) -> str:
    """Horizontal lines with their values."""
    lines = []
    for tick in range(TICKS + 1):
        value = top * tick / TICKS
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * tick / TICKS
        name = f"{100 * value:.0f} %" if percent else f"{value:g}"
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text class="value" x="{LEFT - 6}" y="{y + 4:.1f}">{name}</text>')
    return "".join(lines)


def scale_top(largest: int) -> int:
    """The least of 4, 8, 12, 20, 40, 80, ... that is no smaller: four whole steps."""
    unit = 1
    while True:
        for factor in (4, 8, 12):
            if factor * unit >= largest:
                return factor * unit
        unit = unit * 5 if str(unit).startswith("1") else unit * 2


def svg(title: str, drawn: list[str]) -> Markup:
    # Numbers and words of ours only: nothing of the user's is drawn.
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}"><title>{title}</title>'
        + "".join(drawn)
        + "</svg>"
    )
