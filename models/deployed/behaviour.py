"""How a model behaves on texts whose labels are known: what must be said of it before anything is claimed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from .answers.score_rows import Unreachable, shown
from .cached import Cached
from .classifier import Classifier, NoAnswer, Scores
from .decision import NO_CLASS, Decision
from .swapped_text import Fields

Kind = Literal[
    "constant_output",
    "labels_permuted",
    "near_chance",
    "answers_differ",
    "too_few_texts",
    "unanswered",
    "nan",
    "infinite",
    "not_deterministic",
    "batch_changes_classes",
    "batch_changes_scores",
    "not_alone",
    "one_class",
    "constant_for_short_texts",
    "probabilities_not_logits",
    "not_probabilities",
]
BLOCK = 256
"""Texts that are asked about at once."""
IN_A_ROW = 3
"""Texts for which nobody was there, one after the other, that end the questions."""
ASKED_AGAIN = 16
ROUNDING = 1e-4
"""Relative: differences that sums of float32 in another order may have, and no more."""
FEW = 20
UNLIKELY = 0.05
"""Guessing does as well with this probability: no better than guessing."""
SURE = 0.01
MOST_DIFFERING = 0.01
"""The share of texts on which the data's answers may be others than the model's."""
SHORT = 4
"""Short texts with the same scores that are no coincidence."""
WINDOWS = (1, 2, 3, 5, 8, 12)
"""Words of the short texts that are made of the given ones."""


@dataclass(frozen=True)
class Remark:
    """`vacuous`: nothing that is claimed of such a model may pass for success."""

    kind: Kind
    sentence: str
    vacuous: bool = False


@dataclass(frozen=True, eq=False)
class Observed:
    """Of every text, in the order given. Differences are the greatest between scores of the same text."""

    scores: Scores
    """NaN where there was no answer."""
    predicted: NDArray[np.int64]
    confusion: NDArray[np.int64]
    """[label, answer]: numbers of texts; those without an answer are in none."""
    unanswered: tuple[tuple[int, str], ...]
    """Texts, and why."""
    repeat_difference: float
    """When the same batch is asked twice."""
    batch_difference: float
    """Between a text alone, among others, and beside the longest one."""
    order: tuple[int, ...] | None
    """Where the labels look permuted, the class that each of the model's outputs seems to mean."""
    differing: tuple[int, ...]
    """Texts on which the data's answers are others."""
    remarks: tuple[Remark, ...]

    @property
    def right(self) -> int:
        return int(self.confusion.trace())

    @property
    def accuracy(self) -> float:
        return self.right / len(self.predicted)

    @property
    def vacuous(self) -> bool:
        return any(remark.vacuous for remark in self.remarks)

    def table(self, names: Sequence[str]) -> list[str]:
        """The confusion, a line for every label."""
        head = ["label \\ answer", *names]
        rows = [[name, *map(str, row)] for name, row in zip(names, self.confusion, strict=True)]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        return [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in [head, *rows]
        ]


