"""All texts of a run searched at once, where that gives the same as one after the other."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.encodings.space import Frame
from swapproof.models.vocabulary import Vocabulary

from ...tasks.inputs import Text
from ..attack_goals import Goal
from ..attack_limits import Limits
from ..searches.beam_search import Beam
from ..searches.importance_search import ByImportance
from ..searches.search_protocol import Search
from .beam_together import by_beam
from .found_together import Found
from .importance_together import by_importance
from .laid_texts import NetworkTable
from .position_rows import CELLS, PositionRows
from .position_table import PositionTable
from .searched_text import Searched
from .several_texts import Several, nothing_behind, several_texts, token_behind, unknown_of
from .window_maxima import WindowTable

Together = Callable[[Several], Found]


def together(search: Search) -> Together | None:
    """The same search over several texts; None where there is none."""
    match search:
        case ByImportance(order="delete" | "unknown" | "saliency", undo=False):
            return lambda several: by_importance(search, several)
        case Beam(width) if width is not None:
            return lambda several: by_beam(search, several)
        case _:
            return None


def is_together(search: Search, vocabulary: Vocabulary, limits: Limits) -> bool:
    """Whether there is such a search, with these limits; texts are told apart later."""
    if together(search) is None or not limits.of_swaps_alone:
        return False
    unnamed = unknown_of(vocabulary) is None
    return not (unnamed and isinstance(search, ByImportance) and search.order != "delete")


def searched_together(
    search: Search,
    model: Model,
    vocabulary: Vocabulary,
    texts: Sequence[Text],
    goal: Goal,
    limits: Limits,
    *,
    fixed: bool,
) -> Iterator[dict[int, Searched | None]]:
    """Block by block, of the texts for which that can be done; None for one that the network answers otherwise before
    any swap. The others are attacked alone. `fixed`: all are of one length."""
    run = together(search)
    if run is None or not is_together(search, vocabulary, limits):
        return
    deletes = isinstance(search, ByImportance) and search.order == "delete"
    framed: dict[Frame, list[tuple[Text, int]]] = defaultdict(list)
    for text in texts:
        behind = token_behind(text, vocabulary, fixed=fixed) if deletes else nothing_behind(text)
        if behind is not None:
            framed[text.frozen.space.frame].append((text, behind))
    for some in framed.values():
        spaces = [text.frozen.space for text, _ in some]
        table = table_of(network_for(model, spaces[0], smooth=True), sum(space.candidates for space in spaces))
        if table is None:
            continue
        for block in blocks(some, table):
            started = time.monotonic()
            several = several_texts(table, block, goal, limits, unknown_of(vocabulary))
            outcome = run(several)
            seconds = (time.monotonic() - started) / len(block)
            found: dict[int, Searched | None] = {text.id: None for text, _ in block}
            yield found | {block[place][0].id: one for place, one in each(several, outcome, seconds)}


def table_of(network: Network, swaps: int) -> NetworkTable | None:
    """For so many swaps; None where they are fewer than a table is worth, or the network reads words otherwise."""
    rows = PositionRows.of(network, swaps)
    return None if rows is None else WindowTable.of(rows) or PositionTable.of(rows)


def blocks(texts: Sequence[tuple[Text, int]], table: NetworkTable) -> Iterator[list[tuple[Text, int]]]:
    """As many as fit into memory together."""
    block, cells = list[tuple[Text, int]](), 0
    for text, behind in texts:
        own = table.of_text + table.of_swap * (len(text.encoded.places) + text.frozen.space.candidates)
        if block and cells + own > CELLS:
            yield block
            block, cells = [], 0
        block.append((text, behind))
        cells += own
    if block:
        yield block


def each(several: Several, found: Found, seconds: float) -> Iterator[tuple[int, Searched]]:
    for place in np.flatnonzero(~found.odd).tolist():
        swaps = found.rows.get(place)
        told = None
        if swaps is not None:
            words = several.word_place[several.swap_word[list(swaps)]].tolist()
            told = tuple(zip(words, several.swap_option[list(swaps)].tolist(), strict=True))
        requests, evaluations, silent = (
            int(count[place]) for count in (found.requests, found.evaluations, found.silent)
        )
        yield place, Searched(requests, evaluations, silent, seconds, told)
