"""compare.json: every run by itself, and each beside the first: paired differences, who moved, by class and length."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .paired_means import METHOD as MEAN_METHOD
from .paired_means import mean_difference
from .paired_shares import METHOD as SHARE_METHOD
from .paired_shares import outwards, pairs_of, told
from .same_question import ComparedRun, words_of
from .standings import Moved, Standing, moved, tally

MOST_RADII = 12
LENGTHS = 4
"""Groups of texts by length."""
WORDS_LISTED = 20
MOST_CHANGE = 6
"""Swaps more or fewer beyond which changes are counted together."""
USUAL = 2
"""Swaps at which classes and lengths are compared, where that many change anything."""

COUNTED = {
    "certify": (
        "Texts that keep the right answer under any r swaps (low: certified, high: not known to be broken) / all texts"
    ),
    "attack": "Texts answered rightly that this attack did not break with r swaps / all texts; 0 swaps: accuracy",
}
AVERAGED = {
    "certify": "Mean of min_swaps over the texts that both answer rightly and that some number of swaps breaks in both",
    "attack": "Mean number of swaps over the texts that the attack breaks in both runs",
    "pr": "Mean share of sentences that keep their label (PR), over the texts that both answer rightly",
    "msr": "Mean safe radius over the texts that both answer rightly and whose class is known to change in both",
    "kappa": "Rho over the texts that both answer rightly: 1 less the mean share of words that flip a text",
}
MOVED = (
    "Better and worse: the whole interval lies above, or below, that of the first run (an answer that was right and is "
    "wrong is worse); not settled: the intervals overlap"
)
Standings = Sequence[Standing]


def findings(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """Everything that a comparison says, of texts by number only."""
    first, kind = runs[0], runs[0].kind
    standings = [[run.standing(id) for id in range(len(first.texts))] for run in runs]
    radii = list(chosen_radii(standings)) if kind in COUNTED else []
    at = USUAL if USUAL in radii else max(radii, default=0)
    found: dict[str, Any] = {
        "kind": kind,
        "texts": len(first.texts),
        "labels": list(first.labels),
        "radius": first.question.get("radius"),
        "radii": radii,
        "grouped_at": at if kind in COUNTED else None,
        "runs": [alone(run, own, radii) for run, own in zip(runs, standings, strict=True)],
        "against_the_first": [
            beside(runs[0], run, standings[0], own, radii, at) for run, own in zip(runs[1:], standings[1:], strict=True)
        ],
        "definitions": {
            **({"shares": COUNTED[kind], "shares_method": SHARE_METHOD} if kind in COUNTED else {}),
            "mean": AVERAGED[kind],
            "mean_method": MEAN_METHOD,
            "moved": MOVED,
        },
    }
    for one in found["against_the_first"]:
        one["sentence"] = sentence(found, one)
    return found


def chosen_radii(standings: Sequence[Standings]) -> Iterator[int]:
    """0, and the radii at which a share changes, the first of them."""
    ends = {end for one in standings for text in one for end in (text.low, text.high) if 0 < end < math.inf}
    yield 0
    yield from sorted({int(end) for end in ends} | {1})[:MOST_RADII]


def alone(run: ComparedRun, own: Standings, radii: Iterable[int]) -> dict[str, Any]:
    total = len(own)
    shares = {}
    for radius in radii:
        kept = [text.keeps(radius) for text in own]
        low, most = kept.count(True), total - kept.count(False)
        shares[str(radius)] = outwards(Fraction(low, total), Fraction(most, total))
    wrong = sum(text.wrong or text.high == 0 for text in own)
    return {
        "name": run.name,
        "folder": str(run.run.folder),
        "model": run.model,
        "question": dict(run.question),
        "vacuous": list(run.vacuous),
        "already_wrong": wrong,
        "accuracy": round((total - wrong) / total, 6),
        "shares": shares,
        **({"radii": radii_of(run)} if run.kind == "msr" else {}),
    }


def radii_of(run: ComparedRun) -> dict[str, Any]:
    """What a run of safe radii says of all words, and by position."""
    summary = json.loads(run.run.summary.read_bytes())
    names = ("dimensions", "diameter", "sets", "set_radius", "normalised", "safe_radius", "by_position")
    return {name: summary.get(name) for name in names}


def beside(
    first: ComparedRun, other: ComparedRun, before: Standings, after: Standings, radii: Iterable[int], at: int
) -> dict[str, Any]:
    """The other run less the first."""
    moves = [moved(one, own) for one, own in zip(before, after, strict=True)]
    found: dict[str, Any] = {
        "first": first.name,
        "other": other.name,
        "moved": tally(moves),
        "shares": [
            {"radius": radius, **told(pairs_of(zip(kept(before, radius), kept(after, radius), strict=True)))}
            for radius in radii
        ],
        "mean": averaged(first.kind, before, after),
        "worse": worse(before, after, moves),
        "better": [id for id, how in enumerate(moves) if how == "better"],
    }
    lengths = [words_in(first, id) for id in range(len(before))]
    classes = [first.labels.index(text["label"]) for text in first.texts]
    groups = [(name, [id for id, one in enumerate(classes) if one == place]) for place, name in enumerate(first.labels)]
    found["by_class"] = [group(name, ids, first.kind, before, after, at) for name, ids in groups if ids]
    found["by_length"] = [group(name, ids, first.kind, before, after, at) for name, ids in by_length(lengths)]
    if first.kind in COUNTED:
        found["changes"] = changes(before, after)
    if first.kind == "kappa":
        found["words"] = changed_words(words_of(first), words_of(other))
    return found


def changes(before: Standings, after: Standings) -> list[tuple[str, int]]:
    """Of the texts whose minimum is known in both runs: swaps more than before -> texts."""
    counts = Counter(
        int(own.low - one.low)
        for one, own in zip(before, after, strict=True)
        if one.exact and own.exact and not one.wrong and not own.wrong and max(one.low, own.low) < math.inf
    )
    reach = min(MOST_CHANGE, max(map(abs, counts), default=0))
    found = Counter(dict.fromkeys(range(-reach, reach + 1), 0))
    for change, number in counts.items():
        found[max(-reach, min(reach, change))] += number
    names = {-MOST_CHANGE: f"{-MOST_CHANGE} or less", MOST_CHANGE: f"{MOST_CHANGE} or more"}
    return [(names.get(change, f"{change:+d}" if change else "0"), found[change]) for change in sorted(found)]


def kept(standings: Standings, radius: int) -> list[bool | None]:
    return [text.keeps(radius) for text in standings]


def averaged(kind: str, before: Standings, after: Standings) -> dict[str, Any]:
    """Over the texts that have a number in both; the others are counted."""
    both = [
        (one, own)
        for one, own in zip(before, after, strict=True)
        if not one.wrong and not own.wrong and one.high < math.inf and own.high < math.inf
    ]
    found = mean_difference([(one.low, one.high) for one, _ in both], [(own.low, own.high) for _, own in both])
    return {**found, "left_out": len(before) - len(both)}


def worse(before: Standings, after: Standings, moves: Sequence[Moved]) -> list[int]:
    """Texts that got worse, those that lost most first."""
    found = [id for id, how in enumerate(moves) if how == "worse"]

    def loss(id: int) -> tuple[float, int]:
        lost = before[id].low - after[id].high
        return (-lost if math.isfinite(lost) else -1e9 + after[id].high, id)

    return sorted(found, key=loss)


def words_in(run: ComparedRun, id: int) -> int:
    line = run.lines.get(id)
    return len(run.texts[id]["text"].split()) if line is None else int(line["positions"])


def by_length(lengths: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Groups of about as many texts each; texts of one length stay together."""
    ordered = sorted(range(len(lengths)), key=lambda id: (lengths[id], id))
    borders = sorted(
        {lengths[ordered[min(len(ordered) - 1, len(ordered) * (k + 1) // LENGTHS)]] for k in range(LENGTHS)}
    )
    least = lengths[ordered[0]]
    for border in borders:
        ids = [id for id in ordered if least <= lengths[id] <= border]
        if ids:
            yield (f"{least} to {border} words" if least < border else f"{border} words"), sorted(ids)
        least = border + 1


def group(name: str, ids: Sequence[int], kind: str, before: Standings, after: Standings, at: int) -> dict[str, Any]:
    one, own = [before[id] for id in ids], [after[id] for id in ids]
    found: dict[str, Any] = {
        "name": name,
        "texts": len(ids),
        "moved": tally(moved(*both) for both in zip(one, own, strict=True)),
        "mean": averaged(kind, one, own),
    }
    if kind in COUNTED:
        found["share"] = {
            "first": ends_at(one, at),
            "other": ends_at(own, at),
            **told(pairs_of(zip(kept(one, at), kept(own, at), strict=True))),
        }
    return found


def ends_at(standings: Standings, radius: int) -> dict[str, float]:
    found, total = kept(standings, radius), len(standings)
    return outwards(Fraction(found.count(True), total), Fraction(total - found.count(False), total))


def changed_words(
    before: Mapping[str, tuple[float, float]], after: Mapping[str, tuple[float, float]]
) -> dict[str, list[dict[str, Any]]]:
    """The words whose kappa surely rose or fell most."""
    gaps = {word: (after[word][0] - high, after[word][1] - low) for word, (low, high) in before.items()}

    def listed(key: Callable[[tuple[float, float]], float]) -> list[dict[str, Any]]:
        order = sorted((word for word in gaps if key(gaps[word]) > 0), key=lambda word: (-key(gaps[word]), word))
        return [
            {"word": word, "first": list(before[word]), "other": list(after[word])} for word in order[:WORDS_LISTED]
        ]

    return {"worse": listed(lambda gap: gap[0]), "better": listed(lambda gap: -gap[1])}


def sentence(found: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """What is claimed of a pair of runs, rounded to the safe side."""
    moves = one["moved"]
    rest = f"{moves['better']:,} texts got better, {moves['worse']:,} worse, {moves['not_settled']:,} are not settled"
    if found["kind"] in COUNTED:
        part = next(share for share in one["shares"] if share["radius"] == found["grouped_at"])
        swaps = "as the texts stand" if not part["radius"] else f"under {swapped(part['radius'], found['kind'])}"
        what, unit, scale, digits = f"texts kept right {swaps}", "percentage points", 100.0, 1
    else:
        part, what, unit, scale, digits = one["mean"], "the mean share", "", 1.0, 4
        what = {"pr": "mean PR", "kappa": "rho", "msr": "mean safe radius"}[found["kind"]]
    if part["interval"] is None:
        return f"{one['other']} against {one['first']}: {what} cannot be compared on so few texts; {rest}"
    low, high = rounded(part["difference"], scale, digits)
    least, most = rounded(part["interval"], scale, digits)
    told_as = low if low == high else f"{low} to {high}"
    unit = f" {unit}" if unit else ""
    more, fewer = ("more", "fewer") if unit else ("greater", "smaller")
    sure = f"{more} {what}, by" if part["interval"]["low"] > 0 else f"{fewer} {what}, by"
    if part["interval"]["low"] <= 0 <= part["interval"]["high"]:
        sure = f"no sure difference of {what}:"
    return (
        f"{one['other']} against {one['first']}: {sure} {told_as}{unit} (95 % interval {least} to {most}{unit}); {rest}"
    )


def swapped(radius: int, kind: str) -> str:
    number = "1 swap" if radius == 1 else f"{radius} swaps"
    return f"any {number}" if kind == "certify" else f"the attack with {number}"


def rounded(ends: Mapping[str, float], scale: float, digits: int) -> tuple[str, str]:
    power = 10**digits
    low, high = (
        math.floor(round(ends["low"] * scale * power, 6)) / power,
        math.ceil(round(ends["high"] * scale * power, 6)) / power,
    )
    if ends["low"] == ends["high"]:
        high = low = round(ends["low"] * scale, digits)
    return f"{low + 0.0:+.{digits}f}", f"{high + 0.0:+.{digits}f}"
