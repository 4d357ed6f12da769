"""`swapproof export`: each file read by the solvers it is for, whose answers are those of enumeration."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tiny as tiny_task
from folder_bytes import folder_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import all_sentences, least_swaps_over_reals, loaded, query_of
from random_networks import Sample, swap_spaces, tiny_networks

from swapproof.encodings.evaluation import logits
from swapproof.encodings.formulas.formula import Formula, Linear, Margin, Unit
from swapproof.encodings.formulas.query_formula import formula
from swapproof.encodings.formulas.smtlib_writing import smtlib_text
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.onnx_files.onnx_writing import embedded, model_behind_embedding
from swapproof.encodings.programs.integer_program import Exclusive, Program, Row, Variable
from swapproof.encodings.programs.program_files import lp_text, mps_text
from swapproof.encodings.query import Query
from swapproof.encodings.vnnlib.vnnlib_reading import parsed
from swapproof.encodings.vnnlib.vnnlib_writing import vnnlib_text
from swapproof.verifier.cli import main
from swapproof.verifier.commands.export_question import FORMATS, program_text, property_of
from swapproof.verifier.queries.answering import Verifier

Capture = pytest.CaptureFixture[str]
INFINITY = float("inf")

SMALL = Program(
    (
        Variable("swap", (0, 7), 0.0, 1.0, True, 1.0),
        Variable("relu", (2, 1), -0.5, INFINITY),
        Variable("input", (2, 1), -INFINITY, 3.25),
        Variable("swap", (1, 2), 0.0, 1.0, True, 1.0),
    ),
    (
        Row("word[0]", np.array([0, 3]), np.array([1.0, 1.0]), -INFINITY, 1.0),
        Row("input[2,1]", np.array([0, 2]), np.array([1.5, -1.0]), 0.25, 0.25),
        Row("above[2,1]", np.array([1, 2]), np.array([1.0, -1.0]), 0.0, INFINITY),
        Row("both", np.array([1, 2]), np.array([0.1, 1.0]), -2.0, 2.5),
    ),
    offset=0.5,
)
SMALL_LP = """\\ a remark
Minimize
 obj: + 1.0 swap_0_7 + 1.0 swap_1_2 + 0.5 constant
Subject To
 word_0: + 1.0 swap_0_7 + 1.0 swap_1_2 <= 1.0
 input_2_1: + 1.5 swap_0_7 - 1.0 input_2_1 = 0.25
 above_2_1: + 1.0 relu_2_1 - 1.0 input_2_1 >= 0.0
 both_low: + 0.1 relu_2_1 + 1.0 input_2_1 >= -2.0
 both_high: + 0.1 relu_2_1 + 1.0 input_2_1 <= 2.5
Bounds
 constant = 1
 0.0 <= swap_0_7 <= 1.0
 -0.5 <= relu_2_1 <= +inf
 -inf <= input_2_1 <= 3.25
 0.0 <= swap_1_2 <= 1.0
Binaries
 swap_0_7
 swap_1_2
End
"""
SMALL_MPS = """* a remark
NAME swapproof
ROWS
 N obj
 L word_0
 E input_2_1
 G above_2_1
 G both
COLUMNS
 constant obj 0.5
 MARKER0 'MARKER' 'INTORG'
 swap_0_7 obj 1.0
 swap_0_7 word_0 1.0
 swap_0_7 input_2_1 1.5
 MARKER1 'MARKER' 'INTEND'
 relu_2_1 above_2_1 1.0
 relu_2_1 both 0.1
 input_2_1 input_2_1 -1.0
 input_2_1 above_2_1 -1.0
 input_2_1 both 1.0
 MARKER2 'MARKER' 'INTORG'
 swap_1_2 obj 1.0
 swap_1_2 word_0 1.0
 MARKER3 'MARKER' 'INTEND'
RHS
 RHS word_0 1.0
 RHS input_2_1 0.25
 RHS both -2.0
RANGES
 RNG both 4.5
BOUNDS
 FX BND constant 1
 BV BND swap_0_7
 LO BND relu_2_1 -0.5
 PL BND relu_2_1
 MI BND input_2_1
 UP BND input_2_1 3.25
 BV BND swap_1_2
