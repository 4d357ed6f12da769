"""What the command line does where nobody reads it, and what its exit code is when nothing was foreseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from tiny import write_task

from swapproof.verifier.cli import main

COMMAND = [sys.executable, "-c", "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("task"))


@pytest.fixture(scope="module")
def run(task: Path) -> Path:
    folder = task.parent / "run"
    assert main(["certify", str(task), "--out", str(folder)]) == 0
    return folder


def unread(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    """The command, its output a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run([*COMMAND, *map(str, arguments)], stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)


@pytest.mark.parametrize("command", ["check", "report", "certify", "help"])
def test_a_pipe_that_is_closed_is_141(command: str, task: Path, run: Path, tmp_path: Path) -> None:
    """It was 1, which means that a required property is violated."""
    others: dict[str, list[object]] = {"certify": ["certify", task, "--out", tmp_path / "run"], "help": ["--help"]}
    done = unread(*others.get(command, [command, run]))
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["check", "report", "certify", "measure"])
def test_closed_streams_change_no_exit_code(command: str, closed: str, task: Path, run: Path, tmp_path: Path) -> None:
    """As cron may start us: `report` blamed the store for it, and `certify` ended in a traceback and exit code 1."""
    arguments: dict[str, list[Any]] = {
        "certify": ["certify", task, "--out", tmp_path / "run"],
        "measure": ["measure", task, "--out", tmp_path / "run", "--quantity", "pr", "--radius", "1"],
    }
    words = [*COMMAND, *map(str, arguments.get(command, [command, run]))]
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *words], capture_output=True, check=False)
    assert done.returncode == 0
    assert (done.stdout if closed == ">&-" else b"") == b""
    assert b"Traceback" not in done.stderr
    if command in ("certify", "measure"):
        assert main(["check", str(tmp_path / "run")]) == 0


def test_a_failure_to_print_is_no_damage(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """An error of whatever kind that printing raises is a bug, and none of the store's."""
    from swapproof.verifier.commands import report

    def fails(*_: object) -> None:
        raise AttributeError("nowhere to print")

    monkeypatch.setattr(report, "print", fails, raising=False)
    assert main(["report", str(run)]) == 70
    said = capsys.readouterr().err
    assert "give --out a new folder" not in said
    assert "AttributeError: nowhere to print" in said


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, OSError, EOFError, KeyError, ZeroDivisionError])
def test_what_is_not_foreseen_is_70(kind: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from swapproof.verifier.commands import doctor

    def fails() -> None:
        raise kind("a bug")

    monkeypatch.setattr(doctor, "doctor", fails)
    assert main(["doctor"]) == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "a bug" in said


NAME = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize("where", ["--out", "task", "here"])
def test_a_name_that_is_not_utf8_is_one_line(where: str, task: Path, tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    strange = write_task(tmp_path / NAME / "task")
    before = sorted(tmp_path.rglob("*"))
    out = tmp_path / NAME / "run" if where == "--out" else tmp_path / "run"
    arguments = ["certify", strange if where == "task" else task, "--out", "run" if where == "here" else out]
    folder = tmp_path / NAME if where == "here" else tmp_path
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, cwd=folder, check=False)
    assert done.returncode == 2
    assert b"a name that is not UTF-8" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["vocabulary.json", "model.onnxtxt", "model.textproto", "model.pbtxt"])
def test_models_written_as_text_are_one_line(name: str, tmp_path: Path, capsys: Capture) -> None:
    """onnx guesses by the ending, and its parsers raise what nobody expects."""
    task = write_task(tmp_path, model_onnx=name)
    if name != "vocabulary.json":
        (tmp_path / name).write_text("ir_version: x\n")
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "binary .onnx file" in said
    assert said.count("\n") == 1
    (tmp_path / "q.vnnlib").write_text("(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_0 0))")
    assert main(["verify", str(tmp_path / "q.vnnlib"), "--network", str(tmp_path / name)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


LONG = "9" * 20


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["certify", "--limit", LONG], "a limit of more than"),
        (["measure", "--quantity", "pr", "--radius", "1", "--limit", LONG], "a limit of more than"),
        (["measure", "--quantity", "pr", "--radius", "1", "--epsilon", "1e-5000"], "epsilon = 1e-5000...: a number"),
        (
            ["measure", "--quantity", "pr", "--radius", "1", "--sampled", "--delta", "1e-400"],
            "delta = 1e-400: at least",
        ),
        (["measure", "--quantity", "pr", "--radius", "1", "--delta", "0." + "0" * 5000 + "1"], "delta = 0.0"),
        (["measure", "--quantity", "pr", "--radius", "1", "--stop-when-width", "1e-99999"], "width = 1e-99999...: a"),
    ],
)
def test_huge_numbers_are_one_line(command: list[str], said: str, task: Path, tmp_path: Path, capsys: Capture) -> None:
    """They ended in tracebacks, and a delta of 1e-400 took minutes."""
    name, *options = command
    assert main([name, str(task), "--out", str(tmp_path / "run"), *options]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("key", "said"), [("data_limit", "a limit of more than"), ("model_length", "a length of")])
def test_huge_numbers_in_a_task_are_one_line(key: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    changes: dict[str, Any] = {key: int(LONG)}
    task = write_task(tmp_path, **changes)
    if key == "model_length":
        free = onnx.load(tmp_path / "model.onnx")
        free.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "length"
        onnx.save(free, tmp_path / "model.onnx")
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize("name", ["certificates", "refused"])
def test_a_folder_of_a_run_that_leads_elsewhere_is_refused(
    name: str, task: Path, tmp_path: Path, capsys: Capture
) -> None:
    """certify --no-resume replaced certificates in the folder that a link leads to."""
    run, other = tmp_path / "run", tmp_path / "other"
    assert main(["certify", str(task), "--out", str(run), "--limit", "1"]) == 0
    if (run / name).exists():
        (run / name).rename(other)
    else:
        other.mkdir()
    (run / name).symlink_to(other)
    (other / "000000.json").write_text("not ours")
    assert main(["certify", str(task), "--out", str(run), "--no-resume"]) == 2
    assert f"{name}: leads to another folder" in capsys.readouterr().err
    assert (other / "000000.json").read_text() == "not ours"
