"""All words at one place of a text, looked at together, are answered as one after the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from convolved_models import Kernel, convolved, write_convolved
from numpy.typing import NDArray
from tiny import ROWS, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.radius.ends.high_ends import HighEnds
from swapproof.verifier.radius.ends.text_place import TextPlace
from swapproof.verifier.radius.moving_ball import Ball
from swapproof.verifier.radius.radius_run import measure_msr
from swapproof.verifier.radius.radius_setting import RadiusQuestion, RadiusSetting
from swapproof.verifier.radius.seeking.nearest_words import Candidates, distances, least_margin
from swapproof.verifier.radius.seeking.word_sweep import Products, Sweep
from swapproof.verifier.tasks.task import read_task

LENGTH, FILTERS, HIDDEN = 7, 4, 5
NETWORKS: dict[str, tuple[list[Kernel], bool]] = {
    "one width": ([(3, 1, 1, 0)], False),
    "two widths": ([(2, 1, 1, 1), (4, 2, 1, 0)], False),
    "leaky": ([(3, 1, 2, 1)], True),
}


def places(folder: Path, network: str | None) -> list[tuple[TextPlace, Sweep, int]]:
    task = write_task(folder, ROWS, **({} if network is None else {"model_length": LENGTH}))
    if network is not None:
        kernels, leaky = NETWORKS[network]
        onnx.save(convolved(LENGTH, kernels, leaky=leaky), folder / "model.onnx")
    setting = RadiusSetting.of(read_task(task), folder)
    found = []
    for text in setting.inputs.texts:
        at = TextPlace(setting, RadiusQuestion("l2", "one", padding=True), text, setting.widths("raw"), 1.0, 0.0)
        for word in range(len(at.places)):
            free = at.free_of((word,))
            found.append((at, Sweep.of(at.room.plain, at.values, free, setting.products), word))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("network", [None, *NETWORKS])
def test_their_logits_are_those_of_the_network(network: str | None, tmp_path: Path) -> None:
    for at, sweep, word in places(tmp_path / "task", network):
        words, whole = at.setting.words, np.repeat(at.exact_center[None], len(at.setting.words), axis=0)
        whole[:, at.free_of((word,))] = words
        expected = at.answers(whole)
        np.testing.assert_allclose(sweep.logits(np.arange(len(words))), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(sweep.singly(slice(0, len(words))), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_maximum_has_rectifiers_of_what_moves_alone(network: str, tmp_path: Path) -> None:
    """Of the windows without the word only the greatest is there; the logits are those of the network."""
    kernels, _ = NETWORKS[network]
    for at, _, word in places(tmp_path / "task", network):
        each = HighEnds(at).begun((word,), [1 - at.text.label], look=False)
        whole = np.repeat(at.exact_center[None], len(at.setting.words), axis=0)
        whole[:, each.free] = at.setting.words
        logits = each.moving.stack.values(at.setting.words)[1]
        np.testing.assert_allclose(logits, at.answers(whole), rtol=1e-5, atol=1e-5)
        assert each.neurons <= HIDDEN + sum(2 * FILTERS * width for width, *_ in kernels)


def test_maxima_have_balls_by_forms(tmp_path: Path) -> None:
    """Trees have no names for their rectifiers, and few neurons move: the checker would refuse what float64 holds."""
    task = write_convolved(tmp_path / "task", ROWS)
    assert measure_msr(task, tmp_path / "run", seconds=20.0).exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["status"] != "already_wrong"]
    assert len(lines) >= 2
    for line in lines:
        top = json.loads((tmp_path / "run" / line["certificate"]).read_text())
        assert top["recipe"] == "forms-1"
        assert all(0 < part["low"] <= (part["high"] or np.inf) for part in line["words"])
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


@pytest.mark.parametrize("network", [None, *NETWORKS])
def test_the_nearest_that_changes_the_class_is_that_of_asking_about_each(network: str | None, tmp_path: Path) -> None:
    broken = 0
    for at, sweep, word in places(tmp_path / "task", network):
        label = at.predicted
        ball = HighEnds(at).begun((word,), [1 - label], look=False).balls[0]
        if at.text.label != label:
            continue
        whole = np.repeat(at.exact_center[None], len(at.setting.words), axis=0)
        whole[:, at.free_of((word,))] = at.setting.words
        changed = np.flatnonzero(at.answers(whole).argmax(axis=1) != label)
        found = Candidates.of(sweep, [ball], at.setting.products.vectors, -1).nearest(
            set(changed.tolist()).__contains__
        )
        away = distances(ball, at.setting.products.vectors)
        assert found.distance == pytest.approx(away[changed].min() if len(changed) else np.inf)
        assert found.harmless == (not len(changed))
        broken += bool(len(changed))
    assert broken >= 3


@pytest.mark.parametrize("network", [None, *NETWORKS])
def test_the_least_margin_is_that_of_asking_about_each(network: str | None, tmp_path: Path) -> None:
    for at, sweep, word in places(tmp_path / "task", network):
        label, words = at.text.label, at.setting.words
        ball = HighEnds(at).begun((word,), [1 - label], look=False).balls[0]
        whole = np.repeat(at.exact_center[None], len(words), axis=0)
        whole[:, at.free_of((word,))] = words
        answers = at.answers(whole)
        least = (answers[:, label] - answers[:, 1 - label]).min()
        assert least_margin(sweep, [ball], len(words)) == pytest.approx(least, rel=1e-5, abs=1e-5)


def test_where_single_precision_is_not_enough_every_word_is_computed_again() -> None:
    class Coarse:
        def singly(self, rows: slice) -> NDArray[Any]:
            return np.tile([5.0, 0.0], (rows.stop - rows.start, 1))

        def logits(self, rows: NDArray[Any]) -> NDArray[Any]:
            return np.stack([np.where(rows == 7, -1.0, 1.0), np.zeros(len(rows))], axis=1)

    vectors = np.arange(10.0)[None]
    ball = Ball(np.zeros(1), np.ones(1), "l2", 0, 1)
    found = Candidates.of(Coarse(), [ball], vectors, -1).nearest(lambda row: row == 7)
    assert (found.row, found.distance) == (7, 7.0)


def test_the_least_margin_is_in_double_precision() -> None:
    """Words that single precision cannot tell apart are computed again, also where it cannot be trusted at all."""

    class Near:
        def __init__(self, off: float) -> None:
            self.off = off

        def singly(self, rows: slice) -> NDArray[Any]:
            return np.tile([1.0 + self.off, 0.0], (rows.stop - rows.start, 1))

        def logits(self, rows: NDArray[Any]) -> NDArray[Any]:
            return np.stack([1.0 - 1e-5 * (rows == 7), np.zeros(len(rows))], axis=1)

    ball = Ball(np.zeros(1), np.ones(1), "l2", 0, 1)
    for off in (0.0, 3.0):
        assert least_margin(Near(off), [ball], 10) == 1.0 - 1e-5


def test_products_are_kept_for_the_matrices_asked_for_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swapproof.verifier.radius.seeking.word_sweep.MOST_KEPT", 10)
    products = Products(np.ones((2, 4)))
    first = products.of(np.ones((1, 2)))
    assert products.of(np.ones((1, 2))) is first
    products.of(np.zeros((2, 2)))
    assert products.of(np.ones((1, 2))) is not first
