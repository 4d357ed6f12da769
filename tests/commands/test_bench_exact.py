"""`bench exact` and its rivals: the textbook program means what enumeration finds, and lies are found out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import tiny as tiny_task
from folder_bytes import folder_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import all_sentences, least_swaps_deployed, loaded, query_of
from random_networks import Sample, networks, swap_spaces, tiny, tiny_networks

from swapproof.encodings.errors import BadInput
from swapproof.encodings.evaluation import logits
from swapproof.encodings.programs.integer_program import Program, Row, Variable
from swapproof.encodings.programs.textbook_program import TOLERANCE, Textbook
from swapproof.encodings.query import Query
from swapproof.encodings.solvers.solver_answer import Clock, Found, Limits, Outcome
from swapproof.encodings.solvers.solver_process import solve_apart
from swapproof.encodings.solvers.solver_table import GUROBI, HIGHS, SCIP, Solver
from swapproof.encodings.solvers.solver_table import MILP_SOLVERS as SOLVERS
from swapproof.proofs.writing.certificate import Enumerate
from swapproof.verifier.bench import peak_memory, rivals
from swapproof.verifier.bench.answers import Answer
from swapproof.verifier.bench.comparison import Comparison
from swapproof.verifier.bench.peak_memory import peak_megabytes
from swapproof.verifier.bench.rivals import Rival
from swapproof.verifier.cli import main
from swapproof.verifier.commands.benches import bench_exact as bench
from swapproof.verifier.commands.benches.bench_exact import bench_exact
from swapproof.verifier.commands.doctor import SIZE_LIMIT, gurobi_licence
from swapproof.verifier.engines.enumeration import Enumeration
from swapproof.verifier.engines.protocol import Bound, Budget, Findings
from swapproof.verifier.interval import Interval

Capture = pytest.CaptureFixture[str]
NEAR = 1e-4
"""Solvers allow binaries and rows this much when big-M constants multiply it."""
SENTENCES = 40


def drawn_query(sample: Sample, choices: tuple[tuple[int, ...], ...], label: int = 0) -> Query:
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        return query_of(model, choices, label)


def least_swaps(query: Query, rival: int, margin: float) -> float:
    """Fewest swaps after which the rival's logit is greater by this margin, by evaluating every sentence."""
    sentences = np.array(list(all_sentences(query.space, len(query.space.swappable))))
    values = logits(query.network, sentences)
    far = values[:, rival] - values[:, query.label] >= margin
    swaps = (sentences != np.array(query.space.original)).sum(axis=1)
    return float(swaps[far].min()) if far.any() else np.inf


def expect_minimum(outcome: Outcome, textbook: Textbook, rival: int) -> None:
    """Between the minima of a margin a little smaller and a little greater than the program asks for."""
    query = textbook.query
    low, high = least_swaps(query, rival, -NEAR), least_swaps(query, rival, NEAR)
    assert outcome.status in ("infeasible", "optimal")
    if outcome.status == "infeasible":
        assert high == np.inf
        return
    assert outcome.solution is not None
    assert outcome.objective is not None
    assert low - NEAR <= outcome.objective <= high + NEAR
    swaps = query.space.swaps_of(textbook.sentence(outcome.solution))
    assert len(swaps) == round(outcome.objective)


