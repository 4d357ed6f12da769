"""A line of results.jsonl: what is claimed of one text, in words a reader of the text understands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swapproof.proofs.writing.certificate import Count, decimal

from ..interval import Interval
from ..ladder.text_verdict import Step, Verdict
from ..tasks.inputs import Text


def result(
    text: Text,
    verdict: Verdict,
    certificate: str | None,
    witness_levels: tuple[str, ...],
    count: Count | None = None,
) -> dict[str, Any]:
    """The line of a text whose verdict is known; `certificate` is the path of its certificate inside the run folder,
    `witness_levels` are the levels of truth at which its witness was found to hold, `count` what is known beyond the
    low end.

    An unbreakable text has low = words + 1 whatever the number of words that can be swapped, and no high.
    """
    interval = verdict.interval
    words = len(text.encoded.words)
    low, high = interval.low, interval.high
    if verdict.status == "unbreakable":
        low, high = words + 1, None
    line = opening(text, verdict.predicted)
    line |= {
        "min_swaps": {"low": low, "high": high},
        "status": verdict.status,
        "level": level_of(verdict, witness_levels),
        "witness": witness_of(text, interval, witness_levels),
        "certificate": certificate,
        "engine": verdict.engine,
        "seconds": round(verdict.seconds, 4),
        "evaluations": verdict.evaluations,
        "requests": verdict.requests,
    }
    if verdict.history:
        line["history"] = [told(step, interval, low) for step in verdict.history]
    if verdict.reason is not None:
        line["reason"] = verdict.reason
    if (rounding := decided_by_rounding(text, verdict)) is not None:
        line["rounding"] = rounding
    if count is not None:
        line["covered"] = covered(count.swaps, decimal(count.robust), decimal(count.total), count.level)
    if verdict.claims:
        line["claims"] = [asdict(claim) for claim in verdict.claims]
    if verdict.contradiction is not None:
        line["contradiction"] = verdict.contradiction
    if verdict.dispute is not None:
        line["dispute"] = dict(verdict.dispute)
    return line


def told(step: Step, interval: Interval, low: int) -> dict[str, Any]:
    """What an engine made of the interval, never more than what is claimed in the end (`low` as the line has it)."""
    found = low if step.low >= interval.low else step.low
    return {"engine": step.engine, "low": found, "high": step.high, "seconds": round(step.seconds, 4)}


def covered(swaps: int, robust: str, total: str, level: str) -> dict[str, Any]:
    """Of `total` sentences with at most so many swaps, `robust` are proved to keep the class; the others are open."""
    return {"swaps": swaps, "robust": robust, "total": total, "level": level}


def lost(text: Text, reason: str, seconds: float) -> dict[str, Any]:
    """The line of a text whose process died: nothing is known of it."""
    return opening(text, None) | {
        "min_swaps": {"low": 0, "high": None},
        "status": "open",
        "level": "float32",
        "witness": None,
        "certificate": None,
        "engine": None,
        "seconds": round(seconds, 4),
        "evaluations": 0,
        "requests": 0,
        "reason": reason,
    }


def opening(text: Text, predicted: int | None) -> dict[str, Any]:
    """`positions`: words the model reads; `candidates`: single swaps; `cut`: words it does not read; `unknown`: words
    it reads as unknown."""
    return {
        "id": text.id,
        "text": text.encoded.text,
        "label": text.label,
        "predicted": predicted,
        "positions": len(text.encoded.words),
        "candidates": text.frozen.space.candidates,
        "cut": text.encoded.cut,
        "unknown": len(text.encoded.unknown),
    }


def level_of(verdict: Verdict, witness_levels: tuple[str, ...]) -> str:
    """The strongest level of truth the low end is proved at; of a text already wrong, that of the wrong answer."""
    if verdict.status == "already_wrong":
        return strongest(witness_levels)
    return verdict.level


def strongest(levels: Sequence[str]) -> str:
    return next((level for level in ("float32", "kernel", "real") if level in levels), "replay")


def witness_of(text: Text, interval: Interval, levels: tuple[str, ...]) -> dict[str, Any] | None:
    """The swaps of the best witness by word, and the text as the reader would then see it."""
    witness = interval.high_evidence
    if witness is None:
        return None
    swaps, sentence = spelt_out(text, witness.swaps)
    return {"swaps": swaps, "sentence": sentence, "levels": levels or ("replay",)}


def decided_by_rounding(text: Text, verdict: Verdict) -> str | None:
    """What was met of a sentence with fewer swaps than the witness.

    Below an end that is proved for every rounding it is none that a batch turns a sentence: remarks of the run tell.
    """
    divided, interval = verdict.divided, verdict.interval
    if divided is None or verdict.status == "ambiguous" or len(divided.swaps) < interval.low_float32:
        return None
    if interval.high is not None and len(divided.swaps) >= interval.high:
        return None
    return f"{divided.said}: {spelt_out(text, divided.swaps)[1]}"


def spelt_out(text: Text, changed: Iterable[tuple[int, int]]) -> tuple[list[dict[str, Any]], str]:
    """Swaps of tokens by word, and the text with them."""
    word_at = {first: word for word, (first, _) in enumerate(text.encoded.places)}
    swaps = []
    for position, token in changed:
        word = word_at[position]
        choices = text.frozen.space.choices[position]
        spelt = text.frozen.words[word]
        characters = list(text.encoded.spans[word])
        to = spelt[choices.index(token)]
        swaps.append({"position": word, "from": spelt[0], "to": to, "characters": characters})
    return swaps, "".join(piece.after for piece in pieces(text.encoded.text, swaps))


@dataclass(frozen=True)
class Piece:
    """A stretch of a text before and after the swaps; the same when nothing was swapped in it."""

    before: str
    after: str

    @property
    def swapped(self) -> bool:
        return self.before != self.after


def pieces(text: str, swaps: Iterable[Mapping[str, Any]]) -> Iterator[Piece]:
    """The text cut at its swaps, whose `characters` say where they stand; everything else is untouched."""
    at = 0
    for swap in sorted(swaps, key=lambda swap: int(swap["position"])):
        start, end = swap["characters"]
        yield Piece(text[at:start], text[at:start])
        yield Piece(text[start:end], swap["to"])
        at = end
    yield Piece(text[at:], text[at:])


def written(line: dict[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(line, ensure_ascii=False)
