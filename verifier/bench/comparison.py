"""Answers of several engines on the same texts: who solved how many, how much faster, and where they contradict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

from ..exit_codes import HOLDS, UNCHECKED
from ..pages.terminal import terminal

if TYPE_CHECKING:
    from .answers import Answer

LEAST = 1e-6
"""Seconds below which a time is not measured: ratios are of no less than this."""
ROWS_SHOWN = 30
"""Texts on the terminal, those that took longest."""


@dataclass(frozen=True)
class Score:
    """One engine over all texts; ratios are its seconds by those of our engine."""

    engine: str
    asked: int
    solved: int
    too_large: int
    failed: int
    median_seconds: float | None
    median_nodes: float | None
    largest_proof: int | None
    """Leaves, of our engines."""
    peak_megabytes: float | None
    """Of the process in which our engine ran, over all texts."""
    total_seconds: float
    total_cpu_seconds: float
    both_solved: int
    median_ratio: float | None
    total_ratio: float | None
    total_cpu_ratio: float | None
    total_ratio_with_limit: float | None
    """Over all texts both ran on, one that was not solved counted with the time limit."""


@dataclass(frozen=True)
class Comparison:
    """All answers, by text and then by engine; `own` is the engine that the others are measured by."""

    answers: tuple[Answer, ...]
    engines: tuple[str, ...]
    own: str | None
    seconds: float
    already_wrong: int
    about: dict[str, Any]

    @cached_property
    def texts(self) -> dict[int, dict[str, Answer]]:
        """id -> engine -> answer."""
        found: dict[int, dict[str, Answer]] = {}
        for answer in self.answers:
            found.setdefault(answer.id, {})[answer.engine] = answer
        return found

    @cached_property
    def disagreements(self) -> tuple[str, ...]:
        """Answers that did not check, and pairs that cannot both be true, but for texts that rounding decides."""
        found = []
        for id, answers in self.texts.items():
            of_text = list(answers.values())
            found += [f"text {id}: {one.engine}: {one.refused}" for one in of_text if one.refused]
            for one in of_text:
                found += [
                    f"text {id}: {one.engine} says at least {one.low}, and {other.engine} found {other.high}"
                    for other in of_text
                    if other.high is not None and one.low > other.high and "ambiguous" not in (one.status, other.status)
                ]
        return tuple(found)

    @property
    def exit_code(self) -> int:
        return UNCHECKED if self.disagreements else HOLDS

    def score(self, engine: str) -> Score:
        own = [answers for answers in self.texts.values() if engine in answers]
        ran = [answers[engine] for answers in own if answers[engine].timed]
        solved = [answer for answer in ran if answer.solved]
        nodes = [answer.nodes for answer in solved if answer.nodes is not None]
        pairs = list(self.pairs(engine))
        both = [(theirs, ours) for theirs, ours in pairs if theirs.solved and ours.solved]
        return Score(
            engine=engine,
            asked=len(own),
            solved=len(solved),
            too_large=sum(answers[engine].status == "size" for answers in own),
            failed=sum(answers[engine].status in ("unavailable", "error") for answers in own),
            median_seconds=median([answer.seconds for answer in solved]) if solved else None,
            median_nodes=median(nodes) if nodes else None,
            largest_proof=max((one.nodes or 0 for one in ran if one.tree_nodes is not None), default=None),
            peak_megabytes=max((one.peak_megabytes for one in ran if one.peak_megabytes is not None), default=None),
            total_seconds=sum(answer.seconds for answer in ran),
            total_cpu_seconds=sum(answer.cpu_seconds for answer in ran),
            both_solved=len(both),
            median_ratio=median([ratio(a.seconds, b.seconds) for a, b in both]) if both else None,
            total_ratio=total_ratio([(a.seconds, b.seconds) for a, b in both]),
            total_cpu_ratio=total_ratio([(a.cpu_seconds, b.cpu_seconds) for a, b in both]),
            total_ratio_with_limit=total_ratio([(self.charged(a), self.charged(b)) for a, b in pairs]),
        )

    def pairs(self, engine: str) -> Iterator[tuple[Answer, Answer]]:
        """(its answer, ours) where both ran."""
        for answers in self.texts.values():
            if self.own is not None and engine in answers and self.own in answers:
                theirs, ours = answers[engine], answers[self.own]
                if theirs.timed and ours.timed:
                    yield theirs, ours

    @property
    def own_costs(self) -> tuple[str, ...]:
        """How large our proofs and our process became."""
        found = []
        for score in map(self.score, self.engines):
            if score.largest_proof is not None:
                memory = "" if score.peak_megabytes is None else f", its process took {score.peak_megabytes:.0f} MB"
                size = f"{score.largest_proof} lea{'f' if score.largest_proof == 1 else 'ves'}"
                found.append(f"{score.engine}: its largest proof has {size}{memory}")
        return tuple(found)

    @property
    def same_solver(self) -> tuple[str, ...]:
        """Our program against the textbook's in the same solver: total time, each text at most the limit."""
        found = []
        for ours in self.engines:
            theirs = ours.partition("-tight")[0]
            if theirs == ours or theirs not in self.engines:
                continue
            both = [(one[theirs], one[ours]) for one in self.texts.values() if theirs in one and ours in one]
            ran = [(a, b) for a, b in both if a.timed and b.timed]
            solved = total_ratio([(a.seconds, b.seconds) for a, b in ran if a.solved and b.solved])
            limited = total_ratio([(self.charged(a), self.charged(b)) for a, b in ran])
            if limited is not None:
                over = "" if solved is None else f"{speed(solved)} in total over the texts both solved, "
                of = "1 text" if len(ran) == 1 else f"{len(ran)} texts"
                found.append(f"{ours} beside {theirs}: {over}{speed(limited)} with the limit ({of})")
        return tuple(found)

    def charged(self, answer: Answer) -> float:
        return answer.seconds if answer.solved else self.seconds

    def as_json(self) -> dict[str, Any]:
        """All of it, as `--json` prints it."""
        return {
            "exit_code": self.exit_code,
            **self.about,
            **self.totals(),
            "answers": [asdict(one) for one in self.answers],
        }

    def totals(self) -> dict[str, Any]:
        """As the last JSON line."""
        return {
            "scores": [asdict(self.score(engine)) for engine in self.engines],
            "texts": len(self.texts),
            "already_wrong": self.already_wrong,
            "disagreements": list(self.disagreements),
            "same_solver": list(self.same_solver),
            "definition": self.definition,
            "exit_code": self.exit_code,
        }

    @property
    def definition(self) -> str:
        """What the numbers mean; definitions differ between tools."""
        return (
            f"Time: wall clock of one thread, at most {self.seconds:g} s for a text. Of our engines, all of it: "
            "differences, search, replay of witnesses in onnxruntime; certificates are not checked. Of a solver, "
            "its own optimisation call alone, in a process of its own: its start, writing and loading the model "
            "are not counted; with more than two classes, the sum over rival classes. Solver model: the textbook "
            "big-M program of the MMWS paper, bounds by interval arithmetic, no gap allowed; without variables "
            "for the inputs of neurons where only so Gurobi's free licence is large enough. SOLVER-tight and z3: our "
            "own programs, and their time is all of ours too: bounds, removal of swaps, writing, attack, replay. "
            "Solved: the minimum "
            "is known and its sentence replayed in onnxruntime, or no sentence breaks the text; the lower end of "
            "a solver is its claim. Nodes: median over solved texts, of a solver's tree or of our "
            "proof's leaves. Peak: the most memory of the process in which our engine runs, with "
            "model and onnxruntime. "
            f"Ratios are solver / {self.own or 'ours'}: median, total and CPU over the texts that both solved; "
            f"with limit: over all texts both ran on, each one unsolved counted as {self.seconds:g} s. Texts the "
            "model already gets wrong are left out."
        )