def observe(
    classifier: Classifier,
    decision: Decision,
    sentences: Sequence[Fields],
    labels: Sequence[int],
    answers: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> Observed:
    """Every text is asked about once, some of them again; `answers`: those of the deployed system, as classes."""
    if not sentences:
        raise BadInput("no texts to try the model on")
    names = names or [f"class {index}" for index in range(decision.classes)]
    bare = classifier.classifier if isinstance(classifier, Cached) else classifier  # what is remembered never differs
    scores, unanswered = _asked(classifier, sentences)
    predicted = decision.answers(scores)
    gold = np.asarray(labels)
    confusion = np.zeros((decision.classes, decision.classes), dtype=np.int64)
    answered = predicted != NO_CLASS
    np.add.at(confusion, (gold[answered], predicted[answered]), 1)
    again = _Again.of(bare, decision, sentences, scores)
    order = _better_order(confusion)
    differing = () if answers is None else tuple(np.flatnonzero(predicted != np.asarray(answers)).tolist())
    remarks = [
        *_constant(sentences, scores, gold, predicted, names),
        *_fit(confusion, gold, predicted, order, names),
        *_differing(differing, sentences, predicted, answers, names),
        *_without_numbers(sentences, scores, dict(unanswered)),
        *again.remarks(),
        *_constant_for_short(bare, sentences, scores),
        *_meaning(decision, scores),
    ]
    return Observed(
        scores=scores,
        predicted=predicted,
        confusion=confusion,
        unanswered=unanswered,
        repeat_difference=again.repeated,
        batch_difference=again.beside,
        order=order,
        differing=differing,
        remarks=tuple(sorted(remarks, key=lambda remark: not remark.vacuous)),
    )


def _asked(classifier: Classifier, sentences: Sequence[Fields]) -> tuple[Scores, tuple[tuple[int, str], ...]]:
    """Scores, NaN for sentences without an answer, and these with the reason."""
    reasons: list[tuple[int, str]] = []
    parts: list[tuple[int, Scores]] = []
    away = 0
    blocks = [(start, min(start + BLOCK, len(sentences))) for start in range(0, len(sentences), BLOCK)][::-1]
    while blocks:
        start, end = blocks.pop()
        try:
            parts.append((start, classifier.scores(sentences[start:end])))
            away = 0
        except NoAnswer as error:
            gone = isinstance(error, Unreachable)
            if end - start > 1:
                size = 1 if gone else (end - start) // 2  # attempts take long where nobody is there
                blocks += [(place, min(place + size, end)) for place in range(start, end, size)][::-1]
                continue
            reasons.append((start, str(error)))
            away = away + 1 if gone else 0
            if away == IN_A_ROW or len(reasons) == len(sentences):
                raise BadInput(str(error)) from error
    widths = sorted({part.shape[1] for _, part in parts})
    if len(widths) > 1:
        raise BadInput(f"the model answers {widths[0]} scores to some texts and {widths[-1]} to others")
    scores = np.full((len(sentences), widths[0]), np.nan)
    for start, part in parts:
        scores[start : start + len(part)] = part
    return scores, tuple(reasons)


def _constant(
    sentences: Sequence[Fields],
    scores: Scores,
    gold: NDArray[np.int64],
    predicted: NDArray[np.int64],
    names: Sequence[str],
) -> Iterator[Remark]:
    rows = {sentence: row for sentence, row in zip(sentences, scores, strict=True) if not np.isnan(row).any()}
    if len(rows) < 2:
        return
    found = np.stack(list(rows.values()))
    if (found == found[0]).all():
        shared = ", ".join(f"{score:g}" for score in found[0])
        yield Remark("constant_output", f"the model answers the same scores ({shared}) to all {len(rows)} texts", True)
        return
    classes = set(predicted[predicted != NO_CLASS].tolist())
    if len(rows) >= FEW and len(classes) == 1 < len(set(gold.tolist())):
        yield Remark("one_class", f"the model answers {names[classes.pop()]} to all {len(rows)} texts")


def _fit(
    confusion: NDArray[np.int64],
    gold: NDArray[np.int64],
    predicted: NDArray[np.int64],
    order: tuple[int, ...] | None,
    names: Sequence[str],
) -> Iterator[Remark]:
    """Whether the labels say that the model knows anything."""
    texts, right = len(gold), int(confusion.trace())
    answered = f"{right} of {texts} texts ({right / texts:.1%}) are answered as their labels say"
    if order is not None:
        better = sum(int(confusion[label, answer]) for answer, label in enumerate(order))
        labels = json.dumps([names[label] for label in order], ensure_ascii=False)
        yield Remark(
            "labels_permuted",
            f"{answered}, and {better} ({better / texts:.1%}) would be with labels = {labels}: "
            "the model's classes seem to stand in another order",
            True,
        )
        return
    classes = len(confusion)
    if len(set(gold.tolist())) == 1:
        guessed = 1 / classes
    else:  # the same answers, handed out at random
        guessed = float(confusion.sum(axis=0) @ np.bincount(gold, minlength=classes)) / texts**2
    luck = at_least(right, texts, guessed)
    if luck <= UNLIKELY:
        return
    said = f"{answered}; guessing would be right on {guessed:.1%}, and as often as this with probability {luck:.2g}"
    if texts < FEW:
        yield Remark("too_few_texts", f"{said}: too few texts to tell")
    else:
        yield Remark("near_chance", f"{said}: not better than chance", True)


def at_least(right: int, texts: int, share: float) -> float:
    """P(X >= right) for a binomial X."""
    if right <= 0 or share >= 1:
        return 1.0
    if share <= 0:
        return 0.0
    whole = math.lgamma(texts + 1)
    terms = (
        whole - math.lgamma(k + 1) - math.lgamma(texts - k + 1) + k * math.log(share) + (texts - k) * math.log1p(-share)
        for k in range(right, texts + 1)
    )
    return min(1.0, math.fsum(map(math.exp, terms)))


def _better_order(confusion: NDArray[np.int64]) -> tuple[int, ...] | None:
    """The label that each answer seems to mean, where that fits at least twice as well and not by chance.

    Found by exchanging two at a time, which is the best of all orders wherever each label has an answer of its own.
    """
    classes = len(confusion)
    order = list(range(classes))
    improved = True
    while improved:
        improved = False
        for one in range(classes):
            for other in range(one):
                now = confusion[order[one], one] + confusion[order[other], other]
                if confusion[order[other], one] + confusion[order[one], other] > now:
                    order[one], order[other] = order[other], order[one]
                    improved = True
    moved = [answer for answer, label in enumerate(order) if answer != label]
    if not moved:
        return None
    gained = sum(int(confusion[order[answer], answer]) for answer in moved)
    lost = sum(int(confusion[answer, answer]) for answer in moved)
    orders = math.factorial(min(classes, 20))
    fits = gained >= 2 * lost and at_least(gained, gained + lost, 0.5) < SURE / (orders - 1)
    return tuple(order) if fits else None


def _differing(
    differing: Sequence[int],
    sentences: Sequence[Fields],
    predicted: NDArray[np.int64],
    answers: Sequence[int] | None,
    names: Sequence[str],
) -> Iterator[Remark]:
    if not differing or answers is None:
        return
    share = len(differing) / len(sentences)
    examples = "; ".join(
        f"text {index}, {shown(sentences[index])}: {names[answers[index]]} there, "
        f"{names[predicted[index]] if predicted[index] != NO_CLASS else 'no answer'} here"
        for index in differing[:3]
    )
    yield Remark(
        "answers_differ",
        f"the model answers otherwise than the data say on {len(differing)} of {len(sentences)} texts ({share:.1%}), "
        f"so it is not quite what was deployed: {examples}",
        share > MOST_DIFFERING,
    )


def _without_numbers(sentences: Sequence[Fields], scores: Scores, reasons: dict[int, str]) -> Iterator[Remark]:
    texts = len(sentences)
    if reasons:
        first = min(reasons)
        yield Remark("unanswered", f"{len(reasons)} of {texts} texts have no answer; text {first}: {reasons[first]}")
    nan = [index for index in np.flatnonzero(np.isnan(scores).any(axis=1)).tolist() if index not in reasons]
    if nan:
        said = f"NaN among the scores of {len(nan)} of {texts} texts, first text {nan[0]}, {shown(sentences[nan[0]])}"
        yield Remark("nan", said, len(nan) + len(reasons) == texts)
    infinite = np.flatnonzero(np.isinf(scores).any(axis=1)).tolist()
    if infinite:
        where = f"first text {infinite[0]}, {shown(sentences[infinite[0]])}"
        yield Remark("infinite", f"infinite scores for {len(infinite)} of {texts} texts, {where}")


@dataclass(frozen=True)
class _Again:
    """Some texts asked again: the same batch twice, each alone, each beside the longest text."""

    texts: int
    repeated: float = 0.0
    repeated_classes: int = 0
    beside: float = 0.0
    beside_classes: int = 0
    scale: float = 1.0
    problem: str | None = None

    @classmethod
    def of(cls, classifier: Classifier, decision: Decision, sentences: Sequence[Fields], scores: Scores) -> _Again:
        chosen = _chosen(decision, sentences, scores)
        some = [sentences[index] for index in chosen]
        longest = max(some, key=_characters)
        try:
            once, twice = classifier.scores(some), classifier.scores(some)
            alone = np.concatenate([classifier.scores([sentence]) for sentence in some])
            beside = np.stack([classifier.scores([sentence, longest])[0] for sentence in some])
        except NoAnswer as error:
            return cls(len(some), problem=str(error))
        others = [scores[chosen], once, beside]

        def classes(one: Scores, *rest: Scores) -> int:
            """Texts whose class is not the same in all."""
            answers = np.stack([decision.answers(each) for each in (one, *rest)])
            return int((answers != answers[0]).any(axis=0).sum())

        return cls(
            texts=len(some),
            repeated=_difference(once, twice),
            repeated_classes=classes(once, twice),
            beside=max(_difference(alone, each) for each in others),
            beside_classes=classes(alone, *others),
            scale=1 + float(np.abs(alone[np.isfinite(alone)]).max(initial=0)),
        )

    def remarks(self) -> Iterator[Remark]:
        texts = f"{self.texts} texts"
        if self.problem is not None:
            yield Remark("not_alone", f"{texts} that had an answer have none when asked again: {self.problem}")
        elif self.repeated:
            said = f"the same {texts} asked twice get scores that differ by up to {self.repeated:.1g}"
            if self.repeated_classes:
                said += f", and {self.repeated_classes} of them another class"
            said += ": what was evaluated may not come out so again"
            yield Remark("not_deterministic", said, bool(self.repeated_classes))
        elif self.beside_classes:
            yield Remark(
                "batch_changes_classes",
                f"{self.beside_classes} of {texts} get another class when they are asked alone than among others "
                f"(scores differ by up to {self.beside:.1g}): the answer is a function of the batch, not of the text",
                True,
            )
        elif self.beside > ROUNDING * self.scale:
            yield Remark(
                "batch_changes_scores",
                f"the scores of a text depend on what else is in its batch, by up to {self.beside:.1g} in {texts}, "
                "more than float32 rounding explains (int8 ranges taken over a batch, float16, unmasked padding), "
                "and no class with them",
            )


def _chosen(decision: Decision, sentences: Sequence[Fields], scores: Scores) -> list[int]:
    """Texts near the border, where a class changes first, and texts of all lengths."""
    usable = np.flatnonzero(~np.isnan(scores).any(axis=1))
    if not len(usable):
        usable = np.arange(len(sentences))
    values = np.sort(decision.values(scores[usable]), axis=1)
    with np.errstate(invalid="ignore"):  # between two infinities
        margins = values[:, -1] - values[:, -2]
    near = usable[np.argsort(margins, kind="stable")][: ASKED_AGAIN // 2]
    rest = sorted(set(usable.tolist()) - set(near.tolist()), key=lambda index: _characters(sentences[index]))
    count = min(len(rest), ASKED_AGAIN - len(near))
    spread = [rest[place] for place in np.linspace(0, len(rest) - 1, count).astype(int)] if count else []
    return [*near.tolist(), *spread]


def _difference(one: Scores, other: Scores) -> float:
    """Infinite where one of the two is no number."""
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(np.where(same, 0.0, np.abs(one - other)), nan=np.inf, posinf=np.inf).max(initial=0))


def _constant_for_short(classifier: Classifier, sentences: Sequence[Fields], scores: Scores) -> Iterator[Remark]:
    """Whether all texts below some length have the very same scores, and longer ones other scores.

    Data may hold no text so short; some are made of their words, around the longest, which models know most often.
    """
    made = sorted({cut for sentence in _spread(sentences) for cut in _windows(sentence)} - set(sentences))
    try:
        answers = classifier.scores(made) if made else np.empty((0, scores.shape[1]))
    except (NoAnswer, BadInput):
        return
    rows = dict(zip([*sentences, *made], np.concatenate([scores, answers]), strict=True))
    known = [sentence for sentence, row in rows.items() if not np.isnan(row).any()]
    if len(known) < 2 * SHORT:
        return
    found = np.stack([rows[sentence] for sentence in known])
    for unit, length in (("words", _words), ("characters", _characters)):
        lengths = np.array([length(sentence) for sentence in known])
        same = (found == found[lengths.argmin()]).all(axis=1)
        if same.all():
            return
        border = lengths[~same].min()
        below, above = lengths < border, lengths >= border
        if (
            below.sum() >= SHORT
            and 2 * (same & above).sum() <= below.sum()
            and len(np.unique(found[above], axis=0)) > 1
        ):
            shared = ", ".join(f"{score:g}" for score in found[below][0])
            yield Remark(
                "constant_for_short_texts",
                f"all {below.sum()} texts of fewer than {border} {unit} that were tried get the same scores "
                f"({shared}): a rule for short texts answers, or the model knows none of their words",
            )
            return


def _spread(sentences: Sequence[Fields]) -> list[Fields]:
    distinct = list(dict.fromkeys(sentences))
    return [distinct[place] for place in np.linspace(0, len(distinct) - 1, min(len(distinct), 8)).astype(int)]


def _windows(sentence: Fields) -> Iterator[Fields]:
    fields = [text.split() for text in sentence]
    if not all(fields):
        return
    for size in WINDOWS:
        starts = (max(0, min(words.index(max(words, key=len)), len(words) - size)) for words in fields)
        yield tuple(" ".join(words[start : start + size]) for words, start in zip(fields, starts, strict=True))


def _words(sentence: Fields) -> int:
    return sum(len(text.split()) for text in sentence)


def _characters(sentence: Fields) -> int:
    return sum(map(len, sentence))


def _meaning(decision: Decision, scores: Scores) -> Iterator[Remark]:
    """Probabilities where logits were said, and the reverse."""
    rows = scores[np.isfinite(scores).all(axis=1)]
    column = decision.column
    if column is not None:
        rows = rows[:, column : column + 1]
    if len(rows) < 2 or (rows == rows[0]).all() or np.isin(rows, (0.0, 1.0)).all():
        return  # nothing to go by; answers in place of scores mean the same either way
    if decision.meaning == "log_probabilities":
        with np.errstate(over="ignore"):
            rows = np.exp(rows)
    one = rows.shape[1] == 1
    sums = one or decision.meaning == "sigmoid"
    inside = bool(((rows >= -1e-3) & (rows <= 1 + 1e-3)).all())
    if decision.meaning == "logits":
        if not (((rows >= 0) & (rows <= 1 + 1e-6)).all() and (one or (np.abs(rows.sum(axis=1) - 1) < 1e-3).all())):
            return
        said = "every score lies in [0, 1]" if one else "every row of scores lies in [0, 1] and sums to 1"
        compared = one or decision.threshold is not None
        then = "the threshold is compared with the wrong number" if compared else "the answers are the same either way"
        proper = "sigmoid" if one else "probabilities"
        yield Remark(
            "probabilities_not_logits",
            f'{said}, as probabilities do, and [model] scores is "logits": {then}; say scores = "{proper}"',
        )
    elif not inside or not (sums or (np.abs(rows.sum(axis=1) - 1) < 1e-2).all()):
        said = "some lie outside [0, 1]" if not inside else "some rows do not sum to 1"
        yield Remark(
            "not_probabilities", f'[model] scores is "{decision.meaning}", and the model answers otherwise: {said}'
        )
