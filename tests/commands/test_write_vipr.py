"""Certificates as VIPR: the program is the network, its proof convinces a checker that knows only integer programs."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import proof_cases
import pytest
from cases import cases
from folder_bytes import folder_bytes
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import KINDS, Case, Prover, make_case, min_swaps, statement
from random_networks import swap_spaces, tiny_networks
from tiny import ROWS, write_task
from vipr_checker import Checked, Rejected, check_infeasible

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.exact_evaluation import exact_logits, exact_values
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.programs.exact_functions import Vectors, exact_functions
from swapproof.encodings.programs.priced_words import Words, contradiction, least
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.cli import main
from swapproof.verifier.commands.write_vipr import write_vipr
from swapproof.verifier.engines.exact_engine import Exact
from swapproof.verifier.engines.protocol import Bound, Budget, Sentence
from swapproof.verifier.interval import Interval, Proof, Witness
from swapproof.verifier.vipr.vipr_bounds import Bounding, Region
from swapproof.verifier.vipr.vipr_program import denominator

Capture = pytest.CaptureFixture[str]
FEED_FORWARD = tuple(kind for kind in KINDS if kind.__name__ in ("paper", "two_layers", "bag", "residual", "straight"))


def exported(case: Case, certificate: bytes, folder: Path) -> str:
    (folder / "model.onnx").write_bytes(case.data)
    write_vipr(certificate, open_model(folder / "model.onnx"), folder / "out.vipr")
    return (folder / "out.vipr").read_text()


def proved(case: Case, swaps: int, tree: c.Node) -> bytes:
    return c.write_certificate(statement(case, lower=c.Lower(swaps, "real", tree)))


def random_proof(case: Case, seed: int) -> tuple[int, c.Node] | None:
    """The greatest number of swaps that is proved, and a tree with splits and multipliers drawn at random."""
    low, _ = min_swaps(case)
    swaps = len(case.choices) if low is None else low - 1
    rng = random.Random(seed)
    tree = Prover(case, swaps, "real", rng, small=rng.choice((1, 3, 6))).prove() if swaps >= 0 else None
    return None if tree is None else (swaps, tree)


def nodes(tree: c.Node) -> Iterator[c.Node]:
    waiting = [tree]
    while waiting:
        yield (node := waiting.pop())
        waiting += [getattr(node, side) for side in ("left", "right", "inner") if hasattr(node, side)]


def query_of(case: Case, folder: Path) -> Query:
    (folder / "model.onnx").write_bytes(case.data)
    network = network_of(open_model(folder / "model.onnx"), len(case.choices))
    return Query.of(network, SwapSpace(case.choices), case.label)


class TestProofs:
    """What is exported convinces the checker."""

    def test_trees_of_every_kind_of_node_become_proofs(self, tmp_path: Path) -> None:
        """Words, rivals, slopes, joint groups, enumerations; no, one and two layers."""
        seen: set[str] = set()
        for seed in range(12):
            for kind in FEED_FORWARD:
                case = make_case(kind, seed)
                found = random_proof(case, seed)
                if found is not None:
                    check_infeasible(exported(case, proved(case, *found), tmp_path))
                    seen |= {type(node).__name__ for node in nodes(found[1])}
        assert seen == {"Enumerate", "Joint", "Linear", "Rivals", "Slopes", "Words"}

    @pytest.mark.parametrize("kind", FEED_FORWARD)
    def test_an_enumeration_of_everything_becomes_a_proof(
        self, kind: Callable[[proof_cases.Maker, int], bytes], tmp_path: Path
    ) -> None:
        """A certificate of one leaf says nothing about how: the splits are found here."""
        for seed in range(20, 24):
            case = make_case(kind, seed)
            low, _ = min_swaps(case)
            swaps = len(case.choices) if low is None else low - 1
            if swaps >= 0:
                check_infeasible(exported(case, proved(case, swaps, c.Enumerate()), tmp_path))

    @cases(12)
    @given(data=st.data())
    @pytest.mark.parametrize("joint", [False, True])
    def test_what_the_exact_engine_proves_becomes_a_proof(
        self, data: st.DataObject, joint: bool, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """Random weights of every magnitude, one to three hidden layers, two to four classes."""
        sample = data.draw(tiny_networks(shapes=("mlp", "deep", "mean", "residual")))
        folder = tmp_path_factory.mktemp("case")
        model = open_model(sample.save(folder))
        choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
        network = network_of(model, len(choices))
        logits = exact_logits(network, [options[0] for options in choices])[0]
        query = Query.of(network, SwapSpace.of(choices), max(range(len(logits)), key=lambda k: (logits[k], -k)))
        bound = last_bound(query, Exact(joint=joint))
        if bound is not None:
            case = Case((folder / "model.onnx").read_bytes(), query.space.choices, query.label, network.classes)
            text = exported(case, proved(case, bound.low - 1, bound.tree), folder)
            assert_program_is_the_network(check_infeasible(text), query, bound.low - 1)

    def test_the_command_writes_every_text_of_a_run(self, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(write_task(tmp_path / "task")), "--out", str(run)]) == 0
        written = 0
        for id in range(len(ROWS)):
            lower = json.loads((run / "certificates" / f"{id:06d}.json").read_bytes())["lower"]
            capsys.readouterr()
            code = main(["vipr", str(run), "--text-id", str(id), "--out", str(tmp_path / f"{id}.vipr")])
            assert code == (2 if lower is None else 0)
            if lower is not None:
                written += 1
                swaps = "1 swap changes" if lower["swaps"] == 1 else f"{lower['swaps']} swaps change"
                assert f"text {id}: no sentence with at most {swaps}" in capsys.readouterr().out
                check_infeasible((tmp_path / f"{id}.vipr").read_text())
        assert written > 4

    def test_the_same_certificate_gives_the_same_bytes(self, tmp_path: Path) -> None:
        case = make_case(proof_cases.two_layers, 3)
        found = random_proof(case, 3)
        assert found is not None
        assert exported(case, proved(case, *found), tmp_path) == exported(case, proved(case, *found), tmp_path)

    def test_a_claim_that_is_false_cannot_be_written(self, tmp_path: Path) -> None:
        """One swap more than is true: the search for a proof ends at the sentence that breaks the text."""
        tried = 0
        for seed in range(6):
            case = make_case(proof_cases.paper, seed)
            low, _ = min_swaps(case)
            if low is not None:
                tried += 1
                with pytest.raises(ArithmeticError, match="beats class"):
                    exported(case, proved(case, low, c.Enumerate()), tmp_path)
        assert tried > 1


def last_bound(query: Query, engine: Exact) -> Bound | None:
    """The strongest bound that the engine hands over, with the ladder's part played here."""
    found: Bound | None = None
    interval = Interval(len(query.space.swappable) + 1)
    findings = engine.narrow(query, interval, Budget())
    try:
        finding = next(findings)
        while True:
            if isinstance(finding, Bound):
                found, interval = finding, interval.raised(finding.low, Proof(finding.tree, finding.level, "exact"))
            elif isinstance(finding, Sentence):
                interval = interval.lowered(Witness(query.space.swaps_of(finding.tokens), None, "exact"))
            finding = findings.send(interval)
    except StopIteration:
        return found


