"""Any Python function can be sampled: what is found encloses what enumeration counts, and is the same again."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.verifier import sample_pr
from swapproof.verifier.counting.stopping import Stop

Ids = NDArray[np.int64]
CHOICES = [[1, 4, 8], [2], [6, 3], [5, 9, 7, 12]]
TEXTS = [(CHOICES, 0), ([[3, 2], [9]], 1), ([[1, 2]], 0), ([[7]], 1)]


def odd_sums(ids: Ids) -> Any:
    """A classifier nobody can look into."""
    return ids.sum(axis=1) % 3 % 2


@pytest.fixture
def larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are drawn, as of spaces that have more sentences than that."""
    monkeypatch.setattr(Stop, "lists", lambda self, total: False)


def by_hand(choices: list[list[int]], label: int, radius: int) -> Fraction:
    kept = [
        int(odd_sums(np.array([row]))[0]) == label
        for row in product(*choices)
        if sum(one != options[0] for one, options in zip(row, choices, strict=True)) <= radius
    ]
    return Fraction(sum(kept), len(kept))


@pytest.mark.parametrize("radius", [0, 2, 9])
@pytest.mark.usefixtures("larger")
def test_intervals_enclose_what_enumeration_counts(radius: int) -> None:
    found = sample_pr(odd_sums, TEXTS, radius, name="odd sums", samples=3000)
    shares = []
    for line, (choices, label) in zip(found.lines, TEXTS, strict=True):
        assert line["predicted"] == odd_sums(np.array([[row[0] for row in choices]]))[0]
        if line["predicted"] != label:
            assert (line["status"], line["robust_fraction"]) == ("already_wrong", None)
            continue
        fraction, truth = line["robust_fraction"], by_hand(choices, label, radius)
        shares.append(truth)
        assert (line["status"], line["level"]) == ("sampled", "replay")
        assert fraction["low"] <= truth <= fraction["high"]
        assert fraction["sample"]["samples"] == 3000
        assert "clopper_pearson" in fraction["sample"]
    summary = found.summary
    assert summary["already_wrong"] == len(TEXTS) - len(shares)
    assert summary["robust_fraction"]["low"] <= sum(shares) / len(shares) <= summary["robust_fraction"]["high"]
    assert summary["confidence"] == 0.995


@pytest.mark.usefixtures("larger")
def test_the_same_call_draws_the_same_samples_and_another_name_others() -> None:
    one, two, other = (
        sample_pr(odd_sums, TEXTS, 2, name=name, samples=500, batch=batch).lines[0]["robust_fraction"]
        for name, batch in (("one", 64), ("one", 7), ("other", 64))
    )
    assert one == two
    assert one["sample"]["seed"] != other["sample"]["seed"]


def test_a_space_no_larger_than_the_sample_is_counted() -> None:
    for line, (choices, label) in zip(sample_pr(odd_sums, TEXTS, 2, name="odd sums").lines, TEXTS, strict=True):
        if line["robust_fraction"] is not None:
            truth = by_hand(choices, label, 2)
            assert (line["status"], line["robust_fraction"]["low"]) == ("exact", float(truth))
            assert (
                line["evaluations"]
                == line["robust_fraction"]["sample"]["samples"]
                == int(line["robust_fraction"]["total"])
            )


def test_a_width_stops_the_drawing_and_changes_the_interval() -> None:
    sample = sample_pr(odd_sums, TEXTS, 2, name="odd sums", width="0.1").lines[0]["robust_fraction"]["sample"]
    assert sample["stopped"] == "width"
    assert sample["anytime"]["high"] - sample["anytime"]["low"] <= 0.1
    assert "clopper_pearson" not in sample
    assert "hoeffding" not in sample


@pytest.mark.usefixtures("larger")
def test_a_clock_that_stops_the_drawing_changes_the_interval_too() -> None:
    import time

    def slow(ids: Ids) -> Any:
        time.sleep(0.02)
        return odd_sums(ids)

    line = sample_pr(slow, TEXTS[:1], 2, name="slow", samples=100_000, seconds=0.2).lines[0]
    sample = line["robust_fraction"]["sample"]
    assert sample["stopped"] == "time"
    assert 0 < sample["samples"] < 100_000
    assert "anytime" in sample
    assert "hoeffding" not in sample
    assert "out of time after" in line["reason"]


@pytest.mark.usefixtures("larger")
def test_the_function_is_asked_in_batches() -> None:
    sizes = []

    def watched(ids: Ids) -> Any:
        assert ids.dtype == np.int64
        sizes.append(len(ids))
        return odd_sums(ids)

    sample_pr(watched, TEXTS[:1], 2, name="watched", samples=100, batch=32)
    assert sizes == [1, 32, 32, 32, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": "2"}, "between 0 and 1"),
        ({"width": "1.5"}, "between 0 and 1"),
        ({"width": "0.1", "epsilon": "0.1"}, "choose one"),
        ({"samples": 0}, "at least 1"),
        ({"batch": 0}, "at least 1"),
        ({"seconds": -1.0}, "a time above 0"),
        ({"radius": -1}, "at least 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        sample_pr(odd_sums, TEXTS, **{"radius": 1, "name": "any", **options})


def test_a_function_that_answers_anything_but_one_label_each_is_refused() -> None:
    with pytest.raises(BadInput, match=r"answers \[1, 2\] for 1 sentences"):
        sample_pr(lambda ids: np.zeros((len(ids), 2)), TEXTS, 1, name="logits")


def test_an_empty_data_set_says_nothing() -> None:
    found = sample_pr(odd_sums, [], 1, name="any")
    assert found.summary["robust_fraction"] == {"low": None, "high": None}
    assert found.summary["confidence"] is None


def test_importing_it_loads_no_solver_no_onnx_and_no_torch() -> None:
    code = (
        "import sys; from swapproof.verifier import sample_pr; "
        "print({'torch', 'onnx', 'onnxruntime', 'gurobipy', 'z3'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "set()\n"