class TestTextbook:
    @given(st.data(), tiny_networks())
    def test_the_network_satisfies_the_rows_and_the_rows_give_its_logits(self, data: Any, sample: Sample) -> None:
        """For every sentence of the space, whatever the kind of network."""
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)))
        textbook = Textbook.of(query, inputs=data.draw(st.booleans()))
        for tokens in list(all_sentences(query.space, len(query.space.swappable)))[:SENTENCES]:
            assert textbook.get_error(tokens) < 1e-9

    @given(st.data(), networks(heads=False, kinds=False))
    @settings(max_examples=60)
    def test_every_operator_is_encoded(self, data: Any, sample: Sample) -> None:
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)))
        textbook = Textbook.of(query, inputs=data.draw(st.booleans()))
        for tokens in list(all_sentences(query.space, len(query.space.swappable)))[:SENTENCES]:
            size = 1.0 + np.abs(textbook.assignment(tokens)).max(initial=0.0)
            assert textbook.get_error(tokens) < 1e-9 * size

    @given(st.data(), tiny_networks())
    @settings(max_examples=30)
    def test_with_the_words_fixed_the_rows_leave_one_value(self, data: Any, sample: Sample) -> None:
        """The least and the greatest margin over the rows, the words given, are the network's."""
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)))
        textbook = Textbook.of(query, inputs=data.draw(st.booleans()))
        tokens = tuple(data.draw(st.sampled_from(options)) for options in query.space.choices)
        (values,) = logits(query.network, np.array([tokens]))
        margin = textbook.margin(1)
        columns, coefficients = margin.terms(0)
        for sign in (1.0, -1.0):
            cost = dict(zip(columns.tolist(), (sign * coefficients).tolist(), strict=True))
            variables = tuple(
                replace(fixed(one, tokens), cost=cost.get(column, 0.0)) for column, one in enumerate(textbook.variables)
            )
            outcome = HIGHS.here(Program(variables, textbook.rows), 20.0)
            assert outcome.status == "optimal"
            assert outcome.objective is not None
            found = sign * outcome.objective + margin.constant[0]
            assert found == pytest.approx(values[1] - values[0], abs=NEAR, rel=NEAR)

    @given(st.data(), tiny_networks())
    @settings(max_examples=60)
    def test_its_minimum_is_that_of_enumeration(self, data: Any, sample: Sample) -> None:
        label = data.draw(st.integers(0, sample.classes - 1))
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)), label)
        textbook = Textbook.of(query, inputs=data.draw(st.booleans()))
        for rival in query.rivals:
            expect_minimum(HIGHS.here(textbook.against(rival), 20.0), textbook, rival)

    @given(st.data(), tiny_networks())
    @settings(max_examples=30)
    def test_the_change_of_class_asks_for_the_tolerance_and_no_more(self, data: Any, sample: Sample) -> None:
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)))
        textbook = Textbook.of(query)
        tokens = tuple(data.draw(st.sampled_from(options)) for options in query.space.choices)
        (values,) = logits(query.network, np.array([tokens]))
        row = textbook.against(1).rows[-1]
        reached = row.coefficients @ textbook.assignment(tokens)[row.columns] - row.low
        assert reached == pytest.approx(values[1] - values[0] - TOLERANCE, abs=1e-9)
        assert row.high == np.inf

    @given(st.data(), networks(heads=False, kinds=False))
    @settings(max_examples=60)
    def test_big_m_is_no_bigger_than_the_bounds(self, data: Any, sample: Sample) -> None:
        """Rivals are given the paper's constants: each row is met with equality at an end of its input."""
        query = drawn_query(sample, data.draw(swap_spaces(sample.length, sample.vocabulary)))
        textbook = Textbook.of(query)
        columns = {variable.name: column for column, variable in enumerate(textbook.variables)}
        for row in textbook.rows:
            kind, _, index = row.name.partition("[")
            relu, x = columns.get(f"relu[{index}"), columns.get(f"input[{index}")
            if relu is None or x is None or kind not in ("if_active", "if_inactive"):
                continue
            one = textbook.variables[x]
            values = np.zeros(len(columns))
            values[x] = one.low if kind == "if_active" else one.high
            values[columns[f"active[{index}"]] = kind == "if_inactive"
            values[relu] = textbook.variables[relu].low if kind == "if_active" else one.high
            assert row.coefficients @ values[row.columns] == pytest.approx(row.high, abs=1e-9, rel=1e-9)

    def test_names_say_what_variables_are(self) -> None:
        query = drawn_query(tiny("mlp", 5), ((0, 1), *[(2,)] * (tiny("mlp", 5).length - 1)))
        names = [variable.name for variable in Textbook.of(query).variables]
        assert names[:2] == ["swap[0,0]", "swap[0,1]"]
        assert all(name.split("[")[0] in ("swap", "input", "relu", "active") for name in names)

    def test_settled_neurons_need_no_variable(self) -> None:
        """With every word fixed nothing is left to decide."""
        for shape in ("mlp", "deep", "cnn", "maximum", "residual"):
            sample = tiny(shape, 11)
            assert Textbook.of(drawn_query(sample, ((0,),) * sample.length)).variables == ()


