"""The figures of `measure --quantity pr`: how PR is distributed over the texts, and its mean at every radius."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

INK, SHADE = "#22577a", "#9fc3d8"


def distribution(ends: Sequence[tuple[float, float]], radius: int, file: Path) -> None:
    """A histogram and a violin of the texts' robust fractions, or of the middles of their intervals."""
    figure, (left, right) = new_figure(2)
    middles = [(low + high) / 2 for low, high in ends]
    left.hist(middles, bins=[i / 20 for i in range(21)], color=INK)
    left.set_xlabel(f"robust fraction at radius {radius}")
    wide = sum(low < high for low, high in ends)
    if wide:
        left.set_title(f"{wide} of {len(ends)} are middles of intervals", fontsize="small")
    left.set_ylabel("texts")
    if len(set(middles)) > 1:  # the density of a single value is no violin
        parts = right.violinplot([list(middles)], showmedians=True)
        for body in parts["bodies"]:
            body.set_facecolor(SHADE)
        right.set_xticks([1], [f"r = {radius}"])
    else:
        right.plot([1] * len(middles), middles, "o", color=INK)
    right.set_ylabel("robust fraction")
    right.set_ylim(-0.02, 1.02)
    save(figure, file)


def curve(summaries: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Mean robust fraction by radius, low to high, each at the confidence that the summary states."""
    figure, (axis,) = new_figure(1)
    radii = [summary["radius"] for summary in summaries]
    low, high = ([summary["robust_fraction"][end] for summary in summaries] for end in ("low", "high"))
    axis.fill_between(radii, low, high, color=SHADE)
    axis.plot(radii, low, "o-", color=INK)
    axis.plot(radii, high, "o-", color=INK)
    axis.set_xticks(radii)
    axis.set_xlabel("swaps")
    axis.set_ylabel("mean robust fraction")
    least = min(summary["confidence"] for summary in summaries)
    axis.set_title("proved" if least == 1.0 else f"each radius at confidence {least:g}", fontsize="small")
    axis.set_ylim(-0.02, 1.02)
    save(figure, file)


def without_figures() -> str | None:
    """What to say where none can be drawn."""
    if find_spec("matplotlib") is not None:
        return None
    return "no figures are drawn: they need matplotlib: pip install matplotlib"


def new_figure(panels: int) -> tuple[Any, list[Any]]:
    """A figure that no window is opened for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * panels, 3.2), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)
    return figure, list(axes[0])


def save(figure: Any, file: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    figure.savefig(file, dpi=120)
