"""Figures of attacks beside each other, as inline SVG: swaps of one against another's, and how success grows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from .figures import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, axis, scale_top, svg

Lines = Sequence[Mapping[str, Any]]
Points = Sequence[tuple[float, float]]
WIDEST, LEAST = 9.0, 2.0
"""Radii of the dots of the most texts, and of one."""
FRAME = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
COLOURS = ("#2563c9", "#c2410c", "#15803d", "#9333ea", "#a16207", "#0e7490", "#be185d", "#525252")
DASHES = (("none", "solid"), ("7 4", "dashed"), ("2 3", "dotted"))
"""Of a line, and of its key."""
CORNERS = 160
"""Of one line."""


def style(number: int) -> str:
    """Of the line of this number: colours first, then dashes."""
    colour, (dash, _) = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
    return f"stroke:{colour};stroke-dasharray:{dash};fill:none;stroke-width:2.2"


def key_style(number: int) -> str:
    colour, (_, border) = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
    return f"border-color:{colour};border-top-style:{border}"


def swaps_of(line: Mapping[str, Any]) -> int | None:
    """Of a text that an attack broke."""
    return None if line["status"] == "already_wrong" else line["min_swaps"]["high"]


def scatter(first: str, second: str, pairs: Iterable[tuple[int, int]]) -> Markup:
    """Of the texts that both break, the swaps of one against those of the other; the area of a dot is its texts.

    Above the diagonal the second needs more.
    """
    counted = Counter(pairs)
    top = scale_top(max((number for pair in counted for number in pair), default=1))
    drawn = [axis(top), *ticks([top * part / 4 for part in range(5)], top)]
    corner = place(0, 0, top, top), place(top, top, top, top)
    drawn.append(f'<polyline points="{" ".join(corner)}" style="stroke:currentColor;stroke-dasharray:2 4;fill:none"/>')
    most = max(counted.values(), default=1)
    for (one, other), texts in sorted(counted.items(), key=lambda item: -item[1]):
        x, y = place(one, other, top, top).split(",")
        radius = max(LEAST, WIDEST * math.sqrt(texts / most))
        drawn.append(
            f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{COLOURS[0]}" fill-opacity="0.45">'
            f"<title>{escape(first)} {one}, {escape(second)} {other}: {texts} texts</title></circle>"
        )
    drawn.append(named(f"swaps of {first} (across) and of {second} (up)"))
    return svg(str(escape(f"Swaps of {first} and of {second}")), drawn)


def curves(title: str, below: str, lines: Mapping[str, Points], *, logarithmic: bool = False) -> Markup:
    """Of every name the share of texts (y, from 0 to 1) at or below x, as steps."""
    xs = [x for points in lines.values() for x, _ in points]
    top = max([1.0, *xs])
    if logarithmic:
        powers = [10.0**power for power in range(math.ceil(math.log10(max(10.0, top))) + 1)]
        drawn = [axis(1.0, percent=True), *ticks(powers, powers[-1], logarithmic=True)]
        top = powers[-1]
    else:
        top = float(scale_top(int(top)))
        drawn = [axis(1.0, percent=True), *ticks([top * part / 4 for part in range(5)], top)]
    for number, (name, points) in enumerate(lines.items()):
        corners, height = [place(0, 0, top, 1.0)], 0.0
        for x, share in thinned(points):
            across = math.log10(max(1.0, x)) / math.log10(top) * top if logarithmic else x
            corners += [place(across, height, top, 1.0), place(across, share, top, 1.0)]
            height = share
        corners.append(place(top, height, top, 1.0))
        drawn.append(
            f'<polyline points="{" ".join(corners)}" style="{style(number)}"><title>{escape(name)}</title></polyline>'
        )
    drawn.append(named(below))
    return svg(str(escape(title)), drawn)


def thinned(points: Points) -> Points:
    """At most so many of them, the first and the last among them."""
    if len(points) <= CORNERS:
        return points
    return [points[round(number * (len(points) - 1) / (CORNERS - 1))] for number in range(CORNERS)]


def by_swaps(lines: Lines, attacked: int) -> Points:
    """Share of the texts attacked that are broken with at most so many swaps."""
    return risen([high for line in lines if (high := swaps_of(line)) is not None], attacked)


def by_requests(lines: Lines, attacked: int) -> Points:
    """Share of the texts attacked that are broken by a search of at most so many requests, from its beginning to its
    end."""
    return risen([line["requests"] for line in lines if swaps_of(line) is not None], attacked)


def risen(values: Iterable[int], whole: int) -> Points:
    found, met = list[tuple[float, float]](), 0
    for value, texts in sorted(Counter(values).items()):
        met += texts
        found.append((float(value), met / max(1, whole)))
    return found


def place(x: float, y: float, right: float, top: float) -> str:
    width, height = FRAME
    return f"{LEFT + width * x / right:.1f},{HEIGHT - BOTTOM - height * y / top:.1f}"


def ticks(values: Sequence[float], right: float, *, logarithmic: bool = False) -> list[str]:
    """Numbers below."""
    found = []
    for value in values:
        across = math.log10(value) / math.log10(right) * right if logarithmic else value
        x = place(across, 0, right, 1).split(",")[0]
        found.append(f'<text class="tick" x="{x}" y="{HEIGHT - BOTTOM + 16}">{value:,.0f}</text>')
    return found


def named(below: str) -> str:
    return f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">{escape(below)}</text>'
