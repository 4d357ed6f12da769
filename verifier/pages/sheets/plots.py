"""Figures of what was measured, attacked or compared, as inline SVG: lines, bars, violins, intervals.

Of the user only names are drawn, and these are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from ..figures import BOTTOM, HEIGHT, LEFT, LINES, RIGHT, TICKS, TOP, WIDTH, axis, scale_top, svg

BINS = 20
SMOOTH = 61
"""Points of a violin's outline."""
LEAST_WIDTH = 0.012
"""Of a violin's kernel, where all values are nearly the same."""
ROW = 26
NAME = 170
"""Room for the names of intervals."""
TICKED = 12
"""Numbers below a figure; fewer where they are long."""
LONGEST, SHORT = 24, 19
"""Characters of a name, and of one beside a bar."""


@dataclass(frozen=True)
class Series:
    """Points (x, low, high) of one line; where low and high differ a band is drawn."""

    name: str
    points: tuple[tuple[float, float, float], ...]


def drawn_trend(title: str, series: Sequence[Series], below: str) -> Markup:
    """Numbers from 0 on over whole numbers."""
    most = max([high for one in series for _, _, high in one.points], default=0.0)
    return drawn_lines(title, series, below, top=round_top(most))


def round_top(most: float) -> float:
    """1, 2, 4 or 8 times a power of ten, no smaller."""
    if not most > 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(most))
    return next(factor * unit for factor in (1, 2, 4, 8, 10) if factor * unit >= most)


