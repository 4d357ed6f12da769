"""A run that is killed, interrupted, starved of disk, or half lost goes on to the results of one left in peace."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_runs import timeless
from tiny import ROWS, SYNONYMS, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.ladder.settling import Settling
from swapproof.verifier.ladder.station import Station
from swapproof.verifier.roads import certify
from swapproof.verifier.runs.run_folder import Run, held
from swapproof.verifier.runs.work import Lost, Settled
from swapproof.verifier.runs.workers import settle_all
from swapproof.verifier.tasks.inputs import Text

Capture = pytest.CaptureFixture[str]
MANY = ROWS * 12
COMMAND = [sys.executable, "-c", "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("task"), MANY)


@pytest.fixture(scope="module")
def peaceful(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, uninterrupted."""
    return certify(task, tmp_path_factory.mktemp("peaceful") / "run").folder


def contents(run: Path) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, bytes]]:
    """Results, summary and certificates, without what the clock wrote."""
    lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    summary = json.loads((run / "summary.json").read_text())
    del summary["seconds"]
    return timeless(lines), summary, {path.name: path.read_bytes() for path in (run / "certificates").iterdir()}


def without_cost(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what it took: more for a text whose process died once it was settled, and before it said so."""
    return [{key: line[key] for key in line if key not in ("evaluations", "requests", "history")} for line in lines]


def started(task: Path, run: Path, *options: str, **how: Any) -> subprocess.Popen[bytes]:
    arguments = ["certify", str(task), "--out", str(run), *options]
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


def hear_ctrl_c() -> None:
    """In the child: under nohup, cron and some CI systems the parent ignores Ctrl-C, and its children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stop_when(process: subprocess.Popen[bytes], reached: Callable[[], bool], number: int) -> bool:
    """Send the signal as soon as the moment has come; False when the process ended before."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if reached():
            process.send_signal(number)
            process.communicate()
            return True
        time.sleep(0.0005)
    process.communicate()
    return False


MOMENTS: dict[str, Callable[[Path], bool]] = {
    "when the folder appears": lambda run: run.exists(),
    "when the store appears": lambda run: (run / "store.sqlite").exists(),
    "after the first certificate": lambda run: any(run.glob("certificates/0*.json")),
    "after forty certificates": lambda run: sum(1 for _ in run.glob("certificates/0*.json")) >= 40,
    "while results are written": lambda run: any(run.glob(".results.jsonl*")) or (run / "results.jsonl").exists(),
}


class TestKill:
    @pytest.mark.parametrize("moment", MOMENTS)
    def test_the_same_command_goes_on_to_the_same_results(
        self, task: Path, peaceful: Path, tmp_path: Path, moment: str
    ) -> None:
        run = tmp_path / "run"
        reached = MOMENTS[moment]
        process = started(task, run)
        assert stop_when(process, lambda: reached(run), signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        done = finished_certificates(run)
        assert main(["certify", str(task), "--out", str(run)]) == 0
        assert contents(run) == contents(peaceful)
        for path, before in done.items():
            assert path.stat().st_mtime_ns == before, "a finished text was done again"

    def test_a_killed_parent_takes_its_workers_with_it(self, task: Path, peaceful: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        process = started(task, run, "--jobs", "2")
        workers: list[int] = []

        def at_work() -> bool:
            workers[:] = children(process.pid)
            return len(workers) >= 2 and sum(1 for _ in run.glob("certificates/0*.json")) >= 3

        assert stop_when(process, at_work, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while any(alive(worker) for worker in workers) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not any(alive(worker) for worker in workers)
        assert main(["certify", str(task), "--out", str(run)]) == 0
        assert contents(run) == contents(peaceful)


def finished_certificates(run: Path) -> dict[Path, int]:
    """The certificates whose texts the store calls finished, with the time they were written."""
    from swapproof.verifier.runs.store import Store, is_store

    if not is_store(run / "store.sqlite"):
        return {}
    with Store.open(run / "store.sqlite") as store:
        paths = [Run(run).certificate(id) for id, _ in store.finished("min_swaps")]
    return {path: path.stat().st_mtime_ns for path in paths}


def children(parent: int) -> list[int]:
    """Processes started by this one that run our workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if f"\nPPid:\t{parent}\n" in status and b"worker_process" in command:
            found.append(int(folder.name))
    return found


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


class TestInterrupt:
    @pytest.mark.parametrize("options", [[], ["--jobs", "2"]])
    def test_ctrl_c_is_130_with_a_consistent_run(
        self, task: Path, peaceful: Path, tmp_path: Path, options: list[str]
    ) -> None:
        run = tmp_path / "run"
        process = started(task, run, *options, start_new_session=True, preexec_fn=hear_ctrl_c)
        assert stop_when(process, lambda: sum(1 for _ in run.glob("certificates/0*.json")) >= 11, signal.SIGINT)
        assert process.returncode == 130
        lines = (run / "results.jsonl").read_text().splitlines()
        assert 8 <= len(lines) < len(MANY)  # two workers finish out of order, and a certificate precedes its row
        assert main(["check", str(run), "--jobs", "1"]) == 3
        assert main(["report", str(run)]) == 3
        assert main(["certify", str(task), "--out", str(run)]) == 0
        assert contents(run) == contents(peaceful)


class TestDisk:
    def test_a_full_disk_is_one_line_and_the_run_goes_on_later(
        self, task: Path, peaceful: Path, tmp_path: Path
    ) -> None:
        """The limit on the size of a file stands for the end of the disk; the store's log is the first to meet it."""
        run = tmp_path / "run"

        def little_room() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

        process = started(task, run, preexec_fn=little_room)
        _, err = process.communicate()
        assert process.returncode == 2
        assert len(err.splitlines()) == 1
        assert b"cannot be written" in err
        assert main(["certify", str(task), "--out", str(run)]) == 0
        assert contents(run) == contents(peaceful)

    def test_a_disk_full_from_the_start_leaves_no_folder(self, task: Path, tmp_path: Path) -> None:
        def no_room() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        process = started(task, tmp_path / "run", preexec_fn=no_room)
        _, err = process.communicate()
        assert process.returncode == 2
        assert len(err.splitlines()) == 1
        assert not (tmp_path / "run").exists()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", ROWS[:3])


class TestChanges:
    """A run goes on only with what it was begun with."""

    def changed(self, task: Path, run: Path, capsys: Capture, *options: str) -> str:
        before = contents(run)
        capsys.readouterr()
        assert main(["certify", str(task), "--out", str(run), *options]) == 2
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert contents(run) == before
        return error

    def test_each_change_is_refused_by_name(self, small: Path, tmp_path: Path, capsys: Capture) -> None:
        import onnx

        run, folder = tmp_path / "run", small.parent
        assert main(["certify", str(small), "--out", str(run)]) == 0
        assert "--engines changed" in self.changed(small, run, capsys, "--engines", "enumerate")
        assert "--seconds 5 is less" in self.changed(small, run, capsys, "--seconds", "5")
        assert "has 3 texts, of which these are the first 2" in self.changed(small, run, capsys, "--limit", "2")

        (folder / "synonyms.json").write_text(json.dumps({"good": ["fine"]}))
        assert "the swaps changed" in self.changed(small, run, capsys)
        (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))

        text = small.read_text()
        small.write_text(text.replace("lowercase = true", "lowercase = false"))
        assert "the task file" in self.changed(small, run, capsys)
        small.write_text(text)

        proto = onnx.load(folder / "model.onnx")
        proto.producer_name = "someone else"
        onnx.save(proto, folder / "model.onnx")
        assert "the model changed" in self.changed(small, run, capsys)

    def test_another_radius_or_number_of_jobs_is_no_change(self, small: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(small), "--out", str(run)]) == 0
        assert main(["certify", str(small), "--out", str(run), "--radius", "2", "--jobs", "2"]) == 1
        assert main(["report", str(run)]) == 1

    def test_no_resume_starts_anew_and_removes_nothing_of_others(self, small: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(small), "--out", str(run)]) == 0
        (run / "notes.txt").write_text("mine")
        (run / "certificates" / "notes.txt").write_text("mine too")
        assert main(["certify", str(small), "--out", str(run), "--limit", "1", "--no-resume"]) == 0
        assert (run / "notes.txt").read_text() == "mine"
        assert (run / "certificates" / "notes.txt").read_text() == "mine too"
        assert sorted(path.name for path in (run / "certificates").iterdir()) == ["000000.json", "notes.txt"]
        assert len((run / "results.jsonl").read_text().splitlines()) == 1

    def test_no_resume_does_not_remove_what_it_reads(self, small: Path, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(small), "--out", str(run)]) == 0
        before = contents(run)
        assert main(["certify", str(run / "task.toml"), "--out", str(run), "--no-resume"]) == 2
        assert "would be removed" in capsys.readouterr().err
        assert contents(run) == before

    def test_a_lost_certificate_is_made_again(self, small: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(small), "--out", str(run)]) == 0
        before = contents(run)
        (run / "certificates" / "000000.json").unlink()
        (run / "certificates" / "000001.json").write_text("{}")
        assert main(["certify", str(small), "--out", str(run)]) == 0
        assert contents(run) == before

    def test_two_processes_do_not_work_on_one_run(self, small: Path, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(small), "--out", str(run)]) == 0
        with held(Run(run)):
            assert main(["certify", str(small), "--out", str(run)]) == 2
        assert "another process is working on this run" in capsys.readouterr().err
        assert main(["certify", str(small), "--out", str(run)]) == 0


