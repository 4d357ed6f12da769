"""Writes the kept certificates of boxes and balls: python tests/proofs/write_numeric_cases.py

`ball-nearly-level` is none of these: a search found it, and changed its radius.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

import numpy as np  # noqa: E402
from graph_builder import Builder, floats  # noqa: E402
from numeric_models import numeric  # noqa: E402
from numeric_twins import (  # noqa: E402
    RENEW,
    Certificate,
    Mixed,
    Twins,
    at_input,
    at_phase,
    ball,
    balls,
    box_case,
    boxes,
    canonical,
    cut,
    drawn_forms,
    fact,
    leaf,
    measured,
    numbers_in,
    smooth_numbers_model,
)
from vector_models import flat_model, write  # noqa: E402

from swapproof.verifier.queries.answering import Verifier  # noqa: E402
from swapproof.verifier.radius.radius_run import measure_msr  # noqa: E402

FOLDER = ROOT / "tests" / "proofs" / "numbers"
ONE = leaf([1])
Made = Iterator[tuple[str, str, Certificate]]
MODELS: dict[str, bytes] = {}
"""By hash."""


def keep(data: bytes) -> bytes:
    MODELS[hashlib.sha256(data).hexdigest()] = data
    return data


def model_of(build: Callable[[Builder], tuple[int, int]], opset: int = 13) -> Mixed:
    g = Builder()
    inputs, outputs = build(g)
    data = g.proto([floats("X", 1, inputs)], [floats("Y", 1, outputs)], opset=opset).SerializeToString()
    return measured(keep(bytes(data)))


def array(*rows: Any) -> Any:
    return np.array(rows, dtype=np.float32)


def linear(g: Builder) -> tuple[int, int]:
    """y_0 - y_1 = 3 a + 4 b + c + 5, c through a rectifier."""
    made = g.call("Gemm", "X", g.constant(array([3, 0], [4, 0], [0, 1])), g.constant(array(100, 0)))
    made = g.call("Relu", made)
    g.node("Gemm", [made, g.constant(array([1, 0], [0, -1])), g.constant(array(-95, 0))], ["Y"])
    return 3, 2


def hat(g: Builder) -> tuple[int, int]:
    """relu(x + 1) - 2 relu(x) + relu(x - 1): 0 outside [-1, 1], 1 - |x| inside."""
    made = g.call("Relu", g.call("Gemm", "X", g.constant(array([1, 1, 1])), g.constant(array(1, 0, -1))))
    g.node("MatMul", [made, g.constant(array([1], [-2], [1]))], ["Y"])
    return 1, 1


def window(g: Builder) -> tuple[int, int]:
    """3 - max(a, b) and max(a, b) - 3."""
    top = g.call("ReduceMax", "X", axes=[1], keepdims=1)
    three = g.constant(array([3.0]))
    g.node("Concat", [g.call("Sub", three, top), g.call("Sub", top, three)], ["Y"], axis=1)
    return 2, 2


def rectified_maximum(g: Builder) -> tuple[int, int]:
    """max(relu(a - b), relu(a + b)) and its negative less 1."""
    made = g.call("Relu", g.call("Gemm", "X", g.constant(array([1, 1], [-1, 1])), g.constant(array(0, 0))))
    top = g.call("ReduceMax", made, axes=[1], keepdims=1)
    g.node("Concat", [top, g.call("Sub", g.constant(array([-1.0])), top)], ["Y"], axis=1)
    return 2, 2


def error_function(g: Builder) -> tuple[int, int]:
    """z_0 - z_1 = 2^-110 + c x - erf(x), c being 2 / sqrt(pi) rounded down to 64 bits: below 0 at x = 2^-40."""
    left, parts = Fraction(20814921713516466458, 2**64), []
    while left:
        parts.append(np.float32(float(left)))
        left -= Fraction(float(parts[-1]))
    rows = [*[[part, 0] for part in parts], [0, 1]]
    read = g.call("Concat", *["X"] * len(parts), g.call("Erf", "X"), axis=1)
    g.node("Gemm", [read, g.constant(array(*rows)), g.constant(array(2.0**-110, 0))], ["Y"])
    return 1, 2


def made_by_hand() -> Made:
    straight, bent, windows, tops = (model_of(build) for build in (linear, hat, window, rectified_maximum))
    unit = Fraction(1, 2**64)
    center = [0, 0, -1]
    for norm, radius in (("l2", Fraction(1)), ("linf", Fraction(5, 7))):
        for name, verdict, r in (
            (f"ball-{norm}-exact", "accepted", radius),
            (f"ball-{norm}-one-unit-more", "refused", radius + unit),
        ):
            yield verdict, name, balls(straight, center, [ball([[0, 2]], r, [ONE])], norm=norm)
    good = balls(straight, center, [ball([[0, 2]], 1, [ONE])])
    yield (
        "refused",
        "ball-tie-goes-to-the-lower-class",
        balls(straight, [-2, -1, -1], [ball([[0, 2]], 1, [ONE])], label=1, rivals=[0]),
    )
    yield "accepted", "ball-of-idle-input", balls(straight, [0, 0, -5], [ball([[2, 1]], 5, [ONE])])
    yield (
        "accepted",
        "ball-widths",
        balls(straight, center, [ball([[0, 2]], Fraction(3, 4), [ONE])], widths=numbers_in(1, [2, 0.5, 1])),
    )
    yield "accepted", "ball-center-in-form-2", {**good, "center": numbers_in(2, center)}
    yield "accepted", "ball-center-of-minus-zero", {**good, "center": numbers_in(1, [0, -0.0, -1])}
    yield "refused", "ball-center-infinite", {**good, "center": numbers_in(1, [0, float("inf"), -1])}
    yield "refused", "ball-widths-do-not-divide", {**good, "widths": numbers_in(1, [1, 1])}
    yield "refused", "ball-width-zero", {**good, "widths": numbers_in(1, [0])}
    yield "refused", "ball-no-widths", {**good, "widths": numbers_in(1, [])}
    yield "refused", "ball-norm-l1", {**good, "norm": "l1"}
    yield "refused", "ball-no-case", {**good, "cases": []}
    for name, key, value in (
        ("radius-zero", "radius", "0"),
        ("radius-not-in-lowest-terms", "radius", "2/4"),
        ("radius-over-1", "radius", "1/1"),
        ("nothing-free", "free", []),
        ("runs-touch", "free", [[0, 1], [1, 1]]),
        ("runs-descend", "free", [[2, 1], [0, 1]]),
        ("run-too-long", "free", [[0, 4]]),
        ("run-empty", "free", [[0, 0]]),
        ("tree-missing", "trees", []),
        ("tree-open", "trees", ["AA=="]),
    ):
        other = copy.deepcopy(good)
        other["cases"][0][key] = value
        yield "refused", f"ball-{name}", other
    bits = balls(model_of(error_function), [0], [{"free": [[0, 1]], "radius": f"1/{2**40}"}], norm="linf")
    yield "refused", "forms-slope-of-erf-at-256-bits", {**bits, "recipe": "forms-1", "precision": 256}
    for far, verdict, name in ((3, "accepted", "window"), (4, "refused", "window-one-more")):
        yield verdict, f"ball-{name}", balls(windows, [0, 1], [ball([[0, 1]], far, [ONE])], norm="linf")

    def about(model: Mixed, ends: list[list[Any]], facts: list[Certificate], tree: bytes) -> Certificate:
        return boxes(model, [box_case(ends, facts, tree)])

    def at_least(level: Any, strict: int = 0) -> Certificate:
        return fact({"Y_0": -1}, level, strict)

    def phases(on: tuple[int, ...] = ()) -> bytes:
        if len(on) < 3:
            return at_phase(2, len(on)) + phases((*on, 0)) + phases((*on, 1))
        return leaf([1], {}, 0, {2: {1: abs(on[0] - 2 * on[1] + on[2])}})

    splits = at_input(0, 0, 0) + (at_input(0, 0, -1) + ONE * 2) + (at_input(0, 0, 1) + ONE * 2)
    yield "accepted", "box-splits", about(bent, [[-2, 2]], [at_least("5/4")], splits)
    yield "refused", "box-without-splits", about(bent, [[-2, 2]], [at_least("5/4")], ONE)
    yield "accepted", "box-phases-and-betas", about(bent, [[-2, 2]], [at_least("5/4")], phases())
    yield "refused", "box-phases-and-betas-touching", about(bent, [[-2, 2]], [at_least(1)], phases())
    touching = at_input(0, 0, 0) + ONE * 2
    yield "accepted", "box-touching-strict", about(bent, [[-1, 1]], [at_least(1, 1)], touching)
    yield "refused", "box-touching", about(bent, [[-1, 1]], [at_least(1)], touching)
    yield "accepted", "box-one-unit-beside-touching", about(bent, [[-1, 1]], [at_least(1 + unit)], touching)
    for end in (Fraction(1, 10), Fraction(1, 3)):
        name = f"box-end-of-1-over-{end.denominator}"
        yield "accepted", name, about(bent, [[0, end]], [fact({"X_0": -1}, end, 1)], ONE)
        yield "refused", name + "-reached", about(bent, [[0, end]], [fact({"X_0": -1}, end)], ONE)
    half = Fraction(1, 2)
    facts = [at_least("3/4"), fact({"X_0": -1}, half)]
    done = at_input(0, 0, 1) + leaf([1, 0]) * 2
    yield "accepted", "box-cut", about(bent, [[-2, 2]], facts, cut([0, 1]) + done)
    yield "refused", "box-cut-left-out", about(bent, [[-2, 2]], facts, done)
    facts = [*facts, fact({"X_0": 1}, -1)]
    cuts = cut([0, 1, 0]) + cut([0, 0, 1])
    yield "accepted", "box-cuts-renewed", about(bent, [[-2, 2]], facts, cuts + RENEW + leaf([1, 0, 0]))
    yield "refused", "box-cuts-not-renewed", about(bent, [[-2, 2]], facts, cuts + leaf([1, 0, 0]))
    sums = [fact({"X_0": -1}, 0), fact({"X_0": 1}, 0, 1)]
    yield "accepted", "box-strict-by-weight", about(bent, [[-1, 1]], sums, leaf([1, 1]))
    yield "refused", "box-strict-without-weight", about(bent, [[-1, 1]], sums, leaf([1, 0]))
    two = [box_case([[-1, 1]], [at_least(3)], ONE), box_case([[5, 6]], [at_least("1/8")], ONE)]
    yield "accepted", "box-two-cases", boxes(bent, two)
    yield "accepted", "box-no-case", boxes(bent, [])
    yield "refused", "box-ends-crossed", about(bent, [[1, -1]], [at_least(3)], ONE)
    yield "refused", "box-end-of-2-to-128", about(bent, [[0, 2**128]], [at_least(3)], ONE)
    # What a cut knew of a rectifier is not kept: it is the rectifier of bounds that are found anew.
    at = [fact({"Y_0": -1}, "3/8"), fact({"X_0": 1}, "-1/8"), fact({"X_1": 1}, "-1/8"), fact({"X_1": -1}, "-1/8")]
    tree = cut([0, 1, 0, 0]) + cut([0, 0, 1, 0]) + cut([0, 0, 0, 1]) + RENEW + leaf([1, 0, 0, 0])
    yield "accepted", "box-rectifiers-found-anew", about(tops, [[-1, 1], [-1, 1]], at, tree)


def made_by_engines(folder: Path) -> Made:
    """In this folder, of tiny models."""
    for norm, words in (("l2", "one"), ("linf", "all")):
        task = write(folder / f"{norm}-task", flat_model(7))
        measure_msr(task, folder / norm, norm, words, seconds=3.0)
        for text in (0, 1):
            certificate = json.loads((folder / norm / "certificates" / f"00000{text}.json").read_bytes())
            model = folder / norm / certificate["model"]["file"]
            keep(model.read_bytes())
            yield "accepted", f"ball-measured-{norm}-{text}", certificate
    for kind, seed, level in (("deep", 5, 1.3), ("maximum", 3, 2.0), ("residual", 4, 3.0)):
        sample = numeric(kind, seed)
        inside = folder / f"{kind}-{seed}"
        inside.mkdir()
        size = int(np.prod(sample.shape))
        lines = [f"(declare-const X_{i} Real)" for i in range(size)]
        lines += [f"(declare-const Y_{i} Real)" for i in range(sample.outputs)]
        lines += [f"(assert (<= X_{i} 0.5))(assert (>= X_{i} -0.5))" for i in range(size)]
        for step in range(40):
            (inside / "q.vnnlib").write_text("\n".join([*lines, f"(assert (>= Y_0 {level - 4 + step / 8}))"]))
            path = inside / "certificate.json"
            if Verifier().verify(inside / "q.vnnlib", sample.save(inside), 20.0, path).answer == "unsat":
                keep((inside / "model.onnx").read_bytes())
                yield "accepted", f"box-verified-{kind}", json.loads(path.read_bytes())
                break


def at_their_limit(folder: Path) -> Made:
    """Forms: the greatest radius that is proved, to 2^-60, and the next."""
    twins, source = Twins(), random.Random(0)
    for number in range(4):
        while True:
            data = smooth_numbers_model(source.randrange(2**32))
            (folder / "model.onnx").write_bytes(data)
            found = drawn_forms(measured(data), source)
            ends = [Fraction(1, 2**20), Fraction(16)]
            if [said(twins, folder, found, end) for end in ends] == [0, 4]:
                break
        while ends[1] - ends[0] > Fraction(1, 2**60):
            middle = (ends[0] + ends[1]) / 2
            ends[said(twins, folder, found, middle) != 0] = middle
        keep(data)
        for end, verdict in zip(ends, ("accepted", "refused"), strict=True):
            found["cases"][0]["radius"] = str(end)
            yield verdict, f"forms-at-their-limit-{number}", copy.deepcopy(found)
    twins.close()


def said(twins: Twins, folder: Path, certificate: Certificate, radius: Fraction) -> int:
    certificate["cases"][0]["radius"] = str(radius)
    return twins.javascript(folder, canonical(certificate))[0]


def unusable() -> Made:
    """Models outside the format."""

    def smooth(g: Builder) -> tuple[int, int]:
        g.node("Gemm", [g.call("Tanh", "X"), g.constant(array([1, 2])), g.constant(array(0, 0))], ["Y"])
        return 1, 2

    def headed(g: Builder) -> tuple[int, int]:
        g.node("Softmax", [g.call("Gemm", "X", g.constant(array([1, 2])), g.constant(array(0, 0)))], ["Y"])
        return 1, 2

    def old(g: Builder) -> tuple[int, int]:
        g.node("Gemm", ["X", g.constant(array([1, 2])), g.constant(array(0, 0))], ["Y"])
        return 1, 2

    for name, build, opset in (("smooth", smooth, 13), ("head", headed, 13), ("opset-6", old, 6)):
        g = Builder()
        inputs, outputs = build(g)
        data = bytes(g.proto([floats("X", 1, inputs)], [floats("Y", 1, outputs)], opset=opset).SerializeToString())
        keep(data)
        model = measured(data) if name == "smooth" else Mixed(data, inputs, outputs, "0" * 64, [])
        yield "unusable", f"ball-{name}", balls(model, [1], [ball([[0, 1]], Fraction(1, 2), [ONE])])
        yield "unusable", f"box-{name}", boxes(model, [box_case([[0, 1]], [fact({"Y_0": 1}, 1)], ONE)])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        made = [*made_by_hand(), *made_by_engines(Path(name)), *at_their_limit(Path(name)), *unusable()]
    for verdict, name, certificate in made:
        digest = certificate["model"]["sha256"]
        file = f"model-{digest[:10]}.onnx"
        (FOLDER / verdict).mkdir(parents=True, exist_ok=True)
        (FOLDER / verdict / file).write_bytes(MODELS[digest])
        named = {**certificate, "model": {**certificate["model"], "file": file}}
        (FOLDER / verdict / f"{name}.json").write_bytes(canonical(named))


if __name__ == "__main__":
    main()
