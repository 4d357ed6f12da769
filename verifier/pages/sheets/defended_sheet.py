"""table.html of `defend`: networks under several defences, by attacks, by what is certified, by what is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...defending.defence_rows import DEFINITIONS, SAYS_LITTLE, Row, columns_of, part_of, shown
from ..figures import LINES
from .plots import Series, drawn_lines
from .sheet import Column, Figure, Grid, Part, Rows, Sheet
from .sheet import Row as SheetRow

UNDEFENDED = ("none", "as given")
RADII = (1, 2, 3)
SORTED = ("Clean", "certified@", "rho* low", "train s")


def defended_sheet(rows: Sequence[Row], remarks: Sequence[str], facts: Sequence[tuple[str, str]] = ()) -> Sheet:
    networks = list(dict.fromkeys(row.source for row in rows))
    seeds = sorted({seed for row in rows for seed in row.seeds})
    wary = [said for row in rows for said in (*row.failed, *row.vacuous)]
    claims = [said for name in networks for said in [best_of([row for row in rows if row.source == name])] if said]
    return Sheet(
        title="Which defence withstands more swaps?",
        lead=f"{', '.join(networks)}: {len(rows)} networks"
        + (
            f", each trained with {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}."
            if seeds
            else "."
        ),
        banner="incomplete" if wary or not claims else "neutral",
        claim=claims[0] if claims else "Nothing is certified of these networks.",
        said=" ".join(claims[1:]),
        warnings=tuple(
            f"{row.source}, {row.defended}: {said}." for row in rows for said in (*row.failed, *row.vacuous)
        ),
        definition="A cell is the mean over seeds, in brackets the least and the greatest. A row that says little is "
        "one of a network that guesses or answers one class: it withstands every swap and knows nothing.",
        parts=tuple(part for name in networks for part in parts_of(name, [row for row in rows if row.source == name])),
        rows=looked_through(rows),
        facts=tuple(facts),
        closing="Every number follows from the runs beside this page; `swapproof check` checks each of them. "
        + " ".join(f"{remark[0].upper()}{remark[1:]}." for remark in remarks if remark not in wary),
    )


def best_of(rows: Sequence[Row]) -> str:
    """Of what says something: which certifies most, at what accuracy, beside the undefended one."""
    sound = [row for row in rows if not row.vacuous and row.figures.get("certified@1")]
    if not sound:
        return ""
    best = max(sound, key=lambda row: mean(row, "certified@1"))
    said = (
        f"Of {best.source}, {best.defended} certifies most at 1 swap: {cell(best, 'certified@1')} of the texts, at an "
        f"accuracy of {cell(best, 'Clean')}"
    )
    plain = next((row for row in sound if row.defended in UNDEFENDED and row is not best), None)
    if plain is None:
        return f"{said}."
    return f"{said}; undefended it is {cell(plain, 'certified@1')} at {cell(plain, 'Clean')}."


def mean(row: Row, name: str) -> float:
    found = row.figures.get(name)
    return -1.0 if found is None else found[0]


def cell(row: Row, name: str) -> str:
    return shown(name, row.figures.get(name))


def parts_of(name: str, rows: Sequence[Row]) -> Iterator[Part]:
    """Of one network: a figure, and a table for each kind of number."""
    grids = []
    columns = columns_of(rows)
    for part, definition in DEFINITIONS.items():
        own = [column for column in columns if part_of(column) == part]
        if own:
            body = tuple((labelled(row), *(cell(row, column) for column in own)) for row in rows)
            grids.append(Grid(part, ("defence", *own), body, definition))
    yield Part(name, tuple(figures_of(rows)), tuple(grids))


def labelled(row: Row) -> str:
    return row.defended + (SAYS_LITTLE if row.vacuous else "")


def figures_of(rows: Sequence[Row]) -> Iterator[Figure]:
    known = [row for row in rows if row.figures.get("certified@1") and row.figures.get("Clean")]
    if not known:
        return
    ranked = sorted(known, key=lambda row: -mean(row, "certified@1") + (1.0 if row.vacuous else 0.0))
    chosen = ranked[:LINES]
    plain = next((row for row in known if row.defended in UNDEFENDED), None)
    if plain is not None and plain not in chosen:
        chosen[-1] = plain
    series = [
        Series(
            labelled(row),
            (
                (0.0, mean(row, "Clean"), mean(row, "Clean")),
                *(
                    (float(radius), mean(row, f"certified@{radius}"), mean(row, f"unbroken@{radius}"))
                    for radius in RADII
                ),
            ),
        )
        for row in chosen
    ]
    keys = tuple((f"line engine-{number % LINES}", one.name) for number, one in enumerate(series))
    which = "" if len(known) <= LINES else f" The {LINES} that certify most are drawn, the undefended one among them."
    yield Figure(
        "Texts kept right by number of swaps",
        drawn_lines("Texts kept right by number of swaps", series, "swaps allowed", steps=True),
        f"A band lies between what is certified and what is not known to be broken; means over seeds.{which}",
        keys,
    )


def looked_through(rows: Sequence[Row]) -> Rows:
    """The numbers that networks are compared by, in one table that can be sorted: means."""
    columns = [name for name in columns_of(rows) if name.startswith(SORTED) or name.endswith(" Aua")]

    def each() -> Iterator[SheetRow]:
        for row in rows:
            numbers = [None if (found := row.figures.get(name)) is None else round(found[0], 6) for name in columns]
            yield [row.source, labelled(row), len(row.seeds), *numbers], ()

    named = (Column("network", "choice"), Column("defence", "plain"), Column("seeds", "number"))
    return Rows(
        "To be sorted by any number; all of them, with their spread, are in table.csv.",
        (*named, *(Column(name, "number") for name in columns)),
        len(rows),
        each,
        "Means over the seeds; how each is defined stands under the tables above.",
        noun="networks",
        opens=False,
    )