class TestDeath:
    """A worker that dies costs one text."""

    def test_the_text_is_open_with_the_reason_and_the_others_are_settled(
        self, task: Path, peaceful: Path, tmp_path: Path
    ) -> None:
        """Workers are killed from outside while they work; every text that is lost is tried again by the next run."""
        run = tmp_path / "run"
        process = started(task, run, "--jobs", "2")
        killed = 0
        while process.poll() is None:
            certificates = len(list((run / "certificates").glob("*.json"))) if run.exists() else 0
            workers = children(process.pid)
            if certificates >= 5 + 20 * killed and workers and killed < 2:
                os.kill(workers[0], signal.SIGKILL)
                killed += 1
            time.sleep(0.01)
        _, err = process.communicate()
        assert process.returncode == 0, err
        assert killed >= 1
        lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
        expected, summary, _ = contents(peaceful)
        assert len(lines) == len(expected)
        lost = [line for line in lines if line["status"] == "open"]
        assert len(lost) <= killed
        for line in lost:
            assert "killed by SIGKILL" in line["reason"]
            assert line["min_swaps"] == {"low": 0, "high": None}
            assert line["certificate"] is None
        assert main(["check", str(run), "--jobs", "1"]) == 0
        assert main(["certify", str(task), "--out", str(run)]) == 0
        again, sums, _ = contents(run)
        assert without_cost([*again, sums]) == without_cost([*expected, summary])

    def test_the_text_a_dying_worker_held_is_the_one_that_is_lost(self, small: Path, tmp_path: Path) -> None:
        """A text that kills its worker every time: the others are settled by the workers that take its place."""
        outcome = certify(small, tmp_path / "run")
        run = Run(outcome.folder)
        setting, texts = begun(small, run)
        poisoned = [Poison(text.id, text.label, text.encoded, text.frozen) if text.id == 1 else text for text in texts]
        found = sorted((one for lot in settle_all(setting, poisoned, 2) for one in lot), key=identity)
        assert [type(one) for one in found] == [Settled, Lost, Settled]
        assert isinstance(found[1], Lost)
        assert found[1].reason == "the process working on it ended with exit code 7, 3 times"

    def test_want_of_memory_costs_one_text(
        self, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        settle_one = Station.settle

        def hungry(self: Station, text: Text) -> Settled:
            if text.id == 1:
                raise MemoryError
            return settle_one(self, text)

        monkeypatch.setattr(Station, "settle", hungry)
        assert main(["certify", str(small), "--out", str(tmp_path / "run")]) == 0
        lines = contents(tmp_path / "run")[0]
        assert [line["status"] for line in lines] == ["exact", "open", "unbreakable"]
        assert lines[1]["reason"] == "out of memory"


class Poison(Text):
    """A text whose arrival ends the process that receives it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (7,)


def identity(found: Settled | Lost) -> int:
    return found.text.id if isinstance(found, Lost) else found.id


def begun(task: Path, run: Run) -> tuple[Settling, list[Text]]:
    """What `certify` hands to its workers."""
    from swapproof.encodings.onnx_files.onnx_reading import open_model
    from swapproof.verifier.runs.binding import binding_of
    from swapproof.verifier.tasks.inputs import read_inputs
    from swapproof.verifier.tasks.task import read_task

    model = open_model(run.model)
    inputs = read_inputs(read_task(task), model.length)
    return Settling(run.folder, binding_of(model.path, inputs), None, None), list(inputs.texts)


@pytest.fixture(autouse=True)
def enough_disk(tmp_path: Path) -> Iterator[None]:
    """Runs of many texts are removed at once: pytest keeps the folders of its last sessions."""
    yield
    shutil.rmtree(tmp_path, ignore_errors=True)
