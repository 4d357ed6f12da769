"""A log of TextAttack as a run of `attack`: each of its sentences is put to the deployed model, whatever the log says.

witness          it breaks the text and is a sentence of the frozen space: a high end like any other
outside          it breaks the text, and is no sentence of the space or beyond a limit: counted, and no high end
false success    the log says that it breaks the text, and the model says that it does not
failed, skipped  the log claims no success
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.classifier import NoAnswer
from swapproof.models.errors import BadInput as Misshapen

from ...runs.work import Settled
from ...tasks.inputs import Text
from ..attacked_text import Attacked
from ..attacking import Attacking, Station
from ..deployed_answers import OfModel
from .log_rows import REACHED, Logged, plainly, read_log, row_of

METHOD = "textattack"
"""The name of such a run's attack."""
WITNESS, OUTSIDE, FALSE, UNCLAIMED, ABSENT = "witness", "outside", "false success", "no success", "not in the log"


@dataclass(frozen=True)
class Imported(Attacking):
    """`log`: of the texts that stand in it, by number, what it says of them."""

    log: Mapping[int, Logged] = field(default_factory=dict)

    def settle(self, station: Station, text: Text) -> Settled:
        if text.id not in self.log:
            return Settled(text.id, self.unlogged(text), None)
        settled = super().settle(station, text)
        line, row = settled.line, self.log[text.id]
        line["evaluations"] = line["attack"]["evaluations"] = None  # the log has requests, and not which were cached
        kind = UNCLAIMED
        if row.result in REACHED and line["status"] != "already_wrong" and not line["attack"].get("failed"):
            kind = WITNESS if line["witness"] is not None else self.judged(station, text, row)
        line["attack"]["textattack"] = {"row": row.line, "result": row.result, "found": kind}
        if kind in (OUTSIDE, FALSE):
            line["reason"] = {
                OUTSIDE: "the log's sentence breaks the text, and is no sentence of the frozen space and its limits",
                FALSE: "the log says that its sentence breaks the text, and the deployed model says that it does not",
            }[kind]
            line["attack"]["textattack"]["sentence"] = row.perturbed[text.moving]
        return settled

    def unlogged(self, text: Text) -> dict[str, Any]:
        from ..attack_line import line_of

        spent = {"requests": 0, "evaluations": None, "seconds": 0.0}
        line = line_of(text, self.method, None, None, spent, failed="the log has no row of this text")
        line["attack"]["textattack"] = {"found": ABSENT}
        return line

    def judged(self, station: Station, text: Text, row: Logged) -> str:
        """Of a claimed success without a witness, by the sentence as the log spells it."""
        try:
            answer = int(station.decision.answers(station.classifier.scores([row.perturbed]))[0])
        except (NoAnswer, BadInput, Misshapen):
            return FALSE
        reached = answer not in (-1, text.label) if self.goal.target is None else answer == self.goal.target
        return OUTSIDE if reached else FALSE

    def search(self, station: Station, text: Text, attacked: Attacked, deployed: OfModel) -> NDArray[Any] | None:
        """The log's sentence, where it is one of the space and stands."""
        row = self.log[text.id]
        attacked.requests = row.queries
        options = row_of(text.swaps, row.perturbed[text.moving]) if row.result in REACHED else None
        if options is None or not any(options):
            return None
        others = [index for index in range(len(row.perturbed)) if index != text.moving]
        if any(row.perturbed[index].split() != text.swaps.fields[index].split() for index in others):
            return None
        found = np.array(options, dtype=np.int32)
        return found if attacked.permits(found[None])[0] and self.stands(station, text, found, deployed) else None


def imported(work: Attacking, texts: Sequence[Text], path: Path) -> tuple[Imported, tuple[str, ...]]:
    """The work of importing a log, and what is to be said of rows that belong to no text.

    Texts that stand there twice take their rows in the order of the log.
    """
    rows: dict[tuple[str, ...], list[Logged]] = defaultdict(list)
    for row in read_log(path):
        rows[plainly(row.original)].append(row)
    log: dict[int, Logged] = {}
    for text in texts:
        if waiting := rows[plainly(text.swaps.fields)]:
            log[text.id] = waiting.pop(0)
    left = [row.line for some in rows.values() for row in some]
    if not log:
        raise BadInput(f"{path}: none of its rows is of a text of this task")
    remarks = (f"{len(left)} rows of {path.name} are of no text of this task (row {min(left)})",) if left else ()
    own = {one.name: getattr(work, one.name) for one in fields(Attacking)}
    return Imported(**{**own, "method": METHOD, "searched": {}}, log=log), remarks


def accounts(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a run that was imported: how many of the log's sentences are what, and which claims are false."""
    kinds = {line["id"]: line["attack"]["textattack"]["found"] for line in lines}
    counted = Counter(kinds.values())
    return {
        **{name.replace(" ", "_"): counted[name] for name in (WITNESS, OUTSIDE, FALSE, UNCLAIMED, ABSENT)},
        "false_ids": [id for id, kind in kinds.items() if kind == FALSE],
    }
