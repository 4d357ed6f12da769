"""What other runs found, drawn for the page of a run of `certify`: curves of attacks, violins, words, shaded texts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..printing.kappa_printing import ends, ratio
from ..printing.pr_printing import interval, sureness
from ..printing.radius_printing import interval as radii
from ..sheets.plots import drawn_violins
from ..sheets.robust_fraction_sheet import VIOLIN
from ..sheets.sheet import Detail, Figure, Grid, Part

Taken = Mapping[str, Any]
Lines = Iterable[Mapping[str, Any]]
Curve = tuple[str, tuple[float, ...]]
"""What found the sentences, and for 0 swaps and each number of swaps of the summary the share of all texts that they do
not break."""
MOST_CURVES = 5


def curves_of(summary: Mapping[str, Any], lines: Lines, taken: Sequence[Taken]) -> tuple[Curve, ...]:
    """Of the engines of this run whose sentences were not the best ones yet, and of other runs of attacks."""
    numbers, total = (0, *map(int, summary["accuracy_under_attack"])), summary["texts"]
    known: dict[str, list[float]] = {name: [] for name in summary["engines"][:-1]}
    best: list[float] = []
    recorded = False
    for line in lines:
        wrong, high = line["status"] == "already_wrong", line["min_swaps"]["high"]
        best.append(0 if wrong else float("inf") if high is None else high)
        recorded = recorded or bool(line.get("history"))
        steps = {step["engine"]: step["high"] for step in line.get("history", ())}
        found: float = float("inf")
        for name, ends_found in known.items():
            if name in steps and steps[name] is not None:
                found = min(found, steps[name])
            ends_found.append(best[-1] if wrong or not steps else max(found, best[-1]))
    curves = [(f"sentences of {name}", highs) for name, highs in known.items() if recorded]
    for one in taken:
        if one["kind"] == "attack":
            highs = [float("inf") if high is None else float(high) for high in one["texts"].values()]
            curves.append((f"attack {one['method']}", highs))
    final = unbroken(best, numbers, total)
    found_curves = ((name, unbroken(highs, numbers, total)) for name, highs in curves)
    # An engine that found no better ones than those before it, or all of them, has no line of its own.
    seen, kept = {final}, list[Curve]()
    for name, shares in found_curves:
        if name.startswith("attack ") or shares not in seen:
            kept.append((name, shares))
            seen.add(shares)
    return tuple(kept[-MOST_CURVES:])


def unbroken(highs: Sequence[float], swaps: Sequence[int], total: int) -> tuple[float, ...]:
    ordered = sorted(highs)
    return tuple((len(ordered) - bisect_right(ordered, number)) / max(1, total) for number in swaps)


def parts_beside(taken: Sequence[Taken], labels: Mapping[int, str]) -> tuple[Part, ...]:
    """`labels`: of each text, its class by name."""
    found: list[Part] = []
    fractions = [one for one in taken if one["kind"] == "pr"]
    if fractions:
        found.append(Part("Share of sentences that keep their label (PR)", *violins(fractions, labels)))
    found += [words(one) for one in taken if one["kind"] == "kappa"]
    moved = [one for one in taken if one["kind"] == "msr"]
    if moved:
        rows = tuple(
            (one["name"], one["norm"], one["units"], f"{one['number']:,}", radii(one["mean"])) for one in moved
        )
        grid = Grid(
            "Safe radius of the texts",
            ("run", "norm", "units", "texts", "mean radius"),
            rows,
            f"{moved[0]['definition']}.",
        )
        said = "A text that is opened below shows its words shaded by rank: the darkest may move least (saliency)."
        found.append(Part("How far the vectors of words may move", (), (grid,), (said,)))
    return tuple(found)


def violins(each: Sequence[Taken], labels: Mapping[int, str]) -> tuple[tuple[Figure, ...], tuple[Grid, ...]]:
    figures, rows = [], []
    for one in sorted(each, key=lambda one: int(one["radius"])):
        middles = {int(id): sum(found) / 2 for id, found in one["texts"].items() if found is not None}
        groups = [("all", list(middles.values()))]
        groups += [
            (name, [value for id, value in middles.items() if labels[id] == name])
            for name in sorted({labels[id] for id in middles})
        ]
        title = f"PR at {swaps(one['radius'])}"
        figures.append(Figure(title, drawn_violins(title, groups, "PR"), VIOLIN))
        rows.append(
            (one["name"], str(one["radius"]), f"{len(middles):,}", interval(one["mean"]), sureness(one["confidence"]))
        )
    grid = Grid(
        "Mean PR", ("run", "radius", "texts", "mean PR", "confidence"), tuple(rows), f"{each[0]['definition']}."
    )
    return tuple(figures), (grid,)


def words(one: Taken) -> Part:
    rows = tuple(
        (
            word["word"],
            ends(word["low"], word["high"]),
            ratio(word["accuracy_against_it"]),
            f"{word['texts_without_it']:,}",
            ratio(word["accuracy_without_it"]),
            ratio(word["accuracy_with_it_put_in"]),
        )
        for word in one["words"]
    )
    grid = Grid(
        "The most dangerous single words",
        ("word", "kappa", "accuracy against it", "texts without it", "accuracy there", "with it put in"),
        rows,
        f"{one['definition']}. Accuracy against it: texts answered rightly that the word does not flip / all texts; "
        f"the accuracy itself is {ratio(one['accuracy'])}. Put in: at the place where it does most harm.",
    )
    rho = one["rho"]
    shown = f"{rho['low']:.6f}" if rho["low"] == rho["high"] else f"between {rho['low']:.6f} and {rho['high']:.6f}"
    return Part(
        "The most dangerous words (kappa)",
        (),
        (grid,),
        (f"rho is {shown}, over {one['number']:,} texts ({one['name']}).",),
    )


def details_beside(taken: Sequence[Taken], id: int) -> Iterator[Detail]:
    """What the other runs found of this text."""
    key = str(id)
    for one in taken:
        found = one["texts"].get(key) if "texts" in one else None
        match one["kind"]:
            case "attack" if key in one["texts"]:
                said = (
                    "did not break it"
                    if found is None
                    else f"broke it with {swaps(found)}"
                    if found
                    else "was not needed"
                )
                yield f"Attack {one['method']}", f"The attack {said}.", ()
            case "pr" if found is not None:
                yield (
                    f"PR at {swaps(one['radius'])}",
                    f"{interval({'low': found[0], 'high': found[1]})} of its sentences.",
                    (),
                )
            case "msr" if found is not None and found[0] is not None:
                low, high, said, marks = found
                name = f"Safe radius {radii({'low': low, 'high': high})} ({one['norm']}, {one['units']})"
                yield (name if not marks else f"{name}; the most salient words darkest"), said, marks


def swaps(number: int) -> str:
    return "1 swap" if number == 1 else f"{number} swaps"
