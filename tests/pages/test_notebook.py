"""The notebook runs from its first cell to its last, and what a run shows in one says what the run found."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from tiny import write_task

from swapproof.verifier import load
from swapproof.verifier.pages.headline import headline
from swapproof.verifier.roads import certify

NOTEBOOK = Path(__file__).parents[2] / "verifier" / "first_steps.ipynb"


def shown(source: str, names: dict[str, Any]) -> Any:
    """What a cell leaves: the value of its last expression, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    value: Any = (
        None if not isinstance(last, ast.Expr) else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    )
    return value._repr_html_() if hasattr(value, "_repr_html_") else value


def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    names: dict[str, Any] = {}
    values = [shown("".join(cell["source"]), names) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert "95 % interval for the population" in values[0]
    assert "<table" in values[1]
    assert values[-1][0] in (0, 1)


def test_a_run_is_shown_with_its_claim_and_its_texts(tmp_path: Path) -> None:
    outcome = certify(write_task(tmp_path / "task"), tmp_path / "run")
    claim = headline(outcome.summary)
    assert claim is not None
    assert claim.sentence.replace(">", "&gt;") in outcome._repr_html_() == load(tmp_path / "run")._repr_html_()
    pytest.importorskip("pandas")
    frame = outcome.to_pandas()
    assert list(frame["id"]) == list(range(8))
    assert list(load(tmp_path / "run").to_pandas()["low"]) == list(frame["low"])


def test_names_of_users_are_no_markup(tmp_path: Path) -> None:
    outcome = certify(write_task(tmp_path / "task"), tmp_path / "<b>run")
    assert "<b>run" not in outcome._repr_html_()
