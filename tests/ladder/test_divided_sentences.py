"""A sentence that changes the class in some evaluations and not in all is no witness, and the line tells of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from handmade import node, save
from oracles import query_of
from tiny import write_task

from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.query import Query
from swapproof.proofs.writing.certificate import Enumerate
from swapproof.verifier.audit.line_claims import exaggerations
from swapproof.verifier.cli import main
from swapproof.verifier.engines.engine_table import engines_named
from swapproof.verifier.engines.protocol import Bound, Budget, Doubtful, Findings
from swapproof.verifier.interval import Interval
from swapproof.verifier.ladder.climbing import climb
from swapproof.verifier.ladder.replay import Replay

SUMS = [
    node("Constant", "", "axes", value_ints=[1]),
    node("Gather", "table tokens", "embedded"),
    node("ReduceSum", "embedded axes", "logits", keepdims=0),
]
LOST = [[5, 0], [2**27, 2**27], [0, 3]]
"""The second word for the first, beside the third: 2**27 against 2**27 + 3, which are one float32 number."""


class Doubts:
    """An engine that proves all over the reals, and names a sentence that rounding may break."""

    name = "doubts"

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        yield Bound(interval.ceiling, Enumerate(), "real")
        yield Doubtful(np.array([[1, 0]]))


@pytest.mark.parametrize("engines", ["exact", "enumerate", "exact,enumerate"])
def test_what_breaks_a_text_over_the_reals_only_is_why_it_is_open(engines: str, tmp_path: Path) -> None:
    model = open_model(save(tmp_path, SUMS, {"table": LOST}, length=2))
    query = query_of(model, ((0, 1), (2,)), 0)
    verdict = climb(query, Replay.open(model), engines_named(engines), Budget(), lambda bound: None)
    assert (verdict.status, verdict.interval.high) == ("open", None)
    assert verdict.divided is not None
    assert verdict.divided.swaps == ((0, 1),)
    assert verdict.divided.said == (
        "a sentence with 1 swap changes the class over the reals, not in onnxruntime alone or in a batch"
    )


def test_what_only_a_batch_turns_leaves_an_end_proved_over_the_reals_and_is_told(tmp_path: Path) -> None:
    """The deployed model answers class 1 wherever a neighbour holds a greater number than the sentence itself."""
    among = [
        node("Gather", "table tokens", "embedded"),
        node("ReduceMax", "embedded", "top", axes=[0], keepdims=1),
        node("Sub", "top embedded", "behind"),
        node("Flatten", "behind", "flat", axis=1),
        node("Gemm", "flat w b", "logits"),
    ]
    weights = {"table": [[0], [1]], "w": [[0, 1]] * 2, "b": [0.5, 0]}
    deployed = Replay.open(open_model(save(tmp_path, among, weights, length=2)))
    (tmp_path / "read").mkdir()
    read = open_model(save(tmp_path / "read", SUMS, {"table": [[9, 0], [1, 0]]}, length=2))
    verdict = climb(query_of(read, ((0, 1), (0,)), 0), deployed, (Doubts(),), Budget(), lambda bound: None)
    assert (verdict.status, verdict.level) == ("unbreakable", "real")
    assert verdict.divided is not None
    assert verdict.divided.said == (
        "a sentence with 1 swap changes the class in a batch, not over the reals or in onnxruntime alone"
    )


def test_the_line_names_the_sentence_and_is_accepted(tmp_path: Path) -> None:
    """Said of an end that is proved for every float32 evaluation it would be refused."""
    task = write_task(tmp_path, rows=[("good film", "negative"), ("awful film", "negative")])
    table = np.zeros((12, 2))
    table[[2, 3, 5, 6, 7, 8, 9]] = [LOST[0], LOST[1], LOST[0], LOST[0], LOST[0], LOST[2], LOST[2]]
    save(tmp_path, SUMS, {"table": table}, length=6)
    run = tmp_path / "run"
    main(["certify", str(task), "--out", str(run)])
    divided, sure = (json.loads(line) for line in (run / "results.jsonl").read_text().splitlines())
    assert (divided["status"], divided["rounding"].rpartition(": ")[2]) == ("open", "fine film")
    assert (sure["status"], sure["level"], "rounding" in sure) == ("unbreakable", "float32", False)
    assert main(["check", str(run)]) == 0
    statement = json.loads((run / sure["certificate"]).read_text())
    said = list(exaggerations(sure | {"rounding": divided["rounding"]}, 1, statement, 2))
    assert len(said) == 1
    assert "that rounding decides" in said[0]
