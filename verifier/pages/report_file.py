"""RUN/report.html, written from the store of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..runs.run_folder import Run, write_atomically
from ..runs.run_summary import STAGE, summary_of
from ..runs.store import Store
from .beside.shown_beside import beside
from .packed_rows import read_choices
from .page import page, weakness


@dataclass(frozen=True)
class Stored:
    """Lines of a store in this order, read anew whenever they are gone through."""

    store: Store
    order: Iterable[int]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for id in self.order:
            yield self.store.result(STAGE, id)


def write_report(run: Run) -> None:
    """RUN/report.html, from the store and the frozen spaces, without holding the rows in memory."""
    choices = read_choices(run.spaces)
    with Store.open(run.store, readonly=True) as store:
        lines = Stored(store, weakest_first(store))
        summary = summary_of(store)
        shown = page(summary, store.facts(), lines, choices, beside(run, summary, lines))
        write_atomically(run.report, shown.written())


def weakest_first(store: Store) -> list[int]:
    """Ids of the settled texts: those that few swaps break first."""
    return [id for *_, id in sorted(map(weakness, store.results(STAGE)))]
