"""Certificates screened: what check.py says of them, much sooner, or None when check.py itself has to look.

Everything but the tree of `lower` and the margin of `upper` is judged by check.py here too: it is handed the
certificate without them. So hashes, binding, choices and limits of the model are as it sees them.
"""

from __future__ import annotations

import base64
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.agreement import agree
from swapproof.encodings.errors import BadInput, Disagreement, Unsupported
from swapproof.encodings.exact import exact_logits
from swapproof.encodings.query import Query
from swapproof.encodings.reading import Model, network_of
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.certificate import space_digest
from swapproof.proofs.check import Model as CheckedModel
from swapproof.proofs.check import Refused, Unusable, Verdict, check_certificate

from .coverage import Covered, covered
from .screen import Text
from .unsure import Unsure
from .witness import breaks

MOST_SWAPS = 1_000_000
NETWORKS = 4
"""Lengths whose network is kept, for a model that takes any."""
SAMPLES = 3
"""Sentences, beside the original, on which the two readings of a model are compared."""
LOWER = {"level", "recipe", "swaps", "tree"}
UNFORESEEN = "screening met"
LEVELS = ("real", "float32", "replay")
Run = Callable[[NDArray[np.int64]], Any]


@dataclass(eq=False)
class Screen:
    """One model, read by `encodings` and by check.py, whose certificates are screened."""

    model: Model
    checked: CheckedModel
    vocabulary_sha256: str | None
    run: Run | None = None
    """onnxruntime on the model, which the network must agree with too, where there is one."""
    networks: dict[int, Covered | str] = field(default_factory=dict)
    """Length -> what is screened of its network, or why nothing is."""
    read: dict[int, Any] = field(default_factory=dict)
    last: Text | None = None
    judged: tuple[bytes, Verdict] | None = None
    """The certificate that check.py judged last, its proof left out, and its verdict."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why certificates were left to check.py."""

    def verdict(self, top: Any, seconds: float) -> Verdict | None:
        """What check.py says of a certificate it accepts; None: ask it. `top` is its value, from canonical JSON."""
        try:
            return self.screened(top, time.monotonic() + seconds)
        except Unsure as reason:
            self.reasons[str(reason)] += 1
        except (Refused, Unusable) as refusal:
            self.reasons[f"refused: {refusal}"] += 1
        except Exception as error:  # whatever an ill-formed file does to this code, the exact checker has the word
            self.reasons[f"{UNFORESEEN} {type(error).__name__}: {error}"] += 1
        return None

    def screened(self, top: Any, stop: float) -> Verdict:
        lower, upper = parts_of(top)
        without = self.rest(top, stop)
        text = self.text(top, stop)
        if upper is not None:
            if lower is not None and len(upper["swaps"]) <= lower["swaps"]:
                raise Unsure("upper and lower contradict each other")
            for level in upper["levels"]:
                if level != "replay" and not breaks(text, upper["swaps"], level):
                    raise Unsure(f"the witness at level {level}")
        if lower is not None:
            text.screen(decoded(lower["tree"]), lower["swaps"], lower["level"], stop)
        return together(top, without, text.network.classes)

    def rest(self, top: Mapping[str, Any], stop: float) -> Verdict:
        """The verdict of check.py on the certificate without what is screened: a claim that says nothing is left, with
        the same swaps, which are compared with the choices so."""
        swaps = [] if top["upper"] is None else top["upper"]["swaps"]
        data = canonical({**top, "lower": None, "upper": {"levels": ["replay"], "swaps": swaps}})
        if self.judged is None or self.judged[0] != data:
            seconds = max(0.0, stop - time.monotonic())
            self.judged = data, check_certificate(data, self.checked, self.vocabulary_sha256, seconds)
        return self.judged[1]

    def text(self, top: Mapping[str, Any], stop: float) -> Text:
        choices = tuple(map(tuple, top["choices"]))
        found = self.covered(len(choices), top, stop)
        last, rivals = self.last, tuple(top["rivals"])
        if last is None or (last.query.space.choices, last.query.label, last.query.rivals) != (
            choices,
            top["label"],
            rivals,
        ):
            try:
                query = Query(self.read[len(choices)], SwapSpace(choices), top["label"], rivals)
            except BadInput as error:
                raise Unsure(str(error)) from None
            self.last = last = Text(query, found)
        return last

    def covered(self, length: int, top: Mapping[str, Any], stop: float) -> Covered:
        if length not in self.networks:
            while len(self.networks) >= NETWORKS:
                oldest = next(iter(self.networks))
                self.networks.pop(oldest)
                self.read.pop(oldest, None)
            try:
                self.read[length] = network = network_of(self.model, length)
                self.networks[length] = covered(self.model, network)
                self.compare(length, top, stop)
            except (BadInput, Unsupported, Disagreement, Unsure) as error:
                self.networks[length] = str(error)
        found = self.networks[length]
        if isinstance(found, str):
            raise Unsure(found)
        return found

    def compare(self, length: int, top: Mapping[str, Any], stop: float) -> None:
        """Both readings name the same winner on sentences of the text, over the reals; onnxruntime gives the same
        logits up to rounding. Raises Unsure or Disagreement."""
        chosen = random.Random(0)
        choices = top["choices"]
        sentences = [[options[0] for options in choices]]
        sentences += [[chosen.choice(options) for options in choices] for _ in range(SAMPLES)]
        for tokens in sentences:
            logits, _ = exact_logits(self.read[length], tokens)
            for label in range(len(logits)):
                rivals = [rival for rival in range(len(logits)) if rival != label]
                if beaten(logits, label, rivals) != self.is_beaten(top, tokens, label, rivals, stop):
                    raise Unsure("the two readings of the model differ")
        if self.run is not None:
            agree(self.read[length], self.run, np.array(sentences, dtype=np.int64))

    def is_beaten(
        self, top: Mapping[str, Any], tokens: Sequence[int], label: int, rivals: Sequence[int], stop: float
    ) -> bool:
        """Whether some rival beats the label in this sentence, as check.py finds it over the reals."""
        choices = [[token] for token in tokens]
        claim = {"levels": ["real"], "swaps": []}
        about = {**top, "choices": choices, "space": space_digest(choices), "label": label, "rivals": list(rivals)}
        data = canonical({**about, "lower": None, "upper": claim})
        try:
            check_certificate(data, self.checked, self.vocabulary_sha256, max(0.0, stop - time.monotonic()))
        except Refused:
            if time.monotonic() >= stop:
                raise Unsure("out of time") from None
            return False
        return True


