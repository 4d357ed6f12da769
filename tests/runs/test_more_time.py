"""A text that ran out of time keeps what was found, says what is covered, and goes on from there with more time."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest
from settling import Looks, paper_network

from swapproof.proofs.writing.certificate import Enumerate
from swapproof.verifier.cli import main
from swapproof.verifier.engines import proof_tree, word_search
from swapproof.verifier.engines.protocol import Bound
from swapproof.verifier.ladder import climbing, resuming
from swapproof.verifier.ladder import settling as settle
from swapproof.verifier.ladder.run_certificates import Checker
from swapproof.verifier.roads import certify
from swapproof.verifier.runs.jobs import text_by_text
from swapproof.verifier.runs.work import Lost
from swapproof.verifier.tasks.inputs import Text

Capture = pytest.CaptureFixture[str]
POSITIONS = 8
CHECK = [sys.executable, "-I", "-S", str(Path(__file__).parents[2] / "proofs" / "check.py")]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Two texts and a network of two hidden layers, whose searches take hundreds of regions."""
    folder = tmp_path / "task"
    folder.mkdir()
    onnx.save(paper_network(4, "Relu", 2, positions=POSITIONS, second=5).model, folder / "model.onnx")
    words = [f"w{number}" for number in range(8)]
    (folder / "vocabulary.json").write_text(json.dumps(words))
    synonyms = {f"w{number}": [f"w{(number + step) % 8}" for step in (1, 2)] for number in range(8)}
    (folder / "synonyms.json").write_text(json.dumps(synonyms))
    texts = [" ".join(words[(first + step) % 8] for step in range(POSITIONS)) for first in (0, 1)]
    (folder / "texts.tsv").write_text("text\tlabel\n" + "".join(f"{text}\tyes\n" for text in texts))
    model = f'onnx = "model.onnx"\nvocabulary = "vocabulary.json"\nlength = {POSITIONS}\nlabels = ["yes", "no"]'
    data = 'file = "texts.tsv"\ntext = "text"\nlabel = "label"'
    path = folder / "task.toml"
    path.write_text(f'[model]\n{model}\n[data]\n{data}\n[swaps]\nfile = "synonyms.json"\n')
    return path


