"""What TextAttack 0.3.11 found on the same texts, swaps and network, stored; ours must take the same decisions.

GreedyWordSwapWIR("delete") stands beside `textfooler`, GreedySearch beside `greedy`, BeamSearch(4) beside `beam`; no
constraint but RepeatModification. `textattack_0_3_11.json` holds the sentence that each ended with, null for none.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_runs import results
from joined_example import write_joined

from swapproof.verifier.cli import main

STORED = json.loads(Path(__file__).with_name("textattack_0_3_11.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_joined(tmp_path_factory.mktemp("textattack") / "task")


@pytest.mark.parametrize("method", ["textfooler", "greedy", "beam"])
def test_the_same_sentences_are_found(method: str, task: Path, tmp_path: Path) -> None:
    assert main(["attack", str(task), "--method", method, "--out", str(tmp_path / "run")]) == 0
    ours = {line["text"]: line["witness"] and line["witness"]["sentence"] for line in results(tmp_path / "run")}
    assert len(STORED) == 46
    assert {row["text"]: row[method] for row in STORED} == {row["text"]: ours[row["text"]] for row in STORED}