def values(network: Network, tokens: Sequence[int]) -> list[list[Fraction]]:
    """Of every element of every node, by exact evaluation."""
    known = exact_values(network, tokens, wanted=range(len(network.nodes)))
    return [
        [Fraction(int(value)) * one.scale for value in one.integers.reshape(-1)]
        for one in (known[index] for index in range(len(network.nodes)))
    ]


def assert_program_is_the_network(checked: Checked, query: Query, swaps: int) -> None:
    """Every sentence, with what the network computes, satisfies every row but the budget and what a rival needs.

    So no L, U or B cuts a sentence off, and a rival's row holds exactly where it beats the label.
    """
    number = {name: v for v, name in enumerate(checked.names)}
    network = query.network
    for tokens in itertools.product(*query.space.choices):
        known = values(network, tokens)
        point = {number[f"x[{p},{tokens[p]}]"]: Fraction(1) for p in query.space.swappable}
        for name, v in number.items():
            if name[0] in "zya":
                n, e = map(int, name[2:-1].split(","))
                z, y = known[network.nodes[n].inputs[0]][e], known[n][e]
                point[v] = {"z": z, "y": y, "a": Fraction(z > 0)}[name[0]]
        logits = known[-1]
        few = len(query.space.swaps_of(tokens)) <= swaps
        for row in checked.given:
            kind = row.name.split("[")[0]
            if kind == "budget":
                assert row.holds(point) == few
            elif kind == "beats":
                rival = int(row.name[6:-1])
                beats = (logits[rival], -rival) > (logits[query.label], -query.label)
                chosen = number.get(f"w[{rival}]")
                assert row.holds(point if chosen is None else {**point, chosen: Fraction(1)}) == beats
                assert chosen is None or not few or row.holds(point)
            elif few and not row.name.startswith(("one[rivals]", "w[")):
                assert row.holds(point), row.name


