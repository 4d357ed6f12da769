"""The accounts of a run: whoever changes the store, the summary or the report of a finished run is found out."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from tiny import WORDS, model, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.ladder.station import Station
from swapproof.verifier.pages.report_file import write_report
from swapproof.verifier.runs.run_folder import Run
from swapproof.verifier.runs.work import Settled
from swapproof.verifier.tasks.inputs import Text

Capture = pytest.CaptureFixture[str]
Change = Callable[[Any], object]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, whose model has three rows without a word, that tests copy before they change it."""
    folder = tmp_path_factory.mktemp("finished")
    task = write_task(folder / "task")
    onnx.save(model(len(WORDS) + 3), folder / "task" / "model.onnx")
    assert main(["certify", str(task), "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    task = str(write_task(folder / "task"))
    assert main(["measure", task, "--quantity", "pr", "--radius", "2", "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def attacked(finished: Path, tmp_path: Path) -> Path:
    """An attack's names of classes stand in its summary."""
    task = str(finished.parent / "task" / "task.toml")
    assert main(["attack", task, "--method", "greedy", "--limit", "2", "--out", str(tmp_path / "attacked")]) == 0
    return tmp_path / "attacked"


def change_fact(run: Path, name: str, change: Change) -> None:
    """Change a fact of the store, which is JSON, in place."""
    with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
        [(text,)] = store.execute("SELECT value FROM facts WHERE name = ?", (name,))
        value = json.loads(text)
        changed = change(value)
        store.execute("UPDATE facts SET value = ? WHERE name = ?", (json.dumps(changed or value), name))


def change_line(run: Path, id: int, change: dict[str, Any], *, exported: bool) -> None:
    """Change the line of a text in the store and, when `exported`, in results.jsonl."""
    with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
        [(text,)] = store.execute("SELECT line FROM results WHERE id = ?", (id,))
        line = json.dumps(json.loads(text) | change, ensure_ascii=False)
        store.execute("UPDATE results SET line = ? WHERE id = ?", (line, id))
        if exported:
            lines = [line for (line,) in store.execute("SELECT line FROM results ORDER BY id")]
            (run / "results.jsonl").write_text("".join(f"{line}\n" for line in lines))


def refusal(run: Path, capsys: Capture) -> str:
    """What `check` says against a run that it must not accept."""
    capsys.readouterr()
    assert main(["check", str(run)]) == 4
    out = capsys.readouterr().out
    assert "accepted" not in out
    return out


def test_a_finished_run_is_accepted_wherever_it_is_moved(run: Path, tmp_path: Path) -> None:
    """The report does not depend on the name of the folder."""
    run.rename(tmp_path / "elsewhere & <anywhere>")
    assert main(["check", str(tmp_path / "elsewhere & <anywhere>")]) == 0
    before = (tmp_path / "elsewhere & <anywhere>" / "report.html").read_bytes()
    assert main(["report", str(tmp_path / "elsewhere & <anywhere>")]) == 0
    assert (tmp_path / "elsewhere & <anywhere>" / "report.html").read_bytes() == before


def test_a_line_that_claims_less_than_is_proved_is_accepted_when_all_say_so(run: Path) -> None:
    change = {"status": "open", "min_swaps": {"low": 1, "high": 3}, "level": "real"}
    change_line(run, 1, change, exported=True)
    (run / "summary.json").unlink()
    write_report(Run(run))
    assert main(["check", str(run)]) == 0


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"proved_by": "a notary"}, "proved_by"),
        ({"min_swaps": {"low": 1, "high": 3, "really": 9}}, "min_swaps.really"),
        ({"claims": [{"low": 1, "by": "gurobi", "detail": "", "proof": "yes"}]}, "claims.proof"),
        ({"robust_fraction": 1.0}, "robust_fraction"),
    ],
)
def test_a_line_with_a_key_that_no_line_has_is_refused(
    run: Path, capsys: Capture, change: dict[str, Any], key: str
) -> None:
    """Also when the store and the report say the same: nothing would compare it with anything."""
    change_line(run, 1, change, exported=True)
    (run / "summary.json").unlink()
    write_report(Run(run))
    assert f"the line has the key {key!r}, which no line has" in refusal(run, capsys)


def test_a_store_that_says_other_than_results_is_refused(run: Path, capsys: Capture) -> None:
    """`swapproof report` would show it."""
    change_line(run, 1, {"seconds": 0.25}, exported=False)
    assert "results.jsonl and store.sqlite differ in line 2" in refusal(run, capsys)


