"""What several runs say of one network and one text must fit together, whichever commands they are of.

Certify, attacks and PR: no low end stands above a high end, of spaces that hold the broken sentence.
Clean accuracy: one answer a text. kappa: one rho for the same texts, and no estimate by EUBA below it.
Radii: a proved ball of several words is no larger than the least high end of the words in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .paper_plan import json_in, lines_in, rows_in

SLACK = 1e-6
"""Of shares and radii that were rounded when they were written."""


@dataclass(frozen=True)
class Run:
    name: str
    model: str
    texts: str
    question: Mapping[str, Any]
    summary: Mapping[str, Any]
    lines: Mapping[str, Mapping[str, Any]]
    """By text."""
    choices: Mapping[str, Sequence[Sequence[str]]]


@dataclass
class Compared:
    texts: int = 0
    """That two runs or more of one network spoke of."""
    disagreements: list[str] = field(default_factory=list)


def compared(runs: Sequence[Path], home: Path) -> Compared:
    found = Compared()
    networks: dict[str, list[Run]] = {}
    for path in runs:
        run = opened(path, home)
        if run is not None:
            networks.setdefault(run.model, []).append(run)
    for own in networks.values():
        for text in dict.fromkeys(text for run in own for text in run.lines):
            speaking = [run for run in own if text in run.lines]
            found.texts += len(speaking) > 1
            found.disagreements += text_differs(text, speaking)
        found.disagreements += rho_differs(own)
    return found


def opened(path: Path, home: Path) -> Run | None:
    """None of a run without a network, such as a smoothed one, and of one that is unfinished."""
    manifest = json_in(path / "manifest.json") or {}
    model = manifest.get("sha256", {}).get("model")
    if model is None or "smoothed" in manifest.get("made_from", {}).get("model", {}):
        return None
    lines, spaces = lines_in(path), rows_in(path / "spaces.jsonl")
    texts = {one["id"]: str(one["text"]) for one in lines if "text" in one}
    return Run(
        path.relative_to(home).as_posix(),
        str(model),
        str(manifest["sha256"].get("texts")),
        manifest.get("settings", {}).get("question", {}),
        json_in(path / "summary.json") or {},
        {texts[one["id"]]: one for one in lines if one["id"] in texts},
        {texts[one["id"]]: one["choices"] for one in spaces if one["id"] in texts},
    )


def text_differs(text: str, runs: Sequence[Run]) -> Iterator[str]:
    """Each disagreement about one text."""
    said = f'"{text[:60]}"'
    answers = {run.lines[text]["predicted"]: run.name for run in runs if run.lines[text].get("predicted") is not None}
    if len(answers) > 1:
        yield f"{said} has one answer in {' and another in '.join(answers.values())}"
    lows = [(run, low) for run in runs if (low := end(run, text, "low")) is not None]
    highs = [(run, high) for run in runs if (high := end(run, text, "high")) is not None]
    for low_run, low in lows:
        for high_run, high in highs:
            if low > high and within(high_run.choices.get(text), low_run.choices.get(text)):
                yield f"{said} withstands {low - 1} swaps by {low_run.name}, and {high} break it by {high_run.name}"
    yield from fraction_differs(said, text, runs, lows, highs)
    yield from radius_differs(said, text, runs)


def end(run: Run, text: str, which: str) -> int | None:
    found = (run.lines[text].get("min_swaps") or {}).get(which)
    return None if found is None else int(found)


def within(inner: Sequence[Sequence[str]] | None, outer: Sequence[Sequence[str]] | None) -> bool:
    """Whether every sentence of the one space is one of the other."""
    if inner is None or outer is None or len(inner) != len(outer):
        return False
    return all(set(some) <= set(more) for some, more in zip(inner, outer, strict=True))


def fraction_differs(
    said: str, text: str, runs: Sequence[Run], lows: Sequence[tuple[Run, int]], highs: Sequence[tuple[Run, int]]
) -> Iterator[str]:
    """A share of 1 means that no sentence breaks it; an exact share below 1 that one does."""
    for run in runs:
        fraction, radius = run.lines[text].get("robust_fraction"), run.question.get("radius")
        if not fraction or radius is None or fraction.get("kind") not in ("exact", "deterministic"):
            continue
        own = run.choices.get(text)
        for other, low in lows:
            if low > radius and fraction["high"] < 1 and within(own, other.choices.get(text)):
                yield f"{said} withstands {radius} swaps by {other.name}, and its share is below 1 by {run.name}"
        for other, high in highs:
            if high <= radius and fraction["low"] >= 1 and within(other.choices.get(text), own):
                yield f"{said} is broken with {high} swaps by {other.name}, and its share is 1 by {run.name}"


def radius_differs(said: str, text: str, runs: Sequence[Run]) -> Iterator[str]:
    """Of runs in the same norm and units."""
    measured = [run for run in runs if run.lines[text].get("quantity") == "msr" and "words" in run.question]
    for run in measured:
        for other in measured:
            if any(run.question.get(key) != other.question.get(key) for key in ("norm", "units", "padding")):
                continue
            highs = {word["position"]: word["high"] for word in other.lines[text].get("words") or ()}
            for moved in run.lines[text].get("sets") or ():
                least = [highs[place] for place in moved.get("positions", ()) if highs.get(place) is not None]
                if least and moved["low"] > min(least) + SLACK:
                    yield f"{said}: the ball of several words in {run.name} holds a point of {other.name}"


def rho_differs(runs: Sequence[Run]) -> Iterator[str]:
    """Of one network: the same texts have one rho; EUBA finds some of the flips and never more."""
    known = [run for run in runs if run.summary.get("quantity") == "kappa"]
    for place, run in enumerate(known):
        for other in known[place + 1 :]:
            mine, theirs = run.summary["rho"], other.summary["rho"]
            apart = mine["low"] > theirs["high"] + SLACK or theirs["low"] > mine["high"] + SLACK
            if run.texts == other.texts and apart:
                yield f"rho is {mine['low']} by {run.name} and {theirs['low']} by {other.name}"
        euba = (run.summary.get("euba") or {}).get("rho")
        if euba is not None and euba < run.summary["rho"]["low"] - SLACK:
            yield f"EUBA's rho {euba} is below the exact one in {run.name}"
