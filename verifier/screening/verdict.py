"""Certificates screened: what check.py says of them, much sooner, or None when check.py itself has to look.

What a certificate says (hashes, binding, choices, limits) is compared with what check.py has read of the model; proofs
and witnesses are judged in float64 with error bounds.
"""

from __future__ import annotations

import base64
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.agreement import agree
from swapproof.encodings.errors import BadInput, Disagreement, Unsupported
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.onnx_files.onnx_reading import Model, reading_of
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.certificate import decimal
from swapproof.proofs.check import Count, Refused, Space, Unusable, Verdict, verdict_of
from swapproof.proofs.check import Model as CheckedModel
from swapproof.proofs.check import Network as CheckedNetwork

from .form.coverage import Covered, covered
from .form.statement import MOST_SWAPS, bound, decoded, well_formed, whole
from .form.token_masks import Masks
from .form.unsure import Unsure
from .many_texts import Asked, decide
from .numbers import float32_claims as claims
from .numbers.float64_witness import breaks
from .screen import ONE_LEAF, Tally, Text

NETWORKS = 32
"""Those that are kept, of a model that takes any length or leaves the padding out."""
SAMPLES = 3
"""Sentences, beside the original, on which a network is compared with onnxruntime."""
UNFORESEEN = "screening met"
Run = Callable[[NDArray[np.int64]], Any]
Choices = tuple[tuple[int, ...], ...]
Key = tuple[Choices, int, tuple[int, ...]]
"""Choices, label and rivals."""


