"""Every attack under every constraint: no sentence that is reported breaks one, counted here and not by the product."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from masked_folder import write_masked
from numpy.typing import NDArray
from tiny import LENGTH, SYNONYMS, WORDS, write_task

from swapproof.verifier.attacks.attack_goals import Goal
from swapproof.verifier.attacks.attack_limits import Limits
from swapproof.verifier.attacks.attack_run import AttackOptions, ahead, prepared
from swapproof.verifier.attacks.recipes import RECIPES
from swapproof.verifier.runs.life import begun
from swapproof.verifier.runs.run_folder import Run
from swapproof.verifier.tasks.task import read_task

ROWS = [
    ("a good film", "positive"),
    ("the great good movie", "positive"),
    ("awful movie", "negative"),
    ("bad film the good", "negative"),
    ("the a good fine film movie", "positive"),
]
STOPPED = ("film", "great", "fine")
ASKED: dict[str, dict[str, Any]] = {
    "fewer candidates and swaps": {"k_max": 1, "rho_max": "0.34"},
    "swaps rounded up, and requests": {"rho_max": "0.34", "rho_up": True, "queries": 7},
    "requests by words, and similarity": {"k_max": 2, "q_max": True, "similarity": 0.7},
    "perplexity": {"perplexity": 0.95},
    "all, a class, and stop words": {
        **{"k_max": 2, "q_max": True, "rho_max": "0.5", "queries": 11, "similarity": 0.6, "perplexity": 1.2},
        **{"target": 0, "stopped": True},
    },
    "a class and stop words": {"target": 0, "stopped": True},
}


@dataclass(frozen=True)
class Unigrams:
    """A language model: the longer a word the rarer it is."""

    name: str = "unigrams"

    def perplexities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([math.exp(np.mean([len(word) for word in text.split()])) for text in texts])


def letters(texts: Sequence[str]) -> NDArray[np.float64]:
    """An encoder: how often each letter stands there, as a vector of length 1."""
    counts = np.array(
        [[text.lower().count(chr(97 + place)) for place in range(26)] for text in texts], dtype=np.float64
    )
    return np.asarray(counts / np.linalg.norm(counts, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kept")
    (made / "stops.txt").write_text("\n".join(STOPPED))
    (made / "kappa.csv").write_text("word,low,high\n" + "".join(f"{word},1,2\n" for word in WORDS[2:9]))
    (made / "masked").mkdir()
    return made


@functools.cache
def answers_of(model: Path) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(str(model))


def answer(model: Path, sentence: str) -> int:
    """Of the deployed model, to the sentence read here by white space."""
    tokens = [WORDS.index(word) if word in WORDS else 1 for word in sentence.lower().split()][:LENGTH]
    scores = answers_of(model).run(None, {"tokens": np.array([tokens + [0] * (LENGTH - len(tokens))])})[0]
    return int(scores[0].argmax())


@pytest.mark.parametrize("method", RECIPES)
def test_no_constraint_is_violated(method: str, folder: Path, tmp_path: Path) -> None:
    recipe = RECIPES[method]
    masked = recipe.transformation in ("masked", "in place")
    if masked and not (folder / "masked" / "config.json").exists():
        pytest.importorskip("transformers")
        write_masked(folder / "masked", WORDS[2:])
    found = 0
    for name, asked in ASKED.items():
        limits = {key: value for key, value in asked.items() if key not in ("target", "stopped")}
        target, stopped = asked.get("target"), STOPPED if asked.get("stopped") else ()
        changes = {"swaps_stop_words": str(folder / "stops.txt")} if stopped else {}
        task = read_task(write_task(tmp_path / "task", ROWS, model_split="whitespace", **changes))
        options = AttackOptions(
            limits=Limits(**limits),
            kappa=folder / "kappa.csv" if method == "sp-attack" else None,
            language_model=folder / "masked" if masked else None,
        )
        plan, work = prepared(Run(tmp_path / name), task, method, Goal(target), options)
        work = replace(work, causal_model=folder if "perplexity" in limits else None)
        with begun(plan, resume=True):
            station = (ahead(plan, work) if work.tokens is not None else work).open()
            station.__dict__["encoder"], station.__dict__["causal"] = letters, Unigrams()
            for text in plan.inputs.texts:
                line = station.settle(text).line
                spent(line, limits)
                if line["witness"] and line["min_swaps"]["high"]:
                    found += 1
                    kept(line, limits, stopped, task_swaps=recipe.transformation == "task")
                    reached = answer(tmp_path / "task" / "model.onnx", line["witness"]["sentence"])
                    assert reached == target if target is not None else reached != text.label
    assert found > 3


def spent(line: Mapping[str, Any], limits: Mapping[str, Any]) -> None:
    words = len(line["text"].split())
    if "queries" in limits:
        assert line["requests"] <= limits["queries"]
    if limits.get("q_max"):
        assert line["requests"] <= limits["k_max"] * words
    assert line["evaluations"] <= line["requests"]


def kept(line: Mapping[str, Any], limits: Mapping[str, Any], stopped: Sequence[str], *, task_swaps: bool) -> None:
    """Words are changed once each, and are those that the witness names; and no limit is broken."""
    before, witness = line["text"].split(), line["witness"]
    places = [swap["position"] for swap in witness["swaps"]]
    assert len(set(places)) == len(places) == line["min_swaps"]["high"]
    after = list(before)
    for swap in witness["swaps"]:
        assert swap["from"] == before[swap["position"]] != swap["to"]
        after[swap["position"]] = swap["to"]
        assert swap["from"].lower() not in stopped
        assert swap["to"].lower() not in stopped
        if task_swaps:
            options = [one for one in SYNONYMS[swap["from"]] if one not in stopped]
            assert swap["to"] in options[: limits.get("k_max")]
    sentence = " ".join(after)
    assert witness["sentence"] == sentence
    if "rho_max" in limits:
        most = Fraction(limits["rho_max"]) * len(before)
        assert len(places) <= (math.ceil(most) if limits.get("rho_up") else math.floor(most))
    if "similarity" in limits:
        one, other = letters([line["text"], sentence])
        assert 1 - math.acos(min(1.0, float(one @ other))) / math.pi >= limits["similarity"] - 1e-9
    if "perplexity" in limits:
        one, other = Unigrams().perplexities([line["text"], sentence])
        assert other / one <= limits["perplexity"] + 1e-9


def test_the_filters_of_the_task_hold_for_whatever_words_an_attack_brings(folder: Path, tmp_path: Path) -> None:
    """Typing errors and words by kappa: stop words stay, and stand nowhere new; others have candidates."""
    task = write_task(tmp_path / "task", ROWS, model_split="whitespace", swaps_stop_words=str(folder / "stops.txt"))
    for method in ("deepwordbug", "textbugger", "sp-attack"):
        options = AttackOptions(kappa=folder / "kappa.csv")
        plan, _ = prepared(Run(tmp_path / method), read_task(task), method, Goal(), options)
        spaces = [words for text in plan.inputs.texts for words in text.frozen.words]
        assert all(len(words) == 1 for words in spaces if words[0] in STOPPED)
        assert not any(word in STOPPED for words in spaces for word in words[1:])
        assert any(len(words) > 3 for words in spaces)
        assert json.loads(plan.inputs.freezing.texts[0].line)["choices"]