def fixed(variable: Variable, tokens: tuple[int, ...]) -> Variable:
    if variable.kind != "swap":
        return variable
    position, token = variable.index
    value = float(tokens[position] == token)
    return replace(variable, low=value, high=value)


def market_split(rows: int = 5, columns: int = 40) -> Program:
    """Equations between random weights that no solver settles within minutes (Cornuejols and Dawande)."""
    weights = np.random.default_rng(3).integers(0, 100, size=(rows, columns)).astype(float)
    variables = tuple(Variable("item", (column,), 0.0, 1.0, True) for column in range(columns))
    halves = np.floor(weights.sum(axis=1) / 2)
    return Program(
        variables,
        tuple(Row(f"half[{row}]", np.arange(columns), weights[row], halves[row], halves[row]) for row in range(rows)),
    )


class TestSolvers:
    @pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
    @pytest.mark.parametrize(("shape", "source"), [("mlp", 1), ("deep", 2), ("cnn", 3), ("maximum", 4)])
    def test_all_solvers_find_the_minimum_in_their_own_process(self, solver: Solver, shape: str, source: int) -> None:
        sample = tiny(shape, source)
        choices = tuple((p % sample.vocabulary, (p + 1) % sample.vocabulary) for p in range(sample.length))
        for label in (0, 1):
            textbook = Textbook.of(drawn_query(sample, choices, label))
            outcome = solver.solve(textbook.against(1 - label), 30.0)
            expect_minimum(outcome, textbook, 1 - label)
            assert outcome.seconds > 0
            assert outcome.build_seconds > 0

    @pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
    def test_the_limit_of_time_is_an_answer(self, solver: Solver) -> None:
        outcome = solver.solve(market_split(), 0.5)
        assert outcome.status == "time"
        assert outcome.solution is None

    def test_a_solver_that_goes_on_is_killed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It was told a thousand seconds, and is waited for half a one."""
        processes: list[subprocess.Popen[bytes]] = []

        class Watched(subprocess.Popen[bytes]):
            def __init__(self, *arguments: Any, **options: Any) -> None:
                super().__init__(*arguments, **options)
                processes.append(self)

        monkeypatch.setattr(subprocess, "Popen", Watched)
        outcome = solve_apart("highs", market_split(), Limits(1000.0), grace=-999.5)
        assert outcome.status == "time"
        assert "killed" in outcome.detail
        assert outcome.seconds < 1000.0
        assert [process.returncode for process in processes] == [-signal.SIGKILL]

    def test_a_process_that_dies_is_an_error_with_its_last_words(self) -> None:
        outcome = solve_apart("nobody", market_split(2, 4), Limits(1.0))
        assert outcome.status == "error"
        assert "ValueError" in outcome.detail

    def test_the_size_limit_of_gurobi_is_forecast_and_reported(self) -> None:
        items = tuple(Variable("item", (number,), 0.0, 1.0, True, 1.0) for number in range(2001))
        program = Program(items, (Row("all", np.arange(2001), np.ones(2001), 3.0, np.inf),))
        assert not GUROBI.fits(program)
        assert GUROBI.fits(market_split())
        assert SCIP.fits(program)
        outcome = GUROBI.solve(program, 20.0)
        if gurobi_licence() == SIZE_LIMIT:
            assert outcome.status == "size"
            assert "2,001 variables (2,001 binary), 1 rows" in outcome.detail
        else:
            assert outcome.objective == pytest.approx(3.0)

    def test_a_row_with_two_sides_counts_twice(self) -> None:
        row = Row("both", np.array([0]), np.ones(1), 0.25, 0.75)
        program = Program((Variable("x", (0,), 0.0, 1.0, cost=1.0),), (row,))
        assert program.size.rows == 2
        for solver in SOLVERS:
            assert solver.here(program, 5.0).objective == pytest.approx(0.25)

    @pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
    def test_a_row_without_terms_is_true_or_false(self, solver: Solver) -> None:
        """Where no word has a say in the margin."""
        for variables in ((), (Variable("x", (0,), 0.0, 1.0, True, 1.0),)):
            for low, status in ((-1.0, "optimal"), (1.0, "infeasible")):
                nothing = Row("nothing", np.zeros(0, dtype=np.int64), np.zeros(0), low, np.inf)
                assert solver.here(Program(variables, (nothing,)), 5.0).status == status

    def test_a_missing_solver_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyscipopt", None)
        outcome = SCIP.here(market_split(2, 4), 1.0)
        assert outcome.status == "unavailable"
        assert "pip install pyscipopt" in outcome.detail

    def test_the_process_of_a_solver_loads_nothing_of_ours_but_the_program(self) -> None:
        code = (
            "import sys, swapproof.encodings.solvers.solver_process\nimport swapproof.encodings.solvers.solver_table\n"
            "print(*{name.split('.')[0] for name in sys.modules if '.' not in name})\n"
            "print(*[name for name in sys.modules if name.startswith('swapproof.')])"
        )
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        heavy, ours = run.stdout.splitlines()
        solvers = {"gurobipy", "pyscipopt", "highspy", "z3"}
        assert not {"torch", "onnx", "onnxruntime", *solvers} & set(heavy.split())
        assert set(ours.split()) == {
            "swapproof.encodings",
            "swapproof.encodings.formulas",
            "swapproof.encodings.programs",
            "swapproof.encodings.solvers.solver_table",
            "swapproof.encodings.solvers.ask_gurobi",
            "swapproof.encodings.solvers.ask_highs",
            "swapproof.encodings.solvers.ask_scip",
            "swapproof.encodings.solvers.ask_z3",
            "swapproof.encodings.formulas.formula",
            "swapproof.encodings.programs.integer_program",
            "swapproof.encodings.solvers.one_thread",
            "swapproof.encodings.solvers.solver_answer",
            "swapproof.encodings.solvers",
            "swapproof.encodings.solvers.solver_process",
        }


@dataclass(frozen=True)
class Liar:
    """Says of every text that nothing breaks it."""

    name: str = field(default="liar", init=False)

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        yield Bound(interval.ceiling, Enumerate(), "float32")


@dataclass(frozen=True)
class Idle:
    """A textbook program whose solutions are all read as the text itself."""

    textbook: Textbook
    remark: str = "read wrongly"

    def against(self, rival: int) -> Program:
        return self.textbook.against(rival)

    def sentence(self, solution: Any) -> tuple[int, ...]:
        return self.textbook.query.space.original


def test_the_peak_is_that_of_the_block_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was used and given back before a block does not count."""
    if not peak_memory.FORGET.exists():
        pytest.skip("this system does not tell the peak of a process")
    peaks = []
    for megabytes in (300, 1):
        with peak_megabytes() as found:
            np.ones(megabytes << 17).sum()
        peaks.append(found[0])
    assert peaks[0] > peaks[1] + 250
    monkeypatch.setattr(peak_memory, "FORGET", tmp_path / "nowhere" / "clear_refs")
    with peak_megabytes() as found:
        pass
    assert found == []


