"""Radii of one word beside those of the textbook's integer program, solved by Gurobi."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from radius_programs import radius_by_program
from vector_models import flat_model, write

from swapproof.verifier.radius.ends.high_ends import HighEnds
from swapproof.verifier.radius.ends.text_place import TextPlace
from swapproof.verifier.radius.radius_run import measure_msr
from swapproof.verifier.radius.radius_setting import RadiusQuestion, RadiusSetting
from swapproof.verifier.tasks.task import read_task

TOLERANCE = 1e-5
"""Of the solver."""


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_an_outside_solver_finds_the_same_radii(tmp_path: Path, norm: str) -> None:
    pytest.importorskip("gurobipy")
    task = write(tmp_path / "task", flat_model(11, width=3, hidden=8))
    measure_msr(task, tmp_path / "run", norm, seconds=3.0, limit=2)
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    setting = RadiusSetting.of(read_task(task), tmp_path / "task")
    question = RadiusQuestion("l2" if norm == "l2" else "linf", "one")
    compared = 0
    for line, text in zip(lines, setting.inputs.texts, strict=False):
        at = TextPlace(setting, question, text, setting.widths("raw"), line["diameter"], 0.0)
        for part in line["words"]:
            each = HighEnds(at).begun((part["position"],), [1 - text.label], look=False)
            found = radius_by_program(each.moving.stack, each.balls[0])
            if found is None:
                assert part["high"] is None or part["high"] > 7.9
                continue
            compared += 1
            assert part["low"] <= found * (1 + TOLERANCE)
            assert part["high"] is None or found <= part["high"] * (1 + TOLERANCE)
            assert not part["exact"] or part["low"] >= 0.998 * found
    assert compared > 3
