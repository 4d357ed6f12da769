"""Forms over balls of smooth networks (FORMAT 16.6): what they hold for certain is true, and as tight as the search
in float64 believes."""

from __future__ import annotations

import json
from fractions import Fraction
from math import floor, inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import mpmath
import numpy as np
import pytest
from graph_builder import floats
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from smooth_graphs import STEPS, Graph

from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.onnx_files.numeric_input import numeric_network, open_numeric
from swapproof.proofs import ball_forms, check, check_ball, enclosures
from swapproof.proofs.writing.ball_certificate import Ball, BallStatement, write_ball_certificate
from swapproof.proofs.writing.certificate import File
from swapproof.verifier.radius.smooth.smooth_forms import BallForms, SmoothNetwork

LENGTH, WIDTH = 3, 2


def smooth_model(seed: int) -> bytes:
    """Vectors, a few steps, a mean over the positions, logits."""
    g = Graph(seed, runs=True)
    value: Any = ("X", (1, LENGTH, WIDTH))
    for step in g.source.choices(STEPS, k=g.source.randint(1, 3)):
        value = step(g, value)
    g.node("Relu" if g.source.random() < 0.3 else "Identity", [value[0]], ["last"])
    pooled = g.call("Reshape", "last", g.wholes(1, -1))
    logits = g.call("Gemm", pooled, g.constant(g.numbers(int(np.prod(value[1])), 2)))
    opset = 20 if any(node.op_type in ("Gelu", "ReduceL2", "ReduceSumSquare") for node in g.nodes) else 17
    if opset == 20:
        for node in g.nodes:
            axes = [each for each in node.attribute if each.name == "axes" and node.op_type == "ReduceMean"]
            for each in axes:
                node.input.append(g.wholes(*each.ints))
                node.attribute.remove(each)
    return bytes(g.proto([floats("X", 1, LENGTH, WIDTH)], [floats(logits, 1, 2)], opset=opset).SerializeToString())


def networks_of(data: bytes) -> tuple[check_ball.NumericModel, SmoothNetwork]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        found = canonical_network(numeric_network(open_numeric(path), smooth=True), inputs="numbers")
    model = check_ball.read_model(data)
    assert found.form is not None
    assert found.sha256 == model.lower().sha256
    return model, SmoothNetwork.of(found.form)


@given(
    seed=st.integers(0, 2**32 - 1),
    norm=st.sampled_from(["l2", "linf"]),
    size=st.integers(-10, 1),
    q=st.sampled_from([20, 32, 57]),
)
@settings(max_examples=120)
def test_no_point_is_outside_its_forms(seed: int, norm: str, size: int, q: int) -> None:
    """Random smooth networks: of every element, at points of the ball; and the search's forms are nearly the same."""
    model, plain = networks_of(smooth_model(seed))
    random = np.random.default_rng(seed)
    center = random.normal(size=LENGTH * WIDTH).astype(np.float32).astype(np.float64)
    free = np.flatnonzero(random.random(len(center)) < 0.5)
    assume(len(free))
    lowered = model.lower()
    network = ball_forms.Network(lowered.data, lowered.numbers)
    radius = Fraction(2) ** size
    try:
        forms = ball_forms.BallForms(network, q, list(map(Fraction, center.tolist())), inf)
        sure = forms.beaten(0, [1], free.tolist(), [radius] * len(free), norm)
    except check.Refused:
        return
    moves = random.normal(size=(40, len(free)))
    lengths = np.abs(moves).max(axis=1) if norm == "linf" else np.sqrt((moves**2).sum(axis=1))
    moves = moves / lengths[:, None] * random.random((40, 1)) ** 0.2
    points = np.repeat(center[None], 40, axis=0)
    points[:, free] += moves * float(radius)
    values = plain.values(points)
    for i, form in enumerate(forms.held):
        middle = form.f + (moves @ np.array(form.g, dtype=np.float64) if form.g else 0.0)
        error = np.abs(values[:, i] * 2.0**q - middle)
        assert (error <= form.e + 2.0 ** (q - 40) * (1 + np.abs(values[:, i])) + 1).all()
    logits = values[:, plain.logits]
    if sure[0]:
        assert (logits[:, 0] - logits[:, 1] > -1e-6).all()
    if q == 57:
        found = BallForms(plain, plain.values(center), free, norm)
        near = found.of(np.full(len(free), float(radius)))
        assert np.allclose(found.logits(points[:, free]), logits, atol=1e-9)
        for i, row in enumerate(found.row.tolist()):
            if row >= 0 and forms.held[i].e < 2**q:
                assert near.e[row] == pytest.approx(forms.held[i].e / 2**q, rel=1e-3, abs=1e-6)


