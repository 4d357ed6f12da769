"""`certify` end to end on a tiny model: what it answers, and what it never claims."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_runs import Capture, fewest_swaps, ids, results, session, timeless
from onnx import TensorProto, helper, numpy_helper
from tiny import LENGTH, ROWS, SENTIMENT, WORDS, model, write_task

from swapproof.encodings.errors import BadInput
from swapproof.encodings.query import Query
from swapproof.proofs.writing.certificate import Linear
from swapproof.verifier.cli import main
from swapproof.verifier.engines.protocol import Bound, Budget, Findings
from swapproof.verifier.interval import Interval
from swapproof.verifier.ladder import settling as settle
from swapproof.verifier.ladder.replay import Replay


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
            ([("the a the", "positive"), ("a good film", "positive")], "0", None, 0),
            ([("the a the", "positive")], "0", None, 3),
            ([("awful", "positive")], "0", None, 3),
            ([("awful", "positive"), ("awful", "negative")], "2", None, 0),
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


def save_batch_dependent(folder: Path, word: str | None = None) -> None:
    """The logits of a sentence are those of its own, plus a part that depends on the greatest of its batch; of `word`,
    where one is given: on how many of it a sentence of the batch holds."""
    proto = model()
    proto.graph.node[-1].output[0] = "own"
    proto.graph.initializer.append(numpy_helper.from_array(np.array([0], dtype=np.int64), "axes"))
    mixed = "own"
    if word is not None:
        mixed = "counted"
        table = np.array([[float(one == word)] * 2 for one in WORDS], dtype=np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(table, "marks"))
        proto.graph.initializer.append(numpy_helper.from_array(np.array([1], dtype=np.int64), "places"))
        proto.graph.node.append(helper.make_node("Gather", ["marks", "tokens"], ["marked"]))
        proto.graph.node.append(helper.make_node("ReduceSum", ["marked", "places"], [mixed], keepdims=0))
    proto.graph.node.append(helper.make_node("ReduceMax", [mixed, "axes"], ["greatest"], keepdims=1))
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

    def test_a_batch_that_changes_what_no_text_shows_is_not_the_optimisers_fault(self, tmp_path: Path) -> None:
        """Only sentences drawn at random hold the word by which one sentence changes another."""
        task = write_task(tmp_path / "task", [("a good film", "positive"), ("bad", "negative")] * 4)
        save_batch_dependent(task.parent, word="awful")
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        (said,) = json.loads((tmp_path / "run" / "summary.json").read_bytes())["remarks"]
        assert "depends on its batch neighbours" in said

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
