"""What a run of `measure --quantity kappa` shows on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FEW = 10
"""Words whose effect on accuracy is shown: as many as in the paper."""
LEAST_TOLD = 0.01
"""CPU seconds of onnxruntime; with less nothing is compared."""


def print_kappa(summary: Mapping[str, Any]) -> None:
    """rho, the most dangerous words, and how it was found."""
    from rich.table import Table

    from ..tables import print_table
    from ..terminal import terminal

    console = terminal()
    rho, far = summary["rho"], summary["rho_of_the_distribution"]
    shown = f"{rho['low']:.6f}" if rho["low"] == rho["high"] else f"[{rho['low']:.6f}, {rho['high']:.6f}]"
    console.print(f"rho = {shown} over {summary['answered_correctly']:,} texts and {summary['words']:,} words")
    for line in remarks(summary):
        console.print(line)
    console.print(
        f"At confidence {far['confidence']:g} rho of the texts' distribution lies in {far['empirical_bernstein']} "
        f"(empirical Bernstein), {far['hoeffding']} (Hoeffding)"
    )
    for one in summary.get("requirements", ()):
        console.print(f"required, {one['answer']}: {one['sentence']}", style="bold")
    table = Table(title="Words of greatest kappa", title_justify="left")
    for name in ("word", "kappa", "part of speech", "accuracy against it"):
        table.add_column(name, justify="left" if name == "word" else "right")
    for one in summary["highest_kappa"]:
        kappa = ends(one["low"], one["high"])
        table.add_row(one["word"], kappa, one["part_of_speech"] or "", ratio(one["accuracy_against_it"]))
    print_table(console, table)
    table = Table(title="What they do to accuracy", title_justify="left")
    for name in ("word", "texts with it", "accuracy", "it removed", "texts without it", "accuracy", "it put in"):
        table.add_column(name, justify="left" if name == "word" else "right")
    for one in summary["highest_kappa"][:FEW]:
        table.add_row(
            one["word"],
            f"{one['texts_with_it']:,}",
            ratio(one["accuracy_with_it"]),
            ratio(one["accuracy_with_it_removed"]),
            f"{one['texts_without_it']:,}",
            ratio(one["accuracy_without_it"]),
            ratio(one["accuracy_with_it_put_in"]),
        )
    print_table(console, table)
    parts = summary["parts_of_speech"]
    if parts["counts"]:
        counts = ", ".join(f"{name} {count:,}" for name, count in parts["counts"].items())
        console.print(f"Of the {parts['words']:,} words of greatest kappa: {counts} ({parts['source']})")
    console.print(f"{summary['definition']}. {'. '.join(summary['deviations_from_the_paper'])}.", style="dim")


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """How it was found, and what was left out or stays open."""
    found = [f"{summary['already_wrong']:,} texts already wrong: left out"]
    if summary["ambiguous"]:
        found.append(
            f"{summary['ambiguous']:,} texts whose own answer rounding decides: counted as flipped by no word at one "
            "end, by every word at the other"
        )
    match summary["kind"]:
        case "exact":
            unsure = summary["pairs_that_rounding_may_decide"]
            found.append(
                "Exact over the reals"
                + (f"; {unsure:,} pairs of text and word might be decided otherwise by rounding" if unsure else "")
            )
        case "brute force":
            found.append("Sentences were evaluated as deployed, by onnxruntime")
        case _:
            found.append("EUBA finds flips only: nothing is known of the other pairs of text and word")
    if not summary["complete"]:
        found.append(f"Incomplete: {summary['verdict']['sentence']}")
    speed = summary["speed"]
    if summary["kind"] == "exact":
        found.append(speed_line(speed))
    if "euba" in summary:
        found.append(euba_line(summary["euba"]))
    return found


def speed_line(speed: Mapping[str, Any]) -> str:
    """How long it took and, unless that is next to nothing, how long onnxruntime would have taken."""
    other, ratio = speed["onnxruntime_cpu_seconds_extrapolated"], speed["ratio"]
    own = f"{speed['sentences']:,} sentences in {told(speed['cpu_seconds'])} CPU seconds"
    if ratio is None or other < LEAST_TOLD:
        return own
    return (
        f"{own}; evaluated in batches by onnxruntime they would take {told(other)} CPU seconds (extrapolated from "
        f"{speed['onnxruntime_sample']:,}): {told(ratio)} times as long"
    )


def told(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def euba_line(euba: Mapping[str, Any]) -> str:
    known = ""
    if euba["beside"] is not None:
        low, high = euba["gap"]["low"], euba["gap"]["high"]
        gap = f"{low:.6f}" if low == high else f"{low:.6f} to {high:.6f}"
        known = f", {gap} above the {'exact' if euba['beside'] == 'exact' else 'brute-force'} value"
    return (
        f"EUBA ({euba['variant']}, m = {euba['m']}, mask {euba['mask']}) says rho <= {euba['rho']:.6f}{known}, after "
        f"{euba['queries']:,} queries and {euba['cpu_seconds']:.1f} CPU s; gradients {euba['gradients']}"
    )


def ends(low: float, high: float) -> str:
    return f"{low:.4f}" if low == high else f"[{low:.4f}, {high:.4f}]"


def ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
