"""A run of the first texts goes on to more: what is finished stays, and the result is that of one run of all."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_runs import timeless
from tiny import ROWS, write_task

from swapproof.proofs import check as checker
from swapproof.verifier.cli import main
from swapproof.verifier.runs import life
from swapproof.verifier.runs.jobs import text_by_text
from swapproof.verifier.runs.results import written

Capture = pytest.CaptureFixture[str]


def contents(run: Path) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, bytes]]:
    """Results, summary and certificates, without what the clock wrote."""
    lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    summary = json.loads((run / "summary.json").read_text())
    for one in (*lines, summary):
        one.pop("slowest", None)
    summary.pop("seconds", None)
    return timeless(lines), summary, {path.name: path.read_bytes() for path in (run / "certificates").iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    assert main(["certify", str(write_task(folder / "task")), "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Path, Path]:
    """A task, and a run of its first three texts."""
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run), "--limit", "3"]) == 0
    return task, run


def certify(task: Path, run: Path, *options: str) -> int:
    return main(["certify", str(task), "--out", str(run), *options])


def test_a_run_of_three_texts_becomes_the_run_of_all(begun: tuple[Path, Path], whole: Path) -> None:
    task, run = begun
    before = {path.name: path.stat().st_mtime_ns for path in (run / "certificates").iterdir()}
    assert certify(task, run, "--limit", "5") == 0
    assert certify(task, run) == 0
    after = {path.name: path.stat().st_mtime_ns for path in (run / "certificates").iterdir()}
    assert before.items() <= after.items()
    assert contents(run) == contents(whole)
    for name in ("texts.jsonl", "spaces.jsonl"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()
    assert main(["check", str(run)]) == 0
    assert main(["check", str(run), "--exact"]) == 0
    assert checker.main([str(run)]) == 0


def test_a_limit_in_the_task_file_can_grow_as_well(tmp_path: Path, whole: Path) -> None:
    run = tmp_path / "run"
    assert certify(write_task(tmp_path / "task", data_limit=3), run) == 0
    assert certify(write_task(tmp_path / "task", data_limit=8), run) == 0
    assert contents(run) == contents(whole)


def test_fewer_texts_than_there_are_is_refused_by_number(begun: tuple[Path, Path], capsys: Capture) -> None:
    task, run = begun
    assert certify(task, run, "--limit", "2") == 2
    assert "the run there has 3 texts, of which these are the first 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "done"),
    [
        ([ROWS[1], *ROWS[1:]], [0]),
        ([*ROWS[:2], ("The film , great", "negative"), *ROWS[3:]], [2]),
        ([*ROWS, ("a great movie", "positive")], [8]),
        ([ROWS[0], ("bad movie", "negative"), *ROWS[2:], ("a great movie", "positive")], [1, 8]),
    ],
)
def test_where_some_texts_are_others_only_those_are_done_again(
    whole: Path,
    tmp_path: Path,
    rows: list[tuple[str, str]],
    done: list[int],
    capsys: Capture,
    settled: list[int],
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    task = write_task(tmp_path / "task", rows)
    assert certify(task, run) == 0
    others = len([id for id in done if id < len(ROWS)])
    assert (f"{others} of {len(rows)} texts are not those of the run there" in capsys.readouterr().err) == (others > 0)
    assert sorted(settled) == done
    settled.clear()
    assert certify(task, tmp_path / "anew") == 0
    assert contents(run) == contents(tmp_path / "anew")
    assert main(["check", str(run)]) == 0


def test_fewer_texts_of_which_one_is_another_leave_nothing_of_the_rest(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    task = write_task(tmp_path / "task", [*ROWS[:4], ("bad movie", "negative")])
    assert certify(task, run) == 0
    assert certify(task, tmp_path / "anew") == 0
    assert contents(run) == contents(tmp_path / "anew")


def test_a_change_of_the_swaps_does_again_the_texts_that_have_the_word(
    whole: Path, tmp_path: Path, settled: list[int]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    task = write_task(tmp_path / "task")
    synonyms = json.loads((task.parent / "synonyms.json").read_text())
    synonyms["film"] = []
    (task.parent / "synonyms.json").write_text(json.dumps(synonyms))
    assert certify(task, run) == 0
    assert sorted(settled) == [number for number, (text, _) in enumerate(ROWS) if "film" in text]


def test_where_every_text_is_another_the_run_is_another(begun: tuple[Path, Path], capsys: Capture) -> None:
    task, run = begun
    before = contents(run)
    write_task(task.parent, [ROWS[1], ROWS[2], ROWS[0]])
    assert certify(task, run) == 2
    assert "the texts or their labels, the swaps changed" in capsys.readouterr().err
    assert contents(run) == before


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The texts whose lines were written, in order."""
    found: list[int] = []

    def counted(line: dict[str, Any]) -> str:
        found.append(line["id"])
        return written(line)

    monkeypatch.setattr(text_by_text, "written", counted)
    return found


def test_other_swaps_of_the_first_texts_are_another_run(begun: tuple[Path, Path], capsys: Capture) -> None:
    task, run = begun
    (task.parent / "synonyms.json").write_text('{"good": ["fine"]}')
    assert certify(task, run) == 2
    assert "the swaps" in capsys.readouterr().err


@pytest.mark.parametrize("killed_at", ["copy_inputs", "write_accounts", "settle_texts"])
def test_a_run_that_is_killed_while_it_grows_loses_nothing(
    begun: tuple[Path, Path], whole: Path, killed_at: str, monkeypatch: pytest.MonkeyPatch, settled: list[int]
) -> None:
    task, run = begun
    certificates = {path.name: path.read_bytes() for path in (run / "certificates").iterdir()}

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    settled.clear()
    with monkeypatch.context() as patched:
        patched.setattr(life, killed_at, killed)
        assert certify(task, run) == 130
    assert {path.name: path.read_bytes() for path in (run / "certificates").iterdir()} == certificates
    assert certify(task, run) == 0
    assert sorted(settled) == [3, 4, 5, 6, 7]
    assert contents(run) == contents(whole)
    assert main(["check", str(run)]) == 0


def test_a_measurement_of_robust_fractions_grows_too(tmp_path: Path) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    command = ["measure", str(task), "--out", str(run), "--quantity", "pr", "--radius", "1"]
    assert main([*command, "--limit", "3"]) == 0
    assert main(command) == 0
    assert main([*command[:3], str(tmp_path / "all"), *command[4:]]) == 0
    assert contents(run) == contents(tmp_path / "all")
    assert main(["check", str(run)]) == 0


def test_a_certificate_is_bound_to_its_own_line_of_swaps(whole: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    spaces = (run / "spaces.jsonl").read_bytes().splitlines(keepends=True)
    for path in sorted((run / "certificates").iterdir()):
        bound = json.loads(path.read_bytes())["synonyms"]
        assert bound == hashlib.sha256(spaces[int(path.stem)]).hexdigest()
    (run / "spaces.jsonl").write_bytes(b"".join([spaces[0].replace(b'"fine"', b'"great"'), *spaces[1:]]))
    assert main(["check", str(run)]) == 4
    out = capsys.readouterr().out
    assert "refused 000000.json: the certificate is for other frozen swaps than spaces.jsonl" in out
    assert "000001.json: text 1" in out