def speed(times: float) -> str:
    """In words, of the time of the other by our own."""
    shown, word = (f"{times:.3g}", "faster") if times >= 1 else (f"{1 / times:.3g}", "slower")
    return "as fast" if shown == "1" else f"{shown}x {word}"


def ratio(theirs: float, ours: float) -> float:
    return max(theirs, LEAST) / max(ours, LEAST)


def total_ratio(pairs: list[tuple[float, float]]) -> float | None:
    return ratio(sum(a for a, _ in pairs), sum(b for _, b in pairs)) if pairs else None


def print_comparison(table: Comparison) -> None:
    """The hardest texts, the totals, their definition, disagreements, and where this was measured."""
    from rich import box
    from rich.table import Table as Grid

    from ..pages.tables import print_table

    console = terminal()
    lines = box.HEAVY_HEAD if console.is_terminal else None
    hardest = sorted(table.texts, key=lambda id: -max(one.seconds for one in table.texts[id].values()))[:ROWS_SHOWN]
    grid = Grid(box=lines, title=shown_title(len(hardest), len(table.texts)), title_justify="left", title_style="")
    grid.add_column("text", justify="right")
    for engine in table.engines:
        grid.add_column(engine, justify="right")
        grid.add_column("seconds", justify="right")
    for id in hardest:
        cells = []
        for engine in table.engines:
            answer = table.texts[id][engine]
            cells += [said(answer), f"{answer.seconds:.3f}" if answer.timed else ""]
        grid.add_row(str(id), *cells)
    print_table(console, grid)
    console.print()
    totals = Grid(box=lines)
    totals.add_column("engine", no_wrap=True)
    for column in ("solved", "share", "not run", "nodes", "median s", "total s", "CPU s"):
        totals.add_column(column, justify="right")
    for column in ("median ratio", "total ratio", "CPU ratio", "with limit"):
        totals.add_column(column, justify="right")
    for engine in table.engines:
        score = table.score(engine)
        share = f"{100 * score.solved / score.asked:.1f} %" if score.asked else ""
        ratios = (score.median_ratio, score.total_ratio, score.total_cpu_ratio, score.total_ratio_with_limit)
        totals.add_row(
            engine,
            f"{score.solved} of {score.asked}",
            share,
            str(score.too_large + score.failed),
            "" if score.median_nodes is None else f"{score.median_nodes:g}",
            "" if score.median_seconds is None else f"{score.median_seconds:.3f}",
            f"{score.total_seconds:.2f}",
            f"{score.total_cpu_seconds:.2f}",
            *("" if number is None else f"{number:.3g}x" for number in ratios),
        )
    print_table(console, totals)
    console.print(f"{table.definition}\n", style="dim")
    for line in (*table.own_costs, *table.same_solver):
        console.print(line)
    if table.already_wrong:
        console.print(f"{table.already_wrong} texts that the model already gets wrong were left out.")
    for remark, count in Counter(
        f"{a.engine}: {a.program.partition('; ')[2]}" for a in table.answers if "; " in a.program
    ).items():
        console.print(f"{remark} in {count} texts")
    for failure in sorted({f"{a.engine}: {a.detail}" for a in table.answers if not a.timed}):
        console.print(failure)
    for disagreement in table.disagreements:
        console.print(disagreement, style="bold red")
    console.print(f"Disagreements: {len(table.disagreements)}")
    console.print(where(table.about), style="dim")


def shown_title(shown: int, texts: int) -> str:
    return f"{texts} texts" if shown == texts else f"The {shown} texts of {texts} that took longest"


def said(answer: Answer) -> str:
    match answer.status:
        case "exact":
            return str(answer.low)
        case "unbreakable":
            return "unbreakable"
        case "open":
            return f"{answer.low} to {'?' if answer.high is None else answer.high}"
        case "size":
            return "too large"
        case status:
            return status


def where(about: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    load = "" if about["load"] is None else f", load {about['load']:.1f} at the start"
    return (
        f"{about['date']}, {about['processor']}, {about['cores']} cores{load}, {about['platform']}, Python "
        f"{about['python']}, {versions}, OMP_NUM_THREADS: {about['numpy_threads']}\n{about['command']}"
    )