class TestRivals:
    def test_gurobi_gets_fewer_variables_where_its_licence_needs_that(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sample = tiny("mlp", 2)
        choices = tuple((p % sample.vocabulary, (p + 1) % sample.vocabulary) for p in range(sample.length))
        query = drawn_query(sample, choices)
        full, small = (Textbook.of(query, inputs=inputs).against(1).size for inputs in (True, False))
        assert small.variables < full.variables
        assert rivals.textbook_within_licence(query).against(1).size == full
        for most, expected in ((max(small.variables, small.rows), small), (1, full)):
            monkeypatch.setattr(rivals, "GUROBI", replace(GUROBI, most=most))
            chosen = rivals.textbook_within_licence(query)
            assert chosen.against(1).size == expected
            assert bool(chosen.remark) == (expected == small)

    @pytest.mark.parametrize("source", range(6))
    def test_with_several_classes_the_least_over_rivals_counts(self, source: int, tmp_path: Path) -> None:
        sample = tiny("mlp", source, classes=4)
        model, replay = loaded(sample, tmp_path)
        choices = tuple((p % sample.vocabulary, (p + 1) % sample.vocabulary) for p in range(sample.length))
        label = int(replay.answers(np.array([[options[0] for options in choices]]))[0])
        query = query_of(model, choices, label)
        expected = least_swaps_deployed(query, replay)
        answer = Rival("highs", Textbook.of, HIGHS).answer(0, query, replay, 30.0)
        assert answer.solved
        assert answer.high == expected
        assert answer.low == (len(query.space.swappable) + 1 if expected is None else expected)
        assert answer.status == ("unbreakable" if expected is None else "exact")

    def test_a_sentence_that_does_not_break_the_model_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        idle = Rival("idle", lambda query: Idle(Textbook.of(query)), HIGHS)
        monkeypatch.setattr(bench, "RIVALS", (idle,))
        rows = [("a good film", "positive")]
        table = bench_exact(tiny_task.write_task(tmp_path, rows), ["idle"], seconds=20.0)
        (answer,) = table.answers
        assert answer.status == "open"
        assert answer.high is None
        assert table.disagreements == ("text 0: idle: its sentence of 0 swaps does not break the model",)
        assert table.exit_code == 4

    def test_out_of_time_leaves_an_interval(self, tmp_path: Path) -> None:
        sample = tiny("mlp", 1)
        model, replay = loaded(sample, tmp_path)
        choices = tuple((p % sample.vocabulary, (p + 1) % sample.vocabulary) for p in range(sample.length))
        label = int(replay.answers(np.array([[options[0] for options in choices]]))[0])

        def ask(program: Program, limits: Limits, clock: Clock) -> Found:
            return Found("time", bound=1.9999)

        hopeless = Solver("hopeless", "none", ask)
        asked = replace(hopeless)
        object.__setattr__(asked, "solve", asked.here)
        answer = Rival("hopeless", Textbook.of, asked).answer(0, query_of(model, choices, label), replay, 1.0)
        assert (answer.status, answer.low, answer.high, answer.solved) == ("open", 2, None, False)


class TestBench:
    def test_all_engines_say_what_enumeration_says(self, tmp_path: Path) -> None:
        """On a small task, end to end, with a line for every answer."""
        task = tiny_task.write_task(tmp_path / "task")
        lines = tmp_path / "answers.jsonl"
        tight = ["gurobi-tight", "scip-tight", "highs-tight", "highs-tight/swaps"]
        names = ["exact", "enumerate", "gurobi", "scip", "highs", *tight, "z3"]
        table = bench_exact(task, names, limit=4, seconds=30.0, json_file=lines)
        assert table.disagreements == ()
        assert table.exit_code == 0
        written = [json.loads(line) for line in lines.read_text().splitlines()]
        assert [line["engine"] for line in written[1:-1]] == names * len(table.texts)
        assert written[0]["versions"]["gurobipy"]
        assert written[-1]["already_wrong"] == table.already_wrong
        assert len(table.texts) + table.already_wrong == 4
        assert table.texts
        for answers in table.texts.values():
            assert {(one.status, one.low, one.high) for one in answers.values()} == {
                (answers["enumerate"].status, answers["enumerate"].low, answers["enumerate"].high)
            }
            assert all(one.solved and one.seconds > 0 for one in answers.values())
            for ours in (answers["exact"], answers["enumerate"]):
                assert 1 <= (ours.nodes or 0) <= (ours.tree_nodes or 0)
                assert ours.peak_megabytes is None or ours.peak_megabytes > 10

    def test_texts_that_are_already_wrong_are_counted_and_left_out(self, tmp_path: Path) -> None:
        rows = [("awful", "positive"), ("awful", "negative")]
        table = bench_exact(tiny_task.write_task(tmp_path, rows), ["enumerate"])
        assert table.already_wrong == 1
        assert list(table.texts) == [1]

    def test_a_lie_of_ours_is_a_disagreement(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bench, "ENGINES", (Liar(), Enumeration()))
        rows = [("a good film", "positive")]
        table = bench_exact(tiny_task.write_task(tmp_path, rows), ["liar", "enumerate", "highs"], seconds=20.0)
        least = table.texts[0]["enumerate"].high
        assert least is not None
        assert list(table.disagreements) == [
            f"text 0: liar says at least 3, and {engine} found {least}" for engine in ("enumerate", "highs")
        ]
        assert table.exit_code == 4

    def test_the_command_prints_ratios_their_definition_and_the_machine(self, tmp_path: Path, capsys: Capture) -> None:
        task = tiny_task.write_task(tmp_path)
        code = main(["bench", "exact", str(task), "--engines", "exact,highs", "--limit", "2", "--seconds", "20"])
        shown = " ".join(capsys.readouterr().out.split())
        assert code == 0
        for words in (
            "median ratio",
            "Ratios are solver / exact",
            "highspy",
            "cores",
            "Disagreements: 0",
            "2 of 2 100.0 %",
            "exact: its largest proof has",
        ):
            assert words in shown

    @pytest.mark.parametrize("width", [80, 60, 40])
    def test_no_line_of_its_tables_is_wider_than_the_terminal(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, width: int
    ) -> None:
        """And no number is cut: every engine has its median, its total and its ratios."""
        monkeypatch.setattr("swapproof.verifier.pages.terminal.COLUMNS_UNSEEN", width)
        task = tiny_task.write_task(tmp_path)
        assert main(["bench", "exact", str(task), "--engines", "exact,enumerate,greedy", "--limit", "2"]) == 0
        tables, _, _ = capsys.readouterr().out.partition("Time: wall clock")
        assert max(map(len, tables.splitlines())) <= width
        assert tables.count("2 of 2") >= 2
        assert "…" not in tables
        assert "with limit" in tables

    def test_a_lie_is_exit_code_4(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
        monkeypatch.setattr(bench, "ENGINES", (Liar(), Enumeration()))
        task = tiny_task.write_task(tmp_path, [("a good film", "positive")])
        assert main(["bench", "exact", str(task), "--engines", "liar,enumerate"]) == 4
        assert "liar says at least 3" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("engines", "hint"), [("gurobbi", "did you mean gurobi?"), ("", "no engine is named"), ("highs,highs", "twice")]
    )
    def test_wrong_engines_are_refused(self, tmp_path: Path, capsys: Capture, engines: str, hint: str) -> None:
        task = tiny_task.write_task(tmp_path)
        assert main(["bench", "exact", str(task), "--engines", engines]) == 2
        assert hint in capsys.readouterr().err

    @pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
    def test_a_time_must_be_above_zero(self, tmp_path: Path, seconds: float) -> None:
        with pytest.raises(BadInput, match="a time above 0"):
            bench_exact(tiny_task.write_task(tmp_path), ["enumerate"], seconds=seconds)

    def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="cannot be written"):
            bench_exact(tiny_task.write_task(tmp_path), ["enumerate"], json_file=tmp_path / "absent" / "file.jsonl")

    def test_the_files_of_the_task_are_not_replaced_and_earlier_answers_are(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        task = tiny_task.write_task(tmp_path)
        before = folder_bytes(tmp_path)
        command = ["bench", "exact", str(task), "--engines", "exact", "--limit", "1", "--json"]
        for name in before:
            assert main([*command, str(tmp_path / name)]) == 2
            error = capsys.readouterr().err
            assert f"{tmp_path / name}: exists" in error
            assert error.count("\n") == 1
        assert folder_bytes(tmp_path) == before
        for _ in range(2):
            assert main([*command, str(tmp_path / "answers.jsonl")]) == 0
            assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 3


def answered(id: int, engine: str, seconds: float, **changes: Any) -> Answer:
    return replace(Answer(id, engine, "exact", 2, 2, seconds, seconds / 2), **changes)


def compared(*answers: Answer) -> Comparison:
    engines = tuple(dict.fromkeys(answer.engine for answer in answers))
    return Comparison(answers, engines, "ours", 60.0, 0, {})


class TestComparison:
    def test_our_program_is_compared_with_the_textbook_in_the_same_solver(self) -> None:
        table = compared(
            answered(0, "ours", 1.0),
            answered(0, "highs", 8.0),
            answered(0, "highs-tight", 2.0),
            answered(1, "highs", 70.0, status="open", low=1),
            answered(1, "highs-tight", 3.0),
        )
        (line,) = table.same_solver
        assert line == (
            "highs-tight beside highs: 4x faster in total over the texts both solved, 13.6x faster with the limit "
            "(2 texts)"
        )

    def test_a_program_that_takes_longer_is_called_slower(self) -> None:
        table = compared(answered(0, "highs", 1.0), answered(0, "highs-tight", 8.0))
        same = compared(answered(0, "highs", 1.0, status="open", low=1), answered(0, "highs-tight", 60.0))
        (line,) = table.same_solver
        assert line.endswith("8x slower in total over the texts both solved, 8x slower with the limit (1 text)")
        assert same.same_solver == ("highs-tight beside highs: as fast with the limit (1 text)",)

    TABLE = compared(
        answered(0, "ours", 1.0),
        answered(0, "theirs", 10.0),
        answered(1, "ours", 2.0),
        answered(1, "theirs", 4.0),
        answered(2, "ours", 5.0),
        answered(2, "theirs", 61.0, status="open", low=1, high=3),
        answered(3, "ours", 1.0),
        answered(3, "theirs", 0.0, status="size", low=1, high=None),
    )

    def test_ratios_are_over_the_texts_that_both_solved(self) -> None:
        score = self.TABLE.score("theirs")
        assert (score.asked, score.solved, score.too_large, score.both_solved) == (4, 2, 1, 2)
        assert score.median_ratio == pytest.approx(6.0)
        assert score.total_ratio == pytest.approx(14 / 3)
        assert score.total_cpu_ratio == pytest.approx(14 / 3)

    def test_the_largest_tree_and_the_most_memory_are_shown(self) -> None:
        table = compared(
            answered(0, "ours", 1.0, nodes=3, tree_nodes=5, peak_megabytes=80.5),
            answered(1, "ours", 1.0, nodes=8, tree_nodes=15, peak_megabytes=79.0),
            answered(2, "ours", 9.0, nodes=4, tree_nodes=7, peak_megabytes=120.0, status="open", low=1),
            answered(2, "theirs", 9.0, nodes=99),
        )
        score = table.score("ours")
        assert (score.median_nodes, score.largest_proof, score.peak_megabytes) == (5.5, 8, 120.0)
        assert table.own_costs == ("ours: its largest proof has 8 leaves, its process took 120 MB",)
        small = compared(answered(0, "ours", 1.0, nodes=1, tree_nodes=1))
        assert small.own_costs == ("ours: its largest proof has 1 leaf",)

    def test_with_the_limit_an_unsolved_text_counts_as_the_limit(self) -> None:
        """Not as the 61 s it took, and what was too large not at all."""
        assert self.TABLE.score("theirs").total_ratio_with_limit == pytest.approx((10 + 4 + 60) / (1 + 2 + 5))

    def test_our_own_failures_are_charged_too(self) -> None:
        table = compared(answered(0, "ours", 60.5, status="open", low=1, high=2), answered(0, "theirs", 6.0))
        assert table.score("theirs").total_ratio_with_limit == pytest.approx(0.1)
        assert table.score("theirs").median_ratio is None

    def test_intervals_that_overlap_agree(self) -> None:
        assert self.TABLE.disagreements == ()

    def test_intervals_apart_disagree(self) -> None:
        table = compared(answered(0, "ours", 1.0), answered(0, "theirs", 1.0, low=3, high=3))
        assert table.disagreements == ("text 0: theirs says at least 3, and ours found 2",)

    def test_a_false_claim_that_nothing_breaks_a_text_disagrees(self) -> None:
        table = compared(answered(0, "ours", 1.0), answered(0, "theirs", 1.0, status="unbreakable", low=9, high=None))
        assert table.exit_code == 4

    def test_a_text_that_rounding_decides_is_no_disagreement(self) -> None:
        ours = answered(0, "ours", 1.0, status="ambiguous", low=3, high=2)
        assert compared(ours, answered(0, "theirs", 1.0)).disagreements == ()

    def test_a_contradiction_of_the_ladder_is_a_disagreement(self) -> None:
        assert compared(answered(0, "ours", 1.0, refused="a proof is refused")).exit_code == 4
