"""What makes a run say little, whatever its intervals are: nothing to swap, unknown words, a model that only guesses.

All of it follows from the lines of results.jsonl; where these cannot say why, from what was counted when the swaps were
frozen. Each finding is a sentence; while there is one, no requirement is met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

FEW, SEVERAL = 8, 20
"""Texts from which a model that is worse than guessing, and one that is no better, can be told."""
ABOVE_CHANCE = 0.05
"""A model this close to guessing is as good as guessing."""
GAIN = 0.2
"""What accuracy gains by reading the labels in another order, where that is worth saying."""
UNKNOWN_SHARE = 0.5
NAMED = 5
"""Texts that are named."""
UNOBSERVED: Mapping[str, Any] = {}


@dataclass
class Seen:
    """The lines, counted."""

    texts: int = 0
    words: int = 0
    unknown: int = 0
    candidates: int = 0
    answers: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(gold class, class that the model answers) -> texts."""
    unanswered: int = 0
    """Texts to which the model has no answer."""
    stated: int = 0
    """Texts for which the data say what the deployed system answered."""
    otherwise: list[int] = field(default_factory=list)
    """Those that the model answers otherwise."""

    def add(self, line: Mapping[str, Any]) -> None:
        self.texts += 1
        self.words += line["positions"]
        self.unknown += line["unknown"]
        self.candidates += line["candidates"]
        if line["predicted"] is None or line["predicted"] < 0:
            self.unanswered += 1
            return
        self.answers[line["label"], line["predicted"]] += 1
        if "answer" in line:
            self.stated += 1
            if line["answer"] != line["predicted"]:
                self.otherwise.append(line["id"])

    def findings(self, about: Mapping[str, Any] = UNOBSERVED) -> list[str]:
        """The gravest first; `about` as in the summary: labels, swaps, and what was observed of the scores."""
        names: Sequence[str] = about.get("labels") or ()
        found = [self.no_candidates(about.get("swaps") or {}), self.unknown_words(), self.other_answers()]
        found += [self.no_answers(), self.constant(names) or self.other_order(names) or self.chance(names)]
        return [*(sentence for sentence in found if sentence is not None), *about.get("observed", ())]

    def no_candidates(self, swaps: Mapping[str, Any]) -> str | None:
        if self.candidates or not self.texts:
            return None
        begun = "there is nothing to swap in any text"
        if not swaps:
            return begun
        if not swaps["considered"]:
            return f"{begun}: {swaps['source']} has no candidate for any of their words"
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in swaps["removed"].items() if number)
        return f"{begun}: all {swaps['considered']:,} candidates of {swaps['source']} were left out ({reasons})"

    def unknown_words(self) -> str | None:
        return mostly_unknown(self.unknown, self.words)

    def other_answers(self) -> str | None:
        if not self.otherwise:
            return None
        rest = ", ..." if len(self.otherwise) > NAMED else ""
        named = ", ".join(map(str, islice(self.otherwise, NAMED)))
        return (
            f"the model answers {len(self.otherwise):,} of {self.stated:,} texts otherwise than the data say that the "
            f"deployed system did (texts {named}{rest}): it is not what is deployed"
        )

    def no_answers(self) -> str | None:
        if self.answered or not self.unanswered:
            return None
        return f"the model answers none of the {self.texts:,} texts with a class: NaN, an error, or a process that died"

    @property
    def answered(self) -> int:
        return self.answers.total()

    @property
    def right(self) -> int:
        return sum(number for (label, answer), number in self.answers.items() if label == answer)

    def constant(self, names: Sequence[str]) -> str | None:
        given, gold = ({pair[end] for pair in self.answers} for end in (1, 0))
        if len(given) != 1 or len(gold) < 2 or self.answered < FEW:
            return None
        return f"the model answers {name_of(given.pop(), names)} to all {self.answered:,} texts, whatever their label"

    def other_order(self, names: Sequence[str]) -> str | None:
        """Every class that the model answers stands for the label that most of these texts have; if that is another
        order of the same labels, and much better, then the labels are likely to be named in the wrong order."""
        if self.answered < SEVERAL or len(names) < 2:
            return None
        meant = []
        for answer in range(len(names)):
            labels = Counter({label: number for (label, given), number in self.answers.items() if given == answer})
            meant += [label for label, _ in labels.most_common(1)]
        if sorted(meant) != list(range(len(names))):
            return None
        better = sum(self.answers[label, answer] for answer, label in enumerate(meant))
        if better - self.right < GAIN * self.answered:
            return None
        order = ", ".join(names[label] for label in meant)
        return (
            f"the labels may be named in another order: accuracy is {share(self.right, self.answered)}, and with "
            f"{order} it would be {share(better, self.answered)}"
        )

    def chance(self, names: Sequence[str]) -> str | None:
        classes = len(names) or 1 + max((max(pair) for pair in self.answers), default=0)
        if classes < 2:
            return None
        guessed = self.answered / classes
        near = self.answered >= SEVERAL and self.right <= guessed + ABOVE_CHANCE * self.answered
        below = self.answered >= FEW and self.right < guessed / 2
        if not near and not below:
            return None
        return (
            f"accuracy is {share(self.right, self.answered)} over {self.answered:,} texts, and guessing one of "
            f"{classes} classes gives {share(1, classes)}: do labels, vocabulary and model belong together?"
        )


def little_said(lines: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Of a run that is no certify's, what its model's answers make it say little by."""
    seen = Seen()
    for line in lines:
        seen.add(line)
    found = seen.constant(names) or seen.other_order(names) or seen.chance(names)
    return [] if found is None else [found]


def mostly_unknown(unknown: int, words: int) -> str | None:
    if not unknown or unknown < UNKNOWN_SHARE * words:
        return None
    return (
        f"{unknown:,} of {words:,} words are unknown to the vocabulary: is it of this model, and should [model] "
        "lowercase be true?"
    )


def name_of(answer: int, names: Sequence[str]) -> str:
    return names[answer] if 0 <= answer < len(names) else f"class {answer}"


def share(part: int, total: int) -> str:
    return f"{100 * part / total:.2f} %"
