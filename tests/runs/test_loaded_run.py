"""`load` says in Python what the folder of a run holds."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
from command_runs import fewest_swaps, results
from tiny import ROWS, write_task

from swapproof import LoadedRun, certify, load, load_comparison, measure_pr
from swapproof.encodings.errors import BadInput
from swapproof.verifier.cli import main
from swapproof.verifier.runs.life import Outcome
from swapproof.verifier.runs.store import Store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    outcome: Outcome = certify(write_task(folder / "task"), folder / "run")
    return outcome.folder


def test_it_holds_what_the_files_hold(run: Path) -> None:
    found = load(run)
    assert isinstance(found, LoadedRun)
    assert (found.question, len(found), found.exit_code) == ("certify", len(ROWS), 0)
    assert [result.line for result in found.results] == results(run)
    assert found.summary == json.loads((run / "summary.json").read_text())
    for result, (text, _) in zip(found, ROWS, strict=True):
        assert result.text == text
        assert result.is_exact
        assert result.low is not None
        assert (result.low, result.high) == tuple(result.line["min_swaps"].values())
        assert result.radius == (math.inf if result.status == "unbreakable" else result.low - 1)


def test_spaces_and_witnesses_fit_what_brute_force_finds(run: Path) -> None:
    found = load(run)
    for result in found:
        choices = [list(options) for options in found.spaces[result.id]]
        assert result.high == fewest_swaps(run, choices, result.label)
        assert (result.witness is None) == (result.high is None)
    for id, witness in found.witnesses.items():
        for swap in witness.swaps:
            assert found.spaces[id][swap.position][0] == swap.original
            assert swap.replacement in found.spaces[id][swap.position]


def test_a_run_that_is_not_finished_says_what_is_known(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "half")
    (tmp_path / "half" / "summary.json").unlink()
    with Store.open(tmp_path / "half" / "store.sqlite") as store:
        store.forget([0, 1])
    found = load(tmp_path / "half")
    assert (len(found), found.summary["texts"], found.exit_code) == (6, 6, 3)


def test_every_measurement_and_attack_is_opened(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", ROWS[:3])
    asked = {"pr": ["--radius", "1"], "kappa": [], "msr": []}
    for quantity, more in asked.items():
        out = str(tmp_path / quantity)
        assert main(["measure", str(task), "--quantity", quantity, "--out", out, *more]) == 0
    assert main(["attack", str(task), "--method", "pdp", "--out", str(tmp_path / "attack")]) == 0
    for question in (*asked, "attack"):
        found = load(tmp_path / question)
        lines = [json.loads(line) for line in (tmp_path / question / "results.jsonl").read_text().splitlines()]
        assert (found.question, len(found)) == (question, len(lines))
        assert [result.id for result in found] == [line["id"] for line in lines]
        for result in found:
            if result.measured is not None:
                low, high = result.measured
                assert high is None or 0 <= low <= high
        assert any(result.measured is not None for result in found)
        assert found.summary["verdict"]["sentence"].split("<")[0][:20] in found._repr_html_()
    words = load(tmp_path / "kappa").words
    assert [*words.values()] == sorted(words.values(), reverse=True)
    with pytest.raises(BadInput, match="words are of measure --quantity kappa"):
        load(tmp_path / "pr").words  # noqa: B018


def test_a_comparison_is_opened(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    assert main(["compare", str(run), str(other), "--out", str(tmp_path / "compared")]) == 0
    found = load_comparison(tmp_path / "compared")
    assert len(found.sentences) == 1
    assert found.sentences[0].split()[0] in found._repr_html_()
    assert found.findings["texts"] == len(load(run))
    with pytest.raises(BadInput, match="load_comparison opens it"):
        load(tmp_path / "compared")
    with pytest.raises(BadInput, match="give the --out of"):
        load_comparison(run)


def test_a_measurement_has_no_interval(tmp_path: Path) -> None:
    measured = measure_pr(write_task(tmp_path / "task", ROWS[:2]), tmp_path / "run", 1)
    found = load(measured.folder)
    assert found.question == "pr"
    assert [(result.low, result.high, result.radius) for result in found] == [(None, None, None)] * 2


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("store.sqlite", "has no store.sqlite"),
        ("spaces.jsonl", "spaces.jsonl: cannot be read"),
    ],
)
def test_half_a_copy_is_refused_in_one_line(run: Path, tmp_path: Path, fault: str, said: str) -> None:
    shutil.copytree(run, tmp_path / "half")
    (tmp_path / "half" / fault).unlink()
    with pytest.raises(BadInput, match=said) as caught:
        print(load(tmp_path / "half").spaces)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("quantity", ["weather"])
def test_a_run_of_another_quantity_is_refused_in_one_line(run: Path, tmp_path: Path, quantity: str) -> None:
    import sqlite3
    from contextlib import closing

    shutil.copytree(run, tmp_path / "other")
    with closing(sqlite3.connect(tmp_path / "other" / "store.sqlite")) as store:
        store.execute("INSERT INTO facts VALUES ('measure', ?)", (f'{{"quantity": "{quantity}"}}',))
        store.commit()
    with pytest.raises(BadInput, match=f"a run of '{quantity}', which load does not open") as caught:
        load(tmp_path / "other")
    assert len(str(caught.value).splitlines()) == 1


def test_a_store_of_another_version_is_refused_in_one_line(run: Path, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    shutil.copytree(run, tmp_path / "old")
    with closing(sqlite3.connect(tmp_path / "old" / "store.sqlite")) as store:
        store.execute("PRAGMA user_version = 0")
    with pytest.raises(BadInput, match="a store of version 0, and this swapproof reads 2"):
        load(tmp_path / "old")
