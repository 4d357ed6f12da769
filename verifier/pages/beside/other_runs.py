"""What the page of a run of `certify` takes of other runs over the same texts with the same model.

It is kept in RUN/beside.json, so that the page can be made again. It is a copy: those runs are checked in their own
folders.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ...attacks.attack_comparison import COMPARISON
from ...comparing.same_question import ComparedRun, names_of, read_run, refuse_other_spaces, refuse_other_texts
from ...runs.measured_runs import holds_radii, runs_of
from ...runs.run_folder import BESIDE, Run, sha256, write_atomically
from ...runs.store import Store, intact
from ..sheets.radius_sheet import shades
from .taken_figures import Taken, asked_of

CERTIFY = "certify"
WORDS = 20
"""Of kappa, the most dangerous ones."""


def take(run: Run, folders: Sequence[Path]) -> None:
    """RUN/beside.json, of these runs in place of those that were there; without any it is removed."""
    if not folders:
        (run.folder / BESIDE).unlink(missing_ok=True)
        return
    every = [folder for given in folders for folder in held(given)]
    own, *names = names_of([run.folder, *every])
    first = read_run(run.folder, own)
    taken = []
    for folder, name in zip(every, names, strict=True):
        other = read_run(folder, name)
        if other.kind == CERTIFY:
            raise BadInput(f"{folder}: a run of certify; `swapproof compare` puts two of them side by side")
        own_part = first
        if other.kind != "attack" and len(other.texts) < len(first.texts):  # what takes long is measured of the first
            own_part = replace(first, texts=first.texts[: len(other.texts)])
        refuse_other_texts(own_part, other)
        if other.kind != "kappa":
            refuse_other_spaces(own_part, other)
        refuse_other_model(first, other)
        taken.append(taken_of(other))
    content = json.dumps({"of": asked_of(run), "runs": taken}, ensure_ascii=False, separators=(",", ":"))
    write_atomically(run.folder / BESIDE, [content.encode()])


def held(folder: Path) -> list[Path]:
    """The run itself, or those that a folder of several radii or attacks holds."""
    if (folder / COMPARISON).is_file():
        return [path.parent for path in sorted(folder.glob("*/store.sqlite"))]
    return [run.folder for run in runs_of(folder).values()] if holds_radii(folder) else [folder]


def refuse_other_model(first: ComparedRun, other: ComparedRun) -> None:
    """The same bytes, or the deployed model that the network of the first run was made of."""
    own, its = model_of(first), model_of(other)
    deployed = (path for path in first.run.deployed.rglob("*") if path.is_file())
    if own != its and its not in map(sha256, deployed):
        raise BadInput(
            f"{other.run.folder}: a run of another model than {first.run.folder}; `swapproof compare` is for these"
        )


def model_of(run: ComparedRun) -> str:
    with Store.open(run.run.store, readonly=True) as store, intact(store.path):
        return str(json.loads(store.facts()["model"])[0])


def taken_of(run: ComparedRun) -> dict[str, Any]:
    summary = json.loads(run.run.summary.read_bytes())
    return {
        "kind": run.kind,
        "name": run.name,
        "number": len(run.texts),
        "results": sha256(run.run.results),
        **TAKEN[run.kind](run, summary),
    }


def of_attack(run: ComparedRun, summary: Taken) -> dict[str, Any]:
    """`texts`: the swaps that broke each text, 0 of one that is answered wrongly, none where it was not broken."""
    high = {str(id): line["min_swaps"]["high"] for id, line in run.lines.items()}
    return {"method": str(run.question.get("method", run.name)), "texts": high}


def of_pr(run: ComparedRun, summary: Taken) -> dict[str, Any]:
    found = {str(id): line["robust_fraction"] for id, line in run.lines.items()}
    return {
        "radius": run.question["radius"],
        "definition": summary["definition"],
        "mean": summary["robust_fraction"],
        "confidence": summary["confidence"],
        "texts": {id: None if one is None else [one["low"], one["high"]] for id, one in found.items()},
    }


def of_kappa(run: ComparedRun, summary: Taken) -> dict[str, Any]:
    keys = (
        "word", "low", "high", "accuracy_against_it", "texts_without_it", "accuracy_without_it",
        "accuracy_with_it_put_in",
    )  # fmt: skip
    words = [{key: one[key] for key in keys} for one in summary["highest_kappa"][:WORDS]]
    return {"rho": summary["rho"], "definition": summary["definition"], "accuracy": summary["accuracy"], "words": words}


def of_radius(run: ComparedRun, summary: Taken) -> dict[str, Any]:
    """`texts`: the radius of each, and its words with a shade by rank, the most salient darkest."""
    found = {}
    for id, line in run.lines.items():
        words = () if "sets" in line else line.get("words", ())
        said = " ".join(one["word"] for one in words)
        found[str(id)] = [line["safe_radius"]["low"], line["safe_radius"]["high"], said, [*shades(words)]]
    norm, units = (str(run.question.get(name)) for name in ("norm", "units"))
    return {"norm": norm, "units": units, "definition": summary["definition"], "mean": summary["safe_radius"],
            "texts": found}  # fmt: skip


TAKEN: Mapping[str, Callable[[ComparedRun, Taken], dict[str, Any]]] = {
    "attack": of_attack,
    "pr": of_pr,
    "kappa": of_kappa,
    "msr": of_radius,
}
"""By what a run measured: what of it is shown beside a run of `certify`."""
