"""Box certificates: what the checker accepts is true, and what is not proved is refused."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric_models import Numeric, numeric, numeric_models
from onnx import TensorProto, helper, numpy_helper

from swapproof.proofs import check, check_box
from swapproof.proofs.writing import box_certificate as tree
from swapproof.proofs.writing.certificate import File

CHECKER = Path(check_box.__file__)
ONE = tree.Multipliers([1])
LEAF = tree.linear(ONE)
NO_QUERY = File("q.vnnlib", "0" * 64)
half = Fraction(1, 2)


def below(outputs: dict[int, Any], constant: Any, *, strict: bool = False, inputs: Any = None) -> tree.Constraint:
    """outputs + inputs + constant <= 0."""
    exact = {place: Fraction(c) for place, c in outputs.items()}
    return tree.Constraint({i: Fraction(c) for i, c in (inputs or {}).items()}, exact, Fraction(constant), strict)


def network_sha256(data: bytes) -> str:
    """Nothing, 64 digits long, where there is no network."""
    try:
        return check_box.read_model(data).lower().sha256
    except (check.Refused, check.Unusable):
        return "0" * 64


def written(folder: Path, cases: list[tree.Case], inputs: int, outputs: int) -> Path:
    """A certificate beside model.onnx in this folder."""
    model = File("model.onnx", check.sha256((folder / "model.onnx").read_bytes()))
    path = folder / "certificate.json"
    network = network_sha256((folder / "model.onnx").read_bytes())
    path.write_bytes(tree.write_box_certificate(tree.Statement(model, [], network, NO_QUERY, inputs, outputs, cases)))
    return path


def accepted(path: Path) -> bool:
    try:
        check_box.check_file(path)
    except (check.Refused, check.Unusable):
        return False
    return True


# ------------------------------------------------------------------------------------------------- a network by hand


@pytest.fixture
def hat(tmp_path: Path) -> Path:
    """One input, y = relu(x + 1) - 2 relu(x) + relu(x - 1): 0 outside [-1, 1], 1 - |x| inside."""
    first = numpy_helper.from_array(np.ones((1, 3), np.float32), "first")
    shift = numpy_helper.from_array(np.array([1, 0, -1], np.float32), "shift")
    last = numpy_helper.from_array(np.array([[1], [-2], [1]], np.float32), "last")
    nodes = [
        helper.make_node("Gemm", ["X", "first", "shift"], ["z"]),
        helper.make_node("Relu", ["z"], ["h"]),
        helper.make_node("MatMul", ["h", "last"], ["Y"]),
    ]
    shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in ("X", "Y")]
    graph = helper.make_graph(nodes, "hat", shape[:1], shape[1:], [first, shift, last])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8), tmp_path / "model.onnx"
    )
    return tmp_path


Bound = int | Fraction


def hat_case(low: Bound, high: Bound, constraint: tree.Constraint, proof: bytes) -> tree.Case:
    return tree.Case([(Fraction(low), Fraction(high))], [constraint], proof)


def at_least(level: Any, *, strict: bool = False) -> tree.Constraint:
    return below({0: -1}, level, strict=strict)


def test_a_proof_by_splits_is_accepted(hat: Path) -> None:
    """1 - |x| reaches no 5/4 on [-2, 2]: split at 0, at -1 and at 1."""
    outer = tree.split_input(0, 0, -1) + LEAF * 2
    proof = tree.split_input(0, 0, 0) + outer + tree.split_input(0, 0, 1) + LEAF * 2
    assert accepted(written(hat, [hat_case(-2, 2, at_least(Fraction(5, 4)), proof)], 1, 1))
    assert not accepted(written(hat, [hat_case(-2, 2, at_least(Fraction(5, 4)), LEAF)], 1, 1))


def test_a_proof_by_phases_is_accepted(hat: Path) -> None:
    """The neurons x + 1, x and x - 1, each at most or at least 0; x itself, times y's slope, is the multiplier."""

    def proof_of(on: tuple[int, ...]) -> bytes:
        if len(on) < 3:
            return tree.split_phase(2, len(on)) + proof_of((*on, 0)) + proof_of((*on, 1))
        slope = abs(on[0] - 2 * on[1] + on[2])
        return tree.linear(tree.Multipliers([1], {}, 0, {2: {1: slope}}))

    proof = proof_of(())
    assert not accepted(written(hat, [hat_case(-2, 2, at_least(1), proof)], 1, 1))
    assert accepted(written(hat, [hat_case(-2, 2, at_least(Fraction(5, 4)), proof)], 1, 1))