class TestProgram:
    """The integer program is made from the model, and its numbers are vouched for."""

    @pytest.mark.parametrize("seed", range(4))
    def test_every_sentence_satisfies_the_program_unless_it_is_safe(self, seed: int, tmp_path: Path) -> None:
        for kind in FEED_FORWARD:
            case = make_case(kind, seed)
            found = random_proof(case, seed)
            if found is not None:
                checked = check_infeasible(exported(case, proved(case, *found), tmp_path))
                assert_program_is_the_network(checked, query_of(case, tmp_path), found[0])

    def test_every_big_m_is_derived_before_anything_else_from_rows_that_do_not_hold_it(self, tmp_path: Path) -> None:
        """The first lines say low <= z <= high for every z, from its definition, words and earlier layers alone."""
        case = make_case(proof_cases.residual, 3)
        found = random_proof(case, 3)
        assert found is not None
        checked = check_infeasible(exported(case, proved(case, *found), tmp_path))
        every = [*checked.given, *checked.derived]
        reasons = {len(checked.given) + at: reason for at, reason in enumerate(checked.reasons)}

        def origins(at: int) -> set[str]:
            """Names of the given rows below a line."""
            if at < len(checked.given):
                return {every[at].name}
            kind, *numbers = reasons[at][1:-1]
            below = {"asm": [], "lin": numbers[1::2], "uns": numbers}[kind]
            return set().union(*(origins(int(number)) for number in below))

        ends: dict[int, list[Fraction]] = {}
        for at in range(len(checked.given), len(every)):
            row = every[at]
            if len(row.terms) == 1 and row.sense > 0 and checked.names[next(iter(row.terms))][0] == "z":
                ((z, sign),) = row.terms.items()
                if len(ends.setdefault(z, [])) < 2:
                    ends[z].append(row.right)
                    n = int(checked.names[z][2:-1].split(",")[0])
                    for name in origins(at):
                        kind, _, where = name.partition("[")
                        if kind in ("on", "off", "above", "leak"):
                            assert int(where.split(",")[0]) < n, name
                    assert (sign > 0) == (len(ends[z]) == 1)
        for row in checked.given:
            kind, _, where = row.name.partition("[")
            if kind in ("on", "off"):
                low, minus_high = ends[checked.names.index(f"z[{where}")]
                room = row.terms.get(checked.names.index(f"a[{where}"), Fraction(0))
                if kind == "off":  # y - U a <= 0
                    assert -room >= -minus_high
                else:  # y - z - L a <= - L
                    assert room == row.right >= -low

    def test_a_big_m_that_is_too_small_is_found_by_the_checker(self, tmp_path: Path) -> None:
        """A forger who halves U wins nothing: lines that rest on the row no longer follow."""
        case = make_case(proof_cases.two_layers, 6)
        found = random_proof(case, 6)
        assert found is not None
        lines = exported(case, proved(case, *found), tmp_path).splitlines()
        used = {word for line in lines if "{ lin" in line for word in line.split("{ lin")[1].split()[1::2]}
        start = lines.index(next(line for line in lines if line.startswith("CON "))) + 1
        tried = 0
        for at, line in enumerate(lines):
            words = line.split()
            if words and words[0].startswith(("off[", "on[")) and str(at - start) in used:
                tried += 1
                forged = [*words[:-1], str(Fraction(words[-1]) / 2 - 1)]
                with pytest.raises(Rejected):
                    check_infeasible("\n".join([*lines[:at], " ".join(forged), *lines[at + 1 :]]) + "\n")
        assert tried > 2

    @pytest.mark.parametrize("seed", range(6))
    def test_the_step_divides_every_margin(self, seed: int, tmp_path: Path) -> None:
        """Where the label wins ties, margin < 0 means margin <= - step: nothing is lost in a row that says >=."""
        for kind in FEED_FORWARD:
            query = query_of(make_case(kind, seed), tmp_path)
            exact = exact_functions(query)
            for tokens in itertools.product(*query.space.choices):
                logits = exact_logits(query.network, tokens)[0]
                for k, function in enumerate(exact.logits):
                    assert (logits[k] * denominator(exact, function)).denominator == 1

    @cases(60)
    @given(seed=st.integers(0, 2**32 - 1))
    def test_selection_is_what_enumeration_gives(self, seed: int) -> None:
        """The least value is that of the best sentence, its multipliers prove it, an empty region is proved empty."""
        rng = random.Random(seed)
        sizes = {p: rng.randint(2, 3) for p in range(rng.randint(1, 4))}
        allowed = {p: frozenset(rng.sample(range(n), rng.randint(1, n))) for p, n in sizes.items()}
        most = rng.randint(0, len(sizes))
        words = Words(sizes, allowed, {p: ("not", p) for p in sizes}, most, ("budget",))
        function = {(p, k): rng.randint(-9, 9) for p, n in sizes.items() for k in range(1, n)}
        points = [
            choice
            for choice in itertools.product(*(sorted(allowed[p]) for p in sorted(sizes)))
            if sum(number > 0 for number in choice) <= most
        ]
        # (sign: 1 for >=, right side, left side) of every row that a key may name
        rows: dict[Hashable, tuple[int, int, dict[tuple[int, int], int]]] = {}
        for p, n in sizes.items():
            rows["one", p] = 0, 1, {(p, k): 1 for k in range(n)}
            rows["not", p] = 1, 0, {(p, k): -1 for k in range(n) if k not in allowed[p]}
            rows.update({("choice", p, k): (1, 0, {(p, k): 1}) for k in range(n)})
        rows["budget",] = -1, most, {(p, k): 1 for p, n in sizes.items() for k in range(1, n)}
        found, empty = least(words, function), contradiction(words)
        assert (found is None) == (empty is not None) == (not points)
        by = found[1] if found is not None else empty
        assert by is not None
        right, total = 0, dict.fromkeys(function, 0)
        for key, factor in by.items():
            sign, side, terms = rows[key]
            assert sign * factor >= 0
            right += factor * side
            for variable, k in terms.items():
                total[variable] = total.get(variable, 0) + factor * k
        if found is None:
            assert not any(total.values())
            assert right > 0
        else:
            least_of_all = min(sum(function.get((p, k), 0) for p, k in enumerate(point)) for point in points)
            assert found[0] == right == least_of_all
            assert {v: k for v, k in total.items() if k} == {v: k for v, k in function.items() if k}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    case = make_case(proof_cases.two_layers, 6)
    found = random_proof(case, 6)
    assert found is not None
    return exported(case, proved(case, *found), tmp_path_factory.mktemp("forged")).splitlines()


