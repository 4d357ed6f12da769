"""The page of `bench growth`: every cost over every size, both axes in powers of ten, with the laws beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ...pages.figures import BOTTOM, HEIGHT, LEFT, LINES, RIGHT, TOP, WIDTH, svg
from ...pages.sheets.sheet import BANNERS, Figure, Grid, Part, Sheet
from ..comparison import where
from ..growth.growth_laws import COLUMNS, DEFINITION, LAWS, QUANTITIES, Growth

TITLE = "How does cost grow?"
NAMES = {"cpu_seconds": "CPU seconds", "regions": "regions", "tree_bytes": "bytes of the proof"}


def growth_sheet(growth: Growth) -> Sheet:
    ours = [
        f"{of}: {law}" for of, engine, quantity, law in growth.laws() if (engine, quantity) == ("exact", "cpu_seconds")
    ]
    wrong = growth.comparison.disagreements
    return Sheet(
        title=TITLE,
        lead="Positions, candidates, hidden units, the minimum and the number of texts, each by itself.",
        banner="neutral" if not wrong else BANNERS[growth.comparison.exit_code],
        claim=f"Our CPU seconds: {'; '.join(ours) or 'too few sizes for a law'}.",
        warnings=wrong,
        definition=DEFINITION,
        parts=(
            *(Part(of, tuple(figures(growth, of)), ()) for of in growth.grown),
            Part(
                "In numbers",
                (),
                (
                    Grid("Every size", COLUMNS, tuple(growth.rows()), "Nothing where nothing was settled."),
                    Grid(
                        "Laws", LAWS, tuple((of, by, q, str(law)) for of, by, q, law in growth.laws()), "n: the size."
                    ),
                ),
            ),
        ),
        facts=(("measured", where(growth.about)),),
    )


def figures(growth: Growth, of: str) -> list[Figure]:
    found = []
    for quantity in QUANTITIES:
        lines = {
            engine: [(point.value, cost) for point in growth.line(of, engine) if (cost := getattr(point, quantity))]
            for engine in growth.engines(of)
        }
        lines = {engine: points for engine, points in lines.items() if points}
        if lines:
            keys = tuple((f"line engine-{place % LINES}", engine) for place, engine in enumerate(lines))
            title = f"{NAMES[quantity]} by {of}"
            found.append(Figure(title, drawn_powers(title, lines, of), "Each step is ten times, or twice below.", keys))
    return found


def drawn_powers(title: str, lines: Mapping[str, Sequence[tuple[float, float]]], below: str) -> Markup:
    """Lines through points (x, y) above 0; a tick below each x."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    heights = [math.log10(y) for points in lines.values() for _, y in points]
    low = math.floor(min(heights))
    high = max(low + 1, math.ceil(max(heights)))
    span = math.log(xs[-1] / xs[0]) or 1.0

    def at(x: float, height: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / xs[0]) / span
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (height - low) / (high - low)

    drawn = []
    for power in range(low, high + 1):
        _, y = at(xs[0], power)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text class="value" x="{LEFT - 6}" y="{y + 4:.1f}">{10.0**power:g}</text>')
    for number, points in enumerate(lines.values()):
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(x, math.log10(cost)) for x, cost in points))
        drawn.append(f'<polyline class="engine engine-{number % LINES}" points="{corners}"/>')
    drawn += [f'<text class="tick" x="{at(x, low)[0]:.1f}" y="{HEIGHT - BOTTOM + 16}">{x:g}</text>' for x in xs]
    drawn.append(f'<text class="tick" x="{WIDTH / 2}" y="{HEIGHT - 8}">{below}</text>')
    return svg(title, drawn)
