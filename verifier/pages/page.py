"""report.html: one page that needs nothing else, the same bytes for the same lines, wherever the run lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_DOWN, Decimal, localcontext
from functools import lru_cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..runs.results import pieces
from ..runs.run_summary import DEFINITIONS
from .figures import accuracy_curve, histogram

if TYPE_CHECKING:
    from jinja2 import Template

HARDEST_FIRST = "Hardest first: open and ambiguous texts, then by time."


def page(summary: Mapping[str, Any], facts: Mapping[str, str], lines: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The page of a run with this summary and these facts; its lines, hardest first, are read once and not kept."""
    parts = template().generate(
        summary=summary,
        facts=facts,
        rows=lines,
        pieces=pieces,
        ends=ends,
        interval=interval,
        percent=percent,
        covered_share=covered_share,
        radii=chosen_radii(summary),
        histogram=partial(histogram, summary),
        curve=partial(accuracy_curve, summary),
        definitions=DEFINITIONS,
        hardest_first=HARDEST_FIRST,
    )
    return (part.encode() for part in parts)


@lru_cache(maxsize=1)
def template() -> Template:
    from jinja2 import Environment

    # No loader and no file of the user's: the template is ours, and everything put into it is escaped.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = files("swapproof.verifier.pages").joinpath("report.html")
    return environment.from_string(page.read_text(encoding="utf-8"))


def hardness(line: Mapping[str, Any]) -> tuple[bool, float, int]:
    """Sorts the texts hardest first."""
    return line["status"] not in ("open", "ambiguous"), -line["seconds"], line["id"]


def interval(ends: Mapping[str, Any]) -> str:
    """`3` when both ends meet, `[2, 5]`, `[2, ?]` when no witness is known."""
    low, high = ends["low"], ends["high"]
    if low == high:
        return "none" if low is None else shown(low)
    return f"[{shown(low)}, {'?' if high is None else shown(high)}]"


def shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def ends(line: Mapping[str, Any]) -> str:
    """The interval of a text; of an unbreakable one, that no number of swaps is enough."""
    return "never" if line["status"] == "unbreakable" else interval(line["min_swaps"])


def chosen_radii(summary: Mapping[str, Any]) -> list[tuple[int, float, float]]:
    """The radii at which something changes, and the one asked for."""
    found: list[tuple[int, float, float]] = []
    for name, share in summary["accuracy_under_attack"].items():
        row = (int(name), share["low"], share["high"])
        if not found or found[-1][1:] != row[1:] or row[0] == summary["radius"]:
            found.append(row)
    return found


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def covered_share(covered: Mapping[str, str]) -> str:
    """The share of an open text's sentences that is proved to keep the class, rounded down."""
    with localcontext(rounding=ROUND_DOWN) as context:
        context.prec = 12  # the numbers of sentences may have thousands of digits
        return f"{100 * Decimal(covered['robust']) / Decimal(covered['total']):.4f} %"
