"""What `merge` has to know of each kind of run: the stages of its store, what two runs must say alike of a text, and
what is published when all of the lines are there. What only one of them needs is imported when it is met."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from swapproof.encodings.errors import BadInput

from ..ladder.resuming import KEPT
from ..runs.life import Outcome, published
from ..runs.manifest import QUESTION
from ..runs.run_folder import Run
from ..runs.run_summary import STAGE, summary_of
from ..runs.store import Store


@dataclass(frozen=True)
class Kind:
    stage: str
    kept: str
    """The stage of what is kept of texts for a later try."""
    alike: tuple[str, ...]
    """Of two lines of one text."""
    publish: Callable[[Run, Store, Mapping[str, Any]], Outcome]
    """The summary and the page, of the run, its store and its question."""


def publish_certified(run: Run, store: Store, question: Mapping[str, Any]) -> Outcome:
    from ..pages.report_file import write_report

    outcome = published(run, summary_of(store))
    write_report(run)
    return outcome


def publish_attacked(run: Run, store: Store, question: Mapping[str, Any]) -> Outcome:
    from ..attacks.attack_goals import Goal
    from ..attacks.attack_limits import Limits
    from ..attacks.attack_summary import summary_of_attack

    about, lines = about_of(store), list(store.results("attack"))
    limits, goal = Limits.of(question), Goal(question["target"])
    summary = summary_of_attack(lines, len(lines), question["method"], goal, limits, about["labels"])
    summary |= {"remarks": [*about["observed"], *about["remarks"]], "swaps_from": about["swaps"]["source"]}
    summary |= {"causal_model": question["causal_model"]} if "causal_model" in question else {}
    return with_page(run, summary, lines)


def publish_fractions(run: Run, store: Store, question: Mapping[str, Any]) -> Outcome:
    from ..counting.whole_runs.measuring_runs import draw
    from ..counting.whole_runs.pr_summary import summarise

    about, lines = about_of(store), list(store.results("pr"))
    summary = summarise(lines, question["radius"], len(lines), Fraction(question["delta"]))
    summary |= {name: about[name] for name in ("remarks", "swaps")}
    draw(lines, question["radius"], run.folder / "robust_fraction.png")
    return with_page(run, summary, lines)


def publish_radii(run: Run, store: Store, question: Mapping[str, Any]) -> Outcome:
    from ..radius.radius_setting import RadiusQuestion
    from ..radius.radius_summary import summarise_radii

    lines = list(store.results("msr"))
    return with_page(run, summarise_radii(lines, RadiusQuestion.of(question), len(lines)), lines)


def publish_votes(run: Run, store: Store, question: Mapping[str, Any]) -> Outcome:
    from ..smoothing.voting_runs import summary_of_votes

    lines = list(store.results("vote"))
    labels, delta = about_of(store)["labels"], Fraction(question["delta"])
    return with_page(run, summary_of_votes(lines, len(lines), delta, labels), lines)


def about_of(store: Store) -> dict[str, Any]:
    return dict(json.loads(store.facts()["about"]))


def with_page(run: Run, summary: dict[str, Any], lines: list[dict[str, Any]]) -> Outcome:
    from ..pages.sheets.measured_page import write_page

    outcome = published(run, summary)
    write_page(run, summary, lines)
    return outcome


CERTIFY = Kind(STAGE, KEPT, ("predicted", "min_swaps", "status", "level"), publish_certified)
KINDS = {
    "attack": Kind("attack", "attack kept", ("predicted", "min_swaps", "status"), publish_attacked),
    "pr": Kind("pr", "pr_seconds", ("predicted", "robust_fraction", "status"), publish_fractions),
    "msr": Kind("msr", "msr_seconds", ("predicted", "safe_radius", "status"), publish_radii),
    "vote": Kind("vote", "vote kept", ("predicted", "smoothed_radius", "status"), publish_votes),
}


def kind_of(facts: Mapping[str, str], where: object) -> Kind:
    """By what the run answers."""
    if QUESTION not in facts:
        return CERTIFY
    question = json.loads(facts[QUESTION])
    if "log_sha256" in question:
        raise BadInput(f"{where}: a log of TextAttack; import it for the whole task")
    if question["quantity"] not in KINDS:
        raise BadInput(
            f"{where}: a run of {question['quantity']}, whose numbers are of all texts together; measure the whole task"
        )
    return KINDS[question["quantity"]]
