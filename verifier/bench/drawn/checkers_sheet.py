"""The page of `bench check`: every checker on one run, beside the time the run took."""

from __future__ import annotations

from ...exit_codes import HOLDS
from ...pages.sheets.plots import drawn_lengths
from ...pages.sheets.sheet import BANNERS, Card, Figure, Grid, Part, Sheet
from ..checker_timings import Timing, Timings

TITLE = "How long does checking take?"
LEAST = 1e-9


def checkers_sheet(timings: Timings) -> Sheet:
    first, said = timings.checkers[0], "; ".join(f"{one.checker} {verdict(one)}" for one in timings.checkers)
    return Sheet(
        title=TITLE,
        lead=f"The run {timings.run}: {timings.texts:,} texts, {timings.certificates:,} certificates, "
        f"{timings.megabytes:.2f} MB.",
        banner="neutral" if timings.exit_code == HOLDS else BANNERS[timings.exit_code],
        claim=f"{said}.",
        definition="Each checker in a process of its own with one thread, one after the other: seconds of wall clock "
        "and of the processor from its start to its end.",
        cards=tuple(
            Card(f"{'' if one.accepted is not None else '> '}{one.seconds:.2f} s", one.checker, verdict(one))
            for one in timings.checkers
        ),
        parts=(
            Part(
                "Side by side",
                (
                    Figure(
                        "CPU seconds",
                        drawn_lengths(
                            "CPU seconds of each checker",
                            [(one.checker, one.cpu_seconds) for one in timings.checkers],
                            "s",
                        ),
                        "Of one that was stopped, until then.",
                    ),
                ),
                (
                    Grid(
                        "Every checker",
                        ("checker", "seconds", "CPU seconds", "CPU ratio", "seconds by the run's", "its last line"),
                        tuple(row(one, first, timings) for one in timings.checkers),
                        f"CPU ratio: by those of {first.checker}. The run's own seconds: {timings.made_seconds:.2f}, "
                        "of engines and the check of their proofs, without starting up, reading the task and writing. "
                        "> : it was stopped.",
                    ),
                ),
            ),
        ),
    )


def row(one: Timing, first: Timing, timings: Timings) -> tuple[str, ...]:
    more = "" if one.accepted is not None else "> "
    return (
        one.checker,
        f"{more}{one.seconds:.2f}",
        f"{one.cpu_seconds:.2f}",
        f"{more}{one.cpu_seconds / max(first.cpu_seconds, LEAST):.1f}",
        f"{more}{one.seconds / max(timings.made_seconds, LEAST):.3f}",
        one.last,
    )


def verdict(one: Timing) -> str:
    if one.accepted is None:
        return f"was stopped after {one.seconds:.0f} s"
    return f"{'accepts' if one.accepted else 'refuses'} the run in {one.seconds:.2f} s"
