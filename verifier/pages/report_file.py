"""RUN/report.html, written from the store of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..runs.run_folder import Run, write_atomically
from ..runs.run_summary import STAGE, summary_of
from ..runs.store import Store
from .page import hardness, page


def write_report(run: Run) -> None:
    """RUN/report.html, from the store, without holding its rows in memory."""
    with Store.open(run.store, readonly=True) as store:
        lines = read(store, hardest_first(store))
        write_atomically(run.report, page(summary_of(store), store.facts(), lines))


def hardest_first(store: Store) -> list[int]:
    """Ids of the settled texts: open and ambiguous ones first, then the ones that took longest."""
    return [id for *_, id in sorted(map(hardness, store.results(STAGE)))]


def read(store: Store, order: Iterable[int]) -> Iterator[dict[str, Any]]:
    for id in order:
        yield store.result(STAGE, id)
