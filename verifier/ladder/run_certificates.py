"""Certificates of a run: what they are bound to, how a verdict becomes one, and the checker that must accept it."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import inputs_of, options_of, words_of
from swapproof.proofs.check import check_certificate
from swapproof.proofs.enclosures import LIMIT_BITS
from swapproof.proofs.lower import Model as CheckedModel
from swapproof.proofs.lower import read_model
from swapproof.proofs.onnx_file import Refused, Unusable
from swapproof.proofs.writing.certificate import (
    Count,
    File,
    Input,
    Lower,
    Statement,
    Upper,
    Word,
    encode_tree,
    write_certificate,
)

from ..engines.protocol import Bound, Unchecked
from ..interval import Level
from ..runs.binding import Binding
from ..screening import Screen, Unsure, canonical
from ..tasks.inputs import Text
from .open_part import counted
from .text_verdict import Verdict

MODEL, VOCABULARY = "model.onnx", "vocabulary.json"
"""Their names in the run folder."""
NO_NETWORK = "0" * 64
"""In place of the hash of a network that proofs/lower.py refuses to write: then it refuses every certificate."""
WitnessLevels = tuple[Literal["real", "float32", "kernel", "replay"], ...]
WITNESS_LEVELS: tuple[WitnessLevels, ...] = (
    ("real", "float32", "replay"),
    ("real", "replay"),
    ("replay",),
)
"""Levels of truth of a witness, strongest first."""
SMOOTH_LEVELS: tuple[WitnessLevels, ...] = (("real", "kernel", "replay"), *WITNESS_LEVELS[1:])
"""Of a witness of a smooth network."""


LONGEST = 3600.0
TOO_LARGE = f"a number of 2**{LIMIT_BITS} or more"
"""How the checker's refusal begins that says nothing against a proof but that it is of numbers too large for it."""
REMEMBERED = 8
"""Proofs that were accepted: the last of a climb is asked for again, in the certificate."""


def statement_of(binding: Binding, text: Text, query: Query, network_sha256: str) -> Statement:
    """What a text's certificate is about, before it claims anything."""
    return Statement(
        id=text.id,
        model=File(MODEL, binding.model_sha256),
        tensors=tuple(File(*tensor) for tensor in binding.tensors),
        network=network_sha256,
        vocabulary=File(VOCABULARY, binding.vocabulary_sha256),
        text=hashlib.sha256(text.encoded.text.encode()).hexdigest(),
        synonyms=text.frozen.sha256,
        inputs=tuple(Input(role, integers) for role, integers in inputs_of(query.space)),
        words=tuple(Word(start, options) for start, options in words_of(query.space)),
        label=query.label,
        rivals=query.rivals,
        recipe="smooth-1" if query.network.is_smooth else "linear-2",
    )


@dataclass(frozen=True)
class Certificate:
    """Bytes the checker accepts, and the levels at which their witness holds."""

    data: bytes
    witness_levels: tuple[str, ...]
    count: Count | None = None
    """What is known of sentences with more swaps than are proved harmless, where the text is open."""
    refusal: str | None = None
    """Why a count that was to be there is not."""


@dataclass(frozen=True)
class Denied:
    """What was to be a certificate, or a part of one, is refused: why."""

    reason: str