@pytest.fixture(autouse=True)
def looks_for_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is a look at the clock, so that a search stops at the same place on any machine."""

    def budget(deadline: float) -> Looks:
        return Looks(left=round((deadline - time.monotonic()) / settle.SEARCHING))

    monkeypatch.setattr(settle, "Budget", budget)
    monkeypatch.setattr(word_search, "BATCH", 2)
    monkeypatch.setattr(word_search, "REGIONS", 4)
    monkeypatch.setattr(proof_tree, "LEAF", 3)


LITTLE, MORE, PLENTY = 60, 120, 1_000_000


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


def ends(run: Path) -> list[dict[str, Any]]:
    return [line["min_swaps"] for line in lines(run)]


def open_lines(run: Path) -> list[dict[str, Any]]:
    return [line for line in lines(run) if line["status"] == "open"]


def checks(run: Path) -> None:
    """By ourselves and from a bare clone."""
    assert main(["check", str(run), "--jobs", "1"]) == 0
    subprocess.run([*CHECK, str(run)], check=True, capture_output=True)


def test_an_open_text_says_how_many_sentences_are_covered(task: Path, tmp_path: Path, capsys: Capture) -> None:
    outcome = certify(task, tmp_path / "run", seconds=LITTLE, engines="greedy,exact")
    assert outcome.exit_code == 0
    assert outcome.summary["open"]
    for line in open_lines(outcome.folder):
        part = json.loads((outcome.folder / line["certificate"]).read_text())["count"]
        covered = line["covered"]
        assert {name: part[name] for name in covered} == covered
        assert line["min_swaps"]["low"] <= covered["swaps"] < line["min_swaps"]["high"]
        assert 0 < int(covered["robust"]) < int(covered["total"])
    checks(outcome.folder)
    assert "the others are open" in capsys.readouterr().out
    false = lines(outcome.folder)
    covered = next(line["covered"] for line in false if "covered" in line)
    covered["robust"] = str(int(covered["robust"]) + 1)
    (outcome.folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in false))
    assert main(["check", str(outcome.folder), "--jobs", "1"]) == 4
    assert "counts other sentences than the certificate" in capsys.readouterr().out


def test_with_more_time_the_answer_is_that_of_a_run_left_in_peace(task: Path, tmp_path: Path) -> None:
    """Stopped twice; what was proved before is neither searched nor checked again, and no end is ever lost."""
    peaceful = certify(task, tmp_path / "peaceful", seconds=PLENTY, engines="greedy,exact").folder
    run = tmp_path / "run"
    before: list[dict[str, Any]] = []
    spent = 0
    for seconds in (LITTLE, MORE, 2 * MORE, PLENTY):
        certify(task, run, seconds=seconds, engines="greedy,exact")
        now = lines(run)
        for old, new in zip(before, now, strict=False):
            assert old["min_swaps"]["low"] <= new["min_swaps"]["low"]
            assert old["min_swaps"]["high"] >= new["min_swaps"]["high"]
            assert new["evaluations"] > old["evaluations"] or old["status"] != "open"
        before, spent = now, sum(line["evaluations"] for line in now)
        checks(run)
    assert ends(run) == ends(peaceful)
    assert all(line["status"] == "exact" and "covered" not in line for line in before)
    once = sum(line["evaluations"] for line in lines(peaceful))
    # Every start looks at the whole space again; to search all of it again would be 2.2 times as much.
    assert spent < 1.8 * once, "what had been searched was searched again"
    assert json.loads((run / "summary.json").read_text())["seconds_per_text"] == PLENTY


def test_the_same_time_and_a_finished_text_change_nothing(task: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    certify(task, run, seconds=LITTLE, engines="greedy,exact")
    before = (run / "results.jsonl").read_bytes()
    certify(task, run, seconds=LITTLE, engines="greedy,exact")
    assert (run / "results.jsonl").read_bytes() == before
    certify(task, run, seconds=PLENTY, engines="greedy,exact")
    before = (run / "results.jsonl").read_bytes()
    certify(task, run, seconds=2 * PLENTY, engines="greedy,exact")
    assert (run / "results.jsonl").read_bytes() == before


def test_less_time_than_a_run_had_is_refused(task: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    certify(task, run, seconds=MORE, engines="greedy,exact")
    assert main(["certify", str(task), "--out", str(run), "--seconds", str(LITTLE), "--engines", "greedy,exact"]) == 2
    assert f"--seconds {LITTLE} is less" in capsys.readouterr().err


def test_a_death_in_the_second_try_loses_nothing_of_the_first(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    certify(task, run, seconds=LITTLE, engines="greedy,exact")
    before = lines(run)
    with monkeypatch.context() as patch:
        patch.setattr(text_by_text, "settle_all", all_lost)
        certify(task, run, seconds=MORE, engines="greedy,exact")
    assert lines(run) == before
    certify(task, run, seconds=PLENTY, engines="greedy,exact")
    assert [line["status"] for line in lines(run)] == ["exact", "exact"]
    checks(run)


def all_lost(setting: settle.Settling, texts: list[Text], jobs: int, **how: Any) -> Any:
    yield from ([Lost(text, "the process working on it died", 1.0)] for text in texts)


def test_a_refused_proof_is_saved_not_published_and_the_next_engine_settles_the_text(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    refusal = Checker.refusal

    def only_lists(self: Checker, text: Text, query: Any, bound: Bound) -> str | None:
        return refusal(self, text, query, bound) if isinstance(bound.tree, Enumerate) else "a leaf fails"

    with monkeypatch.context() as patch:
        patch.setattr(Checker, "refusal", only_lists)
        outcome = certify(task, run, seconds=PLENTY, engines="greedy,exact,enumerate")
    assert outcome.exit_code == 4
    for line in lines(run):
        assert line["status"] == "exact"
        assert "a leaf fails" in line["contradiction"]
        assert line["engine"] == "enumerate"
        saved = json.loads((run / "refused" / Path(line["certificate"]).name).read_text())
        published = json.loads((run / line["certificate"]).read_text())
        assert saved["lower"]["tree"] != published["lower"]["tree"]
    certify(task, run, seconds=PLENTY, engines="greedy,exact,enumerate", resume=False)
    assert not (run / "refused").exists()


def test_a_refused_count_is_not_published_and_the_run_says_so(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Checker.refused

    def no_counts(self: Checker, statement: Any) -> str | None:
        return refused(self, statement) if statement.count is None else "the number of sentences robust is another"

    monkeypatch.setattr(Checker, "refused", no_counts)
    outcome = certify(task, tmp_path / "run", seconds=LITTLE, engines="greedy,exact")
    assert outcome.exit_code == 4
    assert outcome.summary["open"]
    for line in open_lines(outcome.folder):
        assert "the count of an open text is refused" in line["contradiction"]
        assert "covered" not in line
        assert json.loads((outcome.folder / line["certificate"]).read_text())["count"] is None


@pytest.mark.parametrize(
    "damage", ["{nope", '{"seconds": "x"}', '{"seconds": 1.0, "cover": {"swaps": 1, "tree": "Hw=="}}']
)
def test_a_damaged_search_is_one_line(task: Path, tmp_path: Path, capsys: Capture, damage: str) -> None:
    run = tmp_path / "run"
    command = ["certify", str(task), "--out", str(run), "--engines", "greedy,exact", "--seconds"]
    assert main([*command, str(LITTLE)]) == 0
    with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
        assert store.execute("UPDATE results SET line = ? WHERE stage = 'kept'", (damage,)).rowcount
    capsys.readouterr()
    assert main([*command, str(MORE)]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("swapproof:")]
    assert "store.sqlite: damaged" in line


def test_a_text_is_finished_however_often_its_run_is_stopped(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is a fifth of what a text takes, and after two of them the run is stopped; its proof is checked again."""
    peaceful = certify(task, tmp_path / "peaceful", seconds=PLENTY, engines="greedy,exact").folder
    run, kept, checked = tmp_path / "run", [0], [0]
    monkeypatch.setattr(climbing, "Budget", lambda deadline: Looks(left=LITTLE))
    write, accepted = resuming.write_begun, Checker.refusal

    def stopped(*about: Any) -> None:
        write(*about)
        kept[0] += 1
        if kept[0] == 2:
            raise KeyboardInterrupt

    def counted(*about: Any) -> Any:
        checked[0] += 1
        return accepted(*about)

    monkeypatch.setattr(settle, "write_begun", stopped)
    monkeypatch.setattr(settle, "read_begun", lambda path, query, check: resuming.read_begun(path, query, check))
    monkeypatch.setattr(Checker, "refusal", counted)
    command = ["certify", str(task), "--out", str(run), "--seconds", str(PLENTY), "--engines", "greedy,exact"]
    with monkeypatch.context() as patch:
        patch.setattr(settle, "climb", stop_at_once)
        assert main(command) == 130
    codes: list[int] = []
    while not codes or codes[-1] == 130:
        kept[0] = 0
        codes.append(main(command))
    assert codes[-1] == 0
    assert len(codes) > 2
    assert checked[0]
    assert ends(run) == ends(peaceful)
    assert asked(run) == asked(peaceful), "what was asked before a stop is told too"
    assert not list(run.glob("transcripts/.*"))
    checks(run)
    spent, once = (sum(line["evaluations"] for line in lines(folder)) for folder in (run, peaceful))
    assert spent < 3 * once, "what had been searched was searched again"


def asked(run: Path) -> list[list[str]]:
    """The engines that each text's line tells of, each once."""
    return [list(dict.fromkeys(step["engine"] for step in line.get("history", ()))) for line in lines(run)]


def stop_at_once(*about: Any) -> Any:
    raise KeyboardInterrupt
