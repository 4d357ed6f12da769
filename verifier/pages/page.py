"""report.html: one page that needs nothing else, the same bytes for the same lines, wherever the run lies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED, VIOLATED
from ..gates.known_ends import REPLAY
from ..gates.requirements import required
from ..runs.run_summary import DEFINITIONS
from .figures import accuracy_curve, cactus, histogram, settled_times
from .headline import claimed_radius, down, headline, swaps, up
from .packed_rows import Choices, Page, rows_of
from .text_groups import grouped

if TYPE_CHECKING:
    from jinja2 import Template

    from .beside.shown_beside import Beside

WEAKEST_FIRST = "Weakest for the model first: texts that few swaps break; those already wrong come last."
MOST_ROWS = 200_000
"""Rows that a page holds: what a browser can still unpack."""
PACKED = '<script id="packed" type="text/plain">'
"""Where the rows stand in the template. Everything put into it is escaped, so this stands there once."""
FILES = ("report.html", "report.css", "report.js")


def page(
    summary: Mapping[str, Any],
    facts: Mapping[str, str],
    lines: Iterable[Mapping[str, Any]],
    choices: Choices | None = None,
    beside: Beside | None = None,
) -> Page:
    """The page of a run with this summary and these facts; its lines, weakest first, are gone through more than once
    and not kept. `choices`: the words of every text that can be swapped, where the page has room for them; `beside`:
    what was left out of the swaps, and what attacks and other runs found."""
    claim, times = headline(summary), settled_times(lines)
    radius = claimed_radius(summary) if claim is None else claim.radius
    text = template().render(
        summary=summary,
        facts=facts,
        claim=claim,
        kind=banner(summary),
        interval=interval,
        percent=percent,
        not_broken=not_broken,
        required=required,
        grounds=partial(by_ground, summary),
        grounds_met=grounds_met(summary),
        level_names=LEVEL_NAMES,
        evaluated=evaluated(summary),
        skipped=skipped_rows(summary),
        radii=chosen_radii(summary),
        rows_held=min(MOST_ROWS, summary["texts"]),
        histogram=histogram(summary),
        curve=accuracy_curve(summary, beside.curves if beside else ()),
        curves=[name for name, _ in beside.curves] if beside else [],
        parts=beside.parts if beside else (),
        others=beside.runs if beside else (),
        cactus=cactus(times),
        engines=list(times),
        grouped_at=swaps(radius),
        groups=grouped(lines, summary["labels"], radius),
        definitions=DEFINITIONS,
        weakest_first=WEAKEST_FIRST,
        css=own_file("report.css"),
        js=own_file("report.js"),
    )
    before, after = text.split(PACKED)
    about = {"labels": summary["labels"], **(beside.about if beside else {})}
    rows = partial(rows_of, about, Held(lines), choices)
    return Page(f"{before}{PACKED}".encode(), rows, after.encode())


@dataclass(frozen=True)
class Held:
    """The lines that a page holds."""

    lines: Iterable[Mapping[str, Any]]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return islice(self.lines, MOST_ROWS)


@lru_cache(maxsize=1)
def template() -> Template:
    from jinja2 import Environment

    # No loader and no file of the user's: the template is ours, and everything put into it is escaped.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(own_file("report.html"))


@lru_cache(maxsize=len(FILES))
def own_file(name: str) -> Markup:
    return Markup(files("swapproof.verifier.pages").joinpath(name).read_text(encoding="utf-8"))


def weakness(line: Mapping[str, Any]) -> tuple[bool, float, float, int]:
    """Sorts the texts weakest first: by the swaps known to break them, then by those that may; a text that is already
    wrong has nothing to lose."""
    ends, status = line["min_swaps"], line["status"]
    low = math.inf if status == "unbreakable" else 0 if status == "ambiguous" else ends["low"]
    high = math.inf if ends["high"] is None else ends["high"]
    return status == "already_wrong", high, low, line["id"]


def banner(summary: Mapping[str, Any]) -> str:
    """By the exit code; green only where something holds and nothing is left open or says little."""
    kind = {HOLDS: "holds", VIOLATED: "violated", INCOMPLETE: "incomplete", UNCHECKED: "unchecked"}
    found = kind[summary["verdict"]["exit_code"]]
    unsure = summary["open"] + summary["ambiguous"] and not summary["requirements"]
    return "incomplete" if found == "holds" and (summary["vacuous"] or unsure) else found


LEVEL_NAMES = {
    "float32": "proved for every float32 evaluation",
    "kernel": "proved within stated errors of the runtime's functions (kernel)",
    "real": "proved over real arithmetic only",
    REPLAY: "evaluated in full",
}
"""Level of truth -> what a text that stands on it is."""


def grounds_met(summary: Mapping[str, Any]) -> list[str]:
    """The levels of truth at which texts of this run are certified, strongest first."""
    shares = {name: level["certified_accuracy"].values() for name, level in summary["levels"].items()}
    return [name for name in LEVEL_NAMES if any(shares.get(name, ()))]


def by_ground(summary: Mapping[str, Any], radius: int) -> list[float]:
    """Certified accuracy at a radius, of it what stands on each level that is met."""
    return [summary["levels"][name]["certified_accuracy"][str(radius)] for name in grounds_met(summary)]


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


def evaluated(summary: Mapping[str, Any]) -> bool:
    """Whether low ends are evaluated in full, so that not all are proved."""
    return any(summary["levels"].get(REPLAY, {"certified_accuracy": {}})["certified_accuracy"].values())


def grounds(summary: Mapping[str, Any], radius: int, low: float) -> tuple[float, float]:
    """Of certified accuracy at a radius, what is proved and what is evaluated in full."""
    replayed = summary["levels"].get(REPLAY, {"certified_accuracy": {}})["certified_accuracy"].get(str(radius), 0.0)
    return round(low - replayed, 6), replayed


def skipped_rows(summary: Mapping[str, Any]) -> str | None:
    """What to say of rows that were skipped."""
    data = summary.get("data", {"skipped": 0})
    if not data["skipped"]:
        return None
    rows = "1 row of the data was" if data["skipped"] == 1 else f"{data['skipped']:,} rows of the data were"
    return f"{rows} skipped; the first: {data['defects'][0]}"


def percent(share: float) -> str:
    """Rounded down, as the headline is: what is claimed is never more than what was found."""
    return f"{down(share, 2)} %"


def not_broken(low: float, high: float) -> str:
    """The high end of a share, rounded up; where both ends are one number it is shown as the low end is."""
    return percent(low) if low == high else f"{up(high, 2)} %"


def both_ends(low: float, high: float) -> str:
    return percent(low) if low == high else f"{percent(low)} to {not_broken(low, high)}"
