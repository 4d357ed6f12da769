"""One query from file to answer: attack every case, then search each, then ask a solver for a witness."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from swapproof.encodings.errors import BadInput, Disagreement
from swapproof.encodings.linear_property import Case, Property
from swapproof.encodings.network import Network
from swapproof.encodings.numeric_input import NumericModel, numeric_network, open_numeric
from swapproof.encodings.stack import Stack, stack_of
from swapproof.encodings.vnnlib import read_vnnlib

from .attack import attack
from .bounds import Bounds
from .last_resort import last_resort
from .question import Question
from .search import Answer, Outcome, Search, Way
from .witness import Deployed, Witness

FEW_INPUTS = 10
"""Up to so many, halving boxes is tried before splitting neurons."""
SHARES = ((0.8, 4), (0.5, 4))
"""Of the time left: for the first and the second way to split, with so many steps of ascent."""
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


@dataclass(frozen=True)
class Verdict:
    answer: Answer
    witness: Witness | None
    seconds: float
    regions: int = 0
    remarks: tuple[str, ...] = ()


@dataclass
class Verifier:
    """Keeps the models it has loaded."""

    loaded: dict[Path, Loaded] = field(default_factory=dict)

    def load(self, path: Path) -> Loaded:
        path = path.absolute()
        if path not in self.loaded:
            model = open_numeric(path)
            network = numeric_network(model)
            found = Loaded(model, network, stack_of(network), Deployed.open(model))
            self.loaded[path] = found
        return self.loaded[path]

    def verify(self, query: Path, model: Path, seconds: float) -> Verdict:
        began = time.monotonic()
        property = read_vnnlib(query)
        loaded = self.load(model)
        check_shapes(property, loaded)
        check_agreement(property, loaded)
        return settled(property, loaded, began, seconds)


def check_shapes(property: Property, loaded: Loaded) -> None:
    pairs = (
        ("input", property.inputs, loaded.model.shape),
        ("output", property.outputs, loaded.network.nodes[-1].shape),
    )
    for side, tensor, shape in pairs:
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


def check_agreement(property: Property, loaded: Loaded) -> None:
    """The stack against onnxruntime, on inputs of the first box."""
    if not property.cases:
        return
    low, high = (np.array([float(v) for v in end]) for end in (property.cases[0].low, property.cases[0].high))
    points = low + (high - low) * np.random.default_rng(0).random((AGREEING, len(low)))
    x = points.astype(loaded.model.kind)
    ours = loaded.stack.values(x.astype(np.float64))[1]
    size = loaded.stack.output.bias_size + 1.0 + np.abs(ours).max(axis=0)
    for row in range(AGREEING):
        apart = np.abs(loaded.deployed.output(x[row]).astype(np.float64) - ours[row])
        if not (apart <= APART * size).all():
            raise Disagreement(
                f"{loaded.model.path}: onnxruntime and the network as it was read differ by {float(apart.max()):.3g}"
            )


def settled(property: Property, loaded: Loaded, began: float, seconds: float) -> Verdict:
    until = began + seconds
    source = np.random.default_rng(0)
    remarks = []
    if loaded.network.inexact:
        remarks.append(f"rounded constants ({', '.join(loaded.network.inexact)}): unsat is of the rounded network")
    regions = 0

    def verdict(answer: Answer, witness: Witness | None = None) -> Verdict:
        return Verdict(answer, witness, time.monotonic() - began, regions, tuple(dict.fromkeys(remarks)))

    questions = [Question.of(loaded.stack, case) for case in property.cases]
    for question in questions:
        if time.monotonic() > began + ATTACK_SHARE * seconds:
            break
        witness = attacked(question, loaded.deployed, source)
        if witness is not None:
            return verdict("sat", witness)
    answers: list[Answer] = []
    roots: dict[bytes, Bounds] = {}
    for number, question in enumerate(questions):
        box = question.low.tobytes() + question.high.tobytes()
        if box not in roots:
            roots = {box: Bounds(loaded.stack, question.low, question.high)}
        rest = (until - time.monotonic()) / (len(questions) - number)
        outcome, remark = searched(question, loaded, roots[box], max(0.0, rest))
        regions += outcome.regions
        if outcome.answer == "sat":
            return verdict("sat", outcome.witness)
        if remark:
            remarks.append(remark)
        answers.append(outcome.answer)
    if all(answer == "unsat" for answer in answers):
        return verdict("unsat")
    return verdict("timed-out" if time.monotonic() >= until else "unknown")


def attacked(question: Question, deployed: Deployed, source: np.random.Generator) -> Witness | None:
    if not len(question.atoms):
        return deployed.witness(question.case, (question.low + question.high) / 2)
    found = (deployed.witness(question.case, point) for point in attack(question, source)[:TRIED])
    return next((witness for witness in found if witness is not None), None)


def searched(question: Question, loaded: Loaded, bounds: Bounds, seconds: float) -> tuple[Outcome, str]:
    """Both ways to split, then a solver; and what it claims, which settles nothing."""
    if not len(question.atoms):
        if crossed(question.case):
            return Outcome("unsat"), ""
        return Outcome("unknown"), f"no {loaded.model.kind} input lies inside a box"
    ways: tuple[Way, Way] = ("inputs", "phases") if loaded.stack.inputs <= FEW_INPUTS else ("phases", "inputs")
    until = time.monotonic() + seconds
    regions = 0
    outcome = Outcome("timed-out")
    for way, (share, steps) in zip(ways, SHARES, strict=True):
        now = time.monotonic()
        search = Search(question, loaded.deployed, bounds, way, steps, now + share * (until - now))
        outcome = search.run()
        regions += outcome.regions
        if outcome.answer in ("sat", "unsat"):
            return Outcome(outcome.answer, outcome.witness, regions), ""
    seconds = until - time.monotonic()
    if seconds <= 0:
        return Outcome(outcome.answer, None, regions), ""
    said, point = last_resort(question, bounds, seconds)
    witness = None if point is None else loaded.deployed.witness(question.case, point)
    if witness is not None:
        return Outcome("sat", witness, regions), ""
    beyond = said.status == "infeasible" or (said.bound is not None and said.bound > 0)
    remark = (
        f"HiGHS claims that there is none ({said.status}, least worst atom {said.bound}): not proved" if beyond else ""
    )
    return Outcome(outcome.answer, None, regions), remark


def crossed(case: Case) -> bool:
    return any(low > high for low, high in zip(case.low, case.high, strict=True))
