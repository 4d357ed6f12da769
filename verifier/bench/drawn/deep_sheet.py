"""The page of `bench deep`: which way decides how many texts at each number of swaps, and what that takes."""

from __future__ import annotations

from collections.abc import Iterator

from ...pages.figures import LINES, cactus
from ...pages.sheets.plots import Series, drawn_lines
from ...pages.sheets.sheet import BANNERS, Column, Detail, Figure, Grid, Part, Row, Rows, Sheet
from ..comparison import where
from ..deep_answers import DeepAnswer
from ..deep_table import EITHER, DeepTable, cells
from ..each_radius import HEAD, MEANING

TITLE = "Who decides this network, and how far?"
LEAST = 1e-4
"""Seconds that a drawn time has at least."""
COSTS = (
    "evaluated",
    "avoided",
    "sentences a CPU s",
    "CPU s",
    "certificate, bytes",
    "screening s",
    "check.py s",
)


def deep_sheet(table: DeepTable) -> Sheet:
    upto = f"{table.radius} swap{'' if table.radius == 1 else 's'}"
    decided = "; ".join(f"{one.engine} decides {one.decided[-1]:.0%}" for one in table.scores)
    unscreened = tuple(
        f"{one.engine}: {one.unscreened} proofs that only check.py can accept."
        for one in table.scores
        if one.unscreened and one.engine != EITHER
    )
    wrong = f"{table.already_wrong:,} texts that the model already gets wrong were left out."
    return Sheet(
        title=TITLE,
        lead=f"{', '.join(table.engines)} on the same {len(table.texts):,} texts and swaps, one thread each, at most "
        f"{table.seconds:g} s for each way and text.",
        banner="neutral" if not table.disagreements else BANNERS[table.exit_code],
        claim=f"Of {len(table.texts):,} texts under any {upto}: {decided}." if table.texts else "No text was asked.",
        said=f"Disagreements: {len(table.disagreements)}.",
        warnings=table.disagreements,
        definition=table.definition,
        parts=(
            Part("Texts decided", figures(table), (shares_grid(table),)),
            Part(
                "What it takes",
                grids=(costs_grid(table),),
                said=(*unscreened, *((wrong,) if table.already_wrong else ())),
            ),
            *((Part("Each radius alone", grids=(radii_grid(table),)),) if table.each_radius else ()),
            *((Part("What stays open", grids=(causes_grid(table),)),) if table.causes else ()),
        ),
        rows=rows(table),
        facts=(("measured", where(table.about)),) if table.about else (),
    )


def figures(table: DeepTable) -> tuple[Figure, ...]:
    keys = tuple((f"line engine-{place % LINES}", one.engine) for place, one in enumerate(table.scores))
    found = []
    for what, meaning in (
        ("decided", "none breaks the text, or one that does was replayed"),
        ("proved", "none breaks it"),
    ):
        series = [
            Series(one.engine, tuple((k, share, share) for k, share in enumerate(getattr(one, what), start=1)))
            for one in table.scores
        ]
        drawing = drawn_lines(f"Texts {what} by number of swaps", series, "sentences with at most so many swaps")
        found.append(Figure(f"Texts {what}", drawing, f"The share of texts of which it is known: {meaning}.", keys))
    times = {
        name: sorted(max(LEAST, of[name].cpu_seconds) for of in table.texts.values() if of[name].decides(table.radius))
        for name in table.engines
    }
    drawn = {name: own for name, own in times.items() if own}
    if drawn:
        said = f"A line counts the texts decided at {table.radius} in at most so many CPU seconds, proofs not checked."
        lines = tuple((f"line engine-{place % LINES}", name) for place, name in enumerate(drawn))
        found.append(Figure("Texts decided in so many CPU seconds each", cactus(drawn), said, lines))
    return tuple(found)


def shares_grid(table: DeepTable) -> Grid:
    every = range(1, table.radius + 1)
    rows = tuple(
        (one.engine, what, *(f"{100 * share:.1f} %" for share in getattr(one, what)))
        for one in table.scores
        for what in ("decided", "proved")
    )
    sentences = ", ".join(f"{sum(counts[k - 1] for counts in table.totals.values()):,}" for k in every)
    columns = ("way", "", *(f"{k} swap{'' if k == 1 else 's'}" for k in every))
    return Grid("Share of the texts", columns, rows, f"Defined above. All sentences with at most so many: {sentences}.")


def costs_grid(table: DeepTable) -> Grid:
    rows = tuple((one.engine, *tuple(cells(one))[2:]) for one in table.scores)
    return Grid(
        "Sentences, seconds and certificates", ("way", *COSTS), rows, "Defined above; a / b / c: median, 9 of 10, most."
    )


def radii_grid(table: DeepTable) -> Grid:
    rows = tuple(one.cells() for one in table.each_radius)
    return Grid("Found and certified", HEAD, rows, MEANING)


def causes_grid(table: DeepTable) -> Grid:
    rows = tuple((engine, f"{count:,}", why or "no more is asked") for engine, why, count in table.causes)
    definition = f"Texts that are not decided at {table.radius}; numbers in a reason stand as N."
    return Grid("Why texts are open", ("way", "texts", "reason"), rows, definition)


def rows(table: DeepTable) -> Rows:
    """What the ways leave open, and what took longest, come first."""

    def hardness(id: int) -> tuple[int, float, int]:
        own = table.texts[id].values()
        return -sum(not one.decides(table.radius) for one in own), -max(one.cpu_seconds for one in own), id

    def each() -> Iterator[Row]:
        for id in sorted(table.texts, key=hardness):
            own = table.texts[id]
            row: list[object] = [id, next(iter(own.values())).words]
            for name in table.engines:
                row += [known(own[name]), round(own[name].cpu_seconds, 4)]
            yield row, [detail(own[name]) for name in table.engines]

    columns = [Column("text", "number"), Column("words", "number")]
    for name in table.engines:
        columns += [Column(name, "number"), Column(f"{name}, CPU s", "number")]
    return Rows(
        "Texts that most ways leave open come first, then those that took longest.",
        tuple(columns),
        len(table.texts),
        each,
        "Words: those that can be swapped. Of each way: the minimum number of swaps, [low, high] where it is not known "
        "(? : no sentence is known), or never; and its CPU seconds.",
    )


def known(one: DeepAnswer) -> object:
    if one.harmless >= one.words:
        return "never"
    low = one.harmless + 1
    return low if one.broken == low else [low, one.broken]


def detail(one: DeepAnswer) -> Detail:
    state = "Claimed" if one.claimed else "Known"
    said = f"{state} harmless: {one.harmless} swaps. {one.sentences:,} sentences evaluated."
    if one.broken is not None:
        said += f" A sentence with {one.broken} swaps breaks it."
    if one.certificate is not None:
        proof = one.certificate
        state = "accepted" if proof.accepted else f"not accepted: {proof.refusal or 'not asked in the time'}"
        said += f" Certificate of {proof.size:,} bytes, level {proof.level}: {state}."
    if one.reason:
        said += f" Why it came no further: {one.reason}."
    return one.engine, said, ()
