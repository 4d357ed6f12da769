"""`measure`: a quantity of a whole data set, in a run folder of its own; a killed run goes on where it was."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.reading import Model, open_model

from .certifying import Outcome, begin, facts_of, intact, refuse_changes, require
from .counting.binomial import check as check_shares
from .counting.binomial import samples_needed
from .counting.fraction import Settings
from .counting.station import measure_all
from .counting.summary import summarise
from .evidence import Binding, Checker, binding_of
from .inputs import Inputs, Text, read_inputs
from .progress import progress as shown_progress
from .results import written
from .run import Run, held, refuse_foreign, write_atomically
from .store import Store, writing
from .task import Task, read_task
from .trial import Trial, length_of, tried

STAGE = "pr"
"""The stage of the store whose lines are results.jsonl."""
QUANTITIES = ("pr", "kappa")
SECONDS = 10.0
EPSILON, DELTA = "0.025", "0.005"
NAME = "measure"


@dataclass(frozen=True)
class Sampling:
    """How many samples: as many as asked for, or as Hoeffding needs for epsilon and delta."""

    samples: int
    delta: Fraction

    @classmethod
    def of(cls, samples: int | None, epsilon: str, delta: str) -> Sampling:
        wanted, risk = share("epsilon", epsilon), share("delta", delta)
        check_shares(wanted, risk)
        require(samples is None or samples >= 1, f"samples = {samples}: at least 1")
        return cls(samples_needed(wanted, risk) if samples is None else samples, risk)


def share(name: str, value: str) -> Fraction:
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise BadInput(f"{name} = {value!r}: a number such as 0.005 or 1/200") from None


def radii_of(text: str | None) -> list[int]:
    """`3`, or several with commas: `1,2,3`."""
    if text is None:
        raise BadInput("--quantity pr needs --radius: how many swaps a sentence may have, or several: 1,2,3")
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise BadInput(f"--radius {text!r}: whole numbers of swaps, separated by commas")
    return sorted({int(part) for part in parts})


def command(
    task: Path,
    out: Path,
    quantity: str,
    *,
    radius: str | None,
    limit: int | None,
    seconds: float | None,
    samples: int | None,
    epsilon: str,
    delta: str,
    sampled: bool,
    brute_force: bool,
    euba: int | None,
    euba_variant: Any,
    jobs: int,
    resume: bool,
) -> int:
    """The command line's `measure`; the exit code."""
    if quantity not in QUANTITIES:
        raise BadInput(f"--quantity {quantity!r}: can be {' or '.join(QUANTITIES)}")
    if quantity == "kappa":
        from .measuring_words import measure_kappa, print_kappa

        require(radius is None and not sampled, "--radius and --sampled belong to --quantity pr")
        outcome = measure_kappa(
            task,
            out,
            limit,
            brute_force=brute_force,
            seconds=seconds if brute_force else None,
            euba=euba,
            variant=euba_variant,
            progress=True,
        )
        print_kappa(outcome.summary)
        print(f"\nThe run folder: {outcome.folder}")
        return outcome.exit_code
    require(not brute_force and euba is None, "--brute-force and --euba belong to --quantity kappa")
    radii = radii_of(radius)
    seconds = SECONDS if seconds is None else seconds
    options: dict[str, Any] = {
        "limit": limit,
        "seconds": seconds,
        "sampling": Sampling.of(samples, epsilon, delta),
        "jobs": jobs,
        "count": not sampled,
        "resume": resume,
        "progress": True,
    }
    if len(radii) == 1:
        outcome = measure_pr(task, out, radii[0], **options)
    else:
        outcome = measure_radii(task, out, radii, **options)
    print_measured(outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code


def measure_pr(
    task: str | Path,
    out: str | Path,
    radius: int,
    limit: int | None = None,
    seconds: float | None = SECONDS,
    sampling: Sampling | None = None,
    jobs: int = 1,
    *,
    count: bool = True,
    resume: bool = True,
    progress: bool = False,
) -> Outcome:
    """The robust fraction of every text among its sentences of at most `radius` swaps.

    `count` splits each space into cells and publishes certified counts; without it the space is only sampled.
    `seconds`: time per text, None for no limit. A folder with a run of the same question is resumed.
    """
    require(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    require(radius >= 0, f"radius = {radius}: at least 0")
    require(seconds is None or (seconds > 0 and math.isfinite(seconds)), f"seconds = {seconds}: a time above 0")
    require(jobs >= 1, f"jobs = {jobs}: at least 1")
    sampling = Sampling.of(None, EPSILON, DELTA) if sampling is None else sampling
    run = Run(Path(out))
    refuse_foreign(run.folder)
    given = read_task(task)
    model = open_model(given.model.onnx)
    inputs = read_inputs(given, length_of(given, model), limit)
    trial = readable(model, given, inputs, count=count)
    binding = binding_of(model, inputs)
    if count and isinstance(trial, Trial):
        Checker.open(binding, model.path, model.path.parent).try_length(trial.network.length)
    deployed = not isinstance(trial, Trial)
    settings = Settings(radius, sampling.samples, sampling.delta, count, seconds, deployed)
    # A run needs of a trial what both kinds have: the model, remarks and facts.
    facts = facts_of(given, binding, inputs, cast(Trial, trial), NAME, seconds)
    question = {"quantity": "pr", "radius": radius, "samples": sampling.samples, "delta": str(sampling.delta)}
    facts[NAME] = json.dumps({**question, "count": count, "deployed": deployed})
    made = not run.folder.exists()
    with writing(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    with held(run):
        if resume and run.store.exists():
            refuse_other_question(run, facts)
            refuse_changes(run, facts)
        begin(run, given, cast(Trial, trial), binding, inputs, facts, made=made, anew=not resume)
        with Store.open(run.store) as store:
            try:
                work(run, store, binding, settings, inputs, jobs, shown=progress)
            finally:
                write_atomically(run.results, (f"{line}\n".encode() for line in store.lines(STAGE)))
            lines = [json.loads(line) for line in store.lines(STAGE)]
        summary = summarise(lines, radius, len(inputs.texts))
        write_json(run.summary, summary)
        draw(lines, radius, run.folder / "robust_fraction.png")
    return Outcome(run.folder, summary, summary["verdict"]["exit_code"])


@dataclass(frozen=True)
class BlackBox:
    """A model whose network cannot be read: what a run says of it in place of a trial."""

    model: Model
    reason: str

    @property
    def remarks(self) -> tuple[str, ...]:
        return (f"the network cannot be read ({self.reason}): every sample was judged by onnxruntime",)

    def facts(self) -> dict[str, str | int]:
        return {"file": self.model.path.name, "opset": self.model.opset}


def readable(model: Model, task: Task, inputs: Inputs, *, count: bool) -> Trial | BlackBox:
    """The model tried; one that cannot be read is sampled only."""
    try:
        return tried(model, length_of(task, model), inputs)
    except Unsupported as error:
        if count:
            raise Unsupported(f"{error}; --sampled samples any model through onnxruntime") from None
        return BlackBox(model, str(error))


def refuse_other_question(run: Run, facts: Mapping[str, str]) -> None:
    with Store.open(run.store, readonly=True) as store:
        before = store.facts()
    if before.get(NAME) != facts[NAME]:
        what = "is not of `measure`" if NAME not in before else f"answers another question, {before[NAME]}"
        raise BadInput(
            f"{run.folder}: the run there {what}; give --out a new folder, or --no-resume to start anew here"
        )


def work(
    run: Run, store: Store, binding: Binding, settings: Settings, inputs: Inputs, jobs: int, *, shown: bool
) -> None:
    """Measure what is not measured yet; one transaction per text, its certificate first."""
    done = {id for id, certificate in store.finished(STAGE) if intact(run, id, certificate)}
    todo: Sequence[Text] = [text for text in inputs.texts if text.id not in done]
    if not todo:
        return
    with shown_progress("measure", len(inputs.texts), len(done), shown=shown) as advance:
        for one in measure_all(run.folder, binding, settings, todo, min(jobs, len(todo))):
            digest = None
            if one.certificate is not None:
                digest = write_atomically(run.certificate(one.id), one.certificate)
            store.put(STAGE, one.id, written(one.line), digest)
            advance(1)


def draw(lines: Sequence[Mapping[str, Any]], radius: int, file: Path) -> None:
    """The figure; a machine without matplotlib does without."""
    middles = list(middles_of(lines))
    if not middles:
        return
    try:
        from .counting.plots import distribution

        distribution(middles, radius, file)
    except ImportError:
        return


def middles_of(lines: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    for line in lines:
        found = line["robust_fraction"]
        if found is not None:
            yield (found["low"] + found["high"]) / 2


def measure_radii(task: str | Path, out: str | Path, radii: Sequence[int], **options: Any) -> Outcome:
    """One run per radius, in folders `radius-1`, `radius-2`, ...; beside them the curve of their means."""
    folder = Path(out)
    refuse_foreign_curve(folder, radii)
    outcomes = [measure_pr(task, folder / f"radius-{radius}", radius, **options) for radius in radii]
    summaries = [outcome.summary for outcome in outcomes]
    summary = {
        "quantity": "pr",
        "radii": list(radii),
        "curve": {str(one["radius"]): one["robust_fraction"] for one in summaries},
        "runs": {str(one["radius"]): one for one in summaries},
    }
    write_json(folder / "summary.json", summary)
    try:
        from .counting.plots import curve

        if all(one["measured"] for one in summaries):
            curve(summaries, folder / "curve.png")
    except ImportError:
        pass
    return Outcome(folder, summary, max(outcome.exit_code for outcome in outcomes))


def refuse_foreign_curve(folder: Path, radii: Sequence[int]) -> None:
    ours = {"summary.json", "curve.png", *(f"radius-{radius}" for radius in radii)}
    if folder.is_dir():
        strange = sorted(path.name for path in folder.iterdir() if path.name not in ours)
        if strange:
            raise BadInput(f"{folder}: holds {strange[0]}, which is not of this measurement; give --out a new folder")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def print_measured(summary: Mapping[str, Any]) -> None:
    """The numbers of a measurement and the definition of each."""
    from rich.table import Table

    from .report import terminal

    console = terminal()
    runs = list(summary["runs"].values()) if "runs" in summary else [summary]
    table = Table(title="Robust fraction (PR)", title_justify="left")
    for name in ("radius", "texts", "already wrong", "exact", "bracketed", "sampled", "mean PR", "PR > 0.9", "seconds"):
        table.add_column(name, justify="right")
    for one in runs:
        table.add_row(
            str(one["radius"]),
            *(f"{one[name]:,}" for name in ("texts", "already_wrong", "exact", "deterministic", "sampled")),
            ends(one["robust_fraction"]),
            ends(one["share_above_0.9"]),
            f"{one['seconds']:.1f}",
        )
    console.print(table)
    console.print(runs[0]["definition"] + ".", style="dim")
    for one in runs:
        console.print(f"r = {one['radius']}: {one['verdict']['sentence']}")


def report_measured(folder: Path, question: Mapping[str, Any]) -> int:
    """Show what a run of `measure` found."""
    try:
        summary = json.loads(Run(folder).summary.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{folder}: the run is not finished; run the same `swapproof measure` again") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{Run(folder).summary}: cannot be read ({error}); run `swapproof measure` again") from None
    if not isinstance(summary, dict) or "verdict" not in summary:
        raise BadInput(f"{Run(folder).summary}: not the summary of a run; run `swapproof measure` again")
    if question["quantity"] == "kappa":
        from .measuring_words import print_kappa

        print_kappa(summary)
    else:
        print_measured(summary)
    return int(summary["verdict"]["exit_code"])


def ends(found: Mapping[str, Any]) -> str:
    low, high = found["low"], found["high"]
    if low is None:
        return "none"
    return f"{low:.4f}" if low == high else f"[{low:.4f}, {high:.4f}]"
