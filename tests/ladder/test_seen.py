"""What a run says of its model is asked of a model that was read and of one that was not, by one type."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from swapproof.verifier.counting.whole_runs import measuring_runs as measuring
from swapproof.verifier.counting.whole_runs.black_box import BlackBox
from swapproof.verifier.ladder.model_trial import Seen, Trial
from swapproof.verifier.runs import life


def test_both_kinds_have_all_that_a_run_asks_for() -> None:
    asked = {name for name in vars(Seen) if not name.startswith("_")}
    assert asked == {"model", "batch_dependence", "remarks", "facts"}
    for kind in (Trial, BlackBox):
        assert asked <= {*vars(kind), *kind.__dataclass_fields__}


def test_what_begins_a_run_takes_either_and_nothing_is_passed_off_as_another() -> None:
    assert inspect.signature(life.settling_facts).parameters["trial"].annotation == "Seen"
    tree = ast.parse(Path(inspect.getfile(measuring)).read_text())
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert "cast" not in names
