"""Rules of one measured text: its line counts what its certificate counts."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from swapproof.proofs.onnx_file import Refused

from ..counting.binomial import outwards

COUNTED = ("exact", "deterministic")


def has_sample(line: Mapping[str, Any] | None) -> bool:
    return line is not None and line.get("robust_fraction") is not None and "sample" in line["robust_fraction"]


def counted(line: Mapping[str, Any], part: Mapping[str, Any] | None, radius: int) -> None:
    """Raises Refused when the line and the certificate's count differ."""
    fraction = line["robust_fraction"]
    listed = part is None and "sample" in fraction and fraction["sample"]["stopped"] in ("all", "some")
    if (part is not None or listed) != (line["status"] in COUNTED) or line["status"] != fraction["kind"]:
        raise Refused("the line claims a count that no certificate proves, or the other way round")
    if line["radius"] != radius:
        raise Refused(f"the line is of radius {line['radius']}, the run of {radius}")
    if part is None:
        if fraction.keys() - {"sample"} != {"low", "high", "kind", "total"}:
            raise Refused("the line counts sentences, and no certificate does")
        if "sample" not in fraction and (fraction["low"], fraction["high"]) != (0, 1):
            raise Refused("the line claims a share of which nothing was counted or sampled")
        return
    robust, broken, total = (int(part[name]) for name in ("robust", "broken", "total"))
    stated = [fraction["robust"], fraction["broken"], fraction["total"], radius, line["level"]]
    if stated != [part[name] for name in ("robust", "broken", "total", "swaps", "level")]:
        raise Refused("the line claims another count than the certificate")
    low, high = Fraction(robust, total), 1 - Fraction(broken, total)
    ends = (float(low), float(high)) if low == high else outwards(low, high)
    if (fraction["low"], fraction["high"]) != ends or (line["status"] == "exact") != (low == high):
        raise Refused("the line's fractions are not those of its counts")
    decided = int(fraction["rounding_may_decide"])
    numbers = fraction["open"], fraction["rounding_may_decide"]
    if numbers != (str(total - robust - broken), str(decided)) or not 0 <= decided <= robust + broken:
        raise Refused("the line's numbers of sentences do not add up")
    if part["level"] == "float32" and decided:
        raise Refused("the line says that rounding decides sentences of a count that holds for every rounding")