def drawn_lines(
    title: str, series: Sequence[Series], below: str, *, steps: bool = False, top: float | None = None
) -> Markup:
    """Shares from 0 to 1 over whole numbers, or numbers up to `top`; `steps`: each holds until the next number."""
    xs = sorted({x for one in series for x, _, _ in one.points})
    first, last = (xs[0], xs[-1]) if xs else (0.0, 1.0)
    width = WIDTH - LEFT - RIGHT
    span = (last - first + 1) if steps else max(1e-9, last - first)

    def at(x: float, share: float) -> str:
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share / (top or 1.0)
        return f"{LEFT + width * (x - first) / span:.1f},{y:.1f}"

    def corners(points: Sequence[tuple[float, float]]) -> list[str]:
        if not steps:
            return [at(*point) for point in points]
        ends = [x for x, _ in points[1:]] + [last + 1]
        return [
            corner for (x, share), end in zip(points, ends, strict=True) for corner in (at(x, share), at(end, share))
        ]

    drawn = [axis(top or 1.0, percent=top is None)]
    for number, one in enumerate(series):
        low, high = (corners([(point[0], point[end]) for point in one.points]) for end in (1, 2))
        if low != high:
            drawn.append(f'<polygon class="area engine-{number % LINES}" points="{" ".join(high + low[::-1])}"/>')
        drawn += [
            f'<polyline class="engine engine-{number % LINES}" points="{" ".join(ends)}"/>'
            for ends in ((low, high) if low != high else (low,))
        ]
    most = TICKED if last < 100 else TICKED // 3
    for x in xs[:: max(1, -(-len(xs) // most))]:
        place = LEFT + width * (x - first + (0.5 if steps else 0)) / span
        drawn.append(f'<text class="tick" x="{place:.1f}" y="{HEIGHT - BOTTOM + 16}">{x:g}</text>')
    drawn.append(f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">{escape(below)}</text>')
    return svg(str(escape(title)), drawn)


def drawn_histogram(title: str, values: Sequence[float], below: str) -> Markup:
    """How many of these shares lie in each twentieth."""
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(value * BINS))] += 1
    return drawn_bars(title, [(f"{place / BINS:g}", count) for place, count in enumerate(counts)], below, every=5)


def drawn_bars(
    title: str, bars: Sequence[tuple[str, int]], below: str, *, every: int = 1, kind: str = "exact"
) -> Markup:
    """Numbers side by side; every so many of them are named."""
    top = scale_top(max([1, *(count for _, count in bars)]))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(bars))
    drawn = [axis(top)]
    for place, (name, count) in enumerate(bars):
        height = (HEIGHT - TOP - BOTTOM) * count / top
        x, y = LEFT + step * (place + 0.1), HEIGHT - BOTTOM - height
        drawn.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" height="{height:.1f}">'
            f"<title>{escape(name)}: {count}</title></rect>"
        )
        if place % every == 0:
            drawn.append(
                f'<text class="tick" x="{x + step * 0.4:.1f}" y="{HEIGHT - BOTTOM + 16}">{escape(name)}</text>'
            )
    drawn.append(f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">{escape(below)}</text>')
    return svg(str(escape(title)), drawn)


def drawn_violins(title: str, groups: Sequence[tuple[str, Sequence[float]]], below: str) -> Markup:
    """The density of shares from 0 to 1 in each group, its quartiles as a bar and its median as a line."""
    step = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    drawn = [axis(1.0)]

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value

    for number, (name, values) in enumerate(groups):
        middle = LEFT + step * (number + 0.5)
        drawn.append(f'<text class="tick" x="{middle:.1f}" y="{HEIGHT - BOTTOM + 16}">{escape(name)}</text>')
        if not values:
            continue
        ordered = sorted(values)
        heights = density(ordered)
        scale = step * 0.42 / max(heights)
        places = [place / (SMOOTH - 1) for place in range(SMOOTH)]
        halves = list(zip(heights, places, strict=True))
        right = [(middle + scale * height, place) for height, place in halves]
        left = [(middle - scale * height, place) for height, place in reversed(halves)]
        sides = (*right, *left)
        outline = " ".join(f"{x:.1f},{y_of(place):.1f}" for x, place in sides)
        low, median, high = (quantile(ordered, share) for share in (0.25, 0.5, 0.75))
        drawn.append(
            f'<polygon class="violin" points="{outline}"><title>{escape(name)}: median {median:.4f}, quartiles '
            f"{low:.4f} and {high:.4f}, {len(values)} texts</title></polygon>"
            f'<line class="quartiles" x1="{middle:.1f}" x2="{middle:.1f}" y1="{y_of(low):.1f}" y2="{y_of(high):.1f}"/>'
            f'<line class="median" x1="{middle - 9:.1f}" x2="{middle + 9:.1f}" y1="{y_of(median):.1f}" '
            f'y2="{y_of(median):.1f}"/>'
        )
    drawn.append(f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">{escape(below)}</text>')
    return svg(str(escape(title)), drawn)


def density(ordered: Sequence[float]) -> list[float]:
    """A Gaussian kernel of Silverman's width, mirrored at 0 and 1: no mass lies where no share can be."""
    number = len(ordered)
    mean = sum(ordered) / number
    spread = math.sqrt(sum((value - mean) ** 2 for value in ordered) / number)
    width = max(LEAST_WIDTH, 1.06 * spread * number**-0.2)
    mirrored = [place for value in ordered for place in (value, -value, 2 - value)]
    found = []
    for place in range(SMOOTH):
        x = place / (SMOOTH - 1)
        found.append(sum(math.exp(-0.5 * ((x - value) / width) ** 2) for value in mirrored))
    return found


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def drawn_points(
    title: str, groups: Sequence[tuple[str, Sequence[tuple[float, float]]]], below: str, beside: str
) -> Markup:
    """Pairs of numbers from 0 on, on one scale, with the line on which both are equal."""
    top = round_top(max([1.0, *(value for _, points in groups for point in points for value in point)]))
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + width * x / top, HEIGHT - BOTTOM - height * y / top

    drawn = [axis(top)]
    (x1, y1), (x2, y2) = at(0.0, 0.0), at(top, top)
    drawn.append(f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
    for number, (name, points) in enumerate(groups):
        for pair in points:
            x, y = at(*pair)
            drawn.append(
                f'<circle class="engine engine-{number % LINES}" cx="{x + 3 * number:.1f}" cy="{y:.1f}" r="4">'
                f"<title>{escape(name)}: {pair[0]:g} and {pair[1]:g}</title></circle>"
            )
    for tick in range(TICKS + 1):
        x, _ = at(top * tick / TICKS, 0.0)
        drawn.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}">{top * tick / TICKS:g}</text>')
    drawn.append(
        f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">{escape(below)}; upwards {escape(beside)}</text>'
    )
    return svg(str(escape(title)), drawn)


def drawn_intervals(
    title: str, rows: Sequence[tuple[str, float, float, float, float]], below: str, *, scale: float = 100.0
) -> Markup:
    """Of each row (name, least, low, high, most): a thin line for the interval, a thick one for what is known; 0 is
    marked, and right of it is better."""
    reach = max([1e-6, *(abs(end) * scale for _, *ends in rows for end in ends)])
    unit = 10.0 ** math.floor(math.log10(reach))
    top = next(factor * unit for factor in (1, 2, 4, 8, 10) if factor * unit >= reach)
    height = TOP + ROW * len(rows) + BOTTOM

    def x_of(value: float) -> float:
        return NAME + (WIDTH - NAME - RIGHT) * (value * scale / top + 1) / 2

    drawn = []
    for tick in range(TICKS + 1):
        value = (-1 + 2 * tick / TICKS) * top
        x = x_of(value / scale)
        kind = "zero" if tick * 2 == TICKS else "grid"
        drawn.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        drawn.append(f'<text class="tick" x="{x:.1f}" y="{height - BOTTOM + 16}">{value:+.3g}</text>')
    for number, (name, least, low, high, most) in enumerate(rows):
        y = TOP + ROW * (number + 0.5)
        kind = "better" if least > 0 else "worse" if most < 0 else "unsure"
        cut = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        drawn.append(
            f'<g class="{kind}"><title>{escape(name)}</title><text class="value" x="{NAME - 8}" y="{y + 5:.1f}">'
            f'{escape(cut)}</text><line class="thin" x1="{x_of(least):.1f}" x2="{x_of(most):.1f}" y1="{y:.1f}" '
            f'y2="{y:.1f}"/><line class="thick" x1="{x_of(low) - 3:.1f}" x2="{x_of(high) + 3:.1f}" y1="{y:.1f}" '
            f'y2="{y:.1f}"/></g>'
        )
    drawn.append(f'<text class="tick" x="{(NAME + WIDTH) / 2}" y="{height - 8}">{escape(below)}</text>')
    said = str(escape(title))
    inner = "".join(drawn)
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{said}"><title>{said}</title>{inner}</svg>'
    )


def drawn_lengths(title: str, rows: Sequence[tuple[str, float]], unit: str) -> Markup:
    """Lengths below each other, each with its name and its number."""
    top = max([1e-9, *(value for _, value in rows)])
    height = TOP + ROW * len(rows) + 8
    room = WIDTH - NAME - RIGHT - 84
    drawn = []
    for number, (name, value) in enumerate(rows):
        y, length = TOP + ROW * (number + 0.5), room * value / top
        cut = name if len(name) <= SHORT else name[: SHORT - 1] + "…"
        drawn.append(
            f'<text class="value" x="{NAME - 8}" y="{y + 5:.1f}">{escape(cut)}</text>'
            f'<rect class="exact" x="{NAME}" y="{y - 8:.1f}" width="{length:.1f}" height="16">'
            f"<title>{escape(name)}</title></rect>"
            f'<text class="length" x="{NAME + length + 6:.1f}" y="{y + 5:.1f}">{value:.3g} {escape(unit)}</text>'
        )
    said = str(escape(title))
    inner = "".join(drawn)
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{said}"><title>{said}</title>{inner}</svg>'
    )
