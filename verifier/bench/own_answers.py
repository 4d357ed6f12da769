"""What one of our engines says of a text, alone on the ladder, and what that took."""

from __future__ import annotations

import time

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.certified_margins import Certified
from swapproof.encodings.word_options import option_counts
from swapproof.proofs.writing.certificate import encode_tree
from swapproof.proofs.writing.tree_reader import preorder

from ..engines.proof_tree import leaves
from ..engines.protocol import Budget, Engine
from ..ladder.climbing import climb
from ..ladder.replay import Replay
from .answers import Answer
from .peak_memory import peak_megabytes


def own_answer(engine: Engine, id: int, query: Query, replay: Replay, seconds: float) -> Answer:
    """One of our engines on the ladder, alone: witnesses replayed, certificates not checked."""
    Certified.of.cache_clear()
    Differences.of.cache_clear()  # what the engine before it computed would be a present
    wall, cpu = time.perf_counter(), time.process_time()
    budget = Budget(deadline=time.monotonic() + seconds)
    with peak_megabytes() as peak:
        verdict = climb(query, replay, [engine], budget, lambda bound: None)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    interval = verdict.interval
    tree = None if interval.low_evidence is None else interval.low_evidence.tree
    return Answer(
        id=id,
        engine=engine.name,
        status="exact" if verdict.status == "already_wrong" else verdict.status,
        low=interval.low,
        high=interval.high,
        seconds=wall,
        cpu_seconds=cpu,
        nodes=None if tree is None else leaves(tree),
        tree_nodes=None if tree is None else len(preorder(tree)),
        tree_bytes=None if tree is None else len(encode_tree(tree, option_counts(query.space), query.rivals)),
        peak_megabytes=max(peak, default=None),
        evaluations=verdict.evaluations,
        detail=verdict.reason or "",
        refused=verdict.contradiction,
    )
