"""What several runs say of one network is compared: contradictions are found, and what fits is none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from swapproof.verifier.papers.paper_agreement import compared

SPACE = [["good", "fine"], ["film", "movie"]]


def left(folder: Path, *lines: Mapping[str, Any], summary: object = None, choices: Sequence[object] = SPACE) -> Path:
    """A run of the network `m` about one text."""
    folder.mkdir()
    question: object = next((line.pop("question") for line in map(dict, lines) if "question" in line), {})
    manifest = {"sha256": {"model": "m", "texts": "t"}, "settings": {"question": question}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "summary.json").write_text(json.dumps(summary or {}))
    rows = [{"id": 0, "text": "good film", "predicted": 1, **line} for line in lines]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "spaces.jsonl").write_text(json.dumps({"id": 0, "choices": choices}) + "\n")
    return folder


def swaps(low: int | None, high: int | None) -> dict[str, Any]:
    return {"min_swaps": {"low": low, "high": high}}


def differences(home: Path, *runs: Path) -> list[str]:
    return compared(runs, home).disagreements


def test_an_attack_may_not_break_what_is_proved(tmp_path: Path) -> None:
    proved = left(tmp_path / "proved", swaps(2, 2))
    assert differences(tmp_path, proved, left(tmp_path / "fits", swaps(None, 2))) == []
    broken = left(tmp_path / "broken", swaps(None, 1))
    assert differences(tmp_path, proved, broken) == [
        '"good film" withstands 1 swaps by proved, and 1 break it by broken'
    ]


def test_sentences_outside_the_proved_space_contradict_nothing(tmp_path: Path) -> None:
    proved = left(tmp_path / "proved", swaps(3, None))
    typed = left(tmp_path / "typed", swaps(None, 1), choices=[["good", "goood"], ["film"]])
    fewer = left(tmp_path / "fewer", swaps(None, 1), choices=[["good", "fine"], ["film"]])
    assert differences(tmp_path, proved, typed) == []
    assert len(differences(tmp_path, proved, fewer)) == 1


@pytest.mark.parametrize(
    ("share", "minimum", "fits"),
    [((1, 1), (3, 3), True), ((0.5, 0.5), (3, 3), False), ((1, 1), (None, 2), False), ((0.5, 0.5), (1, 2), True)],
)
def test_a_share_of_one_is_robustness(
    share: tuple[float, float], minimum: tuple[int | None, int | None], fits: bool, tmp_path: Path
) -> None:
    fraction = {"low": share[0], "high": share[1], "kind": "exact"}
    counted = left(tmp_path / "counted", {"robust_fraction": fraction, "question": {"radius": 2}})
    assert (differences(tmp_path, counted, left(tmp_path / "certified", swaps(*minimum))) == []) == fits


def test_a_text_has_one_answer(tmp_path: Path) -> None:
    other = left(tmp_path / "other", {**swaps(0, 0), "predicted": 0})
    found = compared([left(tmp_path / "one", swaps(1, 1)), other], tmp_path)
    assert found.texts == 1
    assert found.disagreements[0] == '"good film" has one answer in one and another in other'


def test_a_ball_of_two_words_holds_no_point_of_one(tmp_path: Path) -> None:
    msr = {"quantity": "msr", "question": {"words": "one", "norm": "l2"}}
    one = left(tmp_path / "one", {**msr, "words": [{"position": 0, "low": 0.1, "high": 0.2}]})
    for name, low, number in (("fits", 0.2, 0), ("larger", 0.3, 1)):
        both = left(tmp_path / name, {**msr, "sets": [{"positions": [0, 1], "low": low, "high": 0.4}]})
        assert len(differences(tmp_path, one, both)) == number


def test_rho_is_one_number_and_euba_never_below_it(tmp_path: Path) -> None:
    rho = {"quantity": "kappa", "rho": {"low": 0.8, "high": 0.8}}
    exact = left(tmp_path / "exact", summary=rho)
    euba = left(tmp_path / "euba", summary={**rho, "euba": {"rho": 0.81}})
    assert differences(tmp_path, exact, euba) == []
    low = left(tmp_path / "low", summary={**rho, "euba": {"rho": 0.79}})
    other = left(tmp_path / "other", summary={**rho, "rho": {"low": 0.7, "high": 0.7}})
    assert differences(tmp_path, exact, low) == ["EUBA's rho 0.79 is below the exact one in low"]
    assert differences(tmp_path, exact, other) == ["rho is 0.8 by exact and 0.7 by other"]
