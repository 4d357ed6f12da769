"""`verify --proof`: unsat is said with a certificate that the checker accepted, or not at all."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats
from numeric_models import Numeric, numeric
from onnx import TensorProto, helper, numpy_helper

from swapproof.encodings.vnnlib.vnnlib_reading import read_vnnlib
from swapproof.proofs import check_box
from swapproof.proofs.writing import box_certificate as tree
from swapproof.verifier.cli import main
from swapproof.verifier.queries.answering import Verifier
from swapproof.verifier.queries.search_tree import TreeRecord
from swapproof.verifier.queries.unsat_certificates import Plan
from swapproof.verifier.screening.boxes.float_bounds import FloatBounds

Capture = pytest.CaptureFixture[str]
LEAF = tree.linear(tree.Multipliers([1]))


def query(sample: Numeric, facts: list[str], radius: float = 0.5) -> str:
    size = int(np.prod(sample.shape))
    lines = [f"(declare-const X_{i} Real)" for i in range(size)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(sample.outputs)]
    lines += [f"(assert (<= X_{i} {radius}))(assert (>= X_{i} -{radius}))" for i in range(size)]
    return "\n".join([*lines, *(f"(assert {fact})" for fact in facts)])


@pytest.fixture
def sample(tmp_path: Path) -> Numeric:
    (tmp_path / "from").mkdir()
    found = numeric("deep", 5)
    found.save(tmp_path / "from")
    return found


def level(folder: Path, above: float) -> float:
    """Above the greatest output 0 of many points by so much of its spread."""
    stack = Verifier().load(folder / "from" / "model.onnx").stack
    points = np.random.default_rng(0).uniform(-0.5, 0.5, size=(4000, stack.inputs))
    points[2000:] = np.sign(points[2000:]) * 0.5
    values = stack.values(points)[1][:, 0]
    return float(values.max() + above * max(values.std(), 1e-3))


def asked(folder: Path, sample: Numeric, facts: list[str], proof: str = "proof/certificate.json") -> list[str]:
    path = folder / "from" / "q.vnnlib"
    path.write_text(query(sample, facts))
    model = folder / "from" / "model.onnx"
    return ["verify", str(path), "--network", str(model), "--timeout", "30", "--proof", str(folder / proof)]


def test_unsat_comes_with_a_certificate_and_what_it_needs(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    """Model and query lie beside it, and `check` accepts it."""
    assert main(asked(tmp_path, sample, [f"(>= Y_0 {level(tmp_path, 0.5):.9f})"])) == 0
    assert capsys.readouterr().out == "unsat\n"
    folder = tmp_path / "proof"
    assert sorted(path.name for path in folder.iterdir()) == ["certificate.json", "model.onnx", "q.vnnlib"]
    assert main(["check", str(folder / "certificate.json")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "q.vnnlib read again: all its cases are there" in out[0]
    assert out[-1] == "accepted 1 of 1"


@pytest.mark.parametrize("exact", [False, True])
def test_a_line_says_how_the_certificate_was_checked(
    exact: bool, tmp_path: Path, sample: Numeric, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--exact` by the checker; else in float64, and the checker is not asked."""
    calls: list[object] = []
    check_file = check_box.check_file

    def counted(*given: Any) -> check_box.Verdict:
        calls.append(given)
        return check_file(*given)

    monkeypatch.setattr(check_box, "check_file", counted)
    asked_for = asked(tmp_path, sample, [f"(>= Y_0 {level(tmp_path, 0.5):.9f})"]) + ["--exact"] * exact
    assert main(asked_for) == 0
    said = capsys.readouterr().err
    assert ("accepted by proofs/check_box.py" if exact else "leaves hold in float64, all rounding taken off") in said
    assert len(calls) == exact
    assert main([each for each in asked_for if each != "--proof" and "certificate" not in each]) == (2 if exact else 0)


