"""Which columns of a data file hold the texts, the labels, and what the deployed system answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BadInput
from .data_sample import Column, Sample

TEXTS = (
    "text", "texts", "sentence", "content", "review", "review_text", "comment", "comment_text", "prompt", "message",
    "tweet", "document", "body", "utterance", "post", "input", "headline", "description", "query", "question", "title",
)  # fmt: skip
"""Names of columns of texts, the likelier first."""
PAIRS = (
    ("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("text_a", "text_b"),
    ("text1", "text2"), ("question1", "question2"), ("sentence_a", "sentence_b"),
)  # fmt: skip
"""Names of two texts that are read together, in the order in which models read them."""
LABELS = (
    "label", "labels", "class", "gold_label", "gold", "target", "category", "y", "sentiment", "polarity", "intent",
    "topic", "is_toxic", "toxic", "toxicity", "is_spam", "spam", "is_injection", "is_jailbreak", "stars", "rating",
)  # fmt: skip
ANSWERS = ("prediction", "predicted", "predicted_label", "pred", "model_answer", "model_label", "answer", "output")
SENTENCE = 3.0
"""Words that the values of a column of texts have on average, at the least."""
MOST_CLASSES = 200


@dataclass(frozen=True)
class Choice:
    """A column, and why it."""

    name: str
    reason: str


@dataclass(frozen=True)
class Columns:
    text: Choice
    label: Choice
    context: Choice | None = None
    answer: Choice | None = None


def refuse_headless(sample: Sample) -> None:
    """A file whose first line is a row: its first text would else be a name."""
    named = {plain(name) for name in sample.names}
    if named & {*TEXTS, *LABELS, *(name for pair in PAIRS for name in pair)}:
        return
    for column in sample.columns:
        if len(column.name.split()) > SENTENCE or (column.spellings and column.name in column.spellings):
            raise BadInput(
                f"{sample.path} line 1: {short(column.name)!r} looks like part of a row, not like the name of a "
                "column: put a first line above that names the columns, such as text and label"
            )


def columns_of(sample: Sample, given: dict[str, str], *, skip: bool = False) -> Columns:
    """`given`: what the user says, by key of [data]; `skip`: rows without a label are left out.

    Where no columns fit, rows that cannot be read may be why: the first is named.
    """
    try:
        return fitting_columns(sample, given, skip=skip)
    except BadInput as error:
        if not sample.broken:
            raise
        more = f" (and {len(sample.broken) - 1} more)" if len(sample.broken) > 1 else ""
        raise BadInput(f"{error}; a row cannot be read: {sample.broken[0]}{more}") from None


def fitting_columns(sample: Sample, given: dict[str, str], *, skip: bool) -> Columns:
    for name in given.values():
        sample.column(name)
    refuse_headless(sample)
    context = Choice(given["context"], "as you said") if "context" in given else None
    if "text" in given:
        text = Choice(given["text"], "as you said")
    else:
        pair = pair_in(sample)
        if pair and context is None:
            context, text = pair
        else:
            text = text_in(sample, [given.get("label"), given.get("context")])
    refuse_swapped(sample, text)
    label = Choice(given["label"], "as you said") if "label" in given else label_in(sample, text, context, skip=skip)
    answer = Choice(given["answer"], "as you said") if "answer" in given else answer_in(sample, text, label)
    refuse_many(sample, label, skip=skip)
    return Columns(text, label, context, answer)


def pair_in(sample: Sample) -> tuple[Choice, Choice] | None:
    by_name = {plain(column.name): column.name for column in sample.columns if is_text(column)}
    for first, second in PAIRS:
        if first in by_name and second in by_name:
            reason = f"{by_name[first]} and {by_name[second]} are a pair by their names"
            return Choice(by_name[first], f"{reason}; it stays as it is"), Choice(
                by_name[second], f"{reason}; its words are swapped"
            )
    return None


def text_in(sample: Sample, taken: Sequence[str | None]) -> Choice:
    free = [column for column in sample.columns if column.name not in taken and column.texts]
    named = sorted(
        (column for column in free if plain(column.name) in TEXTS), key=lambda column: TEXTS.index(plain(column.name))
    )
    if len(named) == 1:
        return Choice(named[0].name, "by its name")
    if named and plain(named[0].name) == "text" and is_text(named[0]):
        others = ", ".join(column.name for column in named[1:])
        return Choice(named[0].name, f"by its name, which is plainer than {others}")
    long = [column for column in free if is_text(column)]
    if not named and len(long) == 1:
        return Choice(long[0].name, f"the only column of texts, {long[0].words:.0f} words on average")
    several = [column for column in named if is_text(column)] or long
    if len(several) == 1:
        return Choice(several[0].name, f"by its name, and by what it holds: {several[0].words:.0f} words on average")
    if several:
        listed = ", ".join(repr(column.name) for column in several)
        raise BadInput(
            f"{sample.path}: {listed} all hold texts: say which the model reads: --set text={quoted(several[0].name)}, "
            f"and for pairs also --set context={quoted(several[1].name)}"
        )
    raise BadInput(f"{sample.path}: no column of texts among {described(sample)}: say which it is: --set text=COLUMN")


def label_in(sample: Sample, text: Choice, context: Choice | None, *, skip: bool) -> Choice:
    taken = {text.name} | ({context.name} if context else set())
    free = [column for column in sample.columns if column.name not in taken]
    fitting = [column for column in free if is_label(column, sample.count)]
    if not fitting and (blank := [column for column in free if is_label(column, sample.count, blank=True)]):
        if not skip:
            raise without_label(sample, blank[0])
        fitting = blank
    named = sorted(
        (column for column in fitting if plain(column.name) in LABELS),
        key=lambda column: LABELS.index(plain(column.name)),
    )
    if named and (len(named) == 1 or LABELS.index(plain(named[0].name)) <= LABELS.index("gold")):
        return Choice(named[0].name, "by its name")
    if len(fitting) == 1:
        return Choice(fitting[0].name, f"the only other column with few different values ({spellings(fitting[0])})")
    if fitting:
        listed = ", ".join(repr(column.name) for column in named or fitting)
        raise BadInput(
            f"{sample.path}: {listed} could all hold the labels: say which does: "
            f"--set label={quoted((named or fitting)[0].name)}"
        )
    others = described(sample, taken) if free else "none"
    raise BadInput(
        f"{sample.path}: no column of labels beside {text.name!r}; one has a value in every row and few "
        f"different ones, and the others are {others}: say which it is with --set label=COLUMN, or add one"
    )


def answer_in(sample: Sample, text: Choice, label: Choice) -> Choice | None:
    known = set(sample.column(label.name).spellings or ())
    for column in sample.columns:
        named = plain(column.name) in ANSWERS and column.name not in (text.name, label.name)
        if named and column.spellings and set(column.spellings) <= known:
            return Choice(column.name, f"by its name, and it holds the same classes as {label.name}")
    return None


def refuse_swapped(sample: Sample, text: Choice) -> None:
    """Columns whose names say one thing and whose values the other."""
    reads = sample.column(text.name)
    few = reads.spellings is not None and len(reads.spellings) <= 10 < sample.count and reads.words < 2
    named = [column for column in sample.columns if plain(column.name) in LABELS and is_text(column)]
    if few and named:
        raise BadInput(
            f"{sample.path}: column {text.name!r} holds {spellings(reads)}, and {named[0].name!r} holds texts: their "
            f"names are swapped; say --set text={quoted(named[0].name)} --set label={quoted(text.name)}"
        )


def without_label(sample: Sample, column: Column) -> BadInput:
    missing = 0 if column.spellings is None else column.spellings[""]
    return BadInput(
        f"{sample.path}: {missing:,} rows have nothing in column {column.name!r}: give them labels, or leave them out: "
        "--set on_error=skip"
    )


def refuse_many(sample: Sample, label: Choice, *, skip: bool) -> None:
    says = sample.column(label.name)
    if says.spellings and "" in says.spellings and not skip:
        raise without_label(sample, says)
    if says.spellings is None or len(says.spellings) > MOST_CLASSES:
        many = "more than 1,000" if says.spellings is None else str(len(says.spellings))
        raise BadInput(
            f"{sample.path}: column {label.name!r} holds {many} different values, which are no classes: name another, "
            "as --set label=COLUMN"
        )


def is_text(column: Column) -> bool:
    return column.texts and column.words >= SENTENCE


def is_label(column: Column, rows: int, *, blank: bool = False) -> bool:
    """Few values, each met more than once when there are rows enough for that; `blank`: some have none."""
    if not column.spellings or ("" in column.spellings) != blank:
        return False
    return 2 <= len(column.spellings) <= MOST_CLASSES and (len(column.spellings) * 2 <= rows or rows < 10)


def described(sample: Sample, without: set[str] | frozenset[str] = frozenset()) -> str:
    return "; ".join(f"{c.name!r} ({spellings(c)})" for c in sample.columns if c.name not in without)


def spellings(column: Column) -> str:
    if column.spellings is None:
        return "more than 1,000 different values"
    first = [short(value) for value in sorted(column.spellings)[:3]]
    count = len(column.spellings)
    return f"{', '.join(first)}{f' and {count - 3} more' if count > 3 else ''}" if count else "nothing"


def plain(name: str) -> str:
    return re.sub(r"[\s\-]+", "_", name.strip()).lower()


def short(value: str) -> str:
    return value if len(value) <= 40 else value[:37] + "..."


def quoted(value: str) -> str:
    """As a shell takes it."""
    return value if re.fullmatch(r"[\w.]+", value) else f"'{value}'"