ENDATA
"""


def drawn_query(sample: Sample, choices: tuple[tuple[int, ...], ...], folder: Path) -> Query:
    model, _ = loaded(sample, folder)
    query = query_of(model, choices, 0)
    answer = int(logits(query.network, np.array([query.space.original]))[0].argmax())
    return query_of(model, choices, answer)


def highs_answer(path: Path) -> tuple[bool, float]:
    """Feasible or not, and the best objective, by HiGHS reading the file itself."""
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    found = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return found, float(solver.getInfo().objective_function_value)


def z3_answer(text: str) -> str:
    import z3

    solver: Any = z3.Solver()
    solver.from_string(text)
    return str(solver.check())


def least_margin(query: Query, k: int) -> float:
    sentences = np.array(list(all_sentences(query.space, k)))
    values = logits(query.network, sentences)
    return float(min((values[:, query.label] - values[:, rival]).min() for rival in query.rivals))


class TestPrograms:
    def test_an_lp_file_is_what_it_should_be(self) -> None:
        assert lp_text(SMALL, ["a remark"]) == SMALL_LP

    def test_an_mps_file_is_what_it_should_be(self) -> None:
        assert mps_text(SMALL, ["a remark"]) == SMALL_MPS

    @pytest.mark.parametrize(("write", "name"), [(lp_text, "a.lp"), (mps_text, "a.mps")])
    def test_highs_reads_back_the_same_program(self, write: Any, name: str, tmp_path: Path) -> None:
        """Every bound, side, cost and coefficient, to the last bit."""
        import highspy

        (tmp_path / name).write_text(write(SMALL))
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        assert solver.readModel(str(tmp_path / name)) == highspy.HighsStatus.kOk
        lp = solver.getLp()
        columns = {column: number for number, column in enumerate(lp.col_names_)}
        for variable in SMALL.variables:
            place = columns["_".join([variable.kind, *map(str, variable.index)])]
            assert (lp.col_lower_[place], lp.col_upper_[place]) == (variable.low, variable.high)
            assert lp.col_cost_[place] == variable.cost
        assert lp.col_lower_[columns["constant"]] == lp.col_upper_[columns["constant"]] == 1
        matrix = np.zeros((lp.num_row_, lp.num_col_))
        for column in range(lp.num_col_):
            for entry in range(lp.a_matrix_.start_[column], lp.a_matrix_.start_[column + 1]):
                matrix[lp.a_matrix_.index_[entry], column] = lp.a_matrix_.value_[entry]
        rows = dict(zip(lp.row_names_, range(lp.num_row_), strict=True))
        for row, label in zip(SMALL.rows, ("word_0", "input_2_1", "above_2_1", "both"), strict=True):
            names = [name for name in (label, f"{label}_low", f"{label}_high") if name in rows]
            assert max(lp.row_lower_[rows[name]] for name in names) == row.low
            assert min(lp.row_upper_[rows[name]] for name in names) == row.high
            for name in names:
                expected = np.zeros(lp.num_col_)
                for column, coefficient in zip(row.columns, row.coefficients, strict=True):
                    variable = SMALL.variables[column]
                    expected[columns["_".join([variable.kind, *map(str, variable.index)])]] = coefficient
                assert matrix[rows[name]].tolist() == expected.tolist()

    def test_gurobi_and_scip_read_the_files_and_agree(self, tmp_path: Path) -> None:
        import gurobipy
        import pyscipopt

        found = []
        for name, text in (("a.lp", lp_text(SMALL)), ("a.mps", mps_text(SMALL))):
            path = tmp_path / name
            path.write_text(text)
            with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.read(str(path), environment) as model:
                model.optimize()
                found.append(model.ObjVal)
            scip = pyscipopt.Model()
            scip.hideOutput()
            scip.readProblem(str(path))
            scip.optimize()
            found.append(scip.getObjVal())
            found.append(highs_answer(path)[1])
        assert found == pytest.approx([0.5] * 6)

    def test_programs_that_not_every_solver_reads_are_refused(self) -> None:
        special = Program(SMALL.variables, SMALL.rows, exclusives=(Exclusive("one", (0, 3)),))
        with pytest.raises(NotImplementedError, match="big-M"):
            lp_text(special)

    @given(data=st.data(), sample=tiny_networks())
    @settings(max_examples=15)
    def test_highs_finds_what_enumeration_finds(
        self, data: st.DataObject, sample: Sample, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """The least margin within a radius, from LP and MPS; where it matters, and the bounds leave a question."""
        folder = tmp_path_factory.mktemp("highs")
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)), folder)
        radius = data.draw(st.integers(1, 3))
        margin = least_margin(query, min(radius, len(query.space.swappable)))
        for write, name in ((lp_text, "q.lp"), (mps_text, "q.mps")):
            (folder / name).write_text(program_text(query, radius, [], write))
            met, objective = highs_answer(folder / name)
            assert met
            # Swaps that no witness needs are left out, so a safe margin may be any safe number.
            if margin < -1e-4:
                assert objective == pytest.approx(margin, abs=1e-4 * max(1.0, abs(margin)))
            elif margin > 1e-4:
                assert objective > 0


SMALL_SMT = """; a remark
(set-logic QF_LRA)
(declare-const swap_0_7 Bool)
(declare-const swap_0_8 Bool)
(declare-const swap_2_1 Bool)
(declare-const unit_0 Real) ; relu[3,1]
; one word at position 0
(assert (not (and swap_0_7 swap_0_8)))
; at most 1 swap
(assert (<= (+ (ite swap_0_7 1.0 0.0) (ite swap_0_8 1.0 0.0) (ite swap_2_1 1.0 0.0)) 1.0))
(define-fun input_0_0 () Real (+ (- (/ 3.0 8.0)) (ite swap_0_7 1.0 0.0) (* (- 2.0) (ite swap_2_1 1.0 0.0))))
(define-fun input_0_1 () Real 0.0)
(assert (>= unit_0 input_0_0))
(assert (>= unit_0 input_0_1))
(assert (or (<= unit_0 input_0_0) (<= unit_0 input_0_1)))
; some class wins against the label
(assert (or (< (+ (/ 1.0 2.0) (* (- 1.0) unit_0)) 0.0) (<= unit_0 0.0)))
(check-sat)
"""


class TestSmtLib:
    def test_a_file_is_what_it_should_be(self) -> None:
        unit = Unit("relu[3,1]", (Linear(Fraction(-3, 8), ((0, Fraction(1)), (2, Fraction(-2)))), Linear(Fraction(0))))
        margins = (
            Margin(Linear(Fraction(1, 2), ((3, Fraction(-1)),)), False),
            Margin(Linear(Fraction(0), ((3, Fraction(1)),)), True),
        )
        made = Formula(((0, 7), (0, 8), (2, 1)), 1, (unit,), margins)
        assert smtlib_text(made, ["a remark"]) == SMALL_SMT

    @given(data=st.data(), sample=tiny_networks())
    @settings(max_examples=15)
    def test_z3_answers_as_exact_enumeration(
        self, data: st.DataObject, sample: Sample, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """Exactly, ties included: the file holds the network's own numbers as rationals."""
        folder = tmp_path_factory.mktemp("smt")
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)), folder)
        least = least_swaps_over_reals(query)
        for k in range(1, min(3, len(query.space.swappable)) + 1):
            text = smtlib_text(formula(query, k))
            assert z3_answer(text) == ("sat" if least is not None and least <= k else "unsat")

    def test_cvc5_answers_alike_and_proves_it(self, tmp_path: Path) -> None:
        """The whole file through cvc5's own parser, and for unsat a proof."""
        cvc5 = pytest.importorskip("cvc5")
        answers = set()
        for seed_text in range(8):
            path = tiny_task.write_task(tmp_path / str(seed_text))
            out = tmp_path / f"{seed_text}.smt2"
            assert (
                main(
                    [
                        "export",
                        str(path),
                        "--text-id",
                        str(seed_text),
                        "--format",
                        "smt2",
                        "--out",
                        str(out),
                        "--radius",
                        "1",
                    ]
                )
                == 0
            )
            text = out.read_text()
            manager = cvc5.TermManager()
            solver = cvc5.Solver(manager)
            solver.setOption("produce-proofs", "true")
            parser = cvc5.InputParser(solver)
            parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "exported")
            symbols = parser.getSymbolManager()
            answer = ""
            while not (command := parser.nextCommand()).isNull():
                answer = command.invoke(solver, symbols) or answer
            answer = answer.strip()
            assert answer == z3_answer(text)
            answers.add(answer)
            if answer == "unsat":
                (proof,) = solver.getProof()
                assert b"false" in solver.proofToString(proof)
        assert answers == {"sat", "unsat"}


