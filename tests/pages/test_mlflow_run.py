"""A run logged to MLflow really, to a store on the disk, and read back from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import write_task

from swapproof.verifier import load
from swapproof.verifier.cli import main
from swapproof.verifier.pages.formats.mlflow_run import metrics_of

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.filterwarnings("ignore")
"""MLflow's own."""


def test_numbers_by_swaps_are_steps_of_one_metric() -> None:
    summary = {"texts": 8, "mmws": {"low": 1.5, "high": None}, "certified_accuracy": {"1": 0.5, "2": 0.25},
               "vacuous": [], "verdict": {"exit_code": 0, "sentence": "all"}, "versions": {"numpy": 2}}  # fmt: skip
    assert [*metrics_of(summary)] == [
        ("texts", 8.0, 0), ("mmws.low", 1.5, 0), ("certified_accuracy", 0.5, 1), ("certified_accuracy", 0.25, 2),
        ("verdict.exit_code", 0.0, 0),
    ]  # fmt: skip


def test_without_mlflow_one_line_says_what_to_install(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    assert main(["certify", str(write_task(tmp_path / "task")), "--out", str(tmp_path / "run"), "--limit", "1"]) == 0
    monkeypatch.setitem(sys.modules, "mlflow", None)
    capsys.readouterr()
    assert main(["report", str(tmp_path / "run"), "--mlflow", str(tmp_path / "store")]) == 2
    assert "pip install 'swapproof[mlflow]'" in capsys.readouterr().err


def test_what_is_logged_is_read_back(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    run, store = tmp_path / "run", (tmp_path / "store").as_uri()
    assert main(["certify", str(write_task(tmp_path / "task")), "--out", str(run)]) == 0
    capsys.readouterr()
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    if int(mlflow.__version__.split(".")[0]) >= 3 and main(["report", str(run), "--mlflow", store]) == 2:
        said = capsys.readouterr().err
        assert "MLFLOW_ALLOW_FILE_STORE=true" in said
        assert "Traceback" not in said
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    assert main(["report", str(run), "--mlflow", store, "--experiment", "guards", "--json"]) == 0
    printed = capsys.readouterr()
    summary = json.loads(printed.out)["summary"]
    assert "MLflow: run " in printed.err
    client = mlflow.MlflowClient(store)
    (found,) = client.search_runs([client.get_experiment_by_name("guards").experiment_id])
    assert found.info.status == "FINISHED"
    assert found.info.run_name == "run"
    assert found.data.metrics["mmws.low"] == summary["mmws"]["low"]
    assert found.data.params["engines"] == ", ".join(summary["engines"])
    assert found.data.tags["swapproof.verdict"] == summary["verdict"]["sentence"]
    history = {one.step: one.value for one in client.get_metric_history(found.info.run_id, "certified_accuracy")}
    assert history == {int(swaps): share for swaps, share in summary["certified_accuracy"].items()}
    names = {one.path for one in client.list_artifacts(found.info.run_id)}
    assert names == {"report.html", "summary.json", "manifest.json", "task.toml", "results.jsonl"}
    assert load(run).to_mlflow(store) != found.info.run_id
