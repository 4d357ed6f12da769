"""What `attack` prints: one row for each attack, its denominators, and how far it is from the exact minimum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...attacks.attack_limits import ENCODER

COLUMNS = (
    *("attack", "texts", "attacked", "broken", "Clean", "Aua", "Suc", "ASR1", "swaps", "%S", "requests"),
    *("evaluations", "seconds"),
)
COMPARED = ("attack", "#Succ", "#Win", "swaps", "%S", "requests", "evaluations", "seconds")
NAMED = 12
"""False successes that are named on the terminal; all are in the summary."""
AGAINST_EXACT = ("breakable", "missed", "at the minimum", "mean ratio", "ratio of means")


def print_attack(summary: Mapping[str, Any]) -> None:
    """Of one run, or of several that were compared."""
    from rich.table import Table

    from ..tables import print_table
    from ..terminal import terminal

    console = terminal()
    runs = list(summary["runs"].values()) if "runs" in summary else [summary]
    print_little_said(summary)
    table = Table(title="Attacks", title_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "attack" else "right", no_wrap=True)
    for one in runs:
        table.add_row(*row_of(one))
    print_table(console, table)
    console.print(runs[0]["definition"], style="dim")
    for one in runs:
        console.print(f"{one['method']}: {one['verdict']['sentence']}")
        for sentence in measured_sentences(one):
            console.print(sentence)
        if "textattack" in one:
            console.print(log_sentence(one["textattack"]))
    if "comparison" in summary:
        found = summary["comparison"]
        table = Table(title="Compared", title_justify="left")
        for name in compared_columns(found):
            table.add_column(name, justify="left" if name == "attack" else "right", no_wrap=True)
        for method in found["methods"]:
            table.add_row(*compared_row(method))
        print_table(console, table)
        console.print(found["definition"] + ".", style="dim")


def print_little_said(summary: Mapping[str, Any]) -> None:
    from ..terminal import terminal

    for finding in little_said(summary["runs"].values() if "runs" in summary else [summary]):
        terminal().print(finding, style="bold yellow", markup=False)


def little_said(runs: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    return dict.fromkeys(f"This says little: {finding}." for one in runs for finding in one.get("vacuous", ()))


def measured_sentences(one: Mapping[str, Any]) -> Iterator[str]:
    """Of similarity and perplexity, where they were asked for."""
    if one.get("similarity") is not None:
        yield f"Mean angular similarity of the sentences found: {one['similarity']:.4f} ({ENCODER})."
    if one.get("perplexity_ratio") is not None:
        yield f"Mean perplexity over that of the text: {one['perplexity_ratio']:.3f} (by {one['causal_model']})."


def compared_columns(found: Mapping[str, Any]) -> Sequence[str]:
    return (*COMPARED, *(AGAINST_EXACT if "overshoot" in found["methods"][0] else ()))


def log_sentence(found: Mapping[str, Any]) -> str:
    """Of a log of TextAttack that was replayed."""
    false = ", ".join(map(str, found["false_ids"][:NAMED])) + (", ..." if len(found["false_ids"]) > NAMED else "")
    return (
        f"The log's claims: {found['witness']} stand and are sentences of the frozen space, {found['outside']} stand "
        f"outside it and give no high end, {found['false_success']} are false{f' (texts {false})' if false else ''}. "
        f"Of {found['no_success']} texts it claims none; {found['not_in_the_log']} are not in it."
    )


def row_of(one: Mapping[str, Any]) -> Sequence[str]:
    return (
        one["method"],
        *(f"{one[name]:,}" for name in ("texts", "attacked", "broken")),
        *(percent(one[name]) for name in ("clean", "aua", "suc", "asr1")),
        number(one["swaps"], 3),
        "-" if one["swapped_share"] is None else f"{one['swapped_share']:.1%}",
        number(one["requests"], 1),
        number(one["evaluations"], 1),
        f"{one['seconds']:.1f}",
    )


def compared_row(one: Mapping[str, Any]) -> Sequence[str]:
    row = (
        one["method"],
        *(f"{one[name]:,}" for name in ("succ", "win")),
        number(one["swaps"], 3),
        "-" if one["swapped_share"] is None else f"{one['swapped_share']:.1%}",
        *(number(one[name], 0) for name in ("requests", "evaluations")),
        f"{one['seconds']:.1f}",
    )
    if "overshoot" not in one:
        return row
    far = one["overshoot"]
    return (
        *row,
        f"{far['breakable']:,}",
        percent(far["missed"]),
        percent(far["at_minimum"]),
        number(far["mean_ratio"], 3),
        number(far["ratio_of_means"], 3),
    )


def percent(found: Mapping[str, Any]) -> str:
    return "-" if found["share"] is None else f"{found['share']:.1%}"


def number(found: float | None, digits: int) -> str:
    return "-" if found is None else f"{found:,.{digits}f}"
