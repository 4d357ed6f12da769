"""Whole runs of models that are run: what they claim, what `check` repeats, and what it refuses."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asked_functions import MODULE
from command_runs import results, timeless
from sentiment_data import write_csv, write_onnx
from small_server import server

from swapproof.verifier.cli import main
from swapproof.verifier.replaying import simple_prover
from swapproof.verifier.replaying.asking import Asking
from swapproof.verifier.roads import certify
from swapproof.verifier.runs import life
from swapproof.verifier.runs.run_folder import Run

NAME = "classifier_of_words"
TEXTS = [
    ("A good film, and a great cast.", 1),
    ("This was BAD and dull.", 0),
    ("Nothing to say here.", 1),
    ("The great one is good.", 0),
]
SYNONYMS = {
    "good": ["fine", "ok", "bad"],
    "great": ["good", "ok", "dull"],
    "film": ["movie", "picture"],
    "bad": ["poor", "ok", "good"],
    "dull": ["fine", "ok"],
    "say": ["tell"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = [json.dumps({"text": text, "label": label}) for text, label in TEXTS]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "synonyms.json").write_text(json.dumps(SYNONYMS))
    write_task(tmp_path)
    yield tmp_path
    sys.modules.pop(NAME, None)


def write_task(folder: Path, function: str = "scores", data: str = "") -> Path:
    path = folder / "task.toml"
    path.write_text(
        f'[model]\ncallable = "{NAME}:{function}"\nlabels = ["negative", "positive"]\n\n'
        f'[data]\nfile = "texts.jsonl"\n{data}\n[swaps]\nfile = "synonyms.json"\n'
    )
    return path


def run_of(folder: Path, *options: str) -> Path:
    assert main(["certify", str(folder / "task.toml"), "--out", str(folder / "run"), *options]) == 0
    return folder / "run"


def test_a_python_function_gets_exact_numbers_of_swaps_at_level_replay(folder: Path) -> None:
    lines = results(run_of(folder))
    assert [line["min_swaps"] for line in lines] == [
        {"low": 2, "high": 2},
        {"low": 1, "high": 1},
        {"low": 6, "high": None},
        {"low": 0, "high": 0},
    ]
    assert [line["status"] for line in lines] == ["exact", "exact", "unbreakable", "already_wrong"]
    assert {line["level"] for line in lines} == {"replay"}
    assert lines[0]["witness"]["sentence"] == "A bad film, and a dull cast."
    assert lines[1]["witness"]["sentence"] == "This was GOOD and dull."
    assert all(line["certificate"] is None for line in lines)


def test_check_asks_everything_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(folder)
    assert main(["check", str(run)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == ["asked again: all 12 sentences of the claims", "accepted 4 of 4"]
    assert main(["check", str(run), "--share", "0.5"]) == 0
    assert "with 95% confidence fewer than" in capsys.readouterr().out


def test_processes_find_the_same(folder: Path) -> None:
    alone = timeless(results(run_of(folder)))
    (folder / "run").rename(folder / "alone")
    together = timeless(results(run_of(folder, "--jobs", "2")))
    assert [strip(line) for line in alone] == [strip(line) for line in together]


def strip(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in ("evaluations", "requests")}


def test_a_model_that_answers_otherwise_now_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(folder)
    (folder / f"{NAME}.py").write_text(MODULE.replace('"fine": 1.0', '"fine": -9.0'))
    sys.modules.pop(NAME, None)
    importlib.invalidate_caches()
    assert main(["check", str(run)]) == 4
    assert "refused 000000.json: " in capsys.readouterr().out


def claim_more(transcript: dict[str, Any], line: dict[str, Any]) -> None:
    """That every sentence with two swaps keeps the label, and no witness."""
    transcript["lower"] |= {"swaps": 2, "sentences": str(1 + 8 + 21)}
    transcript["upper"] = None
    line |= {"min_swaps": {"low": 3, "high": None}, "status": "open", "witness": None, "reason": "time"}


def count_other_sentences(transcript: dict[str, Any], line: dict[str, Any]) -> None:
    transcript["lower"]["sentences"] = "10"


def swap_another_word(transcript: dict[str, Any], line: dict[str, Any]) -> None:
    transcript["upper"] = [[0, 1], [1, 1]]


def raise_the_line(transcript: dict[str, Any], line: dict[str, Any]) -> None:
    line["min_swaps"] = {"low": 10, "high": None}
    line["status"], line["witness"] = "unbreakable", None


def claim_a_proof(transcript: dict[str, Any], line: dict[str, Any]) -> None:
    line["level"] = "float32"


def drop_an_option(transcript: dict[str, Any], line: dict[str, Any]) -> None:
    transcript["words"][0][2].remove("bad")


def narrow_the_threshold(transcript: dict[str, Any], line: dict[str, Any]) -> None:
    transcript["decision"]["threshold"] = 0.001


def answer_otherwise(transcript: dict[str, Any], line: dict[str, Any]) -> None:
    line["predicted"] = 0


CHANGES = [
    claim_more,
    count_other_sentences,
    swap_another_word,
    raise_the_line,
    claim_a_proof,
    drop_an_option,
    narrow_the_threshold,
    answer_otherwise,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_run_that_claims_something_else_is_refused(
    folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(folder)
    path, lines = run / "transcripts" / "000000.json", results(run)
    transcript = json.loads(path.read_text())
    change(transcript, lines[0])
    path.write_text(json.dumps(transcript, sort_keys=True, separators=(",", ":")))
    (run / "results.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    capsys.readouterr()
    assert main(["check", str(run)]) == 4
    assert "refused 000000.json: " in capsys.readouterr().out


def test_a_text_that_the_model_cannot_answer_is_open_and_the_run_goes_on(folder: Path) -> None:
    texts = [*TEXTS, ("An awful film.", 0)]
    lines = [json.dumps({"text": text, "label": label}) for text, label in texts]
    (folder / "texts.jsonl").write_text("\n".join(lines) + "\n")
    write_task(folder, "raises")
    found = results(run_of(folder))
    assert [line["status"] for line in found] == ["exact", "exact", "unbreakable", "already_wrong", "open"]
    assert "no awful films" in found[4]["reason"]
    assert main(["check", str(folder / "run")]) == 0


def test_of_a_pair_only_the_chosen_text_moves(folder: Path) -> None:
    rows = [{"premise": "A good film.", "hypothesis": "A bad film.", "label": 1}]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_task(folder, "pairs", 'text = "hypothesis"\ncontext = "premise"\n')
    [line] = results(run_of(folder))
    assert line["text"] == "A bad film."
    assert line["witness"]["sentence"] == "A good film."
    assert main(["check", str(folder / "run")]) == 0


def test_a_run_goes_on_where_it_was_killed(folder: Path) -> None:
    run = run_of(folder)
    whole = results(run)
    import sqlite3

    with sqlite3.connect(run / "store.sqlite") as store:
        store.execute("DELETE FROM results WHERE id >= 2")
    assert certify(folder / "task.toml", run).exit_code == 0
    assert timeless(results(run)) == timeless(whole)


def test_the_report_says_that_the_model_was_run(folder: Path) -> None:
    run = run_of(folder)
    assert "the model is run, not read" in (run / "report.html").read_text()
    assert main(["report", str(run)]) == 0


def test_engines_for_networks_are_refused_with_a_model_that_is_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certify", str(folder / "task.toml"), "--out", str(folder / "run"), "--engines", "exact"]) == 2
    assert "this model is run" in capsys.readouterr().err
    assert not (folder / "run").exists()


def test_an_endpoint_is_run_only_when_that_is_allowed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = importlib.import_module(NAME).scores

    with server(lambda asked, number: {"scores": scores([asked["text"]])[0]}) as served:
        (folder / "task.toml").write_text(
            f'[model]\nendpoint = "{served.url}"\nresponse = "scores"\nlabels = ["negative", "positive"]\n\n'
            '[data]\nfile = "texts.jsonl"\n\n[swaps]\nfile = "synonyms.json"\n'
        )
        assert main(["certify", str(folder / "task.toml"), "--out", str(folder / "run")]) == 2
        assert "--allow-endpoint" in capsys.readouterr().err
        assert not (folder / "run").exists()
        lines = results(run_of(folder, "--allow-endpoint"))
        assert [line["status"] for line in lines] == ["exact", "exact", "unbreakable", "already_wrong"]
        assert main(["check", str(folder / "run"), "--allow-endpoint"]) == 0


def test_a_killed_text_goes_on_where_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had found is used if it is of this very text, and gone once the text is finished."""
    monkeypatch.setattr("swapproof.verifier.roads.FOREIGN", ())  # in this process, where it can be stopped
    monkeypatch.setattr(simple_prover, "KEEP_SECONDS", 0.0)
    monkeypatch.setattr(simple_prover, "FIRST", 2)
    monkeypatch.setattr(simple_prover, "next_block", lambda block, spent: 2)
    judged, asked = Asking.judged, list[int]()

    def dying(self: Asking, rows: Any) -> Any:
        asked.append(len(rows))
        if sum(asked) > 30:
            raise KeyboardInterrupt
        return judged(self, rows)

    (folder / "texts.jsonl").write_text(json.dumps({"text": "film " * 6, "label": 1}) + "\n")
    monkeypatch.setattr(Asking, "judged", dying)
    task, run = folder / "task.toml", folder / "run"
    assert main(["certify", str(task), "--out", str(run)]) == 130
    begun = Run(run).begun(0)
    done = json.loads(begun.read_bytes())["transcript"]["beyond"]
    assert int(done["evaluated"]) > 0
    later = list[int]()

    def counting(self: Asking, rows: Any) -> Any:
        later.append(len(rows))
        return judged(self, rows)

    monkeypatch.setattr(Asking, "judged", counting)
    below = sum(math.comb(6, swaps) * 2**swaps for swaps in range(done["swaps"]))
    (line,) = results(run_of(folder))
    assert line["status"] == "unbreakable"
    assert not begun.exists()
    # All that is left, the text itself, and what the cheap attack asks: that is done before anything is kept.
    assert sum(later) == 1 + 3**6 - below - int(done["evaluated"])
    assert main(["check", str(run)]) == 0


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"transcript": {}, "spent": {}}'])
def test_what_was_kept_of_another_text_is_not_used(
    folder: Path, damage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "texts.jsonl").write_text(json.dumps({"text": "a good film", "label": 1}) + "\n")
    run = run_of(folder)
    (before,) = results(run)
    transcript = json.loads(Run(run).transcript(0).read_bytes())
    claims = {**transcript, "label": 0, "lower": {"swaps": 2, "sentences": "15", "least": "1.0"}}
    spent = {"seconds": 1.0, "evaluations": 10**6, "requests": 1}
    written = damage or json.dumps({"transcript": claims, "spent": spent}).encode()
    begin = life.begin

    def begins(plan: Any, **options: Any) -> None:
        begin(plan, **options)
        plan.run.transcripts.mkdir()
        plan.run.begun(0).write_bytes(written)

    monkeypatch.setattr(life, "begin", begins)
    assert main(["certify", str(folder / "task.toml"), "--out", str(folder / "run2")]) == 0
    (after,) = results(folder / "run2")
    assert timeless([after]) == timeless([before])
    assert not Run(folder / "run2").begun(0).exists()


def test_the_report_says_in_short_why_a_model_was_not_read(tmp_path: Path) -> None:
    """Neither the folder that the model lies in nor the list of all operators."""
    import onnx

    path = write_onnx(tmp_path / "model")
    proto = onnx.load(path)
    next(node for node in proto.graph.node if node.op_type == "Identity").op_type = "Hardmax"
    onnx.save(proto, path)
    write_csv(tmp_path / "data.csv")
    (tmp_path / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (tmp_path / "task.toml").write_text(
        '[model]\nonnx = "model/model.onnx"\nvocabulary = "model/vocabulary.json"\nlength = 8\n'
        'labels = ["0", "1"]\n[data]\nfile = "data.csv"\n[swaps]\nfile = "synonyms.json"\n'
    )
    (note,) = certify(tmp_path / "task.toml", tmp_path / "run", limit=2).summary["remarks"]
    assert note.startswith(
        "the model is run, not read (node number 3 (Hardmax): operator Hardmax is not supported): below a low end"
    )