@given(function=st.integers(1, 6), x=st.floats(-12, 12), spread=st.floats(0, 6), q=st.sampled_from([16, 24, 40]))
@settings(max_examples=300)
def test_curves_lie_in_their_forms(function: int, x: float, spread: float, q: int) -> None:
    """On a grid of what is read, by the checker's own enclosures at more bits."""
    if function in (ball_forms.RECIPROCAL, ball_forms.SQRT):
        x = abs(x) + spread + 0.01
    unit, more = 1 << q, 20
    rules = object.__new__(ball_forms.BallForms)
    rules.q, rules.round, rules.slopes, rules.s = q, False, 1, 1
    rules.limit, rules.curves = 1 << 80 + q, enclosures.Curves(q)
    f, g, e = int(x * unit), int(spread * unit / 2), int(spread * unit / 2)
    read = ball_forms.Form(f, [g], e, g)
    layer: Any = type("Layer", (), {"function": function})
    (form,) = rules.curved(layer, [read])
    finer = object.__new__(ball_forms.BallForms)
    finer.q, finer.curves = q + more, enclosures.Curves(q + more)
    for step in range(-8, 9):
        for way in (-8, -3, 0, 5, 8):
            d, r = Fraction(way, 8), Fraction(step, 8) * e
            at = f + g * d + r
            low = finer.floors(function, [int(at * 2**more // 1)])[0]
            least = min(low, finer.floors(function, [int(at * 2**more // 1) + 1])[0]) if function == 5 else low
            value = Fraction(least, 2**more)
            slope = form.g[0] if form.g else 0
            assert abs(value - form.f - slope * d) <= form.e + 1


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 9),
    columns=st.integers(0, 5),
    bits=st.tuples(st.integers(0, 70), st.integers(0, 70)),
    shift=st.sampled_from([0, 1, 24, 57]),
)
@settings(max_examples=200)
def test_packed_sums_are_the_sums(seed: int, rows: int, columns: int, bits: tuple[int, int], shift: int) -> None:
    """Of signed numbers of any size, of all columns or of some, rounded as the format says."""
    source = Random(seed)
    weights = [[source.randint(-(1 << bits[0]), 1 << bits[0]) for _ in range(columns)] for _ in range(rows)]
    matrix = ball_forms.Matrix(weights)
    places = [k for k in range(columns) if source.random() < 0.7]
    for chosen in (None, places):
        at = list(range(columns)) if chosen is None else chosen
        numbers = [source.choice((-1, 0, 1)) * (1 << bits[1]) for _ in at]
        sums = [sum(row[k] * x for k, x in zip(at, numbers, strict=True)) for row in weights]
        expected = [floor(Fraction(each, 1 << shift) + Fraction(1, 2)) for each in sums]
        assert matrix.times(numbers, chosen, shift) == expected


DERIVATIVES: dict[int, Any] = {
    ball_forms.EXP: mpmath.exp,
    ball_forms.TANH: lambda x: 1 - mpmath.tanh(x) ** 2,
    ball_forms.SIGMOID: lambda x: 1 / (2 + mpmath.exp(x) + mpmath.exp(-x)),
    ball_forms.ERF: lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),
    ball_forms.RECIPROCAL: lambda x: -1 / x**2,
    ball_forms.SQRT: lambda x: 1 / (2 * mpmath.sqrt(x)),
}


@given(function=st.integers(1, 6), x=st.floats(-12, 12), q=st.sampled_from([16, 40, 64, 67, 100, 256]))
@example(function=ball_forms.ERF, x=0.0, q=256)
@settings(max_examples=150)
def test_slopes_are_near_the_derivatives_at_every_precision(function: int, x: float, q: int) -> None:
    if function in (ball_forms.RECIPROCAL, ball_forms.SQRT):
        x = abs(x) + 0.01
    rules = object.__new__(ball_forms.BallForms)
    rules.q, rules.curves = q, enclosures.Curves(q)
    at = int(Fraction(x) * 2**q)
    found = rules.slope(function, at, rules.floors(function, [at])[0])
    with mpmath.workprec(700):
        true = mpmath.ldexp(DERIVATIVES[function](mpmath.ldexp(at, -q)), q)
        assert abs(true - found) < ball_forms.NEAR


def statement(data: bytes, radius: Fraction, **changes: Any) -> BallStatement:
    model = check_ball.read_model(data)
    made: dict[str, Any] = {
        "model": File("model.onnx", check.sha256(data)),
        "tensors": [],
        "network": model.lower().sha256,
        "inputs": model.inputs,
        "outputs": model.outputs,
        "center": (1, np.zeros(model.inputs, dtype="<f4").tobytes()),
        "widths": (2, np.ones(1).tobytes()),
        "label": 0,
        "rivals": [1],
        "norm": "l2",
        "balls": [Ball([(0, 2)], radius, [])],
        "precision": 40,
    }
    return BallStatement(**(made | changes))


def curve_model() -> bytes:
    """z_0 - z_1 = 1 - tanh(x) tanh(x) - tanh(y): 0 where, on the axis of y, tanh(y) = 1, which is nowhere."""
    g = Graph(0, runs=True)
    bent = g.call("Tanh", "X")
    square = g.call("Mul", bent, bent)
    first = g.call("Gemm", square, g.constant(np.array([[-1, 0], [0, 0]], np.float32)))
    second = g.call("Gemm", bent, g.constant(np.array([[0, 0], [-1, 0]], np.float32)))
    summed = g.call("Add", g.call("Add", first, second), g.constant(np.array([[1, 0]], np.float32)))
    return bytes(g.proto([floats("X", 1, 2)], [floats(summed, 1, 2)], opset=17).SerializeToString())


def test_a_certificate_of_forms_is_accepted_up_to_what_is_true() -> None:
    """At distance r the greatest of tanh^2(x) + tanh(y) passes 1 near r = 1.01."""
    data = curve_model()
    model = check_ball.read_model(data)

    def holds(radius: Fraction, **changes: Any) -> bool:
        claim = check_ball.read_certificate(write_ball_certificate(statement(data, radius, **changes)))
        try:
            check_ball.check_claims(claim, model, inf)
        except check.Refused:
            return False
        return True

    radii = [Fraction(k, 20) for k in range(1, 30)]
    proved = [radius for radius in radii if holds(radius)]
    assert proved == radii[: len(proved)]
    assert 0.5 < proved[-1] < 1.05
    assert not holds(Fraction(1, 2), label=1, rivals=[0])
    assert not holds(Fraction(1, 2), network="0" * 64)


@pytest.mark.parametrize(
    "change",
    [
        lambda top: top.update(precision=15),
        lambda top: top.update(precision=257),
        lambda top: top.update(precision="40"),
        lambda top: top.pop("precision"),
        lambda top: top.update(recipe="ball-1"),
        lambda top: top.update(recipe="forms-2"),
        lambda top: top["cases"][0].update(trees=[]),
        lambda top: top["cases"][0].update(radius="3"),
    ],
)
def test_what_is_no_certificate_of_forms_is_refused(change: Any) -> None:
    data = curve_model()
    top = json.loads(write_ball_certificate(statement(data, Fraction(1, 2))))
    change(top)
    bad = json.dumps(top, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises((check.Refused, check.Unusable)):
        check_ball.check_claims(check_ball.read_certificate(bad), check_ball.read_model(data), inf)
