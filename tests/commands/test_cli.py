"""The command line end to end on a tiny model: what it answers, what it refuses, and with which exit code."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tiny import LENGTH, ROWS, SENTIMENT, WORDS, model, write_task

from swapproof.encodings.errors import BadInput
from swapproof.encodings.query import Query
from swapproof.proofs.certificate import Linear
from swapproof.verifier.cli import main
from swapproof.verifier.engines.protocol import Bound, Budget, Findings
from swapproof.verifier.interval import Interval
from swapproof.verifier.ladder import settling as settle
from swapproof.verifier.ladder import station
from swapproof.verifier.ladder.replay import Replay

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]
Spoil = Callable[[Path], object]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that tests copy before they change it."""
    folder = tmp_path_factory.mktemp("finished")
    assert main(["certify", str(write_task(folder / "task")), "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def results(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


def session(run: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(run / "model.onnx"), providers=["CPUExecutionProvider"])


def ids(words: list[str], length: int = LENGTH) -> list[int]:
    known = [WORDS.index(word) if word in WORDS else 1 for word in words]
    return known + [0] * (length - len(known))


def fewest_swaps(run: Path, choices: list[list[str]], label: int, length: int = LENGTH) -> int | None:
    """By asking onnxruntime about every sentence."""
    sentences = list(itertools.product(*choices))
    logits = session(run).run(None, {"tokens": np.array([ids(list(words), length) for words in sentences])})[0]
    original = tuple(options[0] for options in choices)
    swaps = [
        sum(a != b for a, b in zip(words, original, strict=True))
        for words, row in zip(sentences, logits, strict=True)
        if int(row.argmax()) != label
    ]
    return min(swaps, default=None)


class TestCertify:
    """`certify` answers as brute force does, with evidence."""

    def test_every_interval_is_what_enumerating_through_onnxruntime_gives(self, finished: Path) -> None:
        spaces = [json.loads(line)["choices"] for line in (finished / "spaces.jsonl").read_text().splitlines()]
        lines = results(finished)
        assert [line["id"] for line in lines] == list(range(len(ROWS)))
        for line, choices in zip(lines, spaces, strict=True):
            fewest = fewest_swaps(finished, choices, line["label"])
            if fewest is None:
                assert line["status"] == "unbreakable"
                assert line["min_swaps"] == {"low": line["positions"] + 1, "high": None}
            else:
                assert line["status"] == "exact"
                assert line["min_swaps"] == {"low": fewest, "high": fewest}
        assert {line["status"] for line in lines} == {"exact", "unbreakable"}

    def test_every_witness_is_a_sentence_that_fools_the_model(self, finished: Path) -> None:
        lines = [line for line in results(finished) if line["witness"]]
        assert lines
        for line in lines:
            words = line["text"].lower().split()
            for swap in line["witness"]["swaps"]:
                assert words[swap["position"]] == swap["from"]
                start, end = swap["characters"]
                assert line["text"][start:end].lower() == swap["from"]
                words[swap["position"]] = swap["to"]
            assert line["witness"]["sentence"].lower().split() == words
            logits = session(finished).run(None, {"tokens": np.array([ids(words)])})[0]
            assert int(logits[0].argmax()) != line["label"]

    def test_a_line_says_what_the_text_is(self, finished: Path) -> None:
        line = results(finished)[3]
        assert line["text"] == "The film , great"
        assert (line["label"], line["predicted"], line["positions"]) == (1, 1, 4)
        assert line["candidates"] == 3
        assert line["unknown"] == 1
        assert line["certificate"] == "certificates/000003.json"
        assert (finished / line["certificate"]).is_file()

    def test_the_summary_is_that_of_the_lines(self, finished: Path) -> None:
        summary, lines = json.loads((finished / "summary.json").read_text()), results(finished)
        exact = [line["min_swaps"]["low"] for line in lines if line["status"] == "exact"]
        assert summary["texts"] == len(lines)
        assert summary["exact"] == len(exact)
        assert summary["mmws"]["low"] == summary["mmws"]["high"] == pytest.approx(sum(exact) / len(exact), abs=1e-6)
        assert summary["accuracy"] == 1.0
        for radius, share in summary["certified_accuracy"].items():
            robust = [line for line in lines if line["min_swaps"]["low"] > int(radius)]
            unbreakable = [line for line in lines if line["status"] == "unbreakable"]
            assert share == len({line["id"] for line in [*robust, *unbreakable]}) / len(lines)

    def test_a_run_folder_is_a_task_that_gives_the_same_results(self, finished: Path, tmp_path: Path) -> None:
        assert main(["certify", str(finished / "task.toml"), "--out", str(tmp_path / "again")]) == 0
        assert timeless(results(tmp_path / "again")) == timeless(results(finished))
        for name in ("model.onnx", "vocabulary.json", "spaces.jsonl", "certificates/000001.json"):
            assert (tmp_path / "again" / name).read_bytes() == (finished / name).read_bytes()

    def test_several_jobs_find_what_one_finds(self, task: Path, finished: Path, tmp_path: Path) -> None:
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--jobs", "2"]) == 0
        assert timeless(results(tmp_path / "run")) == timeless(results(finished))
        for certificate in (finished / "certificates").iterdir():
            assert (tmp_path / "run" / "certificates" / certificate.name).read_bytes() == certificate.read_bytes()

    def test_limit_takes_the_first_texts(self, task: Path, finished: Path, tmp_path: Path) -> None:
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--limit", "3"]) == 0
        assert timeless(results(tmp_path / "run")) == timeless(results(finished)[:3])

    @pytest.mark.parametrize(
        ("rows", "radius", "engines", "code"),
        [
            ([("the a the", "positive"), ("awful", "negative")], "2", None, 0),
            ([("a good film", "positive"), ("awful", "negative")], "1", None, 1),
            ([("the a the", "positive")], "0", None, 0),
            ([("awful", "positive")], "0", None, 1),
            ([("awful", "negative")], "1", "greedy", 3),
            ([("a good film", "positive"), ("awful", "negative")], "1", "greedy", 1),
            ([("awful", "negative")], None, "greedy", 0),
        ],
    )
    def test_the_exit_code_is_the_verdict(
        self, tmp_path: Path, rows: list[tuple[str, str]], radius: str | None, engines: str | None, code: int
    ) -> None:
        arguments = ["certify", str(write_task(tmp_path / "task", rows)), "--out", str(tmp_path / "run")]
        arguments += ["--radius", radius] if radius else []
        arguments += ["--engines", engines] if engines else []
        assert main(arguments) == code
        assert main(["report", str(tmp_path / "run")]) == code
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert summary["verdict"]["exit_code"] == code

    def test_a_text_already_wrong_is_reported_apart(self, tmp_path: Path) -> None:
        task = write_task(tmp_path / "task", [("awful", "positive"), ("a good film", "positive")])
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        wrong, _ = results(tmp_path / "run")
        assert (wrong["status"], wrong["min_swaps"]) == ("already_wrong", {"low": 0, "high": 0})
        assert wrong["witness"]["swaps"] == []
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert (summary["already_wrong"], summary["accuracy"], summary["mmws"]["low"]) == (1, 0.5, 1.0)
        assert main(["check", str(tmp_path / "run")]) == 0

    def test_long_texts_are_cut_counted_and_listed(self, tmp_path: Path) -> None:
        task = write_task(tmp_path / "task", [("great " * LENGTH + "bad bad", "positive"), ("awful", "negative")])
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        cut, whole = results(tmp_path / "run")
        assert (cut["cut"], cut["positions"], whole["cut"]) == (2, LENGTH, 0)
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert (summary["cut_texts"], summary["cut_words"]) == (1, 2)

    def test_embedding_rows_without_a_word_are_allowed_and_counted(self, task: Path, tmp_path: Path) -> None:
        onnx.save(model(len(WORDS) + 3), task.parent / "model.onnx")
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--limit", "1"]) == 0
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert summary["model"]["embedding_rows_without_a_word"] == 3
        assert any("3 rows" in remark for remark in summary["remarks"])

    @pytest.mark.parametrize("exponent", [-40, -60, -80])
    def test_numbers_below_the_checkers_grid_are_proved_by_some_engine(
        self, task: Path, tmp_path: Path, exponent: int
    ) -> None:
        path = task.parent / "model.onnx"
        proto = onnx.load(path)
        for tensor in proto.graph.initializer:
            array = numpy_helper.to_array(tensor)
            scale = {"table": 2.0**exponent, "b1": 0.0, "b2": 0.0}.get(tensor.name, 1.0)
            tensor.CopyFrom(numpy_helper.from_array(array * np.float32(scale), tensor.name))
        onnx.save(proto, path)
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        assert main(["check", str(tmp_path / "run"), "--exact"]) == 0

    def test_unknown_words_move_when_asked_to(self, tmp_path: Path) -> None:
        task = write_task(tmp_path / "task", [("good , film", "positive")], swaps_swap_unknown=True)
        (task.parent / "synonyms.json").write_text('{",": ["awful"]}')
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        (line,) = results(tmp_path / "run")
        assert (line["candidates"], line["unknown"], line["min_swaps"]) == (1, 1, {"low": 1, "high": 1})
        assert main(["check", str(tmp_path / "run")]) == 0

    def test_external_tensors_are_copied_bound_and_checked(self, task: Path, tmp_path: Path) -> None:
        onnx.save(
            model(), task.parent / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0
        )
        run = tmp_path / "run"
        assert main(["certify", str(task), "--out", str(run)]) == 0
        assert (run / "weights.bin").read_bytes() == (task.parent / "weights.bin").read_bytes()
        assert main(["check", str(run)]) == 0
        data = bytearray((run / "weights.bin").read_bytes())
        data[5] ^= 1
        (run / "weights.bin").write_bytes(data)
        assert main(["check", str(run)]) == 4

    def test_the_python_function_is_the_command(self, task: Path, finished: Path, tmp_path: Path) -> None:
        from swapproof.verifier import Outcome, certify

        outcome = certify(task, tmp_path / "run", limit=2)
        assert isinstance(outcome, Outcome)
        assert outcome.exit_code == 0
        assert outcome.summary["texts"] == 2
        assert timeless(results(outcome.folder)) == timeless(results(finished)[:2])
        with pytest.raises(BadInput, match="limit = 0"):
            certify(task, tmp_path / "run", limit=0)


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def interrupt_at(id: int, settle_one: Callable[..., Any]) -> Callable[..., Any]:
    """Settles texts until this one, where the user presses Ctrl-C."""

    def settled(at: station.Station, text: Any) -> Any:
        if text.id == id:
            raise KeyboardInterrupt
        return settle_one(at, text)

    return settled


class TestCheck:
    """`check` accepts what is proved, and refuses a line that claims more."""

    def test_a_finished_run_is_accepted_last_of_all(self, run: Path, capsys: Capture) -> None:
        for arguments in ([], ["--exact"], ["--jobs", "1"]):
            assert main(["check", str(run), *arguments]) == 0
            assert capsys.readouterr().out.splitlines()[-1] == "accepted 8 of 8"

    def test_many_certificates_are_checked_in_several_processes(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task", ROWS * 4)
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        assert main(["check", str(tmp_path / "run"), "--jobs", "2"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == "accepted 32 of 32"

    def test_the_bare_checker_accepts_the_run_too(self, run: Path) -> None:
        command = [sys.executable, "-I", "-S", str(ROOT / "proofs" / "check.py"), str(run)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[-1] == "accepted 8 of 8"

    @pytest.mark.parametrize(
        ("id", "change"),
        [
            (1, {"min_swaps": {"low": 4, "high": 4}}),
            (1, {"min_swaps": {"low": 3, "high": None}, "status": "open"}),
            (1, {"min_swaps": {"low": 2, "high": 2}}),
            (1, {"min_swaps": {"low": 6, "high": None}, "status": "unbreakable"}),
            (1, {"witness": None}),
            (1, {"witness": {"swaps": [{"position": 1, "from": "great", "to": "fine"}]}}),
            (1, {"witness": {"swaps": [{"position": 0, "from": "the", "to": "bad"}]}}),
            (1, {"certificate": "certificates/000000.json"}),
            (1, {"certificate": None}),
            (1, {"text": "the great great fine movie"}),
            (1, {"label": 0}),
            (1, {"predicted": 0}),
            (1, {"candidates": 8}),
            (1, {"positions": 6}),
            (1, {"cut": 1}),
            (1, {"unknown": 1}),
            (1, {"witness": {"sentence": "an awful movie"}}),
            (1, {"witness": {"levels": ["replay"]}}),
            (1, {"witness": {"swaps": []}}),
            (1, {"status": "already_wrong"}),
            (1, {"status": "proved"}),
            (2, {"min_swaps": {"low": 9, "high": None}}),
            (2, {"min_swaps": {"low": 2, "high": 2}, "status": "exact"}),
        ],
    )
    def test_a_line_that_claims_something_else_is_refused(
        self, run: Path, capsys: Capture, id: int, change: dict[str, Any]
    ) -> None:
        lines = results(run)
        if change.get("witness"):
            change = {"witness": lines[id]["witness"] | change["witness"]}
        lines[id] |= change
        (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (run / "summary.json").unlink()
        assert main(["check", str(run)]) == 4
        out = capsys.readouterr().out
        assert f"refused {id:06d}.json: the line" in out
        assert "accepted" not in out

    def test_a_wrong_answer_is_claimed_at_the_level_that_its_certificate_shows(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        task = write_task(tmp_path / "task", [("awful film", "positive")])
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        [line] = results(tmp_path / "run")
        assert (line["status"], line["level"]) == ("already_wrong", "float32")
        (tmp_path / "run" / "results.jsonl").write_text(json.dumps(line | {"level": "replay"}) + "\n")
        assert main(["check", str(tmp_path / "run")]) == 4
        assert "the line claims replay, and the wrong answer is shown at float32" in capsys.readouterr().out

    def test_a_swap_placed_at_another_word_is_refused(self, run: Path, capsys: Capture) -> None:
        lines = results(run)
        lines[1]["witness"]["swaps"][0]["characters"][0] += 1
        (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert main(["check", str(run)]) == 4
        assert "elsewhere than the text does" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("certificates/000001.json", lambda data: data.replace(b'"swaps":2', b'"swaps":3')),
            ("certificates/000001.json", lambda data: data[:-1]),
            ("certificates/000001.json", lambda data: data.replace(b'"label":1', b'"label":0')),
            ("model.onnx", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
            ("spaces.jsonl", lambda data: data.replace(b'"fine"', b'"poor"', 1)),
            ("texts.jsonl", lambda data: data.replace(b"a good film", b"a fine film")),
            ("vocabulary.json", lambda data: data + b" "),
            ("summary.json", lambda data: data.replace(b'"exact": 4', b'"exact": 5')),
        ],
    )
    def test_a_changed_file_is_refused(
        self, run: Path, capsys: Capture, name: str, change: Callable[[bytes], bytes]
    ) -> None:
        data = (run / name).read_bytes()
        assert change(data) != data
        (run / name).write_bytes(change(data))
        assert main(["check", str(run)]) in (2, 4)
        assert "accepted" not in capsys.readouterr().out

    def test_a_run_that_found_nothing_has_nothing_to_check(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task", [("the a the", "positive")])
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--engines", "greedy"]) == 0
        capsys.readouterr()
        assert main(["check", str(tmp_path / "run")]) == 3
        out = capsys.readouterr().out
        assert "no text was proved or broken (1 open)" in out
        assert "accepted" not in out

    def test_texts_without_a_line_are_counted(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        """A run that was interrupted has none for the rest."""
        run = tmp_path / "run"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(station.Station, "settle", interrupt_at(6, station.Station.settle))
            assert main(["certify", str(task), "--out", str(run)]) == 130
        assert main(["check", str(run)]) == 0
        assert "2 of the run's 8 texts have no line in results.jsonl" in capsys.readouterr().out

    def test_a_missing_certificate_is_refused(self, run: Path) -> None:
        (run / "certificates" / "000001.json").unlink()
        assert main(["check", str(run)]) == 4

    def test_a_certificate_of_another_text_is_refused(self, run: Path) -> None:
        shutil.copy(run / "certificates" / "000000.json", run / "certificates" / "000001.json")
        assert main(["check", str(run)]) == 4

    def test_a_folder_that_is_no_run_is_bad_input(self, tmp_path: Path, capsys: Capture) -> None:
        assert main(["check", str(tmp_path)]) == 2
        assert main(["check", str(tmp_path / "absent")]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 2

    @pytest.mark.parametrize("command", ["check", "report"])
    def test_a_run_without_its_store_names_the_file_and_what_to_do(
        self, run: Path, command: str, capsys: Capture
    ) -> None:
        """The folder of an unpacked bundle, say; what is advised does check it."""
        (run / "store.sqlite").unlink()
        assert main([command, str(run)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "it has no store.sqlite; copy it from where the run was made, or make the run again" in line
        (advised,) = re.findall("`python (-I -S proofs/check.py .*)`", line)
        assert subprocess.run([sys.executable, *advised.split()], cwd=ROOT, check=False).returncode == 0
        (run / "store.sqlite").write_text("something else")
        assert main([command, str(run)]) == 2
        assert "its store.sqlite is another file" in capsys.readouterr().err

    def test_a_folder_of_runs_names_one_of_them(self, run: Path, tmp_path: Path, capsys: Capture) -> None:
        assert main(["report", str(tmp_path)]) == 2
        assert f"{run} may be one" in capsys.readouterr().err


def classifier(**changes: Any) -> Spoil:
    """Another model.onnx: another input type, another shape, no embedding."""

    def write(folder: Path) -> None:
        proto = model()
        if "input" in changes:
            proto.graph.input[0].CopyFrom(changes["input"])
        if "output" in changes:
            proto.graph.node[-1].output[0] = "other"
            proto.graph.node.append(changes["output"])
        onnx.save(proto, folder / "model.onnx")

    return write


def table(text: str) -> Spoil:
    return lambda folder: (folder / "synonyms.json").write_text(text)


def rows(text: str) -> Spoil:
    return lambda folder: (folder / "texts.tsv").write_text(text)


def vocabulary(words: list[str]) -> Spoil:
    return lambda folder: (folder / "vocabulary.json").write_text(json.dumps(words))


def remove(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def directory(name: str) -> Spoil:
    def replace(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return replace


def truncate(name: str) -> Spoil:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:200])


def edit(before: str, after: str) -> Spoil:
    def replace(folder: Path) -> None:
        text = (folder / "task.toml").read_text()
        assert before in text
        (folder / "task.toml").write_text(text.replace(before, after))

    return replace


def value_info(kind: int, shape: list[int | str]) -> Any:
    return helper.make_tensor_value_info("tokens", kind, shape)


def save_regression(folder: Path) -> None:
    """A model of vectors, not of words."""
    weights = numpy_helper.from_array(np.ones((LENGTH, 2), dtype=np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "regression",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", LENGTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [weights],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    proto.ir_version = 9
    onnx.save(proto, folder / "model.onnx")


def save_with_external_data_in(name: str) -> Spoil:
    return lambda folder: onnx.save(
        model(), folder / "model.onnx", save_as_external_data=True, location=name, size_threshold=0
    )


BAD: dict[str, tuple[Spoil, str]] = {
    "external data under a name of ours": (save_with_external_data_in("summary.json"), "external data in"),
    "external data under a name that cannot be bound": (save_with_external_data_in("my weights"), "external data in"),
    "pairs of texts": (edit('label = "label"', 'label = "label"\ncontext = "text"'), "pairs of texts"),
    "model missing": (remove("model.onnx"), "model.onnx: no such file"),
    "model is a directory": (directory("model.onnx"), "directory"),
    "model truncated": (truncate("model.onnx"), "not a readable ONNX model"),
    "model of vectors": (save_regression, "float; token ids are int64"),
    "model of floats": (classifier(input=value_info(TensorProto.FLOAT, ["b", LENGTH])), "model.onnx"),
    "model of rank 3": (classifier(input=value_info(TensorProto.INT64, ["b", LENGTH, 1])), "rank 3"),
    "model of another length": (edit("length = 6", "length = 7"), "length"),
    "model with another operator": (
        classifier(output=helper.make_node("Erf", ["other"], ["logits"])),
        "operator Erf is not supported",
    ),
    "three labels": (edit('["negative", "positive"]', '["a", "b", "c"]'), "label 'positive' is outside the classes"),
    "three labels, two classes": (
        edit('"negative", "positive"', '"negative", "positive", "neutral"'),
        "answers 2 classes, and [model] labels names 3",
    ),
    "vocabulary missing": (remove("vocabulary.json"), "vocabulary.json"),
    "vocabulary longer than the embedding": (vocabulary([*WORDS, "extra"]), "12 rows"),
    "vocabulary of numbers": (lambda folder: (folder / "vocabulary.json").write_text("[1, 2]"), "not a word"),
    "synonyms of numbers": (table('{"good": [1]}'), "a number where a synonym"),
    "synonyms that are no table": (table('["good"]'), "a list where an object"),
    "synonyms cut off": (table('{"good": ["fi'), "not JSON"),
    "label outside the classes": (rows("text\tlabel\na film\tneutral\n"), "line 2: label 'neutral'"),
    "empty text": (rows("text\tlabel\na film\tpositive\n \tpositive\n"), "line 3"),
    "broken row": (rows("text\tlabel\na film\tpositive\na film\n"), "line 3"),
    "no rows": (rows("text\tlabel\n"), "has no rows"),
    "unknown key": (edit("lowercase", "lowercasing"), "'lowercase'"),
    "unknown section": (edit("[swaps]", "[swap]"), "[swaps]"),
    "task that is no TOML": (edit("[data]", "[data"), "not TOML"),
}


class TestBadInput:
    """Each is one line on stderr, exit code 2, and no run folder."""

    @pytest.mark.parametrize("name", BAD)
    def test_a_bad_file_is_one_line_and_no_folder(self, task: Path, tmp_path: Path, capsys: Capture, name: str) -> None:
        spoil, message = BAD[name]
        spoil(task.parent)
        before = sorted(tmp_path.rglob("*"))
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert message in captured.err
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--engines", "gredy"],
            ["--engines", ""],
            ["--seconds", "0"],
            ["--seconds", "nan"],
            ["--limit", "0"],
            ["--limit", "few"],
            ["--radius", "-1"],
            ["--jobs", "0"],
            ["--colour"],
        ],
    )
    def test_a_bad_option_is_exit_code_2_and_no_folder(self, task: Path, tmp_path: Path, arguments: list[str]) -> None:
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), *arguments]) == 2
        assert not (tmp_path / "run").exists()

    def test_the_nearest_engine_is_named(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--engines", "gredy"]) == 2
        assert "did you mean greedy?" in capsys.readouterr().err

    def test_a_missing_task_file_is_one_line(self, tmp_path: Path, capsys: Capture) -> None:
        assert main(["certify", str(tmp_path / "task.toml"), "--out", str(tmp_path / "run")]) == 2
        assert capsys.readouterr().err == f"swapproof: {tmp_path / 'task.toml'}: no such file\n"

    def test_a_folder_with_other_things_in_it_is_left_alone(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        other = tmp_path / "other"
        other.mkdir()
        (other / "thesis.txt").write_text("mine")
        for arguments in ([], ["--no-resume"]):
            assert main(["certify", str(task), "--out", str(other), *arguments]) == 2
            assert "not the folder of a run" in capsys.readouterr().err
            assert [path.name for path in other.iterdir()] == ["thesis.txt"]

    def test_a_file_where_the_folder_should_be_is_left_alone(self, task: Path, tmp_path: Path) -> None:
        (tmp_path / "run").write_text("mine")
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
        assert (tmp_path / "run").read_text() == "mine"

    def test_an_empty_folder_is_used(self, task: Path, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--limit", "1"]) == 0


def save_batch_dependent(folder: Path) -> None:
    """The logits of a sentence are those of its own, plus a part that depends on the greatest of its batch."""
    proto = model()
    proto.graph.node[-1].output[0] = "own"
    proto.graph.initializer.append(numpy_helper.from_array(np.array([0], dtype=np.int64), "axes"))
    proto.graph.node.append(helper.make_node("ReduceMax", ["own", "axes"], ["greatest"], keepdims=1))
    proto.graph.node.append(helper.make_node("Add", ["own", "greatest"], ["logits"]))
    onnx.save(proto, folder / "model.onnx")


def save_dynamic(folder: Path) -> None:
    """The greatest sentiment decides, over any number of words."""
    table = np.array([SENTIMENT, [-value for value in SENTIMENT]], dtype=np.float32).T
    arrays: dict[str, Any] = {"table": np.ascontiguousarray(table), "axes": np.array([1], dtype=np.int64)}
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "tokens"], ["embedded"], axis=0),
            helper.make_node("ReduceMax", ["embedded", "axes"], ["logits"], keepdims=0),
        ],
        "dynamic",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    proto.ir_version = 9
    onnx.save(proto, folder / "model.onnx")


@dataclass(frozen=True)
class Liar:
    """An engine that claims what is not so."""

    name: str = "liar"

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        yield Bound(5, Linear(), "real")


class TestTrust:
    """What does not check is never claimed."""

    def test_a_false_proof_is_exit_code_4_and_claims_nothing(
        self, task: Path, tmp_path: Path, monkeypatch: Any, capsys: Capture
    ) -> None:
        monkeypatch.setattr(settle, "engines_named", lambda names: (Liar(),))
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--limit", "1"]) == 4
        (line,) = results(tmp_path / "run")
        assert line["min_swaps"] == {"low": 0, "high": None}
        assert "the proof of liar that 4 swaps are harmless is refused" in line["contradiction"]
        assert main(["report", str(tmp_path / "run")]) == 4
        assert "do not rely on this run" in capsys.readouterr().out

    def test_a_runtime_that_disagrees_with_the_network_is_exit_code_4_and_no_folder(
        self, task: Path, tmp_path: Path, monkeypatch: Any, capsys: Capture
    ) -> None:
        right = Replay.outputs
        monkeypatch.setattr(Replay, "outputs", lambda self, tokens: right(self, tokens) + np.float32(0.5))
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 4
        assert len(capsys.readouterr().err.splitlines()) == 1
        assert not (tmp_path / "run").exists()

    def test_a_model_whose_answers_depend_on_the_batch_is_reported(
        self, task: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        save_batch_dependent(task.parent)
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        assert "depends on its batch neighbours" in " ".join(capsys.readouterr().out.split())
        assert main(["check", str(tmp_path / "run")]) == 0

    def test_a_model_of_any_length_reads_every_text_whole(self, tmp_path: Path) -> None:
        rows = [("the a", "positive"), ("a good film " * 4, "positive"), ("bad", "negative"), ("a awful", "negative")]
        task = write_task(tmp_path / "task", rows, model_length=None)
        save_dynamic(task.parent)
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        lines = results(tmp_path / "run")
        spaces = [json.loads(raw)["choices"] for raw in (tmp_path / "run" / "spaces.jsonl").read_text().splitlines()]
        assert [line["positions"] for line in lines] == [len(space) for space in spaces] == [2, 12, 1, 2]
        for line, space in zip(lines, spaces, strict=True):
            few = fewest_swaps(tmp_path / "run", space, line["label"], 0)
            assert line["min_swaps"] == {"low": line["positions"] + 1 if few is None else few, "high": few}
        assert main(["check", str(tmp_path / "run")]) == 0

    def test_train_makes_a_task_that_certify_takes(self, tmp_path: Path, capsys: Capture) -> None:
        pytest.importorskip("torch")
        moods = {"good": "pos", "great": "pos", "fine": "pos", "bad": "neg", "poor": "neg", "awful": "neg"}
        texts = [f"{a} {word} {b}\t{moods[word]}" for a in WORDS[8:] for word in moods for b in WORDS[8:]]
        (tmp_path / "texts.tsv").write_text("\n".join(["text\tlabel", *texts]) + "\n")
        (tmp_path / "synonyms.json").write_text('{"good": ["great"], "bad": ["poor", "awful"]}')
        (tmp_path / "recipe.toml").write_text(
            '[data]\ntrain = "texts.tsv"\ntext = "text"\nlabel = "label"\nlabels = ["neg", "pos"]\n'
            "held_out_rows = 4\n[vocabulary]\nsize = 20\nlength = 5\n"
            '[network]\narchitecture = "mmws"\nembedding = 2\nhidden = [4]\n'
            "[training]\nepochs = 2\nbatch = 8\nlearning_rate = 0.01\n"
            '[swaps]\nfile = "synonyms.json"\nmax_per_word = 4\n'
        )
        assert main(["train", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "trained")]) == 0
        task = Path(capsys.readouterr().out.strip())
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        assert main(["check", str(tmp_path / "run")]) == 0
        assert main(["train", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "trained")]) == 2
        assert "not an empty folder" in capsys.readouterr().err


class TestOthers:
    def test_progress_that_no_terminal_shows_is_a_plain_line_on_stderr(self, monkeypatch: Any, capsys: Capture) -> None:
        from swapproof.verifier.pages import progress

        monkeypatch.setattr(progress, "EVERY", 0.0)
        with progress.progress("certify", 10, 4) as advance:
            advance(1)
            advance(2)
        captured = capsys.readouterr()
        assert captured.out == ""
        assert [line.split(",")[0] for line in captured.err.splitlines()] == ["certify: 5 of 10", "certify: 7 of 10"]

    def test_no_arguments_and_unknown_commands_are_usage_errors(self, capsys: Capture) -> None:
        assert main([]) == 2
        assert main(["measur"]) == 2
        assert main(["certify"]) == 2
        assert main(["--help"]) == 0
        assert "certify" in capsys.readouterr().out

    def test_version_is_that_of_the_distribution(self, capsys: Capture) -> None:
        assert main(["--version"]) == 0
        name, version = capsys.readouterr().out.split()
        assert name == "swapproof"
        assert version[0].isdigit()

    def test_help_of_every_command_loads_nothing_heavy(self) -> None:
        code = (
            "import sys; from swapproof.verifier.cli import main\n"
            "for command in ('demo', 'certify', 'check', 'report', 'train', 'doctor'):\n"
            "    assert main([command, '--help']) == 0\n"
            "heavy = ('numpy', 'torch', 'onnx', 'onnxruntime', 'gurobipy', 'jinja2', 'rich')\n"
            "print(*(name for name in heavy if name in sys.modules), file=sys.stderr)"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stderr.split() == []

    def test_doctor_names_what_is_absent_and_what_it_costs(self, capsys: Capture, monkeypatch: Any) -> None:
        import importlib.metadata

        from swapproof.verifier.commands import doctor

        def without_torch(name: str) -> str | None:
            return None if name == "torch" else importlib.metadata.version("numpy")

        monkeypatch.setattr(doctor, "version", without_torch)
        assert main(["doctor"]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if " torch " in line]
        assert "absent" in line
        assert "no `swapproof train`" in line

    def test_an_interrupt_has_its_own_exit_code(self, monkeypatch: Any, capsys: Capture) -> None:
        from swapproof.verifier.commands import doctor

        def interrupted() -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(doctor, "doctor", interrupted)
        assert main(["doctor"]) == 130
        assert "interrupted" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "place", "said"),
        [
            ("certify task.toml --out run", "certify.certify", "a run can be resumed by the same command\n"),
            (
                "certify task.toml --out run --no-resume",
                "certify.certify",
                "a run can be resumed by the same command without --no-resume\n",
            ),
            ("measure task.toml --quantity pr --out run", "measure_pr.command", "can be resumed by the same command\n"),
            ("demo", "demo.demo", "can be resumed by the same command\n"),
            (
                "train recipe.toml --out folder",
                "train",
                "no folder was written; the same command trains from the start",
            ),
            ("bench exact task.toml", "bench_exact.bench_exact", "the same command measures everything again"),
            ("bench check run", "bench_check.bench_check", "the same command measures everything again"),
            ("check run", "check_evidence.question_of", "the same command starts from the beginning"),
            ("verify q.vnnlib", "verify.command", "the same command starts from the beginning"),
        ],
    )
    def test_an_interrupt_says_what_that_command_leaves(
        self, arguments: str, place: str, said: str, monkeypatch: Any, capsys: Capture
    ) -> None:
        """Only runs of certify and measure go on where they were."""

        def interrupted(*arguments: Any, **options: Any) -> None:
            raise KeyboardInterrupt

        whole = "swapproof.models.training.train" if place == "train" else f"swapproof.verifier.commands.{place}"
        monkeypatch.setattr(whole, interrupted)
        assert main(arguments.split()) == 130
        assert said in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments",
        [
            "verify --batch missing",
            "train missing --out out",
            "certify missing --out out",
            "bundle --verify missing",
            "bundle RUN --out out --key missing",
            "bench check RUN",
            "report MEASURED",
        ],
    )
    def test_a_missing_file_is_said_in_one_way(
        self, arguments: str, run: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        """`no such file`, never a number of the operating system; a folder in its place is said to be one."""
        missing = tmp_path / "missing"
        if "RUN" in arguments and "bench" in arguments:
            missing = run / "results.jsonl"
            missing.unlink()
        if "MEASURED" in arguments:
            measured = tmp_path / "measured"
            task = run / "task.toml"
            measure = ["measure", str(task), "--quantity", "pr", "--radius", "1", "--limit", "1"]
            assert main([*measure, "--out", str(measured)]) == 0
            missing = measured / "summary.json"
            missing.unlink()
        places = {
            "missing": str(missing),
            "out": str(tmp_path / "out"),
            "RUN": str(run),
            "MEASURED": str(missing.parent),
        }
        command = [places.get(word, word) for word in arguments.split()]
        capsys.readouterr()
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert (
            "the run is not finished" in line if "MEASURED" in arguments else line.endswith(f"{missing}: no such file")
        )
        missing.mkdir()
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(f"{missing}: a directory, where a file is needed")

    @pytest.mark.parametrize("met", ["\n", "\t", "\x07", "\x85", "\u200b", "\u2028", "\u00a0", "\ufeff"])
    def test_a_character_that_does_not_show_is_named_by_its_escape(
        self, met: str, task: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        """In a word of the table, a key of the task, and the word of a frozen space."""
        escape = met.encode("unicode_escape").decode()
        certify = ["certify", str(task), "--out", str(tmp_path / "run")]
        (task.parent / "synonyms.json").write_text(json.dumps({f"good{met}film": 1}))
        assert main(certify) == 2
        (line,) = capsys.readouterr().err.split("\n")[:-1]
        assert f'the word "good{escape}film" has a number' in line
        text = task.read_text()
        task.write_text(f'{text}\n"a{escape}b" = 1\n'.replace(r"\xa0", met).replace(r"\x", r"\u00"))
        assert main(certify) == 2
        (line,) = capsys.readouterr().err.split("\n")[:-1]
        assert f"a{escape}b" in line
        assert met not in line
        task.write_text(
            text.replace('file = "synonyms.json"', 'frozen = "spaces.jsonl"').replace("max_per_word = 8", "")
        )
        (task.parent / "spaces.jsonl").write_text(json.dumps({"id": 0, "choices": [["a"], [f"go{met}od"], ["film"]]}))
        assert main(certify) == 2
        (line,) = capsys.readouterr().err.split("\n")[:-1]
        assert f'word 1 begins with "go{escape}od"' in line

    def test_a_path_that_cannot_be_is_one_line_without_a_number(self, capsys: Capture) -> None:
        assert main(["check", "x" * 300]) == 2
        assert capsys.readouterr().err == f"swapproof: {'x' * 300}: File name too long\n"

    @pytest.mark.parametrize("command", ["report", "check"])
    def test_output_that_finds_no_room_is_one_line(self, run: Path, command: str) -> None:
        code = "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"
        with Path("/dev/full").open("w") as full:
            arguments = [sys.executable, "-c", code, command, str(run)]
            done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.endswith("swapproof: No space left on device\n")

    def test_a_terminal_without_our_letters_shows_a_text_all_the_same(self, tmp_path: Path) -> None:
        task = write_task(tmp_path / "task", [("a good Köşe", "positive")])
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        code = "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"
        arguments = [sys.executable, "-c", code, "report", str(tmp_path / "run")]
        done = subprocess.run(
            arguments, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True
        )
        assert b"a good K\\xf6\\u015fe" in done.stdout

    def test_a_bug_is_not_dressed_as_bad_input(self, monkeypatch: Any, capsys: Capture) -> None:
        from swapproof.verifier.commands import doctor

        def broken() -> None:
            raise ValueError("a bug")

        monkeypatch.setattr(doctor, "doctor", broken)
        assert main(["doctor"]) == 70
        said = capsys.readouterr().err
        assert said.startswith("Traceback")
        assert said.endswith("ValueError: a bug\n")

    def test_demo_certifies_checks_and_shows_two_witnesses(self, tmp_path: Path, capsys: Capture) -> None:
        assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
        out = capsys.readouterr().out
        assert "accepted 24 of 24" in out
        assert out.count(", until these words are swapped:") == 2
        assert " → " in out
        assert out.splitlines()[-1] == f"The run folder: {tmp_path / 'demo'}, with report.html"
        assert (tmp_path / "demo" / "report.html").is_file()
