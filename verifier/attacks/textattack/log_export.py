"""A run of `attack` as a log of TextAttack: scores and outputs are those that the deployed model gives now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swapproof.models.deployed.classifier import Classifier
from swapproof.models.errors import BadInput as Misshapen

from ...runs.results import pieces
from ...runs.run_folder import Run, write_atomically
from ...tasks.deployed_model import Trust, open_deployed
from ...tasks.inputs import Text
from ...tasks.task import Task, read_task
from ..attack_goals import Goal
from .log_rows import Result, Row, marked, written


def export_log(
    run: Run, lines: Iterable[Mapping[str, Any]], texts: Sequence[Text], goal: Goal, trust: Trust, to: Path
) -> None:
    """Writes the log of these lines, without the texts that the model does not answer."""
    task = read_task(run.task)
    rows = rows_of(lines, {text.id: text for text in texts}, task, open_deployed(task, trust), goal)
    write_atomically(to, written(rows).encode())


def rows_of(
    lines: Iterable[Mapping[str, Any]], texts: Mapping[int, Text], task: Task, classifier: Classifier, goal: Goal
) -> Iterator[Row]:
    names = [task.data.text] if task.data.context is None else [task.data.text, task.data.context]
    for line in lines:
        if line["attack"].get("failed"):
            continue
        text = texts[line["id"]]
        swaps = line["witness"]["swaps"] if line["witness"] else []
        moved = "".join(piece.after for piece in pieces(line["text"], swaps))
        fields = list(text.swaps.fields)
        after = [*fields[: text.moving], moved, *fields[text.moving + 1 :]]
        try:
            answered = classifier.scores([tuple(fields), tuple(after)])
            judged = goal.judge(answered, task.model.decision, text.label)
        except Misshapen:
            continue
        first, second = (int(one) for one in task.model.decision.answers(answered))
        ordered = names if text.moving == 0 else names[::-1]
        yield Row(
            marked(fields, ordered, [tuple(swap["characters"]) for swap in swaps], text.moving),
            marked(after, ordered, places_after(swaps), text.moving),
            (float(judged.shares[0]), float(judged.shares[1])),
            (first, second),
            text.label,
            max(1, line["requests"]),  # TextAttack counts the text itself, of those that it skips too
            result_of(line),
        )


def places_after(swaps: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Where the swapped words stand in the sentence."""
    found, moved = list[tuple[int, int]](), 0
    for swap in sorted(swaps, key=lambda swap: int(swap["position"])):
        start, end = swap["characters"]
        found.append((start + moved, start + moved + len(swap["to"])))
        moved += len(swap["to"]) - (end - start)
    return found


def result_of(line: Mapping[str, Any]) -> Result:
    if line["status"] == "already_wrong":
        return "Skipped"
    return "Failed" if line["witness"] is None else "Successful"
