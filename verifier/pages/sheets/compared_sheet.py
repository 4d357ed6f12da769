"""compare.html: models or defences side by side, what got worse first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...comparing.comparison_findings import COUNTED
from ...comparing.same_question import ComparedRun
from ...comparing.standings import MOVES, Standing, moved
from .plots import Series, drawn_bars, drawn_intervals, drawn_lines, drawn_trend
from .sheet import Card, Column, Detail, Figure, Grid, Part, Row, Rows, Sheet

Findings = Mapping[str, Any]
UNIT = {
    "certify": "swaps needed",
    "attack": "swaps it took",
    "pr": "PR",
    "kappa": "share of words that flip nothing",
    "msr": "safe radius",
}
RANK = {name: place for place, name in enumerate(MOVES)}


def compared_sheet(found: Findings, runs: Sequence[ComparedRun]) -> Sheet:
    first, pairs = found["runs"][0], found["against_the_first"]
    names = ", ".join(one["name"] for one in found["runs"][1:])
    return Sheet(
        title="What changed between these runs?",
        lead=f"{names} beside {first['name']}: runs of {found['kind']} over the same {found['texts']:,} texts, labels "
        "and frozen swaps.",
        banner=banner(found),
        claim=f"{pairs[0]['sentence']}.",
        said=" ".join(f"{one['sentence']}." for one in pairs[1:]),
        warnings=tuple(warnings(found)),
        definition=f"{found['definitions']['moved']}.",
        cards=tuple(card for one in pairs for card in cards(one, several=len(pairs) > 1)),
        parts=(*overview(found), *what_got_worse(found, runs), *differences(found), *groups(found)),
        rows=moved_rows(found, runs),
        facts=tuple((one["name"], f"{one['model']}, {one['folder']}") for one in found["runs"]),
        closing="The numbers follow from results.jsonl of the runs, which `swapproof check` checks.",
    )


def warnings(found: Findings) -> Iterator[str]:
    """What says little alone says little beside another."""
    for one in found["runs"]:
        for finding in one["vacuous"]:
            yield f"{one['name']} says little: {finding}."


def banner(found: Findings) -> str:
    """By the first comparison alone: surely worse, surely better, or neither."""
    one = found["against_the_first"][0]
    part = one["mean"]
    if found["kind"] in COUNTED:
        part = next(share for share in one["shares"] if share["radius"] == found["grouped_at"])
    if any(run["vacuous"] for run in found["runs"]):
        return "incomplete"
    if part["interval"] is None or part["interval"]["low"] <= 0 <= part["interval"]["high"]:
        return "neutral"
    return "holds" if part["interval"]["low"] > 0 else "violated"


def cards(one: Findings, *, several: bool) -> Iterator[Card]:
    for name, meaning in (
        ("worse", "texts that are surely easier to break than before, or that are answered wrongly now"),
        ("better", "texts that are surely harder to break"),
        ("not_settled", "the intervals overlap"),
        ("same", "both minima are known, and equal"),
    ):
        where = f" ({one['other']})" if several else ""
        yield Card(f"{one['moved'][name]:,}", name.replace("_", " ") + where, meaning)


def overview(found: Findings) -> Iterator[Part]:
    """Every run by itself."""
    rows = tuple(
        (
            one["name"],
            percent(one["accuracy"]),
            *(ends(one["shares"][str(radius)], percent) for radius in found["radii"] if radius),
        )
        for one in found["runs"]
    )
    swaps = tuple(f"{radius} swap{'' if radius == 1 else 's'}" for radius in found["radii"] if radius)
    figures: tuple[Figure, ...] = ()
    definition = "Accuracy: texts whose answer is the gold label / all texts."
    if found["kind"] in COUNTED:
        definition += f" Under swaps: {found['definitions']['shares']}."
        series = [
            Series(
                one["name"],
                tuple((radius, share["low"], share["high"]) for radius, share in radii_of(one)),
            )
            for one in found["runs"]
        ]
        keys = tuple((f"line engine-{number % 6}", one.name) for number, one in enumerate(series))
        drawing = drawn_lines("Texts kept right by number of swaps", series, "swaps allowed", steps=True)
        figures = (
            Figure(
                "Accuracy under attack",
                drawing,
                "A band lies between what is certified and what is not known to be broken.",
                keys,
            ),
        )
    more = tuple(radii(found)) if found["kind"] == "msr" else ()
    figures += tuple(figure for figure, _ in more)
    grid = Grid("Each run by itself", ("run", "accuracy", *swaps), rows, definition)
    yield Part("Side by side", figures, (grid, *[own for _, own in more]))


def radii(found: Findings) -> Iterator[tuple[Figure, Grid]]:
    """Safe radii of all words by embedding, and by position."""
    runs = [(one["name"], one["radii"]) for one in found["runs"]]
    series = [
        Series(name, tuple((at, low, low) for at, low in enumerate(own["by_position"] or (), 1) if low is not None))
        for name, own in runs
    ]
    keys = tuple((f"line engine-{number % 6}", one.name) for number, one in enumerate(series))
    drawing = drawn_trend("Mean low end by position", series, "position of the word")
    said = "Mean low end of the words at each position, over the texts that have one there."
    rows = tuple(
        (name, str(own["dimensions"]), number_of(own["diameter"]), str(own["sets"]), *ends_of(own["set_radius"]),
         *ends_of(own["normalised"]))
        for name, own in runs
    )  # fmt: skip
    columns = ("run", "dimensions", "diameter", "words", "low", "high", "low / diameter", "high / diameter")
    definition = "Means over all words or sets of words; high only where the class of all of them is known to change."
    yield Figure("Radius by position", drawing, said, keys), Grid("Safe radii", columns, rows, definition)


def number_of(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def ends_of(ends: Mapping[str, Any]) -> tuple[str, str]:
    return number_of(ends["low"]), number_of(ends["high"])


def radii_of(one: Findings) -> list[tuple[int, Mapping[str, float]]]:
    return [(int(radius), share) for radius, share in one["shares"].items()]


def differences(found: Findings) -> Iterator[Part]:
    """Each run less the first."""
    for one in found["against_the_first"]:
        figures, grids = [], []
        if found["kind"] in COUNTED:
            figures.append(
                Figure(
                    "Difference of the shares, in percentage points",
                    drawn_intervals(
                        f"{one['other']} less {one['first']}, by number of swaps",
                        [
                            (f"{share['radius']} swaps" if share["radius"] != 1 else "1 swap", *four(share))
                            for share in one["shares"]
                        ],
                        f"points {one['other']} keeps more",
                    ),
                    "Thick: what is known of these texts; thin: the 95 % interval of the population.",
                    (("better", "surely more"), ("worse", "surely fewer"), ("unsure", "not sure")),
                )
            )
            grids.append(shares_grid(found, one))
        changes = one.get("changes")
        if changes:
            figures.append(
                Figure(
                    "Texts by change of their minimum",
                    drawn_bars(
                        "Texts by change of min_swaps",
                        [(name, number) for name, number in changes],
                        f"swaps that {one['other']} takes more",
                    ),
                    "Texts whose minimum is known in both runs; right of 0: more swaps are needed than before.",
                )
            )
        grids.append(mean_grid(found, one))
        if "words" in one:
            grids.extend(word_grids(one))
        yield Part(f"{one['other']} against {one['first']}", tuple(figures), tuple(grids))


def four(share: Findings) -> tuple[float, float, float, float]:
    both, far = share["difference"], share["interval"]
    return far["low"], both["low"], both["high"], far["high"]


def shares_grid(found: Findings, one: Findings) -> Grid:
    rows = tuple(
        (
            str(share["radius"]),
            ends(share["difference"], points),
            f"{points(share['interval']['low'])} to {points(share['interval']['high'])}",
            numbers(share["gained"]),
            numbers(share["lost"]),
            p_value(share["p"]),
        )
        for share in one["shares"]
    )
    columns = ("swaps", "difference in points", "95 % interval", "gained", "lost", "p")
    definition = (
        f"{found['definitions']['shares']}. Gained: texts that only {one['other']} keeps; lost: that only "
        f"{one['first']} does. {found['definitions']['shares_method']}. p is of each row by itself."
    )
    return Grid(f"{one['other']} less {one['first']}, by number of swaps", columns, rows, definition)


def mean_grid(found: Findings, one: Findings) -> Grid:
    rows = (mean_row("all", one["mean"]),)
    columns = ("texts", "number", one["first"], one["other"], "difference", "95 % interval")
    left = one["mean"]["left_out"]
    definition = f"{found['definitions']['mean']}; {left:,} others are left out. "
    return Grid("Means", columns, rows, definition + f"Interval: {found['definitions']['mean_method']}.")


def mean_row(name: str, mean: Findings) -> tuple[str, ...]:
    if not mean["texts"]:
        return name, "0", "", "", "", ""
    far = mean["interval"]
    return (
        name,
        f"{mean['texts']:,}",
        ends(mean["first"], plain),
        ends(mean["other"], plain),
        ends(mean["difference"], signed),
        "" if far is None else f"{signed(far['low'])} to {signed(far['high'])}",
    )


def word_grids(one: Findings) -> Iterator[Grid]:
    said = "kappa: the share of texts that the word flips, put anywhere in them; [low, high] where it is not known"
    for name, what in (("worse", "more dangerous"), ("better", "less dangerous")):
        rows = tuple(
            (word["word"], *(bracket(low, high, plain) for low, high in (word["first"], word["other"])))
            for word in one["words"][name]
        )
        columns = ("word", f"kappa, {one['first']}", f"kappa, {one['other']}")
        yield Grid(f"Words that became {what}", columns, rows, f"{said}. The largest sure changes first.")


def what_got_worse(found: Findings, runs: Sequence[ComparedRun]) -> Iterator[Part]:
    """In one sentence for each run, and the first few texts."""
    said = []
    for one in found["against_the_first"]:
        lost = [
            id
            for id in one["worse"]
            if not standing(runs, one["first"], id).wrong and standing(runs, one["other"], id).wrong
        ]
        said.append(
            f"{one['other']}: {one['moved']['worse']:,} of {found['texts']:,} texts got worse, {len(lost):,} of them "
            f"because they are answered wrongly now; {one['moved']['better']:,} got better."
        )
    yield Part(
        "What got worse",
        said=(*said, "The table of texts below begins with them; each opens to the sentences that fool the models."),
    )


def standing(runs: Sequence[ComparedRun], name: str, id: int) -> Standing:
    return next(run for run in runs if run.name == name).standing(id)


def groups(found: Findings) -> Iterator[Part]:
    """By class, and against length."""
    counted, at = found["kind"] in COUNTED, found["grouped_at"]
    what = "Accuracy" if not at else f"Shares kept right under {at} swap{'' if at == 1 else 's'}"
    definition = f"{what}, defined as above; points." if counted else "Means, defined as above."
    definition += " Each row by itself: of many intervals of 95 % some miss."
    for one in found["against_the_first"]:
        figures, grids = [], []
        for key, title in (("by_class", "class"), ("by_length", "length")):
            moves, runs = ("worse", "better", "not settled"), (one["first"], one["other"])
            columns = (title, "texts", *moves, *runs, "difference", "95 % interval")
            rows = tuple(group_row(group, counted=counted) for group in one[key])
            grids.append(Grid(f"By {title}", columns, rows, definition))
            if counted:
                drawing = drawn_intervals(
                    f"Difference by {title}",
                    [(group["name"], *four(group["share"])) for group in one[key]],
                    f"points {one['other']} keeps more",
                )
                figures.append(Figure(f"Difference by {title}", drawing, "Numbers and definition: the table below."))
        yield Part(f"{one['other']} by class and length", tuple(figures), tuple(grids))


def group_row(group: Findings, *, counted: bool) -> tuple[str, ...]:
    moves = (f"{group['moved'][name]:,}" for name in ("worse", "better", "not_settled"))
    begun = (group["name"], f"{group['texts']:,}", *moves)
    if not counted:
        return (*begun, *mean_row("", group["mean"])[2:])
    share = group["share"]
    return (
        *begun,
        ends(share["first"], percent),
        ends(share["other"], percent),
        ends(share["difference"], points),
        f"{points(share['interval']['low'])} to {points(share['interval']['high'])}",
    )


def moved_rows(found: Findings, runs: Sequence[ComparedRun]) -> Rows:
    several = len(runs) > 2
    moves = tuple(Column(f"moved, {run.name}" if several else "moved", "choice") for run in runs[1:])
    columns = (
        Column("text", "number"),
        *moves,
        Column("label", "choice"),
        *(Column(run.name, "number") for run in runs),
        Column("words", "number"),
        Column("what is said", "text"),
    )

    def each() -> Iterator[Row]:
        for id in order(found, runs):
            text = runs[0].texts[id]
            standings = [run.standing(id) for run in runs]
            cells = [
                id,
                *(moved(standings[0], other) for other in standings[1:]),
                text["label"],
                *(shown(one, found["kind"]) for one in standings),
                len(text["text"].split()),
                text["text"],
            ]
            yield cells, [detail(run, one, id) for run, one in zip(runs, standings, strict=True)]

    return Rows(
        "What got worse comes first, and of that what lost most.",
        columns,
        found["texts"],
        each,
        f"{', '.join(run.name for run in runs)}: {UNIT[found['kind']]}, as [low, high] where the ends do not meet; "
        f"never: no number of swaps is enough; wrong: answered wrongly without one. {found['definitions']['moved']}.",
    )


def order(found: Findings, runs: Sequence[ComparedRun]) -> list[int]:
    """Worse in any run first, those that lost most before the others."""
    first: list[int] = []
    for one in found["against_the_first"]:
        first += one["worse"]
    seen = dict.fromkeys(first)

    def rank(id: int) -> tuple[int, int]:
        before = runs[0].standing(id)
        return min(RANK[moved(before, run.standing(id))] for run in runs[1:]), id

    return [*seen, *sorted((id for id in range(found["texts"]) if id not in seen), key=rank)]


def shown(one: Standing, kind: str) -> object:
    if one.wrong:
        return "wrong"
    if kind in COUNTED:
        if one.low == math.inf:
            return "never" if kind == "certify" else "not broken"
        high = None if one.high == math.inf else int(one.high)
        return int(one.low) if one.exact else [int(one.low), high]
    return round(one.low, 6) if one.exact else [round(one.low, 6), None if one.high == math.inf else round(one.high, 6)]


def detail(run: ComparedRun, one: Standing, id: int) -> Detail:
    line = run.lines.get(id)
    text = str(run.texts[id]["text"])
    if line is None or one.wrong:
        return f"{run.name}: answered wrongly as it stands", text, ()
    witness = line.get("witness")
    if witness is None:
        known = shown(one, run.kind)
        said = f"[{known[0]}, {'?' if known[1] is None else known[1]}]" if isinstance(known, list) else str(known)
        return f"{run.name}: {said}", text, ()
    number = len(witness["swaps"])
    return f"{run.name}: {number} swap{'' if number == 1 else 's'} change the answer", text, witness["swaps"]


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def points(share: float) -> str:
    return f"{100 * share + 0.0:+.2f}"


def plain(number: float) -> str:
    return f"{number:.4f}"


def signed(number: float) -> str:
    return f"{number + 0.0:+.4f}"


def ends(both: Mapping[str, float], told: Any) -> str:
    return bracket(both["low"], both["high"], told)


def bracket(low: float, high: float, told: Any) -> str:
    return str(told(low)) if low == high else f"[{told(low)}, {told(high)}]"


def numbers(both: Mapping[str, int]) -> str:
    return f"{both['low']:,}" if both["low"] == both["high"] else f"[{both['low']:,}, {both['high']:,}]"


def p_value(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"
