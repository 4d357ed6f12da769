"""Searches over many texts at once in a run that has begun: what each block of them gave is kept in the store, and is
not searched for again when the run is gone on with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from ...interrupting import stops_after
from ...pages.progress import progress
from ...runs.store import Store, intact
from ...tasks.inputs import Text
from .searched_text import Searched

KEPT = "attack searched"
"""The stage; null for a text that is attacked alone."""
Search = Callable[[Sequence[Text]], Iterator[dict[int, Searched | None]]]
"""Block by block, what was found of each text of it."""


def searched_and_kept(
    store: Store, stage: str, texts: Sequence[Text], search: Search, *, shown: bool
) -> dict[int, Searched]:
    """Of the texts that `stage` has no result of: what is known of them, and what `search` gives of the others."""
    finished = {id for id, _ in store.finished(stage)}
    todo = [text for text in texts if text.id not in finished]
    with intact(store.path):
        kept = {id: of_line(store.line(KEPT, id)) for id, _ in store.finished(KEPT)}
    known = {text.id: kept[text.id] for text in todo if text.id in kept}
    rest = [text for text in todo if text.id not in kept]
    with progress("search", len(texts), len(texts) - len(rest), shown=shown and bool(rest)) as advance:
        for block in search(rest):
            with stops_after(), store.together():
                for id, one in block.items():
                    store.put(KEPT, id, json.dumps(None if one is None else one.fact), None)
            known |= block
            advance(len(block))
    return {id: one for id, one in known.items() if one is not None}


def of_line(line: str) -> Searched | None:
    fact = json.loads(line)
    return None if fact is None else Searched.of(fact)
