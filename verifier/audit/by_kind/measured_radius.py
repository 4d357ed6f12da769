"""The audit of a run of `measure --quantity msr`: balls checked again, points and words replayed, numbers compared."""

from __future__ import annotations

import json
import math
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.encodings.network import Floats
from swapproof.models.deployed.passing_folder import PassingFolder
from swapproof.proofs import check, check_ball
from swapproof.proofs.onnx_file import Refused, Unusable

from ...radius.ends.high_ends import HighEnds
from ...radius.ends.moving_words import GAP
from ...radius.ends.text_place import TextPlace, upwards
from ...radius.ends.told_radius import effects_of
from ...radius.moving_ball import Ball
from ...radius.proved_balls import runs
from ...radius.radius_setting import RadiusQuestion, RadiusSetting
from ...radius.radius_summary import summarise_radii
from ...radius.radius_work import STAGE
from ...radius.saliency import agreement
from ...runs.run_folder import Run, existing, sha256
from ...runs.store import ILL_FORMED, intact
from ...tasks.inputs import Text
from ...tasks.task import read_task
from ..findings import Audit, Fault, Finding, said_of_unsettled
from ..line_claims import INTERVAL, OF_A_TEXT, Known, additions
from ..run_accounts import compared, files_differ, names_that_differ, page_differs
from ..run_items import read_lines, without_line
from ..text_rules import described, expect

CLOSE = 1e-5
"""Of effects, which another machine may add up in another order."""
PART: Known = {
    **dict.fromkeys(("position", "word", "positions", "words", "low", "high", "exact", "any_word", "same_vector")),
    "point": dict.fromkeys(("distance", "vector")),
    "swap": dict.fromkeys(("to", "distance")),
    "swap_alike": dict.fromkeys(("to", "distance")),
    "sentence": {"distance": None, "swaps": dict.fromkeys(("position", "to"))},
    "saliency": dict.fromkeys(("leave_one_out", "single_swap", "lime")),
}
OF_RADII: Known = OF_A_TEXT | {
    **dict.fromkeys(
        (
            "quantity",
            "norm",
            "units",
            "padding",
            "saliency",
            "lime",
            "moving",
            "diameter",
            "dimensions",
            "same_part_of_speech",
        )
    ),
    "agreement": dict.fromkeys(("radius", "lime"), dict.fromkeys(("leave_one_out", "single_swap"))),
    "safe_radius": INTERVAL,
    "words": PART,
    "sets": PART,
}


def audit_radii(folder: Path, question: Mapping[str, Any]) -> Audit:
    """What is not repeated: the search for larger balls and nearer points."""
    run = existing(folder)
    with intact(run.store):
        asked = RadiusQuestion.of(question)
    lines = read_lines(run)
    missing = without_line(run, lines)
    said = said_of_unsettled(missing, len(lines) + missing)
    return Audit("radius", len(lines), findings(run, asked, lines), said, unsettled=missing)


def findings(run: Run, asked: RadiusQuestion, lines: Mapping[int, dict[str, Any]]) -> Iterator[Finding | Fault]:
    with PassingFolder() as folder:
        setting = RadiusSetting.of(read_task(run.task), folder, every_word=True)
        texts = {text.id: text for text in setting.inputs.texts}
        again = Again(run, setting, asked, setting.widths(asked.units), setting.diameter(asked.norm, asked.units))
        for id in sorted(lines):
            has = run.certificate(id).exists()
            try:
                expect(id in texts, "is of no text of this run", "line")
                yield Finding(id, has, again.checked(lines[id], texts[id]), None)
            except (Refused, Unusable) as refusal:
                yield Finding(id, has, "", str(refusal))
            except (BadInput, *ILL_FORMED) as error:
                yield Finding(id, has, "", f"the line cannot be understood: {type(error).__name__}: {error}")
        yield from map(Fault, again.differences(lines))


