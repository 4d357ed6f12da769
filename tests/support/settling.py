"""Texts settled by engines on the ladder, their proofs checked, for tests of engines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from oracles import least_swaps_deployed, least_swaps_over_reals, loaded, query_of
from random_networks import Sample, swap_spaces

from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.query import Query
from swapproof.encodings.word_options import inputs_of, words_of
from swapproof.proofs.check import check_certificate
from swapproof.proofs.lower import read_model
from swapproof.proofs.onnx_file import Refused, Unusable
from swapproof.proofs.writing.certificate import Count, File, Input, Lower, Node, Statement, Word, write_certificate
from swapproof.verifier.engines.protocol import Bound, Budget, Engine
from swapproof.verifier.ladder.climbing import Check, climb
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.text_verdict import Verdict

Choices = tuple[tuple[int, ...], ...]


@dataclass
class Looks(Budget):
    """A clock that shows so many looks to be within the time: the same interruption every time."""

    left: int = 0

    @property
    def seconds_left(self) -> float:
        self.left -= 1
        return float(self.left)


def settle(query: Query, replay: Replay, *engines: Engine, check: Check = lambda bound: None) -> Verdict:
    verdict = climb(query, replay, engines, Budget(), check)
    assert verdict.contradiction is None, verdict.contradiction
    return verdict


def expect_truth(verdict: Verdict, query: Query, replay: Replay) -> None:
    """The interval is what onnxruntime says of every sentence; where rounding decides, it is not contradicted."""
    real, deployed = least_swaps_over_reals(query), least_swaps_deployed(query, replay)
    interval, ceiling = verdict.interval, verdict.interval.ceiling
    assert interval.low_float32 <= (ceiling if deployed is None else deployed)
    if verdict.status in ("ambiguous", "open"):
        assert real != deployed or verdict.status == "ambiguous"
        return
    if interval.high is not None:
        assert interval.high == deployed
    assert interval.low <= (ceiling if real is None else real)
    assert interval.low == (ceiling if deployed is None else deployed) or real != deployed


def statement_of(query: Query, model: bytes, **claims: Lower | Count) -> Statement:
    """What a certificate of the query says, about a text and a vocabulary that play no part here."""
    inputs, words = inputs_of(query.space), words_of(query.space)
    try:
        network = read_model(model).lower(inputs, words).sha256
    except (Refused, Unusable):
        network = "0" * 64
    return Statement(
        id=0,
        model=File("model.onnx", hashlib.sha256(model).hexdigest()),
        tensors=(),
        vocabulary=None,
        text="0" * 64,
        synonyms=None,
        network=network,
        inputs=tuple(Input("words", integers) for _, integers in inputs),
        words=tuple(Word(*word) for word in words),
        label=query.label,
        rivals=query.rivals,
        **claims,  # type: ignore[arg-type]
    )


def checked_by(model: Model, query: Query) -> Check:
    """The checker of certificates, as the ladder asks it."""
    data = model.path.read_bytes()
    read = read_model(data)

    def check(bound: Bound) -> str | None:
        lower = Lower(bound.low - 1, bound.level, bound.tree)
        try:
            check_certificate(write_certificate(statement_of(query, data, lower=lower)), read)
        except Refused as error:
            return str(error)
        except Unusable:
            return None  # the model is beyond the checker: nothing is claimed of it
        return None

    return check


def case(data: st.DataObject, sample: Sample, folder: str, most_choices: int = 3) -> tuple[Model, Query, Replay]:
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary, most_choices=most_choices))
    model, replay = loaded(sample, Path(folder))
    return model, query_of(model, choices, data.draw(st.integers(0, sample.classes - 1))), replay


def all_choices(sample: Sample) -> Choices:
    return tuple(tuple(range(sample.vocabulary)) for _ in range(sample.length))


def nodes_of(tree: Node) -> list[Node]:
    found: list[Node] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += [getattr(node, side) for side in ("left", "right", "inner") if hasattr(node, side)]
    return found


def paper_network(
    source: int,
    operator: str,
    classes: int,
    positions: int = 9,
    hidden: int = 10,
    second: int = 0,
    spread: float = 4.0,
) -> Sample:
    """Embedding, flatten, one hidden layer or two, with biases that make class 0 win by a few swaps."""
    random = np.random.default_rng(source)
    arrays = {
        "table": random.normal(size=(8, 2)),
        "w": random.normal(size=(2 * positions, hidden)) / spread,
        "b": random.normal(size=hidden) / 4,
        "v": random.normal(size=(second or hidden, classes)),
        "c": np.array([2.5, *random.normal(size=classes - 1)]),
    }
    last = "y"
    between = []
    if second:
        arrays |= {"w2": random.normal(size=(hidden, second)) / 2, "b2": random.normal(size=second) / 4}
        between = [helper.make_node("Gemm", ["y", "w2", "b2"], ["z2"]), helper.make_node("Relu", ["z2"], ["y2"])]
        last = "y2"
    kwargs: dict[str, Any] = {"alpha": 0.25} if operator == "LeakyRelu" else {}
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "tokens"], ["x"]),
            helper.make_node("Flatten", ["x"], ["flat"]),
            helper.make_node("Gemm", ["flat", "w", "b"], ["z"], name="first"),
            helper.make_node(operator, ["z"], ["y"], name="hidden", **kwargs),
            *between,
            helper.make_node("Gemm", [last, "v", "c"], ["logits"]),
        ],
        "paper",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", positions])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", classes])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Sample(made, positions, 8, classes, ("paper",), source, "batch")


@dataclass(frozen=True)
class Long:
    """A text whose search is long enough to be stopped anywhere."""

    source: int
    classes: int = 2
    operator: str = "Relu"
    second: int = 0
    positions: int = 8
    hidden: int = 10

    def made(self, folder: Path) -> tuple[Model, Query, Replay]:
        sample = paper_network(self.source, self.operator, self.classes, self.positions, self.hidden, self.second)
        model, replay = loaded(sample, folder)
        choices = tuple(tuple((first + step) % 8 for step in range(3)) for first in range(sample.length))
        label = int(replay.answers(np.array([[row[0] for row in choices]]))[0])
        return model, query_of(model, choices, label), replay


JOINT = Long(33, positions=9, hidden=20)
DEEP = Long(4, second=5)
CLASSES = Long(10, classes=3, operator="LeakyRelu")
"""Measured: their proofs have 150 to 600 nodes, that of three classes 30."""