class TestForgeries:
    """A derivation that was tampered with is refused."""

    def forged(self, lines: list[str], at: int, line: str) -> str:
        return "\n".join([*lines[:at], line, *lines[at + 1 :]]) + "\n"

    def test_as_it_is_it_is_accepted(self, lines: list[str]) -> None:
        check_infeasible("\n".join(lines))

    def test_a_multiplier_that_was_changed(self, lines: list[str]) -> None:
        places = [at for at, line in enumerate(lines) if "{ lin" in line]
        for at in places[:: max(1, len(places) // 40)]:
            head, tail = lines[at].split("{ lin ")
            words = tail.split()
            words[2] = str(Fraction(words[2]) * 2)
            with pytest.raises(Rejected):
                check_infeasible(self.forged(lines, at, f"{head}{{ lin {' '.join(words)}"))

    def test_a_right_side_that_was_strengthened(self, lines: list[str]) -> None:
        places = [at for at, line in enumerate(lines) if "{ lin" in line and line.split()[3] != "0"]
        for at in places[:: max(1, len(places) // 40)]:
            words = lines[at].split()
            words[2] = str(Fraction(words[2]) + 1000)  # some lines state less than they could
            with pytest.raises(Rejected):
                check_infeasible(self.forged(lines, at, " ".join(words)))

    def test_a_disjunction_of_other_assumptions(self, lines: list[str]) -> None:
        places = [at for at, line in enumerate(lines) if "{ uns" in line]
        for at in places[:: max(1, len(places) // 20)]:
            head, tail = lines[at].split("{ uns ")
            left, low, right, _, *rest = tail.split()
            with pytest.raises(Rejected):
                check_infeasible(self.forged(lines, at, f"{head}{{ uns {left} {low} {right} {low} {' '.join(rest)}"))

    def test_an_end_that_is_missing_or_only_assumed(self, lines: list[str]) -> None:
        start = next(at for at, line in enumerate(lines) if line.startswith("DER "))
        count = int(lines[start].split()[1])
        assumed = f"{lines[-1].split()[0]} G 1 0 {{ asm }} -1"
        for changed in (
            [*lines[:start], f"DER {count - 1}", *lines[start + 1 : -1]],
            lines[:-1],
            [*lines[:-1], assumed],
            [*lines, assumed],
        ):
            with pytest.raises(Rejected):
                check_infeasible("\n".join(changed))


def thirds(m: proof_cases.Maker, classes: int) -> bytes:
    """A weight that no float is."""
    third = m.call("Div", m.constant(np.array(1, np.float32)), m.constant(np.array(3, np.float32)))
    flat = m.call("Flatten", m.embed(2))
    return m.model(m.gemm(m.call("Mul", flat, third), 2 * m.length, classes), classes)


class TestRefusals:
    """What cannot be written is refused in one line that says why."""

    def test_maxima_and_rounded_constants(self, tmp_path: Path) -> None:
        for kind, reason in ((proof_cases.convolution, "rectifiers"), (thirds, "rounded")):
            case = make_case(kind, 2)
            with pytest.raises(Unsupported, match=reason):
                exported(case, proved(case, 0, c.Enumerate()), tmp_path)

    def test_a_certificate_without_a_low_end(self, tmp_path: Path) -> None:
        case = make_case(proof_cases.paper, 0)
        word = next(p for p, options in enumerate(case.choices) if len(options) > 1)
        data = c.write_certificate(statement(case, upper=c.Upper(((word, 1),), ("replay",))))
        with pytest.raises(BadInput, match="only a witness"):
            exported(case, data, tmp_path)

    def test_a_derivation_that_grows_too_long(self, tmp_path: Path) -> None:
        case = make_case(proof_cases.paper, 1)
        found = random_proof(case, 1)
        assert found is not None
        (tmp_path / "model.onnx").write_bytes(case.data)
        with pytest.raises(Unsupported, match="--most-megabytes"):
            write_vipr(proved(case, *found), open_model(tmp_path / "model.onnx"), tmp_path / "o.vipr", 1000)
        assert not (tmp_path / "o.vipr").exists()

    def test_a_count_of_sentences(self, tmp_path: Path, capsys: Capture) -> None:
        """What `measure --quantity pr` proves."""
        task, run = str(write_task(tmp_path / "task")), str(tmp_path / "run")
        assert main(["measure", task, "--quantity", "pr", "--radius", "2", "--out", run]) == 0
        assert main(["vipr", run, "--text-id", "2", "--out", str(tmp_path / "o.vipr")]) == 2
        assert "text 2 proves no low end, only a count of sentences" in capsys.readouterr().err
        assert not (tmp_path / "o.vipr").exists()

    def test_the_files_of_the_run_and_others_are_not_replaced(self, tmp_path: Path, capsys: Capture) -> None:
        """An earlier file of this command is, with the same bytes."""
        task, run = write_task(tmp_path / "task"), tmp_path / "run"
        assert main(["certify", str(task), "--out", str(run)]) == 0
        command = ["vipr", str(run), "--text-id", "1", "--out"]
        assert main([*command, str(run / "1.vipr")]) == 0
        before = folder_bytes(tmp_path)
        for path in (*run.rglob("*.*"), task, task.parent / "model.onnx"):
            capsys.readouterr()
            if path.suffix != ".vipr" and path.stat().st_size:
                assert main([*command, str(path)]) == 2, path
                error = capsys.readouterr().err
                assert f"{path}: exists" in error
                assert error.count("\n") == 1
        assert main([*command, str(run / "1.vipr")]) == 0
        assert folder_bytes(tmp_path) == before

    def test_other_files_than_a_checked_certificate(self, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(write_task(tmp_path / "task")), "--out", str(run)]) == 0
        out = ["--out", str(tmp_path / "o.vipr")]
        assert main(["vipr", str(run), "--text-id", "99", *out]) == 2
        shutil.copy(run / "certificates" / "000001.json", run / "certificates" / "000000.json")
        assert main(["vipr", str(run), "--text-id", "0", *out]) == 4
        assert main(["vipr", str(tmp_path / "nothing"), "--text-id", "0", *out]) == 2
        assert not (tmp_path / "o.vipr").exists()
        assert all(len(line) > 20 for line in capsys.readouterr().err.splitlines())


class TestChecker:
    """The tests' own checker does what the specification says."""

    HEAD = (
        "VER 1.0\nVAR 2\nx y\nINT 1\n0\nOBJ min\n0\n"
        "CON 3 1\nb G 0 1 0 1\nc1 G 1 1 0 2\nc2 L 1 1 0 2\nRTP infeas\nSOL 0\n"
    )

    def test_rounding_proves_that_no_whole_number_is_a_half(self) -> None:
        rounding = "DER 3\nd3 G 1 1 0 1 { rnd 1 1 1/2 } -1\nd4 L 0 1 0 1 { rnd 1 2 1/2 } -1\n"
        rounding += "d5 G 1 0 { lin 2 3 1 4 -1 } -1\n"
        check_infeasible(self.HEAD + rounding)
        for wrong in ("d3 G 2 1 0 1", "d3 G 1 1 1 1", "d3 E 1 1 0 1"):
            with pytest.raises(Rejected):
                check_infeasible(self.HEAD + rounding.replace("d3 G 1 1 0 1", wrong))
        with pytest.raises(Rejected, match="rounded"):  # y is no whole number
            check_infeasible(self.HEAD.replace("INT 1\n0", "INT 1\n1") + rounding)

    def test_a_split_rests_on_no_assumption_only_if_it_covers_all_whole_numbers(self) -> None:
        split = "DER 5\nd3 L 0 1 0 1 { asm } -1\nd4 G 1 1 0 1 { asm } -1\nd5 G 1 0 { lin 2 1 1 3 -2 } -1\n"
        split += "d6 G 1 0 { lin 2 2 -1 4 2 } -1\nd7 G 1 0 { uns 5 3 6 4 } -1\n"
        check_infeasible(self.HEAD + split)
        with pytest.raises(Rejected, match="whole"):
            check_infeasible(self.HEAD.replace("INT 1\n0", "INT 0") + split)
        with pytest.raises(Rejected, match="whole"):
            check_infeasible(self.HEAD + split.replace("d4 G 1 1 0 1", "d4 G 2 1 0 1"))
        with pytest.raises(Rejected, match="assumptions"):
            check_infeasible(self.HEAD + split.replace("DER 5", "DER 4").replace("d7 G 1 0 { uns 5 3 6 4 } -1\n", ""))

    def test_multipliers_of_inequalities_must_point_one_way(self) -> None:
        with pytest.raises(Rejected, match="suitable"):
            check_infeasible(self.HEAD + "DER 1\nd3 G 0 0 { lin 2 1 1 2 1 } -1\n")


def test_bounds_of_a_region_hold_in_all_its_sentences(tmp_path: Path) -> None:
    """The exact recipe of this module against plain evaluation, for the whole space."""
    for seed in range(4):
        query = query_of(make_case(proof_cases.two_layers, seed), tmp_path)
        exact, space = exact_functions(query), query.space
        sizes = {p: len(space.choices[p]) for p in space.swappable}
        words = Words(sizes, {p: frozenset(range(n)) for p, n in sizes.items()}, {}, 2, ("budget",))
        bounding = Bounding(exact, Vectors(space), Region(words, query.rivals))
        bounding.compute()
        for tokens in itertools.product(*space.choices):
            if len(space.swaps_of(tokens)) <= 2:
                known = values(query.network, tokens)
                for (n, e), ends in bounding.bounds.items():
                    assert ends.low <= known[query.network.nodes[n].inputs[0]][e] <= ends.high