def test_where_float64_does_not_settle_a_leaf_the_checker_must_accept(
    tmp_path: Path, sample: Numeric, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FloatBounds, "usable", lambda bounds: np.zeros(len(bounds.regions), dtype=np.bool_))
    assert main(asked(tmp_path, sample, [f"(>= Y_0 {level(tmp_path, 0.5):.9f})"])) == 0
    assert "accepted by proofs/check_box.py" in capsys.readouterr().err


def test_a_disjunction_has_a_tree_for_every_case(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    top = level(tmp_path, 0.5)
    facts = [f"(or (>= Y_0 {top:.9f}) (and (<= X_0 0.25) (>= Y_0 {top + 1:.9f})))", "(or (<= X_0 0.125) (>= X_0 0.1))"]
    assert main(asked(tmp_path, sample, facts)) == 0
    path = tmp_path / "proof" / "certificate.json"
    assert check_box.check_file(path).cases == 4
    assert main(["check", str(path)]) == 0
    assert "the 4 cases stated here" in capsys.readouterr().out


def test_other_answers_leave_nothing(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    """sat, and no time."""
    assert main(asked(tmp_path, sample, ["(<= Y_0 1000)"])) == 1
    assert capsys.readouterr().out.startswith("sat\n")
    arguments = asked(tmp_path, sample, [f"(>= Y_0 {level(tmp_path, 0.5):.9f})"])
    arguments[arguments.index("30")] = "0.000001"
    assert main(arguments) == 3
    assert capsys.readouterr().out == "timed-out\n"
    assert not (tmp_path / "proof").exists() or not list((tmp_path / "proof").glob("certificate*"))


def test_leaves_that_do_not_hold_are_cut_or_split(
    tmp_path: Path, sample: Numeric, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or searched again, where exact arithmetic did not follow: one bare leaf becomes a tree that is accepted."""
    encoded, first = TreeRecord.encoded, iter([LEAF])
    monkeypatch.setattr(TreeRecord, "encoded", lambda record: next(first, b"") or encoded(record))
    assert main(asked(tmp_path, sample, [f"(>= Y_0 {level(tmp_path, 0.25):.9f})"])) == 0
    assert capsys.readouterr().out == "unsat\n"
    assert check_box.check_file(tmp_path / "proof" / "certificate.json").nodes > 1


def test_what_is_not_accepted_is_not_answered(
    tmp_path: Path, sample: Numeric, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree that is none, and a leaf about what has an answer."""
    monkeypatch.setattr(TreeRecord, "encoded", lambda record: b"\0")
    assert main(asked(tmp_path, sample, [f"(>= Y_0 {level(tmp_path, 0.5):.9f})"])) == 3
    said = capsys.readouterr()
    assert said.out == "unknown\n"
    assert "no certificate: tree byte 0 is not in the format" in said.err
    assert not list((tmp_path / "proof").glob("certificate*"))


def test_what_the_format_cannot_say_is_refused_before_the_search(
    tmp_path: Path, sample: Numeric, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, exit code 2: too long a number, too many inputs."""

    def searched(*_: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr(Plan, "record", searched)
    assert main(asked(tmp_path, sample, [f"(>= Y_0 0.{'0' * 2100}1)"])) == 2
    said = capsys.readouterr().err
    assert "q.vnnlib is outside the certificate format" in said
    assert said.count("\n") == 1
    wide = wide_model(1100)
    wide.save(tmp_path / "from")
    assert main(asked(tmp_path, wide, ["(>= Y_0 1000000)"])) == 2
    said = capsys.readouterr().err
    assert "model.onnx is outside the certificate format: input shape [1, 1100]" in said
    assert said.count("\n") == 1


def wide_model(size: int) -> Numeric:
    weight = numpy_helper.from_array(np.ones((size, 1), np.float32), "w")
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, s]) for n, s in (("X", size), ("Y", 1))]
    graph = helper.make_graph([helper.make_node("MatMul", ["X", "w"], ["Y"])], "wide", info[:1], info[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return Numeric(model, (1, size), 1, "wide", 0)


@pytest.mark.parametrize(("proof", "message"), [("from/q.vnnlib", "would replace"), ("from", "is a folder")])
def test_the_certificate_replaces_nothing_that_it_is_about(
    proof: str, message: str, tmp_path: Path, sample: Numeric, capsys: Capture
) -> None:
    assert main(asked(tmp_path, sample, ["(>= Y_0 1000)"], proof)) == 2
    assert message in capsys.readouterr().err
    assert read_vnnlib(tmp_path / "from" / "q.vnnlib").cases


def test_a_certificate_of_other_cases_is_refused(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    """Though it proves what it says: `check` reads the query again."""
    assert main(asked(tmp_path, sample, ["(>= Y_0 1000)"])) == 0
    path = tmp_path / "proof" / "certificate.json"
    top = json.loads(path.read_bytes())
    top["cases"][0]["box"][0] = ["-1/4", "1/4"]
    path.write_text(json.dumps(top, sort_keys=True, separators=(",", ":")))
    capsys.readouterr()
    assert check_box.main([str(path)]) == 0
    assert main(["check", str(path)]) == 4
    assert "case 1 of q.vnnlib is not in the certificate" in capsys.readouterr().out
    top["cases"] = []
    path.write_text(json.dumps(top, sort_keys=True, separators=(",", ":")))
    assert main(["check", str(path)]) == 4
    (tmp_path / "proof" / "q.vnnlib").write_text(query(sample, ["(>= Y_0 1001)"]))
    assert main(["check", str(path)]) == 4
    assert "made for another query" in capsys.readouterr().out


def test_check_of_another_file_is_one_line(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    assert main(["check", str(tmp_path / "from" / "model.onnx")]) == 2
    assert re.fullmatch(r"swapproof: .*not a certificate of `verify --proof`.*\n", capsys.readouterr().err)


def test_a_batch_has_a_certificate_for_every_unsat(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    """Two models of one name lie in one folder; the second is named after its hash too."""
    other = numeric("residual", 2)
    (tmp_path / "other").mkdir()
    other.save(tmp_path / "other")
    (tmp_path / "other" / "q.vnnlib").write_text(query(other, ["(>= Y_0 1000)"]))
    (tmp_path / "from" / "q.vnnlib").write_text(query(sample, ["(>= Y_0 1000)"]))
    (tmp_path / "from" / "sat.vnnlib").write_text(query(sample, ["(<= Y_0 1000)"]))
    table = tmp_path / "instances.csv"
    rows = [
        "from/model.onnx,from/q.vnnlib,30",
        "from/model.onnx,from/sat.vnnlib,30",
        "other/model.onnx,other/q.vnnlib,30",
    ]
    table.write_text("\n".join(["onnx,vnnlib,seconds", *rows]))
    assert main(["verify", "--batch", str(table), "--proof", str(tmp_path / "proofs")]) == 0
    answers = [row["answer"] for row in csv.DictReader(capsys.readouterr().out.splitlines())]
    assert answers == ["unsat", "sat", "unsat"]
    found = sorted(path.name for path in (tmp_path / "proofs").glob("0*.json"))
    assert found == ["000000.json", "000002.json"]
    models = {json.loads((tmp_path / "proofs" / name).read_bytes())["model"]["file"] for name in found}
    assert len(models) == 2
    for name in found:
        assert main(["check", str(tmp_path / "proofs" / name)]) == 0


def test_external_tensors_are_kept_beside_it(tmp_path: Path, sample: Numeric, capsys: Capture) -> None:
    model = onnx.load(tmp_path / "from" / "model.onnx")
    onnx.save(
        model, tmp_path / "from" / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    assert main(asked(tmp_path, sample, ["(>= Y_0 1000)"])) == 0
    certificate = tmp_path / "proof" / "certificate.json"
    assert main(["check", str(certificate)]) == 0
    (tmp_path / "proof" / "weights.bin").write_bytes(bytes((tmp_path / "from" / "weights.bin").stat().st_size))
    assert main(["check", str(certificate)]) == 4
    assert "made for other external tensors" in capsys.readouterr().out


def test_signs_known_by_a_plane_alone_do_not_stand_in_the_way(tmp_path: Path) -> None:
    """A region beyond the plane of a cut is empty for the search; for the checker a neuron keeps the sign it has by
    the plane, and no leaf below holds: a tree without planes is searched."""
    g = Builder()
    inner = [[-2, 1, -2, 2, -1, -2, 2], [-1, 1, 2, 2, 2, 0, -2], [-2, 2, -1, 2, 2, 2, 2], [1, 0, -2, 2, -2, -2, -2]]
    outer = [[2, 2], [1, 1], [2, -1], [1, -2], [-1, -1], [2, 1], [0, 1]]
    first, second = [-1, -1, 0, 0, 0, -2, 2], [-2, -1]
    weights = [g.constant(np.array(array, dtype=np.float32)) for array in (inner, first, outer, second)]
    g.node("Gemm", [g.call("Relu", g.call("Gemm", "X", *weights[:2])), *weights[2:]], ["Y"])
    onnx.save(g.proto([floats("X", 1, 4)], [floats("Y", 1, 2)], name="planes", opset=13), tmp_path / "model.onnx")
    lines = [f"(declare-const {name} Real)" for name in ("X_0", "X_1", "X_2", "X_3", "Y_0", "Y_1")]
    for place, (low, high) in enumerate(((-0.18, 0.32), (-0.83, 0.17), (-0.66, 0.34), (-0.15, 0.35))):
        lines.append(f"(assert (>= X_{place} {low}))(assert (<= X_{place} {high}))")
    lines.append(
        "(assert (>= (+ (* -0.97595115500270546 Y_0) (* 0.26131556545385332 Y_1) (* -1.4093085278370847 X_0)"
        "(* 0.14552635811896295 X_1) (* -0.51079523560175877 X_2) (* 0.6371941359741069 X_3)) 3.0302902194081782))"
    )
    (tmp_path / "q.vnnlib").write_text("\n".join(lines))
    certificate = tmp_path / "proof" / "certificate.json"
    verdict = Verifier().verify(tmp_path / "q.vnnlib", tmp_path / "model.onnx", 30.0, certificate)
    assert verdict.answer == "unsat"
    assert check_box.main([str(certificate)]) == 0


@pytest.mark.parametrize(("suite", "rows"), [("safenlp_2024", slice(20, 40, 4)), ("acasxu_2023", slice(4, 5))])
def test_public_instances_have_certificates(suite: str, rows: slice, shared_data: Path, tmp_path: Path) -> None:
    """Of those without an answer, a few that are quick: every one, and accepted when read again."""
    folder = shared_data / "vnncomp" / suite
    verifier = Verifier()
    for number, row in enumerate(list(csv.DictReader((folder / "instances.csv").read_text().splitlines()))[rows]):
        assert row["expected"] == "unsat"
        certificate = tmp_path / f"{number:06d}.json"
        verdict = verifier.verify(folder / row["vnnlib"], folder / row["onnx"], 60.0, certificate)
        assert verdict.answer == "unsat"
        assert main(["check", str(certificate)]) == 0


@pytest.mark.parametrize(("suite", "row"), [("safenlp_2024", 21), ("cersyve", 2)])
def test_the_search_takes_hardly_more_regions_for_a_certificate(
    suite: str, row: int, shared_data: Path, tmp_path: Path
) -> None:
    """Hard instances, the second of 12,499 regions: what the checker will know of a region, the search knows."""
    folder = shared_data / "vnncomp" / suite
    found = list(csv.DictReader((folder / "instances.csv").read_text().splitlines()))[row]
    paths, verifier = (folder / found["vnnlib"], folder / found["onnx"]), Verifier()
    alone = verifier.verify(*paths, 60.0)
    proved = verifier.verify(*paths, 100.0, tmp_path / "certificate.json")
    assert proved.answer == alone.answer == "unsat"
    assert proved.regions < 1.1 * alone.regions
    assert "leaves hold in float64" in proved.remarks[0]
