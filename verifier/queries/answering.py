"""One query from file to answer: attack every case, then search each, then ask a solver for a witness."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.normal_form import Stack, stack_of
from swapproof.encodings.errors import BadInput, Disagreement, OutOfTime, Unsupported
from swapproof.encodings.network import Floats, Network
from swapproof.encodings.onnx_files.numeric_input import NumericModel, numeric_network, open_numeric
from swapproof.encodings.vnnlib.linear_property import Case, Property
from swapproof.encodings.vnnlib.vnnlib_reading import read_vnnlib

from ..ladder.optimiser import blamed, harmful_merge
from ..ladder.replay import session_of
from ..tasks.sections import TEXT_FORMATS
from .attack import attack
from .choice_search import search_choices
from .input_choices import choices
from .input_witness import Deployed, InputWitness, without_floats
from .last_resort import last_resort
from .over_reals import rounded_into, satisfied
from .query_bounds import QueryBounds
from .question import Question, floor_float
from .search import Answer, QuerySearch, SearchOutcome, Way
from .search_tree import UPPER_SLOPES, TreeRecord
from .unsat_certificates import Plan, plan

FEW_INPUTS = 10
"""Up to so many, halving boxes is tried before splitting neurons."""
SHARES = ((0.8, 4), (0.5, 4))
"""Of the time left: for the first and the second way to split, with so many steps of ascent."""
PROVING, PROVING_EXACTLY = 0.5, 0.3
"""The part of those shares when a certificate is to be checked too: in float64, which takes about as long as finding
it, or exactly."""
EXACTLY = 0.5
"""The part of the time left in which exact arithmetic decides what floats could not."""
MET = "a bound is met exactly, or nearly so: decided in exact arithmetic, by proofs/check_box.py"
SETTLED = ("sat", "unsat")
ATTACK_SHARE = 0.2
TRIED = 3
"""Points of each attack that are replayed."""
AGREEING, APART = 16, 1e-3
"""Inputs on which the network read is compared with onnxruntime; how far apart they may be, in parts of its size."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model that was read, in all its forms, and agreed with onnxruntime."""

    model: NumericModel
    network: Network
    stack: Stack
    deployed: Deployed
    merge: str | None
    """What onnxruntime's optimiser may have made another function."""


@dataclass(frozen=True)
class QueryVerdict:
    answer: Answer
    witness: InputWitness | None
    seconds: float
    regions: int = 0
    remarks: tuple[str, ...] = ()
    near: bool = False
    """Whether a bound was met that only exact arithmetic can tell from 0."""


@dataclass
class Verifier:
    """Keeps the models it has loaded."""

    loaded: dict[Path, Loaded] = field(default_factory=dict)

    def load(self, path: Path) -> Loaded:
        path = path.absolute()
        if path.suffix.lower() in TEXT_FORMATS:
            raise BadInput(f"{path}: a binary .onnx file is needed, not {path.suffix}; convert it with onnx.save")
        if path not in self.loaded:
            model = open_numeric(path)
            network = numeric_network(model)
            merge = harmful_merge(path, model.proto)
            self.loaded[path] = Loaded(model, network, stack_of(network), Deployed.open(model), merge)
        return self.loaded[path]

    def verify(
        self, query: Path, model: Path, seconds: float, proof: Path | None = None, *, exact: bool = False
    ) -> QueryVerdict:
        """With `proof` unsat is answered only when its certificate was written there: once all its leaves hold in
        float64, or with `exact` once the checker accepted it."""
        began = time.monotonic()
        try:
            property, loaded = self.read(query, model, began + seconds)
        except OutOfTime as error:
            return QueryVerdict("timed-out", None, time.monotonic() - began, 0, (str(error),))
        check_agreement(property, loaded)
        planned = None if proof is None else plan(query, property, loaded.model, proof, exact=exact)
        if planned is not None:
            planned.target.unlink(missing_ok=True)  # an older certificate would outlive an answer other than unsat
        verdict = settled(property, loaded, began, seconds, planned, exactly=True)
        if verdict.near and planned is None:
            verdict = self.settled_exactly(query, property, loaded, began + seconds) or verdict
        now = time.monotonic()
        if verdict.near and verdict.answer not in SETTLED and now < began + seconds:
            verdict = settled(property, loaded, now, began + seconds - now, planned)
        return replace(verdict, seconds=time.monotonic() - began)

    def settled_exactly(self, query: Path, property: Property, loaded: Loaded, until: float) -> QueryVerdict | None:
        """By a certificate that the checker accepts, and that nobody keeps; None where there cannot be one."""
        began = time.monotonic()
        with TemporaryDirectory() as folder:
            try:
                planned = plan(query, property, loaded.model, Path(folder) / "proof.json", exact=True)
            except (BadInput, Unsupported):
                return None
            verdict = settled(property, loaded, began, EXACTLY * max(0.0, until - began), planned, exactly=True)
        if verdict.answer not in SETTLED:
            return None
        return replace(verdict, remarks=(MET,)) if verdict.answer == "unsat" else verdict

    def plan(self, query: Path, model: Path, proof: Path) -> Plan:
        """Raises what `verify` would raise where a certificate cannot be had."""
        property, loaded = self.read(query, model)
        return plan(query, property, loaded.model, proof)

    def read(self, query: Path, model: Path, until: float | None = None) -> tuple[Property, Loaded]:
        property = read_vnnlib(query, until)
        loaded = self.load(model)
        check_declarations(property, loaded)
        return property, loaded