@dataclass(eq=False)
class Checker:
    """The model as `proofs/check.py` reads it, independently of the rest.

    All is screened in float64 with error bounds first; whatever that leaves unsure, `proofs/check.py` decides.
    """

    binding: Binding
    model: CheckedModel
    seconds: float = LONGEST
    """Time for checking one proof, as far as `until` leaves so much."""
    until: float = float("inf")
    """When the time of the text is over that is worked on, in seconds of time.monotonic()."""
    screen: Screen | None = None
    accepted: deque[tuple[str, Any]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """(text and space, lower part) of the last proofs that were accepted: they need not be checked twice."""

    @classmethod
    def open(cls, binding: Binding, model: Model, seconds: float = LONGEST) -> Checker:
        """Raises Unsupported for a model that cannot be certified."""
        try:
            files = {name: (model.path.parent / name).read_bytes() for name, _ in binding.tensors}
            checked = read_model(model.path.read_bytes(), files)
        except Unusable as error:
            raise uncertifiable(model.path, error) from None
        return cls(binding, checked, seconds, screen=Screen(model, checked, binding.vocabulary_sha256))

    def try_network(self, network: Network) -> None:
        """Raises Unsupported for a network that cannot be certified."""
        try:
            choices = network.choices or ((0,),) * network.length
            self.network_sha256(SwapSpace(choices, network.before, network.after))
        except Unusable as error:
            raise uncertifiable(Path(MODEL), error) from None

    def prepare(self, space: SwapSpace) -> None:
        """Read what certificates of all texts of this length need; whatever is wrong is met when one is checked."""
        with suppress(Refused, Unusable):
            self.network_sha256(space)

    def network_sha256(self, space: SwapSpace) -> str:
        """Of the canonical network, as proofs/lower.py writes it."""
        try:
            if self.screen is not None:
                return self.screen.agreed(space).sha256  # one for all texts with the same mask
        except Unsure:
            pass
        return self.model.lower(inputs_of(space), words_of(space)).sha256

    def statement(self, text: Text, query: Query) -> Statement:
        """What a certificate of the text is about."""
        try:
            network = self.network_sha256(query.space)
        except (Refused, Unusable):
            network = NO_NETWORK
        return statement_of(self.binding, text, query, network)

    def refusal(self, text: Text, query: Query, bound: Bound) -> str | None:
        """Why the certificate of this bound is not accepted; None when it is. Raises Unchecked where there is no time
        for that, or numbers are beyond what proofs may be about."""
        statement = self.statement(text, query)
        lower = Lower(bound.low - 1, bound.level, bound.tree)
        refusal = self.refused(replace(statement, lower=lower))
        if refusal is None:
            self.accepted.append(key(statement, lower))
        elif refusal.startswith(TOO_LARGE) and bound.level == "real":
            raise Unchecked(f"its proof is refused: {refusal}")
        return refusal

    def certificate(self, text: Text, query: Query, verdict: Verdict) -> Certificate | Denied | None:
        """The accepted certificate of a verdict; None when nothing is claimed.

        Each part of a certificate is checked by itself, and the proof was when the ladder took it: what is left is the
        witness, at the strongest levels at which it holds, and that it does not contradict the proof. Raises Unchecked
        where there is no time for that.
        """
        statement = self.statement(text, query)
        lower, witness = lower_of(verdict), verdict.interval.high_evidence
        if lower is not None and key(statement, lower) not in self.accepted:
            refusal = self.refused(replace(statement, lower=lower))
            if refusal is not None:
                return Denied(refusal)
        found = self.count(statement, query, verdict)
        count, missing = (None, found.reason) if isinstance(found, Denied) else (found, None)
        if witness is None:
            if lower is None and count is None:
                return None
            return Certificate(write_certificate(replace(statement, lower=lower, count=count)), (), count, missing)
        if lower is not None and len(witness.swaps) <= lower.swaps:
            return Denied(f"a witness of {len(witness.swaps)} swaps, where {lower.swaps} are proved harmless")
        swaps = options_of(query.space, witness.swaps)
        every = SMOOTH_LEVELS if query.network.is_smooth else WITNESS_LEVELS
        known = every if canonical_of(query.network).float32 else every[1:]
        shown = self.accepted_upper(statement, [Upper(swaps, levels) for levels in known])
        if isinstance(shown, Denied):
            return shown
        whole = replace(statement, lower=lower, count=count, upper=shown)
        return Certificate(write_certificate(whole), shown.levels, count, missing)

    def accepted_upper(self, statement: Statement, uppers: Sequence[Upper]) -> Upper | Denied:
        """The first of these, strongest first, that the checkers accept, or why none is. The strongest that screening
        is sure of comes first: exact arithmetic, which takes long, seldom finds a stronger one."""
        for upper in uppers[:-1] if self.screen is not None else ():
            data = write_certificate(replace(statement, upper=upper))
            if self.screened(data, min(self.seconds, self.until - time.monotonic())):
                return upper
        refusal = ""
        for upper in uppers:
            found = self.refused(replace(statement, upper=upper))
            if found is None:
                return upper
            refusal = found
        return Denied(refusal)

    def screened(self, data: bytes, left: float) -> bool:
        return self.screen is not None and self.screen.verdict(canonical(data), max(0.0, left)) is not None

    def count(self, statement: Statement, query: Query, verdict: Verdict) -> Count | Denied | None:
        """The accepted count of what a search had done when it had to stop, or why it is refused; None without one."""
        cover = verdict.interval.cover
        part = None if cover is None or verdict.status != "open" else counted(cover, query.space)
        if cover is None or part is None:
            return None
        refusal = ""
        levels: tuple[Level, ...] = ("float32", "real") if cover.level == "float32" else ("real",)
        for level in levels:
            part = replace(part, level=level)
            try:
                refused = self.refused(replace(statement, count=part))
            except Unchecked:
                return None
            if refused is None:
                return part
            refusal = refused
        return Denied(refusal)

    def recall(self, text: Text, query: Query, lower: Lower) -> None:
        """This proof was accepted before, in a certificate that is the same file still."""
        self.accepted.append(key(self.statement(text, query), lower))

    def refused_proof(self, text: Text, query: Query, bound: Bound) -> bytes:
        """The certificate that was refused, for inspection."""
        lower = Lower(bound.low - 1, bound.level, bound.tree)
        return write_certificate(replace(self.statement(text, query), lower=lower))

    def refused(self, statement: Statement) -> str | None:
        """Why the checkers do not accept this; None when they do. Both together have the time that is left."""
        data, started = write_certificate(statement), time.monotonic()
        stop = min(started + self.seconds, self.until)
        try:
            left = stop - time.monotonic()
            if self.screened(data, left):
                return None
            left = max(0.0, stop - time.monotonic())
            check_certificate(data, self.model, self.binding.vocabulary_sha256, left)
        except (Refused, Unusable) as error:
            if time.monotonic() >= stop:
                spent = f"{time.monotonic() - started:.1f} s"
                raise Unchecked(f"{about(statement, len(data))} could not be checked in {spent}") from None
            return str(error)
        return None


def about(statement: Statement, size: int) -> str:
    """What a certificate of so many bytes would show."""
    if statement.lower is not None:
        return f"a proof of {size:,} bytes that {statement.lower.swaps} swaps are harmless"
    if statement.count is not None:
        return f"a count of {size:,} bytes of sentences with {statement.count.swaps} swaps"
    return "a witness"


def lower_of(verdict: Verdict) -> Lower | None:
    """The proof of the low end; none when the low end is 0, or weaker than what was proved (an ambiguous text)."""
    interval = verdict.interval
    proof = interval.low_evidence
    if proof is None or interval.low == 0 or verdict.status == "ambiguous":
        return None
    return Lower(interval.low - 1, proof.level, proof.tree)


def key(statement: Statement, lower: Lower) -> tuple[str, Any]:
    sizes = [len(word.options) for word in statement.words]
    about = f"{statement.id} {statement.text} {statement.label} {hash((statement.inputs, statement.words))}"
    return about, (lower.swaps, lower.level, encode_tree(lower.tree, sizes, statement.rivals))


def uncertifiable(model: Path, error: Unusable) -> Unsupported:
    return Unsupported(f"{model}: no certificate of this model can be checked: {error}")