@dataclass(eq=False)
class Screen:
    """One model, read by `encodings` and by check.py, whose certificates are screened."""

    model: Model
    checked: CheckedModel
    vocabulary_sha256: str | None
    run: Run | None = None
    """onnxruntime on the model, which the network must agree with too, where there is one."""
    readings: dict[Hashable, Covered | str] = field(default_factory=dict)
    """What is screened of a network, or why nothing is."""
    masks: dict[int, Masks | None] = field(default_factory=dict)
    """Length -> what the model computes from tokens; None: other networks for other choices, and no telling which."""
    lengths: set[int] = field(default_factory=set)
    """Those of which a network was compared with onnxruntime and with check.py's rounding."""
    ready: dict[Key, Text] = field(default_factory=dict)
    """Texts that are prepared together."""
    last: tuple[Key, Text] | None = None
    """The last one that was not."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why certificates were left to check.py."""

    def verdict(self, top: Any, seconds: float) -> Verdict | None:
        """What check.py says of a certificate it accepts; None: ask it. `top` is its value, from canonical JSON."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is infinite or NaN exceeds no bound
                return self.screened(top, time.monotonic() + seconds)
        except Unsure as reason:
            self.reasons[str(reason)] += 1
        except (Refused, Unusable) as refusal:
            self.reasons[f"refused: {refusal}"] += 1
        except Exception as error:  # whatever an ill-formed file does to this code, the exact checker has the word
            self.reasons[f"{UNFORESEEN} {type(error).__name__}: {error}"] += 1
        return None

    def screened(self, top: Any, stop: float) -> Verdict:
        well_formed(top)
        text = self.text(top)
        bound(top, self.checked, text.covered.sizes, self.vocabulary_sha256)
        lower, count, upper = top["lower"], top["count"], top["upper"]
        failed = None if upper is None else breaks(text, upper["swaps"], upper["levels"])
        if failed is not None:
            raise Unsure(f"the witness at level {failed}")
        if lower is not None:
            text.screen(decoded(lower["tree"]), lower["swaps"], lower["level"], stop)
        counted = None
        if count is not None:
            tally = text.screen(decoded(count["tree"]), count["swaps"], count["level"], stop, counting=True)
            counted = compared(count, tally)
        return verdict_of(top, text.network.classes, counted)

    def prepare(self, tops: Iterable[Any]) -> None:
        """Begin with these certificates, the next ones asked for, all at once; whatever is wrong with one is met when
        its turn comes."""
        self.ready.clear()
        found: dict[Covered, list[tuple[Text, Asked]]] = {}
        for top in tops:
            with suppress(Exception):
                asked, key = asked_of(top), key_of(top)
                self.ready[key] = text = self.made(key)
                found.setdefault(text.covered, []).append((text, asked))
        for pairs in found.values():
            with suppress(Exception), np.errstate(over="ignore", invalid="ignore"):
                decide(*zip(*pairs, strict=True))

    def text(self, top: Mapping[str, Any]) -> Text:
        key = key_of(top)
        found = self.ready.get(key)
        if found is not None:
            return found
        if self.last is None or self.last[0] != key:
            self.last = key, self.made(key)
        return self.last[1]

    def made(self, key: Key) -> Text:
        choices, label, rivals = key
        found = self.covered(choices)
        try:
            query = Query(found.kernels.network, SwapSpace(choices), label, rivals)
        except BadInput as error:
            raise Unsure(str(error)) from None
        return Text(query, found)

    def covered(self, choices: Choices) -> Covered:
        kept = self.readings.pop(self.network_key(choices), None)
        if kept is None:
            try:
                kept = self.read(choices)
            except (BadInput, Unsupported, Disagreement, Unsure, Refused, Unusable) as error:
                kept = str(error)
        self.readings[self.network_key(choices)] = kept
        if len(self.readings) > NETWORKS:
            self.readings.pop(next(iter(self.readings)))
        if isinstance(kept, str):
            raise Unsure(kept)
        return kept

    def network_key(self, choices: Choices) -> Hashable:
        """Texts with the same key have the same network."""
        masks = self.masks.get(len(choices))
        results = None if masks is None else masks.results(choices)
        return choices if results is None else (len(choices), results)

    def read(self, choices: Choices) -> Covered:
        checked = self.checked.network(len(choices), choices)
        if not checked.compares:
            self.masks[len(choices)] = Masks([])
        network, settled = reading_of(self.model, len(choices), choices)
        masks = Masks.of(settled, choices)
        before = self.masks.setdefault(len(choices), masks)
        if before is None or masks is None or not before.same(masks):
            self.masks[len(choices)] = None
        found = covered(self.model, network, checked)
        self.compare(choices, found, checked)
        return found

    def compare(self, choices: Choices, found: Covered, checked: CheckedNetwork) -> None:
        """Both readings give the same logits for the text, over the reals; and, for the first text of a length,
        onnxruntime gives them up to rounding, and rounding is not thought smaller here than there. Raises Unsure or
        Disagreement."""
        network, original = found.kernels.network, [options[0] for options in choices]
        ours, _ = exact_logits(network, original)
        if list(ours) != logits_of(checked, original):
            raise Unsure("the two readings of the model differ")
        if len(choices) in self.lengths:
            return
        if found.float32:
            theirs = whole_errors(checked, choices)
            bounds = claims.margin_errors(claims.whole_space(network, SwapSpace(choices), found.merged), 0)[0]
            if any(math.isfinite(bound) and bound < error for bound, error in zip(bounds, theirs, strict=True)):
                raise Unsure("the two readings of the model round otherwise")
        if self.run is not None:
            chosen = random.Random(0)
            sentences = [original, *([chosen.choice(options) for options in choices] for _ in range(SAMPLES))]
            agree(network, self.run, np.array(sentences, dtype=np.int64))
        self.lengths.add(len(choices))


def asked_of(top: Mapping[str, Any]) -> Asked:
    """What of a certificate is decided together with others."""
    lower, upper = top["lower"], top["upper"]
    leaf = lower is not None and lower["tree"] == base64.b64encode(ONE_LEAF).decode()
    witness = None if upper is None else tuple((position, token) for position, token in upper["swaps"])
    return Asked(lower["swaps"] if leaf and whole(lower["swaps"], MOST_SWAPS + 1) else None, witness)


def key_of(top: Mapping[str, Any]) -> Key:
    return tuple(map(tuple, top["choices"])), top["label"], tuple(top["rivals"])


def logits_of(network: CheckedNetwork, tokens: Sequence[int]) -> list[Fraction]:
    """As check.py computes them."""
    values = [0] * len(network.owner)
    network.evaluate(network.layers, values, tokens)
    return [Fraction(values[i], network.owner[i].scale) for i in network.logits]


def whole_errors(network: CheckedNetwork, choices: Choices) -> list[Fraction]:
    """E of every class against class 0 over all sentences, as check.py computes it; Refused where there is none."""
    space = Space(network, [list(options) for options in choices], 0)
    space.prepare_float32()
    return [Fraction(space.error(space.whole, rival), 1 << 64) for rival in range(network.classes)]


def compared(count: Mapping[str, Any], tally: Tally) -> Count:
    """Raises Unsure unless these are the numbers of sentences that the proof shows."""
    robust = tally.total - tally.broken - tally.open
    for name, number in (("total", tally.total), ("broken", tally.broken), ("robust", robust)):
        if number < 0 or count[name] != decimal(number):
            raise Unsure(f"the number of sentences {name} is another")
    return Count(count["swaps"], count["level"], robust, tally.broken, tally.total)