def check_declarations(property: Property, loaded: Loaded) -> None:
    """Sizes and types are those of the model; `Real` fits any type (VNN-LIB 2.0, tensor element types)."""
    sides = (
        ("input", property.inputs, loaded.model.shape, loaded.model.kind),
        ("output", property.outputs, loaded.network.nodes[-1].shape, loaded.model.output_kind),
    )
    for side, tensor, shape, kind in sides:
        if tensor.kind.lower() not in ("real", kind):
            raise BadInput(
                f"{property.source} line {tensor.line}: {side} {tensor.name} is {tensor.kind}, and the {side} of "
                f"{loaded.model.path.name} is {kind}: declare it so, or as Real"
            )
        size = int(np.prod(shape))
        if tensor.size != size or (not tensor.numbered and trimmed(tensor.shape) != trimmed(shape)):
            has = f"{tensor.size} numbers" if tensor.numbered else f"shape {list(tensor.shape)}"
            raise BadInput(
                f"{property.source} line {tensor.line}: {side} {tensor.name} has {has}, and the {side} of "
                f"{loaded.model.path.name} has shape {list(shape)}"
            )


def trimmed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without sizes of one, which write a batch or a channel that may be left out."""
    return tuple(size for size in shape if size != 1)


def check_range(property: Property, kind: str) -> None:
    """Inputs beyond the numbers of the model's type cannot be given to it."""
    most = max((abs(end) for case in property.cases for end in (*case.low, *case.high)), default=Fraction(0))
    largest = float(np.finfo(kind).max)
    if most > Fraction(largest):
        raise Unsupported(
            f"{property.source}: inputs up to {float(most):.3g}, and the {kind} inputs of the model end at "
            f"{largest:.3g}; a smaller box works"
        )


def check_agreement(property: Property, loaded: Loaded) -> None:
    """The stack against onnxruntime, on inputs of the first box."""
    check_range(property, loaded.model.kind)
    if not property.cases:
        return
    low, high = (np.array([float(v) for v in end]) for end in (property.cases[0].low, property.cases[0].high))
    points = low + (high - low) * np.random.default_rng(0).random((AGREEING, len(low)))
    x = points.astype(loaded.model.kind)
    ours = loaded.stack.values(x.astype(np.float64))[1]
    size = loaded.stack.output.bias_size + 1.0 + np.abs(ours).max(axis=0)
    for row in range(AGREEING):
        deployed = loaded.deployed.output(x[row]).astype(np.float64)
        if not np.isfinite(deployed).all():
            raise Unsupported(
                f"{property.source}: onnxruntime answers {deployed[~np.isfinite(deployed)][0]} for an input of a box, "
                f"with inputs up to {np.abs(x[row].astype(np.float64)).max():.3g}: {loaded.model.kind} overflows on "
                "the way; a smaller box works"
            )
        apart = np.abs(deployed - ours[row])
        if not (apart <= APART * size).all():
            raise Disagreement(explained(loaded, x[row], ours[row], APART * size, float(apart.max())))


