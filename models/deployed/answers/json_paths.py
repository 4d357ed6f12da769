"""Requests and answers of JSON: where the texts go, and where the scores stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import BadInput, one_line
from ..swapped_text import Fields
from .score_rows import LABEL, SCORE

REQUEST = '{"text": {text}}'
REQUEST_OF_PAIRS = '{"text": {text}, "context": {context}}'
PLACE = re.compile(r"\{(texts?|contexts?)\}")
STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\d+|\*)\]")
EVERY = "*"
Step = str | int
LISTED, EXCERPT = 6, 80
DEEPEST = 6


@dataclass(frozen=True)
class Template:
    """JSON in which {text} and {context}, or {texts} and {contexts} of a whole batch, stand for values."""

    text: str
    fields: int
    moving: int

    @property
    def whole(self) -> bool:
        """Whether a batch is one request."""
        return "{texts}" in self.text

    def filled(self, batch: Sequence[Fields]) -> str:
        moving = [sentence[self.moving] for sentence in batch]
        contexts = [sentence[1 - self.moving] for sentence in batch] if self.fields == 2 else [""]
        values = {"text": moving[0], "texts": moving, "context": contexts[0], "contexts": contexts}
        return PLACE.sub(lambda found: json.dumps(values[found[1]]), self.text)


def template_of(text: str | None, fields: int, moving: int | None) -> Template:
    """The request that a task names, or the usual one; tried once, so that it is JSON whatever the texts."""
    pairs = fields == 2
    if pairs and moving is None:
        raise TypeError("of pairs, an endpoint needs to know which text moves")
    text = text if text is not None else REQUEST_OF_PAIRS if pairs else REQUEST
    places = set(PLACE.findall(text))
    needed = [{"text", "context"}, {"texts", "contexts"}] if pairs else [{"text"}, {"texts"}]
    if places not in needed:
        ways = " or ".join(" and ".join(f"{{{place}}}" for place in sorted(way, reverse=True)) for way in needed)
        given = ", ".join(f"{{{place}}}" for place in sorted(places)) or "neither"
        raise BadInput(f"[model] request: {'pairs need' if pairs else 'needs'} {ways}, and there is {given}")
    template = Template(text, fields, moving or 0)
    try:
        json.loads(template.filled([("a",) * fields]))
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"[model] request: not JSON once {{text}} is a string with its quotation marks ({one_line(error)})"
        ) from None
    return template


def steps_of(path: str) -> tuple[Step, ...]:
    """`$`, `scores`, `[*].score`, `predictions[0].probabilities`."""
    rest, steps = path.removeprefix("$"), []
    while rest:
        found = STEP.match(rest)
        if found is None:
            raise BadInput(
                f"[model] response: {json.dumps(path)} is no path at {json.dumps(rest)}: "
                "write $ for all of it, a.b for keys, [0] for one of a list, [*] for each"
            )
        steps.append(found[1] or (EVERY if found[2] == EVERY else int(found[2])))
        rest = rest[found.end() :]
    return tuple(steps)


def taken(value: Any, steps: Sequence[Step]) -> Any:
    """What stands at the path. `[*].score` of objects that name their class leaves the names: their order varies."""
    if not steps:
        return value
    step, *rest = steps
    match value, step:
        case list(), "*":
            if rest == [SCORE] and value and all(isinstance(entry, dict) and LABEL in entry for entry in value):
                return value
            return [taken(entry, rest) for entry in value]
        case list(), int() if step < len(value):
            return taken(value[step], rest)
        case dict(), str() if step in value:
            return taken(value[step], rest)
    raise LookupError(
        f"{'[' + str(step) + ']' if isinstance(step, int) or step == EVERY else step} of {described(value)}"
    )


def one_row(value: Any) -> list[Any]:
    """The answer to one text as a list of one row."""
    return value if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) else [value]


def paths_of(value: Any) -> list[str]:
    """Where numbers stand in an answer, as [model] response names the places."""
    return list(dict.fromkeys(_paths(value, "")))


def described(value: Any) -> str:
    """Where numbers stand in an answer, or else which keys it has."""
    paths = paths_of(value)
    if paths:
        return f"numbers at {', '.join(paths[:LISTED])}"
    if isinstance(value, dict):
        return f"the keys {', '.join(list(value)[:LISTED])}" if value else "an empty object"
    return f"a list of {len(value)}" if isinstance(value, list) else json.dumps(value)[:EXCERPT]


def _paths(value: Any, at: str) -> Iterator[str]:
    if at.count(".") + at.count("[") > DEEPEST:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, list) and value:
        if all(isinstance(entry, dict) and {LABEL, SCORE} <= entry.keys() for entry in value):
            yield at or "$"
        elif isinstance(value[0], dict | list):
            yield from _paths(value[0], f"{at}[0]")
        else:
            yield from _paths(value[0], at or "$")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at or "$"
