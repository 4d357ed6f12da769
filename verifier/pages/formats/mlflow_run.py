"""A run of swapproof as a run of MLflow: every number of its summary as a metric, and its small files as artifacts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput, Unsupported

from ...runs.run_folder import Run

EXPERIMENT = "swapproof"
LONGEST = 500
"""Characters of a parameter that every store takes."""
NO_NUMBERS = ("definitions", "versions", "model", "swaps", "data", "requirements", "runs")
"""Of a summary, what are not results of the run itself."""
Metric = tuple[str, float, int]
"""Name, value, step: where a number is given by a number of swaps, that is the step."""


def log_to_mlflow(folder: Path, summary: Mapping[str, Any], uri: str, experiment: str = EXPERIMENT) -> str:
    """The id of the run that was made in the store at this address. Nothing is left half done without saying so: a run
    whose logging failed is marked as failed."""
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric as Entity
        from mlflow.entities import Param, RunTag
    except ImportError:
        raise Unsupported("--mlflow needs MLflow: pip install 'swapproof[mlflow]'") from None
    run = Run(folder)
    with refused(uri), quiet():
        client = MlflowClient(uri)
        known = client.get_experiment_by_name(experiment)
        place = client.create_experiment(experiment) if known is None else known.experiment_id
        made = client.create_run(place, run_name=folder.resolve().name).info.run_id
        try:
            params = [Param(name, value[:LONGEST]) for name, value in params_of(summary)]
            tags = [
                RunTag("swapproof.verdict", str(summary["verdict"]["sentence"])),
                RunTag("swapproof.run", str(folder)),
            ]
            metrics = [Entity(name, value, 0, step) for name, value, step in metrics_of(summary)]
            for start in range(0, len(metrics), 1000):  # what a server takes at once
                client.log_batch(made, metrics[start : start + 1000])
            client.log_batch(made, params=params, tags=tags)
            for path in (run.report, run.summary, run.manifest, run.task, run.results):
                if path.is_file():
                    client.log_artifact(made, str(path))
        except BaseException:
            client.set_terminated(made, "FAILED")
            raise
        client.set_terminated(made)
    return str(made)


@contextmanager
def refused(uri: str) -> Iterator[None]:
    """What MLflow says of a store that it cannot write to, in one line."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if "UnsupportedModel" in type(error).__name__:
            raise BadInput(f"--mlflow {uri}: databases need the whole of MLflow: pip install mlflow") from None
        first = " ".join(str(error).split("\n", 1)[0].split())
        raise BadInput(f"--mlflow {uri}: {first}") from None


@contextmanager
def quiet() -> Iterator[None]:
    """MLflow tells nobody that it was used, and waits no quarter of an hour for a server that is not there."""
    wanted = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update({name: value for name, value in wanted.items() if before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


def params_of(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was asked of which model."""
    for name in ("quantity", "method", "engines", "radius", "seconds_per_text", "norm", "words", "units"):
        value = summary.get(name)
        if value is not None and not isinstance(value, Mapping):
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    for section in ("model", "swaps", "versions"):
        for name, value in summary.get(section, {}).items():
            if isinstance(value, str | int | float):
                yield f"{section}.{name}", str(value)


def metrics_of(summary: Mapping[str, Any]) -> Iterator[Metric]:
    for name, value in summary.items():
        if name not in NO_NUMBERS:
            yield from numbers(name, value, 0)


def numbers(name: str, value: Any, step: int) -> Iterator[Metric]:
    match value:
        case bool():
            yield name, float(value), step
        case int() | float():
            yield name, float(value), step
        case Mapping():
            for key, inner in value.items():
                if key.isdecimal():
                    yield from numbers(name, inner, int(key))
                else:
                    yield from numbers(f"{name}.{key}", inner, step)