class TestVnnLib:
    @given(data=st.data(), sample=tiny_networks())
    @settings(max_examples=10)
    def test_the_model_behind_the_embedding_answers_alike(
        self, data: st.DataObject, sample: Sample, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """The same logits from onnxruntime, for every sentence drawn, up to rounding."""
        import onnxruntime

        path = sample.save(tmp_path_factory.mktemp("part"))
        network = network_of(open_model(path), sample.length)
        session = onnxruntime.InferenceSession(
            model_behind_embedding(network).SerializeToString(), providers=["CPUExecutionProvider"]
        )
        sentences = sample.sentences(4, data.draw(st.integers(0, 99)))
        expected = sample.runner(path)(sentences)
        for sentence, answer in zip(sentences, expected, strict=True):
            x = embedded(network, tuple(map(int, sentence)))[None].astype(np.float32)
            (found,) = session.run(None, {"X": x})
            assert np.allclose(found[0], answer, rtol=1e-4, atol=1e-4 * (1 + np.abs(answer).max()))

    @pytest.mark.parametrize("version", [1, 2])
    @given(data=st.data(), sample=tiny_networks())
    @settings(max_examples=10)
    def test_what_is_written_is_read_back(
        self, data: st.DataObject, sample: Sample, version: int, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """The same boxes and atoms, as sets."""
        folder = tmp_path_factory.mktemp("back")
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)), folder)
        choices = data.draw(st.sampled_from(["points", "hull"]))
        made, said = property_of(query, data.draw(st.sampled_from([None, 1, 2])), choices, version)
        assert "exact" in said or "sat proves nothing" in said
        back = parsed(vnnlib_text(made, [said]))
        assert (back.version, back.inputs.size, back.outputs.size) == (version, made.inputs.size, made.outputs.size)

        def plain(cases: Any) -> set[Any]:
            return {
                (c.low, c.high, tuple((tuple(sorted(a.outputs.items())), a.constant, a.strict) for a in c.atoms))
                for c in cases
            }

        assert plain(back.cases) == plain(made.cases)

    @pytest.mark.parametrize(("format", "expected"), [("vnnlib", "1"), ("vnnlib2", "2")])
    def test_our_verifier_decides_the_exported_query_as_enumeration_does(
        self, format: str, expected: str, tmp_path: Path
    ) -> None:
        task = tiny_task.write_task(tmp_path)
        verifier = Verifier()
        answers = []
        for number in range(len(tiny_task.ROWS)):
            out = tmp_path / f"{number}.vnnlib"
            arguments = ["export", str(task), "--text-id", str(number), "--format", format, "--out", str(out)]
            assert main([*arguments, "--radius", "1"]) == 0
            z3_out = tmp_path / f"{number}.smt2"
            assert main([*arguments[:5], "smt2", "--out", str(z3_out), "--radius", "1"]) == 0
            verdict = verifier.verify(out, out.with_suffix(".onnx"), 20.0)
            assert str(parsed(out.read_text()).version) == expected
            assert verdict.answer == z3_answer(z3_out.read_text())
            answers.append(verdict.answer)
        assert set(answers) == {"sat", "unsat"}


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--text-id", "99", "--format", "lp"], "--text-id 99"),
            (["--text-id", "0", "--format", "xls"], "--format xls"),
            (["--text-id", "0", "--format", "vnnlib", "--choices", "all"], "--choices all"),
        ],
    )
    def test_what_cannot_be_written_is_one_line(
        self, arguments: list[str], message: str, tmp_path: Path, capsys: Capture
    ) -> None:
        task = tiny_task.write_task(tmp_path)
        assert main(["export", str(task), *arguments, "--out", str(tmp_path / "q")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1

    def test_the_fewest_swaps_are_those_of_enumeration(self, tmp_path: Path) -> None:
        """Without a radius the LP asks for the fewest swaps."""
        task = tiny_task.write_task(tmp_path)
        for number in range(len(tiny_task.ROWS)):
            out = tmp_path / f"{number}.lp"
            smt = tmp_path / f"{number}.smt2"
            assert main(["export", str(task), "--text-id", str(number), "--format", "lp", "--out", str(out)]) == 0
            met, swaps = highs_answer(out)
            for radius in range(1, 4):
                arguments = ["export", str(task), "--text-id", str(number), "--format", "smt2", "--out", str(smt)]
                assert main([*arguments, "--radius", str(radius)]) == 0
                assert z3_answer(smt.read_text()) == ("sat" if met and swaps <= radius else "unsat")

    def test_a_file_tells_which_number_is_which_word(self, tmp_path: Path) -> None:
        task = tiny_task.write_task(tmp_path)
        out = tmp_path / "q.mps"
        assert main(["export", str(task), "--text-id", "0", "--format", "mps", "--out", str(out)]) == 0
        assert "* position 1, token 3: good -> fine" in out.read_text()

    def test_a_text_that_the_model_answers_wrongly_is_said_to_be_one(self, tmp_path: Path, capsys: Capture) -> None:
        """On stderr, in one line; the file is written all the same."""
        task = tiny_task.write_task(tmp_path, rows=[("a good film", "positive"), ("a good film", "negative")])
        for format in FORMATS:
            for number, said in enumerate(["", "swapproof: text 1: the model already answers positive, not negative"]):
                out = tmp_path / f"{number}.{format}"
                arguments = ["export", str(task), "--text-id", str(number), "--format", format, "--out", str(out)]
                assert main(arguments) == 0
                captured = capsys.readouterr()
                assert captured.err.startswith(said)
                assert captured.err.count("\n") == (number == 1)
                assert captured.out.splitlines()[0] == str(out)
                assert out.exists()


class TestFilesOfOthers:
    """Nothing is written over but an earlier export."""

    def refused(self, task: Path, format: str, out: Path, capsys: Capture) -> str:
        before = folder_bytes(task.parent)
        assert main(["export", str(task), "--text-id", "0", "--format", format, "--out", str(out)]) == 2
        assert folder_bytes(task.parent) == before
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    @pytest.mark.parametrize("format", FORMATS)
    @pytest.mark.parametrize("name", ["task.toml", "vocabulary.json", "texts.tsv", "synonyms.json", "weights.bin"])
    def test_no_input_is_replaced(self, format: str, name: str, tmp_path: Path, capsys: Capture) -> None:
        task = tiny_task.write_task(tmp_path)
        model = onnx.load(tmp_path / "model.onnx")
        onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
        assert f"{tmp_path / name}: exists" in self.refused(task, format, tmp_path / name, capsys)

    @pytest.mark.parametrize("format", ["vnnlib", "vnnlib2"])
    def test_the_model_beside_the_query_does_not_replace_that_of_the_task(
        self, format: str, tmp_path: Path, capsys: Capture
    ) -> None:
        task = tiny_task.write_task(tmp_path)
        assert f"{tmp_path / 'model.onnx'}: exists" in self.refused(task, format, tmp_path / "model.vnnlib", capsys)
        for other in (b"no model", (tmp_path / "model.onnx").read_bytes()):
            (tmp_path / "other.onnx").write_bytes(other)
            assert "other.onnx: exists" in self.refused(task, format, tmp_path / "other.vnnlib", capsys)

    def test_a_link_to_an_input_is_one(self, tmp_path: Path, capsys: Capture) -> None:
        task = tiny_task.write_task(tmp_path)
        (tmp_path / "link.lp").symlink_to("texts.tsv")
        assert "link.lp: exists" in self.refused(task, "lp", tmp_path / "link.lp", capsys)

    @pytest.mark.parametrize("format", FORMATS)
    def test_an_earlier_export_and_an_empty_file_are(self, format: str, tmp_path: Path) -> None:
        task = tiny_task.write_task(tmp_path / "task")
        arguments = ["export", str(task), "--format", format, "--out", str(tmp_path / "q.vnnlib")]
        (tmp_path / "q.vnnlib").touch()
        assert main([*arguments, "--text-id", "0"]) == 0
        first = folder_bytes(tmp_path)
        assert main([*arguments, "--text-id", "3"]) == 0
        assert folder_bytes(tmp_path) != first
        assert main([*arguments, "--text-id", "0"]) == 0
        assert folder_bytes(tmp_path) == first

    @pytest.mark.parametrize("format", ["lp", "vnnlib"])
    def test_a_place_that_cannot_hold_a_file_is_one_line(self, format: str, tmp_path: Path, capsys: Capture) -> None:
        task = tiny_task.write_task(tmp_path)
        assert "is a folder" in self.refused(task, format, tmp_path, capsys)
        assert "is a folder" in self.refused(task, format, Path(), capsys)
        assert "no folder" in self.refused(task, format, tmp_path / "absent" / "q.lp", capsys)
