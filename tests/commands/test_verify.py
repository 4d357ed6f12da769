"""`swapproof verify`: right on every query whose answer is known, and every witness is one."""

from __future__ import annotations

import csv
import json
import re
import time
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric_models import Numeric, numeric, numeric_models

from swapproof.encodings.vnnlib.vnnlib_reading import read_vnnlib
from swapproof.verifier.cli import main
from swapproof.verifier.queries.answering import Verifier
from swapproof.verifier.queries.over_reals import exact_outputs

Capture = pytest.CaptureFixture[str]
SECONDS = 30.0


def query(sample: Numeric, radius: float, facts: list[str]) -> str:
    size = int(np.prod(sample.shape))
    lines = [f"(declare-const X_{i} Real)" for i in range(size)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(sample.outputs)]
    lines += [f"(assert (<= X_{i} {radius}))(assert (>= X_{i} -{radius}))" for i in range(size)]
    return "\n".join([*lines, *(f"(assert {fact})" for fact in facts)])


def run(sample: Numeric, x: Any) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(sample.model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": np.asarray(x, dtype=np.float32).reshape(sample.shape)})[0].reshape(-1)


@given(sample=numeric_models(), source=st.integers(0, 1000), data=st.data())
@settings(max_examples=25)
def test_no_answer_is_wrong(sample: Numeric, source: int, data: st.DataObject) -> None:
    """unsat: none of many points, corners among them, satisfies the query. sat: onnxruntime confirms the witness."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        model = sample.save(folder)
        verifier = Verifier()
        stack = verifier.load(model).stack
        points = np.random.default_rng(source).uniform(-0.5, 0.5, size=(2000, stack.inputs))
        points[1000:] = np.sign(points[1000:]) * 0.5
        values = stack.values(points)[1]
        spread = values.std(axis=0)
        # Levels around the least value met: some queries are barely satisfiable, some barely not.
        place = data.draw(st.integers(0, sample.outputs - 1))
        level = values[:, place].min() + max(spread[place], 0.1) * data.draw(
            st.sampled_from([-1.0, -0.1, -0.01, 0.01, 0.3])
        )
        facts = [f"(<= Y_{place} {level:.12f})"]
        if sample.outputs > 1 and data.draw(st.booleans()):
            facts.append(f"(or (<= Y_0 Y_1) (>= Y_0 {np.median(values[:, 0]):.12f}))")
        path = folder / "q.vnnlib"
        path.write_text(query(sample, 0.5, facts))
        verdict = verifier.verify(path, model, SECONDS)
        property = read_vnnlib(path)
        if verdict.answer == "unsat":
            for x, y in zip(points, values, strict=True):
                inputs, outputs = (dict(enumerate(map(Fraction, map(float, part)))) for part in (x, y))
                assert not any(
                    all(atom.value(inputs, outputs) < -1e-6 for atom in case.atoms) for case in property.cases
                )
        if verdict.answer == "sat":
            assert verdict.witness is not None
            y = run(sample, verdict.witness.inputs)
            assert y.tolist() == list(verdict.witness.outputs)
            assert all(abs(value) <= 0.5 for value in verdict.witness.inputs)
            inputs, outputs = (
                dict(enumerate(map(Fraction, part))) for part in (verdict.witness.inputs, verdict.witness.outputs)
            )
            assert any(all(atom.holds(inputs, outputs) for atom in case.atoms) for case in property.cases)
            real = exact_outputs(verifier.load(model).network, list(inputs.values()))
            assert [float(value) for value in real] == pytest.approx(verdict.witness.outputs, rel=1e-4, abs=1e-4)
            over_reals = dict(enumerate(real))
            holds = any(all(atom.holds(inputs, over_reals) for atom in case.atoms) for case in property.cases)
            assert holds == (verdict.remarks == ())
        assert verdict.answer in ("sat", "unsat")


@pytest.fixture
def sample(tmp_path: Path) -> Numeric:
    found = numeric("deep", 5)
    found.save(tmp_path)
    return found


def written(folder: Path, sample: Numeric, facts: list[str]) -> list[str]:
    (folder / "q.vnnlib").write_text(query(sample, 0.5, facts))
    return ["verify", str(folder / "q.vnnlib"), "--network", f"N={folder / 'model.onnx'}", "--timeout", "30"]


def test_sat_is_printed_with_a_witness_in_the_standard_form(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    assert main(written(tmp_path, sample, ["(<= Y_0 1000)"])) == 1
    first, rest = capsys.readouterr().out.split("\n", 1)
    assert first == "sat"
    numbers = re.findall(r"\(([XY]_\d+) (-?\d+(?:\.\d+)?)\)", rest)
    size = int(np.prod(sample.shape))
    assert [name for name, _ in numbers] == [f"X_{i}" for i in range(size)] + [f"Y_{i}" for i in range(sample.outputs)]
    x = [float(value) for name, value in numbers if name[0] == "X"]
    assert run(sample, x).tolist() == [float(value) for name, value in numbers if name[0] == "Y"]
    assert re.fullmatch(r"\(\(.*\)\)\n", rest, re.DOTALL)


@pytest.mark.parametrize(
    ("fact", "hint"),
    [
        ("(< Y_0 0.0000000298023223876953125)", "its strict bound is met exactly"),
        ("(<= Y_0 0.00000001)", "by 1.98e-08"),
        ("(<= Y_0 0.0000000298023223876953125)", None),
        ("(or (< Y_0 0.0000000298023223876953125) (< Y_0 0.00000003))", None),
    ],
)
def test_a_witness_that_only_rounding_makes_one_is_said_to_be(
    fact: str, hint: str | None, tmp_path: Path, capsys: Capture
) -> None:
    """1 + 2^-25 - 1 is 0 in float32, and 2^-25 over the reals: the verdict stays, and stderr says what it is worth."""
    nodes = [
        onnx.helper.make_node("Add", ["X", "little"], ["v"]),
        onnx.helper.make_node("Relu", ["v"], ["w"]),
        onnx.helper.make_node("Sub", ["w", "one"], ["Y"]),
    ]
    kind = onnx.TensorProto.FLOAT
    x, y = ([onnx.helper.make_tensor_value_info(name, kind, [1, 1])] for name in "XY")
    numbers = [onnx.helper.make_tensor(n, kind, [1], [v]) for n, v in (("little", 2.0**-25), ("one", 1.0))]
    graph = onnx.helper.make_graph(nodes, "rounding", x, y, numbers)
    sample = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(sample, tmp_path / "model.onnx")
    box = "(declare-const X_0 Real)(declare-const Y_0 Real)\n(assert (>= X_0 1.0))(assert (<= X_0 1.0))"
    (tmp_path / "q.vnnlib").write_text(f"{box}\n(assert {fact})\n")
    (tmp_path / "i.csv").write_text("model.onnx,q.vnnlib,10\n")
    arguments = ["verify", str(tmp_path / "q.vnnlib"), "--network", str(tmp_path / "model.onnx")]
    for command, code in ((arguments, 1), (["verify", "--batch", str(tmp_path / "i.csv")], 0)):
        assert main(command) == code
        shown = capsys.readouterr()
        assert "sat" in shown.out.replace(",", "\n").split()
        said = [line for line in shown.err.splitlines() if line.startswith("swapproof")]
        assert len(said) == (hint is not None)
        if hint is not None:
            assert f"holds in float32 only: over the reals it fails the fact on line 3 ({hint})" in said[0]


@pytest.mark.parametrize(("fact", "said"), [("(<= Y_0 1000)", "sat"), ("(>= Y_0 1000)", "unsat")])
def test_the_same_as_one_json_object(tmp_path: Path, sample: Numeric, capsys: Capture, fact: str, said: str) -> None:
    asked = written(tmp_path, sample, [fact])
    code = main(asked)
    plain = capsys.readouterr().out
    assert main([*asked, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert (found["answer"], found["exit_code"]) == (said, code)
    assert plain == "\n".join([said, *([] if found["witness"] is None else [found["witness"]])]) + "\n"


def test_unsat_is_one_word(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    assert main(written(tmp_path, sample, ["(>= Y_0 1000)"])) == 0
    assert capsys.readouterr().out == "unsat\n"


def test_no_time_is_timed_out(tmp_path: Path, capsys: Capture) -> None:
    """A query that no bound of the whole box settles."""
    sample = numeric("deep", 5)
    model = sample.save(tmp_path)
    stack = Verifier().load(model).stack
    points = np.random.default_rng(0).uniform(-0.5, 0.5, size=(4000, stack.inputs))
    level = stack.values(points)[1][:, 0].max() + 1e-3
    arguments = written(tmp_path, sample, [f"(>= Y_0 {level:.9f})"])
    assert main([*arguments[:-1], "0.0001"]) == 3
    assert capsys.readouterr().out == "timed-out\n"


def test_version_2_is_answered_in_its_own_form(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    size = int(np.prod(sample.shape))
    lines = ["(vnnlib-version <2.0>)", "(declare-network N", f"(declare-input A float32 [1,{size}])"]
    lines += [f"(declare-output B float32 [1,{sample.outputs}]))"]
    lines += [f"(assert (and (<= A[0,{i}] 0.5) (>= A[0,{i}] -0.5)))" for i in range(size)]
    (tmp_path / "q.vnnlib").write_text("\n".join([*lines, "(assert (< B[0,0] 1000.0))"]))
    arguments = ["verify", str(tmp_path / "q.vnnlib"), "--network"]
    assert main([*arguments, f"N={tmp_path / 'model.onnx'}"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["sat", f"A float32 [1,{size}]"]
    assert out[size + 2] == f"B float32 [1,{sample.outputs}]"
    assert run(sample, [float(value) for value in out[2 : size + 2]]).tolist() == [float(v) for v in out[size + 3 :]]
    assert main([*arguments, f"M={tmp_path / 'model.onnx'}"]) == 2
    assert "--network names M" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kinds", "refusal"),
    [
        (("float64", "float32"), "line 3: input A is float64, and the input of model.onnx is float32"),
        (("float32", "float16"), "line 4: output B is float16, and the output of model.onnx is float32"),
        (("Real", "Real"), ""),
    ],
)
def test_a_declared_type_is_that_of_the_model_or_real(
    kinds: tuple[str, str], refusal: str, tmp_path: Path, sample: Numeric, capsys: Capture
) -> None:
    """The standard asks for an error where they do not match, and for none where the query leaves the type open."""
    size = int(np.prod(sample.shape))
    lines = ["(vnnlib-version <2.0>)", "(declare-network N", f"(declare-input A {kinds[0]} [1,{size}])"]
    lines += [f"(declare-output B {kinds[1]} [1,{sample.outputs}]))"]
    lines += [f"(assert (and (<= A[0,{i}] 0.5) (>= A[0,{i}] -0.5)))" for i in range(size)]
    (tmp_path / "q.vnnlib").write_text("\n".join([*lines, "(assert (< B[0,0] 1000.0))"]))
    code = main(["verify", str(tmp_path / "q.vnnlib"), "--network", f"N={tmp_path / 'model.onnx'}"])
    assert code == (2 if refusal else 1)
    assert refusal in capsys.readouterr().err


def test_a_box_between_two_floats_has_no_witness(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    """1/10 is no float32: nothing that the model can read lies inside the box, so sat is never said."""
    arguments = written(tmp_path, sample, ["(<= Y_0 1000)", "(>= X_0 0.1)", "(<= X_0 0.1)"])
    assert main([*arguments[:-1], "2"]) == 3
    assert capsys.readouterr().out.strip() in ("unknown", "timed-out")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (["(<= Y_0 0)", "(<= X_77 1)"], "X_77 is not declared"),
        (["(<= (* Y_0 X_0) 0)"], "a product of two variables"),
    ],
)
def test_bad_queries_are_one_line_that_names_the_line(
    facts: list[str], message: str, tmp_path: Path, sample: Numeric, capsys: Capture
) -> None:
    assert main(written(tmp_path, sample, facts)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert re.search(r"line \d+", error)
    assert error.count("\n") == 1


def test_a_query_for_another_shape_names_its_line(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    other = Numeric(sample.model, (1, 7), sample.outputs, "deep", 5)
    assert main(written(tmp_path, other, ["(<= Y_0 0)"])) == 2
    assert "line 1: input X has 7 numbers" in capsys.readouterr().err


def test_networks_that_are_not_piecewise_linear_are_refused_by_name(tmp_path: Path, capsys: Capture) -> None:
    import onnx

    sample = numeric("dense", 1)
    for node in sample.model.graph.node:
        if node.op_type == "Relu":
            node.op_type = "Sigmoid"
    onnx.save(sample.model, tmp_path / "model.onnx")
    assert main(written(tmp_path, sample, ["(<= Y_0 0)"])) == 2
    said = capsys.readouterr().err
    assert "(Sigmoid): not piecewise linear" in said
    assert {"Relu,", "MaxPool,"} <= set(said.split())
    assert not {"Sigmoid,", "Tanh,", "Softmax,"} & set(said.split())


def test_a_batch_answers_every_row_and_notices_a_contradiction(
    tmp_path: Path, sample: Numeric, capsys: Capture
) -> None:
    written(tmp_path, sample, ["(>= Y_0 1000)"])
    table = tmp_path / "instances.csv"
    table.write_text("onnx,vnnlib,seconds,expected\nmodel.onnx,q.vnnlib,30,unsat\nmodel.onnx,q.vnnlib,30,\n")
    assert main(["verify", "--batch", str(table)]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["answer"] for row in rows] == ["unsat", "unsat"]
    table.write_text("model.onnx,q.vnnlib,30\n")
    assert main(["verify", "--batch", str(table)]) == 0
    table.write_text("onnx,vnnlib,seconds,expected\nmodel.onnx,q.vnnlib,30,sat\n")
    assert main(["verify", "--batch", str(table)]) == 4
    table.write_text("onnx,vnnlib,seconds\nmodel.onnx,q.vnnlib,soon\n")
    assert main(["verify", "--batch", str(table)]) == 2
    assert "line 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("onnx,vnnlib,until\nmodel.onnx,q.vnnlib,30\n", "line 1: no column seconds"),
        ("model.onnx,q.vnnlib,30,soon\n", "line 1: soon; a fourth cell is the answer expected"),
        ("model.onnx,q.vnnlib,30,unsat,4\n", "line 1: onnx,vnnlib,seconds,expected are read, and 4 stands beside"),
    ],
)
def test_what_a_batch_cannot_use_is_named_where_it_stands(
    rows: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    table = tmp_path / "instances.csv"
    table.write_text(rows)
    assert main(["verify", "--batch", str(table)]) == 2
    assert message in capsys.readouterr().err


def test_a_batch_of_other_programs_is_read(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    """Its times are timeouts, its first character a byte order mark; a fourth cell is the answer expected."""
    written(tmp_path, sample, ["(>= Y_0 1000)"])
    table = tmp_path / "instances.csv"
    for rows in ("onnx,vnnlib,timeout,expected\nmodel.onnx,q.vnnlib,30,sat\n", "model.onnx,q.vnnlib,30,sat\n"):
        table.write_text(rows, encoding="utf-8-sig")
        assert main(["verify", "--batch", str(table)]) == 4
        assert "unsat, and the table says sat" in capsys.readouterr().err
    query = tmp_path / "q.vnnlib"
    query.write_text(query.read_text(), encoding="utf-8-sig")
    assert main(["verify", "--batch", str(table)]) == 4


@pytest.mark.parametrize(
    ("end", "message"), [("1e60", "inputs up to 1e+60, and the float32"), ("3e38", "float32 overflows on the way")]
)
@pytest.mark.filterwarnings("error")
def test_boxes_beyond_the_numbers_of_the_model_are_refused(
    end: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    sample = numeric("dense", 1)
    for tensor in sample.model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(100 * onnx.numpy_helper.to_array(tensor), tensor.name))
    sample.save(tmp_path)
    arguments = written(tmp_path, sample, ["(<= Y_0 0)"])
    query = tmp_path / "q.vnnlib"
    query.write_text(re.sub(r"(<= X_\d+) [-+.\de]+", rf"\1 {end}", query.read_text()))
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_padded_numbers_are_no_names(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    assert main(written(tmp_path, sample, ["(<= Y_00 0)"])) == 2
    assert "Y_00 is not declared" in capsys.readouterr().err


QUICK = 2.0


@pytest.mark.parametrize("suite", ["safenlp_2024", "acasxu_2023", "sat_relu", "cersyve"])
def test_no_public_instance_is_answered_wrongly(suite: str, shared_data: Path) -> None:
    """The quicker of the samples, with the answers that are known; those that take long may stay open."""
    folder = shared_data / "vnncomp" / suite
    verifier, settled = Verifier(), 0
    rows = list(csv.DictReader((folder / "instances.csv").read_text().splitlines()))
    for row in rows[::4]:
        verdict = verifier.verify(folder / row["vnnlib"], folder / row["onnx"], QUICK)
        if verdict.answer in ("sat", "unsat"):
            settled += 1
            assert verdict.answer == row["expected"]
    assert settled


@pytest.mark.parametrize("suite", ["acasxu_2023", "sat_relu"])
def test_few_inputs_and_formulas_are_settled_soon(suite: str, shared_data: Path) -> None:
    """All samples, in no more regions than a good choice of where to split needs: some took tens of thousands."""
    folder = shared_data / "vnncomp" / suite
    verifier = Verifier()
    for row in csv.DictReader((folder / "instances.csv").read_text().splitlines()):
        verdict = verifier.verify(folder / row["vnnlib"], folder / row["onnx"], SECONDS)
        assert verdict.answer == row["expected"]
        assert verdict.regions < 1500


@pytest.mark.parametrize("fact", ["(<= Y_0 -1e400)", "(<= Y_0 1e400)", "(<= (* 1e400 Y_0) -1)", "(>= X_0 -1e400)"])
def test_numbers_beyond_float64_are_one_line(fact: str, tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    """They ended in a traceback and exit code 1, which means sat."""
    assert main(written(tmp_path, sample, [fact])) == 2
    error = capsys.readouterr().err
    assert "a number beyond 1e+100" in error
    assert error.count("\n") == 1


def test_an_index_of_thousands_of_digits_is_not_declared(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    digits = "9" * 5000
    for fact in (f"(<= X_{digits} 1)", f"(<= Y_{digits} 1)"):
        assert main(written(tmp_path, sample, [fact])) == 2
        error = capsys.readouterr().err
        assert "is not declared" in error
        assert len(error) < 300


def test_a_box_beyond_float64_is_one_line(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    arguments = written(tmp_path, sample, ["(<= Y_0 0)"])
    path = tmp_path / "q.vnnlib"
    path.write_text(path.read_text().replace("(<= X_0 0.5)", "(<= X_0 1e400)"))
    assert main(arguments) == 2
    assert "a number beyond 1e+100" in capsys.readouterr().err


def test_an_empty_box_is_unsat_at_once(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    """2^40 conjunctions were listed, though no input is left; a strict bound from each side leaves none either."""
    wide = "(and " + " ".join(f"(or (<= Y_0 {i}) (>= Y_0 {i + 1}))" for i in range(40)) + ")"
    for facts in (["(>= X_0 2)", wide], ["(< X_0 0.25)", "(> X_0 0.25)"], ["(< X_0 0.25)", "(>= X_0 0.25)"]):
        assert main(written(tmp_path, sample, facts)) == 0
        assert capsys.readouterr().out == "unsat\n"


def test_reading_counts_as_time(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    choices = " ".join(f"(<= X_0 0.{i:05d})" for i in range(300))
    arguments = written(tmp_path, sample, [f"(or {choices})", f"(or {choices} (<= X_1 0.1))"])
    began = time.monotonic()
    assert main([*arguments[:-1], "0.05"]) == 3
    assert time.monotonic() - began < 2.0
    shown = capsys.readouterr()
    assert shown.out == "timed-out\n"
    assert "in time" in shown.err


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "0"])
def test_a_timeout_is_a_time(seconds: str, tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    arguments = written(tmp_path, sample, ["(<= Y_0 0)"])
    assert main([*arguments[:-1], seconds]) == 2
    assert "seconds above 0" in capsys.readouterr().err
    (tmp_path / "i.csv").write_text(f"model.onnx,q.vnnlib,{seconds}\n")
    assert main(["verify", "--batch", str(tmp_path / "i.csv")]) == 2
    assert "a time above 0" in capsys.readouterr().err


def test_a_batch_goes_on_after_a_file_that_cannot_be_read(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    written(tmp_path, sample, ["(>= Y_0 1000)"])
    (tmp_path / "bad.vnnlib").write_text("(assert\n")
    table = tmp_path / "instances.csv"
    table.write_text("model.onnx,bad.vnnlib,9\nnone.onnx,q.vnnlib,9\nmodel.onnx,q.vnnlib,9\n")
    for proof in ([], ["--proof", str(tmp_path / "proofs")]):
        assert main(["verify", "--batch", str(table), *proof]) == 2
        shown = capsys.readouterr()
        assert [row["answer"] for row in csv.DictReader(shown.out.splitlines())] == ["error", "error", "unsat"]
        assert "bad.vnnlib line 1" in shown.err
        assert "none.onnx: no such file" in shown.err
