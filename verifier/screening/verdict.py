"""Certificates screened: what check.py says of them, much sooner, or None when check.py itself has to look.

What a certificate says (hashes, binding, choices, limits) is compared with what check.py has read of the model; proofs
and witnesses are judged in float64 with error bounds.
"""

from __future__ import annotations

import base64
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.agreement import agree
from swapproof.encodings.errors import BadInput, Disagreement, Unsupported
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.encodings.query import Query
from swapproof.encodings.space import Frame, SwapSpace
from swapproof.encodings.word_options import inputs_of, swaps_of, words_of
from swapproof.proofs.check import Count, Verdict, verdict_of
from swapproof.proofs.lower import Model as CheckedModel
from swapproof.proofs.onnx_file import Refused, Unusable
from swapproof.proofs.writing.certificate import decimal

from .form.agreed_network import Agreed, Apart, agreed
from .form.statement import MOST_SWAPS, bound, decoded, well_formed, whole
from .form.unsure import Unsure
from .many_texts import Asked, decide
from .numbers.float64_witness import breaks
from .screen import ONE_LEAF, Tally, screen
from .screened_text import Text
from .smooth_proofs import screen_smooth, screen_witness

NETWORKS = 32
"""Those that are kept, of a model that takes any length or leaves the padding out."""
SAMPLES = 3
"""Sentences, beside the original, on which a network is compared with onnxruntime."""
UNFORESEEN = "screening met"
Run = Callable[[SwapSpace], Callable[[NDArray[np.int64]], Any]]
Key = tuple[SwapSpace, int, tuple[int, ...]]
"""Choices per position and constants, label and rivals."""


