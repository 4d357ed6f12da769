"""What `measure --quantity pr` prints: one row for each radius, the definitions, and how sure everything is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

STOPS = {
    "number": "drew the number fixed beforehand",
    "width": "stopped at the width asked for",
    "most": "drew all samples allowed and stayed wider than asked for",
    "time": "ran out of time",
    "all": "have no more sentences than that: each was judged once, and nothing left to chance",
    "some": "have no more sentences than that, and ran out of time before each was judged once",
}


def print_measured(summary: Mapping[str, Any]) -> None:
    from rich.table import Table

    from ..tables import print_table
    from ..terminal import terminal

    console = terminal()
    runs = list(summary["runs"].values()) if "runs" in summary else [summary]
    table = Table(title="Robust fraction (PR)", title_justify="left")
    columns = ("radius", "texts", "already wrong", "exact", "bracketed", "sampled", "mean PR", "PR > 0.9", "confidence")
    for name in (*columns, "seconds"):
        table.add_column(name, justify="right", no_wrap=name != "already wrong")
    for one in runs:
        table.add_row(
            str(one["radius"]),
            *(f"{one[name]:,}" for name in ("texts", "already_wrong", "exact", "deterministic", "sampled")),
            interval(one["robust_fraction"]),
            interval(one["share_above_0.9"]),
            sureness(one["confidence"]),
            f"{one['seconds']:.1f}",
        )
    print_table(console, table)
    console.print(runs[0]["definition"] + ".", style="dim")
    for one in runs:
        for sentence in sentences(one):
            console.print(f"r = {one['radius']}: {sentence}")
    for sentence in about(runs[0]):
        console.print(sentence)


def sentences(one: Mapping[str, Any]) -> Iterator[str]:
    """What the row of a radius leaves out."""
    yield one["verdict"]["sentence"]
    if one["ambiguous"]:
        yield f"{one['ambiguous']} texts are left out because rounding decides the answer for the text itself"
    if "with_samples" in one:
        more = one["with_samples"]
        yield (
            f"with samples of what the counts left open: mean PR {interval(more['robust_fraction'])}, PR > 0.9 "
            f"{interval(more['share_above_0.9'])}, together at confidence {sureness(more['confidence'])}"
        )
    samples = {name: one["samples"].get(f"stopped_by_{name}", 0) for name in STOPS}
    if any(samples.values()):
        listed = ", ".join(f"{samples[name]:,} {what}" for name, what in STOPS.items() if samples[name])
        yield f"of {one['samples']['texts']:,} texts to be sampled {listed}"
    rounding = one["rounding"]
    if rounding["texts"]:
        yield (
            f"rounding may decide {int(rounding['sentences']):,} counted sentences of {rounding['texts']:,} texts; "
            f"whatever it does, the mean PR is {interval(rounding['robust_fraction'])}"
        )


def about(one: Mapping[str, Any]) -> Iterator[str]:
    """What was measured, and what was left out of it."""
    yield from one.get("remarks", ())
    swaps = one.get("swaps")
    if swaps is not None:
        left = counts("left out (left_out.csv)", swaps["removed"])
        yield f"{swaps['kept']:,} of {swaps['considered']:,} candidates kept{left}"
        if any(swaps["fixed"].values()):
            yield f"what does not move{counts('', swaps['fixed'])}"


def counts(what: str, found: Mapping[str, int]) -> str:
    listed = ", ".join(f"{reason} {count:,}" for reason, count in found.items() if count)
    return f"{'; ' if what else ''}{what}: {listed}" if listed else ""


def sureness(confidence: float | None) -> str:
    if confidence is None:
        return "none"
    return "certain" if confidence == 1.0 else f"{confidence:g}"


def interval(found: Mapping[str, Any]) -> str:
    """Ends rounded outwards; one number when they meet, with enough digits not to look like 0 or 1 when it is not."""
    low, high = found["low"], found["high"]
    if low is None:
        return "none"
    if low == high:
        return f"{low:.4f}" if low in (0.0, 1.0) or 0.00005 <= low < 0.99995 else f"{low:.9f}"
    return f"[{math.floor(low * 10_000) / 10_000:.4f}, {math.ceil(high * 10_000) / 10_000:.4f}]"