@dataclass(frozen=True, eq=False)
class Again:
    """The run's own files, and what is computed of them anew."""

    run: Run
    setting: RadiusSetting
    asked: RadiusQuestion
    widths: Floats
    diameter: float

    def checked(self, line: Mapping[str, Any], text: Text) -> str:
        """What is to be said of a line that claims no more than its evidence; raises Refused."""
        for fault in additions(line, OF_RADII):
            raise Refused(f"the line {fault}")
        described(line, text)
        name = f"certificates/{text.id:06d}.json"
        has = self.run.certificate(text.id).exists()
        expect(line["certificate"] == (name if has else None), "names another certificate than there is", "line")
        if line["status"] == "lost":
            expect(line["safe_radius"] == {"low": 0.0, "high": None}, "of a lost text claims something", "line")
            return "was not measured"
        asked = self.asked.fact()
        asked["moving"] = asked.pop("words")
        expect(all(line[key] == value for key, value in asked.items()), "asks otherwise", "line")
        expect(line["diameter"] == self.diameter, f"says a diameter of {line['diameter']}, not {self.diameter}", "line")
        expect(line["dimensions"] == self.setting.vectors.shape[1], "says other dimensions", "line")
        at = TextPlace(self.setting, self.asked, text, self.widths, self.diameter, math.inf)
        expect(line["predicted"] == at.predicted, f"says another answer than {at.predicted}", "line")
        if at.predicted != text.label:
            plain = line["safe_radius"] == {"low": 0.0, "high": 0.0} and line["status"] == "already_wrong" and not has
            expect(plain, "claims a radius of a text that is answered wrongly", "line")
            return "is answered wrongly, radius 0"
        expect(
            line["level"] == "real" and "contradiction" not in line,
            "claims another level, or contradicts itself",
            "line",
        )
        proved = self.proved(text, at)
        parts = line["words" if self.asked.words == "one" else "sets"]
        self.complete([self.words_of(part) for part in parts], at)
        for part in parts:
            self.check_part(part, at, proved)
        if self.asked.saliency:
            expect(line["agreement"] == agreement(parts), "has other rank correlations than its words", "line")
        else:
            expect("agreement" not in line, "speaks of an agreement that was not asked for", "line")
        low = min(part["low"] for part in parts)
        highs = [part["high"] for part in parts if part["high"] is not None]
        high = min(highs, default=None)
        expect(line["safe_radius"] == {"low": low, "high": high}, "has another radius than its words", "line")
        exact = high is not None and low >= (1 - GAP) * high
        expect(line["status"] == ("exact" if exact else "open"), "has another status than its ends", "line")
        many = f"{len(proved)} ball{'s' * (len(proved) != 1)}"
        return f"radius {low:.6g} to {'-' if high is None else format(high, '.6g')}, {many} accepted"

    def words_of(self, part: Mapping[str, Any]) -> tuple[int, ...]:
        return (part["position"],) if self.asked.words == "one" else tuple(part["positions"])

    def complete(self, sets: Sequence[tuple[int, ...]], at: TextPlace) -> None:
        """The sets are those that the question is about."""
        every = len(at.places)
        flat = [word for words in sets for word in words]
        if self.asked.words == "one":
            fits = flat == list(range(every))
        else:
            number = every if self.asked.words == "all" else min(every, int(self.asked.words))
            fits = len(sets) == 1 and len(flat) == number and flat == sorted(set(flat)) and max(flat) < every
        expect(fits, "speaks of other sets of words than are asked about", "line")

    def proved(self, text: Text, at: TextPlace) -> dict[tuple[tuple[int, int], ...], float]:
        """The radius of each set of inputs that an accepted certificate speaks of."""
        path = self.run.certificate(text.id)
        if not path.exists():
            return {}
        claim = check_ball.read_certificate(check.read_file(path, check.MAX_CERTIFICATE))
        top, behind = claim.top, at.room.behind
        expect(top["model"]["file"] == behind.model.path.name, "names another file than its network's")
        expect(top["model"]["sha256"] == behind.sha256, "is not of the network behind the embedding of the run's model")
        center = [float(number) for number in claim.center]
        expect(center == at.exact_center.tolist(), "has another center than the vectors of the text")
        expect([float(w) for w in claim.widths] == self.widths.tolist(), "has other widths than the units asked for")
        rivals = [rival for rival in range(self.setting.labels) if rival != text.label]
        expect((top["label"], top["rivals"]) == (text.label, rivals), "is for another label or other rivals")
        expect(top["norm"] == self.asked.norm, "is of another norm")
        model = check_ball.read_model(behind.model.path.read_bytes())
        check_ball.check_claims(claim, model, time.monotonic() + check.SECONDS)
        found = {tuple(runs(np.array(case.free))): float(case.radius) for case in claim.cases}
        expect(len(found) == len(claim.cases), "speaks of one set of words twice")
        return found

    def check_part(
        self, part: Mapping[str, Any], at: TextPlace, proved: Mapping[tuple[tuple[int, int], ...], float]
    ) -> None:
        words = self.words_of(part)
        names = [part["word"]] if self.asked.words == "one" else part["words"]
        expect(names == [at.name(word) for word in words], "names other words than the text has", "line")
        free = at.free_of(words)
        expect(
            part["low"] == proved.get(tuple(runs(free)), 0.0),
            f"of {names} claims another low end than is proved",
            "line",
        )
        ends = [self.point(part["point"], at, free)] if part["point"] is not None else []
        if "any_word" in part:
            ends += self.words_beside(part, at)
        if "sentence" in part:
            ends.append(self.sentence(part["sentence"], at, words, free))
        high = min(ends, default=None)
        expect(part["high"] == high, f"of {names} has another high end than its evidence", "line")
        expect(high is None or part["low"] <= high, f"of {names} has ends that cross", "line")
        exact = high is not None and part["low"] >= (1 - GAP) * high
        expect(part["exact"] == exact, f"of {names} says otherwise whether it is exact", "line")

    def point(self, point: Mapping[str, Any], at: TextPlace, free: Any) -> float:
        """The distance of a point that still changes the class."""
        data = np.frombuffer(b64decode(point["vector"], validate=True), dtype=at.room.behind.model.kind)
        expect(len(data) == len(free) and bool(np.isfinite(data).all()), "has a point of another size", "line")
        found = upwards(self.ball(at, free).distance(data.astype(np.float64)))
        expect(point["distance"] == found, f"has a point at {found}, not at {point['distance']}", "line")
        expect(at.breaks(free, data.astype(np.float64)), "has a point at which the class stays", "line")
        return found

    def sentence(self, sentence: Mapping[str, Any], at: TextPlace, words: tuple[int, ...], free: Any) -> float:
        """The distance of a sentence of other words that still changes the class."""
        tokens = {name: token for token, name in self.setting.names.items()}
        swaps = {swap["position"]: tokens[swap["to"]] for swap in sentence["swaps"]}
        expect(len(swaps) == len(sentence["swaps"]) and swaps.keys() <= set(words), "swaps other words", "line")
        ordered = sorted(words, key=lambda word: at.places[word])
        rows = [swaps.get(word, at.text.encoded.tokens[at.places[word][0]]) for word in ordered]
        point = np.asarray(self.setting.vectors[rows], dtype=np.float64).reshape(-1)
        found = upwards(self.ball(at, free).distance(point))
        expect(sentence["distance"] == found, f"has a sentence at {found}, not at {sentence['distance']}", "line")
        expect(at.breaks(free, point), "has a sentence at which the class stays", "line")
        return found

    def words_beside(self, part: Mapping[str, Any], at: TextPlace) -> list[float]:
        """Every word at this place again; the distance of the nearest that changes the class, if one does."""
        self.alike(part, at)
        ends = HighEnds(at)
        each = ends.begun(
            (self.words_of(part)), [r for r in range(self.setting.labels) if r != at.text.label], look=False
        )
        ends.look_for_words(each)
        expect(each.found is not None, "speaks of words where there is no single place", "line")
        if each.found is None:
            return []
        low, found = part["low"], each.found
        swap = None
        if found.row is not None:
            to = self.setting.names[int(self.setting.candidates[found.row])]
            swap = {"to": to, "distance": upwards(found.distance)}
        safe = "proved" if low > found.farthest * (1 + 1e-9) else "evaluated" if found.harmless else None
        said = {"swap": swap, "any_word": safe, "same_vector": found.same}
        for key, value in said.items():
            expect(part[key] == value, f"says {key} = {part[key]}, and it is {value}", "line")
        if self.asked.saliency:
            for name, effect in effects_of(at, each).items():
                told = float(part["saliency"][name])
                fits = abs(told - effect) <= CLOSE * (1 + abs(effect))
                expect(fits, f"says {name} = {told}, and it is {effect}", "line")
        else:
            expect("saliency" not in part, "speaks of effects that were not asked for", "line")
        return [] if swap is None else [float(upwards(found.distance))]

    def alike(self, part: Mapping[str, Any], at: TextPlace) -> None:
        """A nearest word of the same part of speech changes the class and is as far as is said; tags are not asked."""
        expect(("swap_alike" in part) == self.asked.same_part_of_speech, "speaks of other words than asked", "line")
        if part.get("swap_alike") is None:
            return
        said, (word,) = part["swap_alike"], self.words_of(part)
        row = {name: token for token, name in self.setting.names.items()}[said["to"]]
        free, point = at.free_of((word,)), np.asarray(self.setting.vectors[row], dtype=np.float64)
        found = upwards(self.ball(at, free).distance(point))
        expect(said["distance"] == found, f"has a word at {found}, not at {said['distance']}", "line")
        fits = at.stands_for(free, {int(free[0]) // len(point): row}) and at.breaks(free, point)
        expect(fits, "has a word at which the class stays", "line")

    def ball(self, at: TextPlace, free: Any) -> Ball:
        widths = np.tile(self.widths, len(free) // len(self.widths))
        return Ball(at.exact_center[free], widths, self.asked.norm, at.text.label, 0)

    def differences(self, lines: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
        """Where the run's other files say another thing."""

        def others(facts: Mapping[str, str]) -> Iterator[str]:
            yield from files_differ(self.run, self.setting.inputs, facts)
            for path in sorted(self.run.folder.glob("behind-*.onnx")):
                own = self.setting.folder / path.name
                if not own.exists() or sha256(own) != sha256(path):
                    yield f"{path.name} is not the network behind the embedding of {self.run.model.name}"
            ordered = [lines[id] for id in sorted(lines)]
            made = summarise_radii(ordered, self.asked, len(self.setting.inputs.texts))
            stated = json.loads(self.run.summary.read_bytes()) if self.run.summary.exists() else made
            for name in names_that_differ(stated, json.loads(json.dumps(made))):
                yield f"summary.json says another {name} than the lines of results.jsonl"
            yield from page_differs(self.run)

        return compared(self.run, STAGE, others)
