"""Runs of `measure --quantity msr`: the radii of a whole data set; a killed run goes on where it was."""

from __future__ import annotations

import json
import math
from pathlib import Path

from swapproof.models.deployed.passing_folder import PassingFolder

from ..runs.jobs.ray_cluster import connected
from ..runs.jobs.text_by_text import Hands
from ..runs.left_out_swaps import FACT, LEFT_OUT, left_out
from ..runs.life import WHAT, Outcome, RunPlan, begun, facts_about, published, require, settle
from ..runs.manifest import QUESTION
from ..runs.run_folder import Run, refuse_foreign, write_atomically
from ..runs.store import Store
from ..tasks.sections import refuse_unmeasured
from ..tasks.task import read_task
from .radius_setting import RadiusQuestion, RadiusSetting
from .radius_summary import summarise_radii
from .radius_work import STAGE, RadiusWork
from .saliency import explainer_of
from .text_radius import refuse_words

SECONDS = 10.0


def measure_msr(
    task: str | Path,
    out: str | Path,
    norm: str = "l2",
    words: str = "one",
    limit: int | None = None,
    seconds: float | None = SECONDS,
    *,
    units: str = "raw",
    padding: bool = False,
    saliency: bool = False,
    lime: int = 0,
    same_part_of_speech: bool = False,
    jobs: int = 1,
    resume: bool = True,
    progress: bool = False,
    cluster: str | None = None,
) -> Outcome:
    """The safe radius of every text: how far the vectors of its words may move before the class changes.

    `norm`: "l2" or "linf". `words`: "one" (each word by itself), "all", or how many move together. `units`: "raw", or
    "scaled" by the range of each dimension. `saliency`: exact effects of words beside their radii; `lime`: samples of
    LIME too. `same_part_of_speech`: the nearest such word too. `seconds`: time for each text; the checks are within
    it. `cluster`: of Ray, whose machines work.
    """
    seconds = SECONDS if seconds is None else seconds
    require(norm in ("l2", "linf"), f"--norm {norm!r}: can be l2 or linf")
    require(units in ("raw", "scaled"), f"--units {units!r}: can be raw or scaled")
    refuse_words(words)
    require(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    require(seconds > 0 and math.isfinite(seconds), f"seconds = {seconds}: a time above 0, and finite")
    require(lime >= 0, f"lime = {lime}: a number of samples")
    require(words == "one" or not (saliency or lime), "--saliency and --lime are of --words one")
    require(words == "one" or not same_part_of_speech, "--same-part-of-speech is of --words one")
    if lime:
        explainer_of()
    question = RadiusQuestion(
        "l2" if norm == "l2" else "linf", words, units, padding, saliency or lime > 0, lime, same_part_of_speech
    )
    run = Run(Path(out))
    refuse_foreign(run.folder)
    with connected(cluster), PassingFolder() as folder:
        given = read_task(task)
        refuse_unmeasured(given.require, "measure --quantity msr")
        setting = RadiusSetting.of(given, folder, limit)
        if same_part_of_speech:
            require(bool(setting.same_part_of_speech.name), "no tagger")
        setting.widths(units)  # refused before a folder is made
        behind = setting.room(setting.inputs.texts[0].encoded.tokens).behind
        about = {
            "file": setting.path.name,
            "sha256": setting.binding.model_sha256,
            "opset": behind.model.opset,
            "classes": behind.classes,
        }
        facts = facts_about(setting.binding, setting.inputs, (), about, QUESTION, seconds)
        facts |= {QUESTION: json.dumps(question.fact()), "vectors": setting.vectors_sha256}
        plan = RunPlan(
            run,
            setting.task,
            setting.inputs,
            setting.binding,
            setting.copies(),
            setting.own(),
            facts,
            given=None if setting.model is None else setting.model.given,
            matters=WHAT | {"vectors": "the vectors of words"},
        )
        with begun(plan, resume=resume, shown=progress):
            listed = write_atomically(run.folder / LEFT_OUT, left_out(setting.inputs.freezing))
            work = RadiusWork(run.folder, question, seconds)
            settle(plan, work, Hands(jobs, cluster), doing="measure", facts={FACT: listed}, shown=progress)
            with Store.open(run.store, readonly=True) as store:
                lines = list(store.results(STAGE))
            outcome = published(run, summarise_radii(lines, question, len(setting.inputs.texts)))
            from ..pages.sheets.measured_page import write_page

            write_page(run, outcome.summary, lines)
            return outcome