def explained(loaded: Loaded, x: NDArray[Any], ours: Floats, allowed: Floats, apart: float) -> str:
    """The difference, and whether onnxruntime's optimiser makes it."""
    model, difference = loaded.model, f"onnxruntime and the network as it was read differ by {apart:.3g}"
    plain = Deployed(model, session_of(model.path, optimised=False))
    if not (np.abs(plain.output(x).astype(np.float64) - ours) <= allowed).all():
        return f"{model.path}: {difference}"
    return blamed(model.path, model.proto, {model.input: x.reshape(model.shape)}, difference)


def settled(
    property: Property,
    loaded: Loaded,
    began: float,
    seconds: float,
    plan: Plan | None = None,
    *,
    exactly: bool = False,
) -> QueryVerdict:
    """With `exactly` only the beginning of an answer where exact arithmetic is needed, unless there is a plan."""
    until = began + seconds
    source = np.random.default_rng(0)
    remarks = []
    if loaded.network.inexact and plan is None:
        remarks.append(f"rounded constants ({', '.join(loaded.network.inexact)}): unsat is of the rounded network")
    if loaded.merge is not None:
        remarks.append(f"{loaded.merge}; unsat is of the file")
    regions, near = 0, False

    def verdict(answer: Answer, witness: InputWitness | None = None) -> QueryVerdict:
        if witness is not None:
            rounded = rounded_into(property, loaded.network, loaded.model.kind, witness)
            remarks[:] = [] if rounded is None else [rounded]
        return QueryVerdict(answer, witness, time.monotonic() - began, regions, tuple(dict.fromkeys(remarks)), near)

    questions = [Question.of(loaded.stack, case) for case in property.cases]
    barred, met, none = set[int](), set[int](), dict[int, bool]()
    for number, question in enumerate(questions):
        place = without_floats(question, loaded.model.kind)
        if place is not None and not crossed(question.case):
            barred.add(number)
            points = attack(question, source)[:TRIED] if len(question.atoms) else [question.low]
            if satisfied(question.case, loaded.network, points):
                met.add(number)
            none[place] = none.get(place, False) or number in met
    remarks += [no_float(property, loaded.model.kind, place, met=some) for place, some in none.items()]
    for number, question in enumerate(questions):
        if number in barred:
            continue
        if time.monotonic() > began + ATTACK_SHARE * seconds:
            break
        witness = attacked(question, loaded.deployed, source)
        if witness is not None:
            return verdict("sat", witness)
    answers: list[Answer] = []
    roots: dict[bytes, QueryBounds] = {}
    records: list[TreeRecord] = []
    parts = 0.0 if plan is None else UPPER_SLOPES
    for number, question in enumerate(questions):
        if number in met:
            answers.append("unknown")
            continue
        box = question.low.tobytes() + question.high.tobytes()
        if box not in roots:
            roots = {box: QueryBounds(loaded.stack, question.low, question.high, parts)}
        rest = (until - time.monotonic()) / (len(questions) - number)
        outcome, remark = searched(
            question, loaded, roots[box], max(0.0, rest), plan, exactly=exactly, barred=number in barred
        )
        regions, near = regions + outcome.regions, near or outcome.near
        if outcome.answer == "sat":
            return verdict("sat", outcome.witness)
        if remark:
            remarks.append(remark)
        if near and plan is None:
            return verdict("unknown")
        answers.append(outcome.answer)
        if outcome.record is not None:
            records.append(outcome.record)
    if all(answer == "unsat" for answer in answers):
        if plan is None:
            return verdict("unsat")
        certified = plan.certify(records, until, partial(searched_again, questions, loaded, plan, until))
        remarks.append(certified.remark)
        if certified.written:
            return verdict("unsat")
    spent = time.monotonic() - began
    if spent < seconds and "timed-out" in answers:
        use = "a solver, which settled nothing" if plan is None else "checking a certificate"
        remarks.append(
            f"the search had its part of {seconds:.3g} s and ended after {spent:.3g} s; the rest is for {use}"
        )
    return verdict("timed-out" if spent >= seconds or "timed-out" in answers else "unknown")