def test_a_report_that_says_other_than_results_is_refused(run: Path, capsys: Capture) -> None:
    """Made by our own program from a store that claims more; then the store is put back."""
    honest = (run / "store.sqlite").read_bytes()
    change_line(run, 0, {"status": "unbreakable", "min_swaps": {"low": 4, "high": None}}, exported=False)
    write_report(Run(run))
    (run / "store.sqlite").write_bytes(honest)
    assert "report.html is not the page" in refusal(run, capsys)
    assert main(["report", str(run)]) == 0
    assert main(["check", str(run)]) == 0


@pytest.mark.parametrize(("before", "after"), [(b"</h1>", b"!</h1>"), (b"unbreakable", b"Unbreakable"), (b"3", b"4")])
def test_a_changed_report_is_refused(run: Path, capsys: Capture, before: bytes, after: bytes) -> None:
    page = (run / "report.html").read_bytes()
    (run / "report.html").write_bytes(page.replace(before, after, 1))
    assert "report.html is not the page" in refusal(run, capsys)


@pytest.mark.parametrize(
    ("fact", "change", "said"),
    [
        ("about", lambda about: about["labels"].reverse(), "the names of the classes"),
        ("about", lambda about: about["remarks"].clear(), "does not remark that 3 rows of the embedding"),
        ("about", lambda about: about["swaps"].update(kept=99), "the number of swaps"),
        ("about", lambda about: about["swaps"].update(sha256="0" * 64), "the swaps shown"),
        ("about", lambda about: about["model"].update(sha256="0" * 64), "the model shown"),
        ("about", lambda about: about["model"].update(hidden_units=99), "hidden_units = 99 of the model, and it is 4"),
        ("about", lambda about: about.pop("model"), "cannot be compared: KeyError"),
        ("total", lambda total: 7, "the number of texts"),
        ("radius", lambda radius: 1, "summary.json says"),
        ("model", lambda model: [model[0], ["weights.bin", "0" * 64]], "the model than"),
    ],
)
def test_a_changed_fact_of_the_store_is_refused(
    run: Path, capsys: Capture, fact: str, change: Change, said: str
) -> None:
    """Also when summary and report are made anew from the changed store."""
    change_fact(run, fact, change)
    assert said in refusal(run, capsys)
    if fact == "about" and "KeyError" not in said:
        write_report(Run(run))
        (run / "summary.json").unlink()
        assert said in refusal(run, capsys)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda made: made["model"]["labels"].reverse(), "another task than the one whose SHA-256 it notes"),
        (
            lambda made: made["model"].update(labels=["worse", "better"]),
            "were worse, better, and task.toml names",
        ),
        (lambda made: made["swaps"].update(max_per_word=3), "another task than"),
        (lambda made: made["data"].update(blessed=True), "is no task: [data] unknown key 'blessed'"),
        (lambda made: made.pop("swaps"), "is no task: [swaps] is missing"),
    ],
)
@pytest.mark.parametrize("fixture", ["run", "attacked"])
def test_a_manifest_that_says_it_was_made_from_something_else_is_refused(
    request: pytest.FixtureRequest, capsys: Capture, fixture: str, change: Change, said: str
) -> None:
    folder: Path = request.getfixturevalue(fixture)
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest["made_from"])
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert said in refusal(folder, capsys)


def test_the_store_cannot_override_what_follows_from_the_lines(run: Path, capsys: Capture) -> None:
    change_fact(run, "about", lambda about: about.update(verdict={"exit_code": 1, "sentence": "believe me"}, exact=99))
    assert main(["report", str(run)]) == 0
    assert "believe me" not in capsys.readouterr().out
    assert main(["check", str(run)]) == 0


def test_a_certificate_that_the_store_did_not_record_is_refused(run: Path, capsys: Capture) -> None:
    """Without its vocabulary it still proves what it claims, of fewer files."""
    path = run / "certificates" / "000000.json"
    certificate = json.loads(path.read_bytes()) | {"vocabulary": None}
    path.write_text(json.dumps(certificate, sort_keys=True, separators=(",", ":")))
    assert "000000.json is another certificate than the store recorded" in refusal(run, capsys)


def test_another_merkle_root_is_refused(run: Path, capsys: Capture) -> None:
    (run / "certificates" / "root").write_text("0" * 64 + "\n")
    assert "not the Merkle root" in refusal(run, capsys)


