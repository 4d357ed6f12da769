"""Shards of a task and their runs put together: the run of the whole task, or a refusal that says what does not fit."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_runs import timeless
from tiny import ROWS, write_task

from swapproof.encodings.errors import BadInput
from swapproof.verifier.cli import main
from swapproof.verifier.roads import certify
from swapproof.verifier.sharding.merged_run import merge
from swapproof.verifier.sharding.shard_files import write_shards

Capture = pytest.CaptureFixture[str]
MEASURED_HERE = ("seconds", "slowest", "model")
"""Of a summary: by the clock, and how far onnxruntime was off on the texts that it was tried on."""


def contents(run: Path) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, bytes]]:
    lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    summary = json.loads((run / "summary.json").read_text())
    for name in MEASURED_HERE:
        summary.pop(name, None)
    return timeless(lines), summary, {path.name: path.read_bytes() for path in (run / "certificates").iterdir()}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("task"))


@pytest.fixture(scope="module")
def whole(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(task, tmp_path_factory.mktemp("whole") / "run").folder


@pytest.fixture(scope="module")
def parts(task: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The runs of three shards."""
    folder = tmp_path_factory.mktemp("shards") / "shards"
    files = write_shards(task, 3, folder).files
    return [certify(file, folder / f"run-{number}").folder for number, file in enumerate(files)]


