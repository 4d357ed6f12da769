"""The page of `bench exact`: who solved what in which time, in one table of ratios, and every text to look through."""

from __future__ import annotations

from collections.abc import Iterator

from ...pages.figures import LINES, cactus
from ...pages.sheets.sheet import BANNERS, Column, Figure, Grid, Part, Row, Rows, Sheet
from ..comparison import Comparison, said, where

TITLE = "How long does each engine take?"
LEAST = 1e-4
"""Seconds that a drawn time has at least."""
SCORES = ("engine", "solved", "not run", "nodes", "median s", "total s", "CPU s")
RATIOS = ("median ratio", "total ratio", "CPU ratio", "with limit")


def timed_sheet(table: Comparison) -> Sheet:
    scores = [table.score(engine) for engine in table.engines]
    solved = "; ".join(f"{one.engine} solved {one.solved:,} of {one.asked:,}" for one in scores)
    times = {
        engine: sorted(max(LEAST, answers[engine].seconds) for answers in table.texts.values()
                       if engine in answers and answers[engine].solved)
        for engine in table.engines
    }  # fmt: skip
    drawn = {engine: own for engine, own in times.items() if own}
    return Sheet(
        title=TITLE,
        lead=f"{', '.join(table.engines)} on the same {len(table.texts):,} texts and swaps, one thread each, at most "
        f"{table.seconds:g} s for a text.",
        banner="neutral" if not table.disagreements else BANNERS[table.exit_code],
        claim=f"{solved}.",
        said=f"Disagreements: {len(table.disagreements)}.",
        warnings=table.disagreements,
        definition=table.definition,
        parts=(
            Part(
                "Side by side",
                (
                    Figure("Texts solved in so many seconds each", cactus(drawn),
                           "A line counts the texts that the engine solved in at most so long.",
                           tuple((f"line engine-{place % LINES}", engine) for place, engine in enumerate(drawn))),
                ) if drawn else (),
                (Grid("Totals and ratios", (*SCORES, *RATIOS), tuple(totals(table)), "Defined above."),),
                (*table.own_costs, *table.same_solver),
            ),
        ),
        rows=rows(table),
        facts=(("measured", where(table.about)),),
    )  # fmt: skip


def totals(table: Comparison) -> Iterator[tuple[str, ...]]:
    for engine in table.engines:
        score = table.score(engine)
        ratios = (score.median_ratio, score.total_ratio, score.total_cpu_ratio, score.total_ratio_with_limit)
        yield (
            engine,
            f"{score.solved} of {score.asked}",
            str(score.too_large + score.failed),
            "" if score.median_nodes is None else f"{score.median_nodes:g}",
            "" if score.median_seconds is None else f"{score.median_seconds:.3f}",
            f"{score.total_seconds:.2f}",
            f"{score.total_cpu_seconds:.2f}",
            *("" if number is None else f"{number:.3g}x" for number in ratios),
        )


def rows(table: Comparison) -> Rows:
    """The hardest first."""
    hardest = sorted(table.texts, key=lambda id: (-max(one.seconds for one in table.texts[id].values()), id))

    def each() -> Iterator[Row]:
        for id in hardest:
            answers = table.texts[id]
            cells: list[object] = [id]
            for engine in table.engines:
                one = answers.get(engine)
                cells += ["", None] if one is None else [said(one), round(one.seconds, 4) if one.timed else None]
            yield cells, []

    columns = [Column("text", "number")]
    for engine in table.engines:
        columns += [Column(engine, "number"), Column(f"{engine}, s", "number")]
    return Rows(
        "What took longest comes first.",
        tuple(columns),
        len(hardest),
        each,
        "The minimum number of swaps that each engine found, and its seconds; defined above.",
        opens=False,
    )
