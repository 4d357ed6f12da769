"""Rows of scores out of what functions and endpoints answer, asked in batches that they can take."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import BadInput, visible
from ..classifier import NoAnswer, Scores
from ..swapped_text import Fields

LABEL, SCORE = "label", "score"
"""Keys of one class of an answer, as Hugging Face pipelines and servers give them."""
NUMBERED = re.compile(r"LABEL_(\d+)")
SHOWN = 60


class Unreachable(NoAnswer):
    """No sentence's fault: asking about fewer would not help."""


def in_batches(ask: Callable[[Sequence[Fields]], Scores], sentences: Sequence[Fields], size: int) -> Scores:
    """Sentences of like length together. Where a batch has no answer its halves are asked, down to the one sentence
    that has none; where every half has one, these are the answer."""
    order = sorted(range(len(sentences)), key=lambda index: sum(map(len, sentences[index])))
    batches = ([sentences[index] for index in order[start : start + size]] for start in range(0, len(order), size))
    parts = [part for batch in batches for part in _halved(ask, batch)]
    if not parts:
        return np.empty((0, 0))
    widths = sorted({part.shape[1] for part in parts})
    if len(widths) > 1:
        raise NoAnswer(f"answers {widths[0]} scores to some texts and {widths[-1]} to others")
    scores = np.empty((len(order), widths[0]))
    scores[order] = np.concatenate(parts)
    return scores


def _halved(ask: Callable[[Sequence[Fields]], Scores], batch: Sequence[Fields]) -> Iterator[Scores]:
    try:
        found = ask(batch)
    except Unreachable:
        raise
    except NoAnswer as error:
        if len(batch) == 1:
            raise NoAnswer(f"{error}; the text is {shown(batch[0])}") from error
        middle = len(batch) // 2
        yield from _halved(ask, batch[:middle])
        yield from _halved(ask, batch[middle:])
    else:
        yield found


def shown(sentence: Fields) -> str:
    """Enough of it to find it again."""
    text = visible(" | ".join(sentence))
    return f'"{text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."}"'


def score_rows(answer: object, count: int, labels: Sequence[str], who: str) -> Scores:
    """[count, outputs] of an array, a tensor, or a list with a row for every text.

    A row is a list of numbers, one number, or the scores of named classes: {name: score}, or [{"label", "score"}, ...].
    These are put in the order of `labels`, whatever order they come in.
    """
    answer = _plain(answer)
    if isinstance(answer, np.ndarray):
        rows = _array(answer, who)
    elif isinstance(answer, list | tuple):
        listed = [_row(row, labels, who) for row in answer]
        widths = sorted({len(row) for row in listed})
        if len(widths) > 1:
            raise NoAnswer(f"{who} answered rows of {widths[0]} and of {widths[-1]} scores")
        rows = np.array(listed, dtype=np.float64)
    else:
        raise NoAnswer(f"{who} answered {kind_of(answer)}, where a row of scores for each text is needed")
    if len(rows) != count:
        raise NoAnswer(f"{who} answered {len(rows)} {'row' if len(rows) == 1 else 'rows'} to {_texts(count)}")
    if count and not rows.shape[1]:
        raise NoAnswer(f"{who} answered rows without a score")
    return rows


def _plain(value: object) -> object:
    """Tensors and whatever else is an array become arrays; arrays of objects and single numbers, Python's own."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor: Any = value.detach().cpu()
        value = (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    elif hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and (value.dtype == object or not value.ndim)):
        return value.tolist()
    return value


def _array(array: np.ndarray, who: str) -> Scores:
    if array.dtype.kind not in "iuf":
        raise NoAnswer(f"{who} answered an array of {array.dtype}, where scores are needed")
    if array.ndim > 2:
        raise NoAnswer(f"{who} answered an array of shape {list(array.shape)}; scores are [texts, outputs]")
    return np.asarray(array.reshape(len(array), -1) if array.size else array.reshape(len(array), 0), dtype=np.float64)


def _row(row: object, labels: Sequence[str], who: str) -> list[float]:
    row = _plain(row)
    if isinstance(row, np.ndarray):
        row = row.tolist()
    if isinstance(row, Mapping):
        if LABEL in row and SCORE in row:
            raise NoAnswer(
                f"{who} answered the score of {kind_of(row[LABEL])} alone: all classes are needed (top_k=None)"
            )
        return _named(list(row.items()), labels, who)
    if not isinstance(row, list | tuple):
        return [_number(row, who)]
    if row and all(isinstance(entry, Mapping) and {LABEL, SCORE} <= entry.keys() for entry in row):
        return _named([(entry[LABEL], entry[SCORE]) for entry in row], labels, who)
    return [_number(value, who) for value in row]


def _named(scores: Sequence[tuple[object, object]], labels: Sequence[str], who: str) -> list[float]:
    """In the order of the labels, found by name: an order of theirs would be a guess."""
    names = [str(name) for name, _ in scores]
    places = _places(names, labels)
    if places is None:
        raise BadInput(
            f"{who} answered scores of {', '.join(names)}, and [model] labels are {', '.join(labels) or 'not given'}: "
            "name the classes alike, or answer rows of numbers"
        )
    return [_number(scores[place][1], who) for place in places]


def _places(names: Sequence[str], labels: Sequence[str]) -> list[int] | None:
    """Where the score of each label stands; capitals do not matter where they tell no two apart."""
    for form in (str, str.casefold):
        own, theirs = [form(label) for label in labels], [form(name) for name in names]
        if len(set(theirs)) == len(theirs) and sorted(own) == sorted(theirs):
            return [theirs.index(label) for label in own]
    numbers = [int(found[1]) for name in names if (found := NUMBERED.fullmatch(name))]
    if sorted(numbers) == list(range(len(names))) and len(names) == len(labels):
        return [numbers.index(number) for number in range(len(names))]
    return None


def _number(value: object, who: str) -> float:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoAnswer(f"{who} answered {kind_of(value)}, where a score is needed")
    try:
        return float(value)
    except OverflowError:
        raise NoAnswer(f"{who} answered a number beyond float64, where a score is needed") from None


def kind_of(value: object) -> str:
    """What an error calls it."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return shown((value,))
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)}"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _texts(count: int) -> str:
    return "1 text" if count == 1 else f"{count} texts"