def test_the_merged_run_is_the_run_of_the_whole_task(whole: Path, parts: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "merged"
    shuffled = [str(parts[number]) for number in (2, 0, 1)]
    assert main(["merge", *shuffled, "--out", str(out)]) == 0
    assert contents(out) == contents(whole)
    for name in ("texts.jsonl", "spaces.jsonl", "model.onnx", "vocabulary.json"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert main(["check", str(out)]) == 0
    assert main(["check", str(out), "--exact"]) == 0
    assert main(["report", str(out)]) == 0


def test_a_merged_run_is_gone_on_with_as_any_other(task: Path, parts: list[Path], tmp_path: Path) -> None:
    out = merge(parts, tmp_path / "merged").folder
    before = (out / "results.jsonl").read_bytes()
    assert certify(task, out).exit_code == 0
    assert (out / "results.jsonl").read_bytes() == before


def test_shards_of_a_shard_make_a_run_that_can_be_merged_again(whole: Path, parts: list[Path], tmp_path: Path) -> None:
    files = write_shards(parts[2].parent / "shard-0002.toml", 2, tmp_path / "shards").files
    late = merge([certify(file, tmp_path / file.stem).folder for file in files], tmp_path / "late").folder
    assert main(["check", str(late)]) == 0
    assert contents(merge([late, *parts[:2]], tmp_path / "all").folder) == contents(whole)


def test_texts_that_two_runs_have_with_one_answer_are_taken_once(
    task: Path, whole: Path, parts: list[Path], tmp_path: Path
) -> None:
    first = certify(task, tmp_path / "first", limit=5).folder
    out = merge([*parts, first], tmp_path / "merged").folder
    assert contents(out) == contents(whole)
    assert main(["check", str(out), "--quiet"]) == 0
    first = certify(task, tmp_path / "less", limit=4).folder
    assert "texts 2 to 3 of the task are in" in refused([first, *parts], tmp_path / "out")


def refused(runs: list[Path], out: Path) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (of the errors of any folder, which are told apart below)
        merge(runs, out)
    assert not out.exists()
    said = str(caught.value)
    assert len(said.splitlines()) == 1
    return said


class TestRefusals:
    def test_what_is_missing_is_named(self, parts: list[Path], tmp_path: Path) -> None:
        assert "no run has texts 2 to 4; give their runs too" in refused([parts[0], parts[2]], tmp_path / "out")

    @pytest.mark.parametrize(
        ("given", "missing"), [((0, 1), "5 to 7"), ((1, 2), "0 to 1"), ((1,), "0 to 1 and 5 to 7")]
    )
    def test_the_first_and_the_last_shard(
        self, parts: list[Path], tmp_path: Path, given: tuple[int, ...], missing: str, capsys: Capture
    ) -> None:
        runs = [str(parts[number]) for number in given]
        assert main(["merge", *runs, "--out", str(tmp_path / "out")]) == 2
        said = f"one of the shards of texts 0 to 7, and no run has texts {missing}; give their runs too"
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()

    def test_a_shard_of_which_only_the_first_texts_were_run(self, parts: list[Path], tmp_path: Path) -> None:
        last = certify(parts[2].parent / "shard-0002.toml", tmp_path / "run", limit=2).folder
        assert "no run has texts 7 to 7" in refused([*parts[:2], last], tmp_path / "out")

    def test_a_run_that_is_given_twice(self, parts: list[Path], tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.symlink_to(parts[0])
        assert "other: given twice; give every run once" in refused([*parts, other], tmp_path / "out")

    def test_shards_of_different_tasks(self, parts: list[Path], tmp_path: Path) -> None:
        other = write_task(tmp_path / "task", model_lowercase=False)
        run = certify(write_shards(other, 3, tmp_path / "shards").files[1], tmp_path / "run").folder
        assert "[model] of the task file, the task file differ" in refused([parts[0], run], tmp_path / "out")
        run = certify(write_shards(other, 3, tmp_path / "again").files[1], tmp_path / "other", seconds=7).folder
        assert "--seconds differ" in refused([parts[0], run], tmp_path / "out")

    def test_other_swaps_of_a_text_that_both_have(self, task: Path, parts: list[Path], tmp_path: Path) -> None:
        other = write_task(tmp_path / "task")
        (other.parent / "synonyms.json").write_text('{"film": ["movie"]}')
        run = certify(other, tmp_path / "run").folder
        said = refused([parts[0], run], tmp_path / "out")
        assert "its text 0 is another, or has other swaps, than text 0 of" in said

    def test_two_answers_to_one_text(self, task: Path, parts: list[Path], tmp_path: Path) -> None:
        from swapproof.verifier.runs.store import Store

        run = certify(task, tmp_path / "run", limit=2).folder
        with Store.open(run / "store.sqlite") as store:
            line = store.result("min_swaps", 1)
            job = store.jobs()[1]
            store.put("min_swaps", 1, json.dumps({**line, "min_swaps": {"low": 9, "high": 9}}), None, job=job)
        assert "of text 1 of the task it says another min_swaps than" in refused([parts[0], run], tmp_path / "out")

    def test_a_run_with_texts_to_do_and_half_a_copy(self, parts: list[Path], tmp_path: Path) -> None:
        from swapproof.verifier.runs.store import Store

        half = tmp_path / "half"
        shutil.copytree(parts[1], half)
        (half / "certificates" / "000000.json").unlink()
        assert "copy all of the run" in refused([parts[0], half, parts[2]], tmp_path / "out")
        (half / "model.onnx").write_bytes(b"another")
        assert "model.onnx: not the file that the run was made with" in refused(
            [parts[0], half, parts[2]], tmp_path / "out"
        )
        (half / "model.onnx").unlink()
        assert "model.onnx: no such file" in refused([half], tmp_path / "out")
        shutil.copy(parts[1] / "model.onnx", half)
        (half / "texts.jsonl").unlink()
        assert "texts.jsonl: not there; copy all of the run" in refused([parts[0], half, parts[2]], tmp_path / "out")
        with Store.open(half / "store.sqlite") as store:
            store.forget([0])
        assert "1 of its 3 texts are not settled; give its command again" in refused([half], tmp_path / "out")

    def test_a_folder_that_is_there(self, parts: list[Path], tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("of the user")
        with pytest.raises(BadInput, match="exists and is not empty"):
            merge(parts, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


class TestShards:
    def test_every_text_is_in_one_of_nearly_equal_shards(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        assert main(["shards", str(task), "--count", "3", "--out", str(tmp_path / "out")]) == 0
        assert "3 shards of 8 texts" in capsys.readouterr().out
        spans = [line for file in sorted((tmp_path / "out").glob("*.toml")) for line in file.read_text().splitlines()]
        assert [line for line in spans if line.startswith("rows")] == [
            "rows = [0, 2]",
            "rows = [2, 5]",
            "rows = [5, 8]",
        ]

    def test_the_commands_that_it_prints_can_be_pasted(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        out = tmp_path / "a b'c"
        assert main(["shards", str(task), "--count", "2", "--out", str(out)]) == 0
        batch, merging = (shlex.split(line) for line in capsys.readouterr().out.splitlines()[1:])
        assert batch == ["sbatch", str(out / "array.sh")]
        assert merging == ["swapproof", "merge", f"{out}/run-*", "--out", f"{out}/whole"]

    def test_shards_of_a_shard_and_of_a_limit(self, task: Path, tmp_path: Path) -> None:
        first = write_shards(task, 2, tmp_path / "first").files[1]
        spans = [file.read_text() for file in write_shards(first, 2, tmp_path / "second").files]
        assert ["rows = [4, 6]" in spans[0], "rows = [6, 8]" in spans[1]] == [True, True]
        assert write_shards(task, 2, tmp_path / "third", limit=5).texts == 5

    def test_a_limit_counts_from_the_beginning_of_the_shard(self, task: Path, tmp_path: Path) -> None:
        file = write_shards(task, 2, tmp_path / "shards").files[1]
        run = certify(file, tmp_path / "run", limit=1).folder
        assert json.loads((run / "results.jsonl").read_text())["text"] == ROWS[4][0]

    @pytest.mark.parametrize(
        ("count", "said"), [(9, "has 8 texts for this task; give at most as many"), (20_000, "from 1 to 10000")]
    )
    def test_more_shards_than_texts(self, task: Path, tmp_path: Path, count: int, said: str, capsys: Capture) -> None:
        assert main(["shards", str(task), "--count", str(count), "--out", str(tmp_path / "out")]) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()

    def test_a_folder_that_holds_something_is_left_alone(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        assert main(["shards", str(task), "--count", "2", "--out", str(task.parent)]) == 2
        assert "exists and is not empty" in capsys.readouterr().err

    def test_rows_that_are_not_there_are_refused(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task", data_rows=[8, 9])
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
        assert "8 texts, and [data] rows begins at 8" in capsys.readouterr().err
        task = write_task(tmp_path / "task", data_rows=[3, 3])
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 2
        assert "rows needs a first number that is less than the second" in capsys.readouterr().err

    def test_the_script_for_a_batch_system_runs_a_shard(self, task: Path, tmp_path: Path) -> None:
        """From another folder, as SLURM does it."""
        written = write_shards(task, 4, tmp_path / "with space")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            ["sh", str(written.script), "--seconds", "30"],
            check=True,
            cwd="/",
            capture_output=True,
            env={**os.environ, "PATH": path, "SLURM_ARRAY_TASK_ID": "3", "SLURM_CPUS_PER_TASK": "1"},
        )
        lines = (tmp_path / "with space" / "run-0003" / "results.jsonl").read_text().splitlines()
        assert [json.loads(line)["text"] for line in lines] == [text for text, _ in ROWS[6:]]