def test_touching_is_an_answer_unless_the_constraint_is_strict(hat: Path) -> None:
    """y reaches 1, at 0 only: y >= 1 has an answer, y > 1 has none."""
    proof = tree.split_input(0, 0, 0) + LEAF * 2
    assert accepted(written(hat, [hat_case(-1, 1, at_least(1, strict=True), proof)], 1, 1))
    assert not accepted(written(hat, [hat_case(-1, 1, at_least(1), proof)], 1, 1))


def test_strictness_counts_only_where_the_weight_is_positive(hat: Path) -> None:
    """-x <= 0 and x < 0 contradict each other by their sum; by the first alone nothing follows."""
    facts = [below({}, 0, inputs={0: -1}), below({}, 0, inputs={0: 1}, strict=True)]
    for weights, fine in (([1, 1], True), ([2, 2], True), ([1, 0], False), ([0, 0], False), ([0, 1], False)):
        case = tree.Case([(Fraction(-1), Fraction(1))], facts, tree.linear(tree.Multipliers(weights)))
        assert accepted(written(hat, [case], 1, 1)) == fine
    facts = [below({}, 0, inputs={0: -1}), below({}, 0, inputs={0: 1})]
    case = tree.Case([(Fraction(-1), Fraction(1))], facts, tree.linear(tree.Multipliers([1, 1])))
    assert not accepted(written(hat, [case], 1, 1))


def test_ends_are_exact_rationals(hat: Path) -> None:
    """In [0, 1/10] no input is above 1/10, as it was written and not as a float has it; one is at least 1/10."""
    for end in (Fraction(1, 10), Fraction(1, 3), Fraction(10**40 + 1, 10**41)):
        beyond = below({}, end, inputs={0: -1}, strict=True)
        assert accepted(written(hat, [hat_case(0, end, beyond, LEAF)], 1, 1))
        touching = below({}, end, inputs={0: -1})
        assert not accepted(written(hat, [hat_case(0, end, touching, LEAF)], 1, 1))


def test_a_cut_moves_the_ends_and_sharpens_what_is_below(hat: Path) -> None:
    """x >= 1/2 as a constraint cuts [-2, 2] to [1/2, 2], where y <= 1/2; without the cut the leaf does not hold."""
    facts = [at_least(Fraction(3, 4)), below({}, half, inputs={0: -1})]
    second, first = tree.Multipliers([0, 1]), tree.Multipliers([1, 0])
    box = [(Fraction(-2), Fraction(2))]
    done = tree.split_input(0, 0, 1) + tree.linear(first) * 2
    assert accepted(written(hat, [tree.Case(box, facts, tree.cut(second) + done)], 1, 1))
    assert not accepted(written(hat, [tree.Case(box, facts, done)], 1, 1))


def test_below_a_cut_bounds_are_found_anew_only_when_asked(hat: Path) -> None:
    """The ends are [1/2, 1] then: x and x - 1 are decided by them, and by the bounds of the whole box they are not."""
    facts = [at_least(Fraction(3, 4)), below({}, half, inputs={0: -1}), below({}, -1, inputs={0: 1})]
    cuts = tree.cut(tree.Multipliers([0, 1, 0])) + tree.cut(tree.Multipliers([0, 0, 1]))
    leaf = tree.linear(tree.Multipliers([1, 0, 0]))
    box = [(Fraction(-2), Fraction(2))]
    assert accepted(written(hat, [tree.Case(box, facts, cuts + tree.renew() + leaf)], 1, 1))
    assert not accepted(written(hat, [tree.Case(box, facts, cuts + leaf)], 1, 1))


