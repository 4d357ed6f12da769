"""Several attacks on the same texts: who breaks more, with fewer swaps, and how far each is from the exact minimum."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ..runs.run_folder import existing
from .attack_summary import mean, share

COMPARISON = "comparison.json"
Lines = Sequence[Mapping[str, Any]]
DEFINITION = (
    "#Succ: texts broken. #Win: texts that some attack breaks, where this one has the fewest swaps (ties count for "
    "each). %S: mean share of words swapped, over broken texts. Requests and seconds are sums"
)
AGAINST_EXACT = (
    ". Breakable: texts that swaps break, with a known exact minimum. Missed: share of these not broken; at the "
    "minimum: share of these broken with no swap more. Of those broken, mean ratio: mean of swaps over the exact "
    "minimum; ratio of means: all their swaps over all their minima"
)


def lines_in(folder: Path) -> list[dict[str, Any]]:
    """results.jsonl of a run."""
    path = existing(folder).results
    try:
        with path.open(encoding="utf-8") as file:  # not splitlines: texts hold line separators of Unicode
            return [json.loads(line) for line in file]
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error})") from None


def choices_in(folder: Path) -> dict[int, Any]:
    """Of the texts of a run, by number: the choices of every word, as spaces.jsonl has them."""
    path = existing(folder).spaces
    try:
        with path.open(encoding="utf-8") as file:
            return {one["id"]: one["choices"] for one in map(json.loads, file)}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadInput(f"{path}: cannot be read ({error})") from None


def exact_minima(exact: Path, attacked: Path) -> dict[int, int | None]:
    """Of the texts whose minimum a run of `certify` knows: their least number of swaps, None where nothing breaks them.

    Raises BadInput where it has other texts or swaps than this run of `attack`.
    """
    known: dict[int, int | None] = {}
    there, own = choices_in(exact), choices_in(attacked)
    lines = {line["id"]: line for line in lines_in(exact)}
    for line in lines_in(attacked):
        other = lines.get(line["id"])
        if other is None:
            continue
        same = all(other.get(name) == line[name] for name in ("text", "label", "positions"))
        if not same or there.get(line["id"]) != own.get(line["id"]):
            raise BadInput(f"--exact {exact}: text {line['id']} there is another one, or has other swaps")
        if other["status"] == "exact" and "min_swaps" in other:  # a radius, or a share, may be exact too
            known[line["id"]] = other["min_swaps"]["high"]
        elif other["status"] == "unbreakable":
            known[line["id"]] = None
    if not known:
        raise BadInput(f"--exact {exact}: knows the exact minimum of none of these texts; give a run of certify")
    return known


def compared(runs: Mapping[str, Lines], exact: Mapping[int, int | None]) -> dict[str, Any]:
    """`runs`: the lines of each attack, by its name; of the same texts."""
    highs = {name: {line["id"]: swaps_of(line) for line in lines} for name, lines in runs.items()}
    best: dict[int, int] = {}
    for found in highs.values():
        for id, high in found.items():
            if high is not None:
                best[id] = min(high, best.get(id, high))
    for id, high in best.items():
        least = exact.get(id, 0)
        if least is None or high < least:
            raise BadInput(f"text {id}: {high} swaps break it, and the exact run says {least}: not of the same model")
    rows = []
    for name, lines in runs.items():
        broken = [line for line in lines if swaps_of(line) is not None]
        row = {
            "method": name,
            "succ": len(broken),
            "win": sum(swaps_of(line) == best[line["id"]] for line in broken),
            "swaps": mean([line["min_swaps"]["high"] for line in broken]),
            "swapped_share": mean([line["min_swaps"]["high"] / line["positions"] for line in broken]),
            "requests": sum(line["requests"] for line in lines),
            "evaluations": None
            if any(line["evaluations"] is None for line in lines)
            else sum(line["evaluations"] for line in lines),
            "seconds": round(sum(line["seconds"] for line in lines), 3),
        }
        if exact:
            row["overshoot"] = overshoot(highs[name], exact)
        rows.append(row)
    definition = DEFINITION + (AGAINST_EXACT if exact else "")
    return {"methods": rows, "texts": len(next(iter(runs.values()))), "breakable": len(best), "definition": definition}


def swaps_of(line: Mapping[str, Any]) -> int | None:
    """Of a text that an attack broke."""
    return None if line["status"] == "already_wrong" else line["min_swaps"]["high"]


def overshoot(highs: Mapping[int, int | None], exact: Mapping[int, int | None]) -> dict[str, Any]:
    breakable = {id: least for id, least in exact.items() if least is not None and id in highs}
    pairs = [(high, least) for id, least in breakable.items() if (high := highs[id]) is not None]
    return {
        "breakable": len(breakable),
        "mean_ratio": mean([high / least for high, least in pairs]),
        "ratio_of_means": mean([sum(high for high, _ in pairs) / sum(least for _, least in pairs)]) if pairs else None,
        "mean_excess": mean([high - least for high, least in pairs]),
        "at_minimum": share(sum(high == least for high, least in pairs), len(breakable)),
        "missed": share(len(breakable) - len(pairs), len(breakable)),
    }
