"""The store: what is committed stays, what is not never was, and nothing else is mistaken for it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from faulty_work import FaultyWork, text_of

from swapproof.encodings.errors import BadInput
from swapproof.verifier.pages.progress import Unseen
from swapproof.verifier.runs.jobs import text_by_text
from swapproof.verifier.runs.jobs.text_by_text import Hands
from swapproof.verifier.runs.run_folder import Run
from swapproof.verifier.runs.store import Store, is_store
from swapproof.verifier.runs.work import Settled
from swapproof.verifier.tasks.inputs import Text

STAGE = "min_swaps"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    Store.create(path, {"model": "abc", "state": "preparing"})
    return path


def test_a_new_store_holds_its_facts_and_no_results(path: Path) -> None:
    with Store.open(path) as store:
        assert store.facts() == {"model": "abc", "state": "preparing"}
        assert list(store.lines(STAGE)) == []
        assert store.count(STAGE) == 0


def test_lines_come_back_by_id_whatever_the_order_of_writing(path: Path) -> None:
    with Store.open(path) as store:
        for id in (5, 0, 11, 3):
            store.put(STAGE, id, f'{{"id": {id}}}', None)
    with Store.open(path) as store:
        assert list(store.lines(STAGE)) == [f'{{"id": {id}}}' for id in (0, 3, 5, 11)]
        assert store.line(STAGE, 11) == '{"id": 11}'


def test_stages_do_not_mix(path: Path) -> None:
    with Store.open(path) as store:
        store.put(STAGE, 0, "a", None)
        store.put("robust_fraction", 0, "b", None)
        assert list(store.lines(STAGE)) == ["a"]
        assert store.count("robust_fraction") == 1


def test_a_lost_text_is_not_finished_and_its_second_result_replaces_the_first(path: Path) -> None:
    with Store.open(path) as store:
        store.put(STAGE, 0, "done", "hash")
        store.put(STAGE, 1, "died", None, lost=True)
        assert list(store.finished(STAGE)) == [(0, "hash")]
        store.put(STAGE, 1, "done at last", None)
        assert list(store.finished(STAGE)) == [(0, "hash"), (1, None)]
        assert list(store.lines(STAGE)) == ["done", "done at last"]


def test_forgetting_results_and_facts_is_one_step(path: Path) -> None:
    with Store.open(path) as store:
        store.put(STAGE, 0, "a", None)
        store.set_facts({"state": "ready"}, forget_results=True)
        assert store.facts() == {"state": "ready"}
        assert store.count(STAGE) == 0


def test_a_closed_store_is_one_plain_file_that_a_read_only_reader_leaves_alone(path: Path) -> None:
    with Store.open(path) as store:
        store.put(STAGE, 0, "a", None)
    before = path.read_bytes()
    with Store.open(path, readonly=True) as store:
        assert list(store.lines(STAGE)) == ["a"]
        with pytest.raises(BadInput, match="cannot be written"):
            store.put(STAGE, 1, "b", None)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["store.sqlite"]


def test_a_reader_sees_what_is_committed_while_a_writer_writes(path: Path) -> None:
    with Store.open(path) as writer:
        writer.put(STAGE, 0, "a", None)
        with Store.open(path, readonly=True) as reader:
            assert list(reader.lines(STAGE)) == ["a"]
            writer.put(STAGE, 1, "b", None)
            assert list(reader.lines(STAGE)) == ["a", "b"]


def test_other_files_are_not_stores(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE facts (name TEXT, value TEXT)")
    connection.close()
    text = tmp_path / "text.sqlite"
    text.write_text("not a database")
    for path in (foreign, text, tmp_path / "absent.sqlite", tmp_path):
        assert not is_store(path)
        with pytest.raises(BadInput, match="not the store of a run"):
            Store.open(path)


def test_creating_a_store_where_nothing_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        Store.create(tmp_path / "absent" / "store.sqlite", {})
    assert list(tmp_path.iterdir()) == []


def test_what_was_committed_survives_kill_9(path: Path) -> None:
    """A process writes as fast as it can and is killed; every line up to the last one it announced is there."""
    code = (
        "import sys; from pathlib import Path; from swapproof.verifier.runs.store import Store\n"
        "with Store.open(Path(sys.argv[1])) as store:\n"
        "    for id in range(100000):\n"
        "        store.put('min_swaps', id, f'line {id}', None)\n"
        "        print(id, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        announced = [int(line) for line in process.stdout if line.endswith("\n")]
    with Store.open(path) as store:
        lines = list(store.lines(STAGE))
    assert lines == [f"line {id}" for id in range(len(lines))]
    assert len(lines) > max(announced, default=0)


def test_a_store_of_another_version_is_refused_by_number(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(BadInput, match="a store of version 7, and this swapproof reads 2; use the swapproof that made"):
        Store.open(path)


def test_a_lease_lasts_until_its_result_or_until_nobody_works(path: Path) -> None:
    with Store.open(path) as store:
        store.lease(STAGE, [1, 2, 3], "process 7")
        store.put(STAGE, 2, "line", None, job="a")
        assert store.leased(STAGE) == {1, 3}
        assert store.jobs() == {2: "a"}
        store.forget([2, 3])
        assert (store.leased(STAGE), store.count(STAGE)) == ({1}, 0)
        store.release(STAGE)
        assert store.leased(STAGE) == set()


@pytest.mark.parametrize("moment", ["PRAGMA synchronous = NORMAL", "BEGIN IMMEDIATE", "INSERT", "COMMIT"])
@pytest.mark.usefixtures("hearing_ctrl_c")
def test_ctrl_c_while_a_lease_is_written_comes_after_it(path: Path, moment: str) -> None:
    with Store.open(path) as store:
        connection = store.connection

        class Interrupted:
            def execute(self, statement: str, *values: Any) -> object:
                answer = connection.execute(statement, *values)
                if statement.startswith(moment):
                    signal.raise_signal(signal.SIGINT)
                return answer

            def __getattr__(self, name: str) -> object:
                return getattr(connection, name)

        store.connection = Interrupted()  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            store.lease(STAGE, [1, 2], "process 7")
        store.connection = connection
        assert store.leased(STAGE) == {1, 2}
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_what_is_written_together_is_there_together_or_not_at_all(path: Path) -> None:
    with Store.open(path) as store:
        with suppress(ZeroDivisionError), store.together():
            store.put(STAGE, 0, "a", None)
            print(1 // 0)
        assert store.count(STAGE) == 0


def test_evidence_is_on_the_disk_before_its_row_and_the_row_before_it_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut takes cannot be tried here: the order in which the system is asked for it can."""
    said: list[str] = []
    sync = os.fsync

    def noted(number: int) -> None:
        said.append(Path(f"/proc/self/fd/{number}").readlink().name.removesuffix(".unfinished"))
        sync(number)

    run = Run(tmp_path)
    Store.create(run.store, {})
    with Store.open(run.store) as store:
        assert store.connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL: commits are synced
        store.connection.set_trace_callback(lambda sql: said.append(sql) if sql == "COMMIT" else None)
        monkeypatch.setattr(os, "fsync", noted)

        class Reporting(Unseen):
            def __call__(self, number: int, kind: str = "", size: float = 0.0) -> None:
                said.append(f"reported {number} {kind}")

        @contextmanager
        def reporting(*_: object, **__: object) -> Iterator[Reporting]:
            yield Reporting()

        monkeypatch.setattr(text_by_text, "progress", reporting)
        text = text_of(0, "good")
        work = Certified(tmp_path)
        text_by_text.settle_texts(run, store, work, [text], {0: "job"}, Hands(), doing="", shown=False)
        assert store.connection.execute("PRAGMA synchronous").fetchone() == (2,)
    lease, *rest = said
    assert lease == "COMMIT"
    assert rest == [".000000.json", "certificates", "COMMIT", "reported 1 exact", "COMMIT"]


class Certified(FaultyWork):
    def open(self) -> Certified:
        return self

    def settle(self, text: Text) -> Settled:
        return Settled(text.id, {"id": text.id, "status": "exact"}, b"proof")
