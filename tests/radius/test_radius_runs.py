"""`measure --quantity msr` end to end on small models: radii bracket what a dense grid finds, and `check` agrees."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats, tokens
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from vector_models import LENGTH, TEXTS, WORDS, encoded, flat_model, grid_model, table, write

from swapproof.proofs import check
from swapproof.verifier.cli import main
from swapproof.verifier.commands.benches.bench_check import bench_check
from swapproof.verifier.pages.printing.radius_printing import interval, print_radii
from swapproof.verifier.radius.radius_run import measure_msr
from swapproof.verifier.radius.radius_setting import widest
from swapproof.verifier.radius.radius_summary import ends
from swapproof.verifier.radius.saliency import rank_correlation

Capture = pytest.CaptureFixture[str]
Line = dict[str, Any]


def lines_of(run: Path) -> list[Line]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


def measured(task: Path, out: Path, norm: str = "l2", words: str = "one", **more: Any) -> list[Line]:
    outcome = measure_msr(task, out, norm, words, seconds=3.0, **more)
    assert outcome.exit_code == 0, outcome.summary["verdict"]
    return lines_of(out)


def tampered(run: Path, lines: list[Line]) -> None:
    """The first line as it is now, in the store too."""
    texts = [json.dumps(line, ensure_ascii=False) for line in lines]
    (run / "results.jsonl").write_text("".join(f"{text}\n" for text in texts))
    with sqlite3.connect(run / "store.sqlite") as store:
        store.execute("UPDATE results SET line = ? WHERE id = 0 AND stage = 'msr'", (texts[0],))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("radius")
    measured(write(folder / "task", flat_model(7)), folder / "run")
    return folder / "run"


def margins(model: Any, text: int, moved: Any) -> Any:
    """The label's logit less the other's, with the vectors of the words [n, positions, width] put in."""
    arrays = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in model.graph.initializer}
    _, w1, b1, w2, b2 = (arrays[f"w{k}"] for k in range(5))
    logits = np.maximum(moved.reshape(len(moved), -1) @ w1 + b1, 0) @ w2 + b2
    return logits[:, 0] - logits[:, 1]


def nearest_on_grid(model: Any, text: int, word: int, norm: str, reach: float) -> float:
    """The least distance on a polar grid at which the sign of the margin changes."""
    rows = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
    center = rows[encoded()[text]]
    angles = np.linspace(0, 2 * np.pi, 1441)
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if norm == "linf":
        ways /= np.abs(ways).max(axis=1, keepdims=True)
    sign = np.sign(margins(model, text, center[None]))
    for distance in np.linspace(0, reach, 401)[1:]:
        moved = np.repeat(center[None], len(ways), axis=0)
        moved[:, word] += distance * ways
        if (np.sign(margins(model, text, moved)) != sign).any():
            return float(distance)
    return np.inf


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("seed", [3, 7])
def test_radii_bracket_what_a_dense_grid_finds(tmp_path: Path, norm: str, seed: int) -> None:
    model = flat_model(seed)
    lines = measured(write(tmp_path / "task", model), tmp_path / "run", norm)
    exact = 0
    for line in lines:
        for part in line["words"]:
            reach = 3.0 if part["high"] is None else 1.1 * part["high"]
            found = nearest_on_grid(model, line["id"], part["position"], norm, reach)
            assert part["low"] <= found
            assert part["high"] is None or found <= 1.05 * part["high"] + reach / 400
            exact += part["exact"] or part["high"] is None
    assert exact > 0.5 * sum(len(line["words"]) for line in lines)  # nearly all, where the machine is not busy
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_more_words_have_no_greater_radius(tmp_path: Path) -> None:
    """The low end of a set never exceeds what is seen of its subsets."""
    task = write(tmp_path / "task", flat_model(4))
    one, two, every = (measured(task, tmp_path / words, "l2", words) for words in ("one", "2", "all"))
    for single, pair, whole in zip(one, two, every, strict=True):
        alone = {part["position"]: part for part in single["words"]}
        (both,), (all_of,) = pair["sets"], whole["sets"]
        assert both["positions"] == sorted(both["positions"])
        assert len(both["positions"]) == min(2, len(alone))
        assert all_of["positions"] == list(alone)
        for position in both["positions"]:
            high = alone[position]["high"]
            assert high is None or both["low"] <= high
        if both["high"] is not None:
            assert all_of["low"] <= both["high"]
    for words in ("2", "all"):
        assert main(["check", str(tmp_path / words), "--quiet"]) == 0


def test_several_words_have_a_sentence_that_is_replayed(tmp_path: Path, capsys: Capture) -> None:
    """Tree search finds one wherever a single word changes the class, and it is no further away."""
    task = write(tmp_path / "task", flat_model(7))
    one, every = measured(task, tmp_path / "one"), measured(task, tmp_path / "all", words="all")
    met = 0
    for single, whole in zip(one, every, strict=True):
        alone = [part["swap"]["distance"] for part in single["words"] if part["swap"] is not None]
        (part,) = whole["sets"]
        if alone and len(single["words"]) > 1:
            met += 1
            assert part["sentence"]["distance"] <= min(alone) * (1 + 1e-9)
            assert part["high"] <= part["sentence"]["distance"]
    assert met
    print_radii(json.loads((tmp_path / "all" / "summary.json").read_text()), every)
    assert "sets of words exact" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "all"), "--quiet"]) == 0


def test_saliency_stands_beside_exact_effects(tmp_path: Path, capsys: Capture) -> None:
    task = write(tmp_path / "task", flat_model(7))
    lines = measured(task, tmp_path / "run", saliency=True)
    model = onnx.load(tmp_path / "task" / "model.onnx")
    rows = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
    for line in lines:
        center = rows[encoded()[line["id"]]]
        sign = 1 if line["label"] == 0 else -1
        for part in line["words"]:
            moved = np.repeat(center[None], len(WORDS), axis=0)
            moved[:, part["position"]] = rows
            fall = sign * (margins(model, 0, center[None])[0] - margins(model, 0, moved))
            assert part["saliency"]["leave_one_out"] == pytest.approx(fall[0], abs=1e-5)
            assert part["saliency"]["single_swap"] == pytest.approx(fall[2:].max(), abs=1e-5)
        assert set(line["agreement"]) == {"radius"}
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0
    lines[0]["words"][0]["saliency"]["single_swap"] += 1
    tampered(tmp_path / "run", lines)
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 4
    assert "says single_swap" in capsys.readouterr().out


def test_lime_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    task = write(tmp_path / "task", flat_model(7))
    monkeypatch.setitem(sys.modules, "lime.lime_text", None)
    asked = ["measure", str(task), "--quantity", "msr", "--lime", "50", "--seconds", "3"]
    assert main([*asked, "--out", str(tmp_path / "without")]) == 2
    assert "pip install swapproof[lime]" in capsys.readouterr().err
    assert not (tmp_path / "without").exists()
    monkeypatch.undo()
    pytest.importorskip("lime")
    lines = measured(task, tmp_path / "run", lime=50)
    assert set(lines[0]["agreement"]) == {"radius", "lime"}
    assert any(part["saliency"]["lime"] for part in lines[0]["words"])
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_ranks_are_shared_by_equal_numbers() -> None:
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == 1
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == -1
    assert rank_correlation([1, 1, 1], [3, 2, 1]) is None
    assert rank_correlation([1, 2, 2, 4], [1, 3, 2, 4]) == pytest.approx(0.948683)


def test_check_accepts_a_run_and_says_what_it_did(run: Path, capsys: Capture) -> None:
    assert main(["check", str(run)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"accepted {len(TEXTS)} of {len(TEXTS)}"
    assert "check_ball.py: 4" in said[-2]
    page = (run / "report.html").read_bytes()
    assert b"How far may the vectors of words move?" in page
    assert main(["report", str(run)]) == 0
    assert "Words by their radius" in capsys.readouterr().out
    (run / "report.html").write_bytes(page.replace(b"On average", b"In all cases"))
    assert main(["check", str(run), "--quiet"]) == 4
    (run / "report.html").write_bytes(page)
    capsys.readouterr()
    assert main(["bundle", str(run), "--out", str(run.parent / "run.zip")]) == 2
    assert "handed over as its folder" in capsys.readouterr().err


def test_check_py_names_the_checker_of_balls_and_bench_check_asks_it(run: Path, capsys: Capture) -> None:
    assert check.main([str(run)]) == 4
    assert "a swapproof ball certificate, which check_ball.py checks" in capsys.readouterr().out
    timings = bench_check(run)
    assert timings.exit_code == 0
    assert [timing.checker for timing in timings.checkers][:2] == ["swapproof check", "check_ball.py"]


def set_in(line: int, *keys: Any) -> Callable[[list[Line], Any], None]:
    def change(lines: list[Line], value: Any) -> None:
        at: Any = lines[line]
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value(at[keys[-1]]) if callable(value) else value

    return change


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ((0, "words", 0, "low"), lambda low: low * 1.01),
        ((0, "safe_radius", "low"), 9.0),
        ((0, "words", 0, "high"), lambda high: high * 0.999),
        ((0, "words", 0, "point", "distance"), lambda far: far * 0.999),
        ((0, "words", 0, "point", "vector"), lambda data: data[:-6] + "AAAA" + data[-2:]),
        ((0, "words", 0, "word"), "b"),
        ((0, "words", 2, "any_word"), "proved"),
        ((0, "words", 0, "same_vector"), 5),
        ((0, "words", 0, "exact"), False),
        ((0, "norm"), "linf"),
        ((0, "diameter"), 1.0),
        ((0, "predicted"), 7),
        ((0, "level"), "float32"),
        ((0, "status"), "already_wrong"),
        ((0, "more"), 1),
        ((0, "certificate"), None),
    ],
    ids=lambda given: "changed" if callable(given) else str(given),
)
def test_a_line_that_says_more_than_its_evidence_is_refused(
    run: Path, tmp_path: Path, keys: tuple[Any, ...], value: Any, capsys: Capture
) -> None:
    """The store says the same, so that nothing but the line itself is at fault."""
    shutil.copytree(run, tmp_path / "run")
    lines = lines_of(tmp_path / "run")
    set_in(*keys)(lines, value)
    tampered(tmp_path / "run", lines)
    assert main(["check", str(tmp_path / "run")]) == 4
    assert "text 0: refused" in capsys.readouterr().out


def test_another_network_behind_the_embedding_is_refused(run: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run" / f"behind-{LENGTH}.onnx"
    path.write_bytes(path.read_bytes() + b"\x32\x00")
    assert main(["check", str(tmp_path / "run")]) == 4
    assert "is not the network behind the embedding" in capsys.readouterr().out


def test_a_text_that_is_answered_wrongly_has_radius_zero(tmp_path: Path) -> None:
    model = flat_model(7)
    task = write(tmp_path / "task", model)
    rows = (tmp_path / "task" / "texts.tsv").read_text().splitlines()
    text, label = rows[1].split("\t")
    rows[1] = f"{text}\t{'no' if label == 'yes' else 'yes'}"
    (tmp_path / "task" / "texts.tsv").write_text("\n".join(rows) + "\n")
    first, *others = measured(task, tmp_path / "run")
    assert first["status"] == "already_wrong"
    assert first["safe_radius"] == {"low": 0.0, "high": 0.0}
    assert first["certificate"] is None
    assert all(line["safe_radius"]["low"] > 0 for line in others)
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_words_with_one_vector_are_said_and_padding_moves_only_when_asked(run: Path, tmp_path: Path) -> None:
    """b and c have one vector: a swap at distance 0, which changes nothing."""
    lines = lines_of(run)
    same = {part["word"]: part["same_vector"] for line in lines for part in line["words"]}
    assert same == {word: int(word in "bc") for word in "abcdefgh"}
    assert [len(line["words"]) for line in lines] == [3, 4, 1, 3]
    padded = measured(run.parent / "task" / "task.toml", tmp_path / "run", padding=True, limit=1)
    assert [part["word"] for part in padded[0]["words"]] == ["a", "b", "c", "<padding>"]
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


@pytest.mark.parametrize("units", ["raw", "scaled"])
def test_a_model_of_vectors_with_a_grid_and_more_outputs_than_labels(tmp_path: Path, units: str) -> None:
    vectors = table(np.random.default_rng(8), 3)
    task = write(tmp_path / "task", grid_model(6), vectors)
    lines = measured(task, tmp_path / "run", "l2", units=units)
    assert all(part["low"] > 0 for line in lines for part in line["words"])
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0
    # Another softmax, another model: the certificates are of the network before it.
    proto = onnx.load(tmp_path / "run" / f"behind-{LENGTH}.onnx")
    assert [node.op_type for node in proto.graph.node][-1] == "Gemm"
    found: Any = ReferenceEvaluator(proto).run(None, {"vectors": vectors[encoded()][:1]})
    first = found[0]
    assert int(first[0, :2].argmax()) == lines[0]["predicted"]


def line_model(size: float) -> Any:
    """Words on a line of this length; class 1 beyond its middle."""
    g = Builder()
    rows = np.array([[0], [0], [0], [0.25], [0.75], [1], [0], [0], [0], [0]]) * size
    at = g.call("Flatten", g.call("Gather", g.constant(rows.astype(np.float32)), "tokens", axis=0), axis=1)
    weights = np.zeros((LENGTH, 2), dtype=np.float32)
    weights[0, 1] = 1 / size
    g.node("Gemm", [at, g.constant(weights), g.constant(np.array([0.5, 0], dtype=np.float32))], ["logits"])
    return g.proto([tokens("batch", LENGTH)], [floats("logits", "batch", 2)])


@pytest.mark.parametrize("size", [1e3, 1.0, 1e-3, 1e-6, 1e-7])
def test_scaled_radii_are_those_of_any_other_scale(tmp_path: Path, size: float) -> None:
    line = measured(write(tmp_path / "task", line_model(size)), tmp_path / "run", units="scaled")[0]
    first = line["words"][0]
    assert line["status"] == "exact"
    assert 0.4995 < first["low"] <= 0.5 <= first["high"] * (1 + 2**-23)
    assert (first["swap"]["to"], first["swap"]["distance"]) == ("c", pytest.approx(0.75, rel=1e-6))
    assert line["diameter"] == pytest.approx(1, rel=1e-6)
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_tiny_vectors_have_tiny_radii(tmp_path: Path) -> None:
    line = measured(write(tmp_path / "task", line_model(1e-14)), tmp_path / "run")[0]
    assert 4.995e-15 < line["words"][0]["low"] <= 5.001e-15
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_words_with_one_vector_each_have_radii_too(tmp_path: Path) -> None:
    """The diameter is 0, and says nothing of how far to look."""
    model = flat_model(3)
    rows = np.full((len(WORDS), 2), 0.5, dtype=np.float32)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(rows, model.graph.initializer[0].name))
    lines = measured(write(tmp_path / "task", model), tmp_path / "run")
    for line in lines:
        assert line["diameter"] == 0
        for part in line["words"]:
            assert part["low"] > 0
            assert (part["swap"], part["any_word"], part["same_vector"]) == (None, "proved", 7)
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0


def test_a_dimension_without_range_has_no_unit(tmp_path: Path, capsys: Capture) -> None:
    vectors = table(np.random.default_rng(8), 3)
    vectors[2:, 1] = 0.5
    task = write(tmp_path / "task", grid_model(6), vectors)
    asked = ["measure", str(task), "--quantity", "msr", "--units", "scaled", "--out", str(tmp_path / "run")]
    assert main(asked) == 2
    error = capsys.readouterr().err
    assert "dimension 1 (the first is 0) of the vectors is the same in all words" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_run_goes_on_and_refuses_another_question(tmp_path: Path, capsys: Capture) -> None:
    task = write(tmp_path / "task", flat_model(1))
    out = tmp_path / "run"
    first = measured(task, out, limit=2)
    assert lines_of(out) == first
    assert [line["id"] for line in measured(task, out)] == [0, 1, 2, 3]
    assert lines_of(out)[:2] == first
    asked = ["measure", str(task), "--out", str(out), "--quantity", "msr"]
    assert main([*asked, "--norm", "linf"]) == 2
    assert "answers another question" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--norm", "l1"], "--norm 'l1': can be l2 or linf"),
        (["--words", "0"], "--words '0': can be one, all, or a number"),
        (["--units", "feet"], "--units 'feet'"),
        (["--radius", "2"], "belong to --quantity pr"),
        (["--euba", "3"], "belong to --quantity kappa"),
        (["--epsilon", "0.1"], "belong to --quantity pr"),
        (["--quantity", "vote", "--epsilon", "0.1"], "belong to --quantity pr"),
        (["--quantity", "vote", "--seconds", "3"], "belong to --quantity pr or kappa or msr"),
        (["--quantity", "pr", "--radius", "1" * 5000], "more than any text has words"),
        (["--seconds", "0"], "a time above 0"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    run: Path, tmp_path: Path, options: list[str], said: str, capsys: Capture
) -> None:
    task = run.parent / "task" / "task.toml"
    assert main(["measure", str(task), "--out", str(tmp_path / "x"), "--quantity", "msr", *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "x").exists()


def bad_tasks() -> dict[str, tuple[Callable[[Path], Path], str]]:
    short = table(np.random.default_rng(8), 3)
    good = grid_model(6)

    def of(vectors: Any, **changes: Any) -> Callable[[Path], Path]:
        return lambda folder: write(folder, good, vectors, ["yes"] * 4, **changes)

    return {
        "few rows": (of(short[:6]), "beyond the 6 vectors"),
        "width": (of(np.ones((10, 5), dtype=np.float32)), "which are no vectors of 5"),
        "no length": (of(short, length=None), "[model] length is missing"),
        "length": (of(short, length="3"), "reads 4 vectors of 3"),
        "not finite": (of(np.full((10, 3), np.nan, dtype=np.float32)), "finite float32 or float64"),
        "integers": (of(np.ones((10, 3), dtype=np.int64)), "a matrix of floats"),
    }


@pytest.mark.parametrize("name", bad_tasks())
def test_what_has_no_radius_is_refused_in_one_line(tmp_path: Path, name: str, capsys: Capture) -> None:
    make, said = bad_tasks()[name]
    task = make(tmp_path / "task")
    assert main(["measure", str(task), "--out", str(tmp_path / "x"), "--quantity", "msr"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_the_terminal_has_the_definition_and_a_map(run: Path, tmp_path: Path, capsys: Capture) -> None:
    task = run.parent / "task" / "task.toml"
    assert main(["measure", str(task), "--quantity", "msr", "--seconds", "3", "--out", str(run)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Safe radius: the L2 distance" in said
    assert "Words by their radius, the smallest darkest" in said
    assert main(["measure", str(task), "--quantity", "msr", "--seconds", "3", "--out", str(run), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert summary["sets"] == sum(len(text.split()) for text in TEXTS)


def test_a_mean_of_high_ends_stands_only_where_all_have_one() -> None:
    """The words without one may have any radius: a mean of the others stood below the mean of the low ends."""
    found = ends([{"low": 3.0, "high": 4.0}, {"low": 6.0, "high": None}])
    assert found == {"low": 4.5, "high": None, "with_high": 1, "of": 2, "high_of_these": 4.0}
    assert interval(found) == "4.5 or more (1 of 2 at most 4)"


def test_the_widest_pair_is_found() -> None:
    points = np.random.default_rng(0).normal(size=(200, 4))
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    assert widest(points) == pytest.approx(apart.max())
    assert len(WORDS) == 10


def test_the_nearest_word_of_the_same_part_of_speech_is_no_nearer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """With a tagger for which d to g are alike."""
    from swapproof.verifier.radius import radius_setting
    from swapproof.verifier.synonyms.part_of_speech import SamePartOfSpeech

    own = SamePartOfSpeech(lambda rows: [["late" if word in "defg" else "early" for word in row] for row in rows])
    monkeypatch.setattr(radius_setting, "same_part_of_speech", lambda: own)
    task = write(tmp_path / "task", flat_model(7))
    lines = measured(task, tmp_path / "run", same_part_of_speech=True)
    alike = [part for line in lines for part in line["words"] if part["swap_alike"] is not None]
    assert alike
    for part in alike:
        assert part["swap"]["distance"] <= part["swap_alike"]["distance"]
        assert (part["word"] in "defg") == (part["swap_alike"]["to"] in "defg")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["alike"]["words"] == len(alike)
    print_radii(summary, lines)
    assert "by one of the same part of speech" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 0
    lines[0]["words"][0]["swap_alike"] = {"to": "d", "distance": 0.01}
    tampered(tmp_path / "run", lines)
    assert main(["check", str(tmp_path / "run"), "--quiet"]) == 4
    assert "has a word at" in capsys.readouterr().out


def test_runs_of_two_networks_are_compared_by_position_and_dimension(run: Path, tmp_path: Path) -> None:
    other = measured(write(tmp_path / "task", flat_model(8, width=3)), tmp_path / "other")
    assert other
    assert main(["compare", str(run), str(tmp_path / "other"), "--out", str(tmp_path / "both")]) == 0
    found = json.loads((tmp_path / "both" / "compare.json").read_text())
    assert [one["radii"]["dimensions"] for one in found["runs"]] == [2, 3]
    page = (tmp_path / "both" / "compare.html").read_text()
    assert "Mean low end by position" in page
    assert "Safe radii" in page
