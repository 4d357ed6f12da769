"""`measure`: a quantity of a whole data set, in a run folder of its own; a killed run goes on where it was."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import Model, open_model
from swapproof.models.errors import unreadable

from ..counting.black_box import BlackBox, black_box
from ..counting.fraction import Settings
from ..counting.measuring_text import Measuring, unmeasured
from ..counting.pr_summary import summarise
from ..counting.sample_request import DELTA, EPSILON, Sampling
from ..counting.sampling import BATCH
from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED
from ..ladder.model_trial import Trial, length_of, tried
from ..ladder.run_certificates import Checker, binding_of
from ..pages.pr_printing import print_measured
from ..pages.progress import progress as shown_progress
from ..runs.inputs import Inputs, Text, read_inputs
from ..runs.left_out_swaps import FACT, LEFT_OUT, left_out
from ..runs.results import written
from ..runs.run_folder import Run, held, refuse_foreign, write_atomically
from ..runs.station import Lost, Settled
from ..runs.store import ILL_FORMED, Store, writing
from ..runs.task import Task, read_task
from ..runs.workers import settle_all
from .certify import Outcome, begin, facts_of, intact, refuse_changes, require

STAGE = "pr"
"""The stage of the store whose lines are results.jsonl."""
SECONDS = 10.0
SHORT = "pr_seconds"
"""The stage that remembers which texts ran out of how much time; null where they did not, later."""
NAME = "measure"
MOST = 1_000_000
"""Swaps: the certificate format's limit."""


