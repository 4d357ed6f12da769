"""What the labels that stand in the data mean: which class of the model each spelling is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import BadInput
from ..readers import label_index


@dataclass(frozen=True)
class Labels:
    """`names`: the classes in the order of the model's outputs; `golds`: what stands in the data -> its class.

    `settled`: the order is the model's own, or that of numbers; else any order is as likely, and only answers can tell.
    `numbered`: the data count classes, whose names are the model's.
    """

    names: tuple[str, ...]
    golds: Mapping[str, int]
    reason: str
    settled: bool
    numbered: bool = False

    @property
    def written(self) -> list[str] | dict[str, str]:
        """As a task file says it: the names, or a map where these alone would be read otherwise."""
        if all(read_as(value, self.names) == gold for value, gold in self.golds.items()):
            return list(self.names)
        absent = {name: place for place, name in enumerate(self.names) if place not in self.golds.values()}
        entries = sorted({**self.golds, **absent}.items(), key=lambda entry: entry[1])
        return {value: self.names[gold] for value, gold in entries}

    def reordered(self, order: Sequence[int], reason: str) -> Labels:
        """With what is now class `order[k]` as the model's output k."""
        names = self.names if self.numbered else tuple(self.names[place] for place in order)
        golds = {value: order.index(gold) for value, gold in self.golds.items()}
        return replace(self, names=names, golds=golds, reason=reason, settled=True)


def read_as(value: str, names: Sequence[str]) -> int | None:
    """The class that a task file with these names takes a label for."""
    try:
        return label_index(value, names)
    except BadInput:
        return None


def labels_of(found: Sequence[str], names: Sequence[str] | None, classes: int, where: str) -> Labels:
    """`found`: what stands in the data; `names`: what the model calls its classes, None when it does not say."""
    found = sorted(found, key=sort_key)
    given = tuple(names) if names is not None and telling(names) and len(names) == classes else None
    numbers = [whole(value) for value in found]
    by_name = {folded(name): place for place, name in enumerate(given or ())}
    if given is not None and all(folded(value) in by_name for value in found):
        golds = {value: by_name[folded(value)] for value in found}
        spelt = "the data say the same" if set(found) <= set(given) else "the data spell them otherwise"
        return Labels(given, golds, f"the model's own names, in its order; {spelt}", True)
    if None not in numbers:
        return of_numbers(found, [number for number in numbers if number is not None], given, classes, where)
    if given is not None:
        raise BadInput(
            f"{where} holds {listed(found)}, and the model's classes are {listed(given)}: say which is which: "
            f"{to_fill(found)}"
        )
    if len(found) == 1:
        raise BadInput(
            f"{where} has {found[0]!r} in every row, and the model has {classes} classes: take data of several "
            'classes, or say which is which: --set \'labels=["...", "..."]\', in the order of the model\'s scores'
        )
    if len(found) != classes:
        raise BadInput(
            f"{where} holds {len(found)} different labels ({listed(found)}), and the model has {classes} classes: say "
            'which is which: --set \'labels=["...", "..."]\', in the order of the model\'s scores'
        )
    golds = {value: place for place, value in enumerate(found)}
    return Labels(tuple(found), golds, "the data's own names; the model has none", False)


def of_numbers(
    found: Sequence[str], numbers: Sequence[int], given: tuple[str, ...] | None, classes: int, where: str
) -> Labels:
    """Labels 0 to n-1, 1 to n, or -1 and 1, whole numbers written with or without a decimal point."""
    least, most = min(numbers), max(numbers)
    names = given or tuple(map(str, range(classes)))
    whose = "the model's own names, in its order; the data count them" if given else "the data count the classes"
    places: list[int]
    if least >= 0 and most < classes:
        places, how = list(numbers), "from 0"
    elif set(numbers) == {-1, 1} and classes == 2:
        places, how = [(number + 1) // 2 for number in numbers], "-1 and 1"
        names = given or ("-1", "1")
    elif least == 1 and most == classes:
        places, how = [number - 1 for number in numbers], "from 1"
        names = given or tuple(map(str, range(1, classes + 1)))
    else:
        raise BadInput(
            f"{where} holds {listed(found)}, and the model has {classes} classes: say which is which: "
            f"{to_fill(found)}, in the order of the model's scores"
        )
    golds = dict(zip(found, places, strict=True))
    return Labels(names, golds, f"{whose} {how}", True, numbered=given is not None)


def stated(written: object, found: Sequence[str], where: str) -> Labels:
    """What the user says: names in order, or a map of what stands in the data."""
    reason = "as you said"
    if isinstance(written, dict) and all(isinstance(name, str) for name in written.values()):
        names = tuple(dict.fromkeys(written.values()))
        golds = {value: names.index(written[value]) for value in found if value in written}
    elif isinstance(written, list) and all(isinstance(name, str) for name in written):
        names = tuple(written)
        golds = {value: place for value in found if (place := read_as(value, names)) is not None}
    else:
        raise BadInput('--set labels: names between commas, a list, or a map { "0" = "negative", "1" = "positive" }')
    left = [value for value in found if value not in golds]
    if left:
        raise BadInput(f"{where} also holds {listed(left)}, which --set labels does not say: {to_fill(found)}")
    return Labels(names, golds, reason, True, numbered=isinstance(written, dict))


def to_fill(found: Sequence[str]) -> str:
    """A map of labels that somebody else completes."""
    inner = ", ".join(f'"{value}" = "..."' for value in found[:6])
    return f"--set 'labels={{ {inner} }}'"


def telling(names: Sequence[str]) -> bool:
    """Whether these are names, and not the LABEL_0 and 0 that libraries put where nobody gave any."""
    return not all(re.fullmatch(r"(label|class)?[_ ]?-?\d+", name, re.IGNORECASE) for name in names)


def folded(name: str) -> str:
    """How names are compared."""
    return re.sub(r"[\s_-]+", " ", name.strip()).casefold()


def whole(value: str) -> int | None:
    """The whole number that this is, as in 1, 1.0 and ' 1'; also true and false."""
    text = value.strip()
    if text.casefold() in ("true", "false"):
        return int(text.casefold() == "true")
    return int(float(text)) if re.fullmatch(r"[+-]?\d{1,9}(\.0*)?", text) else None


def sort_key(value: str) -> tuple[int, float, str]:
    number = whole(value)
    return (1, 0, value) if number is None else (0, number, value)


def listed(values: Sequence[str]) -> str:
    shown = ", ".join(value if len(value) <= 30 else value[:27] + "..." for value in values[:6])
    return shown + (f" and {len(values) - 6} more" if len(values) > 6 else "")
