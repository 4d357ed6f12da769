"""Ball certificates: what the checker accepts is true, and what is not proved is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from math import inf, isqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numeric_models import SHAPES, numeric
from onnx.reference import ReferenceEvaluator

from swapproof.proofs import check, check_ball
from swapproof.proofs.writing import box_certificate as tree
from swapproof.proofs.writing.ball_certificate import Ball, BallStatement, Norm, write_ball_certificate
from swapproof.proofs.writing.certificate import File

CHECKER = Path(check_ball.__file__)
LEAF = tree.linear(tree.Multipliers([1]))
NORMS: tuple[Norm, Norm] = ("l2", "linf")


def statement(data: bytes, center: list[float], norm: Norm, balls: list[Ball], **changes: Any) -> BallStatement:
    model = check_ball.read_model(data)
    made: dict[str, Any] = {
        "model": File("model.onnx", check.sha256(data)),
        "tensors": [],
        "network": model.lower().sha256,
        "inputs": model.inputs,
        "outputs": model.outputs,
        "center": (1, np.array(center, dtype="<f4").tobytes()),
        "widths": (2, np.ones(1).tobytes()),
        "label": 0,
        "rivals": [1],
        "norm": norm,
        "balls": balls,
    }
    return BallStatement(**(made | changes))


def accepted(data: bytes, claimed: BallStatement) -> bool:
    claim = check_ball.read_certificate(write_ball_certificate(claimed))
    try:
        check_ball.check_claims(claim, check_ball.read_model(data), inf)
    except check.Refused:
        return False
    return True


def output(run: ReferenceEvaluator, point: Any) -> Any:
    found: Any = run.run(None, {"X": point})
    return found[0].reshape(-1)


def linear_model() -> bytes:
    """y_0 - y_1 = 3 a + 4 b + c + 5; c reaches the outputs through a ReLU that is off at 0 and below."""
    g = Builder()
    first = np.array([[3, 0], [4, 0], [0, 1]], dtype=np.float32)
    made = g.call("Gemm", "X", g.constant(first), g.constant(np.array([100, 0], dtype=np.float32)))
    made = g.call("Relu", made)
    second = np.array([[1, 0], [0, -1]], dtype=np.float32)
    g.node("Gemm", [made, g.constant(second), g.constant(np.array([-95, 0], dtype=np.float32))], ["Y"])
    return bytes(g.proto([floats("X", 1, 3)], [floats("Y", 1, 2)]).SerializeToString())


@pytest.mark.parametrize(("norm", "radius"), [("l2", Fraction(1)), ("linf", Fraction(5, 7))])
def test_the_radius_of_a_linear_function_is_exact_to_the_last_bit(norm: Norm, radius: Fraction) -> None:
    """The distance is |f| / ||g||_*; at the border both outputs are equal, and the lower index wins."""
    data, free = linear_model(), [(0, 2)]
    more = radius + Fraction(1, 2**50)
    assert accepted(data, statement(data, [0, 0, -1], norm, [Ball(free, radius, [LEAF])]))
    assert not accepted(data, statement(data, [0, 0, -1], norm, [Ball(free, more, [LEAF])]))
    turned = {"label": 1, "rivals": [0]}
    assert not accepted(data, statement(data, [0, 0, -1], norm, [Ball(free, radius, [LEAF])], **turned))


def test_widths_are_units_of_their_dimensions() -> None:
    """With widths 2 and 1/2, |f| / sqrt(6^2 + 2^2) = 5 / sqrt(40)."""
    data = linear_model()
    widths = {"widths": (1, np.array([2, 0.5, 1], dtype="<f4").tobytes())}
    least = Fraction(isqrt(25 * 2**80 // 40), 2**40)
    assert accepted(data, statement(data, [0, 0, -1], "l2", [Ball([(0, 2)], least, [LEAF])], **widths))
    more = least + Fraction(1, 2**39)
    assert not accepted(data, statement(data, [0, 0, -1], "l2", [Ball([(0, 2)], more, [LEAF])], **widths))


def test_inputs_that_reach_nothing_are_safe_however_far() -> None:
    """The third input moves a ReLU that stays off below 0, and the outputs are numbers then."""
    data = linear_model()
    assert accepted(data, statement(data, [0, 0, -5], "l2", [Ball([(2, 1)], Fraction(5), [LEAF])]))


@pytest.mark.parametrize("norm", NORMS)
@given(kind=st.sampled_from(SHAPES), source=st.integers(0, 2**32 - 1), size=st.integers(1, 60), part=st.integers(0, 7))
@settings(max_examples=60)
def test_what_is_accepted_holds_at_every_point_tried(norm: Norm, kind: str, source: int, size: int, part: int) -> None:
    """Random networks, balls in some of their inputs: no point of an accepted ball is won by the rival."""
    sample = numeric(kind, source)
    assume(sample.outputs > 1)
    data, count = sample.model.SerializeToString(), int(np.prod(sample.shape))
    random = np.random.default_rng(source)
    center = random.normal(size=count).astype(np.float32)
    free = sorted({part % count, *(i for i in range(count) if random.random() < 0.5)})
    run = ReferenceEvaluator(sample.model)
    outputs = output(run, center.reshape(sample.shape))
    label, rival = (int(i) for i in np.argsort(-outputs)[:2])
    radius = Fraction(size, 64)
    runs: list[tuple[int, int]] = []
    for i in free:
        if runs and sum(runs[-1]) == i:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((i, 1))
    balls = [Ball(runs, radius, [LEAF])]
    claimed = statement(data, center.tolist(), norm, balls, label=label, rivals=[rival])
    if not accepted(data, claimed):
        return
    moves = random.normal(size=(200, len(free)))
    size_of = np.abs(moves).max(axis=1) if norm == "linf" else np.sqrt((moves**2).sum(axis=1))
    for move in moves / size_of[:, None] * float(radius):
        point = center.astype(np.float64)
        point[free] += move
        y = output(run, point.astype(np.float32).reshape(sample.shape))
        assert y[label] - y[rival] >= -1e-4 * (1 + np.abs(y).max())


def changed(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda top: top.update({key: value})


def in_case(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda top: top["cases"][0].update({key: value})


@pytest.mark.parametrize(
    "change",
    [
        changed("norm", "l1"),
        changed("version", 2),
        changed("label", 1),
        changed("rivals", []),
        changed("rivals", [1, 1]),
        changed("rivals", [2]),
        changed("inputs", 2),
        changed("outputs", 3),
        changed("cases", []),
        changed("network", "0" * 64),
        changed("more", 1),
        changed("widths", {"form": 2, "numbers": "AAAAAAAAAAA="}),
        changed("widths", {"form": 2, "numbers": "AAAAAAAA8D8AAAAAAADwPw=="}),
        changed("center", {"form": 1, "numbers": "AAAAAAAAAAA="}),
        changed("center", {"form": 1, "numbers": "AAAAAAAAAAAAAMB/"}),
        in_case("radius", "2"),
        in_case("radius", "0"),
        in_case("radius", "2/4"),
        in_case("free", []),
        in_case("free", [[0, 1], [1, 1]]),
        in_case("free", [[0, 4]]),
        in_case("free", [[1, 1], [0, 1]]),
        in_case("trees", []),
        in_case("trees", ["AQEA"]),
        in_case("trees", [""]),
    ],
)
def test_what_is_not_as_it_should_be_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    data = linear_model()
    good = write_ball_certificate(statement(data, [0, 0, -1], "l2", [Ball([(0, 2)], Fraction(1), [LEAF])]))
    model = check_ball.read_model(data)
    assert check_ball.check_claims(check_ball.read_certificate(good), model, inf).cases == 1
    top = json.loads(good)
    change(top)
    bad = json.dumps(top, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(check.Refused):
        check_ball.check_claims(check_ball.read_certificate(bad), model, inf)


def test_the_checker_stands_alone(tmp_path: Path) -> None:
    """Standard library only, from its own folders; exit code 4 for a claim that is false."""
    data = linear_model()
    (tmp_path / "model.onnx").write_bytes(data)
    path = tmp_path / "ball.json"
    for radius, code, last in ((Fraction(1), 0, "accepted 1 of 1"), (Fraction(2), 4, "refused 1 of 1")):
        path.write_bytes(write_ball_certificate(statement(data, [0, 0, -1], "l2", [Ball([(0, 2)], radius, [LEAF])])))
        run = subprocess.run(
            [sys.executable, "-I", "-S", str(CHECKER), str(path)], capture_output=True, text=True, check=False
        )
        assert (run.returncode, run.stdout.splitlines()[-1]) == (code, last)
    missing = subprocess.run(
        [sys.executable, "-I", "-S", str(CHECKER), str(tmp_path / "none.json")], capture_output=True, check=False
    )
    assert missing.returncode == 2


def test_a_window_keeps_its_fixed_elements() -> None:
    """max(x, 1) beside 3: the free input alone would be below its window's fixed element."""
    g = Builder()
    top = g.call("ReduceMax", "X", axes=[1], keepdims=1)
    three = g.constant(np.array([[3.0]], dtype=np.float32))
    g.node("Concat", [g.call("Sub", three, top), g.call("Sub", top, three)], ["Y"], axis=1)
    model = g.proto([floats("X", 1, 2)], [floats("Y", 1, 2)], opset=13)
    onnx.checker.check_model(model)
    data = bytes(model.SerializeToString())
    assert accepted(data, statement(data, [0, 1], "linf", [Ball([(0, 1)], Fraction(3), [LEAF])]))
    assert not accepted(data, statement(data, [0, 1], "linf", [Ball([(0, 1)], Fraction(4), [LEAF])]))
    assert not accepted(data, statement(data, [0, 4], "linf", [Ball([(0, 1)], Fraction(1), [LEAF])]))
