"""`--json`: one object on the standard output, with the exit code that the command ends with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import write_task

from swapproof.verifier.cli import main

Capture = pytest.CaptureFixture[str]


def said(capsys: Capture, *arguments: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    found = json.loads(capsys.readouterr().out)
    assert found["exit_code"] == code
    return code, found


def test_certify_report_and_check_say_the_same_of_a_run(tmp_path: Path, capsys: Capture) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    code, certified = said(capsys, "certify", task, "--out", run, "--radius", "2", "--json")
    assert code == 1
    assert certified["run"] == str(run)
    assert certified["summary"] == json.loads((run / "summary.json").read_text())
    assert said(capsys, "report", run, "--json") == (1, certified)
    code, checked = said(capsys, "check", run, "--json")
    assert (code, checked["accepted"], checked["refused"], checked["faults"]) == (0, True, [], [])
    assert checked["texts"] == checked["certificates"] == 8


def test_check_names_what_it_refuses(tmp_path: Path, capsys: Capture) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    said(capsys, "certify", task, "--out", run, "--json")
    (run / "certificates" / "000003.json").write_text("{}")
    code, checked = said(capsys, "check", run, "--json")
    assert (code, checked["accepted"]) == (4, False)
    assert [one["id"] for one in checked["refused"]] == [3]
    assert checked["refused"][0]["refusal"]
    assert any("000003.json" in fault for fault in checked["faults"])
    assert checked["remarks"] == []


@pytest.mark.parametrize("radius", ["1", "1,2"])
def test_measurements_too(tmp_path: Path, capsys: Capture, radius: str) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    asked = ("measure", task, "--quantity", "pr", "--radius", radius, "--out", run, "--json")
    code, measured = said(capsys, *asked)
    assert code == 0
    assert measured["summary"] == json.loads((run / "summary.json").read_text())
    assert said(capsys, "report", run, "--json") == (0, measured)
    code, checked = said(capsys, "check", run, "--json")
    assert (code, checked["accepted"]) == (0, True)
    assert set(checked.get("runs", {})) == ({"1", "2"} if radius == "1,2" else set())


def test_kappa_too(tmp_path: Path, capsys: Capture) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    code, measured = said(capsys, "measure", task, "--quantity", "kappa", "--out", run, "--json")
    assert code == 0
    assert measured["summary"]["rho"]["low"] <= measured["summary"]["rho"]["high"]
    assert said(capsys, "report", run, "--json") == (0, measured)


def test_doctor_too(capsys: Capture) -> None:
    code, found = said(capsys, "doctor", "--json")
    assert code == 0
    versions = {part["part"]: part["version"] for part in found["parts"]}
    assert versions["numpy"]
    assert all(part["without_it"] for part in found["parts"])
    assert main(["doctor", "--quick", "--json"]) == 2


def test_what_a_function_prints_goes_to_the_error_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "talking_classifier.py").write_text(
        'print("imported")\n\n\ndef scores(texts):\n    print("asked")\n    return [[0.0, 1.0] for _ in texts]\n'
    )
    (tmp_path / "texts.jsonl").write_text(json.dumps({"text": "a good film", "label": 1}) + "\n")
    (tmp_path / "synonyms.json").write_text(json.dumps({"good": ["fine"]}))
    (tmp_path / "task.toml").write_text(
        '[model]\ncallable = "talking_classifier:scores"\nlabels = ["negative", "positive"]\n\n'
        '[data]\nfile = "texts.jsonl"\n\n[swaps]\nfile = "synonyms.json"\n'
    )
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(tmp_path / "run"), "--json"]) == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["exit_code"] == 0
    assert {"imported", "asked"} <= set(printed.err.splitlines())
