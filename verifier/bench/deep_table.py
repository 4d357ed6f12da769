"""Answers about a smooth network side by side: shares decided at each k, sentences avoided, seconds, certificates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any

from ..exit_codes import HOLDS, UNCHECKED
from ..pages.terminal import terminal
from .comparison import where
from .deep_answers import DeepAnswer
from .each_radius import HEAD, MEANING
from .each_radius import Asked as Alone

EITHER = "either of ours"
CAUSE = 90
"""Characters of a cause that are kept apart."""


@dataclass(frozen=True)
class Spread:
    """Of some numbers."""

    median: float
    p90: float
    most: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread | None:
        if not numbers:
            return None
        order = sorted(numbers)
        return cls(median(order), order[min(len(order) - 1, int(0.9 * len(order)))], order[-1])

    def shown(self, form: str = "{:.2f}") -> str:
        return " / ".join(form.format(number) for number in (self.median, self.p90, self.most))


@dataclass(frozen=True)
class DeepScore:
    """One way over all texts."""

    engine: str
    decided: tuple[float, ...]
    """[k - 1]: the share of the texts."""
    proved: tuple[float, ...]
    """[k - 1]: without those that are decided by a sentence."""
    sentences: int
    avoided: float | None
    """All sentences by those evaluated, over the texts that are decided at the greatest k."""
    cpu: Spread | None
    rate: float | None
    """Sentences a CPU second."""
    size: Spread | None
    screening: Spread | None
    exact: Spread | None
    unscreened: int
    refused: int


@dataclass(frozen=True)
class DeepTable:
    """`totals`: text -> its sentences with 1 to k swaps, for each k up to `radius`."""

    answers: tuple[DeepAnswer, ...]
    engines: tuple[str, ...]
    ours: tuple[str, ...]
    totals: dict[int, tuple[int, ...]]
    radius: int
    seconds: float
    already_wrong: int
    batch: int | None
    about: dict[str, Any]
    each_radius: tuple[Alone, ...] = ()
    """Where every radius was asked for alone."""

    @cached_property
    def texts(self) -> dict[int, dict[str, DeepAnswer]]:
        found: dict[int, dict[str, DeepAnswer]] = {}
        for answer in self.answers:
            found.setdefault(answer.id, {})[answer.engine] = answer
        return found

    @cached_property
    def scores(self) -> tuple[DeepScore, ...]:
        found = [self.score(name, [of[name] for of in self.texts.values()]) for name in self.engines]
        if len(self.ours) > 1:
            own = [self.either([of[name] for name in self.ours]) for of in self.texts.values()]
            found.insert(len(self.ours), self.score(EITHER, own))
        return tuple(found)

    def either(self, answers: Sequence[DeepAnswer]) -> DeepAnswer:
        """Asked one after the other, each only where those before it left the text open."""
        asked = [answers[0]]
        for before, after in pairwise(answers):
            if before.decides(self.radius):
                break
            asked.append(after)
        best = max(asked, key=lambda one: one.harmless)
        return DeepAnswer(
            best.id,
            EITHER,
            best.words,
            best.harmless,
            min((one.broken for one in asked if one.broken is not None), default=None),
            sum(one.sentences for one in asked),
            sum(one.seconds for one in asked),
            sum(one.cpu_seconds for one in asked),
            certificate=best.certificate,
        )

    def score(self, name: str, answers: Sequence[DeepAnswer]) -> DeepScore:
        every = range(1, self.radius + 1)
        whole = [one for one in answers if one.decides(self.radius)]
        evaluated = sum(one.sentences for one in whole)
        proofs = [one.certificate for one in answers if one.certificate is not None]
        cpu = sum(one.cpu_seconds for one in answers)
        sentences = sum(one.sentences for one in answers)
        exact = [proof.exact_seconds for proof in proofs if proof.exact_seconds is not None]
        return DeepScore(
            engine=name,
            decided=tuple(share(sum(one.decides(k) for one in answers), len(answers)) for k in every),
            proved=tuple(share(sum(one.proves(k) for one in answers), len(answers)) for k in every),
            sentences=sentences,
            avoided=sum(self.totals[one.id][-1] for one in whole) / evaluated if evaluated else None,
            cpu=Spread.of([one.cpu_seconds for one in answers]),
            rate=sentences / cpu if sentences and cpu else None,
            size=Spread.of([proof.size for proof in proofs]),
            screening=Spread.of([proof.screening_seconds for proof in proofs]),
            exact=Spread.of(exact),
            unscreened=sum(not proof.screened for proof in proofs),
            refused=sum(proof.refusal is not None for proof in proofs),
        )

    @cached_property
    def disagreements(self) -> tuple[str, ...]:
        """Sentences that break a text below what somebody says is harmless, and proofs that are refused."""
        found = []
        for id, answers in self.texts.items():
            for one in answers.values():
                if one.certificate is not None and one.certificate.refusal is not None:
                    found.append(f"text {id}: {one.engine}: a proof is refused: {one.certificate.refusal}")
                found += [
                    f"text {id}: {one.engine} {'claims' if one.claimed else 'proves'} that {one.harmless} swaps are "
                    f"harmless, and {other.engine} found {other.broken}"
                    for other in answers.values()
                    if other.broken is not None and other.broken <= one.harmless
                ]
        return tuple(found)

    @property
    def exit_code(self) -> int:
        return UNCHECKED if self.disagreements else HOLDS

    @cached_property
    def causes(self) -> tuple[tuple[str, str, int], ...]:
        """(engine, why, texts), of texts that are not decided at the greatest k."""
        counted = Counter(
            (one.engine, without_numbers(one.reason)) for one in self.answers if not one.decides(self.radius)
        )
        order = {name: place for place, name in enumerate(self.engines)}
        lines = [(engine, why, count) for (engine, why), count in counted.items()]
        return tuple(sorted(lines, key=lambda line: (order[line[0]], -line[2])))

    @property
    def at_once(self) -> str:
        return "" if self.batch is None else f" ({self.batch})"

    @property
    def definition(self) -> str:
        """What the numbers mean."""
        return (
            f"Texts: the {len(self.texts)} that the model answers rightly, up to {self.radius} swaps, {self.seconds:g} "
            "s of wall clock for each way and text. Decided at k: it is known whether a sentence with at most k swaps "
            "breaks the text: none does, or one was replayed in onnxruntime. Proved: none does. Of auto_LiRPA both "
            "are claims in float64, and it finds no sentences. A proof counts only if screening or check.py accepted "
            "it. "
            f"Avoided: all sentences with 1 to {self.radius} swaps by those evaluated, of texts decided at "
            f"{self.radius}. CPU seconds: median / 9 of 10 / most, of everything but the check of proofs; of "
            "auto_LiRPA, bounding alone, and the limit where it was killed. "
            f"{EITHER}: the first of ours, and the next where it leaves a text open. enumerate: all sentences through "
            "onnxruntime, fewest swaps first, one thread, in batches of the size that was fastest of "
            f"four{self.at_once}. "
            "Certificates: bytes, CPU seconds of screening in float64 and of check.py in fractions, the network read "
            "before. One thread, one after the other."
        )

    def as_json(self) -> dict[str, Any]:
        """All of it, as `--json` prints it."""
        return {
            "exit_code": self.exit_code,
            **self.about,
            **self.totals_line(),
            "answers": [asdict(one) for one in self.answers],
        }

    def totals_line(self) -> dict[str, Any]:
        return {
            "scores": [asdict(score) for score in self.scores],
            "texts": len(self.texts),
            "already_wrong": self.already_wrong,
            "sentences": [sum(counts[k] for counts in self.totals.values()) for k in range(self.radius)],
            "batch": self.batch,
            **({"each_radius": [asdict(one) for one in self.each_radius]} if self.each_radius else {}),
            "causes": [list(cause) for cause in self.causes],
            "disagreements": list(self.disagreements),
            "definition": self.definition,
            "exit_code": self.exit_code,
        }


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def without_numbers(reason: str) -> str:
    """So that equal causes count together."""
    words = " ".join("N" if any(c.isdigit() for c in word) else word for word in reason.split())
    return words if len(words) <= CAUSE else f"{words[:CAUSE]}..."


def cells(score: DeepScore) -> Iterator[str]:
    yield " ".join(f"{100 * part:.0f}" for part in score.decided)
    yield " ".join(f"{100 * part:.0f}" for part in score.proved)
    yield f"{score.sentences:,}" if score.sentences else ""
    yield "" if score.avoided is None else f"{score.avoided:,.1f}x"
    yield "" if score.rate is None else f"{score.rate:,.0f}"
    yield "" if score.cpu is None else score.cpu.shown("{:.3f}")
    yield "" if score.size is None else score.size.shown("{:,.0f}")
    yield "" if score.screening is None else score.screening.shown("{:.3f}")
    yield "" if score.exact is None else score.exact.shown()


def print_deep(table: DeepTable) -> None:
    from rich import box
    from rich.table import Table as Grid

    from ..pages.tables import print_table

    console = terminal()
    sentences = ", ".join(f"{sum(c[k] for c in table.totals.values()):,}" for k in range(table.radius))
    title = f"{len(table.texts)} texts; sentences with up to k swaps: {sentences}"
    lines = box.HEAVY_HEAD if console.is_terminal else None
    grid = Grid(box=lines, title=title, title_justify="left", title_style="")
    grid.add_column("", no_wrap=True)
    upto = f"k = 1..{table.radius}"
    for column in (
        f"% decided, {upto}", f"% proved, {upto}", "evaluated", "avoided", "sentences a CPU s", "CPU s",
        "certificate", "screening s", "check.py s",
    ):  # fmt: skip
        grid.add_column(column, justify="right")
    for score in table.scores:
        grid.add_row(score.engine, *cells(score))
    print_table(console, grid)
    console.print(f"{table.definition}\n", style="dim")
    if table.each_radius:
        alone = Grid(box=lines, title="Each radius alone", title_justify="left", title_style="")
        for place, head in enumerate(HEAD):
            alone.add_column(head, justify="right" if place else "left", no_wrap=True)
        for asked in table.each_radius:
            alone.add_row(*asked.cells())
        print_table(console, alone)
        console.print(f"{MEANING}\n", style="dim")
    for engine, why, count in table.causes:
        console.print(f"open for {engine}: {count} text{'' if count == 1 else 's'}: {why or 'no more is asked'}")
    if table.already_wrong:
        console.print(f"{table.already_wrong} texts that the model already gets wrong were left out.")
    for score in table.scores:
        if score.unscreened and score.engine != EITHER:
            console.print(f"{score.engine}: {score.unscreened} proofs that only check.py can accept")
    for disagreement in table.disagreements:
        console.print(disagreement, style="bold red")
    console.print(f"Disagreements: {len(table.disagreements)}")
    console.print(where(table.about), style="dim")
