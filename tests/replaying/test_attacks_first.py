"""Attacks as engines of models that are run: high ends that stand, and the enumeration after them where it is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_runs import Capture, results
from tiny import write_task

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.verifier.cli import main
from swapproof.verifier.replaying.attacks_first import ABLE, engines_of_running


def run_task(folder: Path) -> Path:
    return write_task(folder, model_road="run", model_split="whitespace")


def test_engines_of_a_model_that_is_run_are_attacks_and_then_the_enumeration() -> None:
    assert engines_of_running(None, None) == ("greedy", "simple")
    assert engines_of_running("pdp, textfooler,greedy,simple", None) == ("pdp", "textfooler", "greedy", "simple")
    with pytest.raises(Unsupported, match="hotflip needs gradients"):
        engines_of_running("hotflip,simple", None)
    with pytest.raises(Unsupported, match=r"'exact' is no engine of models that are run, .*run \(it divides\)"):
        engines_of_running("pdp,exact", "it divides")
    with pytest.raises(Unsupported, match="did you mean local"):
        engines_of_running("locall", None)
    for names in ("simple,pdp", "greedy,pdp,simple", "pdp,pdp", "pdp,", ""):
        with pytest.raises(BadInput):
            engines_of_running(names, None)


@pytest.mark.parametrize("attack", ["textfooler", "pwws", "best", "mcts"])
def test_an_attack_gives_high_ends_and_the_enumeration_closes_them(attack: str, tmp_path: Path) -> None:
    assert attack in ABLE
    task = run_task(tmp_path / "task")
    runs = {}
    for name, engines in {"usual": None, "alone": attack, "both": f"{attack},simple"}.items():
        out = tmp_path / name
        options = [] if engines is None else ["--engines", engines]
        code = main(["certify", str(task), "--out", str(out), *options])
        runs[name] = results(out)
        assert code == 0
        assert main(["check", str(out), "--quiet"]) in (0, 3)
    assert [line["min_swaps"] for line in runs["both"]] == [line["min_swaps"] for line in runs["usual"]]
    for line, least in zip(runs["alone"], runs["usual"], strict=True):
        high, exact = line["min_swaps"]["high"], least["min_swaps"]["high"]
        assert high is None or high >= exact
        if not line["candidates"]:
            continue
        assert line["min_swaps"]["low"] <= 1
        assert line["status"] in ("open", "exact")
        if high and line["status"] == "open":
            assert line["reason"] == "only attacks were asked for, and they prove nothing"
        assert high is None or line["engine"] == attack
    assert any(line["min_swaps"]["high"] for line in runs["alone"])


def test_engines_that_are_none_are_one_line_before_anything_is_written(tmp_path: Path, capsys: Capture) -> None:
    task = run_task(tmp_path / "task")
    assert main(["certify", str(task), "--engines", "gurobi", "--out", str(tmp_path / "run")]) == 2
    assert "'gurobi' is no engine of models that are run" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert main(["certify", str(task), "--engines", "best", "--out", str(tmp_path / "run")]) == 0
    facts = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert "best" in json.dumps(facts)