def parts_of(top: Any) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """`lower` and `upper` of a certificate that counts nothing; their fields are as FORMAT section 3 has them."""
    if not isinstance(top, dict) or not {"lower", "count", "upper"} <= top.keys():
        raise Unsure("no certificate")
    if top["count"] is not None:
        raise Unsure("counts are not screened")
    lower, upper = top["lower"], top["upper"]
    if lower is None and upper is None:
        raise Unsure("a certificate that claims nothing")
    fits = lower is None or (
        isinstance(lower, dict)
        and set(lower) == LOWER
        and lower["level"] in ("real", "float32")
        and lower["recipe"] == "linear-1"
        and type(lower["swaps"]) is int
        and 0 <= lower["swaps"] <= MOST_SWAPS
        and type(lower["tree"]) is str
    )
    if fits and upper is not None:
        fits = isinstance(upper, dict) and set(upper) == {"levels", "swaps"} and isinstance(upper["swaps"], list)
        named = [level for level in LEVELS if fits and isinstance(upper["levels"], list) and level in upper["levels"]]
        fits = bool(named) and upper["levels"] == named
    if not fits:
        raise Unsure("a claim that is not as it should be")
    return lower, upper


def decoded(tree: str) -> bytes:
    try:
        data = base64.b64decode(tree, validate=True)
    except ValueError:
        raise Unsure("the tree is not base64") from None
    if base64.b64encode(data).decode() != tree:
        raise Unsure("the tree is not canonical base64")
    return data


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def beaten(logits: Sequence[Fraction], label: int, rivals: Sequence[int]) -> bool:
    return any(logits[r] > logits[label] or (logits[r] == logits[label] and r < label) for r in rivals)


def together(top: Mapping[str, Any], rest: Verdict, classes: int) -> Verdict:
    """The verdict on the whole, in the words of check.py."""
    lower, upper, rivals = top["lower"], top["upper"], top["rivals"]
    parts, low, level = [], 0, None
    high: int | None = None
    levels: tuple[str, ...] = ()
    if lower is not None:
        low, level = lower["swaps"] + 1, lower["level"]
        able = sum(len(options) > 1 for options in top["choices"])
        against = "the class" if len(rivals) == classes - 1 else f"the class to one of {rivals}"
        extent = "however many swaps" if lower["swaps"] >= able else f"at most {swaps(lower['swaps'])}"
        parts.append(f"no sentence with {extent} changes {against} ({level})")
    if upper is not None:
        high, levels = len(upper["swaps"]), tuple(upper["levels"])
        how = ", ".join("replay as recorded, not checked" if name == "replay" else name for name in levels)
        found = f"a sentence with {swaps(high)} changes it" if high else "the text itself is answered wrongly"
        parts.append(f"{found} ({how})")
    if high == low:
        parts.append(f"min_swaps = {high}")
    sentence = f"text {top['id']}, class {top['label']}: " + "; ".join(parts)
    return replace(rest, low=low, high=high, level=level, witness_levels=levels, sentence=sentence)


def swaps(number: int) -> str:
    return f"{number} swap" if number == 1 else f"{number} swaps"