@dataclass(eq=False)
class Screen:
    """One model, read by `encodings` and by check.py, whose certificates are screened."""

    model: Model
    checked: CheckedModel
    vocabulary_sha256: str | None
    run: Run | None = None
    """onnxruntime on the model, which the network must agree with too, where there is one."""
    readings: dict[Frame | SwapSpace, Agreed | str] = field(default_factory=dict)
    """By length and constants, or by space where the model computes with tokens: what is screened of a network, or why
    nothing."""
    networks: dict[str, Agreed] = field(default_factory=dict)
    """By the SHA-256 of the canonical network: texts with the same mask share one."""
    frames: set[Frame] = field(default_factory=set)
    """Those of which a network was compared with onnxruntime."""
    ready: dict[Key, Text] = field(default_factory=dict)
    """Texts that are prepared together."""
    spaces: dict[int, tuple[Any, SwapSpace]] = field(default_factory=dict)
    """Of the certificates that were, each by its id as an object, found well formed."""
    last: tuple[Key, Text] | None = None
    """The last one that was not."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why certificates were left to check.py."""

    def verdict(self, top: Any, seconds: float) -> Verdict | None:
        """What check.py says of a certificate it accepts; None: ask it. `top` is its value, from canonical JSON."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is infinite or NaN exceeds no bound
                return self.screened(top, time.monotonic() + seconds)
        except (Unsure, Unsupported) as reason:
            self.reasons[str(reason)] += 1
        except (Refused, Unusable) as refusal:
            self.reasons[f"refused: {refusal}"] += 1
        except Apart:
            raise
        except Exception as error:  # whatever an ill-formed file does to this code, the exact checker has the word
            self.reasons[f"{UNFORESEEN} {type(error).__name__}: {error}"] += 1
        return None

    def screened(self, top: Any, stop: float) -> Verdict:
        prepared, space = self.spaces.get(id(top)) or (None, None)
        if prepared is not top or space is None:
            space = well_formed(top)
        text = self.text(key_of(top, space))
        bound(top, space, self.checked, text.agreed, self.vocabulary_sha256)
        recipe, foreign = ("smooth-1", "float32") if text.network.is_smooth else ("linear-2", "kernel")
        for claim in (top["lower"], top["count"]):
            if claim is not None and (claim["recipe"] != recipe or claim["level"] == foreign):
                raise Unsure("the recipe or the level of another kind of network")
        if top["upper"] is not None and foreign in top["upper"]["levels"]:
            raise Unsure("a witness at the level of another kind of network")
        if text.network.is_smooth:
            return self.smooth(top, text.query, stop)
        lower, count, upper = top["lower"], top["count"], top["upper"]
        sizes = [len(options) for _, options in top["words"]]
        witness = None if upper is None else swaps_of(top["inputs"], top["words"], upper["swaps"])
        failed = None if witness is None else breaks(text, witness, upper["levels"])
        if failed is not None:
            raise Unsure(f"the witness at level {failed}")
        if lower is not None:
            screen(text, decoded(lower["tree"]), sizes, lower["swaps"], lower["level"], stop)
        counted = None
        if count is not None:
            tally = screen(text, decoded(count["tree"]), sizes, count["swaps"], count["level"], stop, counting=True)
            counted = compared(count, tally)
        return verdict_of(top, text.network.classes, counted)

    def smooth(self, top: Any, query: Query, stop: float) -> Verdict:
        """Of a smooth network; counts are left to the exact checker."""
        lower, count, upper = top["lower"], top["count"], top["upper"]
        if count is not None or (lower is not None and lower["recipe"] != "smooth-1"):
            raise Unsure("a count, or another recipe, of a smooth network")
        if upper is not None:
            witness = swaps_of(top["inputs"], top["words"], upper["swaps"])
            screen_witness(query, witness, upper["levels"])
        if lower is not None:
            sizes = [len(options) for _, options in top["words"]]
            screen_smooth(query, decoded(lower["tree"]), sizes, lower["swaps"], lower["level"], stop)
        return verdict_of(top, query.network.classes, None)

    def prepare(self, tops: Iterable[Any]) -> None:
        """Begin with these certificates, the next ones asked for, all at once; whatever is wrong with one is met when
        its turn comes."""
        self.ready.clear()
        self.spaces.clear()
        found: dict[Agreed, list[tuple[Text, Asked]]] = {}
        for top in tops:
            with suppress(Exception):
                space = well_formed(top)
                self.spaces[id(top)] = top, space
                asked, key = asked_of(top), key_of(top, space)
                self.ready[key] = text = self.made(key)
                if text.network.is_smooth:
                    continue
                found.setdefault(text.agreed, []).append((text, asked))
        for pairs in found.values():
            with suppress(Exception), np.errstate(over="ignore", invalid="ignore"):
                decide(*zip(*pairs, strict=True))

    def text(self, key: Key) -> Text:
        found = self.ready.get(key)
        if found is not None:
            return found
        if self.last is None or self.last[0] != key:
            self.last = key, self.made(key)
        return self.last[1]

    def made(self, key: Key) -> Text:
        space, label, rivals = key
        try:
            found = self.agreed(space)
            query = Query(found.network, space, label, rivals)
        except BadInput as error:
            raise Unsure(str(error)) from None
        return Text(query, found)

    def agreed(self, space: SwapSpace) -> Agreed:
        """The network for these choices; raises Unsure where there is none to be screened."""
        known = next((key for key in (space.frame, space) if key in self.readings), None)
        if known is None:
            known, kept = self.read(space)
        else:
            kept = self.readings.pop(known)
        self.readings[known] = kept
        if len(self.readings) > NETWORKS:
            self.readings.pop(next(iter(self.readings)))
        if len(self.networks) > NETWORKS:
            self.networks.pop(next(iter(self.networks)))
        if isinstance(kept, str):
            raise Unsure(kept)
        return kept

    def read(self, space: SwapSpace) -> tuple[Frame | SwapSpace, Agreed | str]:
        """What is screened of the network for these choices, and whose network it is."""
        try:
            network = network_for(self.model, space, smooth=True)
        except (BadInput, Unsupported) as error:
            return space, str(error)
        key: Frame | SwapSpace = space.frame if network.choices is None else space
        try:
            return key, self.compared(space, network)
        except Apart:
            raise
        except (BadInput, Unsupported, Disagreement, Unsure, Refused, Unusable) as error:
            return key, str(error)

    def compared(self, space: SwapSpace, network: Network) -> Agreed:
        """Both readings write one network, for every text where it depends on the text; and once per frame onnxruntime
        agrees up to rounding."""
        found = agreed(network, self.checked.lower(inputs_of(space), words_of(space)).sha256)
        if found.sha256 in self.networks:
            return self.networks[found.sha256]
        if self.run is not None and space.frame not in self.frames:
            chosen = random.Random(0)
            others = [[chosen.choice(options) for options in space.choices] for _ in range(SAMPLES)]
            sentences = [space.original, *others]
            agree(network, self.run(space), np.array(sentences, dtype=np.int64))
        self.frames.add(space.frame)
        self.networks[found.sha256] = found
        return found


def asked_of(top: Mapping[str, Any]) -> Asked:
    """What of a certificate is decided together with others."""
    lower, upper = top["lower"], top["upper"]
    leaf = lower is not None and lower["tree"] == base64.b64encode(ONE_LEAF).decode()
    witness = None if upper is None else swaps_of(top["inputs"], top["words"], upper["swaps"])
    return Asked(lower["swaps"] if leaf and whole(lower["swaps"], MOST_SWAPS + 1) else None, witness)


def key_of(top: Mapping[str, Any], space: SwapSpace) -> Key:
    return space, top["label"], tuple(top["rivals"])


def compared(count: Mapping[str, Any], tally: Tally) -> Count:
    """Raises Unsure unless these are the numbers of sentences that the proof shows."""
    robust = tally.total - tally.broken - tally.open
    for name, number in (("total", tally.total), ("broken", tally.broken), ("robust", robust)):
        if number < 0 or count[name] != decimal(number):
            raise Unsure(f"the number of sentences {name} is another")
    return Count(count["swaps"], count["level"], robust, tally.broken, tally.total)