def no_float(property: Property, kind: str, place: int, *, met: bool) -> str:
    element = property.inputs.element(place)
    said = f"no {kind} number lies between the bounds of {element}: no input can be replayed, so this is not `sat`"
    return f"{said}; over the reals an input satisfies the query, so it is not `unsat` either" if met else said


def attacked(question: Question, deployed: Deployed, source: np.random.Generator) -> InputWitness | None:
    if not len(question.atoms):
        return deployed.witness(question.case, (question.low + question.high) / 2)
    found = (deployed.witness(question.case, point) for point in attack(question, source)[:TRIED])
    return next((witness for witness in found if witness is not None), None)


def searched(
    question: Question,
    loaded: Loaded,
    bounds: QueryBounds,
    seconds: float,
    plan: Plan | None,
    *,
    exactly: bool,
    barred: bool,
) -> tuple[SearchOutcome, str]:
    """Both ways to split, then a solver; and what it claims, which settles nothing."""
    if not len(question.atoms):
        if crossed(question.case):
            return SearchOutcome("unsat"), ""
        return SearchOutcome("unknown"), ""
    ways: tuple[Way, Way] = ("inputs", "phases") if loaded.stack.inputs <= FEW_INPUTS else ("phases", "inputs")
    until = time.monotonic() + seconds
    outcome, regions = SearchOutcome("timed-out"), 0
    found = choices(question, bounds)
    if found is not None:
        record = None if plan is None else plan.record(loaded.network, question.stack, len(question.atoms))
        outcome = search_choices(question, found, bounds, loaded.deployed, time.monotonic() + seconds / 2, record)
        regions = outcome.regions
        if outcome.answer in ("sat", "unsat"):
            return outcome, ""
    for way, (share, steps) in zip(ways, SHARES, strict=True):
        now = time.monotonic()
        share *= 1.0 if plan is None else PROVING_EXACTLY if plan.exact else PROVING
        record = None if plan is None else plan.record(loaded.network, question.stack, len(question.atoms))
        stop = now + share * (until - now)
        search = QuerySearch(question, loaded.deployed, bounds, way, steps, stop, record, exactly=exactly)
        outcome = search.run()
        regions += outcome.regions
        if outcome.answer in ("sat", "unsat"):
            return replace(outcome, regions=regions), ""
        if outcome.near and plan is None:
            return replace(outcome, regions=regions), ""
    seconds = until - time.monotonic()
    if seconds <= 0 or plan is not None or barred:
        return SearchOutcome(outcome.answer, None, regions), ""
    said, point = last_resort(question, bounds, seconds)
    witness = None if point is None else loaded.deployed.witness(question.case, point)
    if witness is not None:
        return SearchOutcome("sat", witness, regions), ""
    beyond = said.status == "infeasible" or (said.bound is not None and said.bound > 0)
    remark = (
        f"HiGHS claims that there is none ({said.status}, least worst atom {said.bound}): not proved" if beyond else ""
    )
    return SearchOutcome(outcome.answer, None, regions), remark


def searched_again(
    questions: list[Question],
    loaded: Loaded,
    plan: Plan,
    until: float,
    number: int,
    lows: Sequence[Fraction],
    highs: Sequence[Fraction],
    phases: bool,
) -> bytes:
    """The tree of a box for which the checker, or float64, did not follow another; empty when none is found.

    It takes half of the time that is left at the most, and has no planes: signs kept from these can be what misled.
    """
    low = np.array([floor_float(end) for end in lows])
    high = np.array([-floor_float(-end) for end in highs])
    question = replace(questions[number], low=low, high=high)
    bounds = QueryBounds(loaded.stack, low, high, UPPER_SLOPES)
    record = plan.record(loaded.network, loaded.stack, len(question.atoms))
    way: Way = "phases" if phases and loaded.stack.inputs > FEW_INPUTS else "inputs"
    half = (time.monotonic() + until) / 2
    outcome = QuerySearch(question, loaded.deployed, bounds, way, SHARES[0][1], half, record, planes=False).run()
    return record.encoded() if outcome.answer == "unsat" else b""


def crossed(case: Case) -> bool:
    return any(low > high for low, high in zip(case.low, case.high, strict=True))