def test_a_task_file_that_names_another_model_is_refused(run: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.copy(run / "model.onnx", tmp_path / "other.onnx")
    task = run / "task.toml"
    task.write_text(task.read_text().replace('"model.onnx"', '"../other.onnx"'))
    assert "not the run's own model.onnx" in refusal(run, capsys)


@pytest.mark.parametrize(
    ("name", "value"), [("engines", ["none"]), ("remarks", ["trust me"]), ("seconds", -1), ("texts", 9), ("more", 1)]
)
def test_a_changed_summary_is_refused(run: Path, capsys: Capture, name: str, value: Any) -> None:
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | {name: value}))
    assert f"summary.json says {name} = {value}" in refusal(run, capsys)


@pytest.mark.parametrize("content", ["", "[]", "{", "\N{REPLACEMENT CHARACTER}", "null", '{"texts": 1, "texts": 1}'])
def test_a_summary_that_is_none_is_refused(run: Path, capsys: Capture, content: str) -> None:
    (run / "summary.json").write_text(content)
    assert "cannot be compared" in refusal(run, capsys)


@pytest.mark.parametrize("damage", ["cut", "shortened", "overwritten", "emptied", "no text", "no JSON"])
def test_a_damaged_store_is_one_line(run: Path, capsys: Capture, damage: str) -> None:
    path = run / "store.sqlite"
    data = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "shortened":
            path.write_bytes(data[:5000])
        case "overwritten":
            path.write_bytes(data[:100] + bytes(len(data) - 100))
        case "emptied":
            path.write_bytes(b"")
        case "no text":
            path.write_bytes(data.replace(b'"a good film"', b'"a \xff\xff\xff\xff film"'))
        case "no JSON":
            path.write_bytes(data.replace(b'"a good film"', b'"a good"film"'))
    assert path.read_bytes() != data
    for command in ("check", "report"):
        code = main([command, str(run)])
        captured = capsys.readouterr()
        assert "accepted" not in captured.out
        if damage == "no JSON" and command == "check":
            assert code == 4
            assert "results.jsonl and store.sqlite differ in line 1" in captured.out
        else:
            assert code == 2
            assert len(captured.err.splitlines()) == 1
            assert "damaged" in captured.err or "not the folder of a run" in captured.err


def test_a_run_that_was_killed_before_it_wrote_its_results_is_to_be_finished(run: Path, capsys: Capture) -> None:
    """Its store is ahead of results.jsonl, and there is no summary yet."""
    lines = (run / "results.jsonl").read_text().splitlines(keepends=True)
    (run / "results.jsonl").write_text("".join(lines[:-2]))
    assert "differ in line 7" in refusal(run, capsys)
    (run / "summary.json").unlink()
    capsys.readouterr()
    assert main(["check", str(run)]) == 3
    assert "give the same command again" in capsys.readouterr().out


def test_a_run_that_is_gone_on_with_and_interrupted_keeps_no_account_of_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its summary and report are of the lines before; until new ones are written there are none."""
    command = ["certify", str(write_task(tmp_path / "task")), "--out", str(tmp_path / "run"), "--engines", "greedy"]
    assert main([*command, "--seconds", "5"]) == 0
    assert (tmp_path / "run" / "summary.json").exists()

    def interrupted(station: Station, text: Text) -> Settled:
        raise KeyboardInterrupt

    monkeypatch.setattr(Station, "settle", interrupted)
    assert main([*command, "--seconds", "6"]) == 130
    assert not (tmp_path / "run" / "summary.json").exists()
    assert not (tmp_path / "run" / "report.html").exists()
    assert main(["check", str(tmp_path / "run")]) == 0


def test_the_accounts_of_a_count_are_compared_too(measured: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    shutil.copytree(measured, run)
    assert main(["check", str(run)]) == 0
    change_fact(run, "about", lambda about: about["labels"].reverse())
    assert "the names of the classes" in refusal(run, capsys)
    change_line(run, 1, {"seconds": 0.25}, exported=False)
    assert "differ in line 2" in refusal(run, capsys)


def test_a_model_by_another_name_whose_constants_are_rounded(tmp_path: Path) -> None:
    """Its remark names the node and not the file, which is called model.onnx in the run folder."""
    task, known = write_task(tmp_path / "task", model_onnx="thirds.onnx"), model()
    known.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.array([number], np.float32), name)
        for name, number in (("one", 1), ("three", 3))
    )
    (output,) = known.graph.output
    known.graph.node.extend([
        onnx.helper.make_node("Div", ["one", "three"], ["third"], "third"),
        onnx.helper.make_node("Mul", [output.name, "third"], ["scaled"], "scaled"),
    ])  # fmt: skip
    output.name = "scaled"
    onnx.save(known, task.parent / "thirds.onnx")
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    assert "node third" in json.loads((tmp_path / "run" / "summary.json").read_text())["remarks"][0]
    assert main(["check", str(tmp_path / "run")]) == 0
