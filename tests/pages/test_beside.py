"""What the page of a run shows besides its lines: swaps left out of each text, attacks, and what other runs found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_rows import rows_in
from tiny import weaker, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.pages.beside.beside_parts import curves_of

Capture = pytest.CaptureFixture[str]


def swapproof(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task one of whose candidates is no word of the model, its run, and everything measured of the same texts."""
    folder = tmp_path_factory.mktemp("beside")
    task = write_task(folder / "task")
    table = json.loads((folder / "task" / "synonyms.json").read_text())
    first = next(iter(table))
    (folder / "task" / "synonyms.json").write_text(json.dumps({**table, first: [*table[first], "unheard"]}))
    assert swapproof("certify", task, "--out", folder / "run") == 0
    assert swapproof("attack", task, "--method", "pdp", "--out", folder / "attacked") == 0
    assert swapproof("measure", task, "--quantity", "pr", "--radius", "1", "--out", folder / "pr") == 0
    assert swapproof("measure", task, "--quantity", "kappa", "--out", folder / "kappa") == 0
    assert swapproof("measure", task, "--quantity", "msr", "--limit", "3", "--out", folder / "msr") == 0
    return folder


def about(run: Path) -> dict[str, Any]:
    return rows_in((run / "report.html").read_text())[0]


def test_each_text_lists_the_candidates_that_its_words_did_not_get(folder: Path) -> None:
    found = about(folder / "run")["left_out"]
    (entry,) = [entry for entry in found["words"] if any("unheard" in own for _, own in entry[1])]
    number = found["words"].index(entry)
    assert entry[1] == [["not in vocabulary", ["unheard"]]]
    lines = [json.loads(line) for line in (folder / "run" / "results.jsonl").read_text().splitlines()]
    having = {str(line["id"]) for line in lines if entry[0] in line["text"].lower().split()}
    assert {id for id, numbers in found["texts"].items() if number in numbers} == having != set()


def test_what_other_runs_found_stands_on_the_page_and_check_accepts_it(folder: Path, capsys: Capture) -> None:
    run = folder / "run"
    others = [part for name in ("attacked", "pr", "kappa", "msr") for part in ("--beside", folder / name)]
    assert swapproof("report", run, *others) == 0
    text = (run / "report.html").read_text()
    for said in ("attack pdp", "PR at 1 swap", "The most dangerous words (kappa)", "(saliency)"):
        assert said in text
    heads = [head for head, _, _ in about(run)["beside"]["0"]]
    assert heads[:2] == ["Attack pdp", "PR at 1 swap"]
    assert heads[2].startswith("Safe radius")
    assert set(about(run)["beside"]) == {str(id) for id in range(8)}
    assert swapproof("check", run, "--quiet") == 0
    assert swapproof("report", run) == 0  # keeps them
    assert (run / "report.html").read_text() == text
    kept = json.loads((run / "beside.json").read_text())
    kept["runs"][0]["texts"]["0"] = 7
    (run / "beside.json").write_text(json.dumps(kept))
    capsys.readouterr()
    assert swapproof("check", run, "--quiet") == 4
    assert "report.html is not the page" in capsys.readouterr().out
    assert swapproof("report", run, "--alone") == 0
    assert not (run / "beside.json").exists()
    assert swapproof("check", run, "--quiet") == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [("run", "give"), ("kappa/none", "no such folder"), ("weak", "another model"), ("few", "run both on the same")],
)
def test_runs_that_do_not_fit_are_refused(folder: Path, capsys: Capture, name: str, said: str) -> None:
    if name == "weak":
        task = weaker(write_task(folder / "weaker"))
        (folder / "weaker" / "synonyms.json").write_text((folder / "task" / "synonyms.json").read_text())
        swapproof("attack", task, "--method", "pdp", "--out", folder / name)
    if name == "few":
        swapproof("attack", folder / "task" / "task.toml", "--method", "pdp", "--limit", "3", "--out", folder / name)
    capsys.readouterr()
    assert swapproof("report", folder / "run", "--beside", folder / name) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "run" / "beside.json").exists()


def test_figures_are_shown_beside_runs_of_certify_only(folder: Path, capsys: Capture) -> None:
    assert swapproof("report", folder / "pr", "--beside", folder / "attacked") == 2
    assert "runs of `certify` only" in capsys.readouterr().err


def test_what_is_no_such_file_is_refused_in_one_line(folder: Path, capsys: Capture) -> None:
    path = folder / "run" / "beside.json"
    for content in ("{", "[]", '{"of": {}, "runs": 1, "runs": 2}'):
        path.write_text(content)
        capsys.readouterr()
        assert swapproof("report", folder / "run") == 2
        assert "beside.json: cannot be read" in capsys.readouterr().err
    path.unlink()


def line(id: int, status: str, high: int | None, *steps: tuple[str, int | None]) -> dict[str, Any]:
    history = [{"engine": engine, "low": 1, "high": end, "seconds": 0.0} for engine, end in steps]
    return {"id": id, "status": status, "min_swaps": {"low": 0, "high": high}, "history": history}


def test_curves_are_of_the_sentences_that_were_known_after_an_engine() -> None:
    summary = {"texts": 3, "engines": ["pdp", "exact"], "accuracy_under_attack": {"1": {}, "2": {}, "3": {}}}
    lines = [
        line(0, "exact", 1, ("pdp", 3), ("exact", 1)),
        line(1, "unbreakable", None, ("pdp", None), ("exact", None)),
        line(2, "already_wrong", 0),
    ]
    assert curves_of(summary, lines, ()) == (("sentences of pdp", (2 / 3, 2 / 3, 2 / 3, 1 / 3)),)
    same = [line(0, "exact", 1, ("pdp", 1), ("exact", 1)), *lines[1:]]
    assert curves_of(summary, same, ()) == ()
    attack = {"kind": "attack", "method": "beam", "texts": {"0": 2, "1": None, "2": 0}}
    assert curves_of(summary, same, (attack,)) == (("attack beam", (2 / 3, 2 / 3, 1 / 3, 1 / 3)),)


def test_a_requirement_of_very_many_swaps_takes_no_longer(folder: Path, tmp_path: Path) -> None:
    task = folder / "task" / "task.toml"
    assert swapproof("certify", task, "--out", tmp_path / "run", "--limit", "1", "--radius", "99999999999") in (0, 1)
