"""What an earlier try, with less time, left of a text that is still open; from there the next try goes on.

Its certificate was accepted when it was written, and is the same file still: its proof is not searched or checked
again. What is kept of the search beyond it was never checked: whatever becomes of it is checked like any other proof.
So with a text at which a process died before: how far the next one came is kept from second to second.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from swapproof.encodings.query import Query
from swapproof.encodings.word_options import inputs_of, option_counts, swaps_of, words_of
from swapproof.proofs.writing.certificate import Lower, encode_tree
from swapproof.proofs.writing.tree_reader import decode_tree

from ..engines.protocol import Bound, Unchecked
from ..interval import Cover, Proof
from ..runs.run_folder import Run, write_atomically
from ..runs.run_summary import STAGE
from ..runs.store import ILL_FORMED, Store
from ..runs.store import intact as undamaged
from .climbing import Climb
from .text_verdict import Known, Step, Verdict

KEPT = "kept"
"""The stage of the store that holds, for open texts, how far their search came, and in how much time."""

STEP = 1.0
"""Seconds of a search that a kill may cost, of a text at which a process died before."""


@dataclass(frozen=True)
class Earlier:
    """The line of an open text, its certificate if it has one, and what was kept of its search."""

    line: Mapping[str, Any]
    certificate: bytes | None
    kept: str | None

    def lower(self, query: Query) -> Lower | None:
        """The proof in the certificate."""
        part = None if self.certificate is None else json.loads(self.certificate)["lower"]
        return None if part is None else Lower(part["swaps"], part["level"], tree_in(part, query))

    def known(self, query: Query) -> Known:
        """What the next climb begins with."""
        lower, cover = self.lower(query), kept_cover(self.kept, query)
        upper = None if self.certificate is None else json.loads(self.certificate)["upper"]
        about = inputs_of(query.space), words_of(query.space)
        engine = str(self.line["engine"])
        return Known(
            low=0 if lower is None else lower.swaps + 1,
            proof=None if lower is None else Proof(lower.tree, lower.level, engine),
            witness=None if upper is None else query.space.sentence(swaps_of(*about, upper["swaps"])),
            cover=cover,
            engine=engine,
            history=tuple(Step(**step) for step in self.line.get("history", ())),
        )

    def added(self, verdict: Verdict) -> Verdict:
        """What both tries cost together."""
        spent = ("seconds", "evaluations", "requests")
        return replace(verdict, **{name: getattr(verdict, name) + self.line[name] for name in spent})


def kept_line(seconds: float | None, cover: Cover | None, query: Query) -> str:
    """A row of the store: the time a text was given, and how far its search came."""
    line: dict[str, Any] = {"seconds": seconds}
    if cover is not None:
        tree = base64.b64encode(encode_tree(cover.tree, option_counts(query.space), query.rivals)).decode()
        line["cover"] = {"swaps": cover.swaps, "level": cover.level, "tree": tree}
    return json.dumps(line)


def kept_cover(line: str | None, query: Query) -> Cover | None:
    cover = None if line is None else json.loads(line).get("cover")
    return None if cover is None else Cover(cover["swaps"], tree_in(cover, query), cover["level"])


def tree_in(part: Mapping[str, Any], query: Query) -> Any:
    return decode_tree(base64.b64decode(part["tree"]), option_counts(query.space), query.rivals)


def left_open(
    run: Run, store: Store, finished: Set[int], seconds: float | None
) -> Iterator[tuple[int, dict[str, Any], str | None]]:
    """Of the finished texts those that less time than this left open: id, line, and what was kept of the search."""
    kept = {id: store.line(KEPT, id) for id, _ in store.finished(KEPT)}
    for id in sorted(finished):
        line = store.result(STAGE, id)
        with undamaged(run.store):
            less = had_less(kept.get(id), seconds)
        if line["status"] == "open" and less:
            yield id, line, kept.get(id)


def had_less(kept: str | None, seconds: float | None) -> bool:
    """Whether the time of a try was less than this; None is no limit."""
    before = 0.0 if kept is None else json.loads(kept).get("seconds", 0.0)
    return before is not None and (seconds is None or before < seconds)


@dataclass(frozen=True)
class Spent:
    seconds: float = 0.0
    evaluations: int = 0
    requests: int = 0

    def added(self, verdict: Verdict) -> Verdict:
        """What all tries cost together."""
        return replace(
            verdict,
            seconds=verdict.seconds + self.seconds,
            evaluations=verdict.evaluations + self.evaluations,
            requests=verdict.requests + self.requests,
        )


def write_begun(path: Path, query: Query, state: Climb, spent: Spent) -> None:
    interval = state.interval
    proof, witness = interval.low_evidence, interval.high_evidence
    line: dict[str, Any] = {
        "about": [query.space.digest, query.label],
        "engine": state.engine,
        "history": [asdict(step) for step in state.history],
        "spent": [spent.seconds, spent.evaluations, spent.requests],
        "lower": None,
        "witness": None if witness is None else [int(token) for token in query.space.sentence(witness.swaps)],
        "kept": kept_line(None, interval.cover, query),
    }
    if proof is not None:
        tree = base64.b64encode(encode_tree(proof.tree, option_counts(query.space), query.rivals)).decode()
        line["lower"] = {"low": interval.low, "level": proof.level, "tree": tree, "engine": proof.engine}
    write_atomically(path, json.dumps(line).encode(), durable=False)


def read_begun(path: Path, query: Query, check: Callable[[Bound], str | None]) -> tuple[Known, Spent] | None:
    """What may be begun with; None where there is nothing that can be read, of this text. The proof is checked again:
    nobody noted the hash of this file."""
    with suppress(OSError, *ILL_FORMED):
        line = json.loads(path.read_bytes())
        if line["about"] != [query.space.digest, query.label]:
            return None
        low, proof, lower = 0, None, line["lower"]
        if lower is not None:
            bound = Bound(int(lower["low"]), tree_in(lower, query), lower["level"])
            with suppress(Unchecked):
                if check(bound) is None:
                    low, proof = bound.low, Proof(bound.tree, bound.level, str(lower["engine"]))
        witness = None if line["witness"] is None else tuple(int(token) for token in line["witness"])
        cover = kept_cover(line["kept"], query)
        history = tuple(Step(**step) for step in line["history"])
        return Known(low, proof, witness, cover, str(line["engine"]), history), Spent(*line["spent"])
    return None
