"""check.js against check_box.py and check_ball.py: kept certificates, limits of random trees, mutants, margins of one
unit. Both run as they are, and neither knows what the other says."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import FACTOR, drawn_seed
from graph_builder import Builder, floats
from javascript_networks import CHECKER
from numeric_mutants import mutant
from numeric_twins import (
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
    drawn_balls,
    drawn_boxes,
    drawn_forms,
    fact,
    leaf,
    measured,
    mixed_model,
    numbers_in,
    smooth_numbers_model,
)

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

KEPT = Path(__file__).parent / "numbers"
EXIT_CODES = {"accepted": 0, "refused": 4, "unusable": 2}
ONE = leaf([1])


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    made = Twins()
    yield made
    made.close()


# ------------------------------------------------------------------------------------------------ kept certificates


def test_both_say_of_kept_certificates_what_their_folder_says(twins: Twins, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for path in sorted(KEPT.glob("*/*.json")):
        for model in path.parent.glob("*.onnx"):
            shutil.copy(model, tmp_path)
        assert twins.code(tmp_path, path.read_bytes()) == EXIT_CODES[path.parent.name], path
        seen[path.parent.name] += 1
    assert min(seen["accepted"] - 20, seen["refused"] - 30, seen["unusable"] - 6) >= 0, seen


def test_mutants_of_kept_certificates(twins: Twins, tmp_path: Path) -> None:
    source = random.Random(drawn_seed())
    said: Counter[int] = Counter()
    for path in sorted((KEPT / "accepted").glob("*.json")):
        certificate = json.loads(path.read_bytes())
        shutil.copy(path.parent / certificate["model"]["file"], tmp_path)
        for _ in range(15 * FACTOR):
            said[twins.code(tmp_path, mutant(certificate, source))] += 1
    assert min(said[0], said[4]) > 30 * FACTOR, said


# ------------------------------------------------------------------------------------------------- random certificates


def agreed_limits(
    twins: Twins, folder: Path, made: Certificate, key: tuple[Any, ...], ends: tuple[Any, Any], steps: int
) -> int:
    """Halves the way between a number that is refused and one that is accepted; gives how many were asked."""
    *way, last = key
    inside: Any = made
    for part in way:
        inside = inside[part]
    good, bad = map(Fraction, ends)
    for step in range(steps):
        inside[last] = str([good, bad, (good + bad) / 2][min(step, 2)])
        code = twins.code(folder, canonical(made))
        if (step, code) in ((0, 4), (1, 0)):
            return step
        if step > 1:
            good, bad = ((good + bad) / 2, bad) if code == 0 else (good, (good + bad) / 2)
    return steps


def test_forms_hold_up_to_the_same_radii(twins: Twins, tmp_path: Path) -> None:
    """To one part in 2^60, at any precision."""
    source = random.Random(drawn_seed())
    asked = 0
    for _ in range(3 * FACTOR):
        data = (
            smooth_numbers_model(source.randrange(2**32))
            if source.random() < 0.8
            else mixed_model(source.randrange(99))
        )
        model = measured(data)
        (tmp_path / "model.onnx").write_bytes(data)
        for _ in range(3):
            asked += agreed_limits(twins, tmp_path, drawn_forms(model, source), RADIUS, (Fraction(1, 2**30), 64), 66)
    assert asked > 100 * FACTOR


CONSTANT = ("cases", 0, "constraints", 0, "constant")
RADIUS = ("cases", 0, "radius")


@pytest.mark.parametrize(("kinds", "steps"), [("ccc-iipp", 32), ("-iipp", 110)])
def test_random_trees_hold_up_to_the_same_numbers(kinds: str, steps: int, twins: Twins, tmp_path: Path) -> None:
    """To one part in 2^30; without cuts to the last bit (FORMAT.md, section 14.3, says what may round behind a cut)."""
    source = random.Random(drawn_seed())
    asked = 0
    for _ in range(3 * FACTOR):
        data = mixed_model(source.randrange(2**32))
        model = measured(data)
        (tmp_path / "model.onnx").write_bytes(data)
        for _ in range(2):
            asked += agreed_limits(twins, tmp_path, drawn_boxes(model, source, kinds), CONSTANT, (1000, -1000), steps)
            radii = Fraction(1, 2**20), 64
            asked += agreed_limits(twins, tmp_path, drawn_balls(model, source, kinds), RADIUS, radii, steps)
    assert asked > 4 * steps


# ------------------------------------------------------------------------------------------------------ by one unit


def linear() -> Mixed:
    """y_0 - y_1 = 3 a + 4 b + c + 5; c through a rectifier that is off at 0 and below."""
    g = Builder()
    first = g.constant(np.array([[3, 0], [4, 0], [0, 1]], np.float32))
    made = g.call("Relu", g.call("Gemm", "X", first, g.constant(np.array([100, 0], np.float32))))
    second = g.constant(np.array([[1, 0], [0, -1]], np.float32))
    g.node("Gemm", [made, second, g.constant(np.array([-95, 0], np.float32))], ["Y"])
    return measured(bytes(g.proto([floats("X", 1, 3)], [floats("Y", 1, 2)]).SerializeToString()))


def test_a_radius_one_unit_too_large_is_refused(twins: Twins, tmp_path: Path) -> None:
    model = linear()
    (tmp_path / "model.onnx").write_bytes(model.data)
    turned: dict[str, Any] = {"label": 1, "rivals": [0]}
    for norm, radius in (("l2", Fraction(1)), ("linf", Fraction(5, 7))):
        for place in (10, 64, 65, 128, 500, 2000):
            unit = Fraction(1, 2**place)
            for at, more, expected in ((-unit, {}, 0), (0, {}, 0), (unit, {}, 4), (-unit, turned, 4)):
                claim = balls(model, [0, 0, -1], [ball([[0, 2]], radius + at, [ONE])], norm=norm, **more)
                assert twins.code(tmp_path, canonical(claim)) == expected, (norm, place, at)
    # At the border the lower index wins: the label 1 loses it, from where it is ahead.
    for radius, expected in ((Fraction(1) - Fraction(1, 2**64), 0), (Fraction(1), 4)):
        claim = balls(model, [-2, -1, -1], [ball([[0, 2]], radius, [ONE])], **turned)
        assert twins.code(tmp_path, canonical(claim)) == expected


def test_a_root_that_is_no_number_is_rounded_up(twins: Twins, tmp_path: Path) -> None:
    """|f| / ||g|| = 5 / sqrt(40) with widths 2 and 1/2: accepted at the floor of any multiple, refused one unit on."""
    model = linear()
    (tmp_path / "model.onnx").write_bytes(model.data)
    widths = numbers_in(1, [2, 0.5, 1])
    for place in (20, 64, 90, 200):
        unit = Fraction(1, 2**place)
        low = Fraction(
            int((25 * 2 ** (2 * place) // 40) ** 0.5) if place == 20 else root(25 * 4**place // 40), 2**place
        )
        for radius, expected in ((low, 0), (low + unit, 4)):
            claim = balls(model, [0, 0, -1], [ball([[0, 2]], radius, [ONE])], widths=widths)
            assert twins.code(tmp_path, canonical(claim)) == expected


def root(n: int) -> int:
    x = 1 << (n.bit_length() // 2 + 1)
    while x * x > n:
        x = (x + n // x) // 2
    return x


def test_a_margin_of_nothing_needs_a_strict_constraint(twins: Twins, tmp_path: Path) -> None:
    """In [0, e] no input is above e; one unit less, and one is."""
    model = linear()
    (tmp_path / "model.onnx").write_bytes(model.data)
    for end in (Fraction(1, 3), Fraction(10**40 + 1, 10**41), Fraction(2**128 - 1)):
        for unit in (Fraction(0), Fraction(1, 2**70), Fraction(1, 10**300)):
            for sign, strict, expected in ((0, 1, 0), (0, 0, 4), (1, 0, 0), (-1, 1, 4)):
                if sign != 0 and unit == 0:
                    continue
                facts = [fact({"X_1": -1}, end + sign * unit, strict)]
                claim = boxes(model, [box_case([[0, 1], [0, end], [0, 1]], facts, ONE)])
                assert twins.code(tmp_path, canonical(claim)) == expected, (end, unit, sign, strict)


def test_limits_of_what_is_written(twins: Twins, tmp_path: Path) -> None:
    model = linear()
    (tmp_path / "model.onnx").write_bytes(model.data)
    box = [[0, 1]] * 3
    holds = [fact({"Y_0": 1, "Y_1": -1}, 0)]

    def code(tree: bytes = ONE, facts: Any = holds, ends: Any = box) -> int:
        return twins.code(tmp_path, canonical(boxes(model, [box_case(ends, facts, tree)])))

    assert code() == 0
    assert code(facts=[fact({"Y_0": 1, "Y_1": -1}, 0)] * 4096, tree=leaf([1] * 4096)) == 0
    assert code(facts=[fact({"Y_0": 1, "Y_1": -1}, 0)] * 4097, tree=leaf([1] * 4097)) == 4
    assert code(ends=[[0, 2**128 - 1], [0, 1], [0, 1]]) == 0
    assert code(ends=[[0, 2**128], [0, 1], [0, 1]]) == 4
    assert code(facts=[fact({"Y_0": 1}, "1" * 2000)]) == 0
    assert code(facts=[fact({"Y_0": 1}, "1" * 2001)]) == 4
    # Slopes up to 64, betas finer than 2^-30 and above 2^31 - 1, ends finer than 2^-64, integers of 29 bytes.
    for tree, expected in (
        (leaf([1], {2: {0: 64}}), 0),
        (leaf([1], {2: {0: 65}}), 4),
        (leaf([1], {}, 30, {2: {0: 2**31 - 1}}), 0),
        (leaf([1], {}, 31, {}), 4),
        (leaf([1], {}, 0, {2: {0: 2**31}}), 4),
        (leaf([2**31 - 1]), 0),
        (leaf([2**31]), 4),
        (at_input(0, 64, 1) + ONE * 2, 0),
        (at_input(0, 65, 1) + ONE * 2, 4),
        (at_input(0, 0, 2**202 - 1) + ONE * 2, 0),
        (at_input(0, 0, -(2**202)) + ONE * 2, 0),
        (at_input(0, 0, 2**202) + ONE * 2, 4),
        (at_phase(2, 1) + ONE * 2, 0),
        (at_phase(2, 2) + ONE * 2, 4),
        (at_phase(1, 0) + ONE * 2, 4),
        (at_phase(2, 0) + ONE + at_phase(2, 0) + ONE * 2, 4),
        (RENEW * 1000 + ONE, 0),
        (RENEW * 100000 + ONE, 0),
        (RENEW * 100001 + ONE, 4),
        (cut([0]) * 40 + ONE, 0),
    ):
        assert code(tree) == expected, tree[:20]


# ------------------------------------------------------------------------------------------------- as programs


def run(*arguments: Path) -> tuple[int, list[str], str]:
    made = subprocess.run(["node", str(CHECKER), *map(str, arguments)], capture_output=True, text=True, timeout=240)
    return made.returncode, made.stdout.splitlines(), made.stderr


def test_a_run_of_balls_and_a_box_beside_its_model(tmp_path: Path) -> None:
    """A run has a Merkle root; a box stands alone, with its files in its own folder."""
    model = linear()
    good = balls(model, [0, 0, -1], [ball([[0, 2]], 1, [ONE])])
    bad = balls(model, [0, 0, -1], [ball([[0, 2]], 2, [ONE])])
    box = boxes(model, [box_case([[0, 1]] * 3, [fact({"Y_0": 1, "Y_1": -1}, 0)], ONE)])
    inside = tmp_path / "certificates"
    inside.mkdir()
    (inside / "000000.json").write_bytes(canonical(good))
    assert run(tmp_path)[0] == 2
    (tmp_path / "model.onnx").write_bytes(model.data)
    code, lines, _ = run(tmp_path)
    assert (code, lines[-1]) == (0, "accepted 1 of 1")
    assert lines[-2].startswith("Merkle root ")
    assert "no class of 1 beats class 0 at any point of the ball (l2, real; whose point the center is" in lines[0]
    assert run(inside / "000000.json")[0] == 0
    (inside / "000001.json").write_bytes(canonical(bad))
    code, lines, _ = run(tmp_path)
    assert (code, lines[-1]) == (4, "refused 1 of 2")
    (inside / "000001.json").write_bytes(canonical(box))
    code, lines, _ = run(tmp_path)
    assert code == 4
    assert "stands alone" in lines[1]
    # Its files lie beside it, and not in the folder above.
    assert run(inside / "000001.json")[0] == 2
    path = tmp_path / "box.json"
    path.write_bytes(canonical(box))
    code, lines, _ = run(path)
    assert (code, lines[-1]) == (0, "accepted 1 of 1")
    assert "model.onnx has no input that meets the case stated here (real; q.vnnlib is not here" in lines[0]
    (tmp_path / "q.vnnlib").write_text("another")
    assert run(path)[0] == 4