Change = Callable[[dict[str, Any]], object]


def case_of(top: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = top["cases"][0]
    return found


def retree(change: Callable[[bytes], bytes]) -> Change:
    def changed(top: dict[str, Any]) -> None:
        case_of(top)["tree"] = base64.b64encode(change(base64.b64decode(case_of(top)["tree"]))).decode()

    return changed


ATTACKS: dict[str, tuple[Change, str]] = {
    "a wider box": (lambda top: case_of(top).update(box=[["0", "1"]]), "does not hold"),
    "ends crossed": (lambda top: case_of(top).update(box=[["1", "-1"]]), "crossed ends"),
    "a box too many": (lambda top: case_of(top)["box"].append(["0", "1"]), "a box of another size"),
    "not in lowest terms": (lambda top: case_of(top).update(box=[["-1", "2/2"]]), "not in lowest terms"),
    "minus zero": (lambda top: case_of(top).update(box=[["-0", "1"]]), "not in lowest terms"),
    "a number over 0": (lambda top: case_of(top).update(box=[["-1", "1/0"]]), "a number over 0"),
    "a decimal": (lambda top: case_of(top).update(box=[["-1", "1.0"]]), "not as it should be"),
    "an integer for a string": (lambda top: case_of(top).update(box=[[-1, 1]]), "not as it should be"),
    "an endless input": (lambda top: case_of(top).update(box=[["-1", str(1 << 128)]]), r"2\*\*128 or more"),
    "strictness added": (lambda top: case_of(top)["constraints"][0].update(strict=2), "an integer from 0 to 1"),
    "a lower level": (lambda top: case_of(top)["constraints"][0].update(constant="1/4"), "does not hold"),
    "no constraint": (lambda top: case_of(top).update(constraints=[]), "layer 0 is not a rectifier"),
    "an output that is none": (
        lambda top: case_of(top)["constraints"][0].update(coefficients={"Y_1": "-1"}),
        "out of range",
    ),
    "an input that is none": (
        lambda top: case_of(top)["constraints"][0].update(coefficients={"X_1": "-1"}),
        "out of range",
    ),
    "a name with zeros": (lambda top: case_of(top)["constraints"][0].update(coefficients={"Y_00": "-1"}), "neither"),
    "a coefficient 0": (lambda top: case_of(top)["constraints"][0].update(coefficients={"Y_0": "0"}), "coefficient 0"),
    "more outputs": (lambda top: top.update(outputs=2), "the model has 1 outputs"),
    "more inputs": (lambda top: top.update(inputs=2), "a box of another size"),
    "another model": (lambda top: top["model"].update(sha256="0" * 64), "made for another model"),
    "another network": (lambda top: top.update(network="0" * 64), "made for another network"),
    "a tensor file": (lambda top: top["model"].update(tensors=[["model.onnx", "0" * 64]]), "other external tensors"),
    "another recipe": (lambda top: top.update(recipe="box-1"), "recipe"),
    "another version": (lambda top: top.update(version=1), "version"),
    "a key more": (lambda top: top.update(more=0), "must have exactly the keys"),
    "a key of a case more": (lambda top: case_of(top).update(more=0), "a case is not as it should be"),
    "an open leaf": (retree(lambda data: data[: -len(LEAF)] + b"\0"), "not in the format"),
    "a leaf left out": (retree(lambda data: data[: -len(LEAF)]), "ends too early"),
    "a leaf more": (retree(lambda data: data + LEAF), "bytes after the end"),
    "an input that is not there": (retree(lambda data: tree.split_input(1, 0, 0) + data[4:]), "out of range"),
    "a split too fine": (retree(lambda data: tree.split_input(0, 65, 0) + data[4:]), "beyond 64"),
    "a long number": (retree(lambda data: data[:3] + b"\x80\0" + data[4:]), "not minimal"),
    "an endless number": (retree(lambda data: data[:3] + b"\xff" * 40), "too large"),
    "a phase of no rectifier": (retree(lambda data: tree.split_phase(0, 0) + data[4:]), "not a rectifier"),
    "a phase of no element": (retree(lambda data: tree.split_phase(2, 3) + data[4:]), "out of range or set twice"),
    "a phase set twice": (retree(lambda data: tree.split_phase(2, 0) * 2 + data[4:]), "out of range or set twice"),
    "a slope above 1": (
        retree(lambda data: tree.linear(tree.Multipliers([1], {2: {0: 65}})) + data[4:]),
        "a value out of range",
    ),
    "a beta too fine": (retree(lambda data: b"\1\1\0\x1f\0"), "betas finer"),
    "no tree": (lambda top: case_of(top).update(tree=""), "ends too early"),
    "padding": (lambda top: case_of(top).update(tree=case_of(top)["tree"] + "===="), "base64|Base64|padding"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused(name: str, hat: Path) -> None:
    """For the reason stated, and by a checker that accepts the certificate as it was."""
    proof = tree.split_input(0, 2, 3) + LEAF * 2
    path = written(hat, [hat_case(Fraction(5, 8), 1, at_least(half), proof)], 1, 1)
    assert accepted(path)
    top = json.loads(path.read_bytes())
    change, reason = ATTACKS[name]
    change(top)
    path.write_text(json.dumps(top, sort_keys=True, separators=(",", ":")))
    with pytest.raises((check.Refused, ValueError), match=reason):
        check_box.check_file(path)


def test_a_query_beside_it_must_be_the_one_it_names(hat: Path) -> None:
    path = written(hat, [hat_case(-1, 1, at_least(3), LEAF)], 1, 1)
    assert "is not here to be compared" in check_box.check_file(path).sentence
    (hat / "q.vnnlib").write_text("another")
    with pytest.raises(check.Refused, match="made for another query"):
        check_box.check_file(path)


def test_it_runs_alone(hat: Path) -> None:
    """By the standard library only: 0 and `accepted 1 of 1` last, 4 when refused, 2 when there is nothing to check."""
    path = written(hat, [hat_case(-1, 1, at_least(3), LEAF)], 1, 1)

    def run(*arguments: str) -> tuple[int, list[str], str]:
        command = [sys.executable, "-I", "-S", str(CHECKER), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=hat, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    code, lines, _ = run(str(path))
    assert (code, lines[-1]) == (0, "accepted 1 of 1")
    assert "model.onnx has no input that meets the case stated here (real; that q.vnnlib says the same" in lines[0]
    code, lines, _ = run(str(written(hat, [hat_case(-1, 1, at_least(0), LEAF)], 1, 1)))
    assert (code, lines[-1]) == (4, "refused 1 of 1")
    assert not any("accepted" in line for line in lines)
    path.write_bytes(b"{}")
    assert run(str(path))[0] == 4
    assert run(str(hat / "nothing.json"))[0] == 2
    assert run()[0] == 2
    (hat / "model.onnx").unlink()
    assert run(str(written_for_no_model(hat)))[0] == 2


def written_for_no_model(folder: Path) -> Path:
    path = folder / "certificate.json"
    statement = tree.Statement(
        File("model.onnx", "0" * 64), [], "0" * 64, NO_QUERY, 1, 1, [hat_case(-1, 1, at_least(3), LEAF)]
    )
    path.write_bytes(tree.write_box_certificate(statement))
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda model: setattr(model.graph.node[1], "op_type", "Softmax"), "a head in a network of numbers"),
        (lambda model: setattr(model.opset_import[0], "version", 6), "a version from 7 to 22"),
        (lambda model: model.graph.node.insert(1, helper.make_node("Dropout", ["z"], ["w"])), None),
        (lambda model: model.graph.input[0].type.tensor_type.shape.dim[1].Clear(), "fixed sizes"),
        (lambda model: setattr(model.graph.input[0].type.tensor_type, "elem_type", 7), "FLOAT, FLOAT16 or DOUBLE"),
        (lambda model: setattr(model.graph.input[0].type.tensor_type, "elem_type", 11), "mixes floating types"),
    ],
)
def test_models_outside_the_format(change: Change, reason: str | None, hat: Path) -> None:
    """None: within it, since the output does not depend on what was added."""
    model = onnx.load(hat / "model.onnx")
    change(model)
    onnx.save(model, hat / "model.onnx")
    path = written(hat, [hat_case(-1, 1, at_least(3), LEAF)], 1, 1)
    if reason is None:
        assert accepted(path)
    else:
        with pytest.raises(check.Unusable, match=reason):
            check_box.check_file(path)


# ----------------------------------------------------------------------------------------------------- against others

EXACT = ("dense", "deep", "residual", "leaky", "maximum")


def outputs_of(model: Any, x: list[Any], relu: Callable[[Any], Any], largest: Callable[..., Any]) -> list[Any]:
    """The outputs for inputs of any kind of exact number, by nothing of ours."""
    values: dict[str, Any] = {}
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        exact = [Fraction(float(number)) for number in array.reshape(-1)]
        values[tensor.name] = np.array([*exact, None], dtype=object)[:-1].reshape(array.shape)
    values["X"] = np.array([*x, None], dtype=object)[:-1].reshape(1, -1)
    for node in model.graph.node:
        parts = [values[name] for name in node.input]
        match node.op_type:
            case "Gemm":
                found = parts[0] @ parts[1] + parts[2]
            case "Relu":
                found = np.array([[relu(value) for value in parts[0][0]]], dtype=object)
            case "LeakyRelu":
                slope = Fraction(node.attribute[0].f)
                found = np.array([[slope * v + (1 - slope) * relu(v) for v in parts[0][0]]], dtype=object)
            case "Add":
                found = parts[0] + parts[1]
            case "Max":
                columns = zip(*(part[0] for part in parts), strict=True)
                found = np.array([[largest(*column) for column in columns]], dtype=object)
        values[node.output[0]] = found
    return list(values["Y"][0])


def exact_outputs(model: Any, x: list[Fraction]) -> list[Fraction]:
    return outputs_of(model, x, lambda value: max(value, Fraction(0)), max)


def has_answer(model: Any, certificate: bytes) -> bool:
    """Whether some case of a certificate has an answer, by z3 over the reals."""
    import z3

    top, cases = check_box.read_certificate(certificate)
    x = [z3.Real(f"x{i}") for i in range(top["inputs"])]

    def rational(number: Fraction) -> Any:
        return z3.RealVal(str(number))

    def larger(*values: Any) -> Any:
        found = values[0]
        for value in values[1:]:
            found = z3.If(found >= value, found, value)
        return found

    class Term:
        """An expression that takes Fractions."""

        def __init__(self, term: Any) -> None:
            self.term = term

        def __add__(self, other: Any) -> Any:
            return Term(self.term + (other.term if isinstance(other, Term) else rational(other)))

        __radd__ = __add__

        def __mul__(self, other: Fraction) -> Any:
            return Term(self.term * rational(other))

        __rmul__ = __mul__

    y = outputs_of(
        model,
        [Term(one) for one in x],
        lambda value: Term(z3.If(value.term >= 0, value.term, z3.RealVal(0))),
        lambda *values: Term(larger(*(value.term for value in values))),
    )
    solver = z3.Solver()
    options = []
    for case in cases:
        facts = [z3.And(rational(low) <= v, v <= rational(high)) for v, (low, high) in zip(x, case.box, strict=True)]
        for constraint in case.constraints:
            total = rational(constraint.constant)
            for place, c in constraint.outputs.items():
                total = total + rational(c) * y[place].term
            for place, c in constraint.inputs.items():
                total = total + rational(c) * x[place]
            facts.append(total < 0 if constraint.strict else total <= 0)
        options.append(z3.And(*facts))
    solver.add(z3.Or(*options))
    found = solver.check()
    assert found in (z3.sat, z3.unsat)
    return bool(found == z3.sat)


def proved(sample: Numeric, folder: Path, levels: list[tuple[int, float, bool]]) -> Path | None:
    """The certificate for: every output of `levels` is at most its level (or below it), in [-1/2, 1/2] each."""
    from swapproof.verifier.queries.answering import Verifier

    size = int(np.prod(sample.shape))
    lines = [f"(declare-const X_{i} Real)" for i in range(size)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(sample.outputs)]
    lines += [f"(assert (<= X_{i} 0.5))(assert (>= X_{i} -0.5))" for i in range(size)]
    lines += [f"(assert ({'<' if strict else '<='} Y_{place} {level:.9f}))" for place, level, strict in levels]
    (folder / "q.vnnlib").write_text("\n".join(lines))
    path = folder / "certificate.json"
    verdict = Verifier().verify(folder / "q.vnnlib", sample.save(folder), 20.0, path)
    assert (verdict.answer == "unsat") == path.exists()
    return path if path.exists() else None


def least_outputs(sample: Numeric, source: int) -> Any:
    """Of many points of the box."""
    import onnxruntime

    session = onnxruntime.InferenceSession(sample.model.SerializeToString(), providers=["CPUExecutionProvider"])
    points = np.random.default_rng(source).uniform(-0.5, 0.5, size=(300, int(np.prod(sample.shape))))
    points[100:] = np.sign(points[100:]) * 0.5
    runs = [session.run(None, {"X": x.astype(np.float32).reshape(sample.shape)})[0].reshape(-1) for x in points]
    return np.array(runs).min(axis=0)


@given(
    sample=numeric_models(EXACT),
    source=st.integers(0, 1000),
    below_by=st.sampled_from([1.0, 0.1, 0.01, 1e-3]),
    strict=st.booleans(),
    data=st.data(),
)
@settings(max_examples=12, deadline=None)
def test_certificates_are_made_accepted_and_true(
    sample: Numeric, source: int, below_by: float, strict: bool, data: st.DataObject
) -> None:
    """Every unsat has one, z3 agrees, and so it does with whatever else is accepted after a change."""
    with TemporaryDirectory() as name:
        least = least_outputs(sample, source)
        levels = [(place, float(least[place]) - below_by, strict) for place in range(sample.outputs)]
        path = proved(sample, Path(name), levels[: data.draw(st.integers(1, sample.outputs))])
        if path is None:
            return
        certificate = path.read_bytes()
        assert not has_answer(sample.model, certificate)
        changes = random.Random(data.draw(st.integers(0, 2**32 - 1)))
        for _ in range(8):
            path.write_bytes(changed(certificate, changes))
            if accepted(path):
                assert not has_answer(sample.model, path.read_bytes())


def changed(certificate: bytes, source: random.Random) -> bytes:
    """A number of the statement or a few bytes of a tree are others."""
    top = json.loads(certificate)
    case = source.choice(top["cases"])
    tree_bytes = bytearray(base64.b64decode(case["tree"]))
    fact = source.choice(case["constraints"])
    number = str(Fraction(source.randint(-8, 8), source.choice([1, 2, 10, 1000])))
    match source.randrange(8):
        case 0:
            source.choice(case["box"])[source.randrange(2)] = number
        case 1:
            fact["constant"] = str(Fraction(fact["constant"]) + Fraction(source.randint(-20, 20), 1000))
        case 2:
            fact["coefficients"][source.choice(list(fact["coefficients"]))] = number
        case 3:
            fact["strict"] = 1 - fact["strict"]
        case 4:
            del tree_bytes[(at := source.randrange(len(tree_bytes))) : at + source.randint(1, 6)]
        case 5:
            at = source.randrange(len(tree_bytes))
            tree_bytes[at:at] = source.randbytes(source.randint(1, 4))
        case 6:
            case["constraints"].append(dict(source.choice(case["constraints"])))
        case _:
            for _ in range(source.randint(1, 3)):
                at = source.randrange(len(tree_bytes))
                tree_bytes[at] = source.choice([tree_bytes[at] ^ 1, tree_bytes[at] ^ 2, source.randrange(64)])
    case["tree"] = base64.b64encode(bytes(tree_bytes)).decode()
    return json.dumps(top, sort_keys=True, separators=(",", ":")).encode()


class Wandering(check_box.Tree):
    """Reads a tree without asking its leaves to hold; `seen` are the regions at its leaves."""

    seen: tuple[check_box.Region, ...] = ()

    def holds(self, region: check_box.Region) -> bool:
        super().holds(region)
        self.seen = (*self.seen, region)
        return True


Free = frozenset[tuple[int, int]]


def space_of(model: onnx.ModelProto) -> check_box.Space:
    found = check_box.read_model(model.SerializeToString()).lower()
    return check_box.Space(check_box.Network(found.data, found.numbers, 1 << check.GRID), inf)


def rectifiers(space: check_box.Space) -> list[tuple[int, check.Rectifier]]:
    return [(index, layer) for index, layer in enumerate(space.network.layers) if isinstance(layer, check.Rectifier)]


def random_tree(source: random.Random, space: check_box.Space, constraints: int, depth: int, free: Free) -> bytes:
    """`free` are the elements without a phase."""
    nodes = [(index, layer.size) for index, layer in rectifiers(space)]

    def some(highest: int) -> dict[int, dict[int, int]]:
        return {
            node: {i: source.randint(0, highest) for i in sorted(source.sample(range(size), source.randint(1, size)))}
            for node, size in nodes
            if source.random() < 0.7
        }

    weights = [source.randint(0, 3) for _ in range(constraints)]
    multipliers = tree.Multipliers(weights, some(64), source.randint(0, 3), some(4))
    if depth == 0:
        return tree.linear(multipliers)
    key = source.choice(sorted(free)) if free else None
    split = source.randrange(5)
    left = free - {key} if split == 1 and key else free
    rest = [random_tree(source, space, constraints, depth - 1, left) for _ in range(2)]
    match split:
        case 0:
            place = source.randrange(len(space.columns[0]))
            return tree.split_input(place, 3, source.randint(-6, 6)) + rest[0] + rest[1]
        case 1 if key:
            return tree.split_phase(*key) + rest[0] + rest[1]
        case 2:
            return tree.renew() + rest[0]
        case _:
            return tree.cut(multipliers) + rest[0]


@given(sample=numeric_models(EXACT), source=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_no_answer_is_lost_below_any_nodes(sample: Numeric, source: int) -> None:
    """Whatever is split and cut by whatever multipliers: every answer is in a leaf's ends, planes and bounds."""
    chosen = random.Random(source)
    size = int(np.prod(sample.shape))
    space = space_of(sample.model)
    points = [[Fraction(chosen.randint(-32, 32), 64) for _ in range(size)] for _ in range(40)]
    outputs = [exact_outputs(sample.model, x) for x in points]
    facts = []
    for place in range(sample.outputs):
        sizes = sorted(y[place] for y in outputs)
        facts.append(check_box.Constraint({place: Fraction(1)}, {}, -sizes[len(sizes) * 2 // 3], False))
    answers = [
        x for x, y in zip(points, outputs, strict=True) if all(y[i] + f.constant <= 0 for i, f in enumerate(facts))
    ]
    scale = space.network.input_scale
    half_ends = tuple((-(scale // 2), scale // 2) for _ in range(size))
    free = frozenset((index, i) for index, layer in rectifiers(space) for i in range(layer.size))
    data = random_tree(chosen, space, len(facts), 5, free)
    walk = Wandering(space, half_ends, facts, data, inf)
    walk.walk()
    for x in answers:
        assert any(inside(space, region, x) for region in walk.seen)


def inside(space: check_box.Space, region: check_box.Region, x: list[Fraction]) -> bool:
    """Whether an input is in a region; if it is, all that the region knows must hold there."""
    network, numbers = space.network, [int(value * space.network.input_scale) for value in x]
    values = values_at(space, numbers)
    for element, sign in region.inputs.phases.items():
        layer = network.owner[element]
        assert isinstance(layer, check.Rectifier)
        if sign * values[layer.sources[element - layer.start]] < 0:
            return False
    outside = any(not low <= n <= high for n, (low, high) in zip(numbers, region.inputs.ends, strict=True))
    plane = region.inputs.plane
    if outside or (plane and sum(s * n for s, n in zip(plane[0], numbers, strict=True)) < plane[1]):
        return False
    known = dict(region.inputs.kept)
    box = space.bounds(region.inputs)  # type: ignore[arg-type]
    for layer, here in box.inputs.items():
        known.update(zip(check.sources_of(layer), here, strict=True))
    for i, (low, high) in known.items():
        (number,) = exact(network, values, [i])
        assert low <= number * (1 << check.GRID) <= high
    return True


@pytest.mark.parametrize("kind", ["dense", "deep", "residual", "leaky", "maximum"])
def test_the_checker_reads_the_network_that_onnx_means(kind: str) -> None:
    """At random points: the numbers of the layers give the outputs, and the inputs behind them."""
    for source in range(5):
        sample = numeric(kind, source)
        space = space_of(sample.model)
        chosen = random.Random(source)
        x = [Fraction(chosen.randint(-64, 64), 64) for _ in range(int(np.prod(sample.shape)))]
        network = space.network
        values = values_at(space, [int(value * network.input_scale) for value in x])
        assert exact(network, values, network.logits) == exact_outputs(sample.model, x)
        assert exact(network, values, network.inputs) == x


def values_at(space: check_box.Space, numbers: list[int]) -> list[int]:
    """Every element of layers that are not affine in the inputs, and of the cut."""
    network = space.network
    values = network.start()
    for slot, i in enumerate(network.cut):
        values[i] = space.base[slot] + sum(c * n for c, n in zip(space.columns[slot], numbers, strict=True))
    network.evaluate(network.later, values)
    return values


def exact(network: check.Network, values: list[int], elements: Iterable[int]) -> list[Fraction]:
    return [Fraction(values[i], network.owner[i].scale) for i in elements]


def test_columns_of_few_inputs_and_planes_are_bounded_as_any_other() -> None:
    """Columns with few inputs are added up pair by pair, and what a plane gives is the least over all its turns."""
    source = random.Random(1)
    for number in range(60):
        count = source.randint(1, 9)
        ends = tuple((low, low + source.randint(0, 40)) for low in (source.randint(-50, 10) for _ in range(count)))
        columns = [
            [source.choice([0, 0, 0, source.randint(-9, 9)]) if number % 2 else source.randint(-9, 9) for _ in ends]
            for _ in range(4)
        ]
        space = check_box.Space.__new__(check_box.Space)
        space.columns, space.base = columns, [source.randint(-5, 5) for _ in columns]
        space.pairs = [check_box.few(column) for column in columns]
        inputs = check_box.Inputs(space, ends, None, {})
        for slot, column in enumerate(columns):
            assert inputs.column_extremes(slot) == inputs.extremes(column)
        factors = [source.randint(-9, 9) for _ in columns]
        summed = [sum(c * column[i] for c, column in zip(factors, columns, strict=True)) for i in range(count)]
        greatest = inputs.best(summed) + sum(c * b for c, b in zip(factors, space.base, strict=True))
        assert space.maximum(inputs, tuple(enumerate(factors))) == greatest
        plane = ([source.randint(-9, 9) for _ in ends], source.randint(-200, 200))
        below = check_box.Inputs(space, ends, plane, {})
        for column in columns:
            turns = {Fraction(abs(c), abs(s)) for c, s in zip(column, plane[0], strict=True) if c * s < 0}
            values = [
                sum(max((c + u * s) * end for end in each) for c, s, each in zip(column, plane[0], ends, strict=True))
                - u * plane[1]
                for u in sorted(turns) or [Fraction(0)]
            ]
            assert -1 <= below.beyond(column, *plane) - min(values) <= 1
    assert check_box.few([0, 0, 3]) == [(2, 3)]
    assert check_box.few([0, 2, 3]) is None
