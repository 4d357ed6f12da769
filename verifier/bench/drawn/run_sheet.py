"""The page of `bench run`: the sentences of a model that is run, beside a bare loop and what was said beforehand."""

from __future__ import annotations

from collections.abc import Iterator

from ...pages.sheets.plots import drawn_lengths
from ...pages.sheets.sheet import Card, Figure, Grid, Part, Sheet
from ..comparison import where
from ..run_figures import RunFigures, Spent

TITLE = "What does a sentence cost?"
LEAST = 1e-9


def run_sheet(found: RunFigures) -> Sheet:
    ways = dict(spent(found))
    beside = "no bare loop: it is not an ONNX model of tokens, or of fixed batches"
    if found.overhead is not None:
        beside = f"{100 * found.overhead:+.1f} % CPU time over a bare loop with batches of {found.best}"
    swaps = "1 swap" if found.radius == 1 else f"up to {found.radius} swaps"
    return Sheet(
        title=TITLE,
        lead=f"{found.model}: {found.sentences:,} sentences of {found.texts:,} texts, with {swaps}.",
        banner="neutral",
        claim=f"{each(found.run, found)} ms of CPU time a sentence, {beside}.",
        said=f"{found.estimated:.3g} s were said beforehand, and {found.run.wall:.3g} s were taken.",
        definition="As certify asks: order, tokens, batches and answers, all of it. Bare loop: onnxruntime alone on "
        "the same sentences, made beforehand as arrays and sorted by length; the best size of its batches counts. Both "
        "take turns, a few texts each.",
        cards=(
            Card(f"{found.sentences:,}", "sentences", f"with {swaps}, broken texts included"),
            Card(
                f"{found.estimated / max(LEAST, found.run.wall):.2f}",
                "said / taken",
                "seconds said beforehand by those taken",
            ),
        ),
        parts=(
            Part(
                "Side by side",
                (
                    Figure(
                        "CPU seconds",
                        drawn_lengths("CPU seconds of each way", [(name, one.cpu) for name, one in ways.items()], "s"),
                        "Of all sentences together.",
                    ),
                ),
                (
                    Grid(
                        "Every way",
                        ("way", "seconds", "CPU seconds", "ms a sentence", "CPU ratio"),
                        tuple(rows(found)),
                        "ms a sentence: of CPU time. CPU ratio: by that of the bare loop with its best batches.",
                    ),
                ),
            ),
        ),
        facts=(("measured", where(found.surroundings)),),
    )


def spent(found: RunFigures) -> Iterator[tuple[str, Spent]]:
    yield "as certify asks", found.run
    for size, one in sorted(found.bare.items()):
        yield f"bare, {size} at once", one


def each(one: Spent, found: RunFigures) -> str:
    return f"{1000 * one.cpu / max(1, found.sentences):.3f}"


def rows(found: RunFigures) -> Iterator[tuple[str, ...]]:
    least = None if found.best is None else found.bare[found.best].cpu
    for name, one in spent(found):
        ratio = "" if least is None else f"{one.cpu / max(LEAST, least):.3f}"
        yield name, f"{one.wall:.3g}", f"{one.cpu:.3g}", each(one, found), ratio