def radii_of(text: str | None) -> list[int]:
    """`3`, or several with commas: `1,2,3`."""
    if text is None:
        raise BadInput("--quantity pr needs --radius: how many swaps a sentence may have, or several: 1,2,3")
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise BadInput(f"--radius {text!r}: whole numbers of swaps, separated by commas")
    radii = sorted({int(part) for part in parts})
    require(radii[-1] <= MOST, f"--radius {text!r}: at most {MOST}, more than any text has words")
    return radii


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
    width: str | None,
    sampled: bool,
    brute_force: bool,
    euba: int | None,
    jobs: int,
    resume: bool,
) -> int:
    """The command line's `measure --quantity pr`; the exit code."""
    if quantity != "pr":
        raise BadInput(f"--quantity {quantity!r}: can be pr or kappa")
    require(not brute_force and euba is None, "--brute-force and --euba belong to --quantity kappa")
    radii = radii_of(radius)
    seconds = SECONDS if seconds is None else seconds
    options: dict[str, Any] = {
        "limit": limit,
        "seconds": seconds,
        "sampling": Sampling.of(samples, epsilon, delta, width),
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
    `seconds`: time per text, None for no limit. `sampling`: how many samples; by default as many as Hoeffding's
    inequality needs for epsilon 0.025 and delta 0.005. A folder with a run of the same question is resumed; texts that
    ran out of time are measured again when there is more.
    """
    require(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    require(0 <= radius <= MOST, f"radius = {radius}: from 0 to {MOST}")
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
        Checker.open(binding, model.path, model.path.parent).try_network(trial.network)
    deployed = not isinstance(trial, Trial)
    batch = BATCH if trial.batch_dependence is None else 1
    settings = Settings(radius, sampling.samples, sampling.delta, count, seconds, deployed, sampling.width, batch)
    # A run needs of a trial what both kinds have: the model, remarks and facts.
    facts = facts_of(given, binding, inputs, cast(Trial, trial), NAME, seconds)
    question = {"quantity": "pr", "radius": radius, "samples": sampling.samples, "delta": str(sampling.delta)}
    width = None if sampling.width is None else str(sampling.width)
    facts[NAME] = json.dumps({**question, "width": width, "count": count, "deployed": deployed, "batch": batch})
    made = not run.folder.exists()
    with writing(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    with held(run):
        if resume and run.store.exists():
            refuse_other_question(run, facts)
            refuse_changes(run, facts)
        begin(run, given, cast(Trial, trial), binding, inputs, facts, made=made, anew=not resume)
        listed = write_atomically(run.folder / LEFT_OUT, left_out(inputs.freezing))
        with Store.open(run.store) as store:
            store.set_facts({FACT: listed})
            try:
                work(run, store, Measuring(run.folder, binding, settings), inputs, jobs, shown=progress)
            finally:
                write_atomically(run.results, (f"{line}\n".encode() for line in store.lines(STAGE)))
            lines = list(store.results(STAGE))
        summary = summarise(lines, radius, len(inputs.texts), sampling.delta)
        about = json.loads(facts["about"])
        summary |= {"remarks": about["remarks"], "swaps": about["swaps"]}
        write_json(run.summary, summary)
        draw(lines, radius, run.folder / "robust_fraction.png")
    return Outcome(run.folder, summary, summary["verdict"]["exit_code"])


def readable(model: Model, task: Task, inputs: Inputs, *, count: bool) -> Trial | BlackBox:
    """The model tried; one that cannot be read is sampled only."""
    try:
        return tried(model, length_of(task, model), inputs)
    except Unsupported as error:
        if count:
            raise Unsupported(f"{error}; --sampled samples any model through onnxruntime") from None
        return black_box(model, str(error), inputs)


def refuse_other_question(run: Run, facts: Mapping[str, str]) -> None:
    with Store.open(run.store, readonly=True) as store:
        before = store.facts()
    if before.get(NAME) != facts[NAME]:
        what = "is not of `measure`" if NAME not in before else f"answers another question, {before[NAME]}"
        raise BadInput(
            f"{run.folder}: the run there {what}; give --out a new folder, or --no-resume to start anew here"
        )


def work(run: Run, store: Store, measuring: Measuring, inputs: Inputs, jobs: int, *, shown: bool) -> None:
    """Measure what is not measured yet, or was in less time; one transaction per text, its certificate first."""
    done = {id for id, certificate in store.finished(STAGE) if intact(run, id, certificate)}
    short = {id: json.loads(store.line(SHORT, id)) for id, _ in store.finished(SHORT)}
    limit = measuring.seconds
    done -= {id for id, then in short.items() if then is not None and (limit is None or then < limit)}
    todo: Sequence[Text] = [text for text in inputs.texts if text.id not in done]
    if not todo:
        return
    with (
        shown_progress("measure", len(inputs.texts), len(done), shown=shown) as advance,
        closing(settle_all(measuring, todo, min(jobs, len(todo)))) as found,
    ):
        for one in found:
            match one:
                case Lost(text):
                    store.put(STAGE, text.id, written(unmeasured(one)), None, lost=True)
                case Settled(id, line, certificate):
                    digest = None
                    if certificate is not None:
                        digest = write_atomically(run.certificate(id), certificate, durable=False)
                    store.put(STAGE, id, written(line), digest)
                    if id in short or out_of_time(line):
                        store.put(SHORT, id, json.dumps(limit if out_of_time(line) else None), None)
            advance(1)


def out_of_time(line: Mapping[str, Any]) -> bool:
    """Whether more would have been found in more time."""
    found = line["robust_fraction"]
    if found is None or found["kind"] == "exact":
        return False
    return found["kind"] == "deterministic" or "sample" not in found or bool(found["sample"]["stopped"] == "time")


def draw(lines: Sequence[Mapping[str, Any]], radius: int, file: Path) -> None:
    """The figure; a machine without matplotlib does without."""
    found = [line["robust_fraction"] for line in lines if line["robust_fraction"] is not None]
    if not found:
        return
    try:
        from ..pages.pr_plots import distribution

        distribution([(one["low"], one["high"]) for one in found], radius, file)
    except ImportError:
        return


def measure_radii(task: str | Path, out: str | Path, radii: Sequence[int], **options: Any) -> Outcome:
    """One run per radius, in folders `radius-1`, `radius-2`, ...; beside them the curve of their means."""
    folder = Path(out)
    refuse_foreign_curve(folder, radii)
    outcomes = [measure_pr(task, folder / f"radius-{radius}", radius, **options) for radius in radii]
    summaries = [outcome.summary for outcome in outcomes]
    summary = together(summaries)
    write_json(folder / "summary.json", summary)
    try:
        from ..pages.pr_plots import curve

        if all(one["measured"] for one in summaries):
            curve(summaries, folder / "curve.png")
    except ImportError:
        pass
    return Outcome(folder, summary, max(outcome.exit_code for outcome in outcomes))


def together(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of runs of several radii."""
    return {
        "quantity": "pr",
        "radii": [one["radius"] for one in summaries],
        "curve": {str(one["radius"]): one["robust_fraction"] for one in summaries},
        "runs": {str(one["radius"]): one for one in summaries},
    }


def refuse_foreign_curve(folder: Path, radii: Sequence[int]) -> None:
    ours = {"summary.json", "curve.png", *(f"radius-{radius}" for radius in radii)}
    if folder.is_dir():
        strange = sorted(path.name for path in folder.iterdir() if path.name not in ours)
        if strange:
            raise BadInput(f"{folder}: holds {strange[0]}, which is not of this measurement; give --out a new folder")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def report_measured(folder: Path, question: Mapping[str, Any]) -> int:
    """Show what a run of `measure` found."""
    if question["quantity"] != "kappa":
        return shown(folder, print_measured)
    from ..pages.kappa_printing import print_kappa

    return shown(folder, print_kappa)


def shown(folder: Path, show: Callable[[Mapping[str, Any]], None]) -> int:
    """Show the summary in this folder; the exit code is the worst verdict in it."""
    from rich.errors import ConsoleError

    summary = summary_in(folder)
    try:
        show(summary)
        code = max(one["verdict"]["exit_code"] for one in summary.get("runs", {"": summary}).values())
        if code not in (HOLDS, INCOMPLETE, UNCHECKED):
            raise ValueError(f"exit code {code}")
    except (ConsoleError, *ILL_FORMED) as error:
        met = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadInput(
            f"{Run(folder).summary}: not the summary of a measurement ({met}); run the same `swapproof measure` again"
        ) from None
    return int(code)


def summary_in(folder: Path) -> dict[str, Any]:
    """What the summary of a measurement says."""
    path = Run(folder).summary
    try:
        summary = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(f"{folder}: the run is not finished; run the same `swapproof measure` again") from None
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError):
        raise BadInput(f"{path}: not JSON; run the same `swapproof measure` again") from None
    if not isinstance(summary, dict):
        raise BadInput(f"{path}: not the summary of a measurement; run the same `swapproof measure` again")
    return summary
