"""What is known of one network, read from the files that its commands left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .compared_cell import Asked, Cell, Figures

RADII = ("1", "2", "3")


def figures_of(cell: Cell, asked: Asked) -> Figures:
    certified = summary_in(cell.folder / "certify") if asked.certified else {}
    found: Figures = {"Clean": certified.get("accuracy")}
    for name in asked.attacks:
        attack = summary_in(cell.folder / f"attack-{name}")
        found[f"{name} Aua"] = shared(attack, "aua")
        found[f"{name} Suc"] = shared(attack, "suc")
        found[f"{name} #Query"] = attack.get("requests")
        found["Clean"] = shared(attack, "clean") if found["Clean"] is None else found["Clean"]
    if asked.certified:
        found |= certified_figures(certified)
    for one in asked.radii:
        fraction = summary_in(cell.folder / f"pr-{one}").get("robust_fraction") or {}
        found |= {f"PR@{one} low": fraction.get("low"), f"PR@{one} high": fraction.get("high")}
    if asked.kappa:
        for column, folder in (("rho*", "kappa"), ("rho", "kappa-training")):
            rho = summary_in(cell.folder / folder).get("rho") or {}
            found |= {f"{column} low": rho.get("low"), f"{column} high": rho.get("high")}
    vote = summary_in(cell.folder / "vote")
    if vote:
        found |= {f"vote@{radius}": vote["certified_accuracy"].get(radius, 0.0) for radius in RADII}
        found["released vote claims"] = float(vote["released"]["claims"])
    training = json_in(cell.folder / "model" / "training.json")
    found["train s"] = training.get("seconds")
    return found


def certified_figures(certified: Mapping[str, Any]) -> Figures:
    """Of the summary of `certify`."""
    found: Figures = {}
    mmws = certified.get("mmws") or {}
    shares = certified.get("accuracy_under_attack", {})
    for radius in RADII:
        # Beyond the greatest radius that the summary lists nothing changes any more.
        ends = shares.get(radius) or (shares[max(shares, key=int)] if shares else {})
        found[f"certified@{radius}"] = ends.get("low")
        found[f"unbroken@{radius}"] = ends.get("high")
    found |= {"MMWS low": mmws.get("low"), "MMWS high": mmws.get("high"), "open": number(certified, "open")}
    found["unbreakable"] = number(certified, "unbreakable")
    return found


def vacuous_in(cell: Cell, asked: Asked) -> tuple[str, ...]:
    """Why what is found of it says little: near chance, one class whatever the text, nothing to swap."""
    runs = ["certify"] if asked.certified else [f"attack-{name}" for name in asked.attacks]
    return tuple(dict.fromkeys(said for run in runs for said in summary_in(cell.folder / run).get("vacuous", ())))


def shared(summary: Mapping[str, Any], name: str) -> float | None:
    found = summary.get(name)
    return None if found is None else found["share"]


def number(summary: Mapping[str, Any], name: str) -> float | None:
    found = summary.get(name)
    return None if found is None else float(found)


def summary_in(folder: Path) -> dict[str, Any]:
    return json_in(folder / "summary.json")


def json_in(path: Path) -> dict[str, Any]:
    """{} where there is no such file yet."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return {}
