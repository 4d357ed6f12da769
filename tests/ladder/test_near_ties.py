"""Smooth networks at the edge of what is proved: sentences that nearly break a text, and numbers that are too large."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from handmade import MLP, node, save

from swapproof.encodings.errors import Unsupported
from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.writing.certificate import encode_tree
from swapproof.verifier.engines.engine_table import SMOOTH
from swapproof.verifier.engines.protocol import Bound, Budget
from swapproof.verifier.ladder.climbing import climb
from swapproof.verifier.ladder.model_trial import refuse_immense
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.text_verdict import Verdict
from swapproof.verifier.screening.smooth_proofs import screen_smooth

SPACE = SwapSpace(((0, 1), (0, 1, 2), (0, 2)))
NODES = [*MLP[:3], node("Tanh", "before", "hidden"), MLP[4]]
MOST = float(np.tanh(2.5))
"""Logits: a constant against tanh of the sum of 0, 0, 0, which swaps make 2.5 at most."""


def climbed(folder: Path, constant: float, growth: float = 1.0) -> tuple[Verdict, Query]:
    weights = {
        "table": [[0.0], [1.0], [0.5]],
        "w1": [[1.0]] * 3,
        "b1": [0.0],
        "w2": [[0.0, growth]],
        "b2": [constant, 0.0],
    }
    model = open_model(save(folder, NODES, weights, length=3))
    query = Query.of(network_for(model, SPACE, smooth=True), SPACE, 0)
    sizes = [len(own) for own in question_of(query).tokens]

    def check(bound: Bound) -> str | None:
        tree = encode_tree(bound.tree, sizes, query.rivals)
        screen_smooth(query, tree, sizes, bound.low - 1, bound.level, time.monotonic() + 60)
        return None

    return climb(query, Replay.open(model).of(SPACE), SMOOTH, Budget(), check), query


def test_what_nearly_breaks_a_text_is_replayed_and_then_proved(tmp_path: Path) -> None:
    """A margin of 3e-5 is one that rounding in other networks turns round: the model is asked itself, too."""
    near, _ = climbed(tmp_path, MOST + 3e-5)
    assert (near.status, near.interval.low) == ("unbreakable", 4)
    clear, _ = climbed(tmp_path, MOST + 0.1)
    assert (clear.status, clear.interval.low) == ("unbreakable", 4)
    broken, _ = climbed(tmp_path, MOST - 3e-5)
    assert (broken.status, broken.interval.low, broken.interval.high) == ("exact", 3, 3)


def test_what_only_rounding_tells_from_a_tie_stays_open(tmp_path: Path) -> None:
    tied, _ = climbed(tmp_path, MOST + 2e-7)
    assert (tied.status, tied.interval.high) == ("open", None)
    assert "within rounding" in (tied.reason or "")


def test_numbers_too_large_for_a_proof_are_met_before_a_run_or_leave_a_text_open(tmp_path: Path) -> None:
    """Not an answer that did not check: the checkers refuse numbers of 2**40 and more, and say nothing else of them. A
    low end of 0 then claims no more than the weakest level."""
    verdict, query = climbed(tmp_path, 2e13, 1e13)
    assert verdict.contradiction is None
    assert (verdict.status, verdict.level) == ("open", "real")
    assert "too large" in (verdict.reason or "")
    with pytest.raises(Unsupported, match="and more between its layers, as huge weights make them"):
        refuse_immense(open_model(tmp_path / "model.onnx"), query.network, SPACE)
